/*
 * lower_embed.c -- Embedding: rows of a table; the output is the indices' extents and the row size.
 */
#include "trace/lower.h"

static om_status lower_embedding(om_lowering *lw, const om_call *call, om_tvalue *const *in,
                                 om_tvalue **out) {
    om_tvalue *w = in[0], *idx = in[1];
    om_xshape s   = omi_lw_shape_of(idx);
    s.e[s.rank++] = w->e[1];
    if (!omi_lw_check_indices(lw, 1, idx, &w->e[0], 0)) return omi_lw_done();
    om_tnode *n = omi_lw_node(lw, "Gather", OMI_INS(w, idx), 1);
    omi_lw_int(lw, n, "axis", 0);
    out[0] = omi_lw_out(lw, n, 0, (om_dtype)call->out[0]->dtype, &s);
    return omi_lw_done();
}
const om_lower_rule omi_lower_embedding = {.emit = lower_embedding};
