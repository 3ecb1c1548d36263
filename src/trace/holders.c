/*
 * holders.c -- which value a size is read from (symbolic-axes 6).
 *
 * The first graph input that has the atom as an axis; else the first ancestor of the data operand,
 * which costs no extra work; else what om_expand_as named; else the first in the walk from the
 * outputs that does not depend on the node itself.
 */
#include <string.h>

#include "trace/emit.h"

static int axis_of(const om_tvalue *v, const om_atom *a) {
    for (int i = 0; v && i < v->rank; i++)
        if (v->e[i].n == 1 && v->e[i].coef == 1 && v->e[i].a[0] == a) return i;
    return -1;
}

typedef struct om_search {
    OM_VEC(om_tnode *) stack;
    OM_VEC(uint32_t) next;
} om_search;

static bool search_push(om_search *s, om_tnode *n, uint32_t stamp) {
    n->stamp = stamp;
    if (!OMI_PUSH(&s->stack, n)) return false;
    return OMI_PUSH(&s->next, 0);
}

static om_tnode *resolved_child(const om_tnode *n, uint32_t i) {
    if (i < n->n_in) return n->in[i] ? n->in[i]->node : NULL;
    om_holder *h = &n->operand->holders[(i - n->n_in) / OM_MAX_ATOMS][(i - n->n_in) % OM_MAX_ATOMS];
    return h->v ? h->v->node : NULL;
}

/* Goes through root's node and its ancestors, inputs left to right, ancestors first, until one of
 * them holds a (a not NULL: *found is set) or is `node`. False when raised. */
static bool search_holders(om_emit *em, om_tnode *root, const om_atom *a, const om_tnode *node,
                           om_holder *found, bool *met) {
    om_search s = {0};
    bool ok     = true;
    em->stamp++;
    if (root) ok = search_push(&s, root, em->stamp);
    while (ok && s.stack.n && !(found && found->v) && !*met) {
        om_tnode *n       = s.stack.v[s.stack.n - 1];
        uint32_t children = n->n_in;
        if (n->operand && !a) children += (uint32_t)n->operand->rank * OM_MAX_ATOMS;
        if (s.next.v[s.next.n - 1] < children) {
            om_tnode *c = resolved_child(n, s.next.v[s.next.n - 1]++);
            if (c && c->stamp != em->stamp) ok = search_push(&s, c, em->stamp);
            continue;
        }
        s.stack.n--;
        s.next.n--;
        *met = n == node;
        for (uint32_t k = 0; a && k < n->n_out && !found->v; k++) {
            int axis = axis_of(n->out[k], a);
            if (axis >= 0) *found = (om_holder){n->out[k], axis};
        }
    }
    OMI_VEC_FREE(&s.stack);
    OMI_VEC_FREE(&s.next);
    return ok;
}

/* The first in the walk whose value does not need n. */
static bool anywhere(om_emit *em, const om_tnode *n, const om_atom *a, om_holder *found) {
    const om_holders *all = &em->tr->holders[a->index];
    for (size_t i = 0; i < all->n; i++) {
        bool met = false;
        if (!search_holders(em, all->v[i].v->node, NULL, n, NULL, &met)) return false;
        if (!met) return *found = all->v[i], true;
    }
    om_extent e = omi_ext_atom((om_atom *)(uintptr_t)a);
    omi_fail_trace(
        OM_TRACE_SYMBOLIC_SHAPE,
        "%s needs the size '%s', which no value that the outputs need has as an axis: use "
        "om_expand_as",
        OMI_SITE(&n->site), OMI_EXT(&e));
    return false;
}

static bool resolve_atom(om_emit *em, const om_tnode *n, const om_atom *a, om_holder *found) {
    bool met              = false;
    const om_holders *all = &em->tr->holders[a->index];
    if (all->n && all->v[0].v->kind == OM_TV_INPUT) return *found = all->v[0], true;
    // A Reshape's sizes are its input's: of an atom that one call derived, all holders come from
    // that call's result, which is the first of them in the walk. Else they have to be searched.
    if (all->n && a->n_made == 1 && !em->tr->by_shape && !strcmp(n->type, "Reshape"))
        return *found = all->v[0], true;
    if (n->in[0] && !search_holders(em, n->in[0]->node, a, NULL, found, &met)) return false;
    om_tvalue *hint = n->operand->hint;
    if (!found->v && hint && !search_holders(em, hint->node, a, NULL, found, &met)) return false;
    return found->v ? true : anywhere(em, n, a, found);
}

bool omi_emit_resolve(om_emit *em, om_tnode *n) {
    om_operand *o = n->operand;
    if (!o) return true;
    for (int i = 0; i < o->rank; i++) {
        omi_ext_sort(&o->e[i]);
        for (int k = 0; k < o->e[i].n; k++)
            if (!resolve_atom(em, n, o->e[i].a[k], &o->holders[i][k])) return false;
    }
    return true;
}
