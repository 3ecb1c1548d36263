/* shape.c -- samples of the operators that change how elements are seen. i: {n, list...}. */
#include <string.h>

#include "sample.h"

/* ---- elements in the same order: out's shape is in i[8..], its rank in i[7] --------------------
 */

static int call_reshape(const sample *s, om_tensor *const *in, om_tensor **out) {
    out[0] = om_reshape(in[0], (int)s->i[0], s->i + 1);
    return 1;
}
static int call_flatten(const sample *s, om_tensor *const *in, om_tensor **out) {
    out[0] = om_flatten(in[0], (int)s->i[0]);
    return 1;
}
static int call_squeeze(const sample *s, om_tensor *const *in, om_tensor **out) {
    out[0] = om_squeeze(in[0], (int)s->i[0], s->i + 1);
    return 1;
}
static int call_unsqueeze(const sample *s, om_tensor *const *in, om_tensor **out) {
    out[0] = om_unsqueeze(in[0], (int)s->i[0], s->i + 1);
    return 1;
}
static int call_clone(const sample *s, om_tensor *const *in, om_tensor **out) {
    (void)s;
    out[0] = om_clone(in[0]);
    return 1;
}
static void ref_order(const sample *s, const ref *in, ref *out) {
    ref_set(out, in->dtype, (int)s->i[9], s->i + 10);
    memcpy(out->v, in->v, (size_t)in->n * sizeof *in->v);
}
static void ref_clone(const sample *s, const ref *in, ref *out) {
    (void)s;
    ref_like(out, in);
    memcpy(out->v, in->v, (size_t)in->n * sizeof *in->v);
}

// clang-format off
#define TO(...) [9] = __VA_ARGS__ /* the resulting rank and sizes */
#define BAD_ARGS                                                                                   \
    {.name = "null", .in = {{.null = true}}, .fails = OM_ERR_ARG, .says = "x is NULL"},            \
    {.name = "blocked", .in = {{4, {1, 2, 2, 2}, .blocked = true}}, .fails = OM_ERR_LAYOUT, .says = "NCHW16c"}
static const sample reshape_samples[] = {
    {"join", {{3, {2, 3, 4}}}, {2, 6, 4, TO(2, 6, 4)}}, {"open", {{3, {2, 3, 4}}}, {2, -1, 8, TO(2, 3, 8)}},
    {"split", {{1, {24}}}, {4, 2, 3, 1, 4, TO(4, 2, 3, 1, 4)}}, {"rank8", {{2, {4, 4}}}, {8, 1, 2, 1, 2, 1, 2, 1, -1, TO(8, 1, 2, 1, 2, 1, 2, 1, 2)}},
    {"to_scalar", {{2, {1, 1}}}, {0, TO(0)}}, {"from_scalar", {{0}}, {2, 1, 1, TO(2, 1, 1)}},
    {"empty", {{2, {0, 3}}}, {3, 2, 0, 5, TO(3, 2, 0, 5)}}, {"empty_open", {{2, {0, 3}}}, {2, -1, 1, TO(2, 0, 1)}},
    {"transposed", {{3, {2, 3, 4}, .view = VIEW_TRANSPOSED}}, {2, 4, 6, TO(2, 4, 6)}},
    {"broadcast", {{2, {3, 4}, .view = VIEW_BROADCAST}}, {1, 12, TO(1, 12)}},
    {"special", {{1, {14}, FILL_SPECIAL}}, {2, 2, 7, TO(2, 2, 7)}, .no_grad = true},
    {"int64", {{2, {2, 3}, .dtype = OM_I64}}, {1, -1, TO(1, 6)}}, {"bool", {{2, {2, 3}, .dtype = OM_BOOL}}, {1, 6, TO(1, 6)}},
    {"uint8", {{2, {2, 3}, .dtype = OM_U8}}, {2, 3, 2, TO(2, 3, 2)}}, {"int32", {{1, {4}, .dtype = OM_I32}}, {2, 2, 2, TO(2, 2, 2)}},
    {"float64", {{2, {2, 3}, .dtype = OM_F64}}, {2, 3, 2, TO(2, 3, 2)}},
    {.name = "count", .in = {{2, {2, 3}}}, .i = {2, 4, 2}, .fails = OM_ERR_SHAPE, .says = "[4,2]"},
    {.name = "two_open", .in = {{2, {2, 3}}}, .i = {2, -1, -1}, .fails = OM_ERR_SHAPE, .says = "-1"},
    {.name = "negative", .in = {{2, {2, 3}}}, .i = {2, -3, -2}, .fails = OM_ERR_SHAPE, .says = ">= 0"},
    {.name = "open_zero", .in = {{2, {2, 0}}}, .i = {2, -1, 0}, .fails = OM_ERR_SHAPE, .says = "size 0"},
    {.name = "rank", .in = {{2, {2, 3}}}, .i = {9, 6, 1, 1, 1, 1, 1, 1, 1, 1}, .fails = OM_ERR_SHAPE, .says = "rank 9"}, BAD_ARGS};
