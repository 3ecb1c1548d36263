/*
 * test_values.c -- what a trace may not lose: reads, writes, grad mode, constants, names, files
 * (cases C, D, F by id; TD-1, TD-7 to TD-11, TD-13; CD-8, CD-11, CD-12, CD-19).
 */
#include <pthread.h>

#include "trace_test.h"

static om_tracer *begin(om_tensor **x) {
    om_tracer *tr = fresh_tracer();
    *x            = om_trace_input(tr, "x", example(OM_DIMS(3, 4)), OM_AXES("N"));
    check_ok();
    return tr;
}
static om_graph *finish(om_tracer *tr, om_tensor *y) {
    om_trace_output(tr, "y", y);
    om_graph *g = om_trace_finish(tr);
    check_ok();
    return g;
}

/* A read, write or change of grad mode was refused before: no graph, though each error was taken
 * (TD-27); the thread is as before begin. */
static void finish_refused(om_tracer *tr, om_tensor *y, const char *first) {
    om_trace_output(tr, "y", y);
    assert_null(om_trace_finish(tr));
    check_trace_error(OM_TRACE_INVALID_USAGE, "om_trace_finish", first, "was refused");
}

/* ---- C: values ----------------------------------------------------------------------------------
 */

static void test_C1_reads(void **state) {
    (void)state;
    om_tensor *x, *buf = om_zeros(OM_F32, OM_DIMS(3, 4));
    om_tracer *tr = begin(&x);
    om_tensor *s  = om_sum_all(x);
    float out[12];
    assert_null(om_data(x));
    check_trace_error(OM_TRACE_DATA_DEPENDENT, "om_data", "'x'", "[3,4]", "om_where");
    om_item_f32(s);
    check_trace_error(OM_TRACE_DATA_DEPENDENT, "om_item_f32", "made by om_sum");
    om_get(x, (int64_t[]){0, 0});
    check_trace_error(OM_TRACE_DATA_DEPENDENT, "om_get");
    om_copy_out(x, out, sizeof out);
    check_trace_error(OM_TRACE_DATA_DEPENDENT, "om_copy_out");
    om_copy_(buf, x);
    check_trace_error(OM_TRACE_DATA_DEPENDENT, "om_copy_");
    finish_refused(tr, s, "om_data");
    assert_true(om_item_f32(s) == om_item_f32(om_sum_all(x))); /* readable after finish */
}

static void test_C2_nothing_escapes(void **state) {
    (void)state;
    om_tensor *x;
    om_tracer *tr   = begin(&x);
    om_tensor *zero = om_zeros_like(x), *mask = om_greater(x, zero);
    om_tensor *best = om_cast(om_argmax(x, 1, true), OM_F32);
    om_tensor *even = om_equal(om_argmin(x, 1, true), om_scalar_i64(2));
    om_tensor *y    = om_where(om_and(mask, om_not(even)), x, best);
    om_graph *g     = finish(tr, y);
    assert_string_equal(node_list(g).s,
                        "Shape ConstantOfShape Greater ArgMin Equal Not And ArgMax Cast "
                        "Where");
    assert_int_equal(g->n_inits, 1); /* only the 2 */
    om_graph_release(g);
}

static void test_C3_C6_writes(void **state) {
    (void)state;
    om_tensor *x, *one = om_ones(OM_F32, OM_DIMS(3, 4));
    om_tracer *tr = begin(&x);
    om_tensor *y = om_neg(x), *row = om_slice(y, 1, 0, 2, 1);
    om_copy_(row, om_slice(one, 1, 0, 2, 1));
    check_trace_error(OM_TRACE_IN_PLACE_MUTATION, "om_copy_", "om_slice", "copied");
    om_fill_(x, 0);
    check_trace_error(OM_TRACE_IN_PLACE_MUTATION, "om_fill_", "'x'", "filled");
    om_set(y, (int64_t[]){0, 0}, 1);
    check_trace_error(OM_TRACE_IN_PLACE_MUTATION, "om_set");
    assert_null(om_data_mut(y));
    check_trace_error(OM_TRACE_IN_PLACE_MUTATION, "om_data_mut");
    om_add_(y, one);
    check_trace_error(OM_TRACE_IN_PLACE_MUTATION, "om_add_");
    om_mul_scalar_(y, 2);
    check_trace_error(OM_TRACE_IN_PLACE_MUTATION, "om_mul_scalar_");
    om_fill_(one, 2); /* what no traced operator used yet may still be made ready */
    check_ok();
    finish_refused(tr, y, "om_copy_");
    om_fill_(x, 0); /* and an ordinary tensor again */
    check_ok();
}

