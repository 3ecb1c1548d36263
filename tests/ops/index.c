/* index.c -- samples of the operators that take a part of a tensor, and of Embedding. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "sample.h"

/* ---- Slice, Select: i = {axis, start, end, step, count} or {axis, index}; the reference walks the
 * axis itself, the other axes as an outer and an inner block ------------------------------------
 */

static int positive(int64_t axis, int rank) {
    return (int)(axis < 0 ? axis + rank : axis);
}

/* out [outer, count, inner] = in [outer, n, inner] at from, from + step, ... */
static void take(const ref *in, int axis, int64_t from, int64_t step, int64_t count, ref *out) {
    int64_t outer = ref_span(in, 0, axis), inner = ref_span(in, axis + 1, in->rank);
    for (int64_t o = 0; o < outer; o++)
        for (int64_t c = 0; c < count; c++)
            for (int64_t k = 0; k < inner; k++)
                out->v[(o * count + c) * inner + k] =
                    in->v[(o * in->shape[axis] + from + c * step) * inner + k];
}

static int call_slice(const sample *s, om_tensor *const *in, om_tensor **out) {
    out[0] = om_slice(in[0], (int)s->i[0], s->i[1], s->i[2], s->i[3]);
    return 1;
}
/* i[4]: first index, i[5]: count, as NumPy gives them. */
static void ref_slice(const sample *s, const ref *in, ref *out) {
    int axis = positive(s->i[0], in->rank);
    int64_t shape[OM_MAX_RANK];
    memcpy(shape, in->shape, sizeof shape);
    shape[axis] = s->i[5];
    ref_set(out, in->dtype, in->rank, shape);
    take(in, axis, s->i[4], s->i[5] > 1 ? s->i[3] : 1, s->i[5], out);
}
static int call_select(const sample *s, om_tensor *const *in, om_tensor **out) {
    out[0] = om_select(in[0], (int)s->i[0], s->i[1]);
    return 1;
}
static void ref_select(const sample *s, const ref *in, ref *out) {
    int axis      = positive(s->i[0], in->rank);
    int64_t index = s->i[1] < 0 ? s->i[1] + in->shape[axis] : s->i[1], shape[OM_MAX_RANK];
    for (int i = 0, k = 0; i < in->rank; i++)
        if (i != axis) shape[k++] = in->shape[i];
    ref_set(out, in->dtype, in->rank - 1, shape);
    take(in, axis, index, 1, 1, out);
}

// clang-format off
#define BAD_ARGS                                                                                   \
    {.name = "null", .in = {{.null = true}}, .i = {0, 0, 1, 1}, .fails = OM_ERR_ARG, .says = "x is NULL"}, \
    {.name = "blocked", .in = {{4, {1, 2, 2, 2}, .blocked = true}}, .i = {0, 0, 1, 1}, .fails = OM_ERR_LAYOUT, .says = "NCHW16c"}
static const sample slice_samples[] = {
    {"rows", {{2, {5, 3}}}, {0, 1, 4, 1, 1, 3}}, {"columns", {{2, {3, 5}}}, {-1, 1, OM_END, 1, 1, 4}},
    {"step", {{3, {2, 7, 2}}}, {1, 1, OM_END, 3, 1, 2}}, {"negative", {{1, {6}}}, {0, -4, -1, 1, 2, 3}},
    {"clamped", {{1, {6}}}, {0, 2, 100, 1, 2, 4}}, {"none", {{2, {4, 2}}}, {0, 3, 1, 1, 0, 0}},
    {"empty", {{2, {0, 3}}}, {1, 0, 2, 1, 0, 2}}, {"one", {{1, {5}}}, {0, 4, OM_END, 7, 4, 1}},
    {"back", {{2, {5, 2}}}, {0, -1, OM_END, -1, 4, 5}}, {"back_step", {{2, {2, 7}}}, {1, 5, 0, -2, 5, 3}},
    {"back_open", {{1, {4}}}, {0, OM_END, OM_END, -3, 3, 2}}, {"back_from_before", {{1, {4}}}, {0, -5, -5, -1, 0, 0}},
    {"back_from_before_open", {{2, {4, 2}}}, {0, -9, OM_END, -1, 0, 0}},
    {"rank8", {{8, {1, 2, 1, 2, 1, 3, 1, 2}}}, {5, 0, 2, 1, 0, 2}},
    {"sliced", {{2, {4, 4}, .view = VIEW_SLICED}}, {0, 0, OM_END, 2, 0, 2}},
    {"broadcast", {{2, {4, 3}, .view = VIEW_BROADCAST}}, {0, 1, 3, 1, 1, 2}},
    {"float64", {{1, {6}, .dtype = OM_F64}}, {0, 0, OM_END, 2, 0, 3}}, {"int64", {{1, {6}, .dtype = OM_I64}}, {0, -1, OM_END, -1, 5, 6}},
    {"int32", {{1, {6}, .dtype = OM_I32}}, {0, 1, 5, 2, 1, 2}}, {"uint8", {{1, {6}, .dtype = OM_U8}}, {0, 1, 5, 1, 1, 4}},
    {"bool", {{1, {6}, .dtype = OM_BOOL}}, {0, 1, 5, 1, 1, 4}}, {"special", {{1, {14}, FILL_SPECIAL}}, {0, -1, OM_END, -1, 13, 14}, .no_grad = true},
    {.name = "step_zero", .in = {{1, {4}}}, .i = {0, 0, 2, 0}, .fails = OM_ERR_ARG, .says = "step is 0"},
    {.name = "axis", .in = {{1, {4}}}, .i = {1, 0, 2, 1}, .fails = OM_ERR_ARG, .says = "axis 1"},
    {.name = "scalar", .in = {{0}}, .i = {0, 0, 2, 1}, .fails = OM_ERR_ARG, .says = "axis 0"}, BAD_ARGS};
