/*
 * read_value.c -- ValueInfoProto and TypeProto.
 *
 * A tensor's type and axes are kept; of sequences, maps and the like the name only, as ONNX writes
 * it ("seq(tensor(FLOAT))"), for people and for refusals.
 */
#include <string.h>

#include "base/str.h"
#include "base/utf8.h"
#include "onnx/read.h"

/* Real types nest three deep. */
#define TYPE_DEPTH 16

bool omi_read_value_name(om_reader *r, om_span s, om_span *name) {
    om_wire w  = omi_wire_of(s);
    om_field f = {0};
    *name      = (om_span){s.p, 0};
    while (omi_read_next(r, &w, &f))
        if (f.number == 1 && !omi_read_name(r, &f, "value.name", name)) return false;
    if (omi_failed()) return false;
    if (name->n == 0)
        return omi_read_fail(r, OM_ERR_MALFORMED, s.p, "an input or output has no name");
    return true;
}

/* TensorShapeProto.Dimension: the last of value and param holds, as in every protobuf oneof. */
static bool read_dim(om_reader *r, om_graph *g, om_span s, om_gdim *d) {
    om_wire w  = omi_wire_of(s);
    om_field f = {0};
    om_span name;
    *d = OM_DIM_UNKNOWN;
    while (omi_read_next(r, &w, &f)) {
        if (f.number == 1) {
            if (!omi_read_expect(r, &f, OM_WIRE_VARINT, "dim_value")) return false;
            *d = OM_DIM_UNKNOWN;
            if ((int64_t)f.v == -1) continue; // what some old exporters write for unknown
            if ((int64_t)f.v < 0)
                return omi_read_fail(r, OM_ERR_MALFORMED, f.at, "an axis has size %lld",
                                     (long long)f.v);
            *d = OM_DIM_FIXED((int64_t)f.v);
        } else if (f.number == 2) {
            if (!omi_read_name(r, &f, "dim_param", &name)) return false;
            *d = OM_DIM_UNKNOWN;
            if (name.n == 0) continue;
            d->sym = omi_graph_symbol_named(g, (const char *)name.p, name.n);
            if (d->sym < 0) return false;
        }
    }
    return !omi_failed();
}

static OM_LEAF bool read_axes(om_reader *r, om_graph *g, om_span s, uint32_t value, int32_t dtype) {
    om_gdim dims[OM_FILE_RANK];
    om_wire w    = omi_wire_of(s);
    om_field f   = {0};
    int32_t rank = 0;
    while (omi_read_next(r, &w, &f)) {
        if (f.number != 1) continue;
        if (!omi_read_expect(r, &f, OM_WIRE_BYTES, "shape.dim")) return false;
        if (rank == OM_FILE_RANK)
            return omi_read_fail(r, OM_ERR_LIMIT, f.at, "a value has more than %d axes",
                                 OM_FILE_RANK);
        if (!read_dim(r, g, omi_slice_of(&f), &dims[rank++])) return false;
    }
    return !omi_failed() && omi_graph_set_type(g, value, dtype, rank, dims);
}

/* TypeProto.Tensor */
static bool read_tensor_type(om_reader *r, om_graph *g, om_span s, uint32_t value) {
    om_wire w     = omi_wire_of(s);
    om_field f    = {0};
    om_span shape = {NULL, 0};
    int32_t dtype = 0;
    while (omi_read_next(r, &w, &f)) {
        if (f.number == 1) {
            if (!omi_read_expect(r, &f, OM_WIRE_VARINT, "elem_type")) return false;
            if (f.v != 0 && (f.v > INT32_MAX || !omi_onnx_type_known((int32_t)f.v)))
                return omi_read_fail(r, OM_ERR_UNSUPPORTED, f.at, "element type %llu is not known",
                                     (unsigned long long)f.v);
            dtype = (int32_t)f.v;
        } else if (f.number == 2) {
            if (!omi_read_expect(r, &f, OM_WIRE_BYTES, "shape")) return false;
            shape = omi_slice_of(&f);
        }
    }
    if (omi_failed()) return false;
    if (!shape.p) return omi_graph_set_type(g, value, dtype, -1, NULL);
    return read_axes(r, g, shape, value, dtype);
}

/* Appends a type as text. Reads what it needs with the plain cursor: wire faults inside are found
 * by name_type's caller. */
static bool name_type(om_reader *r, om_span s, om_str *out, int depth);

/* The payload of sequence, optional (element in field 1), map (key 1, value 2), tensors (1). */
static bool name_payload(om_reader *r, const om_field *f, om_str *out, int depth) {
    om_wire w  = omi_wire_of(omi_slice_of(f));
    om_field e = {0};
    while (omi_read_next(r, &w, &e)) {
        if (e.type == OM_WIRE_VARINT && e.number == 1) {
            omi_str_puts(out, e.v <= INT32_MAX ? omi_onnx_type_name((int32_t)e.v) : "?");
            if (f->number == 5) omi_str_puts(out, ",");
        } else if (e.type == OM_WIRE_BYTES && e.number == (f->number == 5 ? 2u : 1u)) {
            if (f->number != 7 && f->number != 8 && f->number != 1 &&
                !name_type(r, omi_slice_of(&e), out, depth + 1))
                return false;
        }
    }
    return !omi_failed();
}

static bool name_type(om_reader *r, om_span s, om_str *out, int depth) {
    om_wire w  = omi_wire_of(s);
    om_field f = {0};
    if (depth > TYPE_DEPTH)
        return omi_read_fail(r, OM_ERR_LIMIT, s.p, "types are nested more than %d deep",
                             TYPE_DEPTH);
    while (omi_read_next(r, &w, &f)) {
        static const char *const kinds[] = {[1] = "tensor", [4] = "seq",    [5] = "map",
                                            [7] = "opaque", [8] = "sparse", [9] = "optional"};
        if (f.number >= OM_COUNT(kinds) || !kinds[f.number]) continue;
        if (!omi_read_expect(r, &f, OM_WIRE_BYTES, "type")) return false;
        omi_str_printf(out, "%s(", kinds[f.number]);
        if (!name_payload(r, &f, out, depth)) return false;
        omi_str_puts(out, ")");
    }
    return !omi_failed();
}

static bool keep_type_name(om_reader *r, om_graph *g, om_span s, uint32_t value) {
    om_str text = {0};
    bool ok     = name_type(r, s, &text, 0) && !text.failed;
    if (ok && text.n) {
        g->values[value].type_text = omi_arena_strndup(g->arena, text.v, text.n);
        ok                         = g->values[value].type_text != NULL;
    }
    omi_str_free(&text);
    return ok;
}

bool omi_read_value_type(om_reader *r, om_graph *g, om_span s, uint32_t value) {
    om_wire w    = omi_wire_of(s);
    om_field f   = {0};
    om_span type = {NULL, 0}, tensor = {NULL, 0};
    while (omi_read_next(r, &w, &f))
        if (f.number == 2) {
            if (!omi_read_expect(r, &f, OM_WIRE_BYTES, "value.type")) return false;
            type = omi_slice_of(&f);
        }
    if (omi_failed() || !type.p) return !omi_failed();
    w = omi_wire_of(type);
    while (omi_read_next(r, &w, &f))
        if (f.number == 1) {
            if (!omi_read_expect(r, &f, OM_WIRE_BYTES, "tensor_type")) return false;
            tensor = omi_slice_of(&f);
        }
    if (omi_failed()) return false;
    if (tensor.p) return read_tensor_type(r, g, tensor, value);
    return keep_type_name(r, g, type, value);
}