/* Before its first use, after it, and used again. */
static void test_C5_accumulator(void **state) {
    (void)state;
    om_tensor *x, *one = om_ones(OM_F32, OM_DIMS(4)), *count = om_zeros(OM_F32, OM_DIMS(4));
    om_set_name(count, "net.count");
    om_tracer *tr = begin(&x);
    om_tensor *y  = om_add(x, count);
    om_add_(count, one);
    om_trace_output(tr, "y", y);
    assert_null(om_trace_finish(tr));
    check_trace_error(OM_TRACE_IN_PLACE_MUTATION, "net.count", "captured by om_add", "by om_add_");
    tr = begin(&x);
    y  = om_add(x, count);
    om_add_(count, one);
    assert_null(om_add(y, count));
    check_trace_error(OM_TRACE_IN_PLACE_MUTATION, "om_add", "net.count");
    om_trace_abort(tr);
    tr = begin(&x);
    om_add_(count, one);
    y = om_add(x, count);
    om_trace_output(tr, "y", y);
    assert_null(om_trace_finish(tr));
    check_trace_error(OM_TRACE_IN_PLACE_MUTATION, "net.count", "om_add_");
    tr = begin(&x); /* twins: not touched; and a tensor of the trace's own may be filled */
    om_tensor *t = om_zeros(OM_F32, OM_DIMS(4));
    om_fill_(t, 3);
    om_graph_release(finish(tr, om_add(om_add(x, count), t)));
}

static void test_C7_temporaries(void **state) {
    (void)state;
    om_tensor *x;
    om_tracer *tr = begin(&x);
    om_tensor *y  = x;
    for (int i = 0; i < 6; i++) {
        om_scope s   = om_scope_begin();
        om_tensor *k = om_scalar_f32((float)i + 2);
        y            = om_scope_return(s, om_mul(y, k)); /* k is freed, its address comes back */
    }
    om_graph *g = finish(tr, y);
    assert_int_equal(g->n_inits, 6);
    for (int i = 0; i < 6; i++) {
        char name[16];
        float v;
        snprintf(name, sizeof name, "const_%d", i + 1);
        memcpy(&v, init_named(g, name)->buf->data, sizeof v);
        assert_true(v == (float)i + 2);
    }
    om_graph_release(g);
}

static void test_C8_grad_mode(void **state) {
    (void)state;
    om_tensor *x;
    om_tracer *tr = begin(&x);
    om_no_grad_begin();
    check_trace_error(OM_TRACE_NO_GRAD, "om_no_grad_begin");
    assert_true(om_grad_enabled());
    assert_true(om_requires_grad(x)); /* while the trace records */
    finish_refused(tr, om_neg(x), "om_no_grad_begin");
    assert_false(om_requires_grad(x));
    bool was = om_no_grad_begin(); /* TD-8 */
    assert_null(om_trace_begin(NULL));
    check_trace_error(OM_TRACE_NO_GRAD, "om_trace_begin", "gradients are off");
    om_no_grad_end(was);
    om_trace_abort(om_trace_begin(NULL));
    check_ok();
}

