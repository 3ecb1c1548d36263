/* binary.c -- samples of the element-wise operators of two and three tensors. */
#include <math.h>

#include "sample.h"

static double larger(double a, double b) {
    return isnan(a) || isnan(b) ? NAN : a > b ? a : b;
}
static double smaller(double a, double b) {
    return isnan(a) || isnan(b) ? NAN : a < b ? a : b;
}

#define BINARY(name, type, formula)                                                                \
    static int call_##name(const sample *s, om_tensor *const *in, om_tensor **out) {               \
        (void)s;                                                                                   \
        out[0] = om_##name(in[0], in[1]);                                                          \
        return 1;                                                                                  \
    }                                                                                              \
    static void ref_##name(const sample *s, const ref *in, ref *out) {                             \
        (void)s;                                                                                   \
        int64_t shape[OM_MAX_RANK], at[OM_MAX_RANK] = {0};                                         \
        int rank = ref_broadcast(&in[0], &in[1], shape);                                           \
        ref_set(out, type, rank, shape);                                                           \
        for (int64_t k = 0; k < out->n; k++, ref_next(rank, shape, at)) {                          \
            double a  = in[0].v[ref_at(&in[0], rank, at)];                                         \
            double b  = in[1].v[ref_at(&in[1], rank, at)];                                         \
            out->v[k] = (formula);                                                                 \
        }                                                                                          \
    }
BINARY(add, in->dtype, a + b)
BINARY(sub, in->dtype, a - b)
BINARY(mul, in->dtype, a *b)
BINARY(div, in->dtype, in->dtype == OM_F32 || in->dtype == OM_F64 ? a / b : trunc(a / b))
BINARY(maximum, in->dtype, larger(a, b))
BINARY(minimum, in->dtype, smaller(a, b))
BINARY(equal, OM_BOOL, a == b)
BINARY(not_equal, OM_BOOL, a != b)
BINARY(less, OM_BOOL, a < b)
BINARY(less_equal, OM_BOOL, a <= b)
BINARY(greater, OM_BOOL, a > b)
BINARY(greater_equal, OM_BOOL, a >= b)
BINARY(and, OM_BOOL, a != 0 && b != 0)
BINARY(or, OM_BOOL, a != 0 || b != 0)
BINARY(xor, OM_BOOL, (a != 0) != (b != 0))

// clang-format off
#define PAIRS(fa, fb)                                                                              \
    {"same", {{2, {3, 5}, fa}, {2, {3, 5}, fb}}}, {"scalars", {{0, {0}, fa}, {0, {0}, fb}}},        \
    {"row", {{2, {3, 5}, fa}, {1, {5}, fb}}}, {"column", {{2, {3, 1}, fa}, {2, {3, 5}, fb}}},       \
    {"outer", {{2, {4, 1}, fa}, {2, {1, 3}, fb}}}, {"scalar_left", {{0, {0}, fa}, {2, {2, 3}, fb}}},\
    {"scalar_right", {{3, {2, 1, 3}, fa}, {0, {0}, fb}}},                                           \
    {"rank8", {{8, {1, 2, 1, 2, 1, 3, 1, 2}, fa}, {8, {2, 1, 1, 2, 1, 1, 1, 2}, fb}}},              \
    {"channel", {{4, {2, 3, 2, 2}, fa}, {3, {3, 1, 1}, fb}}},                                       \
    {"empty", {{2, {0, 3}, fa}, {1, {3}, fb}}}, {"empty_one", {{2, {1, 3}, fa}, {2, {0, 3}, fb}}},   \
    {"views", {{3, {2, 3, 4}, fa, VIEW_TRANSPOSED}, {3, {2, 3, 4}, fb, VIEW_SLICED}}},              \
    {"stride0", {{2, {4, 5}, fa, VIEW_BROADCAST}, {2, {4, 5}, fb}}}, {"long", {{1, {41}, fa}, {1, {41}, fb}}}
#define NUMBERS(fb)                                                                                \
    {"int64", {{2, {3, 4}, .dtype = OM_I64}, {1, {4}, fb, .dtype = OM_I64}}},                       \
    {"int32", {{1, {9}, .dtype = OM_I32}, {1, {9}, fb, .dtype = OM_I32}}},                          \
    {"uint8", {{1, {4}, .dtype = OM_U8, .values = (const double[]){9, 7, 8, 6}},                    \
               {1, {4}, .dtype = OM_U8, .values = (const double[]){3, 2, 4, 1}}}},                   \
    {"float64", {{2, {3, 4}, FILL_DISTINCT, .dtype = OM_F64}, {2, {3, 1}, FILL_NONZERO, .dtype = OM_F64}}}
