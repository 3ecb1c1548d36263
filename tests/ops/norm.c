/* norm.c -- samples of layer norm and batch norm. */
#include <math.h>

#include "sample.h"

/* layer_norm: i = {n_axes}, f = {eps} */
static int call_layer_norm(const sample *s, om_tensor *const *in, om_tensor **out) {
    out[0] = om_layer_norm(in[0], (int)s->i[0], in[1], in[2], (float)s->f[0]);
    return 1;
}
static void ref_layer_norm(const sample *s, const ref *in, ref *out) {
    int split    = in->rank - (int)s->i[0];
    int64_t rows = ref_span(in, 0, split), n = ref_span(in, split, in->rank);
    double eps = (double)(float)s->f[0];
    ref_like(out, in);
    for (int64_t r = 0; r < rows; r++) {
        const double *x = in->v + r * n;
        double m = 0, v = 0;
        for (int64_t k = 0; k < n; k++)
            m += x[k] / (double)n;
        for (int64_t k = 0; k < n; k++)
            v += (x[k] - m) * (x[k] - m) / (double)n;
        for (int64_t k = 0; k < n; k++) {
            double y          = (x[k] - m) / sqrt(v + eps);
            out->v[r * n + k] = y * (in[1].v ? in[1].v[k] : 1) + (in[2].v ? in[2].v[k] : 0);
        }
    }
}

/* batch_norm2d: i = {training}, f = {eps, momentum}; inputs x, w?, b?, mean, var */
static int call_batch_norm2d(const sample *s, om_tensor *const *in, om_tensor **out) {
    om_batch_norm_opts o = {
        .training = s->i[0] != 0, .eps = (float)s->f[0], .momentum = (float)s->f[1]};
    out[0] = om_batch_norm2d(in[0], in[1], in[2], in[3], in[4], s->i[1] ? NULL : &o);
    return 1;
}
static void ref_batch_norm2d(const sample *s, const ref *in, ref *out) {
    int64_t n = in->shape[0], c = in->shape[1], inner = ref_span(in, 2, in->rank);
    double eps = (double)(s->f[0] != 0 ? (float)s->f[0] : 1e-5f);
    ref_like(out, in);
    for (int64_t k = 0; k < c; k++) {
        double m = in[3].v[k], v = in[4].v[k];
        if (s->i[0]) {
            m = v = 0;
            for (int64_t i = 0; i < n; i++)
                for (int64_t j = 0; j < inner; j++)
                    m += in->v[(i * c + k) * inner + j] / (double)(n * inner);
            for (int64_t i = 0; i < n; i++)
                for (int64_t j = 0; j < inner; j++)
                    v += pow(in->v[(i * c + k) * inner + j] - m, 2) / (double)(n * inner);
        }
        for (int64_t i = 0; i < n; i++)
            for (int64_t j = 0; j < inner; j++) {
                int64_t at = (i * c + k) * inner + j;
                double y   = (in->v[at] - m) / sqrt(v + eps);
                out->v[at] = y * (in[1].v ? in[1].v[k] : 1) + (in[2].v ? in[2].v[k] : 0);
            }
    }
}

// clang-format off
static const sample layer_norm_samples[] = {
    {"last", {{2, {3, 5}}, {1, {5}}, {1, {5}}}, {1}, {1e-5}}, {"two_axes", {{3, {2, 3, 4}}, {2, {3, 4}}, {2, {3, 4}}}, {2}, {1e-3}},
    {"no_w", {{2, {3, 5}}, {-1}, {1, {5}}}, {1}, {1e-5}}, {"no_b", {{2, {3, 5}}, {1, {5}}, {-1}}, {1}, {1e-5}},
    {"bare", {{3, {2, 2, 6}}, {-1}, {-1}}, {1}, {1e-5}}, {"whole", {{2, {3, 4}}, {-1}, {-1}}, {2}, {1e-5}},
    {"row", {{1, {9}}, {1, {9}}, {1, {9}}}, {1}, {1e-5}}, {"wide", {{2, {2, 40}}, {1, {40}}, {1, {40}}}, {1}, {1e-5}},
    {"rank8", {{8, {1, 2, 1, 1, 2, 1, 2, 3}}, {1, {3}}, {1, {3}}}, {1}, {1e-2}},
    {"rows0", {{2, {0, 5}}, {1, {5}}, {1, {5}}}, {1}, {1e-5}}, {"size0", {{2, {3, 0}}, {1, {0}}, {1, {0}}}, {1}, {1e-5}},
    {"views", {{3, {2, 4, 3}, .view = VIEW_TRANSPOSED}, {1, {3}, .view = VIEW_SLICED}, {1, {3}, .view = VIEW_SLICED}}, {1}, {1e-3}},
    {.name = "one", .in = {{2, {3, 1}}, {1, {1}}, {1, {1}}}, .i = {1}, .f = {1e-2}},
    {.name = "axes", .in = {{2, {3, 5}}, {-1}, {-1}}, .i = {3}, .f = {1e-5}, .fails = OM_ERR_ARG, .says = "n_axes is 3"},
    {.name = "no_axes", .in = {{2, {3, 5}}, {-1}, {-1}}, .i = {0}, .f = {1e-5}, .fails = OM_ERR_ARG, .says = "n_axes is 0"},
    {.name = "eps", .in = {{2, {3, 5}}, {-1}, {-1}}, .i = {1}, .f = {-1}, .fails = OM_ERR_ARG, .says = "eps is -1"},
    {.name = "w_shape", .in = {{2, {3, 5}}, {1, {3}}, {-1}}, .i = {1}, .f = {1e-5}, .fails = OM_ERR_SHAPE, .says = "w float32 [3]"},
    {.name = "b_shape", .in = {{2, {3, 5}}, {-1}, {2, {3, 5}}}, .i = {1}, .f = {1e-5}, .fails = OM_ERR_SHAPE, .says = "b float32 [3,5]"},
    {.name = "type", .in = {{2, {3, 5}, .dtype = OM_F64}, {-1}, {-1}}, .i = {1}, .f = {1e-5}, .fails = OM_ERR_DTYPE, .says = "om_cast(x, OM_F32)"},
    {.name = "null", .in = {{.null = true}, {-1}, {-1}}, .i = {1}, .f = {1e-5}, .fails = OM_ERR_ARG, .says = "NULL"}};

