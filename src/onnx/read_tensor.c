/*
 * read_tensor.c -- TensorProto to little-endian bytes.
 *
 * raw_data, and float_data or double_data in one packed piece, already are those bytes and stay in
 * the mapping; the other typed fields are varints and are converted into a buffer of their own,
 * which counts against the memory limit of the load. Bools other than 0 and 1 become 1. Nothing is
 * allocated before the size that dims promise has been found in the file.
 *
 * Refused by name: external data, segments, and types that have no bytes of their own (4-bit, 8-bit
 * floats and the like).
 */
#include <string.h>

#include "base/bytes.h"
#include "base/checked.h"
#include "base/dtype.h"
#include "onnx/read.h"

/* The typed fields of TensorProto, by number. */
enum {
    FLOATS   = OM_PROTO_FLOATS,
    INT32S   = OM_PROTO_INT32S,
    STRINGS  = OM_PROTO_STRINGS,
    INT64S   = OM_PROTO_INT64S,
    DOUBLES  = OM_PROTO_DOUBLES,
    UINT64S  = OM_PROTO_UINT64S,
    N_FIELDS = 12
};

typedef struct om_tensor_scan {
    int32_t dtype, rank;
    int64_t dims[OM_FILE_RANK];
    om_span raw;
    bool external, segment;
    size_t count[N_FIELDS];  /* elements in each typed field               */
    size_t pieces[N_FIELDS]; /* fields that brought them                   */
    om_span last[N_FIELDS];  /* the last packed piece                      */
    size_t text;             /* bytes of string_data                       */
} om_tensor_scan;

static const char *const field_names[N_FIELDS] = {
    [FLOATS] = "float_data", [INT32S] = "int32_data",   [STRINGS] = "string_data",
    [INT64S] = "int64_data", [DOUBLES] = "double_data", [UINT64S] = "uint64_data"};

/* The typed field that holds elements of this type, which is known, and how many entries one
 * element takes. */
static uint32_t typed_field(int32_t dtype, size_t *per) {
    const om_dtype_info *t = omi_dtype(dtype);
    *per                   = t->entries;
    return t->field;
}

bool omi_read_tensor_name(om_reader *r, om_span s, om_span *name) {
    om_wire w  = omi_wire_of(s);
    om_field f = {0};
    *name      = (om_span){s.p, 0};
    while (omi_read_next(r, &w, &f))
        if (f.number == 8 && !omi_read_name(r, &f, "tensor.name", name)) return false;
    return !omi_failed();
}

/* ---- counting ----------------------------------------------------------------------------------
 */

static bool scan_dims(om_reader *r, const om_field *f, om_tensor_scan *t) {
    om_wire w  = omi_wire_of_list(f);
    uint64_t v = f->v;
    if (f->type != OM_WIRE_VARINT && !omi_read_expect(r, f, OM_WIRE_BYTES, "tensor.dims"))
        return false;
    do {
        if (f->type == OM_WIRE_BYTES) {
            if (w.p == w.end) break;
            if (!omi_wire_varint(&w, &v))
                return omi_read_fail(r, OM_ERR_MALFORMED, w.p, "%s", w.why);
        }
        if ((int64_t)v < 0)
            return omi_read_fail(r, OM_ERR_MALFORMED, f->at, "a tensor has an axis of size %lld",
                                 (long long)v);
        if (t->rank == OM_FILE_RANK)
            return omi_read_fail(r, OM_ERR_LIMIT, f->at, "a tensor has more than %d axes",
                                 OM_FILE_RANK);
        t->dims[t->rank++] = (int64_t)v;
    } while (f->type == OM_WIRE_BYTES);
    return true;
}

