/* unary.c -- samples of the element-wise operators of one tensor. */
#include <math.h>

#include "sample.h"

/* ---- functions
 * -------------------------------------------------------------------------------------- */

#define CALL(name)                                                                                 \
    static int call_##name(const sample *s, om_tensor *const *in, om_tensor **out) {               \
        (void)s;                                                                                   \
        out[0] = om_##name(in[0]);                                                                 \
        return 1;                                                                                  \
    }
#define FUNCTION(name, formula)                                                                    \
    CALL(name)                                                                                     \
    static void ref_##name(const sample *s, const ref *in, ref *out) {                             \
        (void)s;                                                                                   \
        ref_like(out, in);                                                                         \
        for (int64_t k = 0; k < in->n; k++) {                                                      \
            double x  = in->v[k];                                                                  \
            out->v[k] = (formula);                                                                 \
        }                                                                                          \
    }

FUNCTION(neg, -x)
FUNCTION(abs, fabs(x))
FUNCTION(exp, exp(x))
FUNCTION(log, log(x))
FUNCTION(sqrt, sqrt(x))
FUNCTION(tanh, tanh(x))
FUNCTION(sigmoid, 1 / (1 + exp(-x)))
FUNCTION(erf, erf(x))
FUNCTION(relu, x < 0 ? 0 : x)
FUNCTION(gelu, 0.5 * x * erfc(-x * M_SQRT1_2))
FUNCTION(gelu_tanh, 0.5 * x * (1 + tanh(0.7978845608028654 * (x + 0.044715 * x * x * x))))
FUNCTION(silu, x / (1 + exp(-x)))
FUNCTION(reciprocal, 1 / x)
FUNCTION(sin, sin(x))
FUNCTION(cos, cos(x))
FUNCTION(not, x == 0)

// clang-format off
#define SHAPES(fill)                                                                               \
    {"scalar", {{0, {0}, fill}}}, {"row", {{1, {37}, fill}}}, {"matrix", {{2, {5, 7}, fill}}},     \
    {"rank4", {{4, {2, 3, 1, 4}, fill}}}, {"rank8", {{8, {1, 2, 1, 2, 1, 3, 1, 2}, fill}}},         \
    {"empty", {{2, {0, 3}, fill}}}, {"empty_inner", {{3, {2, 0, 3}, fill}}},                        \
    {"broadcast", {{2, {4, 5}, fill, VIEW_BROADCAST}}},                                            \
    {"transposed", {{3, {2, 3, 4}, fill, VIEW_TRANSPOSED}}},                                       \
    {"sliced", {{2, {3, 6}, fill, VIEW_SLICED}}}
#define SPECIAL(tolerance)                                                                         \
    {.name = "special", .in = {{1, {28}, FILL_SPECIAL}}, .no_grad = true, .tol = tolerance}
#define FAILS(type, cast)                                                                          \
    {.name = "null", .in = {{.null = true}}, .fails = OM_ERR_ARG, .says = "x is NULL"},            \
    {.name = "blocked", .in = {{4, {1, 2, 2, 2}, .blocked = true}}, .fails = OM_ERR_LAYOUT,        \
     .says = "NCHW16c"},                                                                           \
    {.name = "type", .in = {{2, {2, 3}, .dtype = type}}, .fails = OM_ERR_DTYPE, .says = cast}
#define INTEGERS                                                                                   \
    {.name = "int64", .in = {{2, {3, 4}, .dtype = OM_I64}}},                                       \
    {.name = "int32", .in = {{1, {9}, .dtype = OM_I32}}},                                          \
    {.name = "uint8_zero", .in = {{1, {5}, .dtype = OM_U8, .values = (const double[]){0, 0, 0, 0, 0}}}}

#define F32_ONLY(fill, tolerance)                                                                  \
    SHAPES(fill), SPECIAL(tolerance), FAILS(OM_I64, "om_cast(x, OM_F32)"),                         \
    {.name = "float64", .in = {{1, {3}, .dtype = OM_F64}}, .fails = OM_ERR_DTYPE, .says = "float64"}
static const sample exp_samples[] = {F32_ONLY(FILL_ANY, 0)};
static const sample log_samples[] = {F32_ONLY(FILL_POSITIVE, 0)};
static const sample tanh_samples[] = {F32_ONLY(FILL_ANY, 0)};
static const sample sigmoid_samples[] = {F32_ONLY(FILL_ANY, 0)};
static const sample erf_samples[] = {F32_ONLY(FILL_ANY, 0)};
static const sample gelu_samples[] = {SHAPES(FILL_ANY), FAILS(OM_I64, "om_cast(x, OM_F32)"),
    {.name = "finite", .in = {{1, {6}, .values = (const double[]){-30, -5.5, -0.0, 4.25, 60, 1e-30}}}, .no_grad = true}};
