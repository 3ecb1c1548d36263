/*
 * dead_code.c -- nodes whose outputs nobody reads go; first of all, so that nothing is evaluated
 * for them.
 *
 * Bits: what goes is never read.
 */
#include "base/alloc.h"
#include "passes/program.h"

om_status omi_pass_dead_code(om_program *p) {
    bool *used = omi_calloc(p->n_values + 1u);
    if (!used) return OM_ERR_NOMEM;
    for (uint32_t i = 0; i < p->n_outputs; i++)
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