static void test_C10_parameter_captured(void **state) {
    (void)state;
    om_tensor *x, *w = example(OM_DIMS(4));
    om_set_requires_grad(w, true);
    om_tracer *tr = begin(&x);
    om_tensor *y  = om_add(x, w);
    om_backward(om_sum_all(y)); /* CD-8 */
    check_trace_error(OM_TRACE_INVALID_USAGE, "inference");
    om_graph *g        = finish(tr, y);
    const om_ginit *in = init_named(g, "const_1");
    assert_memory_equal(in->buf->data, om_data(w), 16);
    assert_ptr_equal(in->buf->data, om_data(w)); /* shared, not copied (CD-19) */
    om_set_requires_grad(w, false);
    om_fill_(w, 9); /* training goes on: copy on write keeps the graph (CD-1) */
    check_ok();
    assert_ptr_not_equal(in->buf->data, om_data(w));
    assert_memory_equal(in->buf->data, om_data(example(OM_DIMS(4))), 16);
    om_graph_release(g);
}

/* ---- CD-11, TD-9, TD-10, nesting
 * ------------------------------------------------------------------- */

static void test_example_used_instead(void **state) {
    (void)state;
    om_tensor *ex = example(OM_DIMS(3, 4));
    om_tracer *tr = fresh_tracer();
    om_tensor *x  = om_trace_input(tr, "mask", ex, OM_AXES("N"));
    assert_ptr_not_equal(x, ex);
    assert_null(om_mul(x, ex));
    check_trace_error(OM_TRACE_INVALID_USAGE, "'mask'", "original tensor", "om_trace_input");
    assert_null(om_mul(x, om_slice(ex, 0, 0, 1, 1))); /* a view of it too */
    check_trace_error(OM_TRACE_INVALID_USAGE, "'mask'");
    om_graph_release(finish(tr, om_mul(x, x)));
    assert_true(om_bit_equal(x, ex));
}

static void test_random_frozen(void **state) {
    (void)state;
    om_rng r = om_rng_new(1, 3);
    om_tensor *x, *before = om_rand(&r, 0, 1, OM_DIMS(4));
    om_tracer *tr = begin(&x);
    om_tensor *m  = om_rand(&r, 0, 1, OM_DIMS(4));
    assert_null(om_mul(x, m));
    check_trace_error(OM_TRACE_UNSUPPORTED_OPERATION, "om_mul", "om_rand", "frozen");
    om_tensor *two =
        om_reshape(om_add_scalar(om_mul(m, m), 1), OM_DIMS(1, 4)); /* two operators on */
    assert_null(om_mul(x, two));
    check_trace_error(OM_TRACE_UNSUPPORTED_OPERATION, "om_mul", "computed from", "om_rand");
    om_tensor *copy = om_zeros(OM_F32, OM_DIMS(4));
    om_copy_(copy, m);
    assert_null(om_mul(x, copy));
    check_trace_error(OM_TRACE_UNSUPPORTED_OPERATION, "om_mul", "om_rand");
    om_graph_release(finish(tr, om_mul(x, before))); /* the twin was drawn before */
    tr = begin(&x); /* the taint of an earlier trace does not count */
    om_graph_release(finish(tr, om_mul(x, m)));
}

typedef struct other_thread {
    om_tracer *tr;
    om_tensor *x;
    om_error e[4];
} other_thread;
static void *run_other(void *arg) {
    other_thread *o = arg;
    om_neg(o->x);
    om_catch(&o->e[0]);
    om_data(o->x);
    om_catch(&o->e[1]);
    om_trace_output(o->tr, "z", o->x);
    om_catch(&o->e[2]);
    om_trace_abort(o->tr);
    om_catch(&o->e[3]);
    om_scope_drain();
    om_trim();
    return NULL;
}
static void test_other_thread(void **state) {
    (void)state;
    other_thread o = {0};
    o.tr           = begin(&o.x);
    pthread_t t;
    assert_int_equal(pthread_create(&t, NULL, run_other, &o), 0);
    pthread_join(t, NULL);
    for (int i = 0; i < 4; i++) {
        assert_int_equal(o.e[i].trace_kind, OM_TRACE_INVALID_USAGE);
        assert_non_null(strstr(o.e[i].message, "thread"));
    }
    om_graph_release(finish(o.tr, om_neg(o.x)));
    pthread_create(&t, NULL, run_other, &(other_thread){.x = o.x}); /* afterwards any thread may */
    pthread_join(t, NULL);
}

