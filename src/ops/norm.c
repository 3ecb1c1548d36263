/*
 * norm.c -- layer normalisation and batch normalisation (AR-4.3, AR-8).
 *
 * In training, batch norm keeps its statistics in float64 with the record, because its gradient is
 * defined by the unrounded ones, and moves the running statistics only after the record was
 * accepted: a trace that refuses training must not have changed the model.
 *
 * Needs: op.h, compute/norm.
 */
#include <math.h>
#include <string.h>

#include "base/opts.h"
#include "base/thread.h"
#include "compute/elementwise.h"
#include "compute/norm.h"
#include "ops/op.h"

/* ---- layer norm
 * ---------------------------------------------------------------------------------------- */

static bool trailing_shape(const om_tensor *x, int n_axes, const om_tensor *p) {
    return p->rank == n_axes &&
           memcmp(p->shape, x->shape + x->rank - n_axes, sizeof(int64_t) * (size_t)n_axes) == 0;
}

static void rows_and_size(const om_tensor *x, int n_axes, int64_t *rows, int64_t *n) {
    *rows = *n = 1;
    for (int i = 0; i < x->rank; i++)
        *(i < x->rank - n_axes ? rows : n) *= x->shape[i];
}

static om_status layer_norm_backward(const om_record *r, om_tensor *const *dy, om_tensor **dx) {
    if (!dy[0]) return OM_OK;
    const om_layer_norm_raw *a = r->raw;
    om_tensor *x = omi_saved_in(r, 0), *w = NULL;
    if (!x || (omi_needs(r, 0) && omi_in_there(r, 1) && !(w = omi_saved_in(r, 1))))
        return omi_pending_status;
    om_layernorm_grad_args k = {.eps = a->eps};
    rows_and_size(x, (int)a->n_axes, &k.rows, &k.n);
    om_tensor *xp = omi_pack(x), *g = omi_pack(dy[0]), *wp = w ? omi_pack(w) : NULL;
    if (!xp || !g || (w && !wp)) return omi_pending_status;
    for (uint32_t i = 0; i < 3; i++)
        if (omi_needs(r, i) && !(dx[i] = omi_new_like_in(r, i))) return omi_pending_status;
    k.x  = omi_ptr(xp);
    k.g  = omi_ptr(g);
    k.w  = wp ? omi_ptr(wp) : NULL;
    k.dx = dx[0] ? omi_ptr(dx[0]) : NULL;
    k.dw = dx[1] ? omi_ptr(dx[1]) : NULL;
    k.db = dx[2] ? omi_ptr(dx[2]) : NULL;
    omi_work work;
    if (!omi_work_get(&work, omi_layernorm_grad_workspace(&k, omi_workers())))
        return omi_pending_status;
    omi_layernorm_grad(&k, work.data);
    omi_work_put(&work);
    return OM_OK;
}

static bool layer_norm_args(om_tensor *x, int n_axes, om_tensor *w, om_tensor *b, float eps) {
    if (!omi_args1(x) || (w && !omi_arg(w, "w")) || (b && !omi_arg(b, "b"))) return false;
    if (!omi_need_dtype(x, OMI_TYPE_F32) || (w && !omi_need_dtype(w, OMI_TYPE_F32)) ||
        (b && !omi_need_dtype(b, OMI_TYPE_F32)))
        return false;
    if (n_axes < 1 || n_axes > x->rank)
        omi_fail(OM_ERR_ARG, "n_axes is %d; 1 to %d of the axes of %s can be normalised", n_axes,
                 x->rank, OMI_T(x));
    else if (!(eps >= 0) || isinf(eps))
        omi_fail(OM_ERR_ARG, "eps is %g; a finite number of at least 0 is needed", (double)eps);
    else if (w && !trailing_shape(x, n_axes, w))
        omi_fail(OM_ERR_SHAPE, "w %s is not of the last %d axes of x %s", OMI_T(w), n_axes,
                 OMI_T(x));
    else if (b && !trailing_shape(x, n_axes, b))
        omi_fail(OM_ERR_SHAPE, "b %s is not of the last %d axes of x %s", OMI_T(b), n_axes,
                 OMI_T(x));
    return !omi_failed();
}

