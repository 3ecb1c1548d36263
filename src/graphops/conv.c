/*
 * conv.c -- Conv, MaxPool, AveragePool over one or two spatial axes (one: height 1), global pools
 * (AR-3, AR-4.5). auto_pad is resolved here, so kernels see explicit pads only.
 *
 * Every kernel, stride, dilation and group of a file is named when it is outside its limits;
 * omi_window_make then makes the geometry.
 */
#include "compute/conv.h"

#include "base/checked.h"
#include "compute/pack.h"
#include "compute/pool.h"
#include "graphops/fuse.h"
#include "graphops/rows.h"

/* The window attributes of Conv and the pools. */
typedef struct window_form {
    int mode; /* of auto_pad: as in modes below */
    bool ceil, include_pad;
    int64_t groups;
    om_either kernel, strides, dilations, pads; /* none is an input */
} window_form;

static om_status check_list(om_nctx *c, const char *what, int n, const int64_t *v, int64_t least) {
    for (int i = 0; i < n; i++)
        if (v[i] < least || v[i] > OM_WINDOW_LIMIT)
            return omi_problem(c, OM_ERR_MALFORMED,
                               "attribute '%s' has %lld; %lld to %d is allowed", what,
                               (long long)v[i], (long long)least, OM_WINDOW_LIMIT);
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

/* kernel: of the weights, or NULL: the attribute is required. */
static om_status read_window(om_nctx *c, const int64_t *kernel, om_window *w) {
    static const om_window_round modes[] = {OM_WINDOW_FLOOR, OM_WINDOW_FLOOR, OM_WINDOW_SAME_UPPER,
                                            OM_WINDOW_SAME_LOWER};
    const window_form *f                 = c->form;
    const om_pval *x                     = c->in[0];
    int n                                = x->rank - 2;
    int64_t k[2], s[2], d[2], p[4];
    *w = (om_window){.nd = 2};
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
    widen(n, k, 1, w->k);
    widen(n, s, 1, w->stride);
    widen(n, d, 1, w->dil);
    if (f->mode == 0) {
        widen(n, p, 0, w->before);
        widen(n, p + n, 0, w->after);
    }
    om_window_round round = modes[f->mode];
    if (f->ceil && round == OM_WINDOW_FLOOR) round = OM_WINDOW_CEIL;
    if (omi_window_make(w, round)) return OM_OK;
    return omi_problem(c, OM_ERR_LIMIT, "an extent of '%.60s' or a pad of its window is above %d",
                       x->name, OM_WINDOW_LIMIT);
}

static om_status spatial_rank(om_nctx *c, const om_pval *x) {
    if (x->rank == 3 || x->rank == 4) return OM_OK;
    return omi_problem(c, x->rank < 3 ? OM_ERR_SHAPE : OM_ERR_UNSUPPORTED,
                       "'%.60s' has rank %d; one and two spatial axes are computed", x->name,
                       x->rank);
}

static om_status window_out(om_nctx *c, const om_window *w, int64_t channels) {
    int64_t shape[4] = {c->in[0]->shape[0], channels, w->out[0], w->out[1]};
    if (c->in[0]->rank == 3) shape[2] = w->out[1];
    return omi_out_shape(c, 0, c->in[0]->rank, shape);
}

/* ---- Conv ---------------------------------------------------------------------------------------
 */

static om_status node_conv_geom(om_nctx *c, om_conv_geom *g) {
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
    char why[160];
    *g = (om_conv_geom){.n = x->shape[0], .c = x->shape[1], .oc = k->shape[0], .groups = groups};
    OM_TRY(read_window(c, k->shape + 2, &g->win));
    if (omi_conv_fits(g, why, sizeof why)) return OM_OK;
    return omi_problem(c, OM_ERR_LIMIT, "'%.60s' with the weights '%.60s': %s", x->name, k->name,
                       why);
}

om_status omi_parse_conv(om_nctx *c) {
    OM_TRY(parse_window(c));
    int64_t groups = ((const window_form *)c->form)->groups;
    if (groups < 1 || groups > OM_WINDOW_LIMIT)
        return omi_problem(c, OM_ERR_MALFORMED, "attribute 'group' is %lld; 1 to %d is allowed",
                           (long long)groups, OM_WINDOW_LIMIT);
    for (int i = 0; i < 2; i++)
        if (c->in[i]->rank >= 0) OM_TRY(spatial_rank(c, c->in[i]));
    return OM_OK;
}

om_status omi_infer_conv(om_nctx *c) {
    om_conv_geom g;
    OM_TRY(node_conv_geom(c, &g));
    return window_out(c, &g.win, g.oc);
}

/* What a step keeps: the plan, and where its operands are. */
typedef struct conv_args {
    om_conv_plan plan;
    const float *w_packed;
    uint32_t x, w, b, y;
    const om_fused *fused; /* NULL: nothing follows */
} conv_args;

static om_status run_conv(const om_run_step *s, const om_exec *e) {
    const conv_args *p = s->args;
    om_conv_ptrs d     = {
            .x = e->ptr[p->x], .weight = e->ptr[p->w], .w_packed = p->w_packed, .y = e->ptr[p->y]};
    om_epilogue ep;
    if (p->b != OM_NO_VALUE) d.bias = e->ptr[p->b];
    d.ep = omi_fuse_bind(p->fused, e, &ep);
    omi_conv_run(&p->plan, &d, e->ws);
    return OM_OK;
}

om_run_step *omi_sel_conv(om_nctx *c) {
    om_conv_geom g;
    om_run_step *s = omi_step(c, run_conv, sizeof(conv_args));
    conv_args *a   = s ? s->args : NULL;
    if (!a || node_conv_geom(c, &g) != OM_OK) return NULL;
    const om_pval *k = c->in[1];
    a->x             = c->in[0]->index;
    a->w             = k->index;
    a->b             = omi_in(c, 2) ? c->in[2]->index : OM_NO_VALUE;
    a->y             = c->out[0]->index;
    a->fused         = c->fused;
    if (c->fused && a->b == OM_NO_VALUE) omi_fuse_take_row_bias(c->fused, &a->b);
    if (c->out[0]->numel && k->known && k->buf && k->numel && omi_pack_may_cache(k->buf)) {
        if (!omi_hold(c, omi_conv_pack_bytes(&g))) return NULL;
        a->w_packed = omi_conv_packed_cached(k->buf, k->offset / (int64_t)sizeof(float), &g);
        if (!a->w_packed) return NULL;
    }
    if (!omi_conv_plan(&g, a->w_packed != NULL, c->workers, &a->plan)) {
        omi_problem(c, OM_ERR_LIMIT, "'%.60s' with the weights '%.60s' does not fit into memory",
                    c->in[0]->name, k->name);
        return NULL;
    }
    // The kernel adds a bias in a pass of its own but for depthwise: here it goes with the rest.
    if (c->fused && a->b != OM_NO_VALUE && a->plan.way >= OM_CONV_IN_PLACE &&
        omi_fuse_put_row_bias(c->fused, a->b))
        a->b = OM_NO_VALUE;
    s->ws_bytes = a->plan.ws_bytes;
    return s;
}

/* ---- MaxPool, AveragePool -------------------------------------------------------------------- */

static om_status pool_geom(om_nctx *c, om_pool_geom *g) {
    const om_pval *x = c->in[0];
    OM_TRY(spatial_rank(c, x));
    *g = (om_pool_geom){.planes      = x->shape[0] * x->shape[1],
                        .include_pad = ((const window_form *)c->form)->include_pad};
    return read_window(c, NULL, &g->win);
}

om_status omi_parse_pool(om_nctx *c) {
    OM_TRY(parse_window(c));
    return c->in[0]->rank >= 0 ? spatial_rank(c, c->in[0]) : OM_OK;
}

om_status omi_infer_pool(om_nctx *c) {
    om_pool_geom g;
    OM_TRY(pool_geom(c, &g));
    return window_out(c, &g.win, c->in[0]->shape[1]);
}

typedef struct pool_args {
    om_pool_plan plan;
    bool average;
    uint32_t x, y;
} pool_args;

static om_status run_pool(const om_run_step *s, const om_exec *e) {
    const pool_args *p = s->args;
    if (p->average)
        omi_avgpool(&p->plan, e->ptr[p->x], e->ptr[p->y]);
    else
        omi_maxpool(&p->plan, e->ptr[p->x], e->ptr[p->y], NULL);
    return OM_OK;
}

om_run_step *omi_sel_pool(om_nctx *c) {
    om_pool_geom g;
    om_run_step *s = omi_step(c, run_pool, sizeof(pool_args));
    pool_args *a   = s ? s->args : NULL;
    if (!a || pool_geom(c, &g) != OM_OK) return NULL;
    omi_pool_plan(&g, &a->plan);
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

static om_status run_global(const om_run_step *s, const om_exec *e) {
    const global_args *p = s->args;
    om_view x = omi_bind(e, &p->x), y = omi_bind(e, &p->y);
    if (omi_view_numel(&y)) omi_reduce(p->k, &x, ((1u << x.rank) - 1) & ~3u, &y);
    return OM_OK;
}

om_run_step *omi_sel_global_pool(om_nctx *c) {
    om_run_step *s = omi_step(c, run_global, sizeof(global_args));
    global_args *a = s ? s->args : NULL;
    if (!a) return NULL;
    a->x = omi_ref(c->in[0]);
    a->y = omi_ref(c->out[0]);
    a->k = (om_reduce_kind)c->def->arg;
    return s;
}
