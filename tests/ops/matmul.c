/* matmul.c -- samples of matmul and linear. */
#include "sample.h"

static int call_matmul(const sample *s, om_tensor *const *in, om_tensor **out) {
    (void)s;
    out[0] = om_matmul(in[0], in[1]);
    return 1;
}

/* numpy.matmul: vectors become a row and a column, batch axes broadcast. */
static void ref_matmul(const sample *s, const ref *in, ref *out) {
    (void)s;
    ref a = in[0], b = in[1];
    if (a.rank == 1) {
        a.rank     = 2;
        a.shape[1] = a.shape[0];
        a.shape[0] = 1;
    }
    if (b.rank == 1) {
        b.rank     = 2;
        b.shape[1] = 1;
    }
    int64_t m = a.shape[a.rank - 2], k = a.shape[a.rank - 1], n = b.shape[b.rank - 1];
    ref ba = {.rank = a.rank - 2}, bb = {.rank = b.rank - 2};
    for (int i = 0; i < ba.rank; i++)
        ba.shape[i] = a.shape[i];
    for (int i = 0; i < bb.rank; i++)
        bb.shape[i] = b.shape[i];
    int64_t batch[OM_MAX_RANK], shape[OM_MAX_RANK], at[OM_MAX_RANK] = {0}, items = 1;
    int rb = ref_broadcast(&ba, &bb, batch), r = 0;
    for (int i = 0; i < rb; i++) {
        shape[r++] = batch[i];
        items *= batch[i];
    }
    if (in[0].rank != 1) shape[r++] = m;
    if (in[1].rank != 1) shape[r++] = n;
    ref_set(out, in->dtype, r, shape);
    double *y = out->v;
    for (int64_t t = 0; t < items; t++, ref_next(rb, batch, at)) {
        const double *pa = a.v + ref_at(&ba, rb, at) * m * k,
                     *pb = b.v + ref_at(&bb, rb, at) * k * n;
        for (int64_t i = 0; i < m; i++)
            for (int64_t j = 0; j < n; j++, y++)
                for (int64_t q = 0; q < k; q++)
                    *y += pa[i * k + q] * pb[q * n + j];
    }
}

static int call_linear(const sample *s, om_tensor *const *in, om_tensor **out) {
    (void)s;
    out[0] = om_linear(in[0], in[1], in[2]);
    return 1;
}
static void ref_linear(const sample *s, const ref *in, ref *out) {
    (void)s;
    int64_t shape[OM_MAX_RANK], k = in[1].shape[1], n = in[1].shape[0];
    int64_t rows = ref_span(in, 0, in->rank - 1);
    for (int i = 0; i < in->rank - 1; i++)
        shape[i] = in->shape[i];
    shape[in->rank - 1] = n;
    ref_set(out, OM_F32, in->rank, shape);
    for (int64_t i = 0; i < rows; i++)
        for (int64_t j = 0; j < n; j++) {
            double y = in[2].v ? in[2].v[j] : 0;
            for (int64_t q = 0; q < k; q++)
                y += in[0].v[i * k + q] * in[1].v[j * k + q];
            out->v[i * n + j] = y;
        }
}

