/*
 * test_names.c -- a file cannot choose names that all meet in one place of a table.
 *
 * The hash of names is keyed by a number that each process draws. With the number known, 40,000
 * names are found that crowd one part of a table of 65,536 places; under any other number the same
 * model loads as quickly as one of ordinary names.
 */
#include "graph/sample.h"
#include "graph/wire_build.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/map.h"
#include "onemodel/graph.h"
#include "onnx/wire.h"

enum { COUNT = 40000, NAME = 12 };
static char (*names)[NAME];

/* A model of Identity nodes, each reading the one before. */
static pb chain(void) {
    pb nodes = {0};
    for (int i = 0; i < COUNT; i++) {
        pb node = {0};
        pb_str(&node, 1, i ? names[i - 1] : "x");
        pb_str(&node, 2, i == COUNT - 1 ? "y" : names[i]);
        pb_str(&node, 4, "Identity");
        pb_msg(&nodes, 1, &node);
    }
    pb graph = pb_graph_of(&nodes);
    return pb_model_of(&graph);
}

static double seconds_to_load(const pb *m, uint64_t seed) {
    omi_map_seed(seed);
    struct timespec a, b;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &a);
    om_graph *g = om_graph_load_memory(m->v, m->n, NULL);
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &b);
    assert_int_equal(om_catch(NULL), OM_OK);
    assert_non_null(g);
    om_graph_release(g);
    return (double)(b.tv_sec - a.tv_sec) + 1e-9 * (double)(b.tv_nsec - a.tv_nsec);
}

static void colliding_names_are_as_quick_under_another_seed(void **state) {
    (void)state;
    const uint64_t known = 0x5eed;
    names                = calloc(COUNT, sizeof *names);
    for (int i = 0; i < COUNT; i++)
        snprintf(names[i], NAME, "n%d", i);
    pb m            = chain();
    double ordinary = seconds_to_load(&m, 0);
    pb_clear(&m);
    omi_map_seed(known);
    for (uint32_t i = 0, n = 0; n < COUNT; i++) {
        int len = snprintf(names[n], NAME, "%x", (unsigned)i);
        n += (omi_hash_name(names[n], (size_t)len) & 0xffff) < 30000;
    }
    m            = chain();
    double crowd = seconds_to_load(&m, known), other = seconds_to_load(&m, 0);
    pb_clear(&m);
    free(names);
    if (crowd < 4 * other) fail_msg("crowded %g s, spread %g s", crowd, other);
    if (other > 4 * ordinary + 0.1) fail_msg("ordinary %g s, spread %g s", ordinary, other);
}

static void each_process_draws_its_seed(void **state) {
    (void)state;
    omi_map_seed(0);
    uint64_t a = omi_hash_name("name", 4);
    assert_true(omi_hash_name("name", 4) == a);
    omi_map_seed(0);
    assert_true(omi_hash_name("name", 4) != a);
}

/* A length is held against its own message, not against the bytes that happen to follow. */
static void a_length_one_past_its_end_is_refused(void **state) {
    (void)state;
    const uint8_t bytes[] = {0x0a, 3, 'a', 'b', 'c', 'd', 'e', 'f', 'g', 'h', 'i'};
    om_field f;
    om_wire w = {.p = bytes, .end = bytes + 5};
    assert_true(omi_wire_next(&w, &f) && f.n == 3 && w.p == w.end);
    w = (om_wire){.p = bytes, .end = bytes + 4};
    assert_false(omi_wire_next(&w, &f));
    assert_string_equal(w.why, "a length reaches past the end of its message");
    const uint8_t fixed[] = {0x09, 1, 2, 3, 4, 5, 6, 7, 8, 0x0d, 1, 2, 3, 4};
    w                     = (om_wire){.p = fixed, .end = fixed + 14};
    assert_true(omi_wire_next(&w, &f) && f.v == 0x0807060504030201u);
    assert_true(omi_wire_next(&w, &f) && f.v == 0x04030201u);
    w = (om_wire){.p = fixed, .end = fixed + 8};
    assert_false(omi_wire_next(&w, &f));
    w = (om_wire){.p = fixed + 9, .end = fixed + 13};
    assert_false(omi_wire_next(&w, &f));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(colliding_names_are_as_quick_under_another_seed),
        cmocka_unit_test(each_process_draws_its_seed),
        cmocka_unit_test(a_length_one_past_its_end_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