static const sample select_samples[] = {
    {"row", {{2, {3, 4}}}, {0, 1}}, {"last", {{2, {3, 4}}}, {-1, -1}}, {"middle", {{3, {2, 3, 4}}}, {1, 2}},
    {"to_scalar", {{1, {3}}}, {0, 2}}, {"empty_rest", {{2, {3, 0}}}, {0, 1}}, {"transposed", {{2, {3, 4}, .view = VIEW_TRANSPOSED}}, {1, 0}},
    {"float64", {{2, {2, 2}, .dtype = OM_F64}}, {1, 0}}, {"int64", {{2, {2, 2}, .dtype = OM_I64}}, {0, 1}}, {"bool", {{2, {2, 2}, .dtype = OM_BOOL}}, {0, 1}},
    {.name = "range", .in = {{2, {3, 4}}}, .i = {1, 4}, .fails = OM_ERR_ARG, .says = "-4 to 3"},
    {.name = "of_empty", .in = {{1, {0}}}, .i = {0, 0}, .fails = OM_ERR_ARG, .says = "index 0"},
    {.name = "axis", .in = {{0}}, .i = {0, 0}, .fails = OM_ERR_ARG, .says = "axis 0"}, BAD_ARGS};
// clang-format on

/* ---- IndexSelect, Embedding: i = {axis} or {padding} ------------------------------------------
 */

static int call_index_select(const sample *s, om_tensor *const *in, om_tensor **out) {
    out[0] = om_index_select(in[0], (int)s->i[0], in[1]);
    return 1;
}
static void gather_ref(const ref *in, int axis, ref *out) {
    const ref *x = in, *idx       = in + 1;
    int64_t shape[OM_MAX_RANK], n = 0;
    for (int i = 0; i < axis; i++)
        shape[n++] = x->shape[i];
    for (int i = 0; i < idx->rank; i++)
        shape[n++] = idx->shape[i];
    for (int i = axis + 1; i < x->rank; i++)
        shape[n++] = x->shape[i];
    ref_set(out, x->dtype, (int)n, shape);
    int64_t outer = ref_span(x, 0, axis), inner = ref_span(x, axis + 1, x->rank);
    for (int64_t o = 0; o < outer; o++)
        for (int64_t j = 0; j < idx->n; j++)
            for (int64_t k = 0; k < inner; k++) {
                int64_t at = (int64_t)idx->v[j];
                if (at < 0) at += x->shape[axis];
                out->v[(o * idx->n + j) * inner + k] = x->v[(o * x->shape[axis] + at) * inner + k];
            }
}
static void ref_index_select(const sample *s, const ref *in, ref *out) {
    gather_ref(in, positive(s->i[0], in->rank), out);
}
static int call_embedding(const sample *s, om_tensor *const *in, om_tensor **out) {
    out[0] = om_embedding(in[0], in[1], s->i[0]);
    return 1;
}
static void ref_embedding(const sample *s, const ref *in, ref *out) {
    (void)s;
    gather_ref(in, 0, out);
}

