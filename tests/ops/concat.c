/* concat.c -- samples of the operators that put tensors together. */
#include <math.h>
#include <string.h>

#include "sample.h"

/* ---- Concat, Stack: i = {axis, n} ---------------------------------------------------------------
 */

static int call_concat(const sample *s, om_tensor *const *in, om_tensor **out) {
    out[0] = om_concat((int)s->i[1], in, (int)s->i[0]);
    return 1;
}
/* out [outer, sum of the parts' rows, inner], each part a block of rows [outer, rows, inner]. */
static void join(const ref *in, int n, int64_t outer, const int64_t *rows, ref *out) {
    double *to = out->v;
    for (int64_t o = 0; o < outer; o++)
        for (int k = 0; k < n; k++)
            for (int64_t i = 0; i < rows[k]; i++)
                *to++ = in[k].v[o * rows[k] + i];
}
static void ref_concat(const sample *s, const ref *in, ref *out) {
    int64_t shape[OM_MAX_RANK], rows[SAMPLE_IN], n = s->i[1];
    int axis = (int)(s->i[0] < 0 ? s->i[0] + in->rank : s->i[0]);
    memcpy(shape, in->shape, sizeof shape);
    shape[axis] = 0;
    for (int k = 0; k < n; k++) {
        shape[axis] += in[k].shape[axis];
        rows[k] = ref_span(&in[k], axis, in->rank);
    }
    ref_set(out, in->dtype, in->rank, shape);
    join(in, (int)n, ref_span(in, 0, axis), rows, out);
}
static int call_stack(const sample *s, om_tensor *const *in, om_tensor **out) {
    out[0] = om_stack((int)s->i[1], in, (int)s->i[0]);
    return 1;
}
static void ref_stack(const sample *s, const ref *in, ref *out) {
    int64_t shape[OM_MAX_RANK], rows[SAMPLE_IN], n = s->i[1];
    int axis = (int)(s->i[0] < 0 ? s->i[0] + in->rank + 1 : s->i[0]);
    for (int i = 0; i <= in->rank; i++)
        shape[i] = i == axis ? n : in->shape[i < axis ? i : i - 1];
    for (int k = 0; k < n; k++)
        rows[k] = ref_span(in, axis, in->rank);
    ref_set(out, in->dtype, in->rank + 1, shape);
    join(in, (int)n, ref_span(in, 0, axis), rows, out);
}

// clang-format off
#define X(...) {__VA_ARGS__}
static const sample concat_samples[] = {
    {"rows", {X(2, {2, 3}), X(2, {4, 3})}, {0, 2}}, {"columns", {X(2, {3, 2}), X(2, {3, 1}), X(2, {3, 4})}, {-1, 3}},
    {"one", {X(2, {2, 3})}, {1, 1}}, {"empty_part", {X(2, {2, 0}), X(2, {2, 3})}, {1, 2}}, {"empty", {X(2, {0, 3}), X(2, {0, 2})}, {1, 2}},
    {"six", {X(1, {1}), X(1, {2}), X(1, {3}), X(1, {1}), X(1, {2}), X(1, {1})}, {0, 6}},
    {"rank8", {X(8, {1, 2, 1, 2, 1, 3, 1, 2}), X(8, {1, 2, 1, 1, 1, 3, 1, 2})}, {3, 2}},
    {"views", {X(2, {3, 4}, .view = VIEW_TRANSPOSED), X(2, {3, 2}, .view = VIEW_SLICED)}, {1, 2}},
    {"some_frozen", {X(2, {2, 3}), X(2, {1, 3}, .no_grad = true), X(2, {2, 3})}, {0, 3}},
    {"special", {X(1, {14}, FILL_SPECIAL), X(1, {3})}, {0, 2}, .no_grad = true},
    {"float64", {X(1, {2}, .dtype = OM_F64), X(1, {3}, .dtype = OM_F64)}, {0, 2}}, {"int64", {X(1, {2}, .dtype = OM_I64), X(1, {3}, .dtype = OM_I64)}, {0, 2}},
    {"int32", {X(1, {2}, .dtype = OM_I32), X(1, {3}, .dtype = OM_I32)}, {0, 2}}, {"uint8", {X(1, {2}, .dtype = OM_U8), X(1, {3}, .dtype = OM_U8)}, {0, 2}},
    {"bool", {X(1, {2}, .dtype = OM_BOOL), X(1, {3}, .dtype = OM_BOOL)}, {0, 2}},
    {.name = "sizes", .in = {X(2, {2, 3}), X(2, {2, 4})}, .i = {0, 2}, .fails = OM_ERR_SHAPE, .says = "[2,4]"},
    {.name = "ranks", .in = {X(2, {2, 3}), X(1, {3})}, .i = {0, 2}, .fails = OM_ERR_SHAPE, .says = "number 2"},
    {.name = "types", .in = {X(1, {3}), X(1, {3}, .dtype = OM_I64)}, .i = {0, 2}, .fails = OM_ERR_DTYPE, .says = "om_cast"},
    {.name = "scalars", .in = {X(0), X(0)}, .i = {0, 2}, .fails = OM_ERR_SHAPE, .says = "om_stack"},
    {.name = "axis", .in = {X(1, {3}), X(1, {3})}, .i = {1, 2}, .fails = OM_ERR_ARG, .says = "axis 1"},
    {.name = "nothing", .in = {X(1, {3})}, .i = {0, 0}, .fails = OM_ERR_ARG, .says = "one or more"},
    {.name = "null", .in = {X(1, {3}), X(.null = true)}, .i = {0, 2}, .fails = OM_ERR_ARG, .says = "NULL"},
    {.name = "blocked", .in = {X(4, {1, 2, 2, 2}), X(4, {1, 2, 2, 2}, .blocked = true)}, .i = {0, 2}, .fails = OM_ERR_LAYOUT}};
