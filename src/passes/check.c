/*
 * check.c -- the problems of a graph beyond those of its single nodes: sizes that contradict each
 * other, found before any run where every size is declared.
 *
 * A node whose inputs could not be sized is passed over, so one fault is listed once. Contents that
 * decide sizes are computed by the kernels a run would use, as in a plan; nothing larger than
 * OM_FOLD_LIMIT is.
 */
#include <string.h>

#include "base/thread.h"
#include "passes/program.h"

typedef struct size_check {
    const om_program *p;
    om_problems *pr;
    om_arena scratch;
    om_pval *values, **slots;
    void **ptr;
} size_check;

/* Sizes of the inputs; false when some are not declared, or decide others by their contents. */
static bool declared_sizes(size_check *k) {
    const om_graph *g = k->p->graph;
    for (uint32_t i = 0; i < k->p->n_inputs; i++) {
        const om_gvalue *v = &g->values[g->inputs[i]];
        om_pval *x         = &k->values[g->inputs[i]];
        if (v->rank < 0 || v->rank > OM_MAX_RANK || k->p->by_value[i]) return false;
        for (int a = 0; a < v->rank; a++)
            if ((x->shape[a] = v->dims[a].value) < 0) return false;
        x->rank = v->rank;
        if (!omi_numel_of(x->dtype, x->rank, x->shape, &x->numel)) return false;
    }
    return true;
}

/* An error raised while a node was evaluated is a problem of the graph, but for lack of memory. */
static om_status list_pending(size_check *k, uint32_t node) {
    om_error e;
    if (!omi_failed()) return OM_OK;
    om_status s = om_pending();
    if (s == OM_ERR_NOMEM || s == OM_ERR_CANCELLED || s == OM_ERR_INTERNAL) return s;
    om_catch(&e);
    omi_problems_note(k->pr, k->p->graph, node, s, e.message);
    return OM_OK;
}

static om_status fold_small(size_check *k, om_nctx *c) {
    void **dst = omi_arena_array(&k->scratch, c->n_out + 1u, sizeof *dst);
    if (!dst) return OM_ERR_NOMEM;
    for (uint32_t i = 0; i < c->n_out; i++) {
        if (!c->out[i]) continue;
        if (c->out[i]->numel > OM_FOLD_LIMIT) return OM_OK;
        if (!(dst[i] = omi_arena_alloc(&k->scratch, omi_pval_bytes(c->out[i]) + 1)))
            return OM_ERR_NOMEM;
    }
    if (omi_program_eval(k->p, c, k->ptr, dst) != OM_OK) return list_pending(k, c->index);
    for (uint32_t i = 0; i < c->n_out; i++)
        if (c->out[i]) c->out[i]->known = dst[i];
    return OM_OK;
}

static om_status check_node_sizes(size_check *k, const om_pnode *n) {
    om_nctx c  = omi_program_ctx(k->p, n, k->values, k->slots, &k->scratch, 1);
    bool sized = true;
    for (uint32_t i = 0; i < c.n_in; i++)
        if (c.in[i] && c.in[i]->rank < 0) sized = false;
    for (uint32_t i = 0; i < c.n_out; i++)
        if (c.out[i]) c.out[i]->rank = -1;
    if (!sized || omi_node_met(c.def)) return OM_OK;
    if (c.def->infer(&c) != OM_OK) {
        if (c.status == OM_OK) return list_pending(k, c.index);
        om_status s = c.status == OM_ERR_SHAPE ? OM_ERR_MALFORMED : c.status;
        omi_problems_note(k->pr, k->p->graph, c.index, s, c.message);
        for (uint32_t i = 0; i < c.n_out; i++)
            if (c.out[i]) c.out[i]->rank = -1;
        return OM_OK;
    }
    bool wanted = omi_program_decides_sizes(k->p, &c); // nothing else need be known to check sizes
    return wanted && c.def->fold && c.def->fold(&c) ? fold_small(k, &c) : OM_OK;
}

om_status omi_program_check_sizes(const om_program *p, om_problems *pr) {
    size_check k = {.p = p, .pr = pr};
    size_t n     = p->n_values + 1u;
    om_status s  = OM_OK;
    k.values     = omi_arena_array(&k.scratch, n, sizeof *k.values);
    k.slots      = omi_arena_array(&k.scratch, p->max_io + 1u, sizeof *k.slots);
    k.ptr        = omi_arena_array(&k.scratch, n, sizeof *k.ptr);
    if (!k.values || !k.slots || !k.ptr) s = OM_ERR_NOMEM;
    if (s == OM_OK) memcpy(k.values, p->values, p->n_values * sizeof *k.values);
    bool fixed = s == OM_OK && declared_sizes(&k);
    for (uint32_t i = 0; fixed && s == OM_OK && i < p->n_nodes; i++) {
        s = check_node_sizes(&k, &p->nodes[i]);
        if (s == OM_OK) s = omi_check_cancel();
    }
    omi_arena_clear(&k.scratch);
    return s;
}
