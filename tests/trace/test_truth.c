/*
 * test_truth.c -- what an inspection of version 0.1.0 found traced silently wrong, line by line:
 * each line has its expected result (a kind, or equal to eager at other sizes), and each refused
 * line a truthful twin that must trace and be equal. D1 to D17, r67 and the decisions TD-20 to
 * TD-28 that they led to.
 */
#include <pthread.h>

#include "onemodel/optim.h"
#include "onemodel/session.h"
#include "trace_test.h"

enum { EQUAL = -1 };

typedef struct line {
    const char *what;
    model_fn f;
    int rank;
    int64_t dims[4];
    const char *axes[4];
    int result;       /* EQUAL, or an om_trace_kind            */
    const char *says; /* in the message, or in the report      */
    int64_t at[3][4]; /* other sizes; unused ones have at[k][0] 0 */
} line;

static void run_at(const line *l, om_graph *g, const int64_t *dims) {
    om_session *s = om_session_new(g, NULL);
    om_tensor *x  = filled(31, l->rank, dims);
    om_tensor *y = om_session_call(s, x), *want = l->f(x);
    if (om_pending() || !om_bit_equal(y, want)) {
        om_error e;
        om_catch(&e);
        print_error("%s at size %lld: %s\n", l->what, (long long)dims[0],
                    e.status ? e.message : "differs");
        fail();
    }
    om_session_free(s);
}

static void check_line(const line *l) {
    om_scope scope = om_scope_begin();
    om_graph *g    = trace_one(l->f, l->rank, l->dims, l->rank, l->axes);
    om_error e;
    if (l->result != EQUAL) {
        if (g || om_catch(&e) != OM_ERR_TRACE || (int)e.trace_kind != l->result) {
            print_error("%s: %s expected, got %s\n", l->what,
                        om_trace_kind_name((om_trace_kind)l->result), g ? "a graph" : e.message);
            om_graph_release(g);
            fail();
        }
        if (l->says && !strstr(e.message, l->says)) {
            print_error("%s: '%s' is not in: %s\n", l->what, l->says, e.message);
            fail();
        }
    } else {
        if (!g) {
            om_catch(&e);
            print_error("%s: %s\n", l->what, e.message);
            fail();
        }
        if (l->says && !strstr(om_trace_report(g), l->says)) {
            print_error("%s: '%s' is not in the report:\n%s\n", l->what, l->says,
                        om_trace_report(g));
            fail();
        }
        run_at(l, g, l->dims);
        for (int k = 0; k < 3 && l->at[k][0]; k++)
            run_at(l, g, l->at[k]);
        om_graph_release(g);
    }
    om_scope_end(scope);
}
#define CHECK_LINES(lines)                                                                         \
    do {                                                                                           \
        for (size_t i_ = 0; i_ < sizeof(lines) / sizeof *(lines); i_++)                            \
            check_line(&(lines)[i_]);                                                              \
    } while (0)

/* ---- D1: slices -------------------------------------------------------------------------------
 */

static om_tensor *sum1(om_tensor *x) {
    return om_sum(x, 1, (int64_t[]){1}, false);
}
static om_tensor *first_100(om_tensor *x) {
    return sum1(om_slice(x, 1, 0, 100, 1));
}
static om_tensor *last_100(om_tensor *x) {
    return sum1(om_slice(x, 1, -100, OM_END, 1));
}
static om_tensor *last_7(om_tensor *x) {
    return sum1(om_slice(x, 1, -7, OM_END, 1));
}
static om_tensor *to_the_size(om_tensor *x) {
    return om_slice(x, 1, 0, om_dim(x, 1), 1);
}
static om_tensor *open_slice(om_tensor *x) {
    return om_slice(x, 1, 0, OM_END, 1);
}
static om_tensor *but_first(om_tensor *x) {
    return om_slice(x, 1, 1, OM_END, 1);
}
static om_tensor *every_second(om_tensor *x) {
    return om_slice(x, 1, 0, OM_END, 2);
}
static om_tensor *fixed_axis(om_tensor *x) {
    return om_slice(om_slice(x, 1, 0, 100, 1), 1, -100, 2, 1);
}
static om_tensor *backwards(om_tensor *x) {
    return om_slice(x, 1, -1, OM_END, -1);
}
static om_tensor *backwards_100(om_tensor *x) {
    return om_slice(x, 1, 100, OM_END, -1);
}
static void D1_slices(void **state) {
    (void)state;
    static const line lines[] = {
        {"first 100", first_100, 2, {2, 7}, {NULL, "T"}, OM_TRACE_SYMBOLIC_SHAPE, "OM_END", {{0}}},
        {"last 100", last_100, 2, {2, 7}, {NULL, "T"}, OM_TRACE_SYMBOLIC_SHAPE, "-100", {{0}}},
        {"last 7 of 7", last_7, 2, {2, 7}, {NULL, "T"}, OM_TRACE_SYMBOLIC_SHAPE, "-7", {{0}}},
        {"but the first", but_first, 2, {2, 7}, {NULL, "T"}, OM_TRACE_SYMBOLIC_SHAPE, "1", {{0}}},
        {"every second", every_second, 2, {2, 7}, {NULL, "T"}, OM_TRACE_SYMBOLIC_SHAPE, "2", {{0}}},
        {"backwards from 100",
         backwards_100,
         2,
         {2, 7},
         {NULL, "T"},
         OM_TRACE_SYMBOLIC_SHAPE,
         "100",
         {{0}}},
        {"open end", open_slice, 2, {2, 7}, {NULL, "T"}, EQUAL, NULL, {{2, 200}, {2, 1}}},
        {"to the size", to_the_size, 2, {2, 7}, {NULL, "T"}, EQUAL, "notes:", {{2, 200}, {2, 1}}},
        {"backwards", backwards, 2, {2, 7}, {NULL, "T"}, EQUAL, NULL, {{2, 200}, {2, 1}}},
        {"a fixed axis", fixed_axis, 2, {3, 7}, {"B"}, EQUAL, NULL, {{5, 7}, {1, 7}}},
    };
    CHECK_LINES(lines);
}