om_tensor *om_layer_norm(om_tensor *x, int n_axes, om_tensor *w, om_tensor *b, float eps) {
    OMI_ENTER("om_layer_norm");
    if (!layer_norm_args(x, n_axes, w, b, eps)) return NULL;
    om_layernorm_args k = {.eps = eps};
    rows_and_size(x, n_axes, &k.rows, &k.n);
    om_tensor *y  = omi_new_like(x);
    om_tensor *xp = y ? omi_pack(x) : NULL, *wp = w ? omi_pack(w) : NULL,
              *bp = b ? omi_pack(b) : NULL;
    if (!xp || (w && !wp) || (b && !bp)) return NULL;
    k.x = omi_ptr(xp);
    k.w = wp ? omi_ptr(wp) : NULL;
    k.b = bp ? omi_ptr(bp) : NULL;
    k.y = omi_ptr(y);
    if (k.rows && k.n) omi_layernorm(&k);
    omi_drop_packed(bp, b);
    omi_drop_packed(wp, w);
    omi_drop_packed(xp, x);
    om_layer_norm_raw a = {.n_axes = n_axes, .eps = eps};
    uint32_t save       = OM_SAVE_IN(0) | (omi_wants(x) && w ? OM_SAVE_IN(1) : 0);
    return omi_record1(OM_OP_LAYER_NORM, &a, NULL, 3, (om_tensor *[]){x, w, b}, y,
                       layer_norm_backward, save);
}

/* ---- batch norm
 * ------------------------------------------------------------------------------------------ */

/* x as [n, c, inner]. */
typedef struct channels {
    int64_t n, c, inner;
} channels;

static channels channels_of(const om_tensor *x) {
    channels d = {x->shape[0], x->shape[1], 1};
    for (int i = 2; i < x->rank; i++)
        d.inner *= x->shape[i];
    return d;
}

/* Mean and variance of every channel, unrounded: kept with the record for the gradient. Two
 * holders, the call and the record, and the call lets go before anyone else can see the record. */
typedef struct batch_stats {
    size_t bytes;
    int refs;
    double v[]; /* mean[c], var[c] */
} batch_stats;

static batch_stats *batch_stats_new(int64_t c) {
    size_t bytes   = sizeof(batch_stats) + 2 * (size_t)c * sizeof(double);
    batch_stats *s = omi_alloc(bytes);
    if (!s) return NULL;
    s->bytes = bytes;
    s->refs  = 1;
    return s;
}
static void batch_stats_free(void *p) {
    batch_stats *s = p;
    if (s && --s->refs == 0) omi_free(s, s->bytes);
}

static om_status batch_norm_backward(const om_record *r, om_tensor *const *dy, om_tensor **dx) {
    if (!dy[0]) return OM_OK;
    const om_batch_norm2d_raw *a = r->raw;
    om_tensor *x = omi_saved_in(r, 0), *w = NULL;
    if (!x || (omi_needs(r, 0) && omi_in_there(r, 1) && !(w = omi_saved_in(r, 1))))
        return omi_pending_status;
    channels d    = channels_of(x);
    om_tensor *xp = omi_pack(x), *g = omi_pack(dy[0]), *wp = w ? omi_pack(w) : NULL;
    if (!xp || !g || (w && !wp)) return omi_pending_status;
    for (uint32_t i = 0; i < 3; i++)
        if (omi_needs(r, i) && !(dx[i] = omi_new_like_in(r, i))) return omi_pending_status;
    batch_stats *s = r->extra, *own = NULL;
    if (!s) { // evaluation: the running statistics, widened
        if (!(s = own = batch_stats_new(d.c))) return omi_pending_status;
        for (uint32_t i = 0; i < 2; i++) {
            om_tensor *running = omi_saved_in(r, 3 + i);
            if (!running) return batch_stats_free(own), omi_pending_status;
            om_view from = omi_view(running);
            om_view to   = {.data    = s->v + (int64_t)i * d.c,
                            .dtype   = OM_F64,
                            .rank    = 1,
                            .shape   = {d.c},
                            .strides = {1}};
            omi_cast(&from, &to);
        }
    }
    omi_batchnorm_grad(a->training, d.n, d.c, d.inner, omi_ptr(xp), wp ? omi_ptr(wp) : NULL, s->v,
                       s->v + d.c, a->eps, omi_ptr(g), dx[0] ? omi_ptr(dx[0]) : NULL,
                       dx[1] ? omi_ptr(dx[1]) : NULL, dx[2] ? omi_ptr(dx[2]) : NULL);
    batch_stats_free(own);
    return OM_OK;
}