static const sample stack_samples[] = {
    {"front", {X(2, {2, 3}), X(2, {2, 3})}, {0, 2}}, {"back", {X(2, {2, 3}), X(2, {2, 3}), X(2, {2, 3})}, {-1, 3}},
    {"middle", {X(2, {2, 3}), X(2, {2, 3})}, {1, 2}}, {"scalars", {X(0), X(0), X(0)}, {0, 3}}, {"one", {X(1, {4})}, {0, 1}},
    {"empty", {X(1, {0}), X(1, {0})}, {1, 2}}, {"int64", {X(1, {3}, .dtype = OM_I64), X(1, {3}, .dtype = OM_I64)}, {0, 2}},
    {.name = "sizes", .in = {X(1, {2}), X(1, {3})}, .i = {0, 2}, .fails = OM_ERR_SHAPE, .says = "shapes differ"},
    {.name = "types", .in = {X(1, {3}), X(1, {3}, .dtype = OM_I64)}, .i = {0, 2}, .fails = OM_ERR_DTYPE},
    {.name = "rank", .in = {X(8, {1, 1, 1, 1, 1, 1, 1, 1})}, .i = {0, 1}, .fails = OM_ERR_SHAPE, .says = "within 8"},
    {.name = "axis", .in = {X(1, {3})}, .i = {2, 1}, .fails = OM_ERR_ARG, .says = "axis 2"},
    {.name = "nothing", .in = {X(1, {3})}, .i = {0, 0}, .fails = OM_ERR_ARG, .says = "one or more"},
    {.name = "null", .in = {X(1, {3}), X(.null = true)}, .i = {0, 2}, .fails = OM_ERR_ARG, .says = "NULL"},
    {.name = "blocked", .in = {X(4, {1, 2, 2, 2}, .blocked = true)}, .i = {0, 1}, .fails = OM_ERR_LAYOUT}};
// clang-format on

/* ---- Pad: i = {rank, before..., after... from i[9]}, f = {value}
 * --------------------------------- */