/* ---- D2: reshapes that look like nothing --------------------------------------------------------
 */

static om_tensor *swapped(om_tensor *x) {
    return om_reshape(om_transpose(x, 0, 1), OM_DIMS(om_dim(x, 0), 3));
}
static om_tensor *swapped_open(om_tensor *x) {
    return om_reshape(om_transpose(x, 0, 1), OM_DIMS(-1, 3));
}
static om_tensor *swapped_ones(om_tensor *x) {
    return om_reshape(om_transpose(x, 0, 1), OM_DIMS(om_dim(x, 0), 1, 3, 1));
}
static om_tensor *split_heads(om_tensor *x) { // (B, 4, 3*T) to (B, T, 12)
    int64_t b = om_dim(x, 0), t = om_dim(x, 1);
    om_tensor *y = om_transpose(om_reshape(x, OM_DIMS(b, t, 4, 3)), 1, 2);
    return om_reshape(om_reshape(y, OM_DIMS(b, 4, -1)), OM_DIMS(b, t, 12));
}
static om_tensor *own_shape(om_tensor *x) {
    return om_add(om_reshape(om_relu(x), OM_DIMS(om_dim(x, 0), om_dim(x, 1))), x);
}
static om_tensor *flat(om_tensor *x) {
    return om_add_scalar(om_flatten(x, 1), 1);
}
static om_tensor *flat_last(om_tensor *x) {
    return om_add_scalar(om_flatten(om_transpose(x, 0, 1), 1), 1);
}
static om_tensor *expand_same(om_tensor *x) {
    return om_relu(om_expand(x, OM_DIMS(om_dim(x, 0), om_dim(x, 1))));
}
static void D2_reshapes(void **state) {
    (void)state;
    static const line lines[] = {
        {"swapped", swapped, 2, {3, 3}, {"B"}, OM_TRACE_SYMBOLIC_SHAPE, "(B,3)", {{0}}},
        {"swapped and ones",
         swapped_ones,
         2,
         {3, 3},
         {"B"},
         OM_TRACE_SYMBOLIC_SHAPE,
         "(B,1,3,1)",
         {{0}}},
        {"swapped, open", swapped_open, 2, {3, 3}, {"B"}, EQUAL, "(3,B)", {{5, 3}, {1, 3}}},
        {"swapped, B = 5", swapped, 2, {5, 3}, {"B"}, EQUAL, NULL, {{3, 3}, {1, 3}}},
        {"heads at T = 4",
         split_heads,
         3,
         {5, 4, 12},
         {"B", "T"},
         EQUAL,
         "(B,T,12)",
         {{2, 7, 12}, {1, 1, 12}}},
        {"heads at T = 7",
         split_heads,
         3,
         {5, 7, 12},
         {"B", "T"},
         EQUAL,
         NULL,
         {{2, 4, 12}, {1, 1, 12}}},
        {"its own shape", own_shape, 2, {3, 5}, {"B"}, EQUAL, NULL, {{5, 5}, {1, 5}}},
        {"its own shape, both", own_shape, 2, {3, 5}, {"B", "T"}, EQUAL, NULL, {{5, 5}, {1, 2}}},
        {"flatten of equal sizes", flat, 2, {3, 3}, {"B"}, EQUAL, NULL, {{5, 3}, {1, 3}}},
        {"flatten of equal sizes, last",
         flat_last,
         2,
         {3, 3},
         {"B"},
         EQUAL,
         NULL,
         {{5, 3}, {1, 3}}},
        {"flatten of equal sizes and a 1",
         flat,
         3,
         {3, 3, 1},
         {"B"},
         EQUAL,
         NULL,
         {{5, 3, 1}, {1, 3, 1}}},
        {"expand to the same", expand_same, 2, {3, 5}, {"B"}, EQUAL, NULL, {{7, 5}, {1, 5}}},
    };
    CHECK_LINES(lines);
}