static const sample silu_samples[] = {SHAPES(FILL_ANY), FAILS(OM_I64, "om_cast(x, OM_F32)"),
    {.name = "finite", .in = {{1, {6}, .values = (const double[]){-30, -5.5, -0.0, 4.25, 60, 1e-30}}}, .no_grad = true}};
static const sample sin_samples[] = {F32_ONLY(FILL_ANY, 0)};
static const sample cos_samples[] = {F32_ONLY(FILL_ANY, 0)};
static const sample reciprocal_samples[] = {F32_ONLY(FILL_NONZERO, 0)};
static const sample sqrt_samples[] = {SHAPES(FILL_POSITIVE), SPECIAL(0), FAILS(OM_I64, "om_cast(x, OM_F32)"),
    {.name = "float64", .in = {{2, {3, 4}, FILL_POSITIVE, .dtype = OM_F64}}}};
static const sample neg_samples[] = {SHAPES(FILL_ANY), SPECIAL(0), INTEGERS, FAILS(OM_BOOL, "om_cast(x, OM_F32)"),
    {.name = "float64", .in = {{2, {3, 4}, .dtype = OM_F64}}}};
static const sample abs_samples[] = {SHAPES(FILL_NONZERO), SPECIAL(0), INTEGERS, FAILS(OM_BOOL, "om_cast(x, OM_F32)"),
    {.name = "float64", .in = {{2, {3, 4}, FILL_NONZERO, .dtype = OM_F64}}}};
static const sample relu_samples[] = {SHAPES(FILL_NONZERO), SPECIAL(0), INTEGERS, FAILS(OM_BOOL, "om_cast(x, OM_F32)")};
static const sample not_samples[] = {
    {"scalar", {{0, .dtype = OM_BOOL}}}, {"matrix", {{2, {3, 5}, .dtype = OM_BOOL}}},
    {"empty", {{1, {0}, .dtype = OM_BOOL}}}, FAILS(OM_F32, "om_cast(x, OM_BOOL)")};
// clang-format on

/* ---- clamp: i = {has_lo, has_hi}, f = {lo, hi}
 * ------------------------------------------------------- */

static int call_clamp(const sample *s, om_tensor *const *in, om_tensor **out) {
    out[0] = om_clamp(in[0], s->i[0] ? s->f[0] : NAN, s->i[1] ? s->f[1] : NAN);
    return 1;
}
static void ref_clamp(const sample *s, const ref *in, ref *out) {
    ref_like(out, in);
    for (int64_t k = 0; k < in->n; k++) {
        double x = in->v[k];
        if (s->i[0] && x < s->f[0]) x = s->f[0];
        if (s->i[1] && x > s->f[1]) x = s->f[1];
        out->v[k] = x;
    }
}
// clang-format off
static const sample clamp_samples[] = {
    {"both", {{2, {4, 6}}}, {1, 1}, {-0.5, 0.75}}, {"lo", {{1, {9}}}, {1, 0}, {0.25}},
    {"hi", {{1, {9}}}, {0, 1}, {0, -0.25}}, {"none", {{2, {2, 3}}}, {0, 0}},
    {"crossed", {{1, {9}}}, {1, 1}, {1, -1}, .no_grad = true}, {"scalar", {{0}}, {1, 1}, {-1, 1}},
    {"empty", {{2, {3, 0}}}, {1, 1}, {-1, 1}}, {"rank8", {{8, {1, 2, 1, 2, 1, 2, 1, 2}}}, {1, 1}, {-0.5, 1}},
    {.name = "special", .in = {{1, {28}, FILL_SPECIAL}}, .i = {1, 1}, .f = {-1, 2}, .no_grad = true},
    {"int64", {{2, {3, 4}, .dtype = OM_I64}}, {1, 1}, {-1, 2}}, {"uint8", {{1, {8}, .dtype = OM_U8}}, {1, 1}, {1, 4}},
    {"int32", {{1, {8}, .dtype = OM_I32}}, {0, 1}, {0, 1}},
    {.name = "fraction", .in = {{1, {3}, .dtype = OM_I64}}, .i = {1, 1}, .f = {0.5, 2}, .fails = OM_ERR_ARG, .says = "0.5"},
    {.name = "range", .in = {{1, {3}, .dtype = OM_U8}}, .i = {1, 1}, .f = {-1, 2}, .fails = OM_ERR_ARG, .says = "uint8"},
    FAILS(OM_BOOL, "om_cast(x, OM_F32)")};
