/*
 * conv.c -- Conv, MaxPool, AveragePool over one or two spatial axes (one: height 1), global pools
 * (AR-3, AR-4.5). auto_pad is resolved here, so kernels see explicit pads only.
 *
 * Sizes from files meet division and multiplication here: every kernel, stride, dilation and group
 * is checked to be positive and at most 2^31 before it is used.
 */
#include "compute/conv.h"

#include "graphops/rows.h"

#define WINDOW_LIMIT INT32_MAX

/* Spatial geometry shared by Conv and pools; index 0 height, 1 width. */
typedef struct window {
    int axes; /* 1 or 2 */
    int64_t in[2], kernel[2], stride[2], dilation[2], pad[4], out[2];
    bool ceil;
} window;

/* The window attributes of Conv and the pools. */
typedef struct window_form {
    int mode; /* of auto_pad: as in modes below */
    bool ceil, include_pad;
    int64_t groups;
    om_either kernel, strides, dilations, pads; /* none is an input */
} window_form;

static om_status check_list(om_nctx *c, const char *what, int n, const int64_t *v, int64_t least) {
    for (int i = 0; i < n; i++)
        if (v[i] < least || v[i] > WINDOW_LIMIT)
            return omi_problem(c, OM_ERR_MALFORMED,
                               "attribute '%s' has %lld; %lld to %d is allowed", what,
                               (long long)v[i], (long long)least, WINDOW_LIMIT);
    return OM_OK;
}

/* One attribute: checked by itself, and against the rank of the input where it is known. */
static om_status parse_list(om_nctx *c, const char *name, int per_axis, int64_t least,
                            om_either *out) {
    int rank = c->in[0]->rank;
    OM_TRY(omi_either(c, name, OM_NO_VALUE, out));
    if (out->given && rank >= 2 && out->n != per_axis * (rank - 2))
        return omi_problem(c, OM_ERR_MALFORMED, "attribute '%s' has %d entries; %d are needed",
                           name, out->n, per_axis * (rank - 2));
    return check_list(c, name, out->n, out->v, least);
}

static om_status parse_window(om_nctx *c) {
    static const char *const modes[] = {"NOTSET", "VALID", "SAME_UPPER", "SAME_LOWER"};
    window_form *f                   = omi_form(c, sizeof *f);
    if (!f) return OM_ERR_NOMEM;
    OM_TRY(parse_list(c, "kernel_shape", 1, 1, &f->kernel));
    OM_TRY(parse_list(c, "strides", 1, 1, &f->strides));
    OM_TRY(parse_list(c, "dilations", 1, 1, &f->dilations));
    OM_TRY(parse_list(c, "pads", 2, 0, &f->pads));
    OM_TRY(omi_choice(c, "auto_pad", 4, modes, &f->mode));
    f->ceil        = omi_flag(c, "ceil_mode");
    f->include_pad = omi_flag(c, "count_include_pad");
    f->groups      = omi_int(c, "group");
    return OM_OK;
}

/* Exactly n entries, or fill in every place where there are none. */
static om_status list_of(om_nctx *c, const char *name, const om_either *e, int n, int64_t fill,
                         int64_t *out) {
    if (e->given && e->n != n)
        return omi_problem(c, OM_ERR_MALFORMED, "attribute '%s' has %d entries; %d are needed",
                           name, e->n, n);
    for (int i = 0; i < n; i++)
        out[i] = e->given ? e->v[i] : fill;
    return OM_OK;
}

/* Attributes are per spatial axis; one axis is moved to the width. */
static void widen(int axes, const int64_t *v, int64_t fill, int64_t *out) {
    out[0] = axes == 2 ? v[0] : fill;
    out[1] = v[axes - 1];
}