/* ---- D3: indices made from a size ---------------------------------------------------------------
 */

static om_tensor *reversed_rows(om_tensor *x) {
    return om_embedding(x, om_arange(om_dim(x, 0) - 1, -1, -1), -1);
}
static om_tensor *reversed_select(om_tensor *x) {
    return om_index_select(x, 0, om_arange(om_dim(x, 0) - 1, -1, -1));
}
static om_tensor *negative_all(om_tensor *x) {
    return om_index_select(x, 0, om_arange(-1, -1 - om_dim(x, 0), -1));
}
static om_tensor *first_and_last(om_tensor *x) {
    return om_index_select(x, 0, om_from(((int64_t[]){0, -1}), OM_I64, OM_DIMS(2)));
}
static om_tensor *first_two(om_tensor *x) {
    return om_index_select(x, 0, om_arange(0, 2, 1));
}
static om_tensor *reversed_slice(om_tensor *x) {
    return om_slice(x, 0, -1, OM_END, -1);
}
static om_tensor *last_i32(om_tensor *x) {
    return om_index_select(x, 0, om_cast(om_arange(om_dim(x, 0) - 1, om_dim(x, 0), 1), OM_I32));
}
static void D3_indices(void **state) {
    (void)state;
    static const line lines[] = {
        {"embedding", reversed_rows, 2, {7, 4}, {"T"}, OM_TRACE_SYMBOLIC_SHAPE, "last", {{0}}},
        {"index_select", reversed_select, 2, {7, 4}, {"T"}, OM_TRACE_SYMBOLIC_SHAPE, "last", {{0}}},
        {"int32", last_i32, 2, {7, 4}, {"T"}, OM_TRACE_SYMBOLIC_SHAPE, "last", {{0}}},
        {"all, negative", negative_all, 2, {7, 4}, {"T"}, OM_TRACE_SYMBOLIC_SHAPE, "all", {{0}}},
        {"first and last", first_and_last, 2, {7, 4}, {"T"}, EQUAL, NULL, {{9, 4}, {1, 4}}},
        {"first and last of two", first_and_last, 2, {2, 4}, {"T"}, EQUAL, NULL, {{9, 4}, {1, 4}}},
        {"first two", first_two, 2, {7, 4}, {"T"}, EQUAL, "notes:", {{9, 4}, {2, 4}}},
        {"a slice backwards", reversed_slice, 2, {7, 4}, {"T"}, EQUAL, NULL, {{9, 4}, {1, 4}}},
        {"a fixed axis", reversed_select, 2, {7, 4}, {NULL, "T"}, EQUAL, NULL, {{7, 9}, {7, 1}}},
    };
    CHECK_LINES(lines);
}

/* ---- D4: squeeze --------------------------------------------------------------------------------
 */

static om_tensor *squeeze_all(om_tensor *x) {
    return om_squeeze(x, 0, NULL);
}
static om_tensor *squeeze_named(om_tensor *x) {
    return om_squeeze(x, 1, (int64_t[]){2});
}
static om_tensor *squeeze_none(om_tensor *x) {
    return om_relu(om_squeeze(x, 0, NULL));
}
static void D4_squeeze(void **state) {
    (void)state;
    static const line lines[] = {
        {"all",
         squeeze_all,
         3,
         {3, 7, 1},
         {"B", "T"},
         OM_TRACE_SYMBOLIC_SHAPE,
         "name the axes",
         {{0}}},
        {"none has size 1",
         squeeze_none,
         2,
         {3, 7},
         {"B"},
         OM_TRACE_SYMBOLIC_SHAPE,
         "name the axes",
         {{0}}},
        {"named", squeeze_named, 3, {3, 7, 1}, {"B", "T"}, EQUAL, NULL, {{1, 7, 1}, {5, 1, 1}}},
        {"fixed axes", squeeze_all, 3, {3, 1, 1}, {NULL}, EQUAL, NULL, {{3, 1, 1}}},
        {"fixed axes, none", squeeze_none, 2, {3, 7}, {NULL}, EQUAL, NULL, {{3, 7}}},
    };
    CHECK_LINES(lines);
}

