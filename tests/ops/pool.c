/* pool.c -- samples of the pools. i = {kh, kw, sh, sw, ph, pw, dh, dw, ceil, exclude_pad}, or {oh,
 * ow} for the adaptive one. */
#include <math.h>

#include "sample.h"

static int call_pool(const sample *s, om_tensor *const *in, om_tensor **out, bool max) {
    om_pool2d_opts o = {.struct_size = sizeof o,
                        .stride      = {s->i[2], s->i[3]},
                        .padding     = {s->i[4], s->i[5]},
                        .dilation    = {s->i[6], s->i[7]},
                        .ceil_mode   = s->i[8] != 0,
                        .exclude_pad = s->i[9] != 0};
    bool none        = true;
    for (int k = 2; k < 10; k++)
        none = none && s->i[k] == 0;
    out[0] = (max ? om_max_pool2d : om_avg_pool2d)(in[0], s->i[0], s->i[1], none ? NULL : &o);
    return 1;
}
static int call_max_pool2d(const sample *s, om_tensor *const *in, om_tensor **out) {
    return call_pool(s, in, out, true);
}
static int call_avg_pool2d(const sample *s, om_tensor *const *in, om_tensor **out) {
    return call_pool(s, in, out, false);
}

/* Output size as torch computes it. */
static int64_t pooled(const sample *s, int k, int64_t in) {
    int64_t stride = s->i[2 + k] ? s->i[2 + k] : s->i[k], dil = s->i[6 + k] ? s->i[6 + k] : 1;
    double room = (double)(in + 2 * s->i[4 + k] - dil * (s->i[k] - 1) - 1) / (double)stride;
    int64_t out = (int64_t)(s->i[8] ? ceil(room) : floor(room)) + 1;
    return s->i[8] && (out - 1) * stride >= in + s->i[4 + k] ? out - 1 : out;
}

/* One window: its maximum, or its sum with the number of cells the average divides by. */
static double window(const sample *s, const ref *x, int64_t plane, const int64_t *at, bool max,
                     int64_t *cells) {
    double r = max ? -INFINITY : 0;
    int64_t p[2];
    *cells = 0;
    for (int64_t t = 0; t < s->i[0] * s->i[1]; t++) {
        bool inside = true, padded = true;
        for (int k = 0; k < 2; k++) {
            int64_t stride = s->i[2 + k] ? s->i[2 + k] : s->i[k], in = x->shape[2 + k];
            int64_t tap = k ? t % s->i[1] : t / s->i[1];
            p[k]        = at[2 + k] * stride + tap * (s->i[6 + k] ? s->i[6 + k] : 1) - s->i[4 + k];
            inside      = inside && p[k] >= 0 && p[k] < in;
            padded      = padded && p[k] < in + s->i[4 + k];
        }
        *cells += s->i[9] ? inside : padded;
        if (!inside) continue;
        double v = x->v[(plane * x->shape[2] + p[0]) * x->shape[3] + p[1]];
        if (max)
            r = isnan(r) || isnan(v) ? NAN : v > r ? v : r;
        else
            r += v;
    }
    return r;
}
static void ref_pool(const sample *s, const ref *x, ref *out, bool max) {
    int64_t at[4] = {0}, cells;
    ref_set(out, x->dtype, 4,
            (int64_t[]){x->shape[0], x->shape[1], pooled(s, 0, x->shape[2]),
                        pooled(s, 1, x->shape[3])});
    for (int64_t k = 0; k < out->n; k++, ref_next(4, out->shape, at)) {
        double v  = window(s, x, at[0] * x->shape[1] + at[1], at, max, &cells);
        out->v[k] = max ? v : v / (double)cells;
    }
}
static void ref_max_pool2d(const sample *s, const ref *in, ref *out) {
    ref_pool(s, in, out, true);
}
static void ref_avg_pool2d(const sample *s, const ref *in, ref *out) {
    ref_pool(s, in, out, false);
}

