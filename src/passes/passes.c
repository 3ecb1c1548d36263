/*
 * passes.c -- the passes of passes.def: identity, constants, batch norm into convolution, dead
 * code.
 *
 * Each works on the program's wiring only. A removed node has def == NULL.
 */
#include <math.h>
#include <string.h>

#include "base/checked.h"
#include "base/thread.h"
#include "graphops/forms.h"
#include "passes/program.h"

typedef om_status (*pass_fn)(om_program *p);

static bool is_type(const om_pnode *n, const char *type) {
    return n->def && strcmp(n->def->type, type) == 0;
}

/* ---- identity -----------------------------------------------------------------------------------
 */

static om_status pass_identity(om_program *p) {
    uint32_t *to = omi_alloc((p->n_values + 1u) * sizeof *to);
    if (!to) return OM_ERR_NOMEM;
    for (uint32_t i = 0; i < p->n_values; i++)
        to[i] = i;
    for (uint32_t i = 0; i < p->n_nodes; i++) {
        om_pnode *n = &p->nodes[i];
        for (uint32_t k = 0; k < n->n_in; k++)
            if (n->in[k] != OM_NO_VALUE) n->in[k] = to[n->in[k]];
        if (!is_type(n, "Identity")) continue;
        to[n->out[0]] = n->in[0];
        n->def        = NULL;
    }
    for (uint32_t i = 0; i < p->graph->n_outputs; i++)
        p->outputs[i] = to[p->outputs[i]];
    omi_free(to, (p->n_values + 1u) * sizeof *to);
    return OM_OK;
}

/* ---- constants ----------------------------------------------------------------------------------
 */

/* Worth keeping for the life of the session: not larger than what it was made from, or small. */
static bool worth_folding(const om_nctx *c) {
    int64_t in = OM_FOLD_LIMIT * 8, out = 0;
    for (uint32_t i = 0; i < c->n_in; i++)
        if (c->in[i]) in += (int64_t)omi_pval_bytes(c->in[i]);
    for (uint32_t k = 0; k < c->n_out; k++)
        if (c->out[k]) out += (int64_t)omi_pval_bytes(c->out[k]);
    return out <= in;
}

#define FOLD_OUTPUTS 64

static om_status fold_node(om_program *p, om_pnode *n, om_pval **slots, void **ptr,
                           om_arena *scratch) {
    om_nctx c = omi_program_ctx(p, n, p->values, slots, scratch, 1);
    if (n->n_out > FOLD_OUTPUTS || n->n_in == 0 || !omi_fold_known(&c)) return OM_OK;
    for (uint32_t i = 0; i < n->n_in; i++)
        if (c.in[i] && !c.in[i]->known) return OM_OK;
    if (n->def->infer(&c) != OM_OK) return c.status != OM_OK ? omi_program_raise(&c) : om_pending();
    om_buffer *b[FOLD_OUTPUTS] = {0};
    void *dst[FOLD_OUTPUTS]    = {0};
    om_status s                = OM_OK;
    bool keep                  = worth_folding(&c);
    for (uint32_t k = 0; keep && k < n->n_out && s == OM_OK; k++) {
        if (!c.out[k]) continue;
        b[k] = omi_buffer_new(omi_pval_bytes(c.out[k]) + 1);
        if (!b[k]) s = OM_ERR_NOMEM;
        dst[k] = b[k] ? b[k]->data : NULL;
    }
    if (keep && s == OM_OK) s = omi_program_eval(p, &c, ptr, dst);
    for (uint32_t k = 0; k < n->n_out; k++) {
        if (!c.out[k]) continue;
        om_pval *v = c.out[k];
        if (keep && s == OM_OK && b[k])
            s = omi_program_set_const(p, v->index, v->rank, v->shape, b[k]);
        else {
            omi_buffer_release(b[k]);
            v->rank = -1; // sizes belong to plans
        }
    }
    if (keep && s == OM_OK) n->def = NULL;
    return s;
}

static om_status pass_fold_constants(om_program *p) {
    size_t bytes     = (p->n_values + 1u) * sizeof(void *),
           sbytes    = (p->max_io + 1u) * sizeof(om_pval *);
    void **ptr       = omi_calloc(bytes);
    om_pval **slots  = omi_calloc(sbytes);
    om_arena scratch = {0};
    om_status s      = ptr && slots ? OM_OK : OM_ERR_NOMEM;
    for (uint32_t i = 0; s == OM_OK && i < p->n_nodes; i++) {
        om_pnode *n = &p->nodes[i];
        if (n->def && n->def->fold == omi_fold_known) s = fold_node(p, n, slots, ptr, &scratch);
        if (s == OM_OK) s = omi_check_cancel();
    }
    omi_arena_clear(&scratch);
    omi_free(ptr, bytes);
    omi_free(slots, sbytes);
    return s;
}

/* ---- batch norm into the convolution before it: Fast only, the weights round anew ------------ */

static bool constant_floats(const om_program *p, uint32_t v, int64_t n) {
    if (v == OM_NO_VALUE) return false;
    const om_pval *x = &p->values[v];
    return x->known && x->dtype == OM_F32 && x->numel == n;
}

/* w' = w * s, b' = (b - mean) * s + beta with s = gamma / sqrt(var + eps), in float64, rounded
 * once. */