// clang-format on

/* ---- scalars: f = {s}
 * -------------------------------------------------------------------------------- */

#define SCALAR(name, formula)                                                                      \
    static int call_##name(const sample *s, om_tensor *const *in, om_tensor **out) {               \
        out[0] = om_##name(in[0], s->f[0]);                                                        \
        return 1;                                                                                  \
    }                                                                                              \
    static void ref_##name(const sample *s, const ref *in, ref *out) {                             \
        ref_like(out, in);                                                                         \
        double b = in->dtype == OM_F32 ? (double)(float)s->f[0] : s->f[0];                         \
        for (int64_t k = 0; k < in->n; k++) {                                                      \
            double x  = in->v[k];                                                                  \
            out->v[k] = in->dtype == OM_F32 || in->dtype == OM_F64 ? (formula) : trunc(formula);   \
        }                                                                                          \
    }
SCALAR(add_scalar, x + b)
SCALAR(sub_scalar, x - b)
SCALAR(rsub_scalar, b - x)
SCALAR(mul_scalar, x *b)
SCALAR(scale, x *b)
SCALAR(div_scalar, x / b)
SCALAR(rdiv_scalar, b / x)

// clang-format off
#define SCALARS(fill)                                                                              \
    {"scalar", {{0, {0}, fill}}, .f = {0.1}}, {"row", {{1, {37}, fill}}, .f = {-1.7}},             \
    {"matrix", {{2, {5, 7}, fill}}, .f = {2}}, {"rank8", {{8, {1, 2, 1, 2, 1, 3, 1, 2}, fill}}, .f = {3}}, \
    {"empty", {{2, {0, 3}, fill}}, .f = {0.5}}, {"float64", {{2, {3, 4}, fill, .dtype = OM_F64}}, .f = {0.1}}, \
    {"int64", {{1, {9}, FILL_NONZERO, .dtype = OM_I64}}, .f = {2}},                                \
    {"int32", {{1, {9}, FILL_NONZERO, .dtype = OM_I32}}, .f = {-2}},                               \
    {"sliced", {{2, {3, 6}, fill, VIEW_SLICED}}, .f = {-0.3}},                                     \
    {.name = "fraction", .in = {{1, {3}, .dtype = OM_I64}}, .f = {0.5}, .fails = OM_ERR_ARG, .says = "0.5"}, \
    {.name = "nan", .in = {{1, {3}, .dtype = OM_I32}}, .f = {NAN}, .fails = OM_ERR_ARG, .says = "int32"}, \
    FAILS(OM_BOOL, "om_cast(x, OM_F32)")
static const sample scalar_samples[] = {SCALARS(FILL_ANY), SPECIAL(0)};
static const sample div_scalar_samples[] = {SCALARS(FILL_ANY),
    {.name = "zero", .in = {{1, {3}, .dtype = OM_I64}}, .f = {0}, .fails = OM_ERR_VALUE, .says = "zero"},
    {.name = "float_zero", .in = {{1, {4}, FILL_NONZERO}}, .f = {0}, .no_grad = true}};
static const sample rdiv_scalar_samples[] = {SCALARS(FILL_NONZERO),
    {.name = "zero", .in = {{1, {3}, .dtype = OM_I64, .values = (const double[]){1, 0, 2}}}, .f = {1},
     .fails = OM_ERR_VALUE, .says = "int64 [3]"}};
// clang-format on

/* ---- cast: i = {target}
 * -------------------------------------------------------------------------------- */

