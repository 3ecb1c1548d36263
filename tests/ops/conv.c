/* conv.c -- samples of Conv2d. i = {sh, sw, ph, pw, dh, dw, eh, ew, groups}: stride, padding,
 * dilation, what padding_end adds; 0 is the default of each. */
#include "sample.h"

enum { STRIDE = 0, PAD = 2, DILATION = 4, PAD_END = 6, GROUPS = 8 };

static int call_conv2d(const sample *s, om_tensor *const *in, om_tensor **out) {
    om_conv2d_opts o = {.struct_size = sizeof o, .groups = s->i[GROUPS]};
    bool none        = s->i[GROUPS] == 0;
    for (int k = 0; k < 2; k++) {
        o.stride[k]      = s->i[STRIDE + k];
        o.padding[k]     = s->i[PAD + k];
        o.dilation[k]    = s->i[DILATION + k];
        o.padding_end[k] = s->i[PAD_END + k];
        none = none && !(s->i[STRIDE + k] | s->i[PAD + k] | s->i[DILATION + k] | s->i[PAD_END + k]);
    }
    out[0] = om_conv2d(in[0], in[1], in[2], none ? NULL : &o);
    return 1;
}

static double tap(const ref *x, int64_t n, int64_t c, int64_t h, int64_t w) {
    if (h < 0 || h >= x->shape[2] || w < 0 || w >= x->shape[3]) return 0;
    return x->v[((n * x->shape[1] + c) * x->shape[2] + h) * x->shape[3] + w];
}

static void ref_conv2d(const sample *s, const ref *in, ref *out) {
    const ref *x = in, *w = in + 1, *b = in + 2;
    int64_t st[2], dl[2], size[2], g = s->i[GROUPS] ? s->i[GROUPS] : 1;
    for (int k = 0; k < 2; k++) {
        st[k]   = s->i[STRIDE + k] ? s->i[STRIDE + k] : 1;
        dl[k]   = s->i[DILATION + k] ? s->i[DILATION + k] : 1;
        size[k] = (x->shape[2 + k] + 2 * s->i[PAD + k] + s->i[PAD_END + k] -
                   dl[k] * (w->shape[2 + k] - 1) - 1) /
                      st[k] +
                  1;
    }
    ref_set(out, x->dtype, 4, (int64_t[]){x->shape[0], w->shape[0], size[0], size[1]});
    int64_t each = w->shape[0] / g, at[4] = {0};
    for (int64_t k = 0; k < out->n; k++, ref_next(4, out->shape, at)) {
        double sum = b->v ? b->v[at[1]] : 0;
        for (int64_t c = 0; c < w->shape[1]; c++)
            for (int64_t i = 0; i < w->shape[2]; i++)
                for (int64_t j = 0; j < w->shape[3]; j++)
                    sum += w->v[((at[1] * w->shape[1] + c) * w->shape[2] + i) * w->shape[3] + j] *
                           tap(x, at[0], at[1] / each * w->shape[1] + c,
                               at[2] * st[0] + i * dl[0] - s->i[PAD],
                               at[3] * st[1] + j * dl[1] - s->i[PAD + 1]);
        out->v[k] = sum;
    }
}