/* ---- D5: the example itself ---------------------------------------------------------------------
 */

/* y = body; the trace ends with this kind, or traces when EQUAL. */
#define BEGIN(...)                                                                                 \
    om_tensor *ex = example(__VA_ARGS__);                                                          \
    om_tracer *tr = fresh_tracer();                                                                \
    om_tensor *x  = om_trace_input(tr, "x", ex, 0, NULL)
#define REFUSED(kind, ...)                                                                         \
    do {                                                                                           \
        om_graph *g_ = om_trace_finish(tr);                                                        \
        if (g_) om_graph_release(g_);                                                              \
        assert_null(g_);                                                                           \
        check_trace_error(kind, __VA_ARGS__);                                                      \
    } while (0)
#define TRACES()                                                                                   \
    do {                                                                                           \
        om_graph *g_ = om_trace_finish(tr);                                                        \
        check_ok();                                                                                \
        assert_non_null(g_);                                                                       \
        om_graph_release(g_);                                                                      \
    } while (0)

static void D5_example(void **state) {
    (void)state;
    {
        BEGIN(OM_DIMS(2, 4));
        om_trace_output(tr, "y", om_div(x, om_max(ex, 0, NULL, false)));
        REFUSED(OM_TRACE_INVALID_USAGE, "x", "computed from the example", "om_trace_input");
    }
    {
        BEGIN(OM_DIMS(2, 4));
        om_trace_output(tr, "y", om_div(x, om_max(x, 0, NULL, false)));
        TRACES();
    }
    {
        BEGIN(OM_DIMS(2, 4));
        om_trace_output(tr, "y", om_add(x, om_relu(ex)));
        REFUSED(OM_TRACE_INVALID_USAGE, "x", "om_trace_input");
    }
    {
        BEGIN(OM_DIMS(2, 4));
        om_tensor *part = om_slice(ex, 0, 1, OM_END, 1); // a view of it
        om_trace_output(tr, "y", om_add(x, part));
        REFUSED(OM_TRACE_INVALID_USAGE, "x", "om_trace_input");
    }
    {
        BEGIN(OM_DIMS(2, 4));
        om_trace_output(tr, "y", om_mul_scalar(x, om_item_f32(om_max(ex, 0, NULL, false))));
        REFUSED(OM_TRACE_DATA_DEPENDENT, "example", "om_item_f32");
    }
    {
        BEGIN(OM_DIMS(2, 4));
        om_trace_output(tr, "y", om_mul_scalar(x, (float)om_get(ex, (int64_t[]){1, 1})));
        REFUSED(OM_TRACE_DATA_DEPENDENT, "example", "om_get");
    }
    { // a gradient of what was computed from it
        om_tensor *w = om_ones(OM_F32, OM_DIMS(4)), *dw = NULL;
        om_set_requires_grad(w, true);
        BEGIN(OM_DIMS(2, 4));
        om_grad(om_sum_all(om_mul(ex, w)), 1, &w, &dw, NULL);
        om_trace_output(tr, "y", om_add(x, dw));
        REFUSED(OM_TRACE_INVALID_USAGE, "x", "computed from the example");
    }
    // What lies beside the example in its storage is nobody's example.
    om_tensor *data = example(OM_DIMS(6, 4));
    om_tracer *tr   = fresh_tracer();
    om_tensor *x    = om_trace_input(tr, "x", om_slice(data, 0, 0, 2, 1), 0, NULL);
    om_trace_output(tr, "y", om_add(x, om_slice(data, 0, 2, 4, 1)));
    TRACES();
    tr = fresh_tracer();
    x  = om_trace_input(tr, "x", om_slice(data, 0, 0, 2, 1), 0, NULL);
    om_trace_output(tr, "y", om_add(x, om_relu(om_slice(data, 0, 1, 3, 1))));
    REFUSED(OM_TRACE_INVALID_USAGE, "x");
}

/* ---- D6: random numbers read, moved, mixed ------------------------------------------------------
 */

