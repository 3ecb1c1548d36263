/*
 * test_binding.c -- what a binding needs of tensors, gradients and errors (CD-45): strides, memory
 * of the host, pins, gradients set from outside, errors raised by callbacks, sites from strings
 * that are gone.
 */
#include "harness.h"

#include <pthread.h>
#include <stdio.h>

#include "base/error.h"
#include "onemodel.h"
#include "tensor/tensor.h"

static om_tensor *counted(int rank, const int64_t *dims) {
    int64_t n = 1;
    for (int i = 0; i < rank; i++)
        n *= dims[i];
    return om_reshape(om_cast(om_arange(0, n, 1), OM_F32), rank, dims);
}

static void strides_are_told(void **state) {
    (void)state;
    om_tensor *x = counted(OM_DIMS(2, 3, 4)), *y = om_permute(x, 3, (const int64_t[]){2, 0, 1});
    assert_memory_equal(om_strides_of(x), ((int64_t[]){12, 4, 1}), 24);
    assert_memory_equal(om_strides_of(y), ((int64_t[]){1, 12, 4}), 24);
    assert_memory_equal(om_strides_of(om_slice(x, 1, 0, 3, 2)), ((int64_t[]){12, 8, 1}), 24);
    assert_memory_equal(om_strides_of(om_expand(om_zeros(OM_F32, OM_DIMS(1, 4)), OM_DIMS(5, 4))),
                        ((int64_t[]){0, 1}), 16);
    assert_null(om_strides_of(NULL));
    assert_null(om_strides_of(om_to_nchw16c(om_zeros(OM_F32, OM_DIMS(1, 2, 3, 3)))));
    check_ok();
}

/* ---- memory of the host -----------------------------------------------------------------------
 */

static void count_free(void *ctx, void *data) {
    (void)data;
    ++*(int *)ctx;
}

static void strided_memory_is_used_where_it_lies(void **state) {
    (void)state;
    float m[4][6];
    int frees = 0;
    for (int i = 0; i < 24; i++)
        m[i / 6][i % 6] = (float)i;
    // columns 1, 3, 5 of the transpose
    om_tensor *x = om_from_strided(&m[0][1], OM_F32, OM_DIMS(3, 4), (const int64_t[]){2, 6},
                                   OM_OPTS(strided, .free_fn = count_free, .ctx = &frees));
    check_ok();
    float got[12], want[12];
    for (int i = 0; i < 12; i++)
        want[i] = m[i % 4][1 + 2 * (i / 4)];
    assert_int_equal(om_copy_out(x, got, sizeof got), OM_OK);
    assert_memory_equal(got, want, sizeof got);
    assert_float_equal(om_item_f32(om_sum_all(x)),
                       1 + 3 + 5 + 7 + 9 + 11 + 13 + 15 + 17 + 19 + 21 + 23, 0);
    assert_memory_equal(om_strides_of(x), ((int64_t[]){2, 6}), 16);
    om_tensor *product = om_matmul(x, om_eye(4, OM_F32));
    assert_true(om_bit_equal(product, om_contiguous(x)));
    om_fill_(x, -1); // only its own elements
    check_ok();
    assert_float_equal(m[0][1], -1, 0);
    assert_float_equal(m[0][0], 0, 0);
    assert_float_equal(m[3][5], -1, 0);
    assert_float_equal(m[3][4], 22, 0);
    assert_int_equal(frees, 0);
    om_scope_drain();
    assert_int_equal(frees, 1);
}