// clang-format off
static const sample matmul_samples[] = {
    {"square", {{2, {3, 3}}, {2, {3, 3}}}}, {"wide", {{2, {2, 17}}, {2, {17, 5}}}}, {"row", {{2, {1, 9}}, {2, {9, 33}}}},
    {"vectors", {{1, {7}}, {1, {7}}}}, {"vector_left", {{1, {4}}, {2, {4, 3}}}}, {"vector_right", {{2, {3, 4}}, {1, {4}}}},
    {"batch", {{3, {2, 3, 4}}, {3, {2, 4, 2}}}}, {"batch_right_2d", {{3, {3, 2, 4}}, {2, {4, 3}}}},
    {"batch_left_2d", {{2, {2, 4}}, {3, {3, 4, 2}}}}, {"batch_both", {{4, {2, 1, 3, 2}}, {3, {4, 2, 2}}}},
    {"batch_vector", {{3, {2, 3, 4}}, {1, {4}}}}, {"vector_batch", {{1, {3}}, {3, {2, 3, 2}}}},
    {"rank8", {{8, {1, 2, 1, 1, 2, 1, 2, 3}}, {3, {1, 3, 2}}}}, {"k0", {{2, {2, 0}}, {2, {0, 3}}}},
    {"m0", {{2, {0, 3}}, {2, {3, 2}}}}, {"n0", {{2, {2, 3}}, {2, {3, 0}}}}, {"batch0", {{3, {0, 2, 3}}, {2, {3, 2}}}},
    {"transposed", {{2, {5, 6}, .view = VIEW_TRANSPOSED}, {2, {6, 4}, .view = VIEW_TRANSPOSED}}},
    {"shared", {{3, {3, 2, 4}, .view = VIEW_BROADCAST}, {3, {3, 4, 2}}}}, {"long", {{2, {1, 300}}, {2, {300, 1}}}, .tol = 1e-5},
    {"float64", {{2, {3, 4}, .dtype = OM_F64}, {2, {4, 2}, .dtype = OM_F64}}},
    {"int64", {{2, {3, 4}, .dtype = OM_I64}, {2, {4, 2}, .dtype = OM_I64}}},
    {"int32", {{3, {2, 3, 4}, .dtype = OM_I32}, {1, {4}, .dtype = OM_I32}}},
    {.name = "inner", .in = {{2, {2, 3}}, {2, {4, 5}}}, .fails = OM_ERR_SHAPE, .says = "float32 [2,3] x float32 [4,5]"},
    {.name = "batch_size", .in = {{3, {2, 2, 3}}, {3, {3, 3, 5}}}, .fails = OM_ERR_SHAPE, .says = "batch axes"},
    {.name = "scalar", .in = {{0}, {2, {3, 5}}}, .fails = OM_ERR_SHAPE, .says = "om_mul"},
    {.name = "types", .in = {{2, {2, 3}}, {2, {3, 5}, .dtype = OM_I64}}, .fails = OM_ERR_DTYPE, .says = "om_cast(b, OM_F32)"},
    {.name = "bool", .in = {{2, {2, 3}, .dtype = OM_BOOL}, {2, {3, 5}, .dtype = OM_BOOL}}, .fails = OM_ERR_DTYPE, .says = "om_cast"},
    {.name = "null", .in = {{2, {2, 3}}, {.null = true}}, .fails = OM_ERR_ARG, .says = "b is NULL"},
    {.name = "blocked", .in = {{4, {1, 2, 2, 3}, .blocked = true}, {2, {3, 2}}}, .fails = OM_ERR_LAYOUT, .says = "a is"}};

static const sample linear_samples[] = {
    {"rank2", {{2, {4, 3}}, {2, {5, 3}}, {1, {5}}}}, {"no_bias", {{2, {4, 3}}, {2, {5, 3}}, {-1}}},
    {"rank1", {{1, {3}}, {2, {2, 3}}, {1, {2}}}}, {"rank3", {{3, {2, 3, 4}}, {2, {3, 4}}, {1, {3}}}},
    {"rank4_no_bias", {{4, {2, 1, 3, 4}}, {2, {2, 4}}, {-1}}}, {"rank8", {{8, {1, 2, 1, 1, 2, 1, 1, 3}}, {2, {2, 3}}, {1, {2}}}},
    {"rows0", {{2, {0, 3}}, {2, {2, 3}}, {1, {2}}}}, {"rows0_rank3", {{3, {2, 0, 3}}, {2, {2, 3}}, {1, {2}}}},
    {"in0", {{2, {2, 0}}, {2, {3, 0}}, {1, {3}}}}, {"out0", {{2, {2, 3}}, {2, {0, 3}}, {1, {0}}}},
    {"views", {{3, {2, 3, 4}, .view = VIEW_TRANSPOSED}, {2, {3, 4}, .view = VIEW_TRANSPOSED}, {1, {3}, .view = VIEW_SLICED}}},
    {"shared_rows", {{3, {3, 2, 4}, .view = VIEW_BROADCAST}, {2, {3, 4}}, {1, {3}}}},
    {"wide", {{2, {3, 40}}, {2, {21, 40}}, {1, {21}}}},
    {.name = "sizes", .in = {{2, {4, 3}}, {2, {5, 4}}, {-1}}, .fails = OM_ERR_SHAPE, .says = "float32 [5,4]"},
    {.name = "bias", .in = {{2, {4, 3}}, {2, {5, 3}}, {1, {3}}}, .fails = OM_ERR_SHAPE, .says = "b float32 [3]"},
    {.name = "scalar", .in = {{0}, {2, {5, 3}}, {-1}}, .fails = OM_ERR_SHAPE, .says = "[.., in]"},
    {.name = "float64", .in = {{2, {4, 3}, .dtype = OM_F64}, {2, {5, 3}, .dtype = OM_F64}, {-1}}, .fails = OM_ERR_DTYPE, .says = "om_cast(x, OM_F32)"},
    {.name = "null", .in = {{2, {4, 3}}, {.null = true}, {-1}}, .fails = OM_ERR_ARG, .says = "w is NULL"},
    {.name = "blocked", .in = {{2, {4, 3}}, {2, {5, 3}}, {4, {1, 5, 1, 1}, .blocked = true}}, .fails = OM_ERR_LAYOUT, .says = "b is"}};

const sample_op sample_matmul[] = {
    {"matmul", OM_OP_MATMUL, 2, call_matmul, ref_matmul, matmul_samples, (int)OM_COUNT(matmul_samples), false},
    {"linear", OM_OP_LINEAR, 3, call_linear, ref_linear, linear_samples, (int)OM_COUNT(linear_samples), false}, {0}};
// clang-format on
