/*
 * zoo.c -- the models. Grouped like src/ops.
 */
#include "zoo.h"

#include <math.h>

void zoo_swap_args(void) {
    swap_args = !swap_args;
}

#define OUT(...)                                                                                   \
    do {                                                                                           \
        om_tensor *list_[] = {__VA_ARGS__};                                                        \
        memcpy(out, list_, sizeof list_);                                                          \
        return (int)(sizeof list_ / sizeof *list_);                                                \
    } while (0)

static int unary(om_tensor **in, om_tensor **out) {
    om_tensor *x = in[0], *p = om_add_scalar(om_abs(x), 0.5);
    OUT(om_neg(x), om_exp(x), om_log(p), om_sqrt(p), om_tanh(x), om_sigmoid(x), om_erf(x),
        om_relu(x), om_gelu(x), om_gelu_tanh(x), om_silu(x), om_reciprocal(p),
        om_clamp(x, -0.5, 0.25), om_clamp(x, 0.1, NAN), om_clamp(x, NAN, 0.3), om_sin(x),
        om_cos(x));
}

static int scalars(om_tensor **in, om_tensor **out) {
    om_tensor *x = in[0], *p = om_add_scalar(om_abs(x), 0.5), *i = in[1];
    OUT(om_sub_scalar(x, 0.3), om_rsub_scalar(x, 1.5), om_mul_scalar(x, -3), om_div_scalar(x, 7),
        om_rdiv_scalar(p, 2), om_add_scalar(i, 3), om_rsub_scalar(i, 10), om_mul_scalar(i, -2),
        om_clamp(i, 1, 3));
}

static int casts(om_tensor **in, om_tensor **out) {
    om_tensor *x = om_mul_scalar(in[0], 3), *i = om_cast(x, OM_I64);
    om_tensor *b = om_cast(i, OM_BOOL), *u = om_cast(om_abs(i), OM_U8);
    OUT(i, om_cast(x, OM_I32), om_cast(u, OM_I64), om_cast(b, OM_F32),
        om_cast(om_cast(x, OM_F64), OM_F32), om_not(b), om_sum(b, OM_DIMS(1), false));
}

static int doubles(om_tensor **in, om_tensor **out) {
    om_tensor *x = om_cast(in[0], OM_F64), *p = om_add(om_abs(x), om_ones_like(x));
    om_tensor *s = om_matmul(om_transpose(x, 1, 2), x);
    OUT(om_neg(x), om_mul(x, p), om_div(x, p), om_sub(x, om_sqrt(p)), om_sum(x, OM_DIMS(1), true),
        om_mean(x, OM_DIMS(-1), false), om_max(x, 0, NULL, false), om_min(x, OM_DIMS(0), false), s,
        om_greater(x, om_zeros_like(x)));
}

static int integers(om_tensor **in, om_tensor **out) {
    om_tensor *i = in[0], *j = om_sub_scalar(om_mul(i, i), 3),
              *k = om_from((int64_t[]){3}, OM_I64, OM_DIMS(1));
    OUT(om_add(i, j), om_sub(i, j), om_mul(i, j), om_div(j, k), om_maximum(i, j), om_minimum(i, j),
        om_neg(j), om_abs(j), om_relu(j), om_where(om_less(i, j), i, j), om_sum(i, 0, NULL, false),
        om_max(j, OM_DIMS(1), true), om_min(j, OM_DIMS(0), false));
}

static int binary(om_tensor **in, om_tensor **out) {
    om_tensor *x = in[0], *y = in[1], *p = om_add_scalar(om_abs(y), 1);
    OUT(om_add(x, y), om_sub(x, y), om_mul(y, x), om_div(x, p), om_maximum(x, y), om_minimum(x, y),
        om_add(x, filled(4, OM_DIMS(4))), om_mul(filled(5, OM_DIMS(1, 1)), x),
        om_sub(om_scalar_f32(0.5f), x));
}

static int comparisons(om_tensor **in, om_tensor **out) {
    om_tensor *x = in[0], *y = in[1], *r = om_relu(x);
    om_tensor *a = om_less(x, y), *b = om_greater_equal(x, r), *c = om_equal(r, om_zeros_like(r));
    OUT(a, om_less_equal(x, y), om_greater(x, y), b, c, om_not_equal(x, r), om_and(a, b),
        om_or(a, c), om_xor(b, c), om_where(a, x, y), om_where(a, b, c),
        om_where(c, x, om_scalar_f32(-1)));
}

