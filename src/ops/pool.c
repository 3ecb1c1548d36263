/*
 * pool.c -- MaxPool2d, AvgPool2d, AdaptiveAvgPool2d.
 *
 * Bits: AR-8. An adaptive pool is the node its row of operators.md writes: ReduceMean for one cell,
 * AveragePool when the sizes divide, else two matrix products with averaging matrices. Its gradient
 * is one rule for all three: g/count over each cell.
 *
 * Needs: op.h, compute/pool, compute/adaptive, compute/matmul, compute/reduce.
 */
#include "base/checked.h"
#include "base/opts.h"
#include "base/thread.h"
#include "compute/adaptive.h"
#include "compute/matmul.h"
#include "compute/pool.h"
#include "compute/reduce.h"
#include "ops/window.h"

/* ---- MaxPool, AvgPool ------------------------------------------------------------------------ */

typedef struct pool_attrs {
    int64_t kernel[2], stride[2], pads[4], dilation[2];
    bool ceil_mode, include_pad;
} pool_attrs;

/* The plan for x; its numbers were checked by pool_options and omi_window_input. */
static bool pool_plan(const int64_t *x, const pool_attrs *a, om_pool_plan *p) {
    om_pool_geom g = {.planes = x[0] * x[1], .include_pad = a->include_pad, .win.nd = 2};
    for (int i = 0; i < 2; i++) {
        g.win.in[i]     = x[i + 2];
        g.win.k[i]      = a->kernel[i];
        g.win.stride[i] = a->stride[i];
        g.win.dil[i]    = a->dilation[i];
        g.win.before[i] = a->pads[i];
        g.win.after[i]  = a->pads[i + 2];
    }
    if (!omi_window_make(&g.win, a->ceil_mode ? OM_WINDOW_CEIL : OM_WINDOW_FLOOR)) {
        omi_fail(OM_ERR_LIMIT, "a window option is above %d", OM_WINDOW_LIMIT);
        return false;
    }
    omi_pool_plan(&g, p);
    return true;
}

static bool pool_options(int64_t kh, int64_t kw, const om_pool2d_opts *opts, bool max,
                         pool_attrs *a) {
    om_pool2d_opts o;
    if (!OMI_OPTS(&o, opts, exclude_pad)) return false;
    omi_window_default(o.stride, kh, kw);
    omi_window_default(o.dilation, 1, 1);
    *a = (pool_attrs){.kernel      = {kh, kw},
                      .stride      = {o.stride[0], o.stride[1]},
                      .pads        = {o.padding[0], o.padding[1], o.padding[0], o.padding[1]},
                      .dilation    = {o.dilation[0], o.dilation[1]},
                      .ceil_mode   = o.ceil_mode,
                      .include_pad = !o.exclude_pad};
    if (!omi_window_option("kernel size", a->kernel, 1) ||
        !omi_window_option("stride", a->stride, 1) ||
        !omi_window_option("dilation", a->dilation, 1) || !omi_window_option("padding", a->pads, 0))
        return false;
    if (2 * a->pads[0] > kh || 2 * a->pads[1] > kw) {
        omi_fail(OM_ERR_ARG,
                 "padding {%lld,%lld} is more than half of the kernel {%lld,%lld}: windows would "
                 "hold no element; use om_pad",
                 (long long)a->pads[0], (long long)a->pads[1], (long long)kh, (long long)kw);
        return false;
    }
    if (!max && (a->dilation[0] != 1 || a->dilation[1] != 1)) {
        omi_fail(OM_ERR_ARG, "an average pool takes no dilation; leave it 0");
        return false;
    }
    return true;
}

/* The result, not yet computed, and the plan. */
static om_tensor *pool_begin(om_tensor *x, const pool_attrs *a, om_pool_plan *p) {
    if (!omi_window_input(x) || !pool_plan(x->shape, a, p)) return NULL;
    const int64_t *out = p->g.win.out;
    if (out[0] < 1 || out[1] < 1)
        OM_FAIL_NULL(OM_ERR_SHAPE, "%s is smaller than the window {%lld,%lld}; add padding",
                     OMI_T(x), (long long)a->kernel[0], (long long)a->kernel[1]);
    int64_t shape[4] = {x->shape[0], x->shape[1], out[0], out[1]};
    if (omi_check_dims(4, shape, &(int64_t){0}) != OM_OK) return NULL;
    return omi_new(OM_F32, 4, shape);
}

/* The place of each window's winner, found by the forward pass and kept with the record: the
 * gradient needs no search, and x need not be kept. */
typedef struct pool_winners {
    size_t bytes;
    int32_t at[];
} pool_winners;

static pool_winners *winners_new(int64_t n) {
    size_t bytes    = sizeof(pool_winners) + (size_t)n * sizeof(int32_t);
    pool_winners *w = omi_alloc(bytes);
    if (w) w->bytes = bytes;
    return w;
}
static void winners_free(void *p) {
    pool_winners *w = p;
    if (w) omi_free(w, w->bytes);
}

