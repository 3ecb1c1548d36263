/*
 * fold_constants.c -- nodes of constants are evaluated once, by the kernels that would run them.
 *
 * Bits: the same kernels, so the same. Memory: one node may make little more than it reads, and all
 * of them together what omi_program_may_fold allows; what is not folded is simply run.
 */
#include "base/alloc.h"
#include "base/thread.h"
#include "passes/program.h"

#define FOLD_OUTPUTS 64

/* Worth keeping for the life of the session: not larger than what it was made from (an operand that
 * is there twice is one), or small; and within what all folding together may hold. */
static bool worth_folding(const om_program *p, const om_nctx *c) {
    size_t in = OM_FOLD_LIMIT * 8, out = 0;
    for (uint32_t i = 0; i < c->n_in; i++) {
        bool again = !c->in[i];
        for (uint32_t j = 0; j < i && i < FOLD_OUTPUTS; j++)
            again = again || c->in[j] == c->in[i];
        if (!again) in += omi_pval_bytes(c->in[i]);
    }
    for (uint32_t k = 0; k < c->n_out; k++)
        if (c->out[k]) out += omi_pval_bytes(c->out[k]) + 1;
    return out <= in && omi_program_may_fold(p, out);
}

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
    bool keep                  = worth_folding(p, &c);
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
        if (keep && s == OM_OK && b[k]) {
            p->folded += omi_pval_bytes(v) + 1;
            s = omi_program_set_const(p, v->index, v->rank, v->shape, b[k]);
        } else {
            omi_buffer_release(b[k]);
            v->rank = -1; // sizes belong to plans
        }
    }
    if (keep && s == OM_OK) n->def = NULL;
    return s;
}

om_status omi_pass_fold_constants(om_program *p) {
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