typedef struct bn_call {
    om_tensor *x, *w, *b, *mean, *var;
    bool training;
    float eps, momentum;
} bn_call;

static bool channel_vector(om_tensor *p, const char *what, om_tensor *x) {
    if (!omi_arg(p, what) || !omi_need_dtype(p, OMI_TYPE_F32)) return false;
    if (p->rank == 1 && p->shape[0] == x->shape[1]) return true;
    omi_fail(OM_ERR_SHAPE, "%s %s does not fit x %s; one value per channel, [%lld], is needed",
             what, OMI_T(p), OMI_T(x), (long long)x->shape[1]);
    return false;
}

static bool batch_norm_args(bn_call *c) {
    om_tensor *x = c->x;
    if (!omi_args1(x) || !omi_need_dtype(x, OMI_TYPE_F32)) return false;
    if (x->rank < 2) {
        omi_fail(OM_ERR_SHAPE, "x %s has no channel axis; [N, C, ..] is needed", OMI_T(x));
        return false;
    }
    if ((c->w && !channel_vector(c->w, "w", x)) || (c->b && !channel_vector(c->b, "b", x)) ||
        !channel_vector(c->mean, "mean", x) || !channel_vector(c->var, "var", x))
        return false;
    if (!(c->eps >= 0) || isinf(c->eps))
        omi_fail(OM_ERR_ARG, "eps is %g; a finite number of at least 0 is needed", (double)c->eps);
    else if (!(c->momentum >= 0 && c->momentum <= 1))
        omi_fail(OM_ERR_ARG, "momentum is %g; a number from 0 to 1 is needed", (double)c->momentum);
    return !omi_failed();
}

/* What training needs beyond that: several values a channel, and statistics that may be written. */
static bool batch_norm_training_args(const bn_call *c, channels d) {
    om_tensor *running[2] = {c->mean, c->var};
    if (d.n * d.inner < 2 && d.c > 0) {
        omi_fail(OM_ERR_SHAPE, "x %s has %lld values per channel; training needs at least two",
                 OMI_T(c->x), (long long)(d.n * d.inner));
        return false;
    }
    if (c->mean->storage == c->var->storage && c->mean->offset == c->var->offset) {
        omi_fail(OM_ERR_ARG, "the running mean and variance are one tensor, %s; each needs its own",
                 OMI_T(c->mean));
        return false;
    }
    for (int i = 0; i < 2; i++) {
        if (running[i]->record || (running[i]->flags & OM_T_GRAD))
            omi_fail(OM_ERR_STATE,
                     "running statistics %s need a gradient; training writes them in place",
                     OMI_T(running[i]));
        else if (!omi_contiguous(running[i]))
            omi_fail(OM_ERR_ARG,
                     "running statistics %s are a strided view; training writes them in place",
                     OMI_T(running[i]));
    }
    return !omi_failed();
}

/* Evaluation: y = x*s + t, the node BatchNormalization. */
static om_tensor *batch_norm_eval(const bn_call *c, channels d) {
    om_tensor *y = omi_new_like(c->x), *xp = y ? omi_pack(c->x) : NULL;
    om_tensor *p[4] = {c->w, c->b, c->mean, c->var};
    if (!xp) return NULL;
    for (int i = 0; i < 4; i++)
        if (p[i] && !(p[i] = omi_pack(p[i]))) return NULL;
    omi_work work;
    if (d.c == 0) {
        omi_drop_packed(xp, c->x);
        return y;
    }
    if (!omi_work_get(&work, 4 * (size_t)d.c * sizeof(float))) return NULL;
    float *s = work.data, *t = s + d.c, *ones = s + 2 * d.c, *zeros = s + 3 * d.c;
    for (int64_t i = 0; i < d.c; i++) {
        ones[i]  = 1;
        zeros[i] = 0;
    }
    omi_batchnorm_fold(d.c, p[0] ? omi_ptr(p[0]) : ones, p[1] ? omi_ptr(p[1]) : zeros,
                       omi_ptr(p[2]), omi_ptr(p[3]), c->eps, s, t);
    omi_batchnorm_apply(d.n, d.c, d.inner, omi_ptr(xp), s, t, omi_ptr(y));
    omi_work_put(&work);
    omi_drop_packed(xp, c->x);
    return y;
}

