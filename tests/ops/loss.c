/* loss.c -- samples of the losses and of dropout. */
#include <math.h>

#include "sample.h"

static int call_mse_loss(const sample *s, om_tensor *const *in, om_tensor **out) {
    (void)s;
    out[0] = om_mse_loss(in[0], in[1]);
    return 1;
}
static void ref_mse_loss(const sample *s, const ref *in, ref *out) {
    (void)s;
    ref_set(out, in->dtype, 0, NULL);
    for (int64_t k = 0; k < in->n; k++)
        out->v[0] += pow(in[0].v[k] - in[1].v[k], 2) / (double)in->n;
    if (in->n == 0) out->v[0] = NAN;
}

/* i = {ignore_index, ignore_zero, sum, no options}; inputs logp, target, weight? */
static om_nll_opts nll_opts(const sample *s, om_tensor *weight) {
    return (om_nll_opts){.struct_size  = sizeof(om_nll_opts),
                         .weight       = weight,
                         .ignore_index = s->i[0],
                         .ignore_zero  = s->i[1] != 0,
                         .sum          = s->i[2] != 0};
}
static int call_nll_loss(const sample *s, om_tensor *const *in, om_tensor **out) {
    om_nll_opts o = nll_opts(s, in[2]);
    out[0]        = om_nll_loss(in[0], in[1], s->i[3] ? NULL : &o);
    return 1;
}
static int call_cross_entropy_with(const sample *s, om_tensor *const *in, om_tensor **out) {
    om_nll_opts o = nll_opts(s, in[2]);
    out[0] = s->i[3] ? om_cross_entropy(in[0], in[1]) : om_cross_entropy_with(in[0], in[1], &o);
    return 1;
}

static void nll(const sample *s, const double *logp, const ref *in, ref *out) {
    int64_t c = in->shape[1], inner = ref_span(in, 2, in->rank), n = in->shape[0] * inner;
    double ignore = s->i[0] || s->i[1] ? (double)s->i[0] : -100, total = 0, weights = 0;
    for (int64_t k = 0; k < n; k++) {
        double t = in[1].v[k];
        if (t == ignore) continue;
        double w = in[2].v ? in[2].v[(int64_t)t] : 1;
        total -= w * logp[(k / inner * c + (int64_t)t) * inner + k % inner];
        weights += w;
    }
    ref_set(out, OM_F32, 0, NULL);
    out->v[0] = s->i[2] ? total : total / weights;
}
static void ref_nll_loss(const sample *s, const ref *in, ref *out) {
    nll(s, in->v, in, out);
}
static void ref_cross_entropy_with(const sample *s, const ref *in, ref *out) {
    ref l     = {0};
    int64_t c = in->shape[1], inner = ref_span(in, 2, in->rank);
    ref_like(&l, in);
    for (int64_t k = 0; k < in->shape[0] * inner; k++) {
        const double *x = in->v + k / inner * c * inner + k % inner;
        double m = -INFINITY, total = 0;
        for (int64_t j = 0; j < c; j++)
            m = fmax(m, x[j * inner]);
        for (int64_t j = 0; j < c; j++)
            total += exp(x[j * inner] - m);
        for (int64_t j = 0; j < c; j++)
            l.v[(x - in->v) + j * inner] = x[j * inner] - m - log(total);
    }
    nll(s, l.v, in, out);
    ref_free(&l);
}

/* dropout: f = {p}, i = {training, seed, block}. The reference has a Philox4x32-10 of its own. */
static void philox(uint64_t key, uint64_t block, uint64_t stream, uint32_t out[4]) {
    uint32_t c[4] = {(uint32_t)block, (uint32_t)(block >> 32), (uint32_t)stream,
                     (uint32_t)(stream >> 32)};
    uint32_t k0 = (uint32_t)key, k1 = (uint32_t)(key >> 32);
    for (int r = 0; r < 10; r++) {
        uint64_t a = 0xD2511F53ull * c[0], b = 0xCD9E8D57ull * c[2];
        uint32_t n0 = (uint32_t)(b >> 32) ^ c[1] ^ k0, n2 = (uint32_t)(a >> 32) ^ c[3] ^ k1;
        c[1] = (uint32_t)b;
        c[3] = (uint32_t)a;
        c[0] = n0;
        c[2] = n2;
        k0 += 0x9E3779B9u;
        k1 += 0xBB67AE85u;
    }
    for (int i = 0; i < 4; i++)
        out[i] = c[i];
}
static int call_dropout(const sample *s, om_tensor *const *in, om_tensor **out) {
    om_rng g = {.seed = (uint64_t)s->i[1], .stream = 2, .block = (uint64_t)s->i[2]};
    out[0]   = om_dropout(in[0], (float)s->f[0], s->i[0] != 0, &g);
    return 1;
}
static void ref_dropout(const sample *s, const ref *in, ref *out) {
    double p = (double)(float)s->f[0];
    ref_like(out, in);
    for (int64_t k = 0; k < in->n; k++) {
        uint32_t w[4];
        philox((uint64_t)s->i[1], (uint64_t)(s->i[2] + k / 4), 2, w);
        bool keep = (double)w[k % 4] >= floor(p * 0x1p32);
        out->v[k] = !s->i[0] ? in->v[k] : keep ? in->v[k] / (1 - p) : 0;
    }
}