static int call_adaptive_avg_pool2d(const sample *s, om_tensor *const *in, om_tensor **out) {
    out[0] = om_adaptive_avg_pool2d(in[0], s->i[0], s->i[1]);
    return 1;
}
static void ref_adaptive_avg_pool2d(const sample *s, const ref *x, ref *out) {
    int64_t at[4] = {0}, h = x->shape[2], w = x->shape[3];
    ref_set(out, x->dtype, 4, (int64_t[]){x->shape[0], x->shape[1], s->i[0], s->i[1]});
    for (int64_t k = 0; k < out->n; k++, ref_next(4, out->shape, at)) {
        double sum = 0;
        int64_t n  = 0;
        for (int64_t i = at[2] * h / s->i[0]; i * s->i[0] < (at[2] + 1) * h; i++)
            for (int64_t j = at[3] * w / s->i[1]; j * s->i[1] < (at[3] + 1) * w; j++, n++)
                sum += x->v[((at[0] * x->shape[1] + at[1]) * h + i) * w + j];
        out->v[k] = sum / (double)n;
    }
}

// clang-format off
#define X(...) {4, {__VA_ARGS__}, FILL_DISTINCT}
#define BOTH                                                                                       \
    {"halves", {X(2, 3, 4, 6)}, {2, 2}}, {"overlap", {X(1, 2, 6, 5)}, {3, 2, 1, 1}}, {"padded", {X(1, 2, 5, 6)}, {3, 3, 2, 2, 1, 1}}, \
    {"row", {X(1, 2, 1, 7)}, {1, 3, 1, 2, 0, 1}}, {"floor_drops", {X(1, 1, 5, 7)}, {2, 3, 2, 3}},   \
    {"ceil", {X(1, 2, 5, 7)}, {2, 3, 2, 3, 0, 0, 0, 0, 1}}, {"ceil_padded", {X(1, 2, 5, 6)}, {3, 4, 2, 3, 1, 2, 0, 0, 1}}, \
    {"ceil_no_window_in_pad", {X(1, 1, 4, 4)}, {2, 2, 3, 3, 1, 1, 0, 0, 1}}, {"ceil_small", {X(1, 1, 1, 1)}, {2, 2, 2, 2, 0, 0, 0, 0, 1}}, \
    {"gaps", {X(1, 1, 7, 7)}, {2, 1, 4, 3}}, {"whole", {X(2, 2, 4, 3)}, {4, 3}}, {"unit", {X(1, 2, 3, 3)}, {1, 1}}, \
    {"wide", {X(1, 1, 3, 40)}, {2, 3, 1, 1, 1, 1}}, {"empty_batch", {X(0, 2, 4, 4)}, {2, 2}}, {"no_channels", {X(2, 0, 4, 4)}, {2, 2}}, \
    {"transposed", {{4, {1, 2, 4, 4}, FILL_DISTINCT, VIEW_TRANSPOSED}}, {2, 2}}, {"sliced", {{4, {1, 2, 4, 4}, FILL_DISTINCT, VIEW_SLICED}}, {3, 3, 1, 1, 1, 1}}, \
    {.name = "kernel", .in = {X(1, 1, 4, 4)}, .i = {0, 2}, .fails = OM_ERR_ARG, .says = "kernel size is {0,2}"}, \
    {.name = "kernel_negative", .in = {X(1, 1, 4, 4)}, .i = {2, -2}, .fails = OM_ERR_ARG, .says = "kernel"}, \
    {.name = "stride", .in = {X(1, 1, 4, 4)}, .i = {2, 2, -1, 2}, .fails = OM_ERR_ARG, .says = "stride"}, \
    {.name = "padding", .in = {X(1, 1, 4, 4)}, .i = {2, 2, 2, 2, -1}, .fails = OM_ERR_ARG, .says = "padding"}, \
    {.name = "padding_half", .in = {X(1, 1, 4, 4)}, .i = {3, 3, 1, 1, 1, 2}, .fails = OM_ERR_ARG, .says = "half of the kernel"}, \
    {.name = "too_small", .in = {X(1, 1, 2, 4)}, .i = {3, 3}, .fails = OM_ERR_SHAPE, .says = "smaller than the window"}, \
    {.name = "rank", .in = {{3, {2, 4, 4}}}, .i = {2, 2}, .fails = OM_ERR_SHAPE, .says = "[N,C,H,W]"},  \
    {.name = "float64", .in = {{4, {1, 1, 4, 4}, .dtype = OM_F64}}, .i = {2, 2}, .fails = OM_ERR_DTYPE, .says = "om_cast"}, \
    {.name = "null", .in = {{.null = true}}, .i = {2, 2}, .fails = OM_ERR_ARG, .says = "x is NULL"},    \
    {.name = "blocked", .in = {{4, {1, 1, 4, 4}, .blocked = true}}, .i = {2, 2}, .fails = OM_ERR_LAYOUT, .says = "NCHW16c"}