#define SPECIAL                                                                                    \
    {.name = "special", .in = {{2, {14, 1}, FILL_SPECIAL}, {1, {14}, FILL_SPECIAL}}, .no_grad = true}
#define FAILS                                                                                      \
    {.name = "shape", .in = {{2, {2, 3}}, {2, {2, 4}}}, .fails = OM_ERR_SHAPE, .says = "float32 [2,3] and float32 [2,4]"}, \
    {.name = "types", .in = {{1, {2}}, {1, {2}, .dtype = OM_I64}}, .fails = OM_ERR_DTYPE, .says = "om_cast(b, OM_F32)"},   \
    {.name = "null_a", .in = {{.null = true}, {1, {2}}}, .fails = OM_ERR_ARG, .says = "a is NULL"},  \
    {.name = "null_b", .in = {{1, {2}}, {.null = true}}, .fails = OM_ERR_ARG, .says = "b is NULL"},  \
    {.name = "blocked", .in = {{4, {1, 2, 2, 2}}, {4, {1, 2, 2, 2}, .blocked = true}}, .fails = OM_ERR_LAYOUT, .says = "b is"}
#define NOT_BOOL                                                                                   \
    {.name = "bool", .in = {{1, {2}, .dtype = OM_BOOL}, {1, {2}, .dtype = OM_BOOL}}, .fails = OM_ERR_DTYPE, .says = "om_cast(x, OM_F32)"}

static const sample sum_samples[] = {PAIRS(FILL_ANY, FILL_ANY), NUMBERS(FILL_ANY), SPECIAL, FAILS, NOT_BOOL};
static const sample div_samples[] = {PAIRS(FILL_ANY, FILL_NONZERO), NUMBERS(FILL_NONZERO), SPECIAL, FAILS, NOT_BOOL,
    {.name = "zero", .in = {{1, {3}, .dtype = OM_I64}, {1, {3}, .dtype = OM_I64, .values = (const double[]){1, 0, 2}}},
     .fails = OM_ERR_VALUE, .says = "b, int64 [3]"},
    {.name = "zero_i32", .in = {{1, {3}, .dtype = OM_I32}, {0, .dtype = OM_I32, .values = (const double[]){0}}},
     .fails = OM_ERR_VALUE, .says = "zero"}};
static const sample max_samples[] = {PAIRS(FILL_DISTINCT, FILL_NONZERO), NUMBERS(FILL_ANY), SPECIAL, FAILS, NOT_BOOL,
    {.name = "ties", .in = {{2, {6, 6}, FILL_TIES}, {1, {6}, FILL_TIES}}, .no_grad = true}};
static const sample compare_samples[] = {PAIRS(FILL_TIES, FILL_TIES), NUMBERS(FILL_ANY), SPECIAL, FAILS, NOT_BOOL};
static const sample equal_samples[] = {PAIRS(FILL_TIES, FILL_TIES), NUMBERS(FILL_ANY), SPECIAL, FAILS,
    {"bool", {{1, {9}, .dtype = OM_BOOL}, {1, {9}, .dtype = OM_BOOL}}}};
static const sample logic_samples[] = {
    {"same", {{1, {9}, .dtype = OM_BOOL}, {1, {9}, .dtype = OM_BOOL}}},
    {"outer", {{2, {3, 1}, .dtype = OM_BOOL}, {1, {4}, .dtype = OM_BOOL}}},
    {"scalars", {{0, .dtype = OM_BOOL}, {0, .dtype = OM_BOOL}}},
    {"empty", {{2, {0, 4}, .dtype = OM_BOOL}, {1, {4}, .dtype = OM_BOOL}}},
    {.name = "type", .in = {{1, {2}}, {1, {2}}}, .fails = OM_ERR_DTYPE, .says = "om_cast(x, OM_BOOL)"},
    {.name = "shape", .in = {{1, {2}, .dtype = OM_BOOL}, {1, {3}, .dtype = OM_BOOL}}, .fails = OM_ERR_SHAPE, .says = "bool [3]"}};
// clang-format on