// clang-format off
#define X(...) {4, {__VA_ARGS__}}
#define B(n) {1, {n}}
#define NO_BIAS {-1}
static const sample conv2d_samples[] = {
    {"plain", {X(2, 3, 5, 6), X(4, 3, 3, 3), B(4)}}, {"no_bias", {X(1, 2, 4, 4), X(3, 2, 2, 2), NO_BIAS}},
    {"padded", {X(2, 2, 4, 5), X(3, 2, 3, 3), B(3)}, {0, 0, 1, 1}}, {"one_by_one", {X(2, 5, 3, 4), X(4, 5, 1, 1), B(4)}},
    {"strided", {X(1, 2, 7, 6), X(3, 2, 3, 3), B(3)}, {2, 3, 1, 0}}, {"dilated", {X(1, 2, 7, 8), X(2, 2, 3, 2), B(2)}, {0, 0, 1, 2, 2, 3}},
    {"strided_1x1", {X(1, 3, 5, 5), X(2, 3, 1, 1), B(2)}, {2, 2}}, {"all", {X(2, 4, 8, 7), X(6, 2, 3, 3), B(6)}, {2, 2, 2, 1, 2, 1, 1, 0, 2}},
    {"even_kernel", {X(1, 2, 5, 5), X(2, 2, 2, 4), B(2)}, {0, 0, 0, 1, 0, 0, 1, 1}}, {"groups", {X(1, 6, 4, 4), X(9, 2, 3, 3), B(9)}, {0, 0, 1, 1, 0, 0, 0, 0, 3}},
    {"depthwise", {X(2, 5, 5, 5), X(5, 1, 3, 3), B(5)}, {0, 0, 1, 1, 0, 0, 0, 0, 5}}, {"depthwise_strided", {X(1, 3, 7, 7), X(3, 1, 3, 3), B(3)}, {2, 2, 1, 1, 0, 0, 0, 0, 3}},
    {"multiplier", {X(1, 3, 5, 5), X(6, 1, 3, 3), B(6)}, {0, 0, 1, 1, 0, 0, 0, 0, 3}}, {"one_d", {X(2, 3, 1, 9), X(4, 3, 1, 3), B(4)}, {1, 2, 0, 1}},
    {"wide_padding", {X(1, 1, 2, 2), X(2, 1, 3, 3), B(2)}, {0, 0, 4, 3}}, {"skips_input", {X(1, 2, 6, 6), X(2, 2, 1, 2), B(2)}, {4, 5}},
    {"channel_blocks", {X(1, 40, 3, 3), X(2, 40, 3, 3), B(2)}, {0, 0, 1, 1}}, {"seventeen", {X(1, 3, 3, 3), X(17, 3, 2, 2), B(17)}},
    {"empty_batch", {X(0, 2, 4, 4), X(3, 2, 3, 3), B(3)}}, {"no_channels", {X(1, 0, 4, 4), X(2, 0, 3, 3), B(2)}}, {"no_outputs", {X(1, 2, 4, 4), X(0, 2, 3, 3), B(0)}},
    {"transposed", {{4, {1, 2, 4, 4}, .view = VIEW_TRANSPOSED}, {4, {2, 2, 3, 3}, .view = VIEW_SLICED}, {1, {2}, .view = VIEW_SLICED}}, {0, 0, 1, 1}},
    {"broadcast", {{4, {3, 2, 4, 4}, .view = VIEW_BROADCAST}, X(2, 2, 3, 3), B(2)}, {0, 0, 1, 1}},
    {"frozen_weight", {X(1, 2, 4, 4), {4, {2, 2, 3, 3}, .no_grad = true}, {1, {2}, .no_grad = true}}, {0, 0, 1, 1}},
    {"frozen_input", {{4, {1, 2, 4, 4}, .no_grad = true}, X(2, 2, 3, 3), B(2)}, {0, 0, 1, 1}},
    {.name = "channels", .in = {X(1, 3, 4, 4), X(2, 2, 3, 3), NO_BIAS}, .fails = OM_ERR_SHAPE, .says = "3 channels a group"},
    {.name = "groups_divide", .in = {X(1, 3, 4, 4), X(2, 1, 3, 3), NO_BIAS}, .i = {[GROUPS] = 2}, .fails = OM_ERR_ARG, .says = "2 groups"},
    {.name = "groups_negative", .in = {X(1, 2, 4, 4), X(2, 2, 3, 3), NO_BIAS}, .i = {[GROUPS] = -1}, .fails = OM_ERR_ARG, .says = "-1 groups"},
    {.name = "too_small", .in = {X(1, 2, 2, 4), X(2, 2, 3, 3), NO_BIAS}, .fails = OM_ERR_SHAPE, .says = "add padding"},
    {.name = "too_small_dilated", .in = {X(1, 2, 4, 4), X(2, 2, 3, 3), NO_BIAS}, .i = {[DILATION] = 2, 1}, .fails = OM_ERR_SHAPE, .says = "dilated"},
    {.name = "stride", .in = {X(1, 2, 4, 4), X(2, 2, 3, 3), NO_BIAS}, .i = {-1, 1}, .fails = OM_ERR_ARG, .says = "stride"},
    {.name = "padding", .in = {X(1, 2, 4, 4), X(2, 2, 3, 3), NO_BIAS}, .i = {[PAD] = 0, -1}, .fails = OM_ERR_ARG, .says = "padding"},
    {.name = "padding_end", .in = {X(1, 2, 4, 4), X(2, 2, 3, 3), NO_BIAS}, .i = {[PAD_END] = -1}, .fails = OM_ERR_ARG, .says = "padding_end"},
    {.name = "dilation", .in = {X(1, 2, 4, 4), X(2, 2, 3, 3), NO_BIAS}, .i = {[DILATION] = INT64_MAX}, .fails = OM_ERR_ARG, .says = "dilation"},
    {.name = "huge", .in = {X(1, 2, 4, 4), X(2, 2, 3, 3), NO_BIAS}, .i = {[PAD] = INT32_MAX, INT32_MAX}, .fails = OM_ERR_SHAPE, .says = "more elements"},
    {.name = "bias", .in = {X(1, 2, 4, 4), X(2, 2, 3, 3), B(3)}, .fails = OM_ERR_SHAPE, .says = "the bias float32 [3]"},
    {.name = "rank", .in = {{3, {2, 4, 4}}, X(2, 2, 3, 3), NO_BIAS}, .fails = OM_ERR_SHAPE, .says = "[N,C,H,W]"},
    {.name = "weight_rank", .in = {X(1, 2, 4, 4), {2, {2, 2}}, NO_BIAS}, .fails = OM_ERR_SHAPE, .says = "[O, C/groups, kh, kw]"},
    {.name = "no_kernel", .in = {X(1, 2, 4, 4), X(2, 2, 0, 3), NO_BIAS}, .fails = OM_ERR_SHAPE, .says = "[O, C/groups, kh, kw]"},
    {.name = "float64", .in = {{4, {1, 2, 4, 4}, .dtype = OM_F64}, X(2, 2, 3, 3), NO_BIAS}, .fails = OM_ERR_DTYPE, .says = "om_cast(x, OM_F32)"},
    {.name = "types", .in = {X(1, 2, 4, 4), {4, {2, 2, 3, 3}, .dtype = OM_F64}, NO_BIAS}, .fails = OM_ERR_DTYPE, .says = "types differ"},
    {.name = "bias_type", .in = {X(1, 2, 4, 4), X(2, 2, 3, 3), {1, {2}, .dtype = OM_I64}}, .fails = OM_ERR_DTYPE, .says = "types differ"},
    {.name = "null", .in = {{.null = true}, X(2, 2, 3, 3), NO_BIAS}, .fails = OM_ERR_ARG, .says = "x is NULL"},
    {.name = "null_weight", .in = {X(1, 2, 4, 4), {.null = true}, NO_BIAS}, .fails = OM_ERR_ARG, .says = "w is NULL"},
    {.name = "blocked", .in = {{4, {1, 2, 4, 4}, .blocked = true}, X(2, 2, 3, 3), NO_BIAS}, .fails = OM_ERR_LAYOUT, .says = "NCHW16c"},
    {.name = "blocked_weight", .in = {X(1, 2, 4, 4), {4, {2, 2, 3, 3}, .blocked = true}, NO_BIAS}, .fails = OM_ERR_LAYOUT, .says = "w is"}};

const sample_op sample_conv[] = {
    {"conv2d", OM_OP_CONV2D, 3, call_conv2d, ref_conv2d, conv2d_samples, (int)OM_COUNT(conv2d_samples), false}, {0}};
// clang-format on