static const sample flatten_samples[] = {
    {"image", {{4, {2, 3, 2, 2}}}, {1, TO(2, 2, 12)}}, {"all", {{3, {2, 3, 2}}}, {0, TO(1, 12)}},
    {"last_two", {{3, {2, 3, 2}}}, {-2, TO(2, 2, 6)}}, {"scalar", {{0}}, {0, TO(1, 1)}},
    {"empty_batch", {{3, {0, 3, 2}}}, {1, TO(2, 0, 6)}}, {"empty", {{3, {2, 0, 2}}}, {1, TO(2, 2, 0)}},
    {"int64", {{2, {2, 3}, .dtype = OM_I64}}, {0, TO(1, 6)}},
    {.name = "axis", .in = {{2, {2, 3}}}, .i = {2}, .fails = OM_ERR_ARG, .says = "axis 2"},
    {.name = "null", .in = {{.null = true}}, .fails = OM_ERR_ARG}, {.name = "blocked", .in = {{4, {1, 2, 2, 2}, .blocked = true}}, .fails = OM_ERR_LAYOUT}};
static const sample squeeze_samples[] = {
    {"one", {{3, {2, 1, 3}}}, {1, 1, TO(2, 2, 3)}}, {"two", {{4, {1, 2, 1, 3}}}, {2, -2, 0, TO(2, 2, 3)}},
    {"all", {{4, {1, 2, 1, 3}}}, {0, TO(2, 2, 3)}}, {"to_scalar", {{2, {1, 1}}}, {2, 0, 1, TO(0)}},
    {"empty", {{3, {0, 1, 3}}}, {1, 1, TO(2, 0, 3)}}, {"bool", {{2, {1, 3}, .dtype = OM_BOOL}}, {1, 0, TO(1, 3)}},
    {.name = "size", .in = {{2, {2, 1}}}, .i = {1, 0}, .fails = OM_ERR_SHAPE, .says = "size 2"},
    {.name = "axis", .in = {{2, {2, 1}}}, .i = {1, 2}, .fails = OM_ERR_ARG, .says = "axis 2"},
    {.name = "twice", .in = {{2, {2, 1}}}, .i = {2, 1, -1}, .fails = OM_ERR_ARG, .says = "twice"}, BAD_ARGS};
static const sample unsqueeze_samples[] = {
    {"front", {{2, {2, 3}}}, {1, 0, TO(3, 1, 2, 3)}}, {"back", {{2, {2, 3}}}, {1, -1, TO(3, 2, 3, 1)}},
    {"three", {{2, {2, 3}}}, {3, 4, 0, 2, TO(5, 1, 2, 1, 3, 1)}}, {"scalar", {{0}}, {2, 0, 1, TO(2, 1, 1)}},
    {"rank8", {{7, {1, 2, 1, 1, 2, 1, 1}}}, {1, 3, TO(8, 1, 2, 1, 1, 1, 2, 1, 1)}}, {"empty", {{1, {0}}}, {1, 1, TO(2, 0, 1)}},
    {"int32", {{1, {3}, .dtype = OM_I32}}, {1, 0, TO(2, 1, 3)}},
    {.name = "axis", .in = {{2, {2, 1}}}, .i = {1, 3}, .fails = OM_ERR_ARG, .says = "axis 3"},
    {.name = "twice", .in = {{2, {2, 1}}}, .i = {2, 1, -3}, .fails = OM_ERR_ARG, .says = "twice"},
    {.name = "rank", .in = {{7, {1, 1, 1, 1, 1, 1, 1}}}, .i = {2, 0, 1}, .fails = OM_ERR_SHAPE, .says = "within 8"},
    {.name = "null", .in = {{.null = true}}, .i = {1, 0}, .fails = OM_ERR_ARG, .says = "NULL"},
    {.name = "blocked", .in = {{4, {1, 2, 2, 2}, .blocked = true}}, .i = {1, 0}, .fails = OM_ERR_LAYOUT}};
