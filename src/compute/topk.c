/*
 * topk.c -- TopK along an axis (AR-1.5, AR-8): NaN greatest, -0 = +0, ties to the lower index.
 *
 * Every element becomes an unsigned key whose order is the wanted order, so one heap of (key,
 * index) pairs serves all types and both directions, in n log k steps whatever the data.
 */
#include <string.h>

#include "base/dtype.h"
#include "compute/move.h"
#include "compute/walk.h"

typedef struct top_item {
    uint64_t key; /* greater is better */
    int64_t index;
} top_item;

static uint64_t key_f32(float f) {
    uint32_t u;
    if (f != f) return UINT32_MAX;
    memcpy(&u, &f, 4);
    if (u == 0x80000000u) u = 0; /* the sign of zero does not order */
    return u >> 31 ? (uint32_t)~u : u | 0x80000000u;
}

static uint64_t key_f64(double f) {
    uint64_t u;
    if (f != f) return UINT64_MAX;
    memcpy(&u, &f, 8);
    if (u == 1ull << 63) u = 0;
    return u >> 63 ? ~u : u | 1ull << 63;
}

#define KEY_FLOAT(bits, v)    key_f##bits(v)
#define KEY_SIGNED(bits, v)   ((uint64_t)(int64_t)(v) ^ 1ull << 63)
#define KEY_UNSIGNED(bits, v) (v)
#define KEY_BOOL(bits, v)     (v)

static uint64_t order_key_of(const om_view *x, int64_t off) {
    switch (x->dtype) {
#define OM_DTYPE_STORED(number, ONNX, bits, group, class, field, entries)
#define OM_DTYPE(ID, number, ONNX, name, bits, class, type, npy, field)                            \
    case OM_##ID:                                                                                  \
        return KEY_##class(bits, ((const type *)x->data)[off]);
#include "base/dtype.def"
#undef OM_DTYPE
#undef OM_DTYPE_STORED
    default:
        return omi_no_type(), 0;
    }
}

/* a ranks behind b. */
static bool behind(const top_item *a, const top_item *b) {
    return a->key != b->key ? a->key < b->key : a->index > b->index;
}

/* Heap with the item that ranks last at the root. */
static void top_sift(top_item *h, int64_t n, int64_t i) {
    top_item v = h[i];
    for (;;) {
        int64_t c = 2 * i + 1;
        if (c >= n) break;
        if (c + 1 < n && behind(&h[c + 1], &h[c])) c++;
        if (!behind(&h[c], &v)) break;
        h[i] = h[c];
        i    = c;
    }
    h[i] = v;
}

#define ASK (1 << 16) /* elements between two looks at the cancel flag */

/* The k best of n in rank order; false: cut short. */
static bool top_row(const om_view *x, int64_t base, int64_t n, int64_t stride, int64_t k,
                    bool largest, top_item *h) {
    uint64_t flip = largest ? 0 : UINT64_MAX;
    for (int64_t i = 0; i < k; i++) {
        if (i % ASK == 0 && omi_cut_short()) return false;
        h[i] = (top_item){order_key_of(x, base + i * stride) ^ flip, i};
    }
    for (int64_t i = k / 2; i-- > 0;) {
        if (i % ASK == 0 && omi_cut_short()) return false;
        top_sift(h, k, i);
    }
    for (int64_t i = k; i < n; i++) {
        if (i % ASK == 0 && omi_cut_short()) return false;
        top_item t = {order_key_of(x, base + i * stride) ^ flip, i};
        if (!behind(&h[0], &t)) continue;
        h[0] = t;
        top_sift(h, k, 0);
    }
    for (int64_t m = k - 1; m > 0; m--) { /* last rank goes to the end */
        if (m % ASK == 0 && omi_cut_short()) return false;
        top_item t = h[0];
        h[0]       = h[m];
        h[m]       = t;
        top_sift(h, m, 0);
    }
    return true;
}

typedef struct top_job {
    const om_view *x, *values, *indices;
    omi_walk w; /* over all axes but the sorted one */
    int64_t n, stride, k, inner;
    bool largest;
    top_item *ws;
} top_job;

static void top_range(void *arg, int64_t begin, int64_t end, int worker) {
    const top_job *j = arg;
    top_item *h      = j->ws + worker * j->n;
    size_t es        = om_dtype_size(j->x->dtype);
    omi_pos p;
    omi_walk_seek(&j->w, begin, &p);
    for (int64_t r = begin; r < end; r++) {
        if (!top_row(j->x, p.off[0], j->n, j->stride, j->k, j->largest, h)) return;
        int64_t out = r / j->inner * j->k * j->inner + r % j->inner;
        for (int64_t i = 0; i < j->k; i++, out += j->inner) {
            if (i % ASK == ASK - 1 && omi_cut_short()) return;
            const char *s = (const char *)j->x->data;
            s += (p.off[0] + h[i].index * j->stride) * (int64_t)es;
            memcpy((char *)j->values->data + (size_t)out * es, s, es);
            ((int64_t *)j->indices->data)[out] = h[i].index;
        }
        omi_walk_advance(&j->w, &p, 1);
    }
}

size_t omi_topk_workspace(const om_view *x, int axis, int workers) {
    return (size_t)x->shape[axis] * sizeof(top_item) * (size_t)workers;
}

void omi_topk(const om_view *x, int axis, int64_t k, bool largest, const om_view *values,
              const om_view *indices, void *ws) {
    top_job j    = {.x       = x,
                    .values  = values,
                    .indices = indices,
                    .n       = x->shape[axis],
                    .stride  = x->strides[axis],
                    .k       = k,
                    .inner   = 1,
                    .largest = largest,
                    .ws      = ws};
    om_view rest = omi_view_without(x, axis);
    for (int i = axis; i < rest.rank; i++)
        j.inner *= rest.shape[i];
    const om_view *v[1] = {&rest};
    int64_t lines       = omi_view_numel(&rest);
    if (lines == 0 || k == 0) return;
    omi_walk_init(&j.w, 1, v);
    omi_split(lines, omi_max64(1, OMI_GRAIN / (4 * j.n)), top_range, &j);
}
