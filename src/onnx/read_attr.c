/*
 * read_attr.c -- AttributeProto.
 *
 * The type field says which value field counts; files from before it existed do not have it, then
 * the one value that is there decides. A value of another field beside it is malformed: two readers
 * would see two models.
 */
#include <string.h>

#include "onnx/read.h"

typedef struct om_attr_scan {
    om_span name;
    uint64_t type;    /* 0: not written      */
    uint32_t seen;    /* bit of each type    */
    size_t count[12]; /* of each list field  */
    om_field value;   /* of a single value   */
} om_attr_scan;

/* Value fields: number -> the type that uses it, and the wire type of one entry. */
static uint64_t type_of_field(uint32_t number, uint8_t *wire) {
    *wire = OM_WIRE_BYTES;
    switch (number) {
    case 2:
        return *wire = OM_WIRE_32, OM_ATTR_FLOAT;
    case 3:
        return *wire = OM_WIRE_VARINT, OM_ATTR_INT;
    case 4:
        return OM_ATTR_STRING;
    case 5:
        return OM_ATTR_TENSOR;
    case 6:
        return OM_ATTR_GRAPH;
    case 7:
        return *wire = OM_WIRE_32, OM_ATTR_FLOATS;
    case 8:
        return *wire = OM_WIRE_VARINT, OM_ATTR_INTS;
    case 9:
        return OM_ATTR_STRINGS;
    case 10:
        return OM_ATTR_TENSORS;
    case 11:
        return OM_ATTR_GRAPHS;
    case 14:
        return 13; // TYPE_PROTO
    case 15:
        return 14; // TYPE_PROTOS
    case 22:
        return 11; // SPARSE_TENSOR
    case 23:
        return 12; // SPARSE_TENSORS
    default:
        return 0;
    }
}

static bool scan_value(om_reader *r, const om_field *f, om_attr_scan *a) {
    uint8_t wire;
    uint64_t type = type_of_field(f->number, &wire);
    bool packed   = (type == OM_ATTR_FLOATS || type == OM_ATTR_INTS) && f->type == OM_WIRE_BYTES;
    if (!type) return true;
    if (!packed && !omi_read_expect(r, f, wire, "attribute value")) return false;
    if (type == OM_ATTR_FLOATS && packed && f->n % 4)
        return omi_read_fail(r, OM_ERR_MALFORMED, f->at, "floats has %zu bytes", f->n);
    if (packed)
        a->count[type] += type == OM_ATTR_FLOATS ? f->n / 4 : omi_wire_count_varints(f->data, f->n);
    else if (type < OM_COUNT(a->count))
        a->count[type]++;
    a->seen |= 1u << type;
    a->value = *f;
    return true;
}

static bool scan_attr(om_reader *r, om_span s, om_attr_scan *a) {
    om_wire w  = omi_wire_of(s);
    om_field f = {0};
    om_span ref;
    while (omi_read_next(r, &w, &f)) {
        if (f.number == 1) {
            if (!omi_read_name(r, &f, "attribute.name", &a->name)) return false;
        } else if (f.number == 20) {
            if (!omi_read_expect(r, &f, OM_WIRE_VARINT, "attribute.type")) return false;
            a->type = f.v;
        } else if (f.number == 21) {
            if (!omi_read_name(r, &f, "attribute.ref_attr_name", &ref)) return false;
            if (ref.n)
                return omi_read_fail(r, OM_ERR_MALFORMED, f.at,
                                     "an attribute refers to a function's outside a function");
        } else if (!scan_value(r, &f, a))
            return false;
    }
    if (omi_failed()) return false;
    if (a->name.n == 0) return omi_read_fail(r, OM_ERR_MALFORMED, s.p, "an attribute has no name");
    return true;
}