static void read_only_memory_is_never_written(void **state) {
    (void)state;
    static const float memory[6] = {1, 2, 3, 4, 5, 6}; // in a read-only page
    union {
        const float *from;
        void *to;
    } cast = {.from = memory};
    om_tensor *x =
        om_from_strided(cast.to, OM_F32, OM_DIMS(2, 3), NULL, OM_OPTS(strided, .read_only = true));
    om_tensor *row = om_select(x, 0, 1);
    assert_ptr_equal(om_data(x), memory);
    om_mul_scalar_(x, 2);
    check_ok();
    assert_float_equal(om_get(x, (int64_t[]){0, 0}), 2, 0);
    assert_float_equal(om_get(row, (int64_t[]){2}), 12, 0); // a view of it sees the write
    assert_float_equal(memory[0], 1, 0);
    assert_ptr_not_equal(om_data(x), memory);
    // A parameter there can learn; the optimizer writes to a copy.
    om_module *m = om_nn_module();
    om_tensor *w =
        om_from_strided(cast.to, OM_F32, OM_DIMS(6), NULL, OM_OPTS(strided, .read_only = true));
    om_nn_parameter(m, "w", w);
    om_optim *o = om_sgd(m, 1.0, NULL);
    om_backward(om_sum_all(w));
    om_step(o);
    assert_float_equal(om_get(w, (int64_t[]){5}), 5, 0);
    assert_float_equal(memory[5], 6, 0);
    om_optim_free(o);
    om_nn_free(m);
}

static void elements_on_each_other_are_read_only(void **state) {
    (void)state;
    float m[5]   = {1, 2, 3, 4, 5};
    om_tensor *w = om_from_strided(m, OM_F32, OM_DIMS(3, 3), (const int64_t[]){1, 1}, NULL);
    assert_float_equal(om_item_f32(om_sum_all(w)), 1 + 2 + 3 + 2 + 3 + 4 + 3 + 4 + 5, 0);
    assert_int_equal(om_add_(w, w), OM_ERR_STATE);
    check_error(OM_ERR_STATE, "share memory");
    assert_int_equal(om_set(w, (int64_t[]){1, 1}, 9), OM_ERR_STATE);
    check_error(OM_ERR_STATE, "share memory");
    om_tensor *t = om_transpose(om_zeros(OM_F32, OM_DIMS(3, 4)), 0, 1);
    assert_int_equal(om_add_(t, om_ones(OM_F32, OM_DIMS(4, 3))), OM_OK); // not so a transpose
    check_ok();
}

static void strided_memory_that_is_refused(void **state) {
    (void)state;
    float m[4]        = {0};
    int frees         = 0;
    om_strided_opts o = {.struct_size = sizeof o, .free_fn = count_free, .ctx = &frees};
    assert_null(om_from_strided(m, OM_F32, OM_DIMS(2, 2), (const int64_t[]){2, -1}, &o));
    check_error(OM_ERR_ARG, "axis 1", "-1");
    assert_null(om_from_strided(NULL, OM_F32, OM_DIMS(2), NULL, &o));
    check_error(OM_ERR_ARG, "NULL");
    assert_null(om_from_strided((char *)m + 1, OM_F32, OM_DIMS(2), NULL, &o));
    check_error(OM_ERR_ARG, "aligned");
    assert_null(om_from_strided(m, OM_F32, OM_DIMS(3, 2), (const int64_t[]){INT64_MAX / 2, 1}, &o));
    check_error(OM_ERR_SHAPE, "addressed");
    assert_null(om_from_strided(m, OM_F32, OM_DIMS(2, 2),
                                (const int64_t[]){INT64_MAX / 20, INT64_MAX / 20}, &o));
    check_error(OM_ERR_SHAPE, "addressed");
    uint8_t bools[5] = {1, 7, 0, 7, 2};
    assert_non_null(om_from_strided(bools, OM_BOOL, OM_DIMS(2), (const int64_t[]){2}, NULL));
    assert_null(om_from_strided(bools, OM_BOOL, OM_DIMS(3), (const int64_t[]){2}, &o));
    check_error(OM_ERR_VALUE, "byte 4");
    assert_int_equal(frees, 0); // not when it fails
    assert_non_null(om_from_strided(NULL, OM_F32, OM_DIMS(0, 3), (const int64_t[]){7, 5}, NULL));
    check_ok();
}