static int creation(om_tensor **in, om_tensor **out) {
    om_tensor *x = in[0], *fixed = om_select(om_mean(x, OM_DIMS(0, 1), true), 0, 0);
    om_tensor *pos = om_cast(om_arange_like(x, 1), OM_F32);
    OUT(om_add(x, om_full_like(x, 2.5, OM_DTYPE_NONE)), om_full_like(x, -7, OM_I64),
        om_ones_like(x), om_add(x, om_unsqueeze(pos, OM_DIMS(-1))), om_arange_like(x, 0),
        om_arange_like(x, -2), om_causal_mask(x, x),
        om_add(fixed, om_full_like(fixed, 3, OM_DTYPE_NONE)),
        om_add(om_cast(om_arange_like(x, -1), OM_F32), x));
}

static int products(om_tensor **in, om_tensor **out) {
    om_tensor *x = in[0]; /* [N,T,4] */
    OUT(om_matmul(x, filled(1, OM_DIMS(4, 5))), om_matmul(x, om_transpose(x, 1, 2)),
        om_matmul(x, filled(2, OM_DIMS(4))),
        om_matmul(filled(3, OM_DIMS(2, 1, 6, 4)), om_transpose(x, 1, 2)),
        om_linear(x, filled(4, OM_DIMS(6, 4)), filled(5, OM_DIMS(6))),
        om_linear(x, filled(4, OM_DIMS(6, 4)), NULL),
        om_linear(om_select(x, 1, 0), filled(4, OM_DIMS(6, 4)), filled(5, OM_DIMS(6))),
        om_linear(om_select(x, 1, -1), filled(4, OM_DIMS(6, 4)), NULL));
}

static int weights_traced(om_tensor **in, om_tensor **out) {
    om_tensor *x = in[0], *w = in[1];
    OUT(om_linear(x, w, NULL), om_linear(om_select(x, 1, 0), w, om_select(w, 1, 0)));
}

static int reductions(om_tensor **in, om_tensor **out) {
    om_tensor *x = in[0];
    OUT(om_sum_all(x), om_mean_all(x), om_sum(x, OM_DIMS(1), false),
        om_mean(x, OM_DIMS(-1, 0), true), om_max(x, OM_DIMS(1), true),
        om_min(x, OM_DIMS(0, 2), false), om_max(x, 0, NULL, true), om_argmax(x, 1, false),
        om_argmin(x, -1, true), om_softmax(x, -1), om_softmax(x, 1), om_log_softmax(x, 2));
}

static int norms(om_tensor **in, om_tensor **out) {
    om_tensor *x = in[0], *w = filled(1, OM_DIMS(3, 4)), *b = filled(2, OM_DIMS(3, 4));
    om_tensor *m = filled(3, OM_DIMS(2)), *v = om_add_scalar(om_abs(filled(4, OM_DIMS(2))), 0.1);
    OUT(om_layer_norm(x, 2, w, b, 1e-5f), om_layer_norm(x, 1, NULL, NULL, 1e-3f),
        om_layer_norm(x, 1, filled(5, OM_DIMS(4)), NULL, 1e-5f),
        om_batch_norm2d(x, filled(6, OM_DIMS(2)), filled(7, OM_DIMS(2)), m, v, NULL),
        om_batch_norm2d(x, NULL, NULL, m, v, OM_OPTS(batch_norm, .eps = 1e-3f)));
}

static int shapes(om_tensor **in, om_tensor **out) {
    om_tensor *x = in[0]; /* [N,T,12] */
    int64_t n = om_dim(x, 0), t = om_dim(x, 1);
    om_tensor *h = om_permute(om_reshape(x, OM_DIMS(n, t, 3, 4)), OM_DIMS(0, 2, 1, 3));
    om_tensor *m = om_mean(x, OM_DIMS(1), true);
    OUT(om_reshape(x, OM_DIMS(n * t, 12)), h, om_reshape(h, OM_DIMS(n * 3, t, 4)), om_flatten(x, 1),
        om_reshape(x, OM_DIMS(n, -1, 6)), om_unsqueeze(x, OM_DIMS(0, -1)),
        om_squeeze(om_unsqueeze(x, OM_DIMS(2)), OM_DIMS(2)), om_expand_as(m, x),
        om_expand(om_unsqueeze(x, OM_DIMS(1)), OM_DIMS(-1, 2, -1, -1)), om_transpose(x, 1, 2),
        om_reshape(om_permute(h, OM_DIMS(0, 2, 1, 3)), OM_DIMS(n, t, 12)),
        om_reshape(x, OM_DIMS(-1)), om_clone(om_transpose(x, 0, 1)),
        om_reshape(x, OM_DIMS(t, n, 12)));
}

