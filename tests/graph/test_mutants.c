/*
 * test_mutants.c -- every prefix and every flipped bit of small files of both formats loads or is
 * refused: no crash, no leak, nothing pending, and what loads can be saved again.
 *
 * In an .om file nearly every flip meets a checksum. So flips are done once more with all checksums
 * made right again, which is what an attacker would do; then the reader's own checks stand alone.
 */
#include "graph/sample.h"

#include <stdlib.h>
#include <string.h>

#include "graph/repair.h"

typedef struct tally {
    int loaded, refused;
} tally;

/* Loads n bytes; a graph that loads must survive dump and both writers. */
static void try_load(const uint8_t *p, size_t n, tally *t) {
    om_load_opts opts = {.struct_size = sizeof opts, .borrow = true};
    om_graph *g       = om_graph_load_memory(p, n, &opts);
    if (!g) {
        om_status s = om_catch(NULL);
        if (s != OM_ERR_MALFORMED && s != OM_ERR_UNSUPPORTED && s != OM_ERR_LIMIT)
            fail_msg("status %s", om_status_name(s));
        t->refused++;
        return;
    }
    void *data;
    size_t m;
    char *dump = dump_string(g, &m);
    om_bytes_free(dump, m);
    if (om_graph_save_memory(g, &data, &m) == OM_OK) om_bytes_free(data, m);
    om_catch(NULL); // an attribute that cannot be saved
    if (om_graph_save_onnx_memory(g, NULL, &data, &m) == OM_OK) om_bytes_free(data, m);
    om_catch(NULL);
    om_graph_release(g);
    t->loaded++;
}

static void mutate(const uint8_t *file, size_t n, bool om, tally *t) {
    int64_t before = live_blocks();
    uint8_t *copy  = malloc(n);
    assert_non_null(copy);
    for (size_t k = 0; k < n; k++) {
        uint8_t *prefix = malloc(k ? k : 1); // its own block, so that reading on is seen
        memcpy(prefix, file, k);
        try_load(prefix, k, t);
        if (om && k >= 64) {
            omi_store_u64(prefix + 16, k);
            repair(prefix, k);
            try_load(prefix, k, t);
        }
        free(prefix);
    }
    for (size_t k = 0; k < n; k++)
        for (int bit = 0; bit < 8; bit++) {
            memcpy(copy, file, n);
            copy[k] ^= (uint8_t)(1 << bit);
            try_load(copy, n, t);
            if (!om) continue;
            repair(copy, n);
            try_load(copy, n, t);
        }
    free(copy);
    assert_int_equal(om_pending(), OM_OK);
    assert_int_equal(live_blocks(), before);
}

static void mutants_of(om_graph *(*make)(void), bool om, int loaded, int refused) {
    om_graph *g = make();
    void *data  = NULL;
    size_t n    = 0;
    tally t     = {0, 0};
    if (om)
        assert_int_equal(om_graph_save_memory(g, &data, &n), OM_OK);
    else
        assert_int_equal(om_graph_save_onnx_memory(g, NULL, &data, &n), OM_OK);
    om_graph_release(g);
    mutate(data, n, om, &t);
    om_bytes_free(data, n);
    print_message("%d loaded, %d refused\n", t.loaded, t.refused);
    // The test is only worth something when both happen.
    assert_true(t.loaded >= loaded && t.refused >= refused);
}

static void onnx_small(void **state) {
    (void)state;
    mutants_of(sample_small, false, 100, 500);
}
static void onnx_all(void **state) {
    (void)state;
    mutants_of(sample_all, false, 500, 2000);
}
static void om_small(void **state) {
    (void)state;
    mutants_of(sample_small, true, 500, 10000);
}
static void om_all(void **state) {
    (void)state;
    mutants_of(sample_all, true, 500, 10000);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(onnx_small),
        cmocka_unit_test(onnx_all),
        cmocka_unit_test(om_small),
        cmocka_unit_test(om_all),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