static void test_nested_and_ended(void **state) {
    (void)state;
    om_tensor *x;
    om_tracer *tr = begin(&x);
    assert_null(om_trace_begin(NULL));
    check_trace_error(OM_TRACE_INVALID_USAGE, "om_trace_begin", "active");
    assert_null(om_trace_input(tr, "z", x, 0, NULL));
    check_trace_error(OM_TRACE_INVALID_USAGE, "already traced");
    om_trace_abort(tr);
    assert_true(om_data(x) != NULL); /* an ordinary tensor: nothing was walked */
    tr             = fresh_tracer();
    om_tensor *old = om_neg(x);
    om_trace_input(tr, "x", example(OM_DIMS(3, 4)), 0, NULL);
    om_trace_output(tr, "y", old); /* of the trace before */
    check_trace_error(OM_TRACE_INVALID_USAGE, "'y'", "does not depend on an input");
    om_trace_abort(tr);
    om_trace_abort(NULL);
    assert_null(om_trace_finish(NULL));
    check_error(OM_ERR_ARG, "NULL");
}

/* An error pending at finish ends the tracer and stays. */
static void test_finish_after_failure(void **state) {
    (void)state;
    om_tensor *x;
    om_tracer *tr = begin(&x);
    om_trace_output(tr, "y", om_matmul(x, x));
    assert_null(om_trace_finish(tr));
    check_error(OM_ERR_SHAPE, "[3,4]");
    om_trace_abort(om_trace_begin(NULL));
    tr = begin(&x);
    assert_null(om_trace_finish(tr));
    check_trace_error(OM_TRACE_INVALID_USAGE, "no output");
}

/* ---- what a graph cannot hold (TR-2)
 * ----------------------------------------------------------------- */

static void test_losses(void **state) {
    (void)state;
    om_tensor *x, *t = ids(4, OM_DIMS(3));
    om_tracer *tr = begin(&x);
    assert_null(om_cross_entropy(x, t));
    check_trace_error(OM_TRACE_UNSUPPORTED_OPERATION, "om_cross_entropy (in om_nll_loss)",
                      "losses");
    assert_null(om_nll_loss(om_log_softmax(x, 1), t, NULL));
    check_trace_error(OM_TRACE_UNSUPPORTED_OPERATION, "om_nll_loss", "losses");
    om_graph *g = finish(tr, om_mse_loss(x, om_zeros_like(x))); /* made of traceable parts */
    assert_non_null(node_k(g, "ReduceMean", 0));
    om_graph_release(g);
}

static void test_blocked_and_large(void **state) {
    (void)state;
    om_tensor *img = example(OM_DIMS(3, 16, 2, 2)), *blocked = om_to_nchw16c(img);
    om_tracer *tr = fresh_tracer();
    om_tensor *x  = om_trace_input(tr, "x", img, OM_AXES("N"));
    assert_null(om_add(x, blocked));
    check_trace_error(OM_TRACE_UNSUPPORTED_OPERATION, "om_add", "blocked", "om_from_nchw16c");
    om_trace_parameter(tr, "w", blocked);
    check_trace_error(OM_TRACE_UNSUPPORTED_OPERATION, "'w'", "blocked");
    assert_null(om_to_nchw16c(x));
    check_trace_error(OM_TRACE_UNSUPPORTED_OPERATION, "om_to_nchw16c");
    om_tensor *s   = om_scalar_f32(1);
    om_tensor *big = om_expand(om_reshape(s, OM_DIMS(1)), OM_DIMS((int64_t)1 << 29));
    assert_null(om_where(om_greater(om_mean_all(x), om_scalar_f32(0)),
                         om_index_select(big, 0, om_cast(om_argmax(x, 0, false), OM_I64)),
                         om_scalar_f32(0)));
    check_trace_error(OM_TRACE_UNSUPPORTED_OPERATION, "om_index_select", "2 GiB");
    big         = om_expand(om_reshape(s, OM_DIMS(1)), OM_DIMS(1 << 10));
    om_graph *g = finish(tr, om_index_select(big, 0, om_argmax(x, 0, false)));
    assert_int_equal(g->inits[0].bytes, 4096);
    om_graph_release(g);
}