/* ---- pins -------------------------------------------------------------------------------------
 */

/* C21: a step, a trace, a step, the graph freed; the host still looks at the weight. */
static void a_pinned_weight_stays_where_it_is(void **state) {
    (void)state;
    om_module *net = om_nn_linear(3, 2, NULL);
    om_optim *opt  = om_sgd(net, 0.5, NULL);
    om_tensor *w   = om_nn_get(net, "weight");
    om_pin *pin    = om_pin_new(w, false);
    check_ok();
    const float *seen = om_pin_data(pin);
    assert_ptr_equal(seen, om_data(w));
    om_tracer *tr = om_trace_begin(NULL);
    om_tensor *x  = om_trace_input(tr, "x", om_ones(OM_F32, OM_DIMS(1, 3)), 0, NULL);
    om_trace_output(tr, "y", om_forward(net, x));
    om_graph *g = om_trace_finish(tr);
    check_ok();
    float before = seen[0];
    float bias   = (float)om_get(om_nn_get(net, "bias"), (int64_t[]){0});
    om_backward(om_sum_all(om_forward(net, om_ones(OM_F32, OM_DIMS(1, 3)))));
    om_step(opt);
    check_ok();
    assert_ptr_equal(om_data(w), seen);
    assert_float_equal(seen[0], before - 0.5f, 0); // and sees what is written
    // The graph kept what it captured.
    om_session *s = om_session_new(g, NULL);
    om_tensor *y;
    om_tensor *first = om_from((float[]){1, 0, 0}, OM_F32, OM_DIMS(1, 3));
    om_session_run(s, 1, &(om_binding){"x", first}, 1, &y);
    assert_float_equal(om_get(y, (int64_t[]){0, 0}), before + bias, 0);
    check_ok();
    om_session_free(s);
    om_graph_release(g);
    om_optim_free(opt);
    om_nn_free(net);
    om_scope_drain();
    assert_float_equal(seen[0], before - 0.5f, 0); // the tensor is gone, the bytes are not
    om_pin_free(pin);
}

static void a_pin_takes_the_bytes_for_itself(void **state) {
    (void)state;
    // A storage that shares its bytes with a graph: the pin copies, the graph keeps its own.
    om_buffer *b = omi_buffer_new(16);
    assert_non_null(b);
    memset(b->data, 0, 16);
    om_tensor *t = omi_from_buffer(b, 0, OM_F32, OM_DIMS(4));
    om_pin *pin  = om_pin_new(t, true);
    check_ok();
    assert_ptr_not_equal(om_pin_data(pin), b->data);
    ((float *)om_pin_data(pin))[2] = 5;
    assert_float_equal(om_get(t, (int64_t[]){2}), 5, 0);
    assert_float_equal(((float *)b->data)[2], 0, 0);
    om_pin_free(pin);
    omi_buffer_release(b);
    // One that is its own costs nothing: the same address, the same version.
    om_tensor *own   = om_zeros(OM_F32, OM_DIMS(3));
    const void *at   = om_data(own);
    uint64_t version = own->storage->version;
    om_pin *a = om_pin_new(own, false), *c = om_pin_new(om_slice(own, 0, 1, 3, 1), false);
    assert_ptr_equal(om_pin_data(a), at);
    assert_ptr_equal(om_pin_data(c), (const char *)at + 4); // of a view: its first element
    om_pin_free(a);
    om_fill_(own, 4);
    assert_float_equal(*(float *)om_pin_data(c), 4, 0);
    om_pin_free(c);
    assert_int_equal(own->storage->version, version + 1);
    assert_null(om_pin_new(NULL, false));
    check_error(OM_ERR_ARG, "NULL");
    om_pin_free(NULL);
    assert_null(om_pin_data(NULL));
}

