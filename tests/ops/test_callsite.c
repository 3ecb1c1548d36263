/*
 * test_callsite.c -- <onemodel/callsite.h>: the line of a call is in its error, also in nested
 * expressions, and never in the error of a later call. A tested call stays on one line: compilers
 * number the lines of a longer one differently.
 */
#include "harness.h"

#include <stdio.h>

#include <onemodel.h>
#include <onemodel/callsite.h>

#define om_relu_plain (om_relu) /* a call past the macro */

static void assert_site(int line) {
    om_error e;
    char want[64];
    om_catch(&e);
    assert_int_not_equal(e.status, OM_OK);
    snprintf(want, sizeof want, "test_callsite.c:%d", line);
    if (line ? !strstr(e.site, want) : strstr(e.site, ".c:") != NULL)
        fail_msg("%s: site is '%s', not '%s'", e.where, e.site, line ? want : "an address");
}

// clang-format off
static void lines(void **state) {
    (void)state;
    om_tensor *x = om_zeros(OM_F32, OM_DIMS(2, 3)), *y;
    om_relu(NULL); int line = __LINE__;
    assert_site(line);
    om_reshape(x, OM_DIMS(4, -1)); line = __LINE__;
    assert_site(line);
    y = om_add(x,
               om_relu(x)); /* two lines: either */
    assert_non_null(y);
    // The outer call fails, after the inner ones came and went with their own lines.
    om_tensor *z = om_exp(om_neg(x));
    om_matmul(om_relu(x), om_exp(om_neg(z))); line = __LINE__;
    assert_site(line);
    // Commands and readers.
    (void)om_item_f32(x); line = __LINE__;
    assert_site(line);
    om_fill_(NULL, 1); line = __LINE__;
    assert_site(line);
    // Sizes read inside the arguments do not take the line.
    om_reshape(x, OM_DIMS(om_dim(x, 0), om_dim(x, 1), 2)); line = __LINE__;
    assert_site(line);
}

static void a_line_ends_with_its_call(void **state) {
    (void)state;
    om_tensor *x = om_ones(OM_F32, OM_DIMS(2));
    om_relu(x);
    om_relu_plain(NULL); // no line was noted for this one
    assert_site(0);
    // A breadcrumb is for every call without a line of its own.
    OM_HERE; int line = __LINE__;
    om_relu_plain(NULL);
    assert_site(line);
    om_relu_plain(om_relu_plain(NULL));
    assert_site(line);
    om_relu(NULL); int own = __LINE__;
    assert_site(own);
    om_relu_plain(NULL);
    assert_site(line);
    om_here(NULL, 0);
    // Deeper than lines are kept: the innermost have theirs, nothing else is disturbed.
    om_tensor *y = x;
    for (int i = 0; i < 100; i++)
        y = om_neg(y);
    y = om_neg(om_neg(om_neg(om_neg(om_neg(om_neg(om_neg(om_neg(om_neg(om_neg(om_neg(om_neg(y))))))))))));
    y = om_neg(om_neg(om_neg(om_neg(om_neg(om_neg(om_neg(om_neg(om_neg(om_neg(om_neg(om_neg(y))))))))))));
    for (int i = 0; i < 40; i++)
        om_here_call("test_callsite.c", 7);
    om_relu_plain(NULL);
    assert_site(7);
    for (int i = 0; i < 31; i++)
        om_relu_plain(x);
    om_relu_plain(NULL);
    assert_site(0);
    assert_non_null(y);
}

static om_tensor *own_lines(void *ctx, om_module *m, om_tensor *x) {
    (void)m;
    *(int *)ctx = __LINE__ + 1;
    return om_matmul(om_neg(x), om_relu(x));
}

static om_tensor *elsewhere(om_module *m, om_tensor *x, int *line) {
    *line = __LINE__ + 1;
    return om_forward(m, x);
}

/* A layer's operators are named by the line of om_forward; a function of the user's by its own. */
static void layers_take_the_line_of_om_forward(void **state) {
    (void)state;
    int inside        = 0, line;
    om_module *linear = om_nn_linear(4, 2, NULL), *own = om_nn_custom(own_lines, &inside, NULL);
    om_module *both   = om_nn_sequential();
    om_nn_add(both, "0", om_nn_relu());
    om_nn_add(both, "1", om_nn_linear(4, 2, NULL));
    om_tensor *bad = om_ones(OM_F32, OM_DIMS(2, 3)), *good = om_ones(OM_F32, OM_DIMS(2, 4)), *y;
    om_forward(linear, bad); line = __LINE__;
    assert_site(line);
    om_forward(both, bad); line = __LINE__;
    assert_site(line);
    om_forward(linear, NULL); line = __LINE__;
    assert_site(line);
    // Inside an expression the outer call keeps its line, before and behind the layer.
    om_exp(om_forward(both, om_relu(bad))); line = __LINE__;
    assert_site(line);
    om_exp(elsewhere(linear, bad, &line)); // the line of om_exp waits; it is not the layer's
    assert_site(line);
    om_reshape(om_forward(linear, good), OM_DIMS(3)); line = __LINE__;
    assert_site(line);
    y = om_forward(linear, good);
    om_relu_plain(NULL); // the layer's line is gone with it
    assert_site(0);
    OM_HERE; int crumb = __LINE__;
    om_forward(linear, bad); line = __LINE__;
    assert_site(line);
    om_relu_plain(NULL);
    assert_site(crumb);
    om_here(NULL, 0);
    om_forward(own, bad);
    assert_site(inside);
    assert_non_null(y);
    om_nn_free(own);
    om_nn_free(both);
    om_nn_free(linear);
}

/* Leaving a module's function by a jump is forbidden; the next call is sound nevertheless. */
static jmp_buf out_of_here;
static om_tensor *jumps(void *ctx, om_module *m, om_tensor *x) {
    (void)ctx, (void)m;
    if (x) longjmp(out_of_here, 1);
    return x;
}
static void a_module_left_by_a_jump_is_not_named(void **state) {
    (void)state;
    om_module *root = om_nn_module();
    om_nn_add(root, "jumper", om_nn_custom(jumps, NULL, NULL));
    om_tensor *x = om_ones(OM_F32, OM_DIMS(2));
    for (volatile int i = 0; i < 100; i++) // more than modules may nest
        if (setjmp(out_of_here) == 0) (void)om_forward(om_nn_child(root, "jumper"), x);
    om_relu(NULL); int line = __LINE__;
    om_error e;
    om_catch(&e);
    assert_string_equal(e.where, "om_relu");
    char want[64];
    snprintf(want, sizeof want, "test_callsite.c:%d", line);
    assert_non_null(strstr(e.site, want));
    om_nn_free(root);
    om_scope_drain();
}
// clang-format on

static om_tensor *inner_calls(void *ctx, om_tensor *x) {
    (void)ctx;
    return om_relu(om_neg(x));
}

static void functions_keep_their_addresses(void **state) {
    (void)state;
    om_tensor *(*f)(om_tensor *) = om_relu; // a name without parentheses is the function
    om_tensor *x                 = om_ones(OM_F32, OM_DIMS(2));
    assert_non_null(f(x));
    assert_non_null(inner_calls(NULL, x));
    om_scope s = om_scope_begin();
    assert_int_equal(om_scope_end(s), OM_OK);
    check_ok();
}

int main(void) {
    const struct CMUnitTest tests[] = {OM_TEST(lines), OM_TEST(a_line_ends_with_its_call),
                                       OM_TEST(layers_take_the_line_of_om_forward),
                                       OM_TEST(a_module_left_by_a_jump_is_not_named),
                                       OM_TEST(functions_keep_their_addresses)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