// clang-format off
#define TARGET(...) {1, __VA_ARGS__, FILL_INDEX, .dtype = OM_I64, .lo = 0, .hi = 4}
static const sample mse_samples[] = {
    {"matrix", {{2, {3, 5}}, {2, {3, 5}}}}, {"scalar", {{0}, {0}}}, {"empty", {{1, {0}}, {1, {0}}}, .no_grad = true},
    {"views", {{2, {4, 3}, .view = VIEW_TRANSPOSED}, {2, {4, 3}, .view = VIEW_SLICED}}}, {"float64", {{1, {4}, .dtype = OM_F64}, {1, {4}, .dtype = OM_F64}}},
    {.name = "broadcast", .in = {{2, {3, 1}}, {1, {3}}}, .fails = OM_ERR_SHAPE, .says = "target float32 [3]"},
    {.name = "types", .in = {{1, {3}}, {1, {3}, .dtype = OM_I64}}, .fails = OM_ERR_DTYPE, .says = "om_cast"},
    {.name = "null", .in = {{1, {3}}, {.null = true}}, .fails = OM_ERR_ARG, .says = "target is NULL"}};
#define WEIGHT {1, {4}, FILL_POSITIVE, .no_grad = true}
static const sample nll_samples[] = {
    {"mean", {{2, {5, 4}, FILL_LOGP}, TARGET({5}), {-1}}}, {"default", {{2, {5, 4}, FILL_LOGP}, TARGET({5}), {-1}}, {0, 0, 0, 1}},
    {"sum", {{2, {5, 4}, FILL_LOGP}, TARGET({5}), {-1}}, {0, 0, 1}}, {"weight", {{2, {5, 4}, FILL_LOGP}, TARGET({5}), WEIGHT}},
    {"weight_sum", {{2, {5, 4}, FILL_LOGP}, TARGET({5}), WEIGHT}, {0, 0, 1}}, {"ignore", {{2, {7, 4}, FILL_LOGP}, TARGET({7}), {-1}}, {2}},
    {"ignore_zero", {{2, {7, 4}, FILL_LOGP}, TARGET({7}), WEIGHT}, {0, 1}},
    {"ignore_outside", {{2, {3, 4}, FILL_LOGP}, {1, {3}, .dtype = OM_I64, .values = (const double[]){-100, 3, -100}}, {-1}}},
    {.name = "all_ignored", .in = {{2, {2, 4}, FILL_LOGP}, {1, {2}, .dtype = OM_I64, .values = (const double[]){-100, -100}}, {-1}}, .no_grad = true},
    {"images", {{4, {2, 4, 2, 3}, FILL_LOGP}, {3, {2, 2, 3}, FILL_INDEX, .dtype = OM_I64, .lo = 0, .hi = 4}, WEIGHT}, {1}},
    {"views", {{3, {2, 4, 3}, FILL_LOGP, VIEW_TRANSPOSED}, {2, {2, 3}, FILL_INDEX, VIEW_TRANSPOSED, OM_I64, 0, 4}, WEIGHT}},
    {"empty_sum", {{2, {0, 4}}, TARGET({0}), {-1}}, {0, 0, 1}}, {.name = "empty", .in = {{2, {0, 4}}, TARGET({0}), {-1}}, .no_grad = true},
    {.name = "range", .in = {{2, {2, 4}}, {1, {2}, .dtype = OM_I64, .values = (const double[]){1, 4}}, {-1}}, .fails = OM_ERR_VALUE, .says = "holds 4 at position 1"},
    {.name = "negative", .in = {{2, {2, 4}}, {1, {2}, .dtype = OM_I64, .values = (const double[]){-1, 0}}, {-1}}, .fails = OM_ERR_VALUE, .says = "holds -1"},
    {.name = "shape", .in = {{2, {2, 4}}, TARGET({3}), {-1}}, .fails = OM_ERR_SHAPE, .says = "int64 [3]"},
    {.name = "weight_shape", .in = {{2, {2, 4}}, TARGET({2}), {1, {3}}}, .fails = OM_ERR_SHAPE, .says = "weight float32 [3]"},
    {.name = "target_type", .in = {{2, {2, 4}}, {1, {2}}, {-1}}, .fails = OM_ERR_DTYPE, .says = "om_cast(x, OM_I64)"},
    {.name = "rank", .in = {{1, {4}}, {0, .dtype = OM_I64}, {-1}}, .fails = OM_ERR_SHAPE, .says = "[4]"},
    {.name = "null", .in = {{2, {2, 4}}, {.null = true}, {-1}}, .fails = OM_ERR_ARG, .says = "target is NULL"}};
