/* create.c -- samples of the operators that read only the shape of their input. */
#include <math.h>

#include "sample.h"

/* full_like: f = {value}, i = {type} */
static int call_full_like(const sample *s, om_tensor *const *in, om_tensor **out) {
    out[0] = om_full_like(in[0], s->f[0], (om_dtype)s->i[0]);
    return 1;
}
static void ref_full_like(const sample *s, const ref *in, ref *out) {
    om_dtype t = s->i[0] ? (om_dtype)s->i[0] : in->dtype;
    ref_set(out, t, in->rank, in->shape);
    for (int64_t k = 0; k < out->n; k++)
        out->v[k] = t == OM_F32    ? (double)(float)s->f[0]
                    : t == OM_F64  ? s->f[0]
                    : t == OM_BOOL ? s->f[0] != 0
                                   : trunc(s->f[0]);
}

#define FILLED(name, value)                                                                        \
    static int call_##name(const sample *s, om_tensor *const *in, om_tensor **out) {               \
        (void)s;                                                                                   \
        out[0] = om_##name(in[0]);                                                                 \
        return 1;                                                                                  \
    }                                                                                              \
    static void ref_##name(const sample *s, const ref *in, ref *out) {                             \
        (void)s;                                                                                   \
        ref_like(out, in);                                                                         \
        for (int64_t k = 0; k < out->n; k++)                                                       \
            out->v[k] = value;                                                                     \
    }
FILLED(zeros_like, 0)
FILLED(ones_like, 1)

/* arange_like: i = {axis} */
static int call_arange_like(const sample *s, om_tensor *const *in, om_tensor **out) {
    out[0] = om_arange_like(in[0], (int)s->i[0]);
    return 1;
}
static void ref_arange_like(const sample *s, const ref *in, ref *out) {
    int64_t axis = s->i[0] < 0 ? s->i[0] + in->rank : s->i[0];
    ref_set(out, OM_I64, 1, &in->shape[axis]);
    for (int64_t k = 0; k < out->n; k++)
        out->v[k] = (double)k;
}

static int call_causal_mask(const sample *s, om_tensor *const *in, om_tensor **out) {
    (void)s;
    out[0] = om_causal_mask(in[0], in[1]);
    return 1;
}
static void ref_causal_mask(const sample *s, const ref *in, ref *out) {
    (void)s;
    int64_t shape[2] = {in[0].shape[in[0].rank - 2], in[1].shape[in[1].rank - 2]};
    ref_set(out, OM_F32, 2, shape);
    for (int64_t i = 0; i < shape[0]; i++)
        for (int64_t j = 0; j < shape[1]; j++)
            out->v[i * shape[1] + j] = j > i ? -INFINITY : 0;
}

// clang-format off
#define FAILS                                                                                      \
    {.name = "null", .in = {{.null = true}}, .fails = OM_ERR_ARG, .says = "NULL"},                 \
    {.name = "blocked", .in = {{4, {1, 2, 2, 2}, .blocked = true}}, .fails = OM_ERR_LAYOUT, .says = "NCHW16c"}
static const sample full_like_samples[] = {
    {"f32", {{2, {3, 4}}}, .f = {0.1}}, {"as_i64", {{2, {3, 4}}}, {OM_I64}, {7}}, {"as_bool", {{1, {3}}}, {OM_BOOL}, {2}},
    {"as_f64", {{1, {3}}}, {OM_F64}, {0.1}}, {"as_u8", {{1, {3}}}, {OM_U8}, {200}}, {"i32", {{1, {3}, .dtype = OM_I32}}, .f = {-3}},
    {"inf", {{2, {2, 2}}}, .f = {-INFINITY}}, {"scalar", {{0}}, .f = {1}}, {"empty", {{3, {2, 0, 2}}}, .f = {1}},
    {"rank8", {{8, {1, 2, 1, 2, 1, 2, 1, 2}}}, .f = {1}}, {"strided", {{2, {3, 4}, .view = VIEW_TRANSPOSED}}, .f = {5}},
    {.name = "unknown", .in = {{1, {2}}}, .i = {99}, .fails = OM_ERR_DTYPE, .says = "99"}, FAILS};
static const sample like_samples[] = {
    {"f32", {{2, {3, 4}}}}, {"i64", {{1, {3}, .dtype = OM_I64}}}, {"bool", {{1, {3}, .dtype = OM_BOOL}}},
    {"scalar", {{0}}}, {"empty", {{1, {0}}}}, {"f64", {{1, {3}, .dtype = OM_F64}}}};
static const sample arange_like_samples[] = {
    {"first", {{2, {3, 4}}}, {0}}, {"last", {{2, {3, 4}}}, {-1}}, {"bool", {{3, {2, 5, 1}, .dtype = OM_BOOL}}, {1}},
    {"empty", {{2, {0, 4}}}, {0}}, {"rank8", {{8, {1, 2, 1, 2, 1, 3, 1, 2}}}, {5}},
    {.name = "axis", .in = {{2, {3, 4}}}, .i = {2}, .fails = OM_ERR_ARG, .says = "axis 2"},
    {.name = "scalar", .in = {{0}}, .i = {0}, .fails = OM_ERR_ARG, .says = "axis 0"}, FAILS};
static const sample causal_mask_samples[] = {
    {"square", {{2, {4, 3}}, {2, {4, 3}}}}, {"wide", {{3, {2, 2, 3}}, {3, {2, 5, 3}}}}, {"tall", {{2, {5, 2}}, {2, {3, 2}}}},
    {"empty", {{2, {0, 3}}, {2, {4, 3}}}}, {"one", {{2, {1, 3}}, {2, {1, 3}}}},
    {.name = "rank", .in = {{1, {4}}, {2, {4, 3}}}, .fails = OM_ERR_SHAPE, .says = "float32 [4]"},
    {.name = "null_k", .in = {{2, {4, 3}}, {.null = true}}, .fails = OM_ERR_ARG, .says = "k is NULL"}};

#define OP(name, ID, n, samples, c) {#name, OM_OP_##ID, n, call_##name, ref_##name, samples, (int)OM_COUNT(samples), c}
const sample_op sample_create[] = {
    OP(full_like, FULL_LIKE, 1, full_like_samples, false), OP(zeros_like, FULL_LIKE, 1, like_samples, false),
    OP(ones_like, FULL_LIKE, 1, like_samples, false), OP(arange_like, ARANGE_LIKE, 1, arange_like_samples, false),
    OP(causal_mask, CAUSAL_MASK, 2, causal_mask_samples, false), {0}};
// clang-format on