static void under_a_writable_pin_nothing_is_packed(void **state) {
    (void)state;
    om_tensor *w = om_ones(OM_F32, OM_DIMS(8, 2, 3, 3)), *x = om_ones(OM_F32, OM_DIMS(1, 2, 9, 9));
    om_tensor *m = om_ones(OM_F32, OM_DIMS(64, 64)), *v = om_ones(OM_F32, OM_DIMS(4, 64));
    for (int i = 0; i < 3; i++) { // packed and kept before the pins
        om_conv2d(x, w, NULL, NULL);
        om_matmul(v, m);
    }
    om_pin *pin = om_pin_new(w, true), *pin2 = om_pin_new(m, true);
    for (int k = 0; k < 4; k++) {
        float *p = om_pin_data(pin), *q = om_pin_data(pin2);
        for (int i = 0; i < 144; i++)
            p[i] = (float)k;
        for (int i = 0; i < 4096; i++)
            q[i] = (float)k;
        om_tensor *y = om_conv2d(x, w, NULL, NULL), *z = om_matmul(v, m);
        check_ok();
        assert_float_equal(om_get(y, (int64_t[]){0, 0, 1, 1}), 18.f * (float)k, 0);
        assert_float_equal(om_get(z, (int64_t[]){3, 63}), 64.f * (float)k, 0);
    }
    om_pin_free(pin);
    om_pin_free(pin2);
}

static void a_writable_pin_refuses_backward_and_capture_by_name(void **state) {
    (void)state;
    om_tensor *a = om_ones(OM_F32, OM_DIMS(3)), *x = om_ones(OM_F32, OM_DIMS(3));
    om_set_name(a, "held");
    om_set_requires_grad(x, true);
    om_tensor *before = om_sum_all(om_mul(x, a));
    om_pin *pin       = om_pin_new(a, true);
    om_tensor *during = om_sum_all(om_mul(x, a));
    assert_int_equal(om_backward(before), OM_ERR_STATE);
    check_error(OM_ERR_STATE, "held", "om_pin_new");
    assert_int_equal(om_backward(during), OM_ERR_STATE);
    check_error(OM_ERR_STATE, "held", "writable pin");
    om_tensor *other = om_sum_all(om_add(x, a)); // an addition saves nothing
    assert_int_equal(om_backward(other), OM_OK);

    om_tracer *tr = om_trace_begin(NULL);
    om_tensor *in = om_trace_input(tr, "x", om_ones(OM_F32, OM_DIMS(3)), 0, NULL);
    assert_null(om_mul(in, a));
    om_error e;
    om_catch(&e);
    assert_int_equal(e.status, OM_ERR_TRACE);
    assert_int_equal(e.trace_kind, OM_TRACE_INVALID_USAGE);
    assert_non_null(strstr(e.message, "held"));
    om_trace_abort(tr);

    om_tensor *late = om_sum_all(om_mul(x, a));
    om_pin_free(pin);
    assert_int_equal(om_backward(late), OM_ERR_STATE); // the holder may have written since
    check_error(OM_ERR_STATE, "held", "holder of a pin");
    assert_int_equal(om_backward(om_sum_all(om_mul(x, a))), OM_OK);
    // A pin that only reads is no hindrance.
    pin = om_pin_new(a, false);
    assert_int_equal(om_backward(om_sum_all(om_mul(x, a))), OM_OK);
    om_pin_free(pin);
    check_ok();
}

static void *unpin(void *pin) {
    om_pin_free(pin);
    return NULL;
}
static void a_pin_ends_on_any_thread(void **state) {
    (void)state;
    om_pin *pin = om_pin_new(om_full(3, OM_F32, OM_DIMS(1000)), true);
    om_scope_drain();
    assert_float_equal(((float *)om_pin_data(pin))[999], 3, 0);
    pthread_t t;
    pthread_create(&t, NULL, unpin, pin);
    pthread_join(t, NULL);
}

/* ---- gradients --------------------------------------------------------------------------------
 */

