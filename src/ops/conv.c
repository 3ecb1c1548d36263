/*
 * conv.c -- Conv2d and its gradients.
 *
 * Bits: AR-3.1 forward; AR-8 for dx (existing taps only), AR-2.1 for dw with k = (n, oh, ow), and
 * f(sum64) over (n, oh, ow) for db (AR-11.2). The packed form of a weight is kept with its buffer
 * only when the weight will not be trained by this call: a training step writes the weight and
 * would throw the packed form away each time.
 *
 * Needs: op.h, compute/conv, compute/reduce.
 */
#include "base/opts.h"
#include "base/thread.h"
#include "compute/conv.h"
#include "compute/pack.h"
#include "compute/reduce.h"
#include "ops/window.h"

/* Sizes were checked when the convolution ran: raw is that of a call, and the shapes its inputs'.
 */
static bool conv_geom(const int64_t *x, const int64_t *w, const om_conv2d_raw *raw,
                      om_conv_geom *g) {
    *g = (om_conv_geom){.n = x[0], .c = x[1], .oc = w[0], .groups = raw->groups, .win.nd = 2};
    for (int i = 0; i < 2; i++) {
        g->win.in[i]     = x[i + 2];
        g->win.k[i]      = w[i + 2];
        g->win.stride[i] = raw->stride.v[i];
        g->win.dil[i]    = raw->dilation.v[i];
        g->win.before[i] = raw->pads.v[i];
        g->win.after[i]  = raw->pads.v[i + 2];
    }
    return omi_window_make(&g->win, OM_WINDOW_FLOOR);
}

static bool conv_options(const om_conv2d_opts *opts, om_conv2d_opts *o, int64_t pads[4]) {
    if (!OMI_OPTS(o, opts, no_bias)) return false;
    omi_window_default(o->stride, 1, 1);
    omi_window_default(o->dilation, 1, 1);
    if (o->groups == 0) o->groups = 1;
    if (!omi_window_option("stride", o->stride, 1) ||
        !omi_window_option("dilation", o->dilation, 1) ||
        !omi_window_option("padding", o->padding, 0) ||
        !omi_window_option("padding_end", o->padding_end, 0))
        return false;
    for (int i = 0; i < 2; i++) {
        pads[i]     = o->padding[i];
        pads[i + 2] = o->padding[i] + o->padding_end[i];
    }
    return true;
}

static bool conv_shapes(om_tensor *x, om_tensor *w, om_tensor *b, int64_t groups) {
    if (!omi_window_input(x) || !omi_same_dtype(x, w) || (b && !omi_same_dtype(x, b))) return false;
    if (w->rank != 4 || w->shape[2] < 1 || w->shape[3] < 1 || w->shape[2] > INT32_MAX ||
        w->shape[3] > INT32_MAX) {
        omi_fail(OM_ERR_SHAPE, "the weight %s must be [O, C/groups, kh, kw]", OMI_T(w));
        return false;
    }
    if (groups < 1 || x->shape[1] % groups != 0 || w->shape[0] % groups != 0) {
        omi_fail(OM_ERR_ARG, "%lld groups do not divide the channels of %s and of the weight %s",
                 (long long)groups, OMI_T(x), OMI_T(w));
        return false;
    }
    if (w->shape[1] != x->shape[1] / groups) {
        omi_fail(OM_ERR_SHAPE,
                 "%s has %lld channels a group, the weight %s takes %lld; they must be equal",
                 OMI_T(x), (long long)(x->shape[1] / groups), OMI_T(w), (long long)w->shape[1]);
        return false;
    }
    if (b && (b->rank != 1 || b->shape[0] != w->shape[0])) {
        omi_fail(OM_ERR_SHAPE, "the bias %s must be [%lld], one value for each row of %s", OMI_T(b),
                 (long long)w->shape[0], OMI_T(w));
        return false;
    }
    return true;
}

/* ---- gradients ------------------------------------------------------------------------------- */

static bool too_large(void) {
    omi_fail(OM_ERR_LIMIT, "the sizes of a gradient do not fit into memory");
    return false;
}

static om_tensor *conv_grad_x(const om_record *r, const om_conv_geom *g, om_tensor *dy) {
    om_tensor *w = omi_pack(omi_saved_in(r, 1));
    om_tensor *d = w ? omi_new(OM_F32, 4, omi_in_shape(r, 0, &(int){0})) : NULL;
    om_conv_gx_plan p;
    omi_work work;
    if (!d || (!omi_conv_gx_plan(g, omi_workers(), &p) && !too_large()) ||
        !omi_work_get(&work, p.ws_bytes))
        return NULL;
    omi_conv_gx_run(&p, omi_ptr(dy), omi_ptr(w), omi_ptr(d), work.data);
    omi_work_put(&work);
    return d;
}

static om_tensor *conv_grad_w(const om_record *r, const om_conv_geom *g, om_tensor *dy) {
    om_tensor *x = omi_pack(omi_saved_in(r, 0));
    om_tensor *d = x ? omi_new(OM_F32, 4, omi_in_shape(r, 1, &(int){0})) : NULL;
    om_conv_gw_plan p;
    omi_work work;
    if (!d || (!omi_conv_gw_plan(g, omi_workers(), &p) && !too_large()) ||
        !omi_work_get(&work, p.ws_bytes))
        return NULL;
    omi_conv_gw_run(&p, omi_ptr(dy), omi_ptr(x), omi_ptr(d), work.data);
    omi_work_put(&work);
    return d;
}