static int call_where(const sample *s, om_tensor *const *in, om_tensor **out) {
    (void)s;
    out[0] = om_where(in[0], in[1], in[2]);
    return 1;
}
static void ref_where(const sample *s, const ref *in, ref *out) {
    (void)s;
    int64_t shape[OM_MAX_RANK], at[OM_MAX_RANK] = {0};
    ref ab = {.rank = ref_broadcast(&in[1], &in[2], shape)};
    for (int i = 0; i < ab.rank; i++)
        ab.shape[i] = shape[i];
    int rank = ref_broadcast(&in[0], &ab, shape);
    ref_set(out, in[1].dtype, rank, shape);
    for (int64_t k = 0; k < out->n; k++, ref_next(rank, shape, at)) {
        const ref *from = in[0].v[ref_at(&in[0], rank, at)] != 0 ? &in[1] : &in[2];
        out->v[k]       = from->v[ref_at(from, rank, at)];
    }
}
// clang-format off
static const sample where_samples[] = {
    {"same", {{2, {3, 4}, .dtype = OM_BOOL}, {2, {3, 4}}, {2, {3, 4}}}},
    {"broadcast", {{2, {4, 1}, .dtype = OM_BOOL}, {1, {3}}, {3, {2, 1, 3}}}},
    {"scalar_branch", {{1, {7}, .dtype = OM_BOOL}, {0}, {1, {7}}}},
    {"wide_condition", {{3, {2, 3, 4}, .dtype = OM_BOOL}, {0}, {1, {4}}}},
    {"int64", {{1, {5}, .dtype = OM_BOOL}, {1, {5}, .dtype = OM_I64}, {0, .dtype = OM_I64}}},
    {"bool", {{1, {5}, .dtype = OM_BOOL}, {1, {5}, .dtype = OM_BOOL}, {1, {5}, .dtype = OM_BOOL}}},
    {"float64", {{1, {5}, .dtype = OM_BOOL}, {1, {5}, .dtype = OM_F64}, {1, {5}, .dtype = OM_F64}}},
    {"uint8", {{1, {5}, .dtype = OM_BOOL}, {1, {5}, .dtype = OM_U8}, {1, {5}, .dtype = OM_U8}}},
    {"empty", {{2, {0, 3}, .dtype = OM_BOOL}, {1, {3}}, {0}}}, {"scalars", {{0, .dtype = OM_BOOL}, {0}, {0}}},
    {.name = "special", .in = {{2, {2, 14}, .dtype = OM_BOOL}, {1, {14}, FILL_SPECIAL}, {0}}, .no_grad = true},
    {.name = "condition", .in = {{1, {5}}, {1, {5}}, {1, {5}}}, .fails = OM_ERR_DTYPE, .says = "om_cast(c, OM_BOOL)"},
    {.name = "types", .in = {{1, {5}, .dtype = OM_BOOL}, {1, {5}}, {1, {5}, .dtype = OM_I32}}, .fails = OM_ERR_DTYPE, .says = "int32"},
    {.name = "shape", .in = {{1, {5}, .dtype = OM_BOOL}, {1, {4}}, {1, {4}}}, .fails = OM_ERR_SHAPE, .says = "bool [5]"},
    {.name = "shape_ab", .in = {{1, {5}, .dtype = OM_BOOL}, {1, {5}}, {1, {4}}}, .fails = OM_ERR_SHAPE, .says = "[4]"},
    {.name = "null", .in = {{.null = true}, {1, {4}}, {1, {4}}}, .fails = OM_ERR_ARG, .says = "c is NULL"}};

#define OP(name, ID, n, samples) {#name, OM_OP_##ID, n, call_##name, ref_##name, samples, (int)OM_COUNT(samples), false}
const sample_op sample_binary[] = {
    OP(add, ADD, 2, sum_samples), OP(sub, SUB, 2, sum_samples), OP(mul, MUL, 2, sum_samples), OP(div, DIV, 2, div_samples),
    OP(maximum, MAXIMUM, 2, max_samples), OP(minimum, MINIMUM, 2, max_samples), OP(equal, EQUAL, 2, equal_samples),
    OP(not_equal, NOT_EQUAL, 2, equal_samples), OP(less, LESS, 2, compare_samples),
    OP(less_equal, LESS_EQUAL, 2, compare_samples), OP(greater, GREATER, 2, compare_samples),
    OP(greater_equal, GREATER_EQUAL, 2, compare_samples), OP(and, AND, 2, logic_samples), OP(or, OR, 2, logic_samples),
    OP(xor, XOR, 2, logic_samples), OP(where, WHERE, 3, where_samples), {0}};
// clang-format on
