/*
 * operand.c -- the size operand of Reshape and Expand (symbolic-axes 6, TD-5, TD-6).
 *
 * Constant when nothing needs computing: all static, or a Reshape with exactly one extent that is
 * not static, which becomes -1 (a product such as N*T included). Else the extents are kept, and
 * finish makes Shape, Mul and Concat nodes of them once it knows which values are in the graph.
 */
#include <string.h>

#include "trace/lower.h"

/* Appends one input to n. */
static bool add_input(om_lowering *lw, om_tnode *n, om_tvalue *v) {
    if (omi_failed() || !n || !v) return false;
    om_tvalue **in = omi_arena_array(&lw->tr->arena, n->n_in + 1, sizeof *in);
    if (!in) return false;
    memcpy(in, n->in, n->n_in * sizeof *in);
    in[n->n_in++] = v;
    n->in         = in;
    return true;
}

static bool keep_operand_extents(om_lowering *lw, om_tnode *n, const om_xshape *s,
                                 om_tvalue *hint) {
    om_operand *o = omi_arena_alloc(&lw->tr->arena, sizeof *o);
    if (!o) return false;
    o->rank    = s->rank;
    o->hint    = hint;
    o->e       = omi_arena_array(&lw->tr->arena, (size_t)s->rank, sizeof *o->e);
    o->holders = omi_arena_array(&lw->tr->arena, (size_t)s->rank, sizeof *o->holders);
    if (!o->e || !o->holders) return false;
    memcpy(o->e, s->e, (size_t)s->rank * sizeof *o->e);
    n->operand = o;
    return true;
}

bool omi_operand_reshape(om_lowering *lw, om_tnode *n, const om_xshape *s, int64_t *allowzero) {
    if (omi_failed() || !n) return false;
    int64_t list[OM_MAX_RANK];
    int symbolic = 0;
    bool zero    = false;
    for (int i = 0; i < s->rank; i++) {
        bool fixed = omi_ext_is_static(&s->e[i]);
        list[i]    = fixed ? s->e[i].size : -1;
        symbolic += !fixed;
        zero |= fixed && list[i] == 0;
    }
    *allowzero = zero || symbolic > 1; // with allowzero=0 a 0 would copy the input's axis
    if (symbolic == 0 || (symbolic == 1 && !zero))
        return add_input(lw, n, omi_lw_list(lw, s->rank, list));
    return keep_operand_extents(lw, n, s, NULL);
}

bool omi_operand_expand(om_lowering *lw, om_tnode *n, const om_xshape *s, om_tvalue *hint) {
    if (omi_failed() || !n) return false;
    int64_t list[OM_MAX_RANK];
    for (int i = 0; i < s->rank; i++) {
        if (!omi_ext_is_static(&s->e[i])) {
            lw->tr->by_shape = true;
            return keep_operand_extents(lw, n, s, hint);
        }
        list[i] = s->e[i].size;
    }
    return add_input(lw, n, omi_lw_list(lw, s->rank, list));
}
