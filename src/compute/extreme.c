/*
 * extreme.c -- ArgMax, ArgMin, and the gradient of Max and Min over axes (AR-1.5, AR-8).
 */
#include <math.h>

#include "base/dtype.h"
#include "compute/reduce.h"
#include "compute/walk.h"
#include "kernels/table.h"

/* ---- argmax --------------------------------------------------------------------------------- */

typedef struct arg_job {
    const om_view *x;
    omi_walk w; /* all axes but the one searched */
    int64_t n, stride;
    bool max;
    int64_t *y;
} arg_job;

#define LONG_LINE (1 << 20) /* elements between two looks at the cancel flag */

/* First NaN, else the first of the best; x != x is never true for integers. */
#define ARG_LINE(name, type)                                                                       \
    static int64_t name(const type *x, int64_t n, int64_t stride, bool max) {                      \
        int64_t best = 0;                                                                          \
        for (int64_t i = 0; i < n; i++) {                                                          \
            type v = x[i * stride], b = x[best * stride];                                          \
            if (v != v) return i;                                                                  \
            if (max ? v > b : v < b) best = i;                                                     \
            if ((i & 0xfffff) == 0xfffff && omi_cut_short())                                       \
                break; /* an expanded axis can be endless */                                       \
        }                                                                                          \
        return best;                                                                               \
    }
#define OM_DTYPE_STORED(number, ONNX, bits, group, class, field, entries)
#define OM_DTYPE(ID, number, ONNX, name, bits, class, type, npy, field) ARG_LINE(arg_##ID, type)
#include "base/dtype.def"
#undef OM_DTYPE

/* Along a run the value is found with vectors, then its place. */
static int64_t arg_run_f32(const float *x, int64_t n, bool max) {
    float m   = max ? omi_kernels()->row_max_f32(n, x) : omi_kernels()->row_min_f32(n, x);
    int64_t i = 0;
    if (m != m)
        while (x[i] == x[i])
            i++;
    else
        while (x[i] != m)
            i++;
    return i;
}

static int64_t arg_line(const arg_job *j, int64_t off) {
    const void *x = j->x->data;
    if (j->x->dtype == OM_F32 && j->stride == 1)
        return arg_run_f32((const float *)x + off, j->n, j->max);
    switch (j->x->dtype) {
#define OM_DTYPE(ID, number, ONNX, name, bits, class, type, npy, field)                            \
    case OM_##ID:                                                                                  \
        return arg_##ID((const type *)x + off, j->n, j->stride, j->max);
#include "base/dtype.def"
#undef OM_DTYPE
#undef OM_DTYPE_STORED
    default:
        return omi_no_type(), 0;
    }
}

static void arg_range(void *arg, int64_t begin, int64_t end, int worker) {
    (void)worker;
    const arg_job *j = arg;
    omi_pos p;
    omi_walk_seek(&j->w, begin, &p);
    for (int64_t i = begin; i < end; i++) {
        if (i % 64 == 0 && omi_cut_short()) return;
        j->y[i] = arg_line(j, p.off[0]);
        omi_walk_advance(&j->w, &p, 1);
    }
}

void omi_argmax(bool max, const om_view *x, int axis, const om_view *y) {
    arg_job j           = {.x = x, .max = max, .y = y->data};
    om_view rest        = omi_view_without(x, axis);
    const om_view *v[1] = {&rest};
    j.n                 = x->shape[axis];
    j.stride            = x->strides[axis];
    omi_walk_init(&j.w, 1, v);
    if (j.w.numel == 0 || j.n == 0) return;
    omi_split(j.w.numel, omi_max64(1, OMI_GRAIN / j.n), arg_range, &j);
}

/* ---- gradient of Max and Min ---------------------------------------------------------------- */

typedef struct share_job {
    const void *x, *y, *g;
    void *dx;
    om_dtype t;
    omi_walk kept; /* 0: x, 1: y, 2: g, 3: dx, over the axes that stay */
    omi_walk red;  /* 0: x, 1: dx, over the reduced ones */
} share_job;

/* dx = hit ? g / count : +0 for one output; a NaN hits a NaN. */
#define SHARE_OUTPUT(name, type)                                                                   \
    static void name(const share_job *j, const omi_pos *at) {                                      \
        const omi_walk *w = &j->red;                                                               \
        const type *x     = (const type *)j->x + at->off[0];                                       \
        type y = ((const type *)j->y)[at->off[1]], g = ((const type *)j->g)[at->off[2]];           \
        type *dx      = (type *)j->dx + at->off[3];                                                \
        int64_t count = 0, sx = w->stride[0][0], sd = w->stride[1][0];                             \
        for (int pass = 0; pass < 2; pass++) {                                                     \
            type v = g / (type)count; /* used by the second pass only */                           \
            omi_pos p;                                                                             \
            omi_walk_seek(w, 0, &p);                                                               \
            for (int64_t i = 0, n; i < w->numel; i += n) {                                         \
                n = omi_walk_run(w, &p, omi_min64(w->numel - i, LONG_LINE));                       \
                if (i && n == LONG_LINE && omi_cut_short()) return;                                \
                const type *xs = x + p.off[0];                                                     \
                type *ds       = dx + p.off[1];                                                    \
                for (int64_t k = 0; k < n; k++) {                                                  \
                    type e   = xs[k * sx];                                                         \
                    bool hit = e == y || (e != e && y != y);                                       \
                    if (pass == 0)                                                                 \
                        count += hit;                                                              \
                    else                                                                           \
                        ds[k * sd] = hit ? v : 0;                                                  \
                }                                                                                  \
                omi_walk_advance(w, &p, n);                                                        \
            }                                                                                      \
        }                                                                                          \
    }
SHARE_OUTPUT(share_float, float)
SHARE_OUTPUT(share_double, double)
#define SHARE(type) share_##type(j, &p)

static void share_range(void *arg, int64_t begin, int64_t end, int worker) {
    (void)worker;
    const share_job *j = arg;
    omi_pos p;
    omi_walk_seek(&j->kept, begin, &p);
    for (int64_t i = begin; i < end; i++) {
        OM_BY_FLOAT(j->t, SHARE)
        omi_walk_advance(&j->kept, &p, 1);
    }
}

void omi_reduce_extreme_grad(const om_view *x, const om_view *y, const om_view *g, uint32_t axes,
                             const om_view *dx) {
    share_job j = {.x = x->data, .y = y->data, .g = g->data, .dx = dx->data, .t = x->dtype};
    const om_view *in[4] = {x, y, g, dx};
    om_view kept[4], red[4];
    const om_view *kv[4] = {&kept[0], &kept[1], &kept[2], &kept[3]};
    const om_view *rv[2] = {&red[0], &red[3]};
    for (int k = 0; k < 4; k++) {
        kept[k] = red[k] = *in[k];
        kept[k].rank = red[k].rank = 0;
        for (int i = 0; i < x->rank; i++) {
            om_view *v          = axes >> i & 1 ? &red[k] : &kept[k];
            v->shape[v->rank]   = x->shape[i];
            v->strides[v->rank] = in[k]->strides[i];
            v->rank++;
        }
    }
    omi_walk_init(&j.kept, 4, kv);
    omi_walk_init(&j.red, 2, rv);
    if (j.kept.numel == 0 || j.red.numel == 0) return;
    omi_split(j.kept.numel, omi_max64(1, OMI_GRAIN / j.red.numel), share_range, &j);
}