/* Training: y by the statistics of the batch, which go to *stats. */
static om_tensor *batch_norm_train(const bn_call *c, channels d, batch_stats **stats) {
    om_tensor *y = omi_new_like(c->x), *xp = y ? omi_pack(c->x) : NULL;
    om_tensor *w = c->w ? omi_pack(c->w) : NULL, *b = c->b ? omi_pack(c->b) : NULL;
    if (!xp || (c->w && !w) || (c->b && !b) || !(*stats = batch_stats_new(d.c))) return NULL;
    if (d.c)
        omi_batchnorm_train(d.n, d.c, d.inner, omi_ptr(xp), w ? omi_ptr(w) : NULL,
                            b ? omi_ptr(b) : NULL, c->eps, (*stats)->v, (*stats)->v + d.c,
                            omi_ptr(y));
    omi_drop_packed(xp, c->x);
    return y;
}

static bool move_running(const bn_call *c, channels d, const batch_stats *s) {
    if (omi_seam_write(c->mean, OM_WRITE_INPLACE_OP) || omi_seam_write(c->var, OM_WRITE_INPLACE_OP))
        return false;
    float *mean = omi_ptr_mut(c->mean, "om_batch_norm2d");
    float *var  = mean ? omi_ptr_mut(c->var, "om_batch_norm2d") : NULL;
    if (!var) return false;
    omi_batchnorm_running(d.c, d.n * d.inner, s->v, s->v + d.c, c->momentum, mean, var);
    return true;
}

om_tensor *om_batch_norm2d(om_tensor *x, om_tensor *w, om_tensor *b, om_tensor *mean,
                           om_tensor *var, const om_batch_norm_opts *opts) {
    OMI_ENTER("om_batch_norm2d");
    om_batch_norm_opts o;
    if (omi_failed() || !OMI_OPTS(&o, opts, momentum)) return NULL;
    bn_call c = {x, w, b, mean, var, o.training, 1e-5f, 0.1f};
    if (o.eps != 0) c.eps = o.eps;
    if (o.momentum != 0) c.momentum = o.momentum;
    if (!batch_norm_args(&c)) return NULL;
    channels d = channels_of(x);
    if (c.training && !batch_norm_training_args(&c, d)) return NULL;
    batch_stats *stats = NULL;
    om_tensor *y       = c.training ? batch_norm_train(&c, d, &stats) : batch_norm_eval(&c, d);
    if (!y) return NULL;
    om_batch_norm2d_raw a = {.training = c.training, .eps = c.eps, .momentum = c.momentum};
    // The gradient of x reads w; that of w reads x and, outside training, the running statistics.
    uint32_t save = OM_SAVE_IN(0) | (w && omi_wants(x) ? OM_SAVE_IN(1) : 0) |
                    (!c.training ? OM_SAVE_IN(3) | OM_SAVE_IN(4) : 0);
    if (stats) stats->refs++; // one for the record
    om_tensor *in[5] = {x, w, b, mean, var};
    om_call call     = {.op         = OM_OP_BATCH_NORM2D,
                        .name       = omi_function(),
                        .raw        = &a,
                        .n_in       = 5,
                        .n_out      = 1,
                        .save_mask  = save,
                        .in         = in,
                        .out        = &y,
                        .backward   = batch_norm_backward,
                        .extra      = stats,
                        .extra_free = stats ? batch_stats_free : NULL};
    bool ok          = omi_record(&call) == OM_OK && (!c.training || move_running(&c, d, stats));
    batch_stats_free(stats);
    return ok ? y : NULL;
}
