/*
 * consts.c -- tensors that do not depend on an input: captured once, checked until finish.
 *
 * Key (storage id, offset, shape, strides): ids are never reused and captured storages are
 * retained, so a freed temporary cannot be mistaken for another (TD-7). A contiguous whole storage
 * shares its buffer, copy on write keeps the bytes (CD-1, CD-19); other views are copied now. A
 * storage that changes later is InPlaceMutation: the graph would hold the earlier values. What
 * marks.c knows of is refused (TD-9, TD-23, TD-25).
 */
#include <string.h>

#include "base/thread.h"
#include "compute/move.h"
#include "trace/tracer.h"

#define MAX_CONST_BYTES ((int64_t)1 << 31)

static uint64_t mix_const(uint64_t h, uint64_t v) {
    h ^= v + 0x9e3779b97f4a7c15u + (h << 6) + (h >> 2);
    return h * 0xff51afd7ed558ccdu;
}

static uint64_t const_key_of(uint64_t storage, int dtype, int rank, int64_t offset,
                             const int64_t *shape, const int64_t *strides) {
    uint64_t h = mix_const(mix_const(mix_const(1, storage), (uint64_t)offset),
                           (uint64_t)(dtype * 16 + rank));
    for (int i = 0; i < rank; i++)
        h = mix_const(mix_const(h, (uint64_t)shape[i]), (uint64_t)strides[i]);
    return h;
}

/* What may not become a constant at all. */
static om_status check_capture(om_tracer *tr, om_tensor *t, int64_t numel, const char *op) {
    if (t->layout != OM_STRIDED)
        return omi_fail_trace(
            OM_TRACE_UNSUPPORTED_OPERATION,
            "%s got %s in a blocked layout, which a graph cannot hold: convert it "
            "with om_from_nchw16c",
            op, OMI_T(t));
    OM_TRY(omi_tr_check_marks(tr, t, op));
    if (numel >= MAX_CONST_BYTES / (int64_t)om_dtype_size((om_dtype)t->dtype))
        return omi_fail_trace(
            OM_TRACE_UNSUPPORTED_OPERATION,
            "%s got the constant %s of 2 GiB or more, which an ONNX file cannot hold: "
            "split it",
            op, OMI_T(t));
    return OM_OK;
}

static om_status check_const_version(om_tracer *tr, const om_tconst *c) {
    bool exact;
    om_tparam *p = omi_tr_param_of(tr, c, &exact);
    uint64_t now = atomic_load_explicit(&c->storage->version, memory_order_acquire);
    if (now == c->version) return OM_OK;
    return omi_fail_trace(
        OM_TRACE_IN_PLACE_MUTATION,
        "the constant %s, captured by %s, was changed afterwards by %s: the graph "
        "holds the earlier values; update it outside the trace, or make it an input",
        p                ? p->name
        : c->tensor_name ? c->tensor_name
                         : "(unnamed)",
        OMI_SITE(&c->first), c->storage->writer ? c->storage->writer : "a write");
}

om_status omi_tr_check_consts(om_tracer *tr) {
    for (size_t i = 0; i < tr->const_list.n; i++)
        OM_TRY(check_const_version(tr, tr->const_list.v[i]));
    return OM_OK;
}

static bool take_bytes(om_tconst *c, om_tensor *t) {
    om_view v = {.dtype = (om_dtype)c->dtype, .rank = c->rank};
    int64_t n = 1;
    for (int i = 0; i < c->rank; i++) {
        v.shape[i]   = c->shape[i];
        v.strides[i] = c->strides[i];
        n *= c->shape[i];
    }
    size_t size = om_dtype_size((om_dtype)c->dtype);
    c->bytes    = (size_t)n * size;
    if (omi_buffer_written_outside(t->storage->buf))
        return omi_fail_trace(OM_TRACE_INVALID_USAGE,
                              "%s is held by a writable pin, whose holder may change it; end the "
                              "pin (om_pin_free) before the trace uses it, or trace a clone",
                              OMI_T(t)),
               false;
    // Bytes of the caller's own (om_from_buffer) are copied: the graph outlives what he promised.
    // Pinned ones too, or the storage would leave them at its next write.
    if (n && c->offset == 0 && c->bytes == t->storage->buf->bytes && omi_view_contiguous(&v) &&
        t->storage->buf->kind != OM_BUF_USER && !omi_buffer_pinned(t->storage->buf)) {
        c->buf = omi_buffer_retain(t->storage->buf);
        return true;
    }
    c->buf = omi_buffer_new(c->bytes ? c->bytes : 1);
    if (!c->buf) return false;
    om_view to = v;
    omi_view_pack_strides(&to);
    v.data   = (char *)t->storage->buf->data + c->offset * (int64_t)size;
    to.data  = c->buf->data;
    bool was = omi_hold_cancel(true);
    if (n) omi_copy(&v, &to);
    omi_hold_cancel(was);
    return true;
}