static const sample clone_samples[] = {
    {"matrix", {{2, {3, 4}}}}, {"scalar", {{0}}}, {"empty", {{2, {3, 0}}}}, {"rank8", {{8, {1, 2, 1, 2, 1, 2, 1, 2}}}},
    {"transposed", {{3, {2, 3, 4}, .view = VIEW_TRANSPOSED}}}, {"sliced", {{2, {2, 3}, .view = VIEW_SLICED}}},
    {"broadcast", {{2, {2, 3}, .view = VIEW_BROADCAST}}}, {"special", {{1, {14}, FILL_SPECIAL}}, .no_grad = true},
    {"float64", {{1, {3}, .dtype = OM_F64}}}, {"int64", {{1, {3}, .dtype = OM_I64}}}, {"int32", {{1, {3}, .dtype = OM_I32}}},
    {"uint8", {{1, {3}, .dtype = OM_U8}}}, {"bool", {{1, {3}, .dtype = OM_BOOL}}}, BAD_ARGS};
// clang-format on

/* ---- Permute, Transpose ---------------------------------------------------------------------- */

static int call_permute(const sample *s, om_tensor *const *in, om_tensor **out) {
    out[0] = om_permute(in[0], (int)s->i[0], s->i + 1);
    return 1;
}
static void permuted_ref(const ref *in, const int64_t *perm, ref *out) {
    int64_t shape[OM_MAX_RANK], at[OM_MAX_RANK] = {0}, from[OM_MAX_RANK];
    for (int i = 0; i < in->rank; i++)
        shape[i] = in->shape[perm[i]];
    ref_set(out, in->dtype, in->rank, shape);
    for (int64_t k = 0; k < out->n; k++, ref_next(in->rank, shape, at)) {
        for (int i = 0; i < in->rank; i++)
            from[perm[i]] = at[i];
        int64_t flat = 0;
        for (int i = 0; i < in->rank; i++)
            flat = flat * in->shape[i] + from[i];
        out->v[k] = in->v[flat];
    }
}
static void ref_permute(const sample *s, const ref *in, ref *out) {
    int64_t perm[OM_MAX_RANK];
    for (int i = 0; i < in->rank; i++)
        perm[i] = s->i[1 + i] < 0 ? s->i[1 + i] + in->rank : s->i[1 + i];
    permuted_ref(in, perm, out);
}
static int call_transpose(const sample *s, om_tensor *const *in, om_tensor **out) {
    out[0] = om_transpose(in[0], (int)s->i[0], (int)s->i[1]);
    return 1;
}
static void ref_transpose(const sample *s, const ref *in, ref *out) {
    int64_t perm[OM_MAX_RANK];
    int64_t a = s->i[0] < 0 ? s->i[0] + in->rank : s->i[0];
    int64_t b = s->i[1] < 0 ? s->i[1] + in->rank : s->i[1];
    for (int64_t i = 0; i < in->rank; i++)
        perm[i] = i == a ? b : i == b ? a : i;
    permuted_ref(in, perm, out);
}
// clang-format off
static const sample permute_samples[] = {
    {"cycle", {{3, {2, 3, 4}}}, {3, 2, 0, 1}}, {"negative", {{4, {2, 3, 4, 2}}}, {4, 0, -1, 1, -2}},
    {"identity", {{2, {2, 3}}}, {2, 0, 1}}, {"scalar", {{0}}, {0}}, {"empty", {{3, {2, 0, 3}}}, {3, 2, 1, 0}},
    {"rank8", {{8, {1, 2, 1, 2, 1, 3, 1, 2}}}, {8, 7, 6, 5, 4, 3, 2, 1, 0}},
    {"sliced", {{2, {3, 4}, .view = VIEW_SLICED}}, {2, 1, 0}}, {"broadcast", {{2, {3, 4}, .view = VIEW_BROADCAST}}, {2, 1, 0}},
    {"float64", {{2, {3, 4}, .dtype = OM_F64}}, {2, 1, 0}}, {"int64", {{2, {3, 4}, .dtype = OM_I64}}, {2, 1, 0}},
    {"bool", {{2, {3, 4}, .dtype = OM_BOOL}}, {2, 1, 0}},
    {.name = "short", .in = {{2, {2, 3}}}, .i = {1, 0}, .fails = OM_ERR_ARG, .says = "each of its 2 axes"},
    {.name = "twice", .in = {{2, {2, 3}}}, .i = {2, 1, -1}, .fails = OM_ERR_ARG, .says = "each axis once"},
    {.name = "range", .in = {{2, {2, 3}}}, .i = {2, 0, 2}, .fails = OM_ERR_ARG, .says = "is 2"}, BAD_ARGS};
