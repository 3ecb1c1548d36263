/*
 * fuse_epilogue.c -- which nodes may become steps of the epilogue of the convolution or product
 * before them (CD-40): batch norms, sums with a bias or a residual, activations.
 *
 * Bits: a step is its node's arithmetic with its node's rounding, in the order of the nodes, so
 * nothing changes. A sum is symmetric; of two NaNs it keeps another one, and all NaNs are one in
 * what is handed out (AR-1.4).
 *
 * This pass only follows the wiring, in one walk: a node is taken by the node that computes its
 * operand when nobody else reads that value and it is no output of the graph. Of the two operands
 * of a sum that one takes it which is computed later, so that nothing waits long. Whether a step
 * fits is a matter of sizes; the plan asks graphops/fuse.h and leaves the node alone where not.
 */
#include "base/alloc.h"
#include "graphops/fuse.h"
#include "passes/program.h"

typedef struct fuse_uses {
    uint32_t *uses, *producer; /* by value; number of the node + 1 */
} fuse_uses;

static void count_uses(const om_program *p, const fuse_uses *u) {
    for (uint32_t i = 0; i < p->n_nodes; i++) {
        const om_pnode *n = &p->nodes[i];
        for (uint32_t k = 0; k < n->n_in; k++)
            if (n->in[k] != OM_NO_VALUE) u->uses[n->in[k]]++;
        for (uint32_t k = 0; k < n->n_out; k++)
            if (n->out[k] != OM_NO_VALUE) u->producer[n->out[k]] = i + 1;
    }
    for (uint32_t i = 0; i < p->n_outputs; i++)
        u->uses[p->outputs[i]]++;
}

/* The node, + 1, that computes input k of n for n alone and can take n; 0: none. */
static uint32_t taker_of(const om_program *p, const fuse_uses *u, const om_pnode *n, uint32_t k) {
    if (k >= n->n_in || n->in[k] == OM_NO_VALUE || u->uses[n->in[k]] != 1) return 0;
    uint32_t at = u->producer[n->in[k]];
    if (!at || p->nodes[at - 1].n_out != 1) return 0;
    return p->nodes[at - 1].in_chain ? at : 0;
}

om_status omi_pass_fuse_epilogue(om_program *p) {
    size_t bytes = ((size_t)p->n_values + 1) * 2 * sizeof(uint32_t);
    fuse_uses u  = {omi_calloc(bytes), NULL};
    if (!u.uses) return OM_ERR_NOMEM;
    u.producer = u.uses + p->n_values;
    count_uses(p, &u);
    for (uint32_t i = 0; i < p->n_nodes; i++) {
        om_pnode *n         = &p->nodes[i];
        om_select_fn select = omi_node_select(n->def, p->arith == OM_FAST);
        bool either         = false;
        n->in_chain         = omi_fuse_head(select);
        if (!omi_fuse_follower(select, &either) || n->n_out != 1) continue;
        uint32_t a = taker_of(p, &u, n, 0), b = either ? taker_of(p, &u, n, 1) : 0;
        if (!a && !b) continue;
        n->via               = b > a;
        n->in_chain          = true;
        uint32_t taker       = (b > a ? b : a) - 1;
        p->nodes[taker].next = i;
    }
    omi_free(u.uses, bytes);
    return OM_OK;
}