// clang-format off
#define IDX(rank_, dims, low, high) {rank_, dims, FILL_INDEX, .dtype = OM_I64, .lo = low, .hi = high}
#define D(...) {__VA_ARGS__}
static const sample index_select_samples[] = {
    {"rows", {{2, {5, 3}}, IDX(1, D(7), 0, 5)}, {0}}, {"columns", {{2, {3, 5}}, IDX(1, D(4), -5, 5)}, {-1}},
    {"middle", {{3, {2, 4, 3}}, IDX(1, D(6), 0, 4)}, {1}}, {"matrix", {{2, {5, 3}}, IDX(2, D(2, 3), 0, 5)}, {0}},
    {"scalar_index", {{2, {5, 3}}, IDX(0, D(0), 0, 3)}, {1}}, {"none", {{2, {5, 3}}, IDX(1, D(0), 0, 5)}, {0}},
    {"empty_rest", {{2, {5, 0}}, IDX(1, D(2), 0, 5)}, {0}}, {"many", {{2, {3, 2}}, IDX(1, D(100), 0, 3)}, {0}, .grad_tol = 1e-4},
    {"int32", {{2, {5, 3}}, {1, {4}, FILL_INDEX, .dtype = OM_I32, .lo = -5, .hi = 5}}, {0}},
    {"views", {{2, {4, 4}, .view = VIEW_TRANSPOSED}, {1, {4}, FILL_INDEX, .view = VIEW_SLICED, .dtype = OM_I64, .lo = 0, .hi = 4}}, {1}},
    {"float64", {{2, {5, 3}, .dtype = OM_F64}, IDX(1, D(7), 0, 5)}, {0}}, {"of_int64", {{2, {5, 3}, .dtype = OM_I64}, IDX(1, D(7), 0, 5)}, {0}},
    {"of_uint8", {{2, {5, 3}, .dtype = OM_U8}, IDX(1, D(7), 0, 5)}, {0}},
    {.name = "high", .in = {{2, {5, 3}}, {1, {2}, .dtype = OM_I64, .values = (const double[]){0, 5}}}, .i = {0}, .fails = OM_ERR_VALUE, .says = "index 5"},
    {.name = "low", .in = {{2, {5, 3}}, {1, {2}, .dtype = OM_I64, .values = (const double[]){0, -6}}}, .i = {0}, .fails = OM_ERR_VALUE, .says = "index -6"},
    {.name = "float_index", .in = {{2, {5, 3}}, {1, {2}}}, .fails = OM_ERR_DTYPE, .says = "om_cast"},
    {.name = "rank", .in = {{8, {1, 1, 1, 1, 1, 1, 1, 1}}, IDX(2, D(1, 1), 0, 1)}, .fails = OM_ERR_SHAPE, .says = "8 axes"},
    {.name = "axis", .in = {{2, {5, 3}}, IDX(1, D(1), 0, 1)}, .i = {2}, .fails = OM_ERR_ARG, .says = "axis 2"},
    {.name = "null_index", .in = {{2, {5, 3}}, {.null = true}}, .fails = OM_ERR_ARG, .says = "idx is NULL"},
    {.name = "blocked", .in = {{4, {1, 2, 2, 2}, .blocked = true}, IDX(1, D(1), 0, 1)}, .fails = OM_ERR_LAYOUT, .says = "x is"}};
