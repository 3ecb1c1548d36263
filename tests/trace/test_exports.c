/*
 * test_exports.c -- TD-26: every public function that takes tensors records, refuses a traced one,
 * or reads no element, and this table knows which. The headers are read, so that a function which
 * is not in the table fails.
 */
#include <math.h>

#include "onemodel/optim.h"
#include "onemodel/session.h"
#include "trace_test.h"

typedef enum verdict { RECORDS, REFUSES, READS_NOTHING } verdict;

/* What the calls use; all of it but `plain` is traced. */
static om_tensor *x, *y, *im, *flags, *ix, *w2, *kern, *ch, *one, *logits, *target, *plain;
static om_tracer *tr;
static om_module *linear, *holder;
static om_session *session;
static om_optim *optimizer;
static char hex[65];

static om_tensor *first_of(om_status st, om_tensor *const *out) {
    return st == OM_OK ? out[0] : NULL;
}
static om_tensor *call_split(void) {
    om_tensor *o[2] = {NULL};
    return first_of(om_split(x, 1, 2, (int64_t[]){1, 3}, o), o);
}
static om_tensor *call_top_k(void) {
    om_tensor *o[2] = {NULL};
    return first_of(om_top_k(x, 2, 1, false, &o[0], &o[1]), o);
}
static int twice(void *ctx, int n_in, om_tensor *const *in, int n_out, om_tensor **out) {
    (void)ctx, (void)n_in, (void)n_out;
    return (out[0] = om_add(in[0], in[0])) == NULL;
}
static om_tensor *call_custom(void) {
    om_custom_op op = {.name = "twice", .forward = twice, .lowering = twice};
    om_tensor *o[1] = {NULL};
    return first_of(om_custom(&op, 1, &x, 1, o), o);
}
static void *call_loader(void) {
    om_tensor *b[1] = {NULL};
    om_loader *l    = om_loader_new(1, &x, 1, NULL);
    if (l) om_loader_next(l, b);
    om_loader_free(l);
    return NULL;
}
static void *call_run(void) {
    om_tensor *o[1] = {NULL};
    om_session_run(session, 1, &(om_binding){"x", x}, 1, o);
    return NULL;
}
static void *call_load_list(void) {
    om_named_tensor list[2] = {{"weight", w2}, {"bias", om_select(w2, 0, 0)}};
    om_nn_load_list(linear, 2, list, NULL);
    return NULL;
}
static void *call_npy_memory(void) {
    void *data   = NULL;
    size_t bytes = 0;
    om_npy_save_memory(x, &data, &bytes);
    return NULL;
}
static void *call_copy_out(void) {
    float out[12];
    om_copy_out(x, out, sizeof out);
    return NULL;
}
static void *call_grad(void) {
    om_tensor *o[1] = {NULL};
    om_grad(x, 1, &y, o, false);
    return NULL;
}
static void *call_release(void) {
    om_release(om_retain(x));
    return NULL;
}
static void *call_drop(void) {
    om_drop(om_relu(x));
    return NULL;
}
static void *call_take(void) {
    om_release(om_take(om_relu(x)));
    return NULL;
}
static void *call_scope_return(void) {
    om_scope s = om_scope_begin();
    om_scope_return(s, om_relu(x));
    return NULL;
}

/* The rows below are long macro lists. */
// clang-format off
#define R(name, ...)                                                                               \
    static om_tensor *t_##name(void) {                                                             \
        return name(__VA_ARGS__);                                                                  \
    }
#define V(name, ...)                                                                               \
    static om_tensor *t_##name(void) {                                                             \
        (void)name(__VA_ARGS__);                                                                   \
        return NULL;                                                                               \
    }
/* void functions */
#define N(name, ...)                                                                               \
    static om_tensor *t_##name(void) {                                                             \
        name(__VA_ARGS__);                                                                         \
        return NULL;                                                                               \
    }
#define C(name, how)                                                                               \
    static om_tensor *t_##name(void) {                                                             \
        return how();                                                                              \
    }
#define AX1                                                                                        \
    1, (int64_t[]) {                                                                               \
        1                                                                                          \
    }