static om_status max_pool2d_backward(const om_record *r, om_tensor *const *dy, om_tensor **dx) {
    const om_max_pool2d_raw *raw = r->raw;
    const pool_winners *won      = r->extra;
    pool_attrs a                 = {.ceil_mode = raw->ceil_mode != 0};
    om_pool_plan p;
    int rank;
    const int64_t *shape = omi_in_shape(r, 0, &rank);
    memcpy(a.kernel, raw->kernel.v, sizeof a.kernel);
    memcpy(a.stride, raw->stride.v, sizeof a.stride);
    memcpy(a.pads, raw->pads.v, sizeof a.pads);
    memcpy(a.dilation, raw->dilation.v, sizeof a.dilation);
    om_tensor *x = won ? NULL : omi_pack(omi_saved_in(r, 0)), *gy = omi_pack(dy[0]);
    om_tensor *d = gy && (won || x) ? omi_new(OM_F32, rank, shape) : NULL;
    if (!d || !pool_plan(shape, &a, &p)) return omi_pending_status;
    omi_maxpool_grad(&p, x ? omi_ptr(x) : NULL, won ? won->at : NULL, omi_ptr(gy), omi_ptr(d));
    dx[0] = d;
    return OM_OK;
}

om_tensor *om_max_pool2d(om_tensor *x, int64_t kh, int64_t kw, const om_pool2d_opts *opts) {
    OMI_ENTER("om_max_pool2d");
    pool_attrs a;
    om_pool_plan p;
    if (!omi_args1(x) || !pool_options(kh, kw, opts, true, &a)) return NULL;
    om_tensor *y = pool_begin(x, &a, &p), *packed = y ? omi_pack(x) : NULL;
    if (!packed) return NULL;
    pool_winners *won = NULL;
    bool wants        = omi_wants(x) && !omi_grad_off;
    if (wants && OM_POOL_WINNERS(&p.g) && !(won = winners_new(omi_numel(y)))) return NULL;
    omi_maxpool(&p, omi_ptr(packed), omi_ptr(y), won ? won->at : NULL);
    om_max_pool2d_raw raw = {.kernel    = {2, a.kernel},
                             .stride    = {2, a.stride},
                             .pads      = {4, a.pads},
                             .dilation  = {2, a.dilation},
                             .ceil_mode = a.ceil_mode};
    om_call call          = {.op         = OM_OP_MAX_POOL2D,
                             .name       = omi_function(),
                             .raw        = &raw,
                             .n_in       = 1,
                             .n_out      = 1,
                             .save_mask  = won ? 0 : OM_SAVE_IN(0),
                             .in         = &x,
                             .out        = &y,
                             .backward   = max_pool2d_backward,
                             .extra      = won,
                             .extra_free = won ? winners_free : NULL};
    return omi_record(&call) == OM_OK ? y : NULL;
}

static om_status avg_pool2d_backward(const om_record *r, om_tensor *const *dy, om_tensor **dx) {
    const om_avg_pool2d_raw *raw = r->raw;
    pool_attrs a                 = {
                        .dilation = {1, 1}, .ceil_mode = raw->ceil_mode != 0, .include_pad = raw->include_pad != 0};
    om_pool_plan p;
    int rank;
    const int64_t *shape = omi_in_shape(r, 0, &rank);
    memcpy(a.kernel, raw->kernel.v, sizeof a.kernel);
    memcpy(a.stride, raw->stride.v, sizeof a.stride);
    memcpy(a.pads, raw->pads.v, sizeof a.pads);
    om_tensor *gy = omi_pack(dy[0]), *d = gy ? omi_new(OM_F32, rank, shape) : NULL;
    if (!d) return omi_pending_status;
    if (!pool_plan(shape, &a, &p)) return omi_pending_status;
    omi_avgpool_grad(&p, omi_ptr(gy), omi_ptr(d));
    dx[0] = d;
    return OM_OK;
}

om_tensor *om_avg_pool2d(om_tensor *x, int64_t kh, int64_t kw, const om_pool2d_opts *opts) {
    OMI_ENTER("om_avg_pool2d");
    pool_attrs a;
    om_pool_plan p;
    if (!omi_args1(x) || !pool_options(kh, kw, opts, false, &a)) return NULL;
    om_tensor *y = pool_begin(x, &a, &p), *packed = y ? omi_pack(x) : NULL;
    if (!packed) return NULL;
    omi_avgpool(&p, omi_ptr(packed), omi_ptr(y));
    om_avg_pool2d_raw raw = {.kernel      = {2, a.kernel},
                             .stride      = {2, a.stride},
                             .pads        = {4, a.pads},
                             .ceil_mode   = a.ceil_mode,
                             .include_pad = a.include_pad};
    return omi_record1(OM_OP_AVG_POOL2D, &raw, NULL, 1, &x, y, avg_pool2d_backward, 0);
}