static const sample transpose_samples[] = {
    {"matrix", {{2, {3, 4}}}, {0, 1}}, {"last", {{3, {2, 3, 4}}}, {-1, -2}}, {"outer", {{3, {2, 3, 4}}}, {0, 2}},
    {"same", {{2, {3, 4}}}, {1, 1}}, {"empty", {{2, {0, 4}}}, {0, 1}}, {"uint8", {{2, {3, 4}, .dtype = OM_U8}}, {0, 1}},
    {"transposed", {{3, {2, 3, 4}, .view = VIEW_TRANSPOSED}}, {1, 2}},
    {.name = "axis", .in = {{2, {2, 3}}}, .i = {0, 2}, .fails = OM_ERR_ARG, .says = "axis 2"},
    {.name = "scalar_axis", .in = {{0}}, .fails = OM_ERR_ARG, .says = "axis 0"}, BAD_ARGS};
// clang-format on

/* ---- Expand, Contiguous ---------------------------------------------------------------------- */

static int call_expand(const sample *s, om_tensor *const *in, om_tensor **out) {
    out[0] = om_expand(in[0], (int)s->i[0], s->i + 1);
    return 1;
}
static void expanded_ref(const ref *in, int rank, const int64_t *shape, ref *out) {
    int64_t at[OM_MAX_RANK] = {0};
    ref_set(out, in->dtype, rank, shape);
    for (int64_t k = 0; k < out->n; k++, ref_next(rank, shape, at))
        out->v[k] = in->v[ref_at(in, rank, at)];
}
static void ref_expand(const sample *s, const ref *in, ref *out) {
    int64_t shape[OM_MAX_RANK];
    int rank = (int)s->i[0];
    for (int i = 0; i < rank; i++)
        shape[i] = s->i[1 + i] == -1 ? in->shape[i - rank + in->rank] : s->i[1 + i];
    expanded_ref(in, rank, shape, out);
}
static int call_expand_as(const sample *s, om_tensor *const *in, om_tensor **out) {
    (void)s;
    out[0] = om_expand_as(in[0], in[1]);
    return 1;
}
static void ref_expand_as(const sample *s, const ref *in, ref *out) {
    (void)s;
    expanded_ref(in, in[1].rank, in[1].shape, out);
}
/* An expanded tensor is strided however its input lies; rank -1: the input itself, for refusals. */
static int call_contiguous(const sample *s, om_tensor *const *in, om_tensor **out) {
    out[0] = om_contiguous(s->i[0] < 0 ? in[0] : om_expand(in[0], (int)s->i[0], s->i + 1));
    return 1;
}
// clang-format off
static const sample expand_samples[] = {
    {"new_axis", {{2, {2, 3}}}, {3, 4, -1, 3}}, {"middle", {{3, {2, 1, 3}}}, {3, -1, 4, -1}}, {"scalar", {{0}}, {2, 2, 3}},
    {"both", {{2, {1, 3}}}, {3, 2, 5, 3}}, {"to_empty", {{2, {1, 3}}}, {2, 0, 3}}, {"from_empty", {{2, {0, 1}}}, {2, 0, 4}},
    {"rank8", {{1, {2}}}, {8, 1, 2, 1, 1, 2, 1, 1, 2}}, {"float64", {{1, {1}, .dtype = OM_F64}}, {1, 5}},
    {"int64", {{1, {1}, .dtype = OM_I64}}, {1, 5}}, {"bool", {{1, {1}, .dtype = OM_BOOL}}, {2, 2, 5}},
    {.name = "size", .in = {{2, {2, 3}}}, .i = {2, 2, 4}, .fails = OM_ERR_SHAPE, .says = "only sizes 1"},
    {.name = "fewer", .in = {{2, {2, 3}}}, .i = {1, 3}, .fails = OM_ERR_SHAPE, .says = "rank 1"},
    {.name = "open_new", .in = {{1, {3}}}, .i = {2, -1, 3}, .fails = OM_ERR_SHAPE, .says = "exists"},
    {.name = "negative", .in = {{1, {3}}}, .i = {1, -2}, .fails = OM_ERR_SHAPE, .says = "-2"}, BAD_ARGS};