#define RECORDED(F) \
    F(om_abs, x) F(om_adaptive_avg_pool2d, im, 1, 1) F(om_add, x, y) F(om_add_scalar, x, 1) \
    F(om_and, flags, flags) F(om_arange_like, x, 0) F(om_argmax, x, 1, false) \
    F(om_argmin, x, 1, false) F(om_avg_pool2d, im, 2, 2, NULL) \
    F(om_batch_norm2d, im, ch, ch, ch, ch, &(om_batch_norm_opts){.struct_size = 0}) \
    F(om_cast, x, OM_F64) F(om_causal_mask, x, x) F(om_clamp, x, 0, 1) F(om_clone, x) \
    F(om_concat, 2, ((om_tensor *[]){x, y}), 0) F(om_contiguous, x) \
    F(om_conv2d, im, kern, NULL, NULL) F(om_detach, x) F(om_div, x, y) F(om_div_scalar, x, 2) \
    F(om_dropout, x, 0.5f, false, NULL) F(om_embedding, x, ix, -1) F(om_equal, x, y) \
    F(om_erf, x) F(om_exp, x) F(om_expand, one, OM_DIMS(3, 4)) F(om_expand_as, one, x) \
    F(om_flatten, im, 1) F(om_forward, linear, x) F(om_full_like, x, 2, OM_F32) F(om_gelu, x) \
    F(om_gelu_tanh, x) F(om_greater, x, y) F(om_greater_equal, x, y) \
    F(om_index_select, x, 1, ix) F(om_layer_norm, x, 1, NULL, NULL, 1e-5f) F(om_less, x, y) \
    F(om_less_equal, x, y) F(om_linear, x, w2, NULL) F(om_log, x) F(om_log_softmax, x, 1) \
    F(om_matmul, x, om_transpose(y, 0, 1)) F(om_max, x, AX1, false) \
    F(om_max_pool2d, im, 2, 2, NULL) F(om_maximum, x, y) F(om_mean, x, AX1, false) \
    F(om_mean_all, x) F(om_min, x, AX1, false) F(om_minimum, x, y) F(om_mse_loss, x, y) \
    F(om_mul, x, y) F(om_mul_scalar, x, 2) F(om_neg, x) F(om_not, flags) F(om_not_equal, x, y) \
    F(om_ones_like, x) F(om_or, flags, flags) \
    F(om_pad, x, 2, ((int64_t[]){0, 1}), ((int64_t[]){0, 0}), 0) \
    F(om_permute, x, 2, (int64_t[]){1, 0}) F(om_rdiv_scalar, x, 2) F(om_reciprocal, x) \
    F(om_relu, x) F(om_reshape, x, OM_DIMS(-1, 2)) F(om_retain_and_back, x) \
    F(om_rsub_scalar, x, 1) F(om_scale, x, 2) F(om_select, x, 0, 1) F(om_sigmoid, x) \
    F(om_silu, x) F(om_sin, x) F(om_cos, x) F(om_slice, x, 1, 1, 3, 1) F(om_softmax, x, 1) F(om_sqrt, x) \
    F(om_squeeze, one, 1, (int64_t[]){0}) F(om_stack, 2, ((om_tensor *[]){x, y}), 0) \
    F(om_sub, x, y) F(om_sub_scalar, x, 1) F(om_sum, x, AX1, false) F(om_sum_all, x) \
    F(om_tanh, x) F(om_transpose, x, 0, 1) F(om_unsqueeze, x, 1, (int64_t[]){0}) \
    F(om_where, flags, x, y) F(om_xor, flags, flags) F(om_zeros_like, x)
static om_tensor *om_retain_and_back(om_tensor *t) {
    om_release(om_retain(t));
    return t;
}
RECORDED(R)
C(om_split, call_split)
C(om_top_k, call_top_k)
C(om_custom, call_custom)

