/* reduce.c -- samples of reductions, argmax and softmax. */
#include <math.h>

#include "sample.h"

/* i = {keepdims, n, axes...} */
#define CALL(name)                                                                                 \
    static int call_##name(const sample *s, om_tensor *const *in, om_tensor **out) {               \
        out[0] = om_##name(in[0], (int)s->i[1], s->i + 2, s->i[0] != 0);                           \
        return 1;                                                                                  \
    }
CALL(sum)
CALL(mean)
CALL(max)
CALL(min)

typedef double (*combine_fn)(double total, double x);
static double plus(double t, double x) {
    return t + x;
}
static double larger(double t, double x) {
    return isnan(t) || isnan(x) ? NAN : x > t ? x : t;
}
static double smaller(double t, double x) {
    return isnan(t) || isnan(x) ? NAN : x < t ? x : t;
}

static double lowest(om_dtype t) {
    return t == OM_I64 ? -0x1p63 : t == OM_I32 ? -0x1p31 : t == OM_U8 ? 0 : -INFINITY;
}
static double highest(om_dtype t) {
    return t == OM_I64 ? 0x1p63 : t == OM_I32 ? 0x1p31 - 1 : t == OM_U8 ? 255 : INFINITY;
}

static void reduce(const sample *s, const ref *in, ref *out, om_dtype t, double start, combine_fn f,
                   bool mean) {
    bool reduced[OM_MAX_RANK] = {false};
    for (int64_t k = 0; k < s->i[1]; k++)
        reduced[s->i[2 + k] < 0 ? s->i[2 + k] + in->rank : s->i[2 + k]] = true;
    int64_t shape[OM_MAX_RANK], kept[OM_MAX_RANK], at[OM_MAX_RANK] = {0}, count = 1;
    int r = 0;
    for (int k = 0; k < in->rank; k++) {
        if (s->i[1] == 0) reduced[k] = true;
        kept[k] = reduced[k] ? 1 : in->shape[k];
        count *= reduced[k] ? in->shape[k] : 1;
        if (!reduced[k] || s->i[0]) shape[r++] = kept[k];
    }
    ref_set(out, t, r, shape);
    for (int64_t k = 0; k < out->n; k++)
        out->v[k] = start;
    ref k_out  = *out;
    k_out.rank = in->rank;
    for (int k = 0; k < in->rank; k++)
        k_out.shape[k] = kept[k];
    for (int64_t k = 0; k < in->n; k++, ref_next(in->rank, in->shape, at)) {
        double *y = &out->v[ref_at(&k_out, in->rank, at)];
        *y        = f(*y, in->v[k]);
    }
    for (int64_t k = 0; mean && k < out->n; k++)
        out->v[k] /= (double)count;
}
static void ref_sum(const sample *s, const ref *in, ref *out) {
    reduce(s, in, out, in->dtype == OM_BOOL ? OM_I64 : in->dtype, 0, plus, false);
}
static void ref_mean(const sample *s, const ref *in, ref *out) {
    reduce(s, in, out, in->dtype, 0, plus, true);
}
static void ref_max(const sample *s, const ref *in, ref *out) {
    reduce(s, in, out, in->dtype, lowest(in->dtype), larger, false);
}
static void ref_min(const sample *s, const ref *in, ref *out) {
    reduce(s, in, out, in->dtype, highest(in->dtype), smaller, false);
}

#define ALL(name)                                                                                  \
    static int call_##name##_all(const sample *s, om_tensor *const *in, om_tensor **out) {         \
        (void)s;                                                                                   \
        out[0] = om_##name##_all(in[0]);                                                           \
        return 1;                                                                                  \
    }                                                                                              \
    static void ref_##name##_all(const sample *s, const ref *in, ref *out) {                       \
        (void)s;                                                                                   \
        sample all = {0};                                                                          \
        ref_##name(&all, in, out);                                                                 \
    }
ALL(sum)
ALL(mean)

