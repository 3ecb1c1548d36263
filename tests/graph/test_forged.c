/*
 * test_forged.c -- .om files with one lie and right checksums, and graphs that lie in the same way.
 *
 * Each case changes one number of a good file to another that is possible in itself: a list that
 * shares with the one before, a string one byte short, bytes that no section owns, an input named
 * twice. Flips of every bit stand in test_mutants.c; here the message says which check refused.
 */
#include "graph/sample.h"
#include "graph/wire_build.h"

#include <stdlib.h>
#include <string.h>

#include "format/model.h"
#include "graph/repair.h"

typedef struct forged {
    uint8_t *p;
    size_t n;
} forged;

static forged forge(om_graph *(*make)(void), size_t more) {
    om_graph *g = make();
    void *data;
    size_t n;
    assert_int_equal(om_graph_save_memory(g, &data, &n), OM_OK);
    om_graph_release(g);
    forged f = {calloc(1, n + more), n};
    assert_non_null(f.p);
    memcpy(f.p, data, n);
    om_bytes_free(data, n);
    return f;
}

/* With its checksums made right f must be refused with this text; f is emptied. */
static void is_refused(forged *f, const char *text) {
    int64_t before = live_blocks();
    repair(f->p, f->n);
    assert_null(om_graph_load_memory(f->p, f->n, NULL));
    const char *message = expect_error(OM_ERR_MALFORMED);
    if (!strstr(message, text)) fail_msg("'%s' is not in: %s", text, message);
    assert_int_equal(live_blocks(), before);
    free(f->p);
}

/* Rows of a section whose u32 at `first` is not 0: each, set to one less, shares an item with the
 * list before it; set to one more, it leaves a hole. */
static int lists_of(const char *tag, size_t row_size, size_t first) {
    forged f   = forge(sample_all, 0);
    size_t at  = section_at(f.p, tag, NULL);
    uint32_t n = omi_load_u32(f.p + at);
    int seen   = 0;
    free(f.p);
    for (uint32_t k = 0; k < n; k++)
        for (int by = -1; by <= 1; by += 2) {
            f            = forge(sample_all, 0);
            uint8_t *p   = f.p + at + 8 + row_size * k + first;
            uint32_t was = omi_load_u32(p);
            if (was == 0 || (memcmp(tag, "ATTR", 4) == 0 && omi_load_u32(p - 8) < OM_ATTR_FLOATS)) {
                free(f.p);
                continue;
            }
            omi_store_u32(p, was + (uint32_t)by);
            is_refused(&f, "a list does not begin where the one before ended");
            seen++;
        }
    return seen;
}

static void a_list_begins_where_the_last_ended(void **state) {
    (void)state;
    assert_true(lists_of("VALS", OM_VALS_ROW, 16) > 0);
    assert_true(lists_of("INIT", OM_INIT_ROW, 12) > 0);
    assert_true(lists_of("NODE", OM_NODE_ROW, 36) > 0);
    assert_true(lists_of("GRPH", OM_GRPH_ROW, 44) > 0);
}

/* The first value's name is one byte short: its NUL is not where it should be. */
static void a_string_ends_in_a_nul(void **state) {
    (void)state;
    forged f     = forge(sample_all, 0);
    uint8_t *row = f.p + section_at(f.p, "VALS", NULL) + 8;
    while (omi_load_u32(row + 4) < 2) // a name that still is one when it is shorter
        row += OM_VALS_ROW;
    omi_store_u32(row + 4, omi_load_u32(row + 4) - 1);
    is_refused(&f, "does not end");

    f            = forge(sample_all, 0); // and the last byte of all strings is one that ends
    size_t bytes = 0, at = section_at(f.p, "STRS", &bytes);
    f.p[at + bytes - 1] = 'x';
    is_refused(&f, "does not end");
}

static void nothing_stands_behind_the_last_section(void **state) {
    (void)state;
    for (size_t more = 1; more <= 64; more += 63) {
        forged f = forge(sample_small, more);
        f.n += more;
        omi_store_u64(f.p + 16, f.n);
        is_refused(&f, "bytes behind the last section");
    }
}

/* Two inputs of one name: in .om the same value twice, in ONNX two entries. */
static void an_input_is_named_once(void **state) {
    (void)state;
    static const char relu[] = "\n\1x\22\1y\"\4Relu";
    forged f                 = forge(sample_all, 0);
    uint8_t *row             = f.p + section_at(f.p, "GRPH", NULL) + 8;
    uint32_t rows            = omi_load_u32(row - 8);
    assert_true(omi_load_u32(row + 24) >= 2); // the root has two inputs
    uint8_t *ends = row + (size_t)rows * OM_GRPH_ROW;
    omi_store_u32(ends + OM_GRPH_END, omi_load_u32(ends));
    is_refused(&f, "is an input and something else too");

    pb graph = {0}, node = {0}, x = pb_value("x"), twin = pb_value("x"), y = pb_value("y");
    pb_raw(&node, relu, sizeof relu - 1);
    pb_msg(&graph, 1, &node);
    pb_str(&graph, 2, "g");
    pb_msg(&graph, 11, &x);
    pb_msg(&graph, 11, &twin);
    pb_msg(&graph, 12, &y);
    pb model = pb_model_of(&graph);
    assert_null(om_graph_load_memory(model.v, model.n, NULL));
    assert_non_null(strstr(expect_error(OM_ERR_MALFORMED), "'x'"));
    pb_clear(&model);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_list_begins_where_the_last_ended),
        cmocka_unit_test(a_string_ends_in_a_nul),
        cmocka_unit_test(nothing_stands_behind_the_last_section),
        cmocka_unit_test(an_input_is_named_once),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