static const sample ce_samples[] = {
    {"mean", {{2, {5, 4}}, TARGET({5}), {-1}}}, {"default", {{2, {5, 4}}, TARGET({5}), {-1}}, {0, 0, 0, 1}}, {"weight_ignore", {{2, {7, 4}}, TARGET({7}), WEIGHT}, {2}},
    {"sum", {{3, {2, 4, 3}}, {2, {2, 3}, FILL_INDEX, .dtype = OM_I64, .lo = 0, .hi = 4}, {-1}}, {0, 0, 1}},
    {.name = "rank", .in = {{1, {4}}, {0, .dtype = OM_I64}, {-1}}, .fails = OM_ERR_SHAPE, .says = "logits float32 [4]"},
    {.name = "range", .in = {{2, {2, 4}}, {1, {2}, .dtype = OM_I64, .values = (const double[]){1, 9}}, {-1}}, .fails = OM_ERR_VALUE, .says = "holds 9"},
    {.name = "null", .in = {{.null = true}, {1, {2}, .dtype = OM_I64}, {-1}}, .fails = OM_ERR_ARG, .says = "logits is NULL"}};
static const sample dropout_samples[] = {
    {"half", {{2, {7, 9}}}, {1, 42, 0}, {0.5}}, {"tenth", {{1, {203}}}, {1, 7, 1000}, {0.1}}, {"none", {{1, {9}}}, {1, 1, 0}, {0}},
    {"most", {{3, {3, 4, 5}}}, {1, 3, 2}, {0.9}}, {"scalar", {{0}}, {1, 5, 1}, {0.25}}, {"empty", {{2, {0, 4}}}, {1, 5, 1}, {0.25}},
    {"view", {{2, {6, 5}, .view = VIEW_TRANSPOSED}}, {1, 9, 4}, {0.3}}, {"rank8", {{8, {1, 2, 1, 2, 1, 3, 1, 2}}}, {1, 9, 4}, {0.3}},
    {.name = "high", .in = {{1, {3}}}, .i = {1}, .f = {1.5}, .fails = OM_ERR_ARG, .says = "p is 1.5"},
    {.name = "nan", .in = {{1, {3}}}, .i = {1}, .f = {NAN}, .fails = OM_ERR_ARG, .says = "p is"},
    {.name = "type", .in = {{1, {3}, .dtype = OM_F64}}, .i = {1}, .fails = OM_ERR_DTYPE, .says = "om_cast(x, OM_F32)"},
    {.name = "null", .in = {{.null = true}}, .i = {1}, .fails = OM_ERR_ARG, .says = "NULL"}};

const sample_op sample_loss[] = {
    {"mse_loss", OM_OP_MEAN, 2, call_mse_loss, ref_mse_loss, mse_samples, (int)OM_COUNT(mse_samples), true},
    {"nll_loss", OM_OP_NLL_LOSS, 3, call_nll_loss, ref_nll_loss, nll_samples, (int)OM_COUNT(nll_samples), false},
    {"cross_entropy_with", OM_OP_NLL_LOSS, 3, call_cross_entropy_with, ref_cross_entropy_with, ce_samples, (int)OM_COUNT(ce_samples), true},
    {"dropout", OM_OP_DROPOUT, 1, call_dropout, ref_dropout, dropout_samples, (int)OM_COUNT(dropout_samples), false}, {0}};
// clang-format on