static om_tconst *const_new(om_tracer *tr, om_tensor *t, int rank, const int64_t *shape,
                            const int64_t *strides, const char *op) {
    om_tconst *c = omi_arena_alloc(&tr->arena, sizeof *c);
    if (!c) return NULL;
    c->dtype  = t->dtype;
    c->rank   = (uint8_t)rank;
    c->offset = t->offset;
    memcpy(c->shape, shape, (size_t)rank * sizeof *shape);
    memcpy(c->strides, strides, (size_t)rank * sizeof *strides);
    c->first       = omi_site();
    c->first_op    = op;
    c->tensor_name = NULL;
    if (t->name && !(c->tensor_name = omi_arena_strndup(&tr->arena, t->name, strlen(t->name))))
        return NULL;
    c->v   = (om_tvalue){.kind = OM_TV_CONST, .dtype = t->dtype, .rank = c->rank, .c = c};
    c->v.e = omi_arena_array(&tr->arena, rank ? (size_t)rank : 1, sizeof *c->v.e);
    if (!c->v.e) return NULL;
    for (int i = 0; i < rank; i++)
        c->v.e[i] = omi_ext_static(shape[i]);
    if (!OMI_PUSH(&tr->const_list, c)) return NULL;
    if (!take_bytes(c, t)) return tr->const_list.n--, NULL;
    c->version = atomic_load_explicit(&t->storage->version, memory_order_acquire);
    atomic_fetch_add_explicit(&t->storage->refs, 1, memory_order_relaxed);
    c->storage = t->storage;
    return c;
}

om_tvalue *omi_tr_const_view(om_tracer *tr, om_tensor *t, int rank, const int64_t *shape,
                             const int64_t *strides, const char *op) {
    int64_t numel = 1;
    for (int i = 0; i < rank; i++)
        numel *= shape[i];
    if (omi_failed() || check_capture(tr, t, numel, op) != OM_OK) return NULL;
    uint64_t key     = const_key_of(t->storage->id, t->dtype, rank, t->offset, shape, strides);
    om_tconst *first = omi_map_get(&tr->consts, key);
    for (om_tconst *c = first; c; c = c->next)
        if (c->storage == t->storage && c->offset == t->offset && c->rank == rank &&
            c->dtype == t->dtype && !memcmp(c->shape, shape, (size_t)rank * sizeof *shape) &&
            !memcmp(c->strides, strides, (size_t)rank * sizeof *strides))
            return check_const_version(tr, c) == OM_OK ? &c->v : NULL;
    om_tconst *c = const_new(tr, t, rank, shape, strides, op);
    if (!c) return NULL;
    c->next = first;
    return omi_map_set(&tr->consts, key, c) ? &c->v : NULL;
}

om_tvalue *omi_tr_const(om_tracer *tr, om_tensor *t, const char *op) {
    return omi_tr_const_view(tr, t, t->rank, t->shape, t->strides, op);
}

void omi_tr_free_consts(om_tracer *tr) {
    for (size_t i = 0; i < tr->const_list.n; i++) {
        om_tconst *c = tr->const_list.v[i];
        omi_buffer_release(c->buf);
        if (c->storage) omi_storage_release(c->storage);
    }
    OMI_VEC_FREE(&tr->const_list);
}
