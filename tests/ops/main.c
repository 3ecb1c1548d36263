/*
 * main.c -- runs the samples of every family: `test_ops unit [op]`, `test_ops exact [op]`,
 * `test_ops axes [op]`, `test_ops subsets [op]`; `test_ops dump` writes them for
 * tools/torch_ops_check.py.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "sample.h"

#define FAMILY(x) extern const sample_op sample_##x[];
#include "families.def"
#undef FAMILY

static const sample_op *const families[] = {
#define FAMILY(x) sample_##x,
#include "families.def"
#undef FAMILY
};

static void test_unit(void **state) {
    sample_check_unit(*state);
}
static void test_exact(void **state) {
    sample_check_exact(*state);
}

static void test_axes(void **state) {
    sample_check_axes(*state);
}
static void test_axes_census(void **state) {
    (void)state;
    sample_axes_census();
}

static void test_subsets(void **state) {
    sample_check_subsets(*state);
}
static void test_subsets_census(void **state) {
    (void)state;
    sample_subsets_census();
}

/* Every row of ops.def has a sample that works and one that must fail. */
static void test_census(void **state) {
    (void)state;
    int works[OM_OP_COUNT] = {0}, fails[OM_OP_COUNT] = {0}, missing = 0;
    for (size_t f = 0; f < OM_COUNT(families); f++)
        for (const sample_op *op = families[f]; op->name; op++)
            for (int i = 0; i < op->n_samples && !op->composite; i++)
                (op->samples[i].fails == OM_OK ? works : fails)[op->id]++;
    for (om_op id = 0; id < OM_OP_COUNT; id++) {
        if (works[id] && fails[id]) continue;
        print_error("om_%s has %d samples that work and %d that fail; both are needed\n",
                    omi_op_name(id), works[id], fails[id]);
        missing++;
    }
    assert_int_equal(missing, 0);
}

int main(int argc, char **argv) {
    sample_alloc_install();
    bool exact   = argc > 1 && strcmp(argv[1], "exact") == 0;
    bool axes    = argc > 1 && strcmp(argv[1], "axes") == 0;
    bool subsets = argc > 1 && strcmp(argv[1], "subsets") == 0;
    bool dump    = argc > 1 && strcmp(argv[1], "dump") == 0;
    struct CMUnitTest tests[256];
    size_t n = 0;
    if (argc <= 2 && !exact && !axes && !subsets)
        tests[n++] = (struct CMUnitTest)cmocka_unit_test(test_census);
    for (size_t f = 0; f < OM_COUNT(families); f++)
        for (const sample_op *op = families[f]; op->name && n < OM_COUNT(tests); op++) {
            if (argc > 2 && strcmp(argv[2], op->name) != 0) continue;
            if (dump && !sample_dump(op)) return 1;
            union { // cmocka wants a plain pointer; the table stays constant
                const void *c;
                void *p;
            } state    = {.c = op};
            tests[n++] = (struct CMUnitTest){.name          = op->name,
                                             .test_func     = exact     ? test_exact
                                                              : axes    ? test_axes
                                                              : subsets ? test_subsets
                                                                        : test_unit,
                                             .initial_state = state.p};
        }
    if (dump) return 0;
    if (subsets && argc == 2) tests[n++] = (struct CMUnitTest)cmocka_unit_test(test_subsets_census);
    if (axes && argc == 2) tests[n++] = (struct CMUnitTest)cmocka_unit_test(test_axes_census);
    return _cmocka_run_group_tests(exact ? "ops, bits" : "ops", tests, n, NULL, NULL);
}
