/*
 * lower_concat.c -- Concat (its axis adds up) and Pad (operators 1.7).
 */
#include "trace/lower.h"

/* 32 - T zeros would be a fixed piece here: a single trace cannot tell, so it says so (D17). */
static void note_fixed_parts(om_lowering *lw, om_tvalue *const *in, uint32_t n, int axis) {
    const om_extent *sym = NULL;
    for (uint32_t k = 0; k < n && !sym; k++)
        if (!omi_ext_is_static(&in[k]->e[axis])) sym = &in[k]->e[axis];
    for (uint32_t k = 0; sym && k < n; k++)
        if (omi_ext_is_static(&in[k]->e[axis]) && in[k]->kind != OM_TV_NODE &&
            in[k]->kind != OM_TV_INPUT)
            omi_tr_note(lw->tr, OM_NOTE_FIXED, &lw->site,
                        "a constant piece of the fixed %lld is joined to symbolic axis %d ('%s')",
                        (long long)in[k]->e[axis].size, axis, OMI_EXT(sym));
}

/* Extents of all axes but the joined one agree; that one is the sum. */
static bool concat_extents(om_lowering *lw, om_tvalue *const *in, uint32_t n, int axis,
                           om_xshape *s) {
    *s = omi_lw_shape_of(in[0]);
    for (uint32_t k = 1; k < n; k++)
        for (int i = 0; i < s->rank; i++)
            if (i != axis && !omi_lw_unify(lw, 0, &s->e[i], i, k, &in[k]->e[i], i, false, &s->e[i]))
                return false;
    note_fixed_parts(lw, in, n, axis);
    const om_extent **parts = omi_arena_array(&lw->tr->arena, n, sizeof *parts);
    if (!parts) return false;
    for (uint32_t k = 0; k < n; k++)
        parts[k] = &in[k]->e[axis];
    return omi_ext_sum(lw->tr->atoms, (int)n, parts, &s->e[axis]);
}

static om_status lower_concat(om_lowering *lw, const om_call *call, om_tvalue *const *in,
                              om_tvalue **out) {
    const om_concat_raw *raw = call->raw;
    const om_concat_res *res = call->res;
    om_xshape s;
    if (!concat_extents(lw, in, call->n_in, (int)res->axis, &s)) return omi_lw_done();
    om_tnode *n = omi_lw_node(lw, "Concat", call->n_in, in, 1);
    omi_lw_int(lw, n, "axis", raw->axis);
    out[0] = omi_lw_out(lw, n, 0, (om_dtype)call->out[0]->dtype, &s);
    return omi_lw_done();
}
const om_lower_rule omi_lower_concat = {.emit = lower_concat};

static om_status lower_pad(om_lowering *lw, const om_call *call, om_tvalue *const *in,
                           om_tvalue **out) {
    const om_pad_raw *raw = call->raw;
    om_tvalue *x          = in[0];
    om_dtype t            = (om_dtype)x->dtype;
    om_xshape s           = {.rank = x->rank};
    int64_t pads[2 * OM_MAX_RANK], axes[OM_MAX_RANK];
    for (int i = 0; i < x->rank; i++) {
        axes[i]           = i;
        pads[i]           = raw->before.v[i];
        pads[x->rank + i] = raw->after.v[i];
        int64_t by        = raw->before.v[i] + raw->after.v[i];
        if (by && !omi_ext_is_static(&x->e[i]))
            omi_tr_note(lw->tr, OM_NOTE_FIXED, &lw->site,
                        "symbolic axis %d ('%s') is padded by the fixed %lld", i, OMI_EXT(&x->e[i]),
                        (long long)by);
        if (!omi_ext_add(lw->tr->atoms, &x->e[i], raw->before.v[i] + raw->after.v[i], &s.e[i]))
            return omi_lw_done();
    }
    om_tnode *n =
        omi_lw_node(lw, "Pad",
                    OMI_INS(x, omi_lw_list(lw, 2 * x->rank, pads), omi_lw_scalar(lw, t, raw->value),
                            omi_lw_list(lw, x->rank, axes)),
                    1);
    omi_lw_string(lw, n, "mode", "constant");
    out[0] = omi_lw_out(lw, n, 0, t, &s);
    return omi_lw_done();
}
const om_lower_rule omi_lower_pad = {.emit = lower_pad};