static om_tensor *draw(void) {
    return om_rand(om_thread_rng(2), 0, 1, 0, NULL);
}
static void D6_random(void **state) {
    (void)state;
    {
        BEGIN(OM_DIMS(2, 4));
        om_trace_output(tr, "y", om_item_f32(draw()) < 0.5f ? x : om_relu(x));
        REFUSED(OM_TRACE_DATA_DEPENDENT, "om_rand");
    }
    { // its truthful twin: drawn before the trace
        float r = om_item_f32(draw());
        BEGIN(OM_DIMS(2, 4));
        om_trace_output(tr, "y", r < 0.5f ? om_neg(x) : om_relu(x));
        TRACES();
    }
    {
        BEGIN(OM_DIMS(2, 4));
        om_tensor *n = om_zeros(OM_F32, OM_DIMS(1));
        om_set(n, (int64_t[]){0}, om_get(draw(), NULL));
        om_trace_output(tr, "y", om_add(x, n));
        REFUSED(OM_TRACE_DATA_DEPENDENT, "om_rand");
    }
    {
        BEGIN(OM_DIMS(2, 4));
        float r = 0;
        om_copy_out(draw(), &r, sizeof r);
        om_trace_output(tr, "y", om_add(x, om_from(&r, OM_F32, 0, NULL)));
        REFUSED(OM_TRACE_DATA_DEPENDENT, "om_rand");
    }
    for (int order = 0; order < 2; order++) { // a mark of an earlier trace hides none of this one
        om_tracer *old   = fresh_tracer();
        om_tensor *stale = om_rand(om_thread_rng(2), 0, 1, OM_DIMS(4));
        om_trace_abort(old);
        BEGIN(OM_DIMS(2, 4));
        om_tensor *now = om_rand(om_thread_rng(2), 0, 1, OM_DIMS(4));
        om_trace_output(tr, "y", om_add(x, order ? om_add(now, stale) : om_add(stale, now)));
        REFUSED(OM_TRACE_UNSUPPORTED_OPERATION, "om_rand");
    }
    for (int order = 0; order < 2; order++) { // both marks hold: no order of operands loses one
        BEGIN(OM_DIMS(2, 4));
        om_tensor *r = om_rand(om_thread_rng(2), 0, 1, OM_DIMS(2, 4));
        om_trace_output(tr, "y", om_add(x, order ? om_add(ex, r) : om_add(r, ex)));
        REFUSED(OM_TRACE_INVALID_USAGE, "x");
    }
    {
        BEGIN(OM_DIMS(2, 4));
        om_tensor *n = om_zeros(OM_F32, OM_DIMS(4));
        om_add_(n, om_rand(om_thread_rng(2), 0, 1, OM_DIMS(4)));
        om_trace_output(tr, "y", om_add(x, n));
        REFUSED(OM_TRACE_UNSUPPORTED_OPERATION, "om_rand");
    }
    {
        BEGIN(OM_DIMS(2, 4));
        om_tensor *n = om_dropout(om_ones(OM_F32, OM_DIMS(4)), 0.5f, false, NULL); // in evaluation
        om_trace_output(tr, "y", om_add(x, n));
        TRACES();
    }
}

/* ---- D7: what took a traced tensor behind the seam ----------------------------------------------
 */

static void D7_behind_the_seam(void **state) {
    (void)state;
    {
        BEGIN(OM_DIMS(2, 4));
        om_tensor *t[1] = {om_relu(x)}, *b[1] = {NULL};
        om_loader *l = om_loader_new(1, t, 2, NULL);
        if (l) om_loader_next(l, b);
        assert_true(om_pending());
        check_trace_error(OM_TRACE_DATA_DEPENDENT, "om_loader");
        om_loader_free(l);
        om_trace_abort(tr);
    }
    { // batches of marked data stay marked; of other data they are ordinary
        BEGIN(OM_DIMS(2, 4));
        om_tensor *t[1] = {ex}, *b[1] = {NULL}, *other[1] = {om_ones(OM_F32, OM_DIMS(2, 4))};
        om_loader *l = om_loader_new(1, t, 2, NULL), *l2 = om_loader_new(1, other, 2, NULL);
        om_loader_next(l2, b);
        om_trace_output(tr, "z", om_add(x, b[0]));
        check_ok();
        om_loader_next(l, b);
        om_trace_output(tr, "y", om_add(x, b[0]));
        REFUSED(OM_TRACE_INVALID_USAGE, "x");
        om_loader_free(l);
        om_loader_free(l2);
    }
    {
        BEGIN(OM_DIMS(2, 4));
        om_module *m = om_nn_module();
        om_nn_buffer(m, "b", om_relu(x));
        om_nn_save(m, "truth_must_not_exist.om");
        check_trace_error(OM_TRACE_UNSUPPORTED_OPERATION, "om_nn_save", "traced tensor");
        om_trace_abort(tr);
        FILE *f = fopen("truth_must_not_exist.om", "rb");
        assert_null(f);
        om_nn_free(m);
    }
}