static om_status scale_weights(om_program *p, const om_pnode *conv, const om_pnode *bn, float eps,
                               uint32_t *w_new, uint32_t *b_new) {
    const om_pval *w = &p->values[conv->in[1]];
    const float *b =
        conv->n_in > 2 && conv->in[2] != OM_NO_VALUE ? p->values[conv->in[2]].known : NULL;
    const float *gamma = p->values[bn->in[1]].known, *beta = p->values[bn->in[2]].known,
                *mean = p->values[bn->in[3]].known, *var = p->values[bn->in[4]].known;
    const float *from = w->known;
    int64_t oc = w->shape[0], each = w->numel / oc;
    om_buffer *wb = omi_buffer_new(omi_pval_bytes(w)),
              *bb = omi_buffer_new((size_t)oc * sizeof(float));
    if (!wb || !bb) return omi_buffer_release(wb), omi_buffer_release(bb), OM_ERR_NOMEM;
    float *wo = wb->data, *bo = bb->data;
    for (int64_t o = 0; o < oc; o++) {
        double s = (double)gamma[o] / sqrt((double)var[o] + (double)eps);
        for (int64_t i = 0; i < each; i++)
            wo[o * each + i] = (float)(from[o * each + i] * s);
        bo[o] = (float)(((b ? (double)b[o] : 0.0) - mean[o]) * s + beta[o]);
    }
    *w_new = omi_program_add_const(p, w->name, OM_F32, w->rank, w->shape, wb);
    if (*w_new == OM_NO_VALUE) return omi_buffer_release(bb), om_pending();
    *b_new = omi_program_add_const(p, p->values[bn->in[2]].name, OM_F32, 1, &oc, bb);
    return *b_new == OM_NO_VALUE ? om_pending() : OM_OK;
}

static om_status fold_pair(om_program *p, om_pnode *conv, om_pnode *bn) {
    const om_pval *w = &p->values[conv->in[1]];
    float eps        = ((const om_batch_norm_form *)bn->form)->eps;
    if (!w->known || w->dtype != OM_F32 || w->rank < 3 || w->numel == 0) return OM_OK;
    int64_t oc = w->shape[0];
    for (int i = 1; i < 5; i++)
        if (!constant_floats(p, bn->in[i], oc)) return OM_OK;
    if (conv->n_in > 2 && conv->in[2] != OM_NO_VALUE && !constant_floats(p, conv->in[2], oc))
        return OM_OK;
    uint32_t w_new, b_new;
    uint32_t *in = omi_arena_array(&p->arena, 3, sizeof *in);
    if (!in) return OM_ERR_NOMEM;
    OM_TRY(scale_weights(p, conv, bn, eps, &w_new, &b_new));
    in[0]        = conv->in[0];
    in[1]        = w_new;
    in[2]        = b_new;
    conv->in     = in;
    conv->n_in   = 3;
    conv->out[0] = bn->out[0];
    bn->def      = NULL;
    if (p->max_io < 4) p->max_io = 4;
    return OM_OK;
}

static om_status pass_fold_batch_norm(om_program *p) {
    size_t bytes   = (p->n_values + 1u) * 2 * sizeof(uint32_t);
    uint32_t *uses = omi_calloc(bytes), *producer = uses ? uses + p->n_values : NULL;
    om_status s       = uses ? OM_OK : OM_ERR_NOMEM;
    uint32_t n_values = p->n_values;
    for (uint32_t i = 0; s == OM_OK && i < p->n_nodes; i++) {
        const om_pnode *n = &p->nodes[i];
        for (uint32_t k = 0; n->def && k < n->n_in; k++)
            if (n->in[k] != OM_NO_VALUE) uses[n->in[k]]++;
        for (uint32_t k = 0; n->def && k < n->n_out; k++)
            if (n->out[k] != OM_NO_VALUE) producer[n->out[k]] = i + 1;
    }
    for (uint32_t i = 0; s == OM_OK && i < p->graph->n_outputs; i++)
        uses[p->outputs[i]]++;
    for (uint32_t i = 0; s == OM_OK && i < p->n_nodes; i++) {
        om_pnode *bn = &p->nodes[i];
        if (!is_type(bn, "BatchNormalization") || bn->in[0] >= n_values || uses[bn->in[0]] != 1)
            continue;
        uint32_t at = producer[bn->in[0]];
        if (at && is_type(&p->nodes[at - 1], "Conv")) s = fold_pair(p, &p->nodes[at - 1], bn);
    }
    omi_free(uses, bytes);
    return s;
}

/* ---- dead code ----------------------------------------------------------------------------------
 */

static om_status pass_dead_code(om_program *p) {
    bool *used = omi_calloc(p->n_values + 1u);
    if (!used) return OM_ERR_NOMEM;
    for (uint32_t i = 0; i < p->graph->n_outputs; i++)
        used[p->outputs[i]] = true;
    for (uint32_t i = p->n_nodes; i-- > 0;) {
        om_pnode *n = &p->nodes[i];
        bool live   = false;
        if (!n->def) continue;
        for (uint32_t k = 0; k < n->n_out; k++)
            live = live || (n->out[k] != OM_NO_VALUE && used[n->out[k]]);
        if (!live) n->def = NULL;
        for (uint32_t k = 0; live && k < n->n_in; k++)
            if (n->in[k] != OM_NO_VALUE) used[n->in[k]] = true;
    }
    omi_free(used, p->n_values + 1u);
    uint32_t n = 0;
    for (uint32_t i = 0; i < p->n_nodes; i++)
        if (p->nodes[i].def) p->nodes[n++] = p->nodes[i];
    p->n_nodes = n;
    return OM_OK;
}

/* ---- the list -----------------------------------------------------------------------------------
 */

om_status omi_run_passes(om_program *p) {
    static const struct {
        pass_fn fn;
        int where;
    } passes[] = {
#define OM_PASS(name, where) {pass_##name, (where)},
#include "passes/passes.def"
#undef OM_PASS
    };
    int here = p->arith == OM_FAST ? OM_PASS_FAST : OM_PASS_EXACT;
    for (size_t i = 0; i < OM_COUNT(passes); i++)
        if (passes[i].where & here) OM_TRY(passes[i].fn(p));
    return OM_OK;
}