static int indices(om_tensor **in, om_tensor **out) {
    om_tensor *x = in[0], *p[3] = {NULL}, *v[2] = {NULL}, *k[2] = {NULL}; /* [N,T,6] */
    om_tensor *pick = om_from((int64_t[]){4, 0, -1, 2}, OM_I64, OM_DIMS(2, 2));
    om_split(x, -1, 3, (int64_t[]){1, 3, 2}, p);
    om_top_k(x, 2, -1, false, &v[0], &k[0]);
    om_top_k(x, 3, 2, true, &v[1], &k[1]);
    OUT(om_slice(x, 2, 1, 5, 2), om_slice(x, -1, -1, OM_END, -2), om_slice(x, 1, -1, OM_END, -1),
        om_select(x, 1, 0), om_select(x, 1, -1), om_select(x, 2, 3), om_index_select(x, 2, pick),
        p[0], p[1], p[2], v[0], k[0], v[1], k[1],
        om_index_select(x, 0, om_argmax(om_select(x, 1, 0), 0, false)));
}

static int joins(om_tensor **in, om_tensor **out) {
    om_tensor *x = in[0], *y = in[1]; /* [N,T,4], [N,S,4] */
    om_tensor *c = om_concat(2, (om_tensor *[]){x, y}, 1);
    OUT(c, om_concat(3, (om_tensor *[]){x, om_zeros_like(x), x}, -1),
        om_stack(2, (om_tensor *[]){x, x}, 1),
        om_pad(x, 3, (int64_t[]){0, 1, 2}, (int64_t[]){0, 2, 0}, 0.5),
        om_neg(om_concat(2, (om_tensor *[]){x, x}, 0)),
        om_reshape(c, OM_DIMS(om_dim(c, 0), om_dim(c, 1), 2, 2)));
}

static int convolutions(om_tensor **in, om_tensor **out) {
    om_tensor *x = in[0]; /* [N,4,H,W] */
    om_tensor *w = filled(1, OM_DIMS(6, 4, 3, 3)), *b = filled(2, OM_DIMS(6));
    om_tensor *d = om_conv2d(x, w, b, OM_OPTS(conv2d, .stride = {2, 2}, .padding = {1, 1}));
    om_tensor *e =
        om_conv2d(x, filled(3, OM_DIMS(6, 4, 1, 1)), NULL, OM_OPTS(conv2d, .stride = {2, 2}));
    OUT(om_add(d, e),
        om_conv2d(x, filled(4, OM_DIMS(4, 1, 3, 3)), NULL,
                  OM_OPTS(conv2d, .padding = {1, 1}, .groups = 4)),
        om_conv2d(x, filled(5, OM_DIMS(3, 4, 2, 2)), NULL, OM_OPTS(conv2d, .padding_end = {1, 1})),
        om_conv2d(x, w, NULL, OM_OPTS(conv2d, .dilation = {2, 1}, .padding = {2, 0})),
        om_conv2d(x, filled(6, OM_DIMS(8, 2, 1, 3)), NULL, OM_OPTS(conv2d, .groups = 2)),
        om_flatten(om_mean(d, OM_DIMS(2, 3), true), 1));
}