/* i = {axis, keepdims} */
#define ARG(name, better)                                                                          \
    static int call_##name(const sample *s, om_tensor *const *in, om_tensor **out) {               \
        out[0] = om_##name(in[0], (int)s->i[0], s->i[1] != 0);                                     \
        return 1;                                                                                  \
    }                                                                                              \
    static void ref_##name(const sample *s, const ref *in, ref *out) {                             \
        int axis = (int)(s->i[0] < 0 ? s->i[0] + in->rank : s->i[0]), r = 0;                       \
        int64_t shape[OM_MAX_RANK], n                                   = in->shape[axis];         \
        int64_t outer = ref_span(in, 0, axis), inner = ref_span(in, axis + 1, in->rank);           \
        for (int k = 0; k < in->rank; k++)                                                         \
            if (k != axis || s->i[1]) shape[r++] = k == axis ? 1 : in->shape[k];                   \
        ref_set(out, OM_I64, r, shape);                                                            \
        for (int64_t o = 0; o < outer; o++)                                                        \
            for (int64_t q = 0; q < inner; q++) {                                                  \
                int64_t best = 0;                                                                  \
                for (int64_t k = 1; k < n; k++) {                                                  \
                    double x = in->v[(o * n + k) * inner + q];                                     \
                    double b = in->v[(o * n + best) * inner + q];                                  \
                    if (!isnan(b) && (isnan(x) || x better b)) best = k;                           \
                }                                                                                  \
                out->v[o * inner + q] = (double)best;                                              \
            }                                                                                      \
    }
ARG(argmax, >)
ARG(argmin, <)

/* i = {axis} */
static void soft(const sample *s, const ref *in, ref *out, bool log_form) {
    int axis  = (int)(s->i[0] < 0 ? s->i[0] + in->rank : s->i[0]);
    int64_t n = in->shape[axis], outer = ref_span(in, 0, axis),
            inner = ref_span(in, axis + 1, in->rank);
    ref_like(out, in);
    for (int64_t o = 0; o < outer; o++)
        for (int64_t q = 0; q < inner; q++) {
            const double *x = in->v + o * n * inner + q;
            double *y = out->v + o * n * inner + q, m = -INFINITY, total = 0;
            for (int64_t k = 0; k < n; k++)
                m = larger(m, x[k * inner]);
            for (int64_t k = 0; k < n; k++)
                total += exp(x[k * inner] - m);
            for (int64_t k = 0; k < n; k++)
                y[k * inner] =
                    log_form ? x[k * inner] - m - log(total) : exp(x[k * inner] - m) / total;
        }
}
#define SOFT(name, form)                                                                           \
    static int call_##name(const sample *s, om_tensor *const *in, om_tensor **out) {               \
        out[0] = om_##name(in[0], (int)s->i[0]);                                                   \
        return 1;                                                                                  \
    }                                                                                              \
    static void ref_##name(const sample *s, const ref *in, ref *out) {                             \
        soft(s, in, out, form);                                                                    \
    }
SOFT(softmax, false)
SOFT(log_softmax, true)

// clang-format off
#define SHAPES(fill)                                                                               \
    {"all", {{2, {3, 5}, fill}}}, {"all_keep", {{3, {2, 3, 2}, fill}}, {1}}, {"first", {{2, {3, 5}, fill}}, {0, 1, 0}}, \
    {"last", {{2, {3, 5}, fill}}, {0, 1, -1}}, {"last_keep", {{2, {3, 5}, fill}}, {1, 1, 1}},         \
    {"middle", {{3, {2, 4, 3}, fill}}, {0, 1, 1}}, {"outer_two", {{3, {2, 4, 3}, fill}}, {1, 2, 0, -1}}, \
    {"unordered", {{3, {2, 4, 3}, fill}}, {0, 2, 2, 0}}, {"scalar", {{0, {0}, fill}}}, {"one", {{2, {1, 1}, fill}}, {0, 1, 0}}, \
    {"rank8", {{8, {1, 2, 1, 2, 1, 3, 1, 2}, fill}}, {0, 3, 1, 5, 7}}, {"wide", {{2, {2, 70}, fill}}, {0, 1, 1}}, \
    {"tall", {{2, {70, 2}, fill}}, {0, 1, 0}}, {"kept_empty", {{2, {0, 3}, fill}}, {0, 1, 1}},         \
    {"transposed", {{3, {2, 3, 4}, fill, VIEW_TRANSPOSED}}, {0, 1, 1}}, {"sliced", {{2, {3, 6}, fill, VIEW_SLICED}}, {0, 1, 0}}, \
    {"float64", {{2, {4, 5}, fill, .dtype = OM_F64}}, {0, 1, 1}}, {"channels", {{4, {2, 3, 2, 3}, fill}}, {0, 3, 0, 2, 3}}
