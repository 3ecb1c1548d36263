/*
 * norm.c -- LayerNormalization and BatchNormalization for inference (AR-4.3, AR-8).
 *
 * Batch norm is y = x*s + t with s, t of AR-8; with constant statistics they are computed while the
 * plan is made, by the function that a run would use.
 */
#include "compute/norm.h"

#include "compute/move.h"
#include "graphops/forms.h"
#include "graphops/fuse.h"
#include "graphops/rows.h"

/* ---- LayerNormalization ---------------------------------------------------------------------- */

typedef struct layer_norm_form {
    int64_t axis;
    float eps;
} layer_norm_form;

om_status omi_parse_layer_norm(om_nctx *c) {
    layer_norm_form *f = omi_form(c, sizeof *f);
    int64_t stash      = omi_int(c, "stash_type");
    if (!f) return OM_ERR_NOMEM;
    f->axis = omi_int(c, "axis");
    f->eps  = omi_float(c, "epsilon");
    if (stash != 1)
        return omi_problem(c, OM_ERR_UNSUPPORTED, "stash_type %lld has no kernel",
                           (long long)stash);
    return omi_axis_possible(c, f->axis, c->in[0]);
}

/* Scale and bias as the kernel takes them: n numbers for every row, in place or in the workspace;
 * or, where they differ by row, as large as the input. */
typedef struct layer_norm_args {
    om_layernorm_args g;
    uint32_t x, b, y;
    bool by_row;
    om_ref spread[2]; /* of scale and bias: what is copied to the workspace */
    int64_t room[2];  /* floats of each in the workspace, 0: none is needed */
} layer_norm_args;

/* Operand k (1 scale, 2 bias) of x, whose rows begin at axis. */
static om_status spread_operand(om_nctx *c, uint32_t k, int axis, layer_norm_args *a) {
    const om_pval *x = c->in[0], *w = omi_in(c, k);
    bool fits = !w || w->rank <= x->rank;
    if (!w) return OM_OK;
    for (int i = 0; fits && i < w->rank; i++)
        fits = w->shape[i] == 1 || w->shape[i] == x->shape[x->rank - w->rank + i];
    if (!fits)
        return omi_problem(c, OM_ERR_SHAPE, "'%.60s' does not broadcast to the sizes of '%.60s'",
                           w->name, x->name);
    a->spread[k - 1] = omi_ref_as(w, x->rank, x->shape);
    for (int i = 0; i < axis; i++)
        if (x->shape[i] != 1 && a->spread[k - 1].v.strides[i] != 0) a->by_row = true;
    a->room[k - 1] = w->numel == a->g.n ? 0 : a->g.n;
    return OM_OK;
}

static om_status layer_norm_layout(om_nctx *c, layer_norm_args *a) {
    const layer_norm_form *f = c->form;
    const om_pval *x         = c->in[0];
    int axis                 = 0;
    OM_TRY(omi_norm_axis(c, f->axis, x->rank, &axis));
    a->g.rows = a->g.n = 1;
    a->g.eps           = f->eps;
    for (int i = 0; i < x->rank; i++) {
        if (i < axis)
            a->g.rows *= x->shape[i];
        else
            a->g.n *= x->shape[i];
    }
    OM_TRY(spread_operand(c, 1, axis, a));
    OM_TRY(spread_operand(c, 2, axis, a));
    for (int k = 0; k < 2; k++) {
        if (a->by_row && omi_in(c, (uint32_t)k + 1)) a->room[k] = x->numel;
        for (int i = 0; i < axis && !a->by_row; i++) // one row is copied
            a->spread[k].v.shape[i] = 1;
    }
    return OM_OK;
}

om_status omi_infer_layer_norm(om_nctx *c) {
    layer_norm_args a = {0};
    OM_TRY(layer_norm_layout(c, &a));
    return omi_out_like(c, 0, c->in[0]);
}

/* Scale (k 0) or bias where the kernel reads it. */
static const float *spread_now(const layer_norm_args *p, const om_exec *e, int k, float *ws) {
    const om_ref *r = &p->spread[k];
    if (!p->room[k]) return e->ptr[r->value];
    om_view from = omi_bind(e, r), to = from;
    to.data = ws;
    omi_view_pack_strides(&to);
    omi_copy(&from, &to);
    return ws;
}

static om_status run_layer_norm(const om_run_step *s, const om_exec *e) {
    const layer_norm_args *p = s->args;
    om_layernorm_args g      = p->g;
    if (!g.rows || !g.n) return OM_OK;
    g.x         = e->ptr[p->x];
    g.y         = e->ptr[p->y];
    g.w         = spread_now(p, e, 0, e->ws);
    float *room = e->ws; // NULL where neither is spread
    if (p->b != OM_NO_VALUE) g.b = spread_now(p, e, 1, room ? room + p->room[0] : NULL);
    if (!p->by_row) {
        omi_layernorm(&g);
        return OM_OK;
    }
    g.rows = 1;
    for (int64_t r = 0; r < p->g.rows; r++) {
        omi_layernorm(&g);
        g.x += g.n;
        g.y += g.n;
        g.w += g.n;
        if (g.b) g.b += g.n;
    }
    return OM_OK;
}