/* Settles a->type; only its own value may be there. */
static bool settle_type(om_reader *r, om_span s, om_attr_scan *a) {
    if (a->type == 0 && a->seen && (a->seen & (a->seen - 1)) == 0)
        while (!(a->seen >> a->type & 1))
            a->type++;
    if (a->type == 0 || a->type > 14)
        return omi_read_fail(r, OM_ERR_MALFORMED, s.p, "an attribute has no type, or the type %llu",
                             (unsigned long long)a->type);
    if (a->seen & ~(1u << a->type))
        return omi_read_fail(r, OM_ERR_MALFORMED, s.p,
                             "an attribute of type %llu has a value of another type",
                             (unsigned long long)a->type);
    if ((a->type == OM_ATTR_TENSOR || a->type == OM_ATTR_GRAPH) && a->count[a->type] != 1)
        return omi_read_fail(r, OM_ERR_MALFORMED, s.p,
                             "an attribute should hold one %s and holds %zu",
                             a->type == OM_ATTR_GRAPH ? "graph" : "tensor", a->count[a->type]);
    return true;
}

static bool fill_packed(om_reader *r, const om_field *f, om_attr *a, size_t *at) {
    om_wire w = omi_wire_of_list(f);
    uint64_t v;
    for (; w.p != w.end; ++*at) {
        if (a->type == OM_ATTR_FLOATS) {
            memcpy(&a->floats[*at], w.p, 4);
            w.p += 4;
        } else if (omi_wire_varint(&w, &v))
            a->ints[*at] = (int64_t)v;
        else
            return omi_read_fail(r, OM_ERR_MALFORMED, w.p, "%s", w.why);
    }
    return true;
}

static bool fill_text(om_graph *g, const om_field *f, om_text *out) {
    out->v = omi_arena_strndup(g->arena, (const char *)f->data, f->n);
    out->n = f->n;
    return out->v != NULL;
}

static bool fill_graph(om_reader *r, om_graph *g, const om_field *f, om_graph **out) {
    *out = omi_graph_new_sub(g, "");
    return *out && omi_read_graph(r, *out, omi_slice_of(f));
}

/* Entry number at of a list, or the one value. */
static bool fill_entry(om_reader *r, om_graph *g, const om_field *f, om_attr *a, size_t at) {
    uint32_t bits = (uint32_t)f->v;
    switch (a->type) {
    case OM_ATTR_FLOAT:
        return memcpy(&a->f, &bits, 4), true;
    case OM_ATTR_INT:
        return a->i = (int64_t)f->v, true;
    case OM_ATTR_STRING:
        return fill_text(g, f, &a->s);
    case OM_ATTR_FLOATS:
        return memcpy(&a->floats[at], &bits, 4), true;
    case OM_ATTR_INTS:
        return a->ints[at] = (int64_t)f->v, true;
    case OM_ATTR_STRINGS:
        return fill_text(g, f, &a->strings[at]);
    case OM_ATTR_TENSOR:
    case OM_ATTR_TENSORS:
        return omi_read_tensor(r, g, omi_slice_of(f), &a->tensors[at]);
    case OM_ATTR_GRAPH:
    case OM_ATTR_GRAPHS:
        return fill_graph(r, g, f, &a->graphs[at]);
    default:
        return true;
    }
}

static bool fill_list(om_reader *r, om_graph *g, om_span s, om_attr *a) {
    om_wire w  = omi_wire_of(s);
    om_field f = {0};
    size_t at  = 0;
    uint8_t wire;
    while (omi_read_next(r, &w, &f)) {
        if (type_of_field(f.number, &wire) != (uint64_t)a->type) continue;
        bool packed = f.type == OM_WIRE_BYTES && wire != OM_WIRE_BYTES;
        if (packed ? !fill_packed(r, &f, a, &at) : !fill_entry(r, g, &f, a, at++)) return false;
    }
    return !omi_failed();
}

static OM_LEAF om_attr *new_attr(om_reader *r, om_graph *g, int32_t node, om_span s) {
    om_attr_scan scan = {0};
    if (!scan_attr(r, s, &scan) || !settle_type(r, s, &scan)) return NULL;
    om_attr_type type = scan.type > OM_ATTR_GRAPHS ? OM_ATTR_OTHER : (om_attr_type)scan.type;
    size_t n          = type == OM_ATTR_OTHER ? 0 : scan.count[scan.type];
    om_attr *a = omi_graph_attr_new(g, node, (const char *)scan.name.p, scan.name.n, type, n);
    if (a && type == OM_ATTR_STRING && !n) a->s.v = ""; // writers that leave defaults out
    return a;
}

bool omi_read_attr(om_reader *r, om_graph *g, int32_t node, om_span s) {
    om_attr *a = new_attr(r, g, node, s);
    return a && fill_list(r, g, s, a);
}
