/*
 * lower_binary.c -- elementwise operators of two and three operands, with broadcasting
 * (operators 1.3).
 */
#include "trace/lower.h"

static om_tvalue *joined(om_lowering *lw, const char *type, om_tvalue *a, om_tvalue *b,
                         om_dtype dtype) {
    om_xshape sa = omi_lw_shape_of(a), s;
    if (!omi_lw_broadcast(lw, 0, &sa, 1, b, &s)) return NULL;
    return omi_lw_op(lw, type, OMI_INS(a, b), dtype, &s);
}

#define TWO_OPERANDS(name, type)                                                                   \
    static om_status lower_##name(om_lowering *lw, const om_call *call, om_tvalue *const *in,      \
                                  om_tvalue **out) {                                               \
        out[0] = joined(lw, type, in[0], in[1], (om_dtype)call->out[0]->dtype);                    \
        return omi_lw_done();                                                                      \
    }                                                                                              \
    const om_lower_rule omi_lower_##name = {.emit = lower_##name};

// clang-format off
#define LOWER_WHOLE(name, node) TWO_OPERANDS(name, #node)
#define LOWER_MANY(name, node)  TWO_OPERANDS(name, #node)
#define LOWER_CALLED(name, node)
#define OM_BINARY(name, OP, ID, types, result, saves, backward, loop, kernel, made, node, since, node_types, gradient) LOWER_##made(name, node)
#include "compute/binary.def"
#undef OM_BINARY
// clang-format on

static om_status lower_not_equal(om_lowering *lw, const om_call *call, om_tvalue *const *in,
                                 om_tvalue **out) {
    (void)call;
    om_tvalue *e = joined(lw, "Equal", in[0], in[1], OM_BOOL);
    if (!e) return omi_lw_done();
    om_xshape s = omi_lw_shape_of(e);
    out[0]      = omi_lw_op(lw, "Not", OMI_INS(e), OM_BOOL, &s);
    return omi_lw_done();
}
const om_lower_rule omi_lower_not_equal = {.emit = lower_not_equal};

/* Extents of c broadcast with a; false when raised. */
static bool with_condition(om_lowering *lw, om_tvalue *const *in, uint32_t k, om_xshape *s) {
    om_xshape c = omi_lw_shape_of(in[0]);
    return omi_lw_broadcast(lw, 0, &c, k, in[k], s);
}

/* ONNX Runtime's Where has no bool kernel: Or(And(c, a), And(Not(c), b)). */
static om_status lower_where(om_lowering *lw, const om_call *call, om_tvalue *const *in,
                             om_tvalue **out) {
    om_dtype t = (om_dtype)call->out[0]->dtype;
    om_xshape ca, cb, all;
    if (!with_condition(lw, in, 1, &ca) || !with_condition(lw, in, 2, &cb) ||
        !omi_lw_broadcast(lw, 1, &ca, 2, in[2], &all))
        return omi_lw_done();
    if (t != OM_BOOL) {
        out[0] = omi_lw_op(lw, "Where", OMI_INS(in[0], in[1], in[2]), t, &all);
        return omi_lw_done();
    }
    om_xshape c    = omi_lw_shape_of(in[0]);
    om_tvalue *yes = omi_lw_op(lw, "And", OMI_INS(in[0], in[1]), t, &ca);
    om_tvalue *not = omi_lw_op(lw, "Not", OMI_INS(in[0]), t, &c);
    om_tvalue *no  = omi_lw_op(lw, "And", OMI_INS(not, in[2]), t, &cb);
    out[0]         = omi_lw_op(lw, "Or", OMI_INS(yes, no), t, &all);
    return omi_lw_done();
}
const om_lower_rule omi_lower_where = {.emit = lower_where};