static void a_gradient_is_set_by_a_copy(void **state) {
    (void)state;
    om_tensor *w = om_zeros(OM_F32, OM_DIMS(2, 2)), *g = counted(OM_DIMS(2, 2));
    assert_int_equal(om_set_grad(w, g), OM_ERR_STATE);
    check_error(OM_ERR_STATE, "om_set_requires_grad");
    om_set_requires_grad(w, true);
    assert_int_equal(om_set_grad(w, om_transpose(g, 0, 1)), OM_OK);
    om_fill_(g, 9);
    assert_true(om_bit_equal(om_grad_of(w), om_from((float[]){0, 2, 1, 3}, OM_F32, OM_DIMS(2, 2))));
    assert_int_equal(om_backward(om_sum_all(w)), OM_OK); // is added to
    assert_true(om_bit_equal(om_grad_of(w), om_from((float[]){1, 3, 2, 4}, OM_F32, OM_DIMS(2, 2))));
    assert_int_equal(om_set_grad(w, om_grad_of(w)), OM_OK); // its own
    assert_float_equal(om_get(om_grad_of(w), (int64_t[]){1, 1}), 4, 0);
    om_tensor *was = om_grad_of(w);
    assert_int_equal(om_set_grad(w, om_zeros(OM_F32, OM_DIMS(4))), OM_ERR_SHAPE);
    check_error(OM_ERR_SHAPE, "[4]", "[2,2]");
    assert_int_equal(om_set_grad(w, om_zeros(OM_F64, OM_DIMS(2, 2))), OM_ERR_DTYPE);
    check_error(OM_ERR_DTYPE, "float64");
    assert_int_equal(om_set_grad(w, om_mul(w, w)), OM_ERR_STATE);
    check_error(OM_ERR_STATE, "om_detach");
    assert_ptr_equal(om_grad_of(w), was);
    assert_int_equal(om_set_grad(w, NULL), OM_OK);
    assert_null(om_grad_of(w));
    assert_int_equal(om_set_grad(NULL, g), OM_ERR_ARG);
    check_error(OM_ERR_ARG, "leaf");
}

/* ---- errors and sites -------------------------------------------------------------------------
 */

static om_tensor *refuses(void *ctx, om_module *m, om_tensor *x) {
    (void)ctx, (void)m, (void)x;
    om_raise(OM_ERR_VALUE, "my_layer", "the 7th token is 100% unknown: %s %d");
    return NULL;
}

static void a_callback_raises_its_own_error(void **state) {
    (void)state;
    om_module *net = om_nn_module();
    om_nn_add(net, "head", om_nn_custom(refuses, NULL, NULL));
    assert_null(om_forward(om_nn_child(net, "head"), om_ones(OM_F32, OM_DIMS(2))));
    om_error e;
    assert_int_equal(om_catch(&e), OM_ERR_VALUE);
    assert_string_equal(e.where, "head: my_layer");
    assert_string_equal(e.message, "the 7th token is 100% unknown: %s %d");
    om_nn_free(net);

    assert_int_equal(om_raise(OM_ERR_TRACE, NULL, NULL), OM_ERR_TRACE);
    assert_int_equal(om_raise(OM_ERR_IO, "later", "is not seen"), OM_ERR_TRACE);
    om_catch(&e);
    assert_int_equal(e.trace_kind, OM_TRACE_INVALID_USAGE);
    assert_true(e.message[0] != 0);
    for (int i = -1; i < 100; i++) {
        bool known   = i >= 1 && i <= 14;
        om_status st = om_raise((om_status)i, "w", "m");
        assert_int_equal(st, known ? (om_status)i : OM_ERR_ARG);
        om_catch(&e);
        assert_int_equal(strcmp(e.where, "w") == 0, known);
    }
    char longer[600];
    memset(longer, 'x', sizeof longer - 1);
    longer[sizeof longer - 1] = 0;
    om_raise(OM_ERR_IO, longer, longer);
    om_catch(&e);
    assert_int_equal(strlen(e.message), sizeof e.message - 1);
    assert_int_equal(strlen(e.where), sizeof e.where - 1);
}