/* One of the typed fields, packed or not. */
static bool scan_typed(om_reader *r, const om_field *f, om_tensor_scan *t) {
    const char *what = field_names[f->number];
    uint8_t one      = f->number == FLOATS    ? OM_WIRE_32
                       : f->number == DOUBLES ? OM_WIRE_64
                       : f->number == STRINGS ? OM_WIRE_BYTES
                                              : OM_WIRE_VARINT;
    t->pieces[f->number]++;
    if (f->number == STRINGS) {
        t->text += f->n;
        t->count[STRINGS]++;
        return omi_read_expect(r, f, OM_WIRE_BYTES, what);
    }
    if (f->type == one) return t->count[f->number]++, true;
    if (!omi_read_expect(r, f, OM_WIRE_BYTES, what)) return false;
    size_t width = one == OM_WIRE_32 ? 4 : one == OM_WIRE_64 ? 8 : 0;
    if (width && f->n % width)
        return omi_read_fail(r, OM_ERR_MALFORMED, f->at, "%s has %zu bytes, not a multiple of %zu",
                             what, f->n, width);
    t->count[f->number] += width ? f->n / width : omi_wire_count_varints(f->data, f->n);
    t->last[f->number] = omi_slice_of(f);
    return true;
}

static bool scan_field(om_reader *r, const om_field *f, om_tensor_scan *t) {
    switch (f->number) {
    case 1:
        return scan_dims(r, f, t);
    case 2:
        if (!omi_read_expect(r, f, OM_WIRE_VARINT, "tensor.data_type")) return false;
        t->dtype = f->v > INT32_MAX ? -1 : (int32_t)f->v;
        return true;
    case 3:
        return t->segment = true;
    case 9:
        t->raw = omi_slice_of(f);
        return omi_read_expect(r, f, OM_WIRE_BYTES, "tensor.raw_data");
    case 13:
        return t->external = true;
    case 14:
        if (!omi_read_expect(r, f, OM_WIRE_VARINT, "tensor.data_location")) return false;
        if (f->v > 1)
            return omi_read_fail(r, OM_ERR_MALFORMED, f->at, "data_location is %llu",
                                 (unsigned long long)f->v);
        t->external = t->external || f->v == 1;
        return true;
    case FLOATS:
    case INT32S:
    case STRINGS:
    case INT64S:
    case DOUBLES:
    case UINT64S:
        return scan_typed(r, f, t);
    default:
        return true;
    }
}

/* ---- checking ----------------------------------------------------------------------------------
 */

static bool check_tensor_type(om_reader *r, om_span s, const om_tensor_scan *t) {
    const char *type = omi_onnx_type_name(t->dtype);
    if (t->dtype == 0)
        return omi_read_fail(r, OM_ERR_MALFORMED, s.p, "a tensor has no element type");
    if (!omi_onnx_type_known(t->dtype))
        return omi_read_fail(r, OM_ERR_UNSUPPORTED, s.p, "a tensor has the unknown element type %d",
                             (int)t->dtype);
    if (omi_dtype(t->dtype)->field == OM_PROTO_NONE)
        return omi_read_fail(r, OM_ERR_UNSUPPORTED, s.p,
                             "a tensor has element type %s (%d), which is not supported", type,
                             (int)t->dtype);
    if (t->external)
        return omi_read_fail(r, OM_ERR_UNSUPPORTED, s.p,
                             "a tensor's data lies in another file (external data), which cannot "
                             "be read yet; save the model in one file");
    if (t->segment)
        return omi_read_fail(r, OM_ERR_UNSUPPORTED, s.p, "a tensor is stored in segments");
    return true;
}

