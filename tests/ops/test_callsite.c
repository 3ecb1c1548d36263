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
                                       OM_TEST(functions_keep_their_addresses)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
