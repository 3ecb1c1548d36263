/*
 * models.c -- MLP, CNN, residual CNN, pre-norm transformer block, embedding classifier.
 */
#include "models/models.h"

#include <math.h>
#include <string.h>

static om_module *child(test_model *m, const char *path) {
    return om_nn_child(m->net, path);
}
static om_tensor *run(test_model *m, const char *path, om_tensor *x) {
    return om_forward(child(m, path), x);
}

/* ---- MLP
 * ----------------------------------------------------------------------------------------- */

static void mlp_new(test_model *m) {
    m->net = om_nn_sequential();
    om_nn_append(m->net, om_nn_linear(20, 33, NULL));
    om_nn_append(m->net, om_nn_gelu());
    om_nn_append(m->net, om_nn_linear(33, 17, NULL));
    om_nn_append(m->net, om_nn_tanh());
    om_nn_append(m->net, om_nn_linear(17, 7, NULL));
    om_nn_append(m->net, om_nn_softmax(-1));
}
static om_tensor *mlp_forward(test_model *m, om_tensor *x) {
    return om_forward(m->net, x);
}

/* ---- CNN
 * ----------------------------------------------------------------------------------------- */

static void cnn_new(test_model *m) {
    m->net = om_nn_module();
    om_nn_add(m->net, "c1", om_nn_conv2d(3, 10, 3, 3, OM_OPTS(conv2d, .padding = {1, 1})));
    om_nn_add(m->net, "bn", om_nn_batch_norm2d(10, NULL));
    om_nn_add(m->net, "dw",
              om_nn_conv2d(10, 10, 3, 3, OM_OPTS(conv2d, .padding = {1, 1}, .groups = 10)));
    om_nn_add(
        m->net, "c2",
        om_nn_conv2d(10, 18, 3, 3,
                     OM_OPTS(conv2d, .stride = {2, 2}, .dilation = {2, 2}, .padding = {2, 2})));
    om_nn_add(m->net, "fc", om_nn_linear(18 * 4 * 4, 9, NULL));
}
static om_tensor *cnn_forward(test_model *m, om_tensor *x) {
    x = om_relu(run(m, "bn", run(m, "c1", x)));
    x = om_max_pool2d(om_silu(run(m, "dw", x)), 3, 3,
                      OM_OPTS(pool2d, .stride = {1, 1}, .padding = {1, 1}));
    x = om_sigmoid(run(m, "c2", x));
    x = om_avg_pool2d(x, 2, 2, NULL);
    return om_log_softmax(run(m, "fc", om_flatten(x, 1)), 1);
}

/* ---- residual CNN, symbolic height and width
 * -------------------------------------------------------- */

static void residual_new(test_model *m) {
    m->net = om_nn_module();
    om_nn_add(m->net, "stem",
              om_nn_conv2d(2, 12, 5, 5, OM_OPTS(conv2d, .padding = {2, 2}, .no_bias = true)));
    om_nn_add(m->net, "bn0", om_nn_batch_norm2d(12, NULL));
    om_nn_add(m->net, "a", om_nn_conv2d(12, 12, 3, 3, OM_OPTS(conv2d, .padding = {1, 1})));
    om_nn_add(m->net, "down",
              om_nn_conv2d(12, 20, 3, 3, OM_OPTS(conv2d, .stride = {2, 2}, .padding = {1, 1})));
    om_nn_add(m->net, "skip", om_nn_conv2d(12, 20, 1, 1, OM_OPTS(conv2d, .stride = {2, 2})));
    om_nn_add(m->net, "bn1", om_nn_batch_norm2d(20, NULL));
    om_nn_add(m->net, "fc", om_nn_linear(20, 6, NULL));
}
static om_tensor *residual_forward(test_model *m, om_tensor *x) {
    x            = om_relu(run(m, "bn0", run(m, "stem", x)));
    om_tensor *a = run(m, "a", x);
    x            = om_relu(om_add(x, a));
    om_tensor *d = run(m, "down", x), *s = NULL;
    s = run(m, "skip", x);
    x = om_relu(run(m, "bn1", om_add(d, s)));
    // Squeeze and excite by the mean over height and width.
    om_tensor *mean = om_mean(x, OM_DIMS(2, 3), true);
    x               = om_add(om_mul(mean, x), x);
    x               = om_flatten(om_adaptive_avg_pool2d(x, 1, 1), 1);
    return run(m, "fc", x);
}