/* ---- D8: a counter behind an operator -----------------------------------------------------------
 */

static void D8_updated(void **state) {
    (void)state;
    om_tensor *n = om_zeros(OM_F32, OM_DIMS(4)), *one = om_ones(OM_F32, OM_DIMS(4));
    for (int view = 0; view < 2; view++) {
        BEGIN(OM_DIMS(2, 4));
        om_add_(n, one);
        om_tensor *m = view ? om_slice(n, 0, 0, 1, 1) : n;
        om_trace_output(tr, "y", om_add(x, om_sqrt(m)));
        REFUSED(OM_TRACE_IN_PLACE_MUTATION, "om_add_");
    }
    { // what the trace itself made may be written: it is a constant like any other
        BEGIN(OM_DIMS(2, 4));
        om_tensor *fresh = om_zeros(OM_F32, OM_DIMS(4));
        om_add_(fresh, one);
        om_trace_output(tr, "y", om_add(x, om_sqrt(fresh)));
        TRACES();
    }
    {
        BEGIN(OM_DIMS(2, 4));
        om_tensor *fresh = om_zeros(OM_F32, OM_DIMS(4));
        om_add_(n, one);
        om_copy_(fresh, n); // copied along
        om_trace_output(tr, "y", om_add(x, fresh));
        REFUSED(OM_TRACE_IN_PLACE_MUTATION, "om_add_");
    }
}

/* ---- D9: a refusal that was swallowed -----------------------------------------------------------
 */

static void D9_swallowed(void **state) {
    (void)state;
    om_error e;
    for (int k = 0; k < 3; k++) {
        BEGIN(OM_DIMS(2, 4));
        om_tensor *y = om_relu(x);
        if (k == 0) om_item_f32(om_sum_all(y));
        if (k == 1) om_fill_(y, 1);
        if (k == 2) om_no_grad_end(om_no_grad_begin());
        assert_int_equal(om_catch(&e), OM_ERR_TRACE);
        om_trace_output(tr, "y", y);
        REFUSED(OM_TRACE_INVALID_USAGE, k == 0   ? "om_item_f32"
                                        : k == 1 ? "om_fill_"
                                                 : "om_no_grad_begin");
    }
    { // a refused operator left no result: the trace goes on
        BEGIN(OM_DIMS(3, 3, 4, 4));
        om_tensor *y = om_dropout(x, 0.5f, true, NULL);
        assert_null(y);
        assert_int_equal(om_catch(&e), OM_ERR_TRACE);
        om_trace_output(tr, "y", om_relu(x));
        TRACES();
    }
}

/* ---- D10: a value of an earlier trace -----------------------------------------------------------
 */

static void D10_earlier(void **state) {
    (void)state;
    om_tensor *cache, *later;
    {
        BEGIN(OM_DIMS(2, 4));
        cache = om_mean_all(x);
        om_trace_output(tr, "y", om_add(x, cache));
        TRACES();
    }
    later = om_relu(cache); // computed after that trace: ordinary
    {
        BEGIN(OM_DIMS(2, 4));
        om_trace_output(tr, "y", om_add(x, cache));
        REFUSED(OM_TRACE_INVALID_USAGE, "earlier trace");
    }
    {
        BEGIN(OM_DIMS(2, 4));
        om_trace_output(tr, "y", om_add(x, later));
        TRACES();
    }
    { // and it may be the example of a new input
        om_tracer *tr = fresh_tracer();
        om_tensor *x  = om_trace_input(tr, "x", cache, 0, NULL);
        om_trace_output(tr, "y", om_relu(x));
        TRACES();
    }
}

/* ---- D11: names --------------------------------------------------------------------------------
 */

