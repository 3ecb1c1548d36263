/*
 * lower_shape.c -- Reshape, Permute, Squeeze, Unsqueeze, Expand, copies (operators 1.7).
 */
#include "trace/lower.h"

/* The first axes as they are and one that joins the rest: nothing to guess. */
static om_status lower_flatten(om_lowering *lw, const om_call *call, om_tvalue *const *in,
                               om_tvalue **out) {
    const om_reshape_raw *raw = call->raw;
    om_tvalue *x              = in[0];
    int kept                  = (int)raw->target.n - 1;
    om_xshape s               = {.rank = kept + 1};
    om_extent rest            = omi_ext_static(1);
    for (int i = 0; i < x->rank; i++)
        if (i < kept)
            s.e[i] = x->e[i];
        else if (!omi_ext_mul(&rest, &x->e[i], &rest))
            return omi_lw_done();
    s.e[kept] = rest;
    out[0]    = omi_lw_same_extents(x, &s) ? omi_lw_alias(lw, x)
                                           : omi_lw_reshape(lw, x, (om_dtype)x->dtype, &s);
    return omi_lw_done();
}

static om_status lower_reshape(om_lowering *lw, const om_call *call, om_tvalue *const *in,
                               om_tvalue **out) {
    const om_reshape_raw *raw = call->raw;
    const om_tensor *y        = call->out[0];
    int minus_one             = -1;
    om_xshape s;
    if (raw->joined) return lower_flatten(lw, call, in, out);
    for (int i = 0; i < raw->target.n; i++)
        if (raw->target.v[i] == -1) minus_one = i;
    if (!omi_lw_reshape_extents(lw, in[0], y->rank, y->shape, minus_one, &s)) return omi_lw_done();
    out[0] = omi_lw_same_extents(in[0], &s) ? omi_lw_alias(lw, in[0])
                                            : omi_lw_reshape(lw, in[0], (om_dtype)y->dtype, &s);
    return omi_lw_done();
}
const om_lower_rule omi_lower_reshape = {.emit = lower_reshape};

static om_status lower_permute(om_lowering *lw, const om_call *call, om_tvalue *const *in,
                               om_tvalue **out) {
    const om_permute_res *res = call->res;
    om_xshape s               = {.rank = in[0]->rank};
    for (int i = 0; i < s.rank; i++)
        s.e[i] = in[0]->e[res->perm.v[i]];
    om_tnode *n = omi_lw_node(lw, "Transpose", OMI_INS(in[0]), 1);
    omi_lw_ints(lw, n, "perm", res->perm.n, res->perm.v);
    out[0] = omi_lw_out(lw, n, 0, (om_dtype)in[0]->dtype, &s);
    return omi_lw_done();
}
const om_lower_rule omi_lower_permute = {.emit = lower_permute};

/* Axes of a list as bits, negative ones counted from rank. */
static uint32_t axes_of(const om_list *axes, int rank) {
    uint32_t mask = 0;
    for (int64_t i = 0; i < axes->n; i++)
        mask |= 1u << (axes->v[i] < 0 ? axes->v[i] + rank : axes->v[i]);
    return mask;
}

/* TD-22: "every axis of size 1" is another list at another size of a symbolic axis. */
static bool all_of_size_1(om_lowering *lw, const om_tvalue *x, int64_t *ones, om_list *axes) {
    *axes = (om_list){.v = ones};
    for (int i = 0; i < x->rank; i++) {
        if (omi_ext_is_static(&x->e[i])) {
            if (x->e[i].size == 1) ones[axes->n++] = i;
            continue;
        }
        omi_fail_trace(
            OM_TRACE_SYMBOLIC_SHAPE,
            "all axes of size 1 of %s are squeezed, and axis %d is symbolic '%s': at size 1 it would go too; "
            "name the axes to squeeze",
            OMI_LT(lw, 0), i, OMI_EXT(&x->e[i]));
        return false;
    }
    return true;
}

static om_status lower_squeeze(om_lowering *lw, const om_call *call, om_tvalue *const *in,
                               om_tvalue **out) {
    const om_squeeze_raw *raw = call->raw;
    om_tvalue *x              = in[0];
    int64_t ones[OM_MAX_RANK];
    om_list axes = raw->axes;
    om_xshape s  = {0};
    if (!axes.n && !all_of_size_1(lw, x, ones, &axes)) return omi_lw_done();
    uint32_t mask = axes_of(&axes, x->rank);
    for (int i = 0; i < x->rank; i++)
        if (!(mask >> i & 1))
            s.e[s.rank++] = x->e[i];
        else if (!omi_lw_need_static(lw, 0, x, i, "has size 1 in the example only"))
            return omi_lw_done();
    out[0] = axes.n ? omi_lw_op(lw, "Squeeze", OMI_INS(x, omi_lw_list(lw, axes.n, axes.v)),
                                (om_dtype)x->dtype, &s)
                    : omi_lw_alias(lw, x);
    return omi_lw_done();
}
const om_lower_rule omi_lower_squeeze = {.emit = lower_squeeze};

static om_status lower_unsqueeze(om_lowering *lw, const om_call *call, om_tvalue *const *in,
                                 om_tvalue **out) {
    const om_unsqueeze_raw *raw = call->raw;
    om_tvalue *x                = in[0];
    int rank                    = x->rank + (int)raw->axes.n;
    uint32_t mask               = axes_of(&raw->axes, rank);
    om_xshape s                 = {.rank = rank};
    for (int i = 0, from = 0; i < rank; i++)
        s.e[i] = mask >> i & 1 ? omi_ext_static(1) : x->e[from++];
    out[0] = omi_lw_op(lw, "Unsqueeze", OMI_INS(x, omi_lw_list(lw, raw->axes.n, raw->axes.v)),
                       (om_dtype)x->dtype, &s);
    return omi_lw_done();
}
const om_lower_rule omi_lower_unsqueeze = {.emit = lower_unsqueeze};

