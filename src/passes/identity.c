/*
 * identity.c -- consumers of an Identity read its input.
 *
 * Bits: none are computed.
 */
#include <string.h>

#include "base/alloc.h"
#include "passes/program.h"

om_status omi_pass_identity(om_program *p) {
    uint32_t *to = omi_alloc((p->n_values + 1u) * sizeof *to);
    if (!to) return OM_ERR_NOMEM;
    for (uint32_t i = 0; i < p->n_values; i++)
        to[i] = i;
    for (uint32_t i = 0; i < p->n_nodes; i++) {
        om_pnode *n = &p->nodes[i];
        for (uint32_t k = 0; k < n->n_in; k++)
            if (n->in[k] != OM_NO_VALUE) n->in[k] = to[n->in[k]];
        if (!n->def || strcmp(n->def->type, "Identity") != 0) continue;
        to[n->out[0]] = n->in[0];
        n->def        = NULL;
    }
    for (uint32_t i = 0; i < p->n_outputs; i++)
        p->outputs[i] = to[p->outputs[i]];
    omi_free(to, (p->n_values + 1u) * sizeof *to);
    return OM_OK;
}