#define MEAN(c) {1, {c}, .no_grad = true, .dense = true}
#define VAR(c) {1, {c}, FILL_POSITIVE, .no_grad = true, .dense = true}
#define STRIDED(c, f) {1, {c}, f, VIEW_SLICED, .no_grad = true}
static const sample batch_norm2d_samples[] = {
    {"eval", {{4, {2, 3, 2, 2}}, {1, {3}}, {1, {3}}, MEAN(3), VAR(3)}, {0}, {1e-3, 0.1}, .tol = 5e-6},
    {"eval_defaults", {{4, {2, 3, 2, 2}}, {1, {3}}, {1, {3}}, MEAN(3), VAR(3)}, {0, 1}, .tol = 5e-6},
    {"eval_bare", {{4, {2, 2, 3, 1}}, {-1}, {-1}, MEAN(2), VAR(2)}, {0}, .tol = 5e-6},
    {"eval_rank2", {{2, {5, 4}}, {1, {4}}, {1, {4}}, MEAN(4), VAR(4)}, {0}, .tol = 5e-6},
    {"eval_views", {{4, {2, 3, 2, 4}, .view = VIEW_TRANSPOSED}, {1, {3}, .view = VIEW_SLICED}, {1, {3}}, STRIDED(3, FILL_ANY), STRIDED(3, FILL_POSITIVE)}, {0}, .tol = 5e-6},
    {"eval_empty", {{4, {0, 3, 2, 2}}, {1, {3}}, {1, {3}}, MEAN(3), VAR(3)}, {0}},
    {"eval_no_channel", {{4, {2, 0, 2, 2}}, {1, {0}}, {1, {0}}, MEAN(0), VAR(0)}, {0}},
    {"train", {{4, {3, 2, 2, 2}}, {1, {2}}, {1, {2}}, MEAN(2), VAR(2)}, {1}, {1e-3, 0.1}, .grad_tol = 1e-4},
    {"train_bare", {{4, {2, 3, 3, 1}}, {-1}, {-1}, MEAN(3), VAR(3)}, {1}, {1e-2, 0.5}, .grad_tol = 1e-4},
    {"train_rank2", {{2, {6, 3}}, {1, {3}}, {1, {3}}, MEAN(3), VAR(3)}, {1}, {1e-3, 0.1}, .grad_tol = 1e-4},
    {"train_no_b", {{3, {2, 3, 4}}, {1, {3}}, {-1}, MEAN(3), VAR(3)}, {1}, {1e-3, 0.1}, .grad_tol = 1e-4},
    {"train_view", {{4, {3, 2, 2, 3}, .view = VIEW_TRANSPOSED}, {1, {2}}, {1, {2}}, MEAN(2), VAR(2)}, {1}, {1e-3, 0.1}, .grad_tol = 1e-4},
    {.name = "train_one", .in = {{4, {1, 3, 1, 1}}, {-1}, {-1}, MEAN(3), VAR(3)}, .i = {1}, .fails = OM_ERR_SHAPE, .says = "1 values per channel"},
    {.name = "train_strided", .in = {{2, {4, 3}}, {-1}, {-1}, STRIDED(3, FILL_ANY), VAR(3)}, .i = {1}, .fails = OM_ERR_ARG, .says = "strided"},
    {.name = "rank", .in = {{1, {3}}, {-1}, {-1}, MEAN(3), VAR(3)}, .fails = OM_ERR_SHAPE, .says = "float32 [3]"},
    {.name = "w_shape", .in = {{2, {4, 3}}, {1, {4}}, {-1}, MEAN(3), VAR(3)}, .fails = OM_ERR_SHAPE, .says = "w float32 [4]"},
    {.name = "mean_null", .in = {{2, {4, 3}}, {-1}, {-1}, {.null = true}, VAR(3)}, .fails = OM_ERR_ARG, .says = "mean is NULL"},
    {.name = "var_type", .in = {{2, {4, 3}}, {-1}, {-1}, MEAN(3), {1, {3}, .dtype = OM_F64}}, .fails = OM_ERR_DTYPE, .says = "float64"},
    {.name = "eps", .in = {{2, {4, 3}}, {-1}, {-1}, MEAN(3), VAR(3)}, .f = {-1}, .fails = OM_ERR_ARG, .says = "eps is -1"},
    {.name = "momentum", .in = {{2, {4, 3}}, {-1}, {-1}, MEAN(3), VAR(3)}, .f = {0, 2}, .fails = OM_ERR_ARG, .says = "momentum is 2"},
    {.name = "blocked", .in = {{4, {1, 3, 2, 2}, .blocked = true}, {-1}, {-1}, MEAN(3), VAR(3)}, .fails = OM_ERR_LAYOUT, .says = "x is"}};

const sample_op sample_norm[] = {
    {"layer_norm", OM_OP_LAYER_NORM, 3, call_layer_norm, ref_layer_norm, layer_norm_samples, (int)OM_COUNT(layer_norm_samples), false},
    {"batch_norm2d", OM_OP_BATCH_NORM2D, 5, call_batch_norm2d, ref_batch_norm2d, batch_norm2d_samples, (int)OM_COUNT(batch_norm2d_samples), false},
    {0}};
// clang-format on