static int plus_one(void *ctx, int n_in, om_tensor *const *in, int n_out, om_tensor **out) {
    (void)ctx, (void)n_in, (void)n_out;
    out[0] = om_add_scalar(in[0], 1);
    return 0;
}
static void test_custom(void **state) {
    (void)state;
    om_tensor *x, *y = NULL;
    om_custom_op op = {.struct_size = sizeof op, .name = "my.plus", .forward = plus_one};
    om_tracer *tr   = begin(&x);
    om_custom(&op, 1, &x, 1, &y);
    check_trace_error(OM_TRACE_UNSUPPORTED_OPERATION, "my.plus", "lowering");
    op.lowering = plus_one;
    om_custom(&op, 1, &x, 1, &y);
    om_graph *g = finish(tr, y);
    assert_string_equal(node_list(g).s, "Add");
    om_graph_release(g);
}

/* ---- D: names, inputs, outputs
 * ------------------------------------------------------------------------- */

static void test_D1_D2_identities(void **state) {
    (void)state;
    om_tensor *x;
    om_tracer *tr = begin(&x);
    om_tensor *y  = om_neg(x);
    om_trace_output(tr, "a", y);
    om_trace_output(tr, "b", om_clone(y)); /* an alias: the same value */
    om_trace_output(tr, "c", x);
    om_graph *g = om_trace_finish(tr);
    check_ok();
    assert_string_equal(node_list(g).s, "Neg Identity Identity");
    om_value_info v;
    for (int i = 0; i < 3; i++) {
        om_graph_output(g, i, &v);
        assert_int_equal(v.name[0], 'a' + i);
        assert_string_equal(axes_text(&v).s, "(N,4)");
    }
    om_graph_release(g);
}

static void test_D4_D5_D9(void **state) {
    (void)state;
    om_tensor *x, *w = example(OM_DIMS(4));
    om_tracer *tr = begin(&x);
    om_trace_input(tr, "spare", example(OM_DIMS(5)), OM_AXES("S"));
    assert_null(
        om_trace_input(tr, "bad", example(OM_DIMS(3, 4)), 10, (const char *const[10]){[9] = "Z"}));
    check_trace_error(OM_TRACE_INVALID_USAGE, "'bad'", "axis 9", "'Z'");
    om_trace_output(tr, "y", om_mul_scalar(w, 2));
    check_trace_error(OM_TRACE_INVALID_USAGE, "'y'", "does not depend on an input");
    om_trace_output(tr, "x", om_neg(x));
    check_trace_error(OM_TRACE_INVALID_USAGE, "'x'", "already used");
    assert_null(om_trace_input(tr, "x", w, 0, NULL));
    check_trace_error(OM_TRACE_INVALID_USAGE, "'x'", "already used");
    om_graph *g = finish(tr, om_add(x, om_mul_scalar(w, 2)));
    assert_int_equal(om_graph_n_inputs(g), 2);
    assert_non_null(strstr(om_trace_report(g), "spare float32 [S] unused"));
    assert_int_equal(count_nodes(g, NULL), 1); /* the constant product was computed, not written */
    om_graph_release(g);
}

static void test_D7_axis_names_and_ranges(void **state) {
    (void)state;
    om_tracer *tr = fresh_tracer();
    om_tensor *x  = om_trace_input(tr, "x", example(OM_DIMS(6, 4)), OM_AXES("my_axis"));
    assert_int_equal(om_trace_axis_range(tr, "my_axis", 2, 64, 2), OM_OK);
    om_trace_axis_range(tr, "your_axis", 1, 0, 1);
    check_trace_error(OM_TRACE_INVALID_USAGE, "your_axis");
    om_trace_axis_range(tr, "my_axis", 8, 64, 1);
    check_trace_error(OM_TRACE_INVALID_USAGE, "my_axis", "6");
    om_trace_axis_range(tr, "my_axis", 5, 4, 1);
    check_error(OM_ERR_ARG, "my_axis");
    om_graph *g = finish(tr, om_neg(x));
    om_value_info v;
    om_graph_input(g, 0, &v);
    assert_string_equal(v.axes[0].symbol, "my_axis");
    assert_int_equal(v.axes[0].lo, 2);
    assert_int_equal(v.axes[0].hi, 64);
    assert_int_equal(v.axes[0].multiple, 2);
    om_graph_output(g, 0, &v);
    assert_string_equal(v.axes[0].symbol, "my_axis");
    om_graph_release(g);
}

