/*
 * norm.c -- LayerNormalization and BatchNormalization for inference (AR-4.3, AR-8).
 *
 * Batch norm is y = x*s + t with s, t of AR-8; with constant statistics they are computed while the
 * plan is made, by the function that a run would use.
 */
#include "compute/norm.h"

#include "graphops/rows.h"

static om_status float_only(om_nctx *c) {
    for (uint32_t i = 0; i < c->n_in; i++)
        if (c->in[i] && c->in[i]->dtype && c->in[i]->dtype != OM_F32)
            return omi_problem(c, OM_ERR_UNSUPPORTED, "input %u '%.60s' is %s; float32 is computed",
                               i, c->in[i]->name, omi_elem_name(c->in[i]->dtype));
    return omi_out_type(c, 0, OM_F32);
}

/* ---- LayerNormalization ---------------------------------------------------------------------- */

static om_status layer_norm_geom(om_nctx *c, om_layernorm_args *g) {
    int64_t axis     = -1;
    int a            = 0;
    const om_pval *x = c->in[0];
    OM_TRY(omi_get_int(c, "axis", -1, &axis));
    OM_TRY(omi_norm_axis(c, axis, x->rank, &a));
    OM_TRY(omi_get_float(c, "epsilon", 1e-5f, &g->eps));
    g->rows = g->n = 1;
    for (int i = 0; i < x->rank; i++) {
        if (i < a)
            g->rows *= x->shape[i];
        else
            g->n *= x->shape[i];
    }
    for (uint32_t i = 1; i < c->n_in; i++) {
        const om_pval *w = c->in[i];
        if (!w) continue;
        bool fits = w->rank == x->rank - a;
        for (int k = 0; fits && k < w->rank; k++)
            fits = w->shape[k] == x->shape[a + k];
        if (!fits)
            return omi_problem(c, OM_ERR_SHAPE,
                               "'%.60s' must have the sizes of axes %d to %d of '%.60s'", w->name,
                               a, x->rank - 1, x->name);
    }
    return OM_OK;
}

om_status omi_infer_layer_norm(om_nctx *c) {
    om_layernorm_args g;
    int64_t stash = 1;
    OM_TRY(omi_arity(c, 2, 3, 1));
    OM_TRY(omi_get_int(c, "stash_type", 1, &stash));
    if (stash != 1)
        return omi_problem(c, OM_ERR_UNSUPPORTED, "stash_type %lld has no kernel",
                           (long long)stash);
    OM_TRY(float_only(c));
    if (c->types_only) return OM_OK;
    OM_TRY(layer_norm_geom(c, &g));
    return omi_out_like(c, 0, c->in[0]);
}

typedef struct layer_norm_args {
    om_layernorm_args g;
    uint32_t x, w, b, y;
} layer_norm_args;

static om_status run_layer_norm(const om_step *s, const om_exec *e) {
    const layer_norm_args *p = s->args;
    om_layernorm_args g      = p->g;
    g.x                      = e->ptr[p->x];
    g.w                      = e->ptr[p->w];
    g.b                      = p->b == OM_NO_VALUE ? NULL : e->ptr[p->b];
    g.y                      = e->ptr[p->y];
    if (g.rows && g.n) omi_layernorm(&g);
    return OM_OK;
}

om_step *omi_sel_layer_norm(om_nctx *c) {
    om_step *s         = omi_step(c, run_layer_norm, sizeof(layer_norm_args));
    layer_norm_args *a = s ? s->args : NULL;
    if (!a || layer_norm_geom(c, &a->g) != OM_OK) return NULL;
    a->x = c->in[0]->index;
    a->w = c->in[1]->index;
    a->b = c->n_in > 2 && c->in[2] ? c->in[2]->index : OM_NO_VALUE;
    a->y = c->out[0]->index;
    return s;
}

/* ---- BatchNormalization -------------------------------------------------------------------------
 */

om_status omi_infer_batch_norm(om_nctx *c) {
    bool training = false;
    float eps;
    OM_TRY(omi_get_flag(c, "training_mode", false, &training));
    OM_TRY(omi_get_float(c, "epsilon", 1e-5f, &eps));
    if (training) return omi_problem(c, OM_ERR_UNSUPPORTED, "training_mode = 1 is not inference");
    OM_TRY(omi_arity(c, 5, 5, 1));
    OM_TRY(float_only(c));
    if (c->types_only) return OM_OK;
    const om_pval *x = c->in[0];
    if (x->rank < 2)
        return omi_problem(c, OM_ERR_SHAPE, "'%.60s' has rank %d; at least 2 is needed", x->name,
                           x->rank);
    for (int i = 1; i < 5; i++)
        if (c->in[i]->rank != 1 || c->in[i]->shape[0] != x->shape[1])
            return omi_problem(c, OM_ERR_SHAPE, "'%.60s' must be a list of %lld channels",
                               c->in[i]->name, (long long)x->shape[1]);
    return omi_out_like(c, 0, x);
}

typedef struct batch_norm_args {
    int64_t n, c, inner;
    float eps;
    float *s, *t; /* of constant statistics, else NULL */
    uint32_t in[5], y;
} batch_norm_args;

static om_status run_batch_norm(const om_step *st, const om_exec *e) {
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

om_step *omi_sel_batch_norm(om_nctx *c) {
    om_step *s         = omi_step(c, run_batch_norm, sizeof(batch_norm_args));
    batch_norm_args *a = s ? s->args : NULL;
    if (!a || omi_get_float(c, "epsilon", 1e-5f, &a->eps) != OM_OK) return NULL;
    const om_pval *x = c->in[0];
    a->n             = x->shape[0];
    a->c             = x->shape[1];
    a->inner         = 1;
    for (int i = 2; i < x->rank; i++)
        a->inner *= x->shape[i];
    a->y       = c->out[0]->index;
    bool known = a->c > 0;
    for (int i = 0; i < 5; i++) {
        a->in[i] = c->in[i]->index;
        if (i && !c->in[i]->known) known = false;
    }
    if (known) {
        a->s = omi_arena_array(c->arena, (size_t)a->c, 2 * sizeof(float));
        if (!a->s) return NULL;
        a->t = a->s + a->c;
        omi_batchnorm_fold(a->c, c->in[1]->known, c->in[2]->known, c->in[3]->known, c->in[4]->known,
                           a->eps, a->s, a->t);
    } else
        s->ws_bytes = (size_t)a->c * 2 * sizeof(float);
    return s;
}