/* Does the file hold as many elements as dims say? *n elements, *bytes of them (no strings). */
static bool check_size(om_reader *r, om_span s, const om_tensor_scan *t, size_t *n, size_t *bytes) {
    int64_t count;
    size_t per;
    uint32_t field = typed_field(t->dtype, &per);
    *bytes         = 0;
    if (!omi_product(t->dims, t->rank, &count) ||
        (t->dtype != OM_ONNX_STRING && !omi_onnx_bytes(t->dtype, t->rank, t->dims, bytes)))
        return omi_read_fail(r, OM_ERR_MALFORMED, s.p, "the size of a tensor overflows");
    *n = (size_t)count;
    if (t->raw.n && t->dtype == OM_ONNX_STRING)
        return omi_read_fail(r, OM_ERR_MALFORMED, t->raw.p, "a tensor of strings has raw_data");
    for (uint32_t k = 0; k < N_FIELDS; k++)
        if (t->count[k] && (k != field || t->raw.n))
            return omi_read_fail(r, OM_ERR_MALFORMED, s.p, "a tensor of %s has %s%s",
                                 omi_onnx_type_name(t->dtype), field_names[k],
                                 t->raw.n ? " beside raw_data" : "");
    if (t->raw.n && t->raw.n != *bytes)
        return omi_read_fail(r, OM_ERR_MALFORMED, t->raw.p,
                             "raw_data has %zu bytes where %s of this shape needs %zu", t->raw.n,
                             omi_onnx_type_name(t->dtype), *bytes);
    if (!t->raw.n && (t->count[field] % per || t->count[field] / per != *n))
        return omi_read_fail(r, OM_ERR_MALFORMED, s.p,
                             "%s has %zu entries where the shape needs %zu", field_names[field],
                             t->count[field], *n * per);
    return true;
}

/* ---- converting --------------------------------------------------------------------------------
 */

/* One entry of int32_data as an element of a narrower type; false when it does not fit. What is no
 * integer comes as its bits. */
static bool put_int32(const om_dtype_info *t, int64_t v, uint8_t *to) {
    bool sign = t->class == OM_CLASS_SIGNED, truth = t->class == OM_CLASS_BOOL;
    int bits   = truth ? 32 : t->bits;
    int64_t lo = sign || truth ? -(1ll << (bits - 1)) : 0,
            hi = (1ll << (sign || truth ? bits - 1 : bits)) - 1;
    if (v < lo || v > hi) return false;
    switch (t->bits) {
    case 8:
        return *to = truth ? v != 0 : (uint8_t)v, true;
    case 16:
        return omi_store_u16(to, (uint16_t)v), true;
    case 32:
        return omi_store_u32(to, (uint32_t)v), true;
    default:
        return false;
    }
}

static bool put_entry(int32_t dtype, uint64_t v, uint8_t *to) {
    const om_dtype_info *t = omi_dtype(dtype);
    // Negative numbers come as 64 bits; some writers cut them to 32, which means the same.
    if (t->field == INT32S)
        return put_int32(t, v <= UINT32_MAX ? (int32_t)(uint32_t)v : (int64_t)v, to);
    switch (t->bits / t->entries) {
    case 64:
        return omi_store_u64(to, v), true;
    case 32:
        return v <= UINT32_MAX ? (omi_store_u32(to, (uint32_t)v), true) : false;
    default:
        return false;
    }
}

/* Entries of one typed field, packed or not, one after the other into to. */
static bool convert_field(om_reader *r, const om_field *f, int32_t dtype, uint8_t **to,
                          size_t step) {
    om_wire w    = omi_wire_of_list(f);
    bool list    = f->type == OM_WIRE_BYTES;
    size_t width = f->number == FLOATS ? 4 : f->number == DOUBLES ? 8 : 0;
    uint64_t v   = f->v;
    while (!list || w.p != w.end) {
        if (list && width) {
            v = width == 4 ? omi_load_u32(w.p) : omi_load_u64(w.p);
            w.p += width;
        } else if (list && !omi_wire_varint(&w, &v))
            return omi_read_fail(r, OM_ERR_MALFORMED, w.p, "%s", w.why);
        if (!put_entry(dtype, v, *to))
            return omi_read_fail(r, OM_ERR_MALFORMED, f->at, "%s holds %lld, which is no %s",
                                 field_names[f->number], (long long)v, omi_onnx_type_name(dtype));
        *to += step;
        if (!list) break;
    }
    return true;
}