static int call_cast(const sample *s, om_tensor *const *in, om_tensor **out) {
    out[0] = om_cast(in[0], (om_dtype)s->i[0]);
    return 1;
}
static double saturated(double v, double lo, double hi) {
    return isnan(v) ? 0 : v < lo ? lo : v > hi ? hi : trunc(v);
}
static void ref_cast(const sample *s, const ref *in, ref *out) {
    om_dtype t = (om_dtype)s->i[0];
    bool whole = in->dtype != OM_F32 && in->dtype != OM_F64;
    ref_set(out, t, in->rank, in->shape);
    for (int64_t k = 0; k < in->n; k++) {
        double v = in->v[k];
        switch (t) {
        case OM_BOOL:
            v = v != 0;
            break;
        case OM_U8:
            v = whole ? (double)((int64_t)v & 255) : saturated(v, 0, 255);
            break;
        case OM_I32:
            v = saturated(v, -0x1p31, 0x1p31 - 1);
            break;
        case OM_I64:
            v = saturated(v, -0x1p63, 0x1p63);
            break;
        case OM_F32:
            v = whole ? (double)(float)v : v;
            break;
        default:
            break;
        }
        out->v[k] = v;
    }
}
// clang-format off
static const sample cast_samples[] = {
    {"f32_i64", {{2, {3, 5}}}, {OM_I64}}, {"f32_i32", {{1, {9}}}, {OM_I32}}, {"f32_u8", {{1, {9}, FILL_POSITIVE}}, {OM_U8}},
    {"f32_bool", {{1, {9}, FILL_TIES}}, {OM_BOOL}}, {"f32_f64", {{2, {2, 3}}}, {OM_F64}, .grad_tol = 2e-5},
    {"f64_f32", {{2, {2, 3}, .dtype = OM_F64}}, {OM_F32}, .grad_tol = 2e-5}, {"f32_f32", {{2, {2, 3}}}, {OM_F32}},
    {"f64_f64", {{0, .dtype = OM_F64}}, {OM_F64}},
    {.name = "special_i32", .in = {{1, {14}, FILL_SPECIAL}}, .i = {OM_I32}},
    {.name = "special_u8", .in = {{1, {14}, FILL_SPECIAL}}, .i = {OM_U8}},
    {.name = "special_i64", .in = {{1, {14}, FILL_SPECIAL}}, .i = {OM_I64}},
    {.name = "special_bool", .in = {{1, {14}, FILL_SPECIAL}}, .i = {OM_BOOL}},
    {.name = "overflow", .in = {{1, {4}, .dtype = OM_F64, .values = (const double[]){1e300, -1e300, 1e-300, 0.1}}}, .i = {OM_F32}, .no_grad = true},
    {"i64_f32", {{1, {4}, .dtype = OM_I64, .values = (const double[]){16777217, -5, 0, 33554435}}}, {OM_F32}},
    {"i64_u8", {{1, {4}, .dtype = OM_I64, .values = (const double[]){-1, 256, 300, 7}}}, {OM_U8}},
    {"i64_i32", {{2, {2, 2}, .dtype = OM_I64}}, {OM_I32}}, {"bool_f32", {{2, {3, 3}, .dtype = OM_BOOL}}, {OM_F32}},
    {"bool_i64", {{1, {5}, .dtype = OM_BOOL}}, {OM_I64}}, {"u8_f32", {{1, {5}, .dtype = OM_U8}}, {OM_F32}},
    {"i64_i64", {{1, {5}, .dtype = OM_I64}}, {OM_I64}}, {"empty", {{2, {0, 4}}}, {OM_I64}}, {"scalar", {{0}}, {OM_F64}},
    {.name = "unknown", .in = {{1, {2}}}, .i = {16}, .fails = OM_ERR_DTYPE, .says = "16"},
    {.name = "null", .in = {{.null = true}}, .i = {OM_F32}, .fails = OM_ERR_ARG, .says = "NULL"},
    {.name = "blocked", .in = {{4, {1, 2, 2, 2}, .blocked = true}}, .i = {OM_F32}, .fails = OM_ERR_LAYOUT}};

#define OP(name, ID, samples) {#name, OM_OP_##ID, 1, call_##name, ref_##name, samples, (int)OM_COUNT(samples), false}
const sample_op sample_unary[] = {
    OP(neg, NEG, neg_samples), OP(abs, ABS, abs_samples), OP(exp, EXP, exp_samples), OP(log, LOG, log_samples),
    OP(sqrt, SQRT, sqrt_samples), OP(tanh, TANH, tanh_samples), OP(sigmoid, SIGMOID, sigmoid_samples),
    OP(erf, ERF, erf_samples), OP(relu, RELU, relu_samples), OP(gelu, GELU, gelu_samples),
    OP(gelu_tanh, GELU, gelu_samples), OP(silu, SILU, silu_samples), OP(reciprocal, RECIPROCAL, reciprocal_samples),
    OP(sin, SIN, sin_samples), OP(cos, COS, cos_samples), OP(not, NOT, not_samples), OP(clamp, CLAMP, clamp_samples), OP(add_scalar, SCALAR, scalar_samples),
    OP(sub_scalar, SCALAR, scalar_samples), OP(rsub_scalar, SCALAR, scalar_samples),
    OP(mul_scalar, SCALAR, scalar_samples), OP(scale, SCALAR, scalar_samples),
    OP(div_scalar, SCALAR, div_scalar_samples), OP(rdiv_scalar, SCALAR, rdiv_scalar_samples),
    OP(cast, CAST, cast_samples), {0}};
// clang-format on