/* ---- F: constants, files
 * -------------------------------------------------------------------------------- */

static void test_F1_tied_weights(void **state) {
    (void)state;
    om_tensor *w = example(OM_DIMS(9, 4)), *i = ids(9, OM_DIMS(3, 5));
    om_tracer *tr = fresh_tracer();
    om_trace_parameter(tr, "W", w);
    om_trace_parameter(tr, "head.W", w); /* tied: the first name holds */
    om_tensor *x = om_trace_input(tr, "ids", i, OM_AXES("N", "T"));
    om_tensor *h = om_embedding(w, x, -1);
    om_graph *g  = finish(tr, om_matmul(h, om_transpose(w, 0, 1)));
    assert_int_equal(g->n_inits, 2);
    assert_non_null(init_named(g, "W"));
    const om_ginit *v = init_named(g, "W.view_1");
    assert_non_null(v);
    assert_int_equal(v->dims[0], 4);
    assert_memory_equal(v->buf->data, om_data(om_contiguous(om_transpose(w, 0, 1))), 9 * 4 * 4);
    om_graph_release(g);
}

static void test_F2_F3_module_names(void **state) {
    (void)state;
    om_module *net = om_nn_module();
    om_module *fc  = om_nn_add(net, "fc", om_nn_linear(4, 4, NULL));
    om_nn_train(net, false);
    om_tensor *x  = NULL;
    om_tracer *tr = fresh_tracer();
    om_trace_params(tr, net);
    x            = om_trace_input(tr, "x", example(OM_DIMS(3, 4)), OM_AXES("N"));
    om_tensor *y = x;
    for (int i = 0; i < 12; i++)
        y = om_forward(fc, y);
    om_graph *g = finish(tr, y);
    assert_int_equal(g->n_inits, 2);
    assert_non_null(init_named(g, "fc.weight"));
    assert_non_null(init_named(g, "fc.bias"));
    assert_string_equal(node_list(g).s,
                        "Gemm Gemm Gemm Gemm Gemm Gemm Gemm Gemm Gemm Gemm Gemm Gemm");
    assert_string_equal(g->nodes[11].name, "fc/Gemm_12");
    om_graph_release(g);
    g = om_nn_trace(fc, example(OM_DIMS(3, 4)), OM_AXES("batch"));
    check_ok();
    assert_non_null(init_named(g, "weight"));
    om_graph_release(g);
    om_nn_free(net);
}

/* TD-13: the running module, the operator, the tensor with who made it, file and line; none of it
 * saved. */
static void test_errors_name_everything(void **state) {
    (void)state;
    om_module *net = om_nn_module(), *gate = om_nn_add(net, "gate", om_nn_module());
    om_tensor *x;
    om_tracer *tr = begin(&x);
    om_nn_enter(net);
    om_nn_enter(gate);
    om_tensor *m = om_mean(x, OM_DIMS(1), true);
    om_here("gate.c", 41);
    om_item_f64(om_select(m, 0, 0));
    check_trace_error(OM_TRACE_DATA_DEPENDENT, "gate: om_item_f64", "made by om_select in gate",
                      "gate.c:41");
    om_tensor *w = om_mul(m, om_ones(OM_F32, OM_DIMS(3, 4)));
    assert_null(w);
    check_trace_error(OM_TRACE_SYMBOLIC_SHAPE, "gate: om_mul", "made by om_mean in gate",
                      "the constant float32 [3,4]", "gate.c:41");
    om_nn_leave(gate);
    om_nn_leave(net);
    om_here(NULL, 0);
    om_neg(x);
    om_fill_(x, 1);
    om_error e;
    om_catch(&e);
    assert_non_null(strchr(e.site, '+')); /* prog+0x1a2f */
    finish_refused(tr, m, "gate.c:41");
    tr = begin(&x); // none of it in a file
    om_nn_enter(net);
    om_nn_enter(gate);
    om_here("gate.c", 41);
    m = om_mean(x, OM_DIMS(1), true);
    om_nn_leave(gate);
    om_nn_leave(net);
    om_here(NULL, 0);
    om_graph *g = finish(tr, m);
    void *data;
    size_t bytes;
    assert_int_equal(om_graph_save_onnx_memory(g, NULL, &data, &bytes), OM_OK);
    assert_null(memmem(data, bytes, "gate.c", 6));
    assert_non_null(memmem(data, bytes, "gate/ReduceMean_1", 17));
    om_bytes_free(data, bytes);
    om_graph_release(g);
    om_nn_free(net);
}