/* ---- Expand (symbolic-axes 5): a size equal to a symbol's is the only evidence ------------------
 */

/* The extent that a fixed size 1 grows to. */
static bool grown(om_lowering *lw, int axis, int64_t t, om_extent *out) {
    om_tracer *tr  = lw->tr;
    om_atom *found = NULL;
    *out           = omi_ext_static(t);
    for (om_atom *a = t < 2 ? NULL : omi_atoms_of_size(tr->atoms, t); a; a = a->next_size) {
        if (a->kind == OM_ATOM_EQUAL) continue;
        if (found) {
            om_extent x = omi_ext_atom(found), y = omi_ext_atom(a);
            omi_fail_trace(OM_TRACE_SYMBOLIC_SHAPE,
                           "axis %d of %s is expanded to %lld, which could be '%s' or '%s': use "
                           "om_expand_as, or trace with other sizes",
                           axis, OMI_LT(lw, 0), (long long)t, OMI_EXT(&x), OMI_EXT(&y));
            return false;
        }
        found = a;
    }
    if (found) {
        *out = omi_ext_atom(found);
        omi_tr_note(tr, OM_NOTE_EXPAND, &lw->site,
                    "axis %d expanded to %lld is taken for '%s' (om_expand_as would say so)", axis,
                    (long long)t, OMI_EXT(out));
        return true;
    }
    for (size_t i = 0; i < tr->symbols.n; i++)
        if (t && t % tr->symbols.v[i]->example == 0)
            omi_tr_note(tr, OM_NOTE_EXPAND, &lw->site,
                        "axis %d is expanded to the fixed size %lld, a multiple of '%s'", axis,
                        (long long)t, tr->symbols.v[i]->name);
    return true;
}

static bool refuse_example_one(om_lowering *lw, int axis, const om_extent *e) {
    omi_fail_trace(
        OM_TRACE_SYMBOLIC_SHAPE,
        "axis %d of %s is symbolic '%s' with size 1 in the example and would be expanded: "
        "trace with a larger example",
        axis, OMI_LT(lw, 0), OMI_EXT(e));
    return false;
}

static om_tvalue *expand_node(om_lowering *lw, om_tvalue *x, const om_xshape *s,
                              const om_xshape *operand, om_tvalue *hint) {
    om_tnode *n = omi_lw_node(lw, "Expand", OMI_INS(x), 1);
    if (!omi_operand_expand(lw, n, operand, hint)) return NULL;
    return omi_lw_out(lw, n, 0, (om_dtype)x->dtype, s);
}

static om_status lower_expand(om_lowering *lw, const om_call *call, om_tvalue *const *in,
                              om_tvalue **out) {
    om_tvalue *x       = in[0];
    const om_tensor *y = call->out[0];
    om_xshape s = {.rank = y->rank}, operand = {.rank = y->rank};
    for (int i = 0, d = y->rank - x->rank; i < y->rank; i++) {
        om_extent one = omi_ext_static(1);
        om_extent e   = i < d ? one : x->e[i - d];
        bool is1      = omi_ext_is_static(&e) && e.size == 1;
        if (!is1 && e.size == y->shape[i]) {
            s.e[i]       = e;
            operand.e[i] = one; // 1 keeps whatever the axis has
        } else if (is1) {
            if (!grown(lw, i, y->shape[i], &s.e[i])) return omi_lw_done();
            operand.e[i] = s.e[i];
        } else {
            refuse_example_one(lw, i - d, &e);
            return omi_lw_done();
        }
    }
    out[0] =
        omi_lw_same_extents(x, &s) ? omi_lw_alias(lw, x) : expand_node(lw, x, &s, &operand, NULL);
    return omi_lw_done();
}
const om_lower_rule omi_lower_expand = {.emit = lower_expand};

static om_status lower_expand_as(om_lowering *lw, const om_call *call, om_tvalue *const *in,
                                 om_tvalue **out) {
    om_tvalue *x = in[0], *like = in[1];
    om_xshape s = {.rank = like->rank}, operand = {.rank = like->rank};
    (void)call;
    for (int i = 0, d = like->rank - x->rank; i < like->rank; i++) {
        om_extent one = omi_ext_static(1);
        om_extent e   = i < d ? one : x->e[i - d];
        if (omi_ext_is_static(&e) && e.size == 1) {
            s.e[i] = operand.e[i] = like->e[i];
            continue;
        }
        if (e.size == 1 && like->e[i].size != 1) {
            refuse_example_one(lw, i - d, &e);
            return omi_lw_done();
        }
        operand.e[i] = one;
        if (!omi_lw_unify(lw, 0, &e, i - d, 1, &like->e[i], i, false, &s.e[i]))
            return omi_lw_done();
    }
    out[0] = omi_lw_same_extents(x, &s)
                 ? omi_lw_alias(lw, x)
                 : expand_node(lw, x, &s, &operand, like->kind == OM_TV_SHAPE ? NULL : like);
    return omi_lw_done();
}
const om_lower_rule omi_lower_expand_as = {.emit = lower_expand_as, .shape_only = 2};

/* ---- copies: the result is the input's value (TR-1 aliases)
 * -------------------------------------- */

const om_lower_rule omi_lower_contiguous = {.alias = 1};
const om_lower_rule omi_lower_clone      = {.alias = 1};
