/*
 * test_opts.c -- every option struct is read alike (CD-34): sizes of an older and of a newer
 * caller, what is refused, and that no option of a newer version is dropped without a word.
 */
#include "harness.h"

#include "onemodel.h"

static om_module *net;
static om_tensor *x, *w;

static bool call_conv2d(const void *o) {
    return om_conv2d(x, w, NULL, o) != NULL;
}
static bool call_max_pool2d(const void *o) {
    return om_max_pool2d(x, 2, 2, o) != NULL;
}
static bool call_avg_pool2d(const void *o) {
    return om_avg_pool2d(x, 2, 2, o) != NULL;
}
static bool call_strided(const void *o) {
    static float memory[2];
    return om_from_strided(memory, OM_F32, OM_DIMS(2), NULL, o) != NULL;
}
static bool call_nll(const void *o) {
    return om_nll_loss(om_zeros(OM_F32, OM_DIMS(2, 3)), om_zeros(OM_I64, OM_DIMS(2)), o) != NULL;
}
static bool call_cross_entropy(const void *o) {
    return om_cross_entropy_with(om_zeros(OM_F32, OM_DIMS(2, 3)), om_zeros(OM_I64, OM_DIMS(2)),
                                 o) != NULL;
}
static bool call_batch_norm(const void *o) {
    om_tensor *m = om_zeros(OM_F32, OM_DIMS(2)), *v = om_ones(OM_F32, OM_DIMS(2));
    return om_batch_norm2d(x, NULL, NULL, m, v, o) != NULL;
}
static bool call_backward(const void *o) {
    om_tensor *t = om_ones(OM_F32, OM_DIMS(1));
    om_set_requires_grad(t, true);
    return om_backward_with(om_mul(t, t), o) == OM_OK;
}
static bool call_grad(const void *o) {
    om_tensor *t = om_ones(OM_F32, OM_DIMS(1)), *g;
    om_set_requires_grad(t, true);
    return om_grad(om_mul(t, t), 1, &t, &g, o) == OM_OK;
}
static bool module(om_module *m) {
    om_nn_free(m);
    return m != NULL;
}
static bool call_nn_linear(const void *o) {
    return module(om_nn_linear(2, 3, o));
}
static bool call_nn_conv2d(const void *o) {
    return module(om_nn_conv2d(2, 3, 1, 1, o));
}
static bool call_nn_batch_norm2d(const void *o) {
    return module(om_nn_batch_norm2d(3, o));
}
static bool call_nn_layer_norm(const void *o) {
    return module(om_nn_layer_norm(OM_DIMS(3), o));
}
static bool call_nn_embedding(const void *o) {
    return module(om_nn_embedding(4, 3, o));
}
static bool call_nn_max_pool2d(const void *o) {
    return module(om_nn_max_pool2d(2, 2, o));
}
static bool call_load_list(const void *o) {
    om_tensor *weight = om_zeros(OM_F32, OM_DIMS(3, 2)), *bias = om_zeros(OM_F32, OM_DIMS(3));
    om_named_tensor list[2] = {{"weight", weight}, {"bias", bias}};
    return om_nn_load_list(net, 2, list, o) == OM_OK;
}
static bool optimizer(om_optim *o) {
    om_optim_free(o);
    return o != NULL;
}
static bool call_sgd(const void *o) {
    return optimizer(om_sgd(net, 0.1, o));
}
static bool call_adam(const void *o) {
    return optimizer(om_adam(net, 0.1, o));
}
static bool call_adamw(const void *o) {
    return optimizer(om_adamw(net, 0.1, o));
}
static bool call_group(const void *o) {
    om_optim *p  = om_sgd(net, 0.1, NULL);
    om_status st = om_optim_group(p, "weight", o, NULL);
    om_optim_free(p);
    return st == OM_OK;
}
static bool call_loader(const void *o) {
    om_loader *l = om_loader_new(1, &x, 1, o);
    om_loader_free(l);
    return l != NULL;
}
static bool call_trace(const void *o) {
    om_tracer *t = om_trace_begin(o);
    om_trace_abort(t);
    return t != NULL;
}
static om_graph *graph(void) {
    om_tracer *t = om_trace_begin(NULL);
    om_trace_output(t, "y", om_relu(om_trace_input(t, "x", om_ones(OM_F32, OM_DIMS(2)), 0, NULL)));
    return om_trace_finish(t);
}
static bool call_session(const void *o) {
    om_graph *g   = graph();
    om_session *s = om_session_new(g, o);
    om_session_free(s);
    om_graph_release(g);
    return s != NULL;
}
static bool call_save_onnx(const void *o) {
    void *data   = NULL;
    size_t n     = 0;
    om_graph *g  = graph();
    om_status st = om_graph_save_onnx_memory(g, o, &data, &n);
    om_bytes_free(data, n);
    om_graph_release(g);
    return st == OM_OK;
}
static bool call_load(const void *o) {
    void *data;
    size_t n;
    om_graph *g = graph();
    om_graph_save_memory(g, &data, &n);
    om_graph_release(g);
    g = om_graph_load_memory(data, n, o);
    om_bytes_free(data, n);
    om_graph_release(g);
    return g != NULL;
}