static int call_pad(const sample *s, om_tensor *const *in, om_tensor **out) {
    out[0] = om_pad(in[0], (int)s->i[0], s->i + 1, s->i + 9, s->f[0]);
    return 1;
}
static void ref_pad(const sample *s, const ref *in, ref *out) {
    int64_t shape[OM_MAX_RANK], at[OM_MAX_RANK] = {0};
    for (int i = 0; i < in->rank; i++)
        shape[i] = in->shape[i] + s->i[1 + i] + s->i[9 + i];
    ref_set(out, in->dtype, in->rank, shape);
    for (int64_t k = 0; k < out->n; k++, ref_next(in->rank, shape, at)) {
        int64_t flat = 0;
        bool inside  = true;
        for (int i = 0; i < in->rank; i++) {
            int64_t from = at[i] - s->i[1 + i];
            inside       = inside && from >= 0 && from < in->shape[i];
            flat         = flat * in->shape[i] + from;
        }
        out->v[k] = inside ? in->v[flat] : s->f[0];
    }
}

// clang-format off
#define AFTER(...) [9] = __VA_ARGS__
static const sample pad_samples[] = {
    {"image", {X(4, {1, 2, 3, 3})}, {4, 0, 0, 1, 2, AFTER(0, 0, 2, 1)}, {0.5}}, {"row", {X(1, {3})}, {1, 2, AFTER(1)}, {-1}},
    {"nothing", {X(2, {2, 3})}, {2, 0, 0, AFTER(0, 0)}, {1}}, {"from_empty", {X(2, {0, 2})}, {2, 1, 0, AFTER(1, 1)}, {2}},
    {"empty", {X(2, {0, 2})}, {2, 0, 1, AFTER(0, 1)}, {2}}, {"scalar", {X(0)}, {0}, {2}}, {"infinite", {X(2, {2, 2})}, {2, 1, 1, AFTER(0, 0)}, {-INFINITY}, .no_grad = true},
    {"nan", {X(1, {2})}, {1, 1, AFTER(1)}, {NAN}, .no_grad = true}, {"rank8", {X(8, {1, 1, 2, 1, 1, 2, 1, 1})}, {8, 0, 1, 0, 0, 1, 0, 0, 0, AFTER(0, 0, 0, 0, 0, 1, 0, 1)}, {3}},
    {"transposed", {X(2, {3, 2}, .view = VIEW_TRANSPOSED)}, {2, 1, 0, AFTER(0, 2)}, {9}},
    {"float64", {X(1, {2}, .dtype = OM_F64)}, {1, 1, AFTER(0)}, {0.1}}, {"int64", {X(1, {2}, .dtype = OM_I64)}, {1, 1, AFTER(2)}, {-7}},
    {"int32", {X(1, {2}, .dtype = OM_I32)}, {1, 1, AFTER(2)}, {-7}}, {"uint8", {X(1, {2}, .dtype = OM_U8)}, {1, 1, AFTER(2)}, {255}}, {"bool", {X(1, {2}, .dtype = OM_BOOL)}, {1, 1, AFTER(2)}, {1}},
    {.name = "rank", .in = {X(2, {2, 3})}, .i = {1, 1}, .fails = OM_ERR_ARG, .says = "all 2"},
    {.name = "negative", .in = {X(1, {3})}, .i = {1, -1}, .fails = OM_ERR_ARG, .says = "om_slice"},
    {.name = "negative_after", .in = {X(1, {3})}, .i = {1, 0, AFTER(-2)}, .fails = OM_ERR_ARG, .says = "om_slice"},
    {.name = "overflow", .in = {X(1, {3})}, .i = {1, INT64_MAX}, .fails = OM_ERR_SHAPE, .says = "overflow"},
    {.name = "null", .in = {X(.null = true)}, .i = {1, 1}, .fails = OM_ERR_ARG, .says = "NULL"},
    {.name = "blocked", .in = {X(4, {1, 2, 2, 2}, .blocked = true)}, .i = {4}, .fails = OM_ERR_LAYOUT}};

#define OP(name, ID, samples, composite)                                                           \
    {#name, OM_OP_##ID, SAMPLE_IN, call_##name, ref_##name, samples, (int)OM_COUNT(samples), composite}
const sample_op sample_concat[] = {
    OP(concat, CONCAT, concat_samples, false), OP(stack, CONCAT, stack_samples, true),
    {"pad", OM_OP_PAD, 1, call_pad, ref_pad, pad_samples, (int)OM_COUNT(pad_samples), false}, {0}};
// clang-format on