static void same_pads(window *w, bool lower) {
    for (int i = 0; i < 2; i++) {
        int64_t reach = (w->kernel[i] - 1) * w->dilation[i] + 1;
        w->out[i]     = omi_ceil_div(w->in[i], w->stride[i]);
        int64_t total = omi_max64(0, (w->out[i] - 1) * w->stride[i] + reach - w->in[i]);
        w->pad[i]     = (total + (lower ? 1 : 0)) / 2;
        w->pad[i + 2] = total - w->pad[i];
    }
}

/* kernel: of the weights, or NULL: the attribute is required. */
static om_status read_window(om_nctx *c, const int64_t *kernel, bool pool, window *w) {
    const window_form *f = c->form;
    const om_pval *x     = c->in[0];
    int n                = x->rank - 2;
    int64_t k[2], s[2], d[2], p[4];
    w->axes = n;
    w->ceil = f->ceil;
    OM_TRY(list_of(c, "kernel_shape", &f->kernel, n, -1, k));
    for (int i = 0; i < n; i++) {
        if (kernel && k[i] != -1 && k[i] != kernel[i])
            return omi_problem(c, OM_ERR_SHAPE, "kernel_shape says %lld, the weights have %lld",
                               (long long)k[i], (long long)kernel[i]);
        if (kernel) k[i] = kernel[i];
    }
    OM_TRY(list_of(c, "strides", &f->strides, n, 1, s));
    OM_TRY(list_of(c, "dilations", &f->dilations, n, 1, d));
    OM_TRY(list_of(c, "pads", &f->pads, n * 2, 0, p));
    OM_TRY(check_list(c, "kernel_shape", n, k, 1));
    widen(n, x->shape + 2, 1, w->in);
    widen(n, k, 1, w->kernel);
    widen(n, s, 1, w->stride);
    widen(n, d, 1, w->dilation);
    widen(n, p, 0, w->pad);
    widen(n, p + n, 0, w->pad + 2);
    if (f->mode == 1) w->pad[0] = w->pad[1] = w->pad[2] = w->pad[3] = 0;
    if (f->mode >= 2) {
        same_pads(w, f->mode == 3);
        return OM_OK;
    }
    for (int i = 0; i < 2; i++)
        w->out[i] = pool ? omi_pool_out(w->in[i], w->kernel[i], w->stride[i], w->dilation[i],
                                        w->pad[i], w->pad[i + 2], w->ceil)
                         : omi_window_out(w->in[i], w->kernel[i], w->stride[i], w->dilation[i],
                                          w->pad[i], w->pad[i + 2]);
    return OM_OK;
}

static om_status spatial_rank(om_nctx *c, const om_pval *x) {
    if (x->rank == 3 || x->rank == 4) return OM_OK;
    return omi_problem(c, x->rank < 3 ? OM_ERR_SHAPE : OM_ERR_UNSUPPORTED,
                       "'%.60s' has rank %d; one and two spatial axes are computed", x->name,
                       x->rank);
}

static om_status window_out(om_nctx *c, const window *w, int64_t channels) {
    int64_t shape[4] = {c->in[0]->shape[0], channels, w->out[0], w->out[1]};
    if (w->axes == 1) shape[2] = w->out[1];
    return omi_out_shape(c, 0, w->axes + 2, shape);
}

/* ---- Conv ---------------------------------------------------------------------------------------
 */