#define SPECIAL {.name = "special", .in = {{2, {2, 14}, FILL_SPECIAL}}, .i = {0, 1, 0}, .no_grad = true}
#define FAILS                                                                                      \
    {.name = "axis", .in = {{2, {3, 5}}}, .i = {0, 1, 2}, .fails = OM_ERR_ARG, .says = "float32 [3,5]"}, \
    {.name = "negative_axis", .in = {{2, {3, 5}}}, .i = {0, 1, -3}, .fails = OM_ERR_ARG, .says = "axis -3"}, \
    {.name = "twice", .in = {{2, {3, 5}}}, .i = {0, 2, 1, -1}, .fails = OM_ERR_ARG, .says = "twice"}, \
    {.name = "count", .in = {{2, {3, 5}}}, .i = {0, -1}, .fails = OM_ERR_ARG, .says = "-1 axes"},     \
    {.name = "null", .in = {{.null = true}}, .fails = OM_ERR_ARG, .says = "NULL"},                   \
    {.name = "blocked", .in = {{4, {1, 2, 2, 2}, .blocked = true}}, .fails = OM_ERR_LAYOUT, .says = "NCHW16c"}
static const sample sum_samples[] = {SHAPES(FILL_ANY), SPECIAL, FAILS,
    {"reduced_empty", {{2, {3, 0}}}, {0, 1, 1}}, {"all_empty", {{2, {0, 3}}}}, {"int64", {{2, {3, 4}, .dtype = OM_I64}}, {0, 1, 0}},
    {"int32", {{2, {3, 4}, .dtype = OM_I32}}, {1, 1, 1}}, {"bool", {{2, {3, 7}, .dtype = OM_BOOL}}, {0, 1, 1}},
    {.name = "uint8", .in = {{1, {3}, .dtype = OM_U8}}, .fails = OM_ERR_DTYPE, .says = "om_cast(x, OM_F32)"}};
static const sample mean_samples[] = {SHAPES(FILL_ANY), SPECIAL, FAILS,
    {.name = "reduced_empty", .in = {{2, {3, 0}}}, .i = {0, 1, 1}, .no_grad = true},
    {.name = "int64", .in = {{1, {3}, .dtype = OM_I64}}, .fails = OM_ERR_DTYPE, .says = "om_cast(x, OM_F32)"}};
#define EXTREME                                                                                    \
    SHAPES(FILL_DISTINCT), SPECIAL, FAILS, {"reduced_empty", {{2, {3, 0}}}, {0, 1, 1}},            \
    {"int64", {{2, {3, 4}, .dtype = OM_I64}}, {0, 1, 0}}, {"int32", {{2, {3, 4}, .dtype = OM_I32}}, {1, 1, 1}}, \
    {"uint8", {{2, {3, 4}, .dtype = OM_U8}}, {0, 1, 1}}, {"empty_int32", {{1, {0}, .dtype = OM_I32}}}, \
    {"empty_uint8", {{1, {0}, .dtype = OM_U8}}},                                                   \
    {.name = "bool", .in = {{1, {3}, .dtype = OM_BOOL}}, .fails = OM_ERR_DTYPE, .says = "om_cast(x, OM_F32)"}
static const sample extreme_samples[] = {EXTREME};
static const sample all_samples[] = {
    {"matrix", {{2, {3, 5}}}}, {"scalar", {{0}}}, {"empty", {{1, {0}}}, .no_grad = true}, {"view", {{2, {4, 3}, .view = VIEW_TRANSPOSED}}}};