/* Sites are read after the strings they were given as are gone. */
static void a_site_outlives_its_strings(void **state) {
    (void)state;
    om_error e;
    char *file = malloc(32);
    strcpy(file, "notebook-1.py");
    om_here(file, 11);
    memset(file, 'Z', 31);
    om_reshape(om_zeros(OM_F32, OM_DIMS(2)), OM_DIMS(3));
    om_catch(&e);
    assert_string_equal(e.site, "notebook-1.py:11");
    strcpy(file, "notebook-2.py"); // other text at the same address
    om_here_call(file, 12);
    memset(file, 'Z', 31);
    om_here(NULL, 0);
    om_reshape(om_zeros(OM_F32, OM_DIMS(2)), OM_DIMS(3));
    om_catch(&e);

    // A trace names the line of a node when the trace ends.
    strcpy(file, "model.py");
    om_tracer *tr = om_trace_begin(OM_OPTS(trace, .provenance = true));
    om_tensor *x  = om_trace_input(tr, "x", om_ones(OM_F32, OM_DIMS(2, 3)), OM_AXES("B"));
    om_here(file, 77);
    om_tensor *y = om_relu(x);
    memset(file, 0, 32);
    free(file);
    om_here(NULL, 0);
    om_trace_output(tr, "y", y);
    om_graph *g = om_trace_finish(tr);
    check_ok();
    void *data;
    size_t bytes;
    assert_int_equal(om_graph_save_onnx_memory(g, OM_OPTS(onnx, .provenance = true), &data, &bytes),
                     OM_OK);
    bool found = false;
    for (size_t i = 0; i + 11 <= bytes; i++)
        found |= memcmp((const char *)data + i, "model.py:77", 11) == 0;
    assert_true(found);
    om_bytes_free(data, bytes);
    om_graph_release(g);
}

/* ---- memory that runs out ---------------------------------------------------------------------
 */

static om_status job(void *ctx) {
    (void)ctx;
    static float m[6] = {1, 2, 3, 4, 5, 6};
    om_scope s        = om_scope_begin();
    om_tensor *x      = om_from_strided(m, OM_F32, OM_DIMS(3, 2), (const int64_t[]){1, 3}, NULL);
    om_tensor *r =
        om_from_strided(m, OM_F32, OM_DIMS(6), NULL, OM_OPTS(strided, .read_only = true));
    om_pin *a = x ? om_pin_new(x, false) : NULL, *b = r ? om_pin_new(r, true) : NULL;
    om_tensor *w = om_zeros(OM_F32, OM_DIMS(3, 2));
    om_set_requires_grad(w, true);
    om_set_grad(w, x);
    om_pin_free(a);
    om_pin_free(b);
    return om_scope_end(s);
}

static void memory_runs_out_for_a_binding(void **state) {
    (void)state;
    int64_t n = harness_fail_each(job, NULL);
    assert_true(n > 12);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        OM_TEST(strides_are_told),
        OM_TEST(strided_memory_is_used_where_it_lies),
        OM_TEST(read_only_memory_is_never_written),
        OM_TEST(elements_on_each_other_are_read_only),
        OM_TEST(strided_memory_that_is_refused),
        OM_TEST(a_pinned_weight_stays_where_it_is),
        OM_TEST(a_pin_takes_the_bytes_for_itself),
        OM_TEST(under_a_writable_pin_nothing_is_packed),
        OM_TEST(a_writable_pin_refuses_backward_and_capture_by_name),
        OM_TEST(a_pin_ends_on_any_thread),
        OM_TEST(a_gradient_is_set_by_a_copy),
        OM_TEST(a_callback_raises_its_own_error),
        OM_TEST(a_site_outlives_its_strings),
        OM_TEST(memory_runs_out_for_a_binding),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