static const struct {
    const char *name;
    bool (*call)(const void *opts);
    size_t size;
} structs[] = {
    {"conv2d", call_conv2d, sizeof(om_conv2d_opts)},
    {"max_pool2d", call_max_pool2d, sizeof(om_pool2d_opts)},
    {"avg_pool2d", call_avg_pool2d, sizeof(om_pool2d_opts)},
    {"strided", call_strided, sizeof(om_strided_opts)},
    {"nll", call_nll, sizeof(om_nll_opts)},
    {"cross_entropy", call_cross_entropy, sizeof(om_nll_opts)},
    {"batch_norm", call_batch_norm, sizeof(om_batch_norm_opts)},
    {"backward", call_backward, sizeof(om_backward_opts)},
    {"grad", call_grad, sizeof(om_backward_opts)},
    {"nn_linear", call_nn_linear, sizeof(om_linear_opts)},
    {"nn_conv2d", call_nn_conv2d, sizeof(om_conv2d_opts)},
    {"nn_batch_norm2d", call_nn_batch_norm2d, sizeof(om_norm_opts)},
    {"nn_layer_norm", call_nn_layer_norm, sizeof(om_norm_opts)},
    {"nn_embedding", call_nn_embedding, sizeof(om_embedding_opts)},
    {"nn_max_pool2d", call_nn_max_pool2d, sizeof(om_pool2d_opts)},
    {"load_list", call_load_list, sizeof(om_state_opts)},
    {"sgd", call_sgd, sizeof(om_sgd_opts)},
    {"adam", call_adam, sizeof(om_adam_opts)},
    {"adamw", call_adamw, sizeof(om_adam_opts)},
    {"group", call_group, sizeof(om_group_opts)},
    {"loader", call_loader, sizeof(om_loader_opts)},
    {"trace", call_trace, sizeof(om_trace_opts)},
    {"session", call_session, sizeof(om_session_opts)},
    {"save_onnx", call_save_onnx, sizeof(om_onnx_opts)},
    {"load", call_load, sizeof(om_load_opts)},
};

/* A struct of zeros that says it has `says` bytes; tail: the byte behind today's is set. */
static void check_size(size_t k, uint32_t says, bool tail, bool good) {
    _Alignas(16) unsigned char bytes[1024] = {0};
    memcpy(bytes, &says, sizeof says);
    if (tail) bytes[structs[k].size + 7] = 1;
    bool ok        = structs[k].call(bytes);
    om_status want = good ? OM_OK : OM_ERR_ARG, got = om_catch(NULL);
    if (ok != good || got != want)
        fail_msg("%s with struct_size %u: %s, %s", structs[k].name, (unsigned)says,
                 ok ? "taken" : "refused", om_status_name(got));
}

static void option_structs_of_every_size_are_read_alike(void **state) {
    (void)state;
    om_seed(1);
    net = om_nn_linear(2, 3, NULL);
    x   = om_ones(OM_F32, OM_DIMS(1, 2, 4, 4));
    w   = om_ones(OM_F32, OM_DIMS(3, 2, 1, 1));
    for (size_t k = 0; k < sizeof structs / sizeof *structs; k++) {
        uint32_t now = (uint32_t)structs[k].size;
        assert_true(structs[k].call(NULL));
        check_size(k, 0, false, true); // version 0.1.0
        check_size(k, now, false, true);
        check_size(k, now + 8, false, true); // a newer caller that sets nothing new
        check_size(k, now + 8, true, false);
        check_size(k, now + 256, false, true);
        check_size(k, now + 257, false, false);
        check_size(k, 3, false, false);
        check_size(k, 4, false, now == 4);
        check_size(k, 100000, false, false);
    }
    om_nn_free(net);
}

int main(void) {
    const struct CMUnitTest tests[] = {OM_TEST(option_structs_of_every_size_are_read_alike)};
    return cmocka_run_group_tests_name("opts", tests, NULL, NULL);
}
