/*
 * test_locale.c -- a host with a decimal comma reads the same text from the library (B6).
 *
 * The locale is one that is installed, else one that localedef makes in a folder of its own; where
 * neither works the cases are skipped by name.
 */
#include "graph/sample.h"

#include <locale.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/str.h"
#include "onemodel/tensor.h"

static bool have_comma; /* as it was before the library ran */
static char folder[] = "/tmp/onemodel_locale_XXXXXX";

static bool comma(const char *name) {
    char text[16];
    if (!setlocale(LC_ALL, name)) return false;
    snprintf(text, sizeof text, "%.1f", 0.5);
    return have_comma = strcmp(text, "0,5") == 0;
}

static int make_locale(void **state) {
    (void)state;
    char command[256];
    if (comma("de_DE.UTF-8") || comma("fr_FR.UTF-8") || !mkdtemp(folder)) return 0;
    snprintf(command, sizeof command,
             "localedef -c -i de_DE -f UTF-8 %s/de_DE.UTF-8 >/dev/null 2>&1", folder);
    if (system(command) == -1) return 0;
    setenv("LOCPATH", folder, 1);
    if (!comma("de_DE.UTF-8")) setlocale(LC_ALL, "C");
    return 0;
}

static int drop_locale(void **state) {
    (void)state;
    char command[128];
    snprintf(command, sizeof command, "rm -rf %s", folder);
    return system(command) == -1;
}

static void need_comma(void) {
    if (have_comma) return;
    print_message("skipped: no locale with a decimal comma and no localedef\n");
    skip();
}

/* Every attribute type and weights, under C and under the host's locale. */
static void a_dump_is_the_same_under_a_decimal_comma(void **state) {
    (void)state;
    need_comma();
    om_graph *g    = sample_all();
    size_t n_comma = 0, n_c = 0;
    char *own = dump_string(g, &n_comma);
    char host[64];
    snprintf(host, sizeof host, "%s", setlocale(LC_ALL, NULL));
    setlocale(LC_ALL, "C");
    char *plain = dump_string(g, &n_c);
    setlocale(LC_ALL, host);
    assert_non_null(strchr(plain, '.'));
    assert_string_equal(own, plain);
    om_bytes_free(own, n_comma);
    om_bytes_free(plain, n_c);
    om_graph_release(g);
}

static void messages_have_a_decimal_point(void **state) {
    (void)state;
    need_comma();
    omi_fail(OM_ERR_ARG, "lr is %g", -0.5);
    assert_string_equal(expect_error(OM_ERR_ARG), "lr is -0.5");
    om_scope scope = om_scope_begin();
    assert_null(om_rand(NULL, 1.5f, 0.25f, 1, (int64_t[]){2}));
    assert_non_null(strstr(expect_error(OM_ERR_ARG), "from 1.5 to 0.25"));
    char *text = om_text_of(om_full(0.125, OM_F32, 1, (int64_t[]){1}));
    assert_non_null(strstr(text, "0.125"));
    om_bytes_free(text, strlen(text) + 1);
    om_scope_end(scope);
    om_str s = {0};
    omi_str_printf(&s, "%.3f and %.300f", 0.5, 0.5); // in the small buffer, and beyond it
    assert_null(strchr(s.v, ','));
    omi_str_free(&s);
}

/* The library looks away from the host's locale; it does not change it. */
static void the_hosts_locale_stays(void **state) {
    (void)state;
    need_comma();
    omi_fail(OM_ERR_ARG, "lr is %g", -0.5);
    expect_error(OM_ERR_ARG);
    char text[16];
    snprintf(text, sizeof text, "%.1f", 0.5);
    assert_string_equal(text, "0,5");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_dump_is_the_same_under_a_decimal_comma),
        cmocka_unit_test(messages_have_a_decimal_point),
        cmocka_unit_test(the_hosts_locale_stays),
    };
    return cmocka_run_group_tests(tests, make_locale, drop_locale);
}