static const sample max_pool2d_samples[] = {BOTH,
    {"dilated", {X(1, 2, 7, 8)}, {3, 2, 1, 2, 1, 1, 2, 3}}, {"dilated_ceil", {X(1, 1, 6, 6)}, {2, 2, 3, 3, 0, 0, 2, 2, 1}},
    {"ties", {{4, {1, 2, 6, 6}, FILL_TIES}}, {3, 3, 1, 1, 1, 1}, .no_grad = true}, {"special", {{4, {1, 1, 4, 7}, FILL_SPECIAL}}, {2, 2, 1, 1}, .no_grad = true},
    {.name = "dilation", .in = {X(1, 1, 4, 4)}, .i = {2, 2, 1, 1, 0, 0, -1, 1}, .fails = OM_ERR_ARG, .says = "dilation"}};
static const sample avg_pool2d_samples[] = {BOTH,
    {"exclude", {X(1, 2, 5, 6)}, {3, 3, 2, 2, 1, 1, 0, 0, 0, 1}}, {"exclude_ceil", {X(1, 2, 5, 6)}, {3, 4, 2, 3, 1, 2, 0, 0, 1, 1}},
    {"dilation_one", {X(1, 1, 4, 4)}, {2, 2, 2, 2, 0, 0, 1, 1}},
    {.name = "dilation", .in = {X(1, 1, 6, 6)}, .i = {2, 2, 1, 1, 0, 0, 2, 1}, .fails = OM_ERR_ARG, .says = "dilation"}};
#undef X
#define X(...) {4, {__VA_ARGS__}}
static const sample adaptive_avg_pool2d_samples[] = {
    {"global", {X(2, 3, 5, 4)}, {1, 1}}, {"divides", {X(2, 2, 6, 8)}, {3, 2}}, {"one_axis_divides", {X(1, 2, 6, 7)}, {3, 3}},
    {"neither", {X(2, 2, 7, 5)}, {3, 4}}, {"same", {X(1, 2, 3, 4)}, {3, 4}}, {"grows", {X(1, 2, 2, 3)}, {5, 4}}, {"row", {X(1, 2, 4, 6)}, {1, 3}},
    {"column", {X(1, 1, 5, 5)}, {5, 1}}, {"one_cell", {X(1, 1, 1, 1)}, {3, 2}}, {"empty_batch", {X(0, 2, 7, 5)}, {3, 4}},
    {"empty_batch_global", {X(0, 2, 7, 5)}, {1, 1}}, {"no_channels", {X(2, 0, 6, 4)}, {3, 2}},
    {"transposed", {{4, {1, 2, 5, 4}, .view = VIEW_TRANSPOSED}}, {2, 3}}, {"broadcast", {{4, {3, 2, 4, 4}, .view = VIEW_BROADCAST}}, {2, 2}},
    {.name = "no_size", .in = {X(1, 1, 4, 4)}, .i = {0, 2}, .fails = OM_ERR_ARG, .says = "output size"},
    {.name = "no_cells", .in = {X(1, 1, 0, 4)}, .i = {1, 2}, .fails = OM_ERR_SHAPE, .says = "no cells"},
    {.name = "rank", .in = {{3, {1, 4, 4}}}, .i = {1, 1}, .fails = OM_ERR_SHAPE, .says = "[N,C,H,W]"},
    {.name = "int64", .in = {{4, {1, 1, 4, 4}, .dtype = OM_I64}}, .i = {2, 2}, .fails = OM_ERR_DTYPE, .says = "om_cast"},
    {.name = "null", .in = {{.null = true}}, .i = {2, 2}, .fails = OM_ERR_ARG, .says = "NULL"},
    {.name = "blocked", .in = {{4, {1, 1, 4, 4}, .blocked = true}}, .i = {2, 2}, .fails = OM_ERR_LAYOUT, .says = "NCHW16c"}};

#define OP(name, ID)                                                                               \
    {#name, OM_OP_##ID, 1, call_##name, ref_##name, name##_samples, (int)OM_COUNT(name##_samples), false}
const sample_op sample_pool[] = {OP(max_pool2d, MAX_POOL2D), OP(avg_pool2d, AVG_POOL2D),
                                 OP(adaptive_avg_pool2d, ADAPTIVE_AVG_POOL2D), {0}};
// clang-format on
