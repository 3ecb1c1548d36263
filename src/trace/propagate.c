/*
 * propagate.c -- how extents meet: broadcasting and the agreement of axes (symbolic-axes 3).
 *
 * A fixed size of 2 or more that meets a symbolic one holds only at the example, so it is refused
 * (TD-3). Two different symbolic extents that are equal in the example become an atom of their own,
 * held by the output, with a note: true at the example, checked again when the graph runs.
 */
#include <stdio.h>

#include "trace/lower.h"

om_xshape omi_lw_shape_of(const om_tvalue *v) {
    om_xshape s = {.rank = v->rank};
    for (int i = 0; i < v->rank; i++)
        s.e[i] = v->e[i];
    return s;
}

om_xshape omi_lw_static(int rank, const int64_t *dims) {
    om_xshape s = {.rank = rank};
    for (int i = 0; i < rank; i++)
        s.e[i] = omi_ext_static(dims[i]);
    return s;
}

bool omi_lw_is_static(const om_tvalue *v) {
    for (int i = 0; i < v->rank; i++)
        if (!omi_ext_is_static(&v->e[i])) return false;
    return true;
}

const char *omi_lw_text(const om_lowering *lw, uint32_t i, omi_text *buf) {
    const om_tensor *t = i < lw->call->n_in ? lw->call->in[i] : NULL;
    return t ? omi_tensor_text(t, buf) : "the operand";
}

/* The parameter that operand i is, or else the first of the storage that it is a view of. */
static const om_tparam *param_at(const om_lowering *lw, uint32_t i) {
    const om_tensor *t     = lw->call->in[i];
    const om_tparam *first = omi_map_get(&lw->tr->param_map, t->storage->id);
    for (const om_tparam *p = first; p; p = p->next)
        if (omi_tr_same_view(p, t->offset, t->dtype, t->rank, t->shape, t->strides)) return p;
    return first;
}
static const char *param_name(const om_lowering *lw, uint32_t i) {
    const om_tparam *p = param_at(lw, i);
    return p ? p->name : "";
}

/* A constant that learns, was named, or stands where the operator has its weights. */
static bool is_weight(const om_lowering *lw, uint32_t i) {
    static const om_op ops[] = {OM_OP_LINEAR, OM_OP_CONV2D, OM_OP_LAYER_NORM, OM_OP_BATCH_NORM2D};
    if ((lw->call->in[i]->flags & OM_T_GRAD) || param_at(lw, i)) return true;
    for (size_t k = 0; i > 0 && k < OM_COUNT(ops); k++)
        if (lw->call->op == ops[k]) return true;
    return false;
}

static bool refuse_static(om_lowering *lw, uint32_t fixed, int fixed_axis, int64_t size,
                          uint32_t other, int other_axis, const om_extent *sym) {
    bool constant =
        fixed < lw->call->n_in && lw->call->in[fixed] && !omi_traced(lw->call->in[fixed]);
    char fix[160];
    if (constant && is_weight(lw, fixed))
        snprintf(
            fix, sizeof fix,
            "a weight has one size; leave axis %d of the input unnamed (NULL) in om_trace_input",
            other_axis);
    else
        snprintf(
            fix, sizeof fix,
            "build it from the input (om_zeros_like, om_full_like, om_arange_like, om_expand_as)");
    omi_fail_trace(
        OM_TRACE_SYMBOLIC_SHAPE,
        "%s%s%s%s has the fixed size %lld on axis %d where axis %d of %s is symbolic '%s': that "
        "holds only in the example; %s",
        constant ? "the constant " : "", OMI_LT(lw, fixed), constant ? " " : "",
        constant ? param_name(lw, fixed) : "", (long long)size, fixed_axis, other_axis,
        OMI_LT(lw, other), OMI_EXT(sym), fix);
    return false;
}

bool omi_lw_unify(om_lowering *lw, uint32_t a, const om_extent *ea, int ax, uint32_t b,
                  const om_extent *eb, int bx, bool broadcast, om_extent *out) {
    if (omi_failed()) return false;
    if (omi_ext_equal(ea, eb)) return *out = *ea, true;
    bool sa = omi_ext_is_static(ea), sb = omi_ext_is_static(eb);
    if (broadcast && sa && ea->size == 1) return *out = *eb, true;
    if (broadcast && sb && eb->size == 1) return *out = *ea, true;
    if (sa && sb) { // the operator has accepted the sizes, so this cannot meet
        omi_fail(OM_ERR_INTERNAL, "sizes %lld and %lld met in a trace", (long long)ea->size,
                 (long long)eb->size);
        return false;
    }
    if (sa) return refuse_static(lw, a, ax, ea->size, b, bx, eb);
    if (sb) return refuse_static(lw, b, bx, eb->size, a, ax, ea);
    if (ea->size != eb->size) { // one is 1 in the example only: which one stretches is unknown
        omi_fail_trace(
            OM_TRACE_SYMBOLIC_SHAPE,
            "axis %d of %s is symbolic '%s' with size %lld in the example and meets '%s' of "
            "size %lld: trace with an example that makes the derived size 2 or more",
            ax, OMI_LT(lw, a), OMI_EXT(ea), (long long)ea->size, OMI_EXT(eb), (long long)eb->size);
        return false;
    }
    omi_tr_note(lw->tr, OM_NOTE_EQUAL, &lw->site,
                "axis %d of %s is '%s' and axis %d of %s is '%s': equal at the example sizes only",
                ax, OMI_LT(lw, a), OMI_EXT(ea), bx, OMI_LT(lw, b), OMI_EXT(eb));
    return omi_ext_either(lw->tr->atoms, ea, eb, out);
}

bool omi_lw_broadcast(om_lowering *lw, uint32_t a, const om_xshape *sa, uint32_t b,
                      const om_tvalue *vb, om_xshape *out) {
    if (omi_failed()) return false;
    om_extent one = omi_ext_static(1);
    om_xshape r   = {.rank = sa->rank > vb->rank ? sa->rank : vb->rank};
    for (int i = 0; i < r.rank; i++) {
        int ia = i - (r.rank - sa->rank), ib = i - (r.rank - vb->rank);
        const om_extent *ea = ia < 0 ? &one : &sa->e[ia], *eb = ib < 0 ? &one : &vb->e[ib];
        if (!omi_lw_unify(lw, a, ea, ia, b, eb, ib, true, &r.e[i])) return false;
    }
    *out = r;
    return true;
}

bool omi_lw_same_extents(const om_tvalue *x, const om_xshape *s) {
    if (x->rank != s->rank) return false;
    for (int i = 0; i < s->rank; i++)
        if (!omi_ext_equal(&x->e[i], &s->e[i])) return false;
    return true;
}

om_tvalue *omi_lw_alias(om_lowering *lw, om_tvalue *x) {
    if (omi_failed()) return NULL;
    lw->tr->n_aliases++;
    return x;
}

bool omi_lw_need_static(om_lowering *lw, uint32_t i, const om_tvalue *v, int axis,
                        const char *what) {
    if (omi_failed()) return false;
    if (omi_ext_is_static(&v->e[axis])) return true;
    omi_fail_trace(
        OM_TRACE_SYMBOLIC_SHAPE,
        "axis %d of %s is symbolic '%s' and %s: the graph would only fit the example; leave "
        "this axis out of axes, or do it before the input",
        axis, OMI_LT(lw, i), OMI_EXT(&v->e[axis]), what);
    return false;
}