#define REFUSED_ONES(F) \
    F(om_add_, x, y) F(om_add_into, x) F(om_allclose, x, x, 0, 0) F(om_backward, x) \
    F(om_backward_with, x, NULL) F(om_bit_equal, x, x) F(om_copy_, plain, x) \
    F(om_cross_entropy, logits, target) F(om_cross_entropy_with, logits, target, NULL) \
    F(om_data, x) F(om_data_mut, x) F(om_fill_, x, 1) F(om_get, x, (int64_t[]){0, 0}) \
    F(om_hash, x, hex) F(om_item_f32, one) F(om_item_f64, one) F(om_item_i64, ix) \
    F(om_mul_scalar_, x, 2) F(om_nll_loss, logits, target, NULL) F(om_npy_save, x, "no.npy") \
    F(om_session_call, session, x) F(om_set, x, ((int64_t[]){0, 0}), 1) \
    F(om_set_requires_grad, x, true) F(om_text_of, x) F(om_to_nchw16c, im) \
    F(om_trace_input, tr, "again", x, 0, NULL) F(om_trace_parameter, tr, "p", x) \
    F(om_accumulate_backward, x, 0) F(om_pin_new, x, false) F(om_set_grad, plain, x) \
    F(om_nn_save, holder, "no.om") F(om_nn_load_into, x) F(om_trace_params, tr, holder)
static om_status om_add_into(om_tensor *t) {
    return om_add_(plain, t);
}
static om_status om_nn_load_into(om_tensor *t) {
    (void)t;
    return om_nn_load_list(holder, 1, &(om_named_tensor){"b", plain}, NULL);
}
REFUSED_ONES(V)
C(om_from_nchw16c, call_loader) // a traced tensor is never blocked: nothing to call it with
C(om_loader_new, call_loader)
C(om_loader_next, call_loader)
C(om_session_run, call_run)
C(om_nn_load_list, call_load_list)
C(om_npy_save_memory, call_npy_memory)
C(om_copy_out, call_copy_out)
C(om_grad, call_grad)

#define NOT_READ(F) \
    F(om_dim, x, 0) F(om_dtype_of, x) F(om_grad_of, x) F(om_id, x) F(om_is_contiguous, x) \
    F(om_name, x) F(om_numel, x) F(om_rank, x) F(om_requires_grad, x) F(om_shape_of, x) \
    F(om_strides_of, x) \
    F(om_trace_output, tr, "out", om_neg(x)) F(om_nn_buffer, om_nn_child(holder, "in"), "b2", x)
NOT_READ(V)
N(om_clear_grad, x)
N(om_set_name, x, "x")
C(om_release, call_release)
C(om_retain, call_release)
C(om_drop, call_drop)
C(om_take, call_take)
C(om_scope_return, call_scope_return)

typedef struct row {
    const char *name;
    verdict v;
    om_tensor *(*call)(void);
} row;
#define ROW_R(name, ...) {#name, RECORDS, t_##name},
#define ROW_X(name, ...) {#name, REFUSES, t_##name},
#define ROW_N(name, ...) {#name, READS_NOTHING, t_##name},
static const row rows[] = {
    RECORDED(ROW_R) ROW_R(om_split, 0) ROW_R(om_top_k, 0) ROW_R(om_custom, 0) REFUSED_ONES(ROW_X)
        ROW_X(om_from_nchw16c, 0) ROW_X(om_loader_new, 0) ROW_X(om_loader_next, 0)
            ROW_X(om_session_run, 0) ROW_X(om_nn_load_list, 0) ROW_X(om_npy_save_memory, 0)
                ROW_X(om_copy_out, 0) ROW_X(om_grad, 0) NOT_READ(ROW_N) ROW_N(om_clear_grad, 0)
                    ROW_N(om_set_name, 0) ROW_N(om_release, 0) ROW_N(om_retain, 0) ROW_N(om_drop, 0)
                        ROW_N(om_take, 0) ROW_N(om_scope_return, 0)};
// clang-format on

/* A graph input cannot be a parameter: nothing calls these with a traced tensor. om_nn_parameter
 * wants a leaf. */
static const char *const elsewhere[] = {"om_nn_trace", "om_nn_parameter", "om_checkpoint_save",
                                        NULL};