static const sample embedding_samples[] = {
    {"row", {{2, {6, 3}}, IDX(1, D(5), 0, 6)}, {-1}}, {"batch", {{2, {6, 3}}, IDX(2, D(3, 4), 0, 6)}, {-1}},
    {"scalar_index", {{2, {6, 3}}, IDX(0, D(0), 0, 6)}, {-1}}, {"none", {{2, {6, 3}}, IDX(2, D(0, 3), 0, 6)}, {-1}},
    {"int32", {{2, {6, 3}}, {1, {5}, FILL_INDEX, .dtype = OM_I32, .lo = 0, .hi = 6}}, {-5}},
    {"padding", {{2, {4, 3}}, IDX(1, D(9), 0, 4)}, {2}, .no_grad = true}, {"wide", {{2, {3, 40}}, IDX(1, D(8), 0, 3)}, {-1}},
    {"float64", {{2, {6, 3}, .dtype = OM_F64}, IDX(1, D(5), 0, 6)}, {-1}}, {"of_bool", {{2, {6, 3}, .dtype = OM_BOOL}, IDX(1, D(5), 0, 6)}, {-1}},
    {.name = "high", .in = {{2, {6, 3}}, {1, {1}, .dtype = OM_I64, .values = (const double[]){6}}}, .i = {-1}, .fails = OM_ERR_VALUE, .says = "index 6"},
    {.name = "padding_high", .in = {{2, {6, 3}}, IDX(1, D(2), 0, 6)}, .i = {6}, .fails = OM_ERR_ARG, .says = "padding_idx 6"},
    {.name = "rank", .in = {{3, {6, 3, 1}}, IDX(1, D(2), 0, 6)}, .i = {-1}, .fails = OM_ERR_SHAPE, .says = "[rows, dim]"},
    {.name = "float_index", .in = {{2, {6, 3}}, {1, {2}}}, .i = {-1}, .fails = OM_ERR_DTYPE, .says = "om_cast"},
    {.name = "null", .in = {{.null = true}, IDX(1, D(2), 0, 6)}, .i = {-1}, .fails = OM_ERR_ARG, .says = "w is NULL"},
    {.name = "blocked_index", .in = {{2, {6, 3}}, {4, {1, 1, 1, 1}, FILL_INDEX, .dtype = OM_I64, .hi = 6, .blocked = true}}, .i = {-1}, .fails = OM_ERR_LAYOUT, .says = "idx is"}};
// clang-format on

/* ---- Split: i = {axis, n, sizes...} ------------------------------------------------------------
 */

static int call_split(const sample *s, om_tensor *const *in, om_tensor **out) {
    int n = (int)s->i[1];
    return om_split(in[0], (int)s->i[0], n, s->i + 2, out) == OM_OK ? n : (out[0] = NULL, n);
}
static void ref_split(const sample *s, const ref *in, ref *out) {
    int axis      = positive(s->i[0], in->rank);
    int64_t start = 0, shape[OM_MAX_RANK];
    memcpy(shape, in->shape, sizeof shape);
    for (int k = 0; k < s->i[1]; start += s->i[2 + k++]) {
        shape[axis] = s->i[2 + k];
        ref_set(&out[k], in->dtype, in->rank, shape);
        take(in, axis, start, 1, shape[axis], &out[k]);
    }
}

/* ---- TopK: i = {k, axis, smallest} --------------------------------------------------------------
 */

static int call_top_k(const sample *s, om_tensor *const *in, om_tensor **out) {
    om_top_k(in[0], s->i[0], (int)s->i[1], s->i[2] != 0, &out[0], &out[1]);
    return 2;
}
/* a comes before b: NaN is the greatest, equals keep their order. */
static bool before(double a, double b, bool smallest) {
    if (isnan(a) || isnan(b)) return smallest ? !isnan(a) && isnan(b) : isnan(a) && !isnan(b);
    return smallest ? a < b : a > b;
}
static void ref_top_k(const sample *s, const ref *in, ref *out) {
    int axis = positive(s->i[1], in->rank);
    int64_t shape[OM_MAX_RANK], n = in->shape[axis];
    memcpy(shape, in->shape, sizeof shape);
    shape[axis] = s->i[0];
    ref_set(&out[0], in->dtype, in->rank, shape);
    ref_set(&out[1], OM_I64, in->rank, shape);
    int64_t outer = ref_span(in, 0, axis), inner = ref_span(in, axis + 1, in->rank);
    for (int64_t o = 0; o < outer; o++)
        for (int64_t k = 0; k < inner; k++) {
            const double *x = in->v + o * n * inner + k;
            for (int64_t i = 0; i < n; i++) { // the place of element i among all
                int64_t place = 0;
                for (int64_t j = 0; j < n; j++)
                    place += before(x[j * inner], x[i * inner], s->i[2] != 0) ||
                             (j < i && !before(x[i * inner], x[j * inner], s->i[2] != 0));
                if (place >= s->i[0]) continue;
                out[0].v[(o * s->i[0] + place) * inner + k] = x[i * inner];
                out[1].v[(o * s->i[0] + place) * inner + k] = (double)i;
            }
        }
}