static int pools(om_tensor **in, om_tensor **out) {
    om_tensor *x = in[0]; /* [N,4,H,W] */
    OUT(om_max_pool2d(x, 2, 2, NULL),
        om_max_pool2d(x, 3, 3,
                      OM_OPTS(pool2d, .stride = {2, 2}, .padding = {1, 1}, .ceil_mode = true)),
        om_max_pool2d(x, 2, 2, OM_OPTS(pool2d, .stride = {1, 1}, .dilation = {2, 2})),
        om_avg_pool2d(x, 2, 3, NULL),
        om_avg_pool2d(x, 3, 3, OM_OPTS(pool2d, .stride = {2, 2}, .padding = {1, 1})),
        om_avg_pool2d(x, 3, 3,
                      OM_OPTS(pool2d, .stride = {2, 2}, .padding = {1, 1}, .exclude_pad = true)),
        om_avg_pool2d(x, 3, 3,
                      OM_OPTS(pool2d, .stride = {2, 2}, .padding = {1, 1}, .ceil_mode = true,
                              .exclude_pad = true)),
        om_adaptive_avg_pool2d(x, 1, 1));
}

static int adaptive(om_tensor **in, om_tensor **out) {
    om_tensor *x = in[0]; /* [N,2,6,9] */
    OUT(om_adaptive_avg_pool2d(x, 2, 3), om_adaptive_avg_pool2d(x, 4, 5),
        om_adaptive_avg_pool2d(x, 6, 9), om_adaptive_avg_pool2d(x, 1, 2));
}

/* A3: height and width doubled by reshape, permute, reshape. */
static int pixel_shuffle(om_tensor **in, om_tensor **out) {
    om_tensor *x = in[0];
    int64_t n = om_dim(x, 0), c = om_dim(x, 1) / 4, h = om_dim(x, 2), w = om_dim(x, 3);
    om_tensor *y = om_permute(om_reshape(x, OM_DIMS(n, c, 2, 2, h, w)), OM_DIMS(0, 1, 4, 2, 5, 3));
    OUT(om_reshape(y, OM_DIMS(n, c, h * 2, w * 2)));
}

/* Causal self-attention over learned positions, batch and length symbolic. */
static int attention(om_tensor **in, om_tensor **out) {
    om_tensor *ids_ = in[0], *e = om_embedding(filled(1, OM_DIMS(5, 12)), ids_, -1), *p, *x;
    int64_t b = om_dim(ids_, 0), t = om_dim(ids_, 1), heads = 3, d = 4;
    p = om_embedding(filled(2, OM_DIMS(32, 12)), om_arange_like(ids_, 1), -1);
    x = om_layer_norm(om_add(e, p), 1, filled(3, OM_DIMS(12)), filled(4, OM_DIMS(12)), 1e-5f);
    om_tensor *qkv = om_linear(x, filled(5, OM_DIMS(36, 12)), filled(6, OM_DIMS(36)));
    qkv          = om_permute(om_reshape(qkv, OM_DIMS(b, t, 3, heads, d)), OM_DIMS(2, 0, 3, 1, 4));
    om_tensor *q = om_select(qkv, 0, 0), *k = om_select(qkv, 0, 1), *v = om_select(qkv, 0, 2), *a;
    a = om_matmul(om_scale(q, 1 / sqrt((double)d)), om_transpose(k, -1, -2));
    a = om_matmul(om_softmax(om_add(a, om_causal_mask(q, k)), -1), v);
    x = om_add(x, om_reshape(om_transpose(a, 1, 2), OM_DIMS(b, t, heads * d)));
    OUT(x, om_select(x, 1, -1));
}

/* Two branches as operands: evaluated in either order, at three depths (CD-18). */
static int branches(om_tensor **in, om_tensor **out) {
    om_tensor *x = in[0], *a, *b, *c, *d; /* [N,2,H,W] */
    OM_PAIR(a,
            om_relu(om_conv2d(x, filled(1, OM_DIMS(4, 2, 3, 3)), filled(2, OM_DIMS(4)),
                              OM_OPTS(conv2d, .stride = {2, 2}, .padding = {1, 1}))),
            b,
            om_sigmoid(om_conv2d(x, filled(3, OM_DIMS(4, 2, 1, 1)), NULL,
                                 OM_OPTS(conv2d, .stride = {2, 2}))));
    int64_t n = om_dim(a, 0), hw = om_dim(a, 2) * om_dim(a, 3);
    OM_PAIR(
        c, om_reshape(om_mul(a, b), OM_DIMS(n, 4, hw)), d,
        om_reshape(om_max_pool2d(x, 2, 2, OM_OPTS(pool2d, .ceil_mode = true)), OM_DIMS(n, 2, -1)));
    OM_PAIR(a, om_mean(c, OM_DIMS(2), false), b, om_max(d, OM_DIMS(2), false));
    OUT(om_concat(2, (om_tensor *[]){a, b}, 1), d, c);
}