om_run_step *omi_sel_layer_norm(om_nctx *c) {
    om_run_step *s     = omi_step(c, run_layer_norm, sizeof(layer_norm_args));
    layer_norm_args *a = s ? s->args : NULL;
    if (!a || layer_norm_layout(c, a) != OM_OK) return NULL;
    a->x        = c->in[0]->index;
    a->b        = omi_in(c, 2) ? c->in[2]->index : OM_NO_VALUE;
    a->y        = c->out[0]->index;
    s->ws_bytes = (size_t)(a->room[0] + a->room[1]) * sizeof(float);
    return s;
}

/* ---- BatchNormalization -------------------------------------------------------------------------
 */

om_status omi_parse_batch_norm(om_nctx *c) {
    om_batch_norm_form *f = omi_form(c, sizeof *f);
    if (!f) return OM_ERR_NOMEM;
    f->eps = omi_float(c, "epsilon");
    if (omi_flag(c, "training_mode"))
        return omi_problem(c, OM_ERR_UNSUPPORTED, "training_mode = 1 is not inference");
    if (omi_given(c, "spatial") && !omi_flag(c, "spatial"))
        return omi_problem(c, OM_ERR_UNSUPPORTED,
                           "spatial = 0 (statistics per element) has no kernel");
    return OM_OK;
}

/* Channels are axis 1; a list is one channel. */
static int64_t node_channels(const om_pval *x) {
    return x->rank > 1 ? x->shape[1] : 1;
}

om_status omi_infer_batch_norm(om_nctx *c) {
    const om_pval *x = c->in[0];
    if (x->rank < 1)
        return omi_problem(c, OM_ERR_SHAPE, "'%.60s' has rank 0; at least 1 is needed", x->name);
    for (int i = 1; i < 5; i++)
        if (c->in[i]->rank != 1 || c->in[i]->shape[0] != node_channels(x))
            return omi_problem(c, OM_ERR_SHAPE, "'%.60s' must be a list of %lld channels",
                               c->in[i]->name, (long long)node_channels(x));
    return omi_out_like(c, 0, x);
}

typedef struct batch_norm_args {
    int64_t n, c, inner;
    float eps;
    float *s, *t; /* of constant statistics, else NULL */
    uint32_t in[5], y;
} batch_norm_args;

static om_status run_batch_norm(const om_run_step *st, const om_exec *e) {
    const batch_norm_args *p = st->args;
    float *s = p->s, *t = p->t;
    if (!p->n || !p->c || !p->inner) return OM_OK;
    if (!s) {
        s = e->ws;
        t = s + p->c;
        omi_batchnorm_fold(p->c, e->ptr[p->in[1]], e->ptr[p->in[2]], e->ptr[p->in[3]],
                           e->ptr[p->in[4]], p->eps, s, t);
    }
    omi_batchnorm_apply(p->n, p->c, p->inner, e->ptr[p->in[0]], s, t, e->ptr[p->y]);
    return OM_OK;
}

static bool constant_statistics(const om_nctx *c) {
    for (int i = 1; i < 5; i++)
        if (!c->in[i]->known) return false;
    return true;
}

/* s, then t, of n channels in the plan's arena; NULL and raised. */
static float *fold_statistics(const om_nctx *c, int64_t n, float eps) {
    float *s = omi_arena_array(c->arena, (size_t)n, 2 * sizeof(float));
    if (s)
        omi_batchnorm_fold(n, c->in[1]->known, c->in[2]->known, c->in[3]->known, c->in[4]->known,
                           eps, s, s + n);
    return s;
}

om_run_step *omi_sel_batch_norm(om_nctx *c) {
    om_run_step *s     = omi_step(c, run_batch_norm, sizeof(batch_norm_args));
    batch_norm_args *a = s ? s->args : NULL;
    if (!a) return NULL;
    a->eps           = ((const om_batch_norm_form *)c->form)->eps;
    const om_pval *x = c->in[0];
    a->n             = x->shape[0];
    a->c             = node_channels(x);
    a->inner         = 1;
    for (int i = 2; i < x->rank; i++)
        a->inner *= x->shape[i];
    a->y = c->out[0]->index;
    for (int i = 0; i < 5; i++)
        a->in[i] = c->in[i]->index;
    if (a->c > 0 && constant_statistics(c)) {
        a->s = fold_statistics(c, a->c, a->eps);
        if (!a->s) return NULL;
        a->t = a->s + a->c;
    } else
        s->ws_bytes = (size_t)a->c * 2 * sizeof(float);
    return s;
}

bool omi_fuse_batch_norm(const om_nctx *c, uint32_t via, om_fused *f, bool *failed) {
    const om_pval *x             = c->in[0];
    int64_t strides[OM_MAX_RANK] = {0};
    (void)via;
    if (x->rank < 2 || !constant_statistics(c)) return false;
    strides[1]   = 1; // channels
    om_ep_step s = {.kind = OM_EP_SCALE_SHIFT};
    int at       = f->ep.n;
    if (!omi_fuse_add(f, s, strides, OM_NO_VALUE, OM_NO_VALUE)) return false;
    float *a = fold_statistics(c, x->shape[1], ((const om_batch_norm_form *)c->form)->eps);
    if (!a) return *failed = true, false;
    f->ep.step[at].a = a;
    f->ep.step[at].b = a + x->shape[1];
    return true;
}