static om_status conv_geom(om_nctx *c, window *w, om_conv2d_geom *g) {
    const om_pval *x = c->in[0], *k = c->in[1], *b = omi_in(c, 2);
    int64_t groups = ((const window_form *)c->form)->groups;
    OM_TRY(spatial_rank(c, x));
    if (k->rank != x->rank)
        return omi_problem(c, OM_ERR_SHAPE, "'%.60s' has rank %d and the weights '%.60s' rank %d",
                           x->name, x->rank, k->name, k->rank);
    if (groups < 1 || k->shape[0] % groups || x->shape[1] % groups ||
        x->shape[1] / groups != k->shape[1])
        return omi_problem(c, OM_ERR_SHAPE,
                           "%lld channels in %lld groups do not fit weights of [%lld,%lld,..]",
                           (long long)x->shape[1], (long long)groups, (long long)k->shape[0],
                           (long long)k->shape[1]);
    if (b && (b->rank != 1 || b->shape[0] != k->shape[0]))
        return omi_problem(c, OM_ERR_SHAPE, "the bias '%.60s' must be a list of %lld numbers",
                           b->name, (long long)k->shape[0]);
    OM_TRY(read_window(c, k->shape + 2, false, w));
    *g = (om_conv2d_geom){.n      = x->shape[0],
                          .c      = x->shape[1],
                          .h      = w->in[0],
                          .w      = w->in[1],
                          .oc     = k->shape[0],
                          .kh     = w->kernel[0],
                          .kw     = w->kernel[1],
                          .oh     = w->out[0],
                          .ow     = w->out[1],
                          .groups = groups};
    for (int i = 0; i < 2; i++) {
        g->stride[i]   = w->stride[i];
        g->dilation[i] = w->dilation[i];
        g->pad[i]      = w->pad[i];
        g->pad[i + 2]  = w->pad[i + 2];
    }
    int64_t rows, columns;
    if (!omi_conv2d_fits(g, &rows, &columns))
        return omi_problem(
            c, OM_ERR_LIMIT,
            "its windows reach over a padded image of %lld x %lld, more than can be held",
            (long long)rows, (long long)columns);
    return OM_OK;
}

om_status omi_parse_conv(om_nctx *c) {
    OM_TRY(parse_window(c));
    int64_t groups = ((const window_form *)c->form)->groups;
    if (groups < 1 || groups > WINDOW_LIMIT)
        return omi_problem(c, OM_ERR_MALFORMED, "attribute 'group' is %lld; 1 to %d is allowed",
                           (long long)groups, WINDOW_LIMIT);
    for (int i = 0; i < 2; i++)
        if (c->in[i]->rank >= 0) OM_TRY(spatial_rank(c, c->in[i]));
    return OM_OK;
}

om_status omi_infer_conv(om_nctx *c) {
    window w;
    om_conv2d_geom g = {0};
    OM_TRY(conv_geom(c, &w, &g));
    return window_out(c, &w, g.oc);
}

typedef struct conv_args {
    om_conv2d_args a; /* without data pointers, but w_packed */
    uint32_t x, w, b, y;
} conv_args;

static om_status run_conv(const om_step *s, const om_exec *e) {
    const conv_args *p = s->args;
    om_conv2d_args a   = p->a;
    a.x                = e->ptr[p->x];
    a.weight           = e->ptr[p->w];
    a.bias             = p->b == OM_NO_VALUE ? NULL : e->ptr[p->b];
    a.y                = e->ptr[p->y];
    if (a.g.n && a.g.oh && a.g.ow) omi_conv2d(&a, e->ws, e->workers);
    return OM_OK;
}

om_step *omi_sel_conv(om_nctx *c) {
    window w;
    om_step *s   = omi_step(c, run_conv, sizeof(conv_args));
    conv_args *a = s ? s->args : NULL;
    if (!a || conv_geom(c, &w, &a->a.g) != OM_OK) return NULL;
    const om_pval *k = c->in[1];
    a->x             = c->in[0]->index;
    a->w             = k->index;
    a->b             = omi_in(c, 2) ? c->in[2]->index : OM_NO_VALUE;
    a->y             = c->out[0]->index;
    if (!c->out[0]->numel) return s;
    if (k->known && k->buf) {
        if (!omi_hold(c, omi_conv2d_pack_bytes(&a->a.g))) return NULL;
        a->a.w_packed =
            omi_conv2d_packed_cached(k->buf, k->offset / (int64_t)sizeof(float), &a->a.g);
        if (!a->a.w_packed) return NULL;
    }
    s->ws_bytes = omi_conv2d_workspace(&a->a.g, a->a.w_packed != NULL, c->workers);
    return s;
}