static bool convert_typed(om_reader *r, om_span s, int32_t dtype, uint8_t *to) {
    size_t per;
    uint32_t field = typed_field(dtype, &per);
    size_t step    = omi_onnx_elem_size(dtype) / per;
    om_wire w      = omi_wire_of(s);
    om_field f     = {0};
    while (omi_read_next(r, &w, &f))
        if (f.number == field && !convert_field(r, &f, dtype, &to, step)) return false;
    return !omi_failed();
}

/* The offsets and the bytes of a STRING tensor (graph.h). */
static bool convert_strings(om_reader *r, om_span s, size_t n, uint8_t *to) {
    uint8_t *text = to + 8 * (n + 1);
    uint64_t at   = 0;
    om_wire w     = omi_wire_of(s);
    om_field f    = {0};
    omi_store_u64(to, 0);
    while (omi_read_next(r, &w, &f)) {
        if (f.number != STRINGS) continue;
        if (f.n) memcpy(text + at, f.data, f.n);
        at += f.n;
        omi_store_u64(to += 8, at);
    }
    return !omi_failed();
}

static om_buffer *converted(om_reader *r, om_span s, const om_tensor_scan *t, size_t n,
                            size_t bytes) {
    if (!omi_read_spend(r, s.p, bytes)) return NULL;
    om_buffer *b = omi_buffer_new(bytes);
    if (!b) return NULL;
    bool ok = true;
    if (t->raw.n) // bools that are neither 0 nor 1
        for (size_t i = 0; i < bytes; i++)
            ((uint8_t *)b->data)[i] = t->raw.p[i] != 0;
    else if (t->dtype == OM_ONNX_STRING)
        ok = convert_strings(r, s, n, b->data);
    else
        ok = convert_typed(r, s, t->dtype, b->data);
    if (ok) return b;
    omi_buffer_release(b);
    return NULL;
}

static bool needs_normal_bools(const om_tensor_scan *t) {
    for (size_t i = 0; t->dtype == OM_ONNX_BOOL && i < t->raw.n; i++)
        if (t->raw.p[i] > 1) return true;
    return false;
}

/* The part of the file that already is the tensor, or NULL. */
static const uint8_t *in_place(const om_tensor_scan *t, size_t bytes) {
    size_t per;
    uint32_t field = typed_field(t->dtype, &per);
    if (t->raw.n) return needs_normal_bools(t) ? NULL : t->raw.p;
    if ((field == FLOATS || field == DOUBLES) && t->pieces[field] == 1 && t->last[field].n == bytes)
        return t->last[field].p;
    return NULL;
}

OM_LEAF bool omi_read_tensor(om_reader *r, om_graph *g, om_span s, om_ginit *out) {
    om_tensor_scan t = {0};
    om_wire w        = omi_wire_of(s);
    om_field f       = {0};
    size_t n = 0, bytes = 0;
    while (omi_read_next(r, &w, &f))
        if (!scan_field(r, &f, &t)) return false;
    if (omi_failed() || !omi_read_go_on(r) || !check_tensor_type(r, s, &t) ||
        !check_size(r, s, &t, &n, &bytes))
        return false;
    if (t.dtype == OM_ONNX_STRING &&
        (!omi_mul_size(n + 1, 8, &bytes) || !omi_add_size(bytes, t.text, &bytes)))
        return omi_fail_nomem(SIZE_MAX), false;
    const uint8_t *p = bytes ? in_place(&t, bytes) : r->file->data;
    if (p) {
        size_t offset = (size_t)(p - (const uint8_t *)r->file->data);
        return omi_graph_tensor(g, out, t.dtype, t.rank, t.dims, r->file, offset, bytes);
    }
    om_buffer *b = converted(r, s, &t, n, bytes);
    bool ok      = b && omi_graph_tensor(g, out, t.dtype, t.rank, t.dims, b, 0, bytes);
    omi_buffer_release(b);
    return ok;
}