static const sample expand_as_samples[] = {
    {"row", {{1, {3}}, {2, {4, 3}}}}, {"column", {{2, {4, 1}}, {3, {2, 4, 3}, .no_grad = true}}},
    {"scalar", {{0}, {1, {5}, .dtype = OM_I64}}}, {"empty", {{1, {1}}, {2, {0, 2}, .dtype = OM_BOOL}}},
    {"float64", {{1, {1}, .dtype = OM_F64}, {1, {4}}}},
    {.name = "size", .in = {{1, {3}}, {1, {4}}}, .fails = OM_ERR_SHAPE, .says = "float32 [3]"},
    {.name = "fewer", .in = {{2, {1, 3}}, {1, {3}}}, .fails = OM_ERR_SHAPE, .says = "drop"},
    {.name = "null_like", .in = {{1, {3}}, {.null = true}}, .fails = OM_ERR_ARG, .says = "like is NULL"},
    {.name = "blocked_like", .in = {{1, {3}}, {4, {1, 2, 2, 2}, .blocked = true}}, .fails = OM_ERR_LAYOUT, .says = "like"},
    {.name = "null", .in = {{.null = true}, {1, {3}}}, .fails = OM_ERR_ARG, .says = "x is NULL"}};
static const sample contiguous_samples[] = {
    {"rows", {{1, {4}}}, {2, 3, 4}}, {"scalar", {{0}}, {1, 5}}, {"columns", {{2, {3, 1}}}, {3, 2, 3, 4}},
    {"float64", {{1, {2}, .dtype = OM_F64}}, {2, 2, 2}}, {"int64", {{1, {2}, .dtype = OM_I64}}, {2, 2, 2}},
    {"bool", {{1, {2}, .dtype = OM_BOOL}}, {2, 2, 2}},
    {.name = "null", .in = {{.null = true}}, .i = {-1}, .fails = OM_ERR_ARG, .says = "x is NULL"},
    {.name = "blocked", .in = {{4, {1, 2, 2, 2}, .blocked = true}}, .i = {-1}, .fails = OM_ERR_LAYOUT, .says = "NCHW16c"}};

#define OP(name, ID, n, reference, samples, composite)                                             \
    {#name, OM_OP_##ID, n, call_##name, reference, samples, (int)OM_COUNT(samples), composite}
const sample_op sample_shape[] = {
    OP(reshape, RESHAPE, 1, ref_order, reshape_samples, false), OP(flatten, RESHAPE, 1, ref_order, flatten_samples, true),
    OP(squeeze, SQUEEZE, 1, ref_order, squeeze_samples, false), OP(unsqueeze, UNSQUEEZE, 1, ref_order, unsqueeze_samples, false),
    OP(permute, PERMUTE, 1, ref_permute, permute_samples, false), OP(transpose, PERMUTE, 1, ref_transpose, transpose_samples, false),
    OP(expand, EXPAND, 1, ref_expand, expand_samples, false), OP(expand_as, EXPAND_AS, 2, ref_expand_as, expand_as_samples, false),
    OP(contiguous, CONTIGUOUS, 1, ref_expand, contiguous_samples, false), OP(clone, CLONE, 1, ref_clone, clone_samples, false), {0}};
// clang-format on