static om_tensor *input(const char *name, om_tensor *t, int n, const char *const *axes) {
    return om_trace_input(tr, name, t, n, axes);
}
static void begin_all(void) {
    om_set_threads(1);
    om_graph *g = trace_one(om_relu, OM_DIMS(3, 4), 0, NULL);
    session     = om_session_new(g, NULL);
    om_graph_release(g);
    linear = om_nn_linear(4, 4, NULL);
    holder = om_nn_module();
    om_nn_add(holder, "in", om_nn_module());
    tr     = fresh_tracer();
    x      = input("x", example(OM_DIMS(3, 4)), OM_AXES("N"));
    y      = input("y", example(OM_DIMS(3, 4)), OM_AXES("N"));
    im     = input("im", example(OM_DIMS(1, 2, 6, 6)), 0, NULL);
    flags  = om_greater(x, y);
    ix     = input("ix", ids(3, OM_DIMS(1)), 0, NULL);
    w2     = input("w2", example(OM_DIMS(4, 4)), 0, NULL);
    kern   = input("kern", example(OM_DIMS(2, 2, 3, 3)), 0, NULL);
    ch     = om_abs(input("ch", example(OM_DIMS(2)), 0, NULL));
    one    = om_sum(input("one", example(OM_DIMS(1, 1)), 0, NULL), 0, NULL, true);
    logits = input("logits", example(OM_DIMS(2, 5)), 0, NULL);
    target = input("target", ids(4, OM_DIMS(2)), 0, NULL);
    plain  = om_zeros(OM_F32, OM_DIMS(3, 4));
    om_nn_buffer(holder, "b", om_relu(x));
    check_ok();
}
static void end_all(void) {
    om_trace_abort(tr);
    om_session_free(session);
    om_optim_free(optimizer);
    om_nn_free(linear);
    om_nn_free(holder);
}

static void every_export_is_known(void **state) {
    (void)state;
    int bad = 0;
    om_error e;
    begin_all();
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        om_tensor *r = rows[i].call();
        om_status st = om_catch(&e);
        bool ok      = rows[i].v == REFUSES   ? st == OM_ERR_TRACE
                       : rows[i].v == RECORDS ? st == OM_OK && r && omi_traced(r)
                                              : st == OM_OK;
        if (ok) continue;
        print_error("%s: %s: %s\n", rows[i].name, om_status_name(st),
                    st ? e.message : "not traced");
        bad++;
    }
    end_all();
    assert_int_equal(bad, 0);
}

/* ---- the headers --------------------------------------------------------------------------------
 */

static bool is_known(const char *name, size_t n) {
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        if (strlen(rows[i].name) == n && !memcmp(rows[i].name, name, n)) return true;
    for (int i = 0; elsewhere[i]; i++)
        if (strlen(elsewhere[i]) == n && !memcmp(elsewhere[i], name, n)) return true;
    return false;
}

/* One declaration "OM_API type name(parameters);": its name when a parameter is a tensor. */
static int check_declaration(const char *d, const char *end) {
    const char *open                 = memchr(d, '(', (size_t)(end - d)), *name;
    static const char *const takes[] = {"om_tensor *", "om_binding", "om_named_tensor"};
    bool tensor                      = false;
    if (!open) return 0;
    for (name = open; name > d && (name[-1] == '_' || (name[-1] >= 'a' && name[-1] <= 'z') ||
                                   (name[-1] >= '0' && name[-1] <= '9'));)
        name--;
    for (size_t k = 0; k < 3; k++) {
        const char *at = memmem(open, (size_t)(end - open), takes[k], strlen(takes[k]));
        while (at && !strncmp(at, "om_tensor **", 12)) // an output
            at = memmem(at + 1, (size_t)(end - at - 1), takes[k], strlen(takes[k]));
        tensor |= at != NULL;
    }
    if (!tensor || is_known(name, (size_t)(open - name))) return 0;
    print_error("%.*s takes a tensor and is not in this table\n", (int)(open - name), name);
    return 1;
}

static void no_export_is_missing(void **state) {
    (void)state;
    static const char *const headers[] = {"tensor", "ops",     "nn",    "autograd",
                                          "optim",  "session", "trace", "graph"};
    int bad = 0, seen = 0;
    for (size_t i = 0; i < sizeof headers / sizeof *headers; i++) {
        char path[256];
        static char page[1 << 17];
        snprintf(path, sizeof path, "%s/include/onemodel/%s.h", OM_ROOT, headers[i]);
        FILE *f = fopen(path, "rb");
        assert_non_null(f);
        size_t n = fread(page, 1, sizeof page - 1, f);
        fclose(f);
        page[n] = 0;
        for (char *d = page; (d = strstr(d, "\nOM_API")); d++) {
            char *end = strchr(d, ';');
            assert_non_null(end);
            bad += check_declaration(d, end);
            seen++;
        }
    }
    assert_true(seen > 150);
    assert_int_equal(bad, 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {OM_TEST(every_export_is_known),
                                       OM_TEST(no_export_is_missing)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