static void D11_names(void **state) {
    (void)state;
    static char long_name[70000];
    memset(long_name, 'n', sizeof long_name - 1);
    const char *bad[] = {"\xff", "a\nb", "a\x1b[0m", "\xc0\x80", "a\x7f", "\xc2\x85", long_name};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        const char *axes[1] = {bad[i]};
        om_trace_opts o     = {.struct_size = sizeof o, .name = bad[i]};
        assert_null(om_trace_begin(&o));
        check_error(OM_ERR_ARG, "name of the graph");
        BEGIN(OM_DIMS(2, 4));
        assert_null(om_trace_input(tr, bad[i], ex, 0, NULL));
        check_error(OM_ERR_ARG, "name of the input");
        assert_null(om_trace_input(tr, "z", ex, 1, axes));
        check_error(OM_ERR_ARG, "axis");
        om_tensor *w = om_ones(OM_F32, OM_DIMS(4));
        assert_int_equal(om_trace_parameter(tr, bad[i], w), OM_ERR_ARG);
        check_error(OM_ERR_ARG, "name of the parameter");
        om_tensor *y = om_add(x, w);
        assert_int_equal(om_trace_output(tr, bad[i], y), OM_ERR_ARG);
        check_error(OM_ERR_ARG, "name of the output");
        om_trace_output(tr, "\xc3\xa9 \xe2\x82\xac", y); // any other UTF-8 is fine
        om_trace_parameter(tr, "never", om_ones(OM_F32, OM_DIMS(3)));
        om_graph *g = om_trace_finish(tr);
        check_ok();
        assert_non_null(strstr(om_trace_report(g), "never"));
        void *d;
        size_t n;
        assert_int_equal(om_graph_save_memory(g, &d, &n), OM_OK);
        om_graph *back = om_graph_load_memory(d, n, NULL);
        assert_non_null(back);
        om_bytes_free(d, n);
        om_graph_release(back);
        om_graph_release(g);
    }
}

/* ---- D12: the NaN check ------------------------------------------------------------------------
 */

static void D12_nan_check(void **state) {
    (void)state;
    BEGIN(OM_DIMS(2, 4));
    bool was = om_nan_check(true);
    om_log(om_neg(om_add_scalar(x, 2)));
    om_nan_check(was);
    check_error(OM_ERR_VALUE, "om_log", "NaN");
    om_trace_abort(tr);
}

/* ---- D13: threads that end inside a trace -------------------------------------------------------
 */

static void *leave_inside(void *arg) {
    (void)arg;
    om_scope s    = om_scope_begin();
    om_tracer *tr = om_trace_begin(NULL);
    om_tensor *x  = om_trace_input(tr, "x", example(OM_DIMS(2, 4)), 0, NULL);
    om_relu(x);
    om_scope_end(s);
    return om_pending() ? (void *)1 : NULL;
}
static void D13_thread_exit(void **state) {
    (void)state;
    for (int i = 0; i < 200; i++) {
        pthread_t t;
        void *bad = NULL;
        assert_int_equal(pthread_create(&t, NULL, leave_inside, NULL), 0);
        pthread_join(t, &bad);
        assert_null(bad);
    }
}

/* ---- D15: messages -----------------------------------------------------------------------------
 */

static void D15_messages(void **state) {
    (void)state;
    {
        BEGIN(OM_DIMS(2, 4));
        om_trace_output(tr, "y", om_relu(x));
        TRACES();
        om_trace_output(tr, "z", x);
        check_trace_error(OM_TRACE_INVALID_USAGE, "finished or aborted");
        assert_null(om_trace_finish(tr));
        check_trace_error(OM_TRACE_INVALID_USAGE, "finished or aborted");
    }
    {
        om_tracer *tr = fresh_tracer();
        om_tensor *w  = om_ones(OM_F32, OM_DIMS(8, 4));
        om_trace_parameter(tr, "fc.w", w);
        om_tensor *x = om_trace_input(tr, "x", example(OM_DIMS(3, 4)), OM_AXES("B", "F"));
        om_linear(x, w, NULL);
        check_trace_error(OM_TRACE_SYMBOLIC_SHAPE, "fc.w", "F", "leave axis 1 of", "unnamed");
        om_trace_abort(tr);
    }
    {
        om_tracer *tr = fresh_tracer();
        om_trace_input(tr, "x", example(OM_DIMS(3, 4)), OM_AXES("B"));
        om_trace_axis_range(tr, "B", 5, 0, 1);
        check_trace_error(OM_TRACE_INVALID_USAGE, "'B'", "3", "from 5 upward");
        om_trace_axis_range(tr, "B", 2, 9, 2);
        check_trace_error(OM_TRACE_INVALID_USAGE, "'B'", "3", "from 2 to 9", "multiple of 2");
        om_trace_axis_range(tr, "B", 9, 2, 1);
        check_error(OM_ERR_ARG, "9", "2");
        om_trace_abort(tr);
    }
}

/* ---- D16: the first and the last ----------------------------------------------------------------
 */