#define ARGS                                                                                       \
    {"last", {{2, {3, 5}}}, {-1}}, {"first_keep", {{2, {3, 5}}}, {0, 1}}, {"middle", {{3, {2, 4, 3}}}, {1}}, \
    {"ties", {{2, {4, 6}, FILL_TIES}}, {1}}, {"special", {{2, {2, 14}, FILL_SPECIAL}}, {1}},         \
    {"special_columns", {{2, {14, 2}, FILL_SPECIAL}}, {0}}, {"int64", {{2, {3, 4}, .dtype = OM_I64}}, {0}}, \
    {"int32", {{1, {9}, .dtype = OM_I32}}, {0}}, {"uint8", {{1, {9}, .dtype = OM_U8}}, {0}},           \
    {"float64", {{1, {9}, .dtype = OM_F64}}, {0}}, {"rank8", {{8, {1, 2, 1, 2, 1, 3, 1, 2}}}, {5}},     \
    {"empty", {{2, {0, 3}}}, {1}}, {"view", {{2, {4, 3}, .view = VIEW_TRANSPOSED}}, {0}},              \
    {.name = "nothing", .in = {{2, {3, 0}}}, .i = {1}, .fails = OM_ERR_SHAPE, .says = "float32 [3,0]"}, \
    {.name = "axis", .in = {{2, {3, 5}}}, .i = {2}, .fails = OM_ERR_ARG, .says = "axis 2"},            \
    {.name = "scalar", .in = {{0}}, .i = {0}, .fails = OM_ERR_ARG, .says = "axis 0"},                  \
    {.name = "bool", .in = {{1, {3}, .dtype = OM_BOOL}}, .i = {0}, .fails = OM_ERR_DTYPE, .says = "bool"}, \
    {.name = "null", .in = {{.null = true}}, .fails = OM_ERR_ARG, .says = "NULL"}
static const sample arg_samples[] = {ARGS};
#define SOFTS                                                                                      \
    {"last", {{2, {3, 5}}}, {-1}}, {"first", {{2, {3, 5}}}, {0}}, {"middle", {{3, {2, 4, 3}}}, {1}},  \
    {"row", {{1, {7}}}, {0}}, {"one", {{2, {4, 1}}}, {1}}, {"wide", {{2, {2, 40}}}, {-1}},            \
    {"rank8", {{8, {1, 2, 1, 2, 1, 3, 1, 2}}}, {5}}, {"empty", {{2, {0, 3}}}, {1}}, {"empty_axis", {{2, {3, 0}}}, {1}}, \
    {"view", {{3, {2, 4, 3}, .view = VIEW_TRANSPOSED}}, {-1}}, {"stride0", {{2, {4, 5}, .view = VIEW_BROADCAST}}, {0}}, \
    {.name = "masked", .in = {{2, {2, 3}, .values = (const double[]){-INFINITY, 0, 1, -INFINITY, -INFINITY, -INFINITY}}}, .i = {1}, .no_grad = true}, \
    {.name = "large", .in = {{1, {4}, .values = (const double[]){1000, 999, -1000, 998.5}}}, .i = {0}}, \
    {.name = "nan", .in = {{1, {4}, .values = (const double[]){1, NAN, 0, 2}}}, .i = {0}, .no_grad = true}, \
    {.name = "axis", .in = {{2, {3, 5}}}, .i = {-3}, .fails = OM_ERR_ARG, .says = "axis -3"},          \
    {.name = "scalar", .in = {{0}}, .i = {0}, .fails = OM_ERR_ARG, .says = "axis 0"},                  \
    {.name = "int64", .in = {{1, {3}, .dtype = OM_I64}}, .i = {0}, .fails = OM_ERR_DTYPE, .says = "om_cast(x, OM_F32)"}, \
    {.name = "null", .in = {{.null = true}}, .fails = OM_ERR_ARG, .says = "NULL"},                     \
    {.name = "blocked", .in = {{4, {1, 2, 2, 2}, .blocked = true}}, .fails = OM_ERR_LAYOUT, .says = "NCHW16c"}
static const sample soft_samples[] = {SOFTS};

#define OP(name, ID, samples) {#name, OM_OP_##ID, 1, call_##name, ref_##name, samples, (int)OM_COUNT(samples), false}
const sample_op sample_reduce[] = {
    OP(sum, SUM, sum_samples), OP(mean, MEAN, mean_samples), OP(max, MAX, extreme_samples), OP(min, MIN, extreme_samples),
    OP(sum_all, SUM, all_samples), OP(mean_all, MEAN, all_samples), OP(argmax, ARGMAX, arg_samples),
    OP(argmin, ARGMIN, arg_samples), OP(softmax, SOFTMAX, soft_samples), OP(log_softmax, LOG_SOFTMAX, soft_samples), {0}};
// clang-format on