/* ---- pre-norm transformer block, symbolic batch and length
 * -------------------------------------------- */

enum { WIDTH = 24, HEADS = 4, HEAD = WIDTH / HEADS };

static void transformer_new(test_model *m) {
    m->net = om_nn_module();
    om_nn_add(m->net, "ln1", om_nn_layer_norm(OM_DIMS(WIDTH), NULL));
    om_nn_add(m->net, "qkv", om_nn_linear(WIDTH, 3 * WIDTH, NULL));
    om_nn_add(m->net, "proj", om_nn_linear(WIDTH, WIDTH, NULL));
    om_nn_add(m->net, "ln2", om_nn_layer_norm(OM_DIMS(WIDTH), NULL));
    om_nn_add(m->net, "fc1", om_nn_linear(WIDTH, 4 * WIDTH, NULL));
    om_nn_add(m->net, "fc2", om_nn_linear(4 * WIDTH, WIDTH, NULL));
}
static om_tensor *transformer_forward(test_model *m, om_tensor *x) {
    int64_t B = om_dim(x, 0), T = om_dim(x, 1);
    om_tensor *qkv = run(m, "qkv", run(m, "ln1", x));
    qkv = om_permute(om_reshape(qkv, OM_DIMS(B, T, 3, HEADS, HEAD)), OM_DIMS(2, 0, 3, 1, 4));
    om_tensor *q = om_select(qkv, 0, 0), *k = om_select(qkv, 0, 1), *v = om_select(qkv, 0, 2);
    q            = om_scale(q, 1 / sqrt((double)HEAD));
    om_tensor *a = om_matmul(q, om_transpose(k, -1, -2));
    a            = om_add(a, om_causal_mask(q, k));
    a            = om_matmul(om_softmax(a, -1), v);
    a            = om_reshape(om_transpose(a, 1, 2), OM_DIMS(B, T, WIDTH));
    x            = om_add(x, run(m, "proj", a));
    om_tensor *h = om_gelu_tanh(run(m, "fc1", run(m, "ln2", x)));
    return om_add(x, run(m, "fc2", h));
}

/* ---- embedding classifier
 * ------------------------------------------------------------------------------ */

static void embedding_new(test_model *m) {
    m->net = om_nn_module();
    om_nn_add(m->net, "words", om_nn_embedding(50, 16, NULL));
    om_nn_add(m->net, "places", om_nn_embedding(32, 16, NULL));
    om_nn_add(m->net, "fc", om_nn_linear(16, 5, NULL));
}
static om_tensor *embedding_forward(test_model *m, om_tensor *ids) {
    om_tensor *words  = run(m, "words", ids);
    om_tensor *places = run(m, "places", om_arange_like(ids, 1));
    om_tensor *x      = om_add(words, places);
    om_tensor *pad = om_not_equal(ids, om_scalar_i64(0)); // 0 is padding: left out of the maximum
    x              = om_where(om_unsqueeze(pad, OM_DIMS(-1)), x, om_scalar_f32(-1e4f));
    return run(m, "fc", om_max(om_tanh(x), OM_DIMS(1), false));
}

/* ---- all of them
 * ----------------------------------------------------------------------------------------- */