static om_tensor *ends(om_tensor *x) {
    return om_add(om_select(x, 1, 0), om_select(x, 1, -1));
}
static om_tensor *loop_back(om_tensor *x) {
    om_tensor *y = om_select(x, 1, -1);
    for (int i = 2; i <= om_dim(x, 1); i++)
        y = om_add(y, om_select(x, 1, -i));
    return y;
}
static void D16_first_and_last(void **state) {
    (void)state;
    static const line lines[] = {
        {"of two", ends, 2, {3, 2}, {NULL, "T"}, EQUAL, NULL, {{3, 9}, {3, 1}}},
        {"of five", ends, 2, {3, 5}, {NULL, "T"}, EQUAL, NULL, {{3, 9}, {3, 1}}},
        {"a loop from the end",
         loop_back,
         2,
         {3, 4},
         {NULL, "T"},
         OM_TRACE_SYMBOLIC_SHAPE,
         "unrolled",
         {{0}}},
    };
    CHECK_LINES(lines);
}

/* ---- D17: what one trace cannot see leaves a note where it can
 * ----------------------------------- */

static om_tensor *pad_2(om_tensor *x) {
    return om_pad(x, 2, (int64_t[]){0, 0}, (int64_t[]){0, 2}, 0);
}
static om_tensor *pad_nothing(om_tensor *x) {
    return om_pad(x, 2, (int64_t[]){1, 0}, (int64_t[]){0, 0}, 0);
}
static om_tensor *concat_2(om_tensor *x) {
    return om_concat(2, (om_tensor *[]){x, om_zeros(OM_F32, OM_DIMS(3, 2))}, 1);
}
static void D17_notes(void **state) {
    (void)state;
    static const line lines[] = {
        {"pad", pad_2, 2, {3, 7}, {NULL, "T"}, EQUAL, "padded by the fixed 2", {{3, 9}, {3, 1}}},
        {"pad of a fixed axis", pad_nothing, 2, {3, 7}, {NULL, "T"}, EQUAL, "", {{3, 9}, {3, 1}}},
        {"concat", concat_2, 2, {3, 7}, {NULL, "T"}, EQUAL, "fixed 2", {{3, 9}, {3, 1}}},
    };
    CHECK_LINES(lines);
    om_graph *g = trace_one(pad_nothing, OM_DIMS(3, 7), OM_AXES(NULL, "T"));
    assert_null(strstr(om_trace_report(g), "notes:"));
    om_graph_release(g);
}

/* ---- r67: windows whose sizes end up in a Reshape
 * ------------------------------------------------ */

static om_tensor *kernel(void) {
    return filled(5, OM_DIMS(2, 1, 3, 3));
}
static om_tensor *joined(om_tensor *y) {
    return om_reshape(y, OM_DIMS(om_dim(y, 0), om_dim(y, 1), om_dim(y, 2) * om_dim(y, 3)));
}
static om_tensor *dilated(om_tensor *x) {
    return joined(
        om_conv2d(x, kernel(), NULL, OM_OPTS(conv2d, .stride = {1, 1}, .dilation = {2, 2})));
}
static om_tensor *dilated_2(om_tensor *x) {
    return joined(
        om_conv2d(x, kernel(), NULL, OM_OPTS(conv2d, .stride = {2, 2}, .dilation = {2, 2})));
}
static om_tensor *ceiled(om_tensor *x) {
    return joined(om_max_pool2d(
        x, 3, 3, OM_OPTS(pool2d, .stride = {2, 2}, .padding = {1, 1}, .ceil_mode = true)));
}
static void r67_windows(void **state) {
    (void)state;
    static const model_fn f[] = {dilated, dilated_2, ceiled};
    for (size_t i = 0; i < 3; i++) {
        line l = {"r67", f[i], 4, {1, 1, 13, 17}, {NULL, NULL, "H", "W"}, EQUAL, NULL, {{0}}};
        check_line(&l);
        om_graph *g = trace_one(f[i], l.rank, l.dims, l.rank, l.axes);
        for (int k = 14; k < 20; k++)
            run_at(&l, g, (int64_t[]){1, 1, k, k + 3});
        om_graph_release(g);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        OM_TEST(D1_slices),          OM_TEST(D2_reshapes),  OM_TEST(D3_indices),
        OM_TEST(D4_squeeze),         OM_TEST(D5_example),   OM_TEST(D6_random),
        OM_TEST(D7_behind_the_seam), OM_TEST(D8_updated),   OM_TEST(D9_swallowed),
        OM_TEST(D10_earlier),        OM_TEST(D11_names),    OM_TEST(D12_nan_check),
        OM_TEST(D13_thread_exit),    OM_TEST(D15_messages), OM_TEST(D16_first_and_last),
        OM_TEST(D17_notes),          OM_TEST(r67_windows),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