// clang-format off
static const sample split_samples[] = {
    {"five", {{2, {3, 10}}}, {1, 5, 1, 4, 0, 3, 2}}, {"rows", {{3, {5, 2, 2}}}, {0, 2, 2, 3}}, {"one", {{2, {3, 4}}}, {-1, 1, 4}},
    {"eight", {{1, {8}}}, {0, 8, 1, 1, 1, 1, 1, 1, 1, 1}}, {"empty", {{2, {0, 4}}}, {1, 2, 1, 3}},
    {"transposed", {{2, {3, 6}, .view = VIEW_TRANSPOSED}}, {1, 2, 2, 4}}, {"float64", {{1, {5}, .dtype = OM_F64}}, {0, 2, 2, 3}},
    {"int64", {{1, {5}, .dtype = OM_I64}}, {0, 2, 2, 3}}, {"bool", {{1, {5}, .dtype = OM_BOOL}}, {0, 2, 2, 3}},
    {.name = "sum", .in = {{1, {5}}}, .i = {0, 2, 2, 2}, .fails = OM_ERR_SHAPE, .says = "[2,2] sum to 4"},
    {.name = "negative", .in = {{1, {5}}}, .i = {0, 2, 6, -1}, .fails = OM_ERR_ARG, .says = "size -1"},
    {.name = "no_pieces", .in = {{1, {5}}}, .i = {0, 0}, .fails = OM_ERR_ARG, .says = "one or more"},
    {.name = "axis", .in = {{1, {5}}}, .i = {1, 1, 5}, .fails = OM_ERR_ARG, .says = "axis 1"}, BAD_ARGS};
static const sample top_k_samples[] = {
    {"row", {{1, {9}, FILL_DISTINCT}}, {4, 0, 0}}, {"smallest", {{2, {3, 7}, FILL_DISTINCT}}, {3, -1, 1}},
    {"columns", {{2, {7, 3}, FILL_DISTINCT}}, {2, 0, 0}}, {"middle", {{3, {2, 5, 3}, FILL_DISTINCT}}, {5, 1, 0}},
    {"ties", {{2, {4, 9}, FILL_TIES}}, {5, 1, 0}, .no_grad = true}, {"ties_smallest", {{2, {4, 9}, FILL_TIES}}, {5, 1, 1}, .no_grad = true},
    {"special", {{2, {2, 14}, FILL_SPECIAL}}, {14, 1, 0}, .no_grad = true}, {"special_smallest", {{1, {28}, FILL_SPECIAL}}, {28, 0, 1}, .no_grad = true},
    {"none", {{2, {3, 4}, FILL_DISTINCT}}, {0, 1, 0}}, {"empty", {{2, {0, 4}}}, {2, 1, 0}}, {"long", {{1, {600}, FILL_DISTINCT}}, {17, 0, 0}, .no_grad = true},
    {"transposed", {{2, {4, 5}, FILL_DISTINCT, VIEW_TRANSPOSED}}, {2, 1, 0}}, {"float64", {{2, {2, 6}, FILL_DISTINCT, .dtype = OM_F64}}, {3, 1, 0}},
    {"int64", {{2, {2, 9}, .dtype = OM_I64}}, {4, 1, 0}}, {"int32", {{2, {2, 9}, .dtype = OM_I32}}, {4, 1, 1}}, {"uint8", {{2, {2, 9}, .dtype = OM_U8}}, {4, 1, 0}},
    {.name = "too_many", .in = {{2, {3, 4}}}, .i = {5, 1}, .fails = OM_ERR_ARG, .says = "k is 5"},
    {.name = "negative", .in = {{2, {3, 4}}}, .i = {-1, 1}, .fails = OM_ERR_ARG, .says = "k is -1"},
    {.name = "axis", .in = {{0}}, .i = {1, 0}, .fails = OM_ERR_ARG, .says = "axis 0"},
    {.name = "type", .in = {{1, {3}, .dtype = OM_BOOL}}, .i = {1, 0}, .fails = OM_ERR_DTYPE, .says = "om_cast"}, BAD_ARGS};

#define OP(name, ID, n, samples)                                                                   \
    {#name, OM_OP_##ID, n, call_##name, ref_##name, samples, (int)OM_COUNT(samples), false}
const sample_op sample_index[] = {
    OP(slice, SLICE, 1, slice_samples), OP(select, SELECT, 1, select_samples), OP(index_select, INDEX_SELECT, 2, index_select_samples),
    OP(embedding, EMBEDDING, 2, embedding_samples), OP(split, SPLIT, 1, split_samples), OP(top_k, TOP_K, 1, top_k_samples), {0}};
// clang-format on