static const struct {
    const char *name;
    void (*make)(test_model *);
    test_forward forward;
    om_dtype dtype;
    int rank;
    const char *axes[4];
    int64_t sizes[3][4], classes;
} table[TEST_MODELS] = {
    {"mlp", mlp_new, mlp_forward, OM_F32, 2, {"batch"}, {{11, 20}, {1, 20}, {64, 20}}, 0},
    {"cnn",
     cnn_new,
     cnn_forward,
     OM_F32,
     4,
     {"batch"},
     {{5, 3, 16, 16}, {1, 3, 16, 16}, {13, 3, 16, 16}},
     0},
    {"residual",
     residual_new,
     residual_forward,
     OM_F32,
     4,
     {"batch", NULL, "height", "width"},
     {{11, 2, 13, 17}, {1, 2, 24, 9}, {3, 2, 32, 40}},
     0},
    {"transformer",
     transformer_new,
     transformer_forward,
     OM_F32,
     3,
     {"batch", "length"},
     {{11, 13, WIDTH}, {1, 5, WIDTH}, {2, 29, WIDTH}},
     0},
    {"embedding",
     embedding_new,
     embedding_forward,
     OM_I64,
     2,
     {"batch", "length"},
     {{11, 13}, {1, 4}, {7, 32}},
     50},
};

/* Norm scales around 1 and variances above 0; everything else uniform with a size that keeps
 * outputs varied. */
static int randomise(void *ctx, const char *path, om_tensor *t, bool is_buffer) {
    om_rng *g        = ctx;
    const char *last = strrchr(path, '.');
    last             = last ? last + 1 : path;
    bool var         = strcmp(last, "running_var") == 0;
    bool scale       = om_rank(t) == 1 && strcmp(last, "weight") == 0;
    if (om_dtype_of(t) != OM_F32) return 0;
    om_scope s   = om_scope_begin();
    float fan    = om_rank(t) > 1 ? (float)(om_numel(t) / om_dim(t, 0)) : 4;
    float lo     = var ? 0.5f : scale ? 0.6f : -1.6f / sqrtf(fan);
    float hi     = var ? 2.0f : scale ? 1.4f : 1.6f / sqrtf(fan);
    om_tensor *r = om_rand(g, lo, hi, om_rank(t), om_shape_of(t));
    bool grad    = om_no_grad_begin();
    om_copy_(t, r);
    om_no_grad_end(grad);
    (void)is_buffer;
    return om_scope_end(s) != OM_OK;
}

bool test_model_new(int which, test_model *m) {
    *m = (test_model){.name    = table[which].name,
                      .forward = table[which].forward,
                      .dtype   = table[which].dtype,
                      .rank    = table[which].rank,
                      .classes = table[which].classes};
    memcpy(m->axes, table[which].axes, sizeof m->axes);
    memcpy(m->sizes, table[which].sizes, sizeof m->sizes);
    om_seed(1);
    table[which].make(m);
    om_rng g = om_rng_new((uint64_t)which + 7, 3);
    om_nn_visit(m->net, randomise, &g);
    om_nn_train(m->net, false);
    return om_pending() == OM_OK;
}

void test_model_free(test_model *m) {
    om_nn_free(m->net);
}

om_tensor *test_model_input(const test_model *m, int k) {
    om_rng g = om_rng_new((uint64_t)k + 100, 3);
    return m->dtype == OM_I64 ? om_randint(&g, 0, m->classes, m->rank, m->sizes[k])
                              : om_randn(&g, 0, 1, m->rank, m->sizes[k]);
}

om_graph *test_model_trace(test_model *m) {
    om_scope s    = om_scope_begin();
    om_tensor *ex = test_model_input(m, 0);
    om_tracer *tr = om_trace_begin(NULL);
    om_trace_params(tr, m->net);
    om_tensor *x = om_trace_input(tr, "x", ex, m->rank, m->axes);
    om_trace_output(tr, "y", m->forward(m, x));
    om_graph *g = om_trace_finish(tr);
    om_scope_end(s);
    return g;
}