static om_status conv2d_backward(const om_record *r, om_tensor *const *dy, om_tensor **dx) {
    om_conv_geom g;
    om_tensor *gy = dy[0];
    int rank;
    if (!conv_geom(omi_in_shape(r, 0, &rank), omi_in_shape(r, 1, &rank), r->raw, &g) &&
        !too_large())
        return omi_pending_status;
    if (r->n_in > 2 && omi_needs(r, 2)) {
        om_tensor *db = omi_new(OM_F32, 1, &g.oc);
        if (!db) return omi_pending_status;
        om_view from = omi_view(gy), to = omi_view(db);
        omi_reduce(OM_R_SUM, &from, 1u << 0 | 1u << 2 | 1u << 3, &to);
        dx[2] = db;
    }
    if (!(gy = omi_pack(gy))) return omi_pending_status;
    if (omi_needs(r, 0) && !(dx[0] = conv_grad_x(r, &g, gy))) return omi_pending_status;
    if (omi_needs(r, 1) && !(dx[1] = conv_grad_w(r, &g, gy))) return omi_pending_status;
    return OM_OK;
}

/* ---- forward --------------------------------------------------------------------------------- */

/* The weight as the kernel reads it: packed and kept with its buffer, or plain. */
static bool conv_weight(om_tensor *w, const om_conv_geom *g, om_conv_ptrs *d) {
    bool trained = !omi_grad_off && om_requires_grad(w);
    if (trained || w->record || !omi_contiguous(w) || !omi_pack_may_cache(w->storage->buf)) {
        if (!(w = omi_pack(w))) return false;
        d->weight = omi_ptr(w);
        return true;
    }
    d->weight = omi_ptr(w);
    if (omi_numel(w) == 0) return true;
    d->w_packed = omi_conv_packed_cached(w->storage->buf, w->offset, g);
    return d->w_packed != NULL;
}

/* The result, not yet computed, and the geometry. */
static om_tensor *conv_begin(om_tensor *x, om_tensor *w, const om_conv2d_raw *raw,
                             om_conv_geom *g) {
    char why[160];
    if (!conv_geom(x->shape, w->shape, raw, g))
        OM_FAIL_NULL(OM_ERR_LIMIT, "%s with the weight %s: a window option or a pad is above %d",
                     OMI_T(x), OMI_T(w), OM_WINDOW_LIMIT);
    if (g->win.out[0] < 1 || g->win.out[1] < 1)
        OM_FAIL_NULL(OM_ERR_SHAPE,
                     "%s with padding {%lld,%lld,%lld,%lld} is smaller than the dilated kernel of "
                     "%s; add padding",
                     OMI_T(x), (long long)g->win.before[0], (long long)g->win.before[1],
                     (long long)g->win.after[0], (long long)g->win.after[1], OMI_T(w));
    int64_t shape[4] = {g->n, g->oc, g->win.out[0], g->win.out[1]};
    if (omi_check_dims(4, shape, &(int64_t){0}) != OM_OK) return NULL;
    if (!omi_conv_fits(g, why, sizeof why))
        OM_FAIL_NULL(OM_ERR_LIMIT, "%s with the weight %s: %s", OMI_T(x), OMI_T(w), why);
    return omi_new(OM_F32, 4, shape);
}

static om_tensor *conv_run(om_tensor *x, om_tensor *w, om_tensor *b, const om_conv2d_raw *raw) {
    om_conv_geom g;
    om_conv_ptrs d = {0};
    om_conv_plan p;
    omi_work work;
    om_tensor *y = conv_begin(x, w, raw, &g);
    if (!y || !(x = omi_pack(x)) || (b && !(b = omi_pack(b))) || !conv_weight(w, &g, &d))
        return NULL;
    d.x    = omi_ptr(x);
    d.bias = b ? omi_ptr(b) : NULL;
    d.y    = omi_ptr(y);
    if (!omi_conv_plan(&g, d.w_packed != NULL, omi_workers(), &p))
        OM_FAIL_NULL(OM_ERR_LIMIT, "%s with the weight %s does not fit into memory", OMI_T(x),
                     OMI_T(w));
    if (!omi_work_get(&work, p.ws_bytes)) return NULL;
    omi_conv_run(&p, &d, work.data);
    omi_work_put(&work);
    return y;
}

om_tensor *om_conv2d(om_tensor *x, om_tensor *w, om_tensor *b, const om_conv2d_opts *opts) {
    OMI_ENTER("om_conv2d");
    om_conv2d_opts o;
    int64_t pads[4];
    if (!omi_arg(x, "x") || !omi_arg(w, "w") || (b && !omi_arg(b, "b"))) return NULL;
    if (!conv_options(opts, &o, pads) || !conv_shapes(x, w, b, o.groups)) return NULL;
    om_conv2d_raw raw = {.stride   = {2, o.stride},
                         .pads     = {4, pads},
                         .dilation = {2, o.dilation},
                         .groups   = o.groups};
    om_tensor *y      = conv_run(x, w, b, &raw);
    if (!y) return NULL;
    om_tensor *in[3] = {x, w, b};
    // Each gradient reads the other operand; what nobody will read may be written afterwards.
    uint32_t save =
        (om_requires_grad(w) ? OM_SAVE_IN(0) : 0u) | (om_requires_grad(x) ? OM_SAVE_IN(1) : 0u);
    return omi_record1(OM_OP_CONV2D, &raw, NULL, b ? 3 : 2, in, y, conv2d_backward, save);
}