/* ---- AdaptiveAvgPool ------------------------------------------------------------------------- */

static om_status adaptive_backward(const om_record *r, om_tensor *const *dy, om_tensor **dx) {
    int rank;
    const int64_t *in = omi_in_shape(r, 0, &rank), *out = dy[0]->shape;
    om_tensor *gy = omi_pack(dy[0]), *d = gy ? omi_new(OM_F32, rank, in) : NULL;
    if (!d) return omi_pending_status;
    omi_adaptive_avg_grad(in[0] * in[1], in[2], in[3], out[2], out[3], omi_ptr(gy), omi_ptr(d));
    dx[0] = d;
    return OM_OK;
}

/* y = a b over the last two axes; the one without batch axes is used for every item. */
static bool adaptive_product(om_tensor *a, om_tensor *b, om_tensor *y) {
    om_view av = omi_view(a), bv = omi_view(b);
    om_matmul_args m = {.y = omi_view(y), .alpha = 1.0f, .beta = 1.0f};
    int64_t shape[4] = {y->shape[0], y->shape[1], a->shape[a->rank - 2], a->shape[a->rank - 1]};
    m.a              = omi_view_broadcast(&av, 4, shape);
    shape[2]         = b->shape[b->rank - 2];
    shape[3]         = b->shape[b->rank - 1];
    m.b              = omi_view_broadcast(&bv, 4, shape);
    return omi_run_product(&m);
}

/* MatMul(Ph, MatMul(x, Pw^T)). */
static bool adaptive_by_matrices(om_tensor *x, om_tensor *y) {
    const int64_t *in = x->shape, *out = y->shape;
    om_tensor *ph = omi_new(OM_F32, 2, (int64_t[]){out[2], in[2]});
    om_tensor *pw = omi_new(OM_F32, 2, (int64_t[]){in[3], out[3]});
    om_tensor *t  = omi_new(OM_F32, 4, (int64_t[]){in[0], in[1], in[2], out[3]});
    if (omi_failed()) return false;
    omi_adaptive_matrix(in[2], out[2], false, omi_ptr(ph));
    omi_adaptive_matrix(in[3], out[3], true, omi_ptr(pw));
    return adaptive_product(x, pw, t) && adaptive_product(ph, t, y);
}

static bool adaptive_run(om_tensor *x, om_tensor *y) {
    const int64_t *in = x->shape, *out = y->shape;
    if (out[2] == 1 && out[3] == 1) {
        om_view from = omi_view(x), to = omi_view(y);
        omi_reduce(OM_R_MEAN, &from, 1u << 2 | 1u << 3, &to);
        return true;
    }
    if (in[2] % out[2] != 0 || in[3] % out[3] != 0) return adaptive_by_matrices(x, y);
    pool_attrs a     = {.kernel   = {in[2] / out[2], in[3] / out[3]},
                        .stride   = {in[2] / out[2], in[3] / out[3]},
                        .dilation = {1, 1}};
    om_tensor *plain = omi_pack(x);
    om_pool_plan p;
    if (!plain || !pool_plan(in, &a, &p)) return false;
    omi_avgpool(&p, omi_ptr(plain), omi_ptr(y));
    return true;
}

om_tensor *om_adaptive_avg_pool2d(om_tensor *x, int64_t oh, int64_t ow) {
    OMI_ENTER("om_adaptive_avg_pool2d");
    int64_t out[2] = {oh, ow}, most;
    if (!omi_args1(x) || !omi_window_option("output size", out, 1) || !omi_window_input(x))
        return NULL;
    if (x->shape[2] < 1 || x->shape[3] < 1)
        OM_FAIL_NULL(OM_ERR_SHAPE, "%s has no cells to average; its height and width must be >= 1",
                     OMI_T(x));
    int64_t shape[4] = {x->shape[0], x->shape[1], oh, ow};
    if (!omi_mul_i64(x->shape[2] + 1, oh + 1, &most) ||
        !omi_mul_i64(x->shape[3] + 1, ow + 1, &most))
        OM_FAIL_NULL(OM_ERR_SHAPE, "%s to %lld x %lld cells: the sizes overflow", OMI_T(x),
                     (long long)oh, (long long)ow);
    if (omi_check_dims(4, shape, &(int64_t){0}) != OM_OK) return NULL;
    om_scope s   = om_scope_begin();
    om_tensor *y = omi_new(OM_F32, 4, shape);
    y            = om_scope_return(s, y && adaptive_run(x, y) ? y : NULL);
    if (!y) return NULL;
    om_adaptive_avg_pool2d_raw raw = {.out = {2, out}};
    return omi_record1(OM_OP_ADAPTIVE_AVG_POOL2D, &raw, NULL, 1, &x, y, adaptive_backward, 0);
}
