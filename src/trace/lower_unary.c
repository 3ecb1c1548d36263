/*
 * lower_unary.c -- elementwise operators of one operand: the extents are the input's
 * (operators 1.2).
 */
#include "compute/elementwise.h"
#include "trace/lower.h"

static om_tvalue *same_shape(om_lowering *lw, const char *type, uint32_t n_in, om_tvalue *const *in,
                             om_dtype dtype, const om_tvalue *x) {
    om_xshape s = omi_lw_shape_of(x);
    return omi_lw_op(lw, type, n_in, in, dtype, &s);
}

#define ONE_NODE(name, type)                                                                       \
    static om_status lower_##name(om_lowering *lw, const om_call *call, om_tvalue *const *in,      \
                                  om_tvalue **out) {                                               \
        out[0] = same_shape(lw, type, 1, in, (om_dtype)call->out[0]->dtype, in[0]);                \
        return omi_lw_done();                                                                      \
    }                                                                                              \
    const om_lower_rule omi_lower_##name = {.emit = lower_##name};

// clang-format off
#define LOWER_WHOLE(name, node) ONE_NODE(name, #node)
#define LOWER_CALLED(name, node)
#define LOWER_COMPOSED(name, node)
#define LOWER_NODE(name, node)
#define LOWER_KIND(name, node)
#define OM_UNARY(name, ID, types, saves, loop, made, node, since, node_types, attrs, gradient) LOWER_##made(name, node)
#include "compute/unary.def"
#undef OM_UNARY
// clang-format on

/* ONNX Relu of integers has no kernel in ONNX Runtime: a Clip with a lower bound is the same. */
static om_status lower_relu(om_lowering *lw, const om_call *call, om_tvalue *const *in,
                            om_tvalue **out) {
    om_dtype t = (om_dtype)call->out[0]->dtype;
    if (t == OM_F32 || t == OM_F64)
        out[0] = same_shape(lw, "Relu", 1, in, t, in[0]);
    else
        out[0] = same_shape(lw, "Clip", OMI_INS(in[0], omi_lw_scalar(lw, t, 0)), t, in[0]);
    return omi_lw_done();
}
const om_lower_rule omi_lower_relu = {.emit = lower_relu};

static om_status lower_gelu(om_lowering *lw, const om_call *call, om_tvalue *const *in,
                            om_tvalue **out) {
    const om_gelu_raw *raw = call->raw;
    om_xshape s            = omi_lw_shape_of(in[0]);
    om_tnode *n            = omi_lw_node(lw, "Gelu", 1, in, 1);
    omi_lw_string(lw, n, "approximate", raw->tanh ? "tanh" : "none");
    out[0] = omi_lw_out(lw, n, 0, OM_F32, &s);
    return omi_lw_done();
}
const om_lower_rule omi_lower_gelu = {.emit = lower_gelu};

/* Swish is opset 24. */
static om_status lower_silu(om_lowering *lw, const om_call *call, om_tvalue *const *in,
                            om_tvalue **out) {
    om_dtype t   = (om_dtype)call->out[0]->dtype;
    om_tvalue *s = same_shape(lw, "Sigmoid", 1, in, t, in[0]);
    out[0]       = same_shape(lw, "Mul", OMI_INS(in[0], s), t, in[0]);
    return omi_lw_done();
}
const om_lower_rule omi_lower_silu = {.emit = lower_silu};

static om_status lower_clamp(om_lowering *lw, const om_call *call, om_tvalue *const *in,
                             om_tvalue **out) {
    const om_clamp_raw *raw = call->raw;
    om_dtype t              = (om_dtype)call->out[0]->dtype;
    om_tvalue *lo           = raw->has_lo ? omi_lw_scalar(lw, t, raw->lo) : NULL;
    om_tvalue *hi           = raw->has_hi ? omi_lw_scalar(lw, t, raw->hi) : NULL;
    out[0]                  = same_shape(lw, "Clip", OMI_INS(in[0], lo, hi), t, in[0]);
    return omi_lw_done();
}
const om_lower_rule omi_lower_clamp = {.emit = lower_clamp};

static om_status lower_scalar(om_lowering *lw, const om_call *call, om_tvalue *const *in,
                              om_tvalue **out) {
    static const char *const types[] = {
        [OM_B_ADD] = "Add", [OM_B_SUB] = "Sub", [OM_B_MUL] = "Mul", [OM_B_DIV] = "Div"};
    const om_scalar_raw *raw = call->raw;
    om_dtype t               = (om_dtype)call->out[0]->dtype;
    om_tvalue *s             = omi_lw_scalar(lw, t, raw->s);
    om_tvalue *a = raw->reversed ? s : in[0], *b = raw->reversed ? in[0] : s;
    out[0] = same_shape(lw, types[raw->kind], OMI_INS(a, b), t, in[0]);
    return omi_lw_done();
}
const om_lower_rule omi_lower_scalar = {.emit = lower_scalar};

static om_status lower_cast(om_lowering *lw, const om_call *call, om_tvalue *const *in,
                            om_tvalue **out) {
    om_dtype t  = (om_dtype)call->out[0]->dtype;
    om_xshape s = omi_lw_shape_of(in[0]);
    om_tnode *n = omi_lw_node(lw, "Cast", 1, in, 1);
    omi_lw_int(lw, n, "to", t);
    out[0] = omi_lw_out(lw, n, 0, t, &s);
    return omi_lw_done();
}
const om_lower_rule omi_lower_cast = {.emit = lower_cast};
