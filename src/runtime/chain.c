/*
 * chain.c -- a convolution or product with the nodes behind it that become steps of its epilogue.
 *
 * The wiring is the program's (passes/fuse_epilogue.c); here the sizes decide how far a chain goes.
 * It runs where its last node stands, because a residual may be computed after the first.
 */
#include "runtime/builder.h"

struct om_chain {
    uint32_t head, last;
    om_fused fused;
};

om_status omi_chain_from(om_builder *b, uint32_t i) {
    const om_program *p = b->program;
    const om_pnode *n   = &p->nodes[i];
    if (!n->next || !omi_fuse_head(omi_node_select(n->def, p->arith == OM_FAST))) return OM_OK;
    om_chain ch = {.head = i, .last = i};
    om_nctx c   = omi_program_ctx(p, n, b->values, b->slots, &b->plan->arena, 1);
    if (!omi_fuse_begin(&c, &ch.fused)) return OM_OK;
    for (uint32_t at; (at = p->nodes[ch.last].next) && !b->done[at]; ch.last = at) {
        bool failed = false;
        c           = omi_program_ctx(p, &p->nodes[at], b->values, b->slots, &b->plan->arena, 1);
        if (!omi_fuse_step(&c, p->nodes[at].via, &ch.fused, &failed)) {
            if (failed) return om_pending();
            break;
        }
        b->done[ch.last] = true;
    }
    if (ch.last == i) return OM_OK;
    om_chain *keep = omi_arena_alloc(&b->plan->arena, sizeof *keep);
    if (!keep) return om_pending();
    *keep             = ch;
    b->chain[ch.last] = keep;
    return OM_OK;
}

om_nctx omi_chain_ctx(om_builder *b, om_chain *ch) {
    const om_program *p = b->program;
    om_pnode n          = p->nodes[ch->head];
    uint32_t in[OM_CHAIN_IO], k = 0;
    for (; k < 3; k++)
        in[k] = k < n.n_in ? n.in[k] : OM_NO_VALUE;
    for (int s = 0; s < ch->fused.ep.n; s++) {
        in[k++] = ch->fused.a[s];
        in[k++] = ch->fused.b[s];
    }
    n.in      = in;
    n.n_in    = k;
    n.out     = p->nodes[ch->last].out;
    om_nctx c = omi_program_ctx(p, &n, b->values, b->slots, &b->plan->arena, b->plan->workers);
    c.fused   = &ch->fused;
    return c;
}