static void test_F8_versions(void **state) {
    (void)state;
    om_tensor *x;
    om_tracer *tr = begin(&x);
    om_graph *g   = finish(tr, om_neg(x));
    assert_int_equal(om_graph_ir_version(g), 9);
    assert_int_equal(om_graph_opset(g), 20);
    assert_int_equal(g->n_opsets, 1);
    om_graph_release(g);
}

/* Aliases write no node (TR-1). */
static void test_aliases(void **state) {
    (void)state;
    om_tensor *x;
    om_tracer *tr = begin(&x);
    assert_ptr_equal(om_detach(x), x);
    om_tensor *y = om_contiguous(om_clone(om_slice(om_reshape(x, OM_DIMS(3, 4)), 1, 0, OM_END, 1)));
    y = om_contiguous(om_transpose(om_expand_as(om_dropout(y, 0.5f, false, NULL), x), 0, 1));
    om_graph *g = finish(tr, y);
    assert_string_equal(node_list(g).s, "Transpose");
    om_graph_release(g);
}

/* Two outputs of one record; the one not used is not pruned from its node (CD-6). */
static void test_many_outputs(void **state) {
    (void)state;
    om_tensor *x, *v, *i, *parts[5] = {NULL};
    om_tracer *tr = fresh_tracer();
    x             = om_trace_input(tr, "x", example(OM_DIMS(3, 10)), OM_AXES("N"));
    om_split(x, 1, 5, (int64_t[]){1, 2, 3, 2, 2}, parts);
    om_top_k(parts[2], 2, -1, false, &v, &i);
    om_trace_output(tr, "i", i);
    om_trace_output(tr, "p", parts[4]);
    om_graph *g = om_trace_finish(tr);
    check_ok();
    assert_string_equal(node_list(g).s, "Split TopK");
    assert_int_equal(node_k(g, "Split", 0)->n_out, 5);
    assert_string_equal(output_axes(g, 0).s, "(N,2)");
    assert_string_equal(output_axes(g, 1).s, "(N,2)");
    om_graph_release(g);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        OM_TEST(test_C1_reads),
        OM_TEST(test_C2_nothing_escapes),
        OM_TEST(test_C3_C6_writes),
        OM_TEST(test_C5_accumulator),
        OM_TEST(test_C7_temporaries),
        OM_TEST(test_C8_grad_mode),
        OM_TEST(test_C10_parameter_captured),
        OM_TEST(test_example_used_instead),
        OM_TEST(test_random_frozen),
        OM_TEST(test_other_thread),
        OM_TEST(test_nested_and_ended),
        OM_TEST(test_finish_after_failure),
        OM_TEST(test_losses),
        OM_TEST(test_blocked_and_large),
        OM_TEST(test_custom),
        OM_TEST(test_D1_D2_identities),
        OM_TEST(test_D4_D5_D9),
        OM_TEST(test_D7_axis_names_and_ranges),
        OM_TEST(test_F1_tied_weights),
        OM_TEST(test_F2_F3_module_names),
        OM_TEST(test_errors_name_everything),
        OM_TEST(test_F8_versions),
        OM_TEST(test_aliases),
        OM_TEST(test_many_outputs),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