#define F32(name, rank, ...)                                                                       \
    { name, OM_F32, rank, __VA_ARGS__ }
#define I64(name, rank, ...)                                                                       \
    { name, OM_I64, rank, __VA_ARGS__ }
#define NT4    F32("x", 3, {"N", "T"}, {{3, 7, 4}, {1, 5, 4}, {6, 11, 4}})
#define IMG(c) F32("x", 4, {"N", NULL, "H", "W"}, {{3, c, 11, 13}, {1, c, 9, 12}, {5, c, 16, 7}})

const zoo_model zoo[] = {
    {"unary", unary, 1, {NT4}},
    {"scalars", scalars, 2, {NT4, I64("i", 2, {"N"}, {{3, 4}, {1, 4}, {6, 4}})}},
    {"casts", casts, 1, {NT4}},
    {"doubles", doubles, 1, {NT4}},
    {"integers", integers, 1, {I64("i", 2, {"N", "T"}, {{3, 7}, {1, 5}, {6, 11}})}},
    {"binary", binary, 2, {NT4, F32("y", 3, {"N", NULL}, {{3, 1, 4}, {1, 1, 4}, {6, 1, 4}})}},
    {"comparisons", comparisons, 2, {NT4, F32("y", 2, {"T"}, {{7, 1}, {5, 1}, {11, 1}})}},
    {"creation", creation, 1, {NT4}},
    {"products", products, 1, {NT4}},
    {"weights_traced", weights_traced, 2, {NT4, F32("w", 2, {NULL}, {{6, 4}, {6, 4}, {6, 4}})}},
    {"reductions", reductions, 1, {NT4}},
    {"norms", norms, 1, {F32("x", 4, {"N"}, {{3, 2, 3, 4}, {1, 2, 3, 4}, {6, 2, 3, 4}})}},
    {"shapes", shapes, 1, {F32("x", 3, {"N", "T"}, {{11, 13, 12}, {1, 5, 12}, {6, 3, 12}})}},
    {"indices", indices, 1, {F32("x", 3, {"N", "T"}, {{4, 7, 6}, {1, 5, 6}, {5, 11, 6}})}},
    {"joins", joins, 2, {NT4, F32("y", 3, {"N", "S"}, {{3, 5, 4}, {1, 2, 4}, {6, 9, 4}})}},
    {"convolutions", convolutions, 1, {IMG(4)}},
    {"pools", pools, 1, {IMG(4)}},
    {"adaptive", adaptive, 1, {F32("x", 4, {"N"}, {{3, 2, 6, 9}, {1, 2, 6, 9}, {5, 2, 6, 9}})}},
    {"pixel_shuffle",
     pixel_shuffle,
     1,
     {F32("x", 4, {NULL, NULL, "H", "W"}, {{2, 12, 11, 13}, {2, 12, 1, 6}, {2, 12, 5, 9}})}},
    {"attention", attention, 1, {I64("ids", 2, {"B", "T"}, {{11, 13}, {1, 7}, {4, 17}})}},
    {"branches", branches, 1, {IMG(2)}},
};
const int zoo_count = (int)(sizeof zoo / sizeof *zoo);

om_tensor *zoo_example(const zoo_model *m, int i, int k) {
    const zoo_input *in = &m->in[i];
    if (in->dtype == OM_I64) return ids(5, in->rank, in->dims[k]);
    return filled((uint64_t)(100 * k + i + 11), in->rank, in->dims[k]);
}

om_graph *zoo_trace(const zoo_model *m) {
    om_tracer *tr             = fresh_tracer();
    om_tensor *in[ZOO_INPUTS] = {NULL}, *out[ZOO_OUTPUTS] = {NULL};
    for (int i = 0; i < m->n_in; i++)
        in[i] =
            om_trace_input(tr, m->in[i].name, zoo_example(m, i, 0), m->in[i].rank, m->in[i].axes);
    int n = m->run(in, out);
    for (int i = 0; i < n; i++) {
        char name[16];
        snprintf(name, sizeof name, "y%d", i);
        om_trace_output(tr, name, out[i]);
    }
    return om_trace_finish(tr);
}