/* ---- MaxPool, AveragePool -------------------------------------------------------------------- */

static om_status pool_geom(om_nctx *c, window *w, om_pool2d_geom *g) {
    const om_pval *x = c->in[0];
    OM_TRY(spatial_rank(c, x));
    OM_TRY(read_window(c, NULL, true, w));
    *g = (om_pool2d_geom){.planes      = x->shape[0] * x->shape[1],
                          .h           = w->in[0],
                          .w           = w->in[1],
                          .kh          = w->kernel[0],
                          .kw          = w->kernel[1],
                          .oh          = w->out[0],
                          .ow          = w->out[1],
                          .include_pad = ((const window_form *)c->form)->include_pad};
    for (int i = 0; i < 2; i++) {
        g->stride[i]   = w->stride[i];
        g->dilation[i] = w->dilation[i];
        g->pad[i]      = w->pad[i];
        g->pad[i + 2]  = w->pad[i + 2];
    }
    return OM_OK;
}

om_status omi_parse_pool(om_nctx *c) {
    OM_TRY(parse_window(c));
    return c->in[0]->rank >= 0 ? spatial_rank(c, c->in[0]) : OM_OK;
}

om_status omi_infer_pool(om_nctx *c) {
    window w;
    om_pool2d_geom g;
    OM_TRY(pool_geom(c, &w, &g));
    return window_out(c, &w, c->in[0]->shape[1]);
}

typedef struct pool_args {
    om_pool2d_geom g;
    bool average;
    uint32_t x, y;
} pool_args;

static om_status run_pool(const om_step *s, const om_exec *e) {
    const pool_args *p = s->args;
    if (!p->g.planes || !p->g.oh || !p->g.ow) return OM_OK;
    if (p->average)
        omi_avgpool2d(&p->g, e->ptr[p->x], e->ptr[p->y]);
    else
        omi_maxpool2d(&p->g, e->ptr[p->x], e->ptr[p->y]);
    return OM_OK;
}

om_step *omi_sel_pool(om_nctx *c) {
    window w;
    om_step *s   = omi_step(c, run_pool, sizeof(pool_args));
    pool_args *a = s ? s->args : NULL;
    if (!a || pool_geom(c, &w, &a->g) != OM_OK) return NULL;
    a->average = c->def->arg == 1;
    a->x       = c->in[0]->index;
    a->y       = c->out[0]->index;
    return s;
}

/* ---- GlobalAveragePool, GlobalMaxPool: reductions (AR-8) ------------------------------------- */

om_status omi_infer_global_pool(om_nctx *c) {
    int64_t shape[OM_MAX_RANK];
    const om_pval *x = c->in[0];
    if (x->rank < 3)
        return omi_problem(c, OM_ERR_SHAPE, "'%.60s' has rank %d; at least 3 is needed", x->name,
                           x->rank);
    for (int i = 0; i < x->rank; i++)
        shape[i] = i < 2 ? x->shape[i] : 1;
    return omi_out_shape(c, 0, x->rank, shape);
}

typedef struct global_args {
    om_ref x, y;
    om_reduce_kind k;
} global_args;

static om_status run_global(const om_step *s, const om_exec *e) {
    const global_args *p = s->args;
    om_view x = omi_bind(e, &p->x), y = omi_bind(e, &p->y);
    if (omi_view_numel(&y)) omi_reduce(p->k, &x, ((1u << x.rank) - 1) & ~3u, &y);
    return OM_OK;
}

om_step *omi_sel_global_pool(om_nctx *c) {
    om_step *s     = omi_step(c, run_global, sizeof(global_args));
    global_args *a = s ? s->args : NULL;
    if (!a) return NULL;
    a->x = omi_ref(c->in[0]);
    a->y = omi_ref(c->out[0]);
    a->k = (om_reduce_kind)c->def->arg;
    return s;
}
