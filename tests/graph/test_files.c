/*
 * test_files.c -- both formats there and back: equal bytes, equal graphs; options of loading;
 * files.
 */
#include "graph/sample.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/bytes.h"
#include "base/hash.h"
#include "format/container.h"

typedef struct bytes {
    void *p;
    size_t n;
} bytes;

static bytes as_onnx(const om_graph *g) {
    bytes b = {0};
    assert_non_null(g);
    assert_int_equal(om_graph_save_onnx_memory(g, NULL, &b.p, &b.n), OM_OK);
    return b;
}

static bytes as_om(const om_graph *g) {
    bytes b = {0};
    assert_non_null(g);
    assert_int_equal(om_graph_save_memory(g, &b.p, &b.n), OM_OK);
    return b;
}

static om_graph *load(bytes b) {
    om_graph *g = om_graph_load_memory(b.p, b.n, NULL);
    if (!g) {
        om_error e;
        om_catch(&e);
        fail_msg("%s: %s", e.where, e.message);
    }
    return g;
}

static void same_and_free(bytes a, bytes b) {
    assert_int_equal(a.n, b.n);
    assert_memory_equal(a.p, b.p, a.n);
    om_bytes_free(a.p, a.n);
    om_bytes_free(b.p, b.n);
}

static void same_dump(const om_graph *a, const om_graph *b) {
    size_t n, m;
    char *s = dump_string(a, &n), *t = dump_string(b, &m);
    assert_string_equal(s, t);
    om_bytes_free(s, n);
    om_bytes_free(t, m);
}

static void round_trip(om_graph *(*make)(void), bool ranges) {
    int64_t before = live_blocks();
    om_graph *g = make(), *again = make();
    same_and_free(as_onnx(g), as_onnx(again));
    same_and_free(as_om(g), as_om(again));
    om_graph_release(again);

    bytes onnx = as_onnx(g), om = as_om(g);
    om_graph *from_onnx = load(onnx), *from_om = load(om);
    same_dump(g, from_om);
    if (!ranges) same_dump(g, from_onnx);
    bytes om2      = as_om(from_onnx); // ONNX -> om -> ONNX
    om_graph *back = load(om2);
    same_and_free(as_onnx(back), as_onnx(from_om));
    same_and_free(onnx, as_onnx(from_onnx));
    same_and_free(om2, as_om(back));
    same_and_free(om, as_om(from_om));
    om_graph_release(back);
    om_graph_release(from_onnx);
    om_graph_release(from_om);
    om_graph_release(g);
    assert_int_equal(live_blocks(), before);
}

static void small_round_trip(void **state) {
    (void)state;
    round_trip(sample_small, false);
}

static void all_round_trip(void **state) {
    (void)state;
    round_trip(sample_all, true);
}

static void everything_survives(void **state) {
    (void)state;
    om_graph *g = sample_all();
    bytes b     = as_om(g);
    om_graph_release(g);
    g                 = load(b);
    const om_gnode *n = &g->nodes[1];
    assert_int_equal(omi_attr_int(n, "int", 0), -7);
    assert_true(omi_attr_float(n, "float", 0) == 0.1f);
    const om_attr *a = omi_attr(n, "bytes");
    assert_int_equal(a->s.n, 3);
    assert_memory_equal(a->s.v, "a\0\xff", 4);
    a = omi_attr(n, "ints");
    assert_int_equal(a->n, 5);
    assert_true(a->ints[2] == INT64_MIN && a->ints[3] == INT64_MAX);
    a = omi_attr(n, "floats");
    assert_true(a->floats[1] == 0 && 1 / a->floats[1] < 0 && a->floats[2] == 1e-40f);
    a = omi_attr(n, "strings");
    assert_string_equal(a->strings[0].v, "one");
    a = omi_attr(n, "tensors");
    assert_int_equal(a->tensors[0].bytes, 4);
    assert_int_equal(a->tensors[1].dims[0], 0);
    const om_graph *then = omi_attr(&g->nodes[2], "then_branch")->graphs[0];
    assert_string_equal(then->name, "then");
    assert_true(then->values[omi_graph_find(then, "t", 1)].captured);
    om_value_info v;
    assert_int_equal(om_graph_input(g, 0, &v), OM_OK);
    assert_int_equal(v.axes[0].hi, 64);
    om_graph_release(g);
    om_bytes_free(b.p, b.n);
}

/* ---- options -----------------------------------------------------------------------------------
 */

static void borrow_points_into_the_bytes(void **state) {
    (void)state;
    om_graph *g   = sample_small();
    bytes files[] = {as_onnx(g), as_om(g)};
    om_graph_release(g);
    for (int i = 0; i < 2; i++) {
        const char *p     = files[i].p;
        om_load_opts opts = {.struct_size = sizeof opts, .borrow = true};
        om_init_info t;
        g = om_graph_load_memory(p, files[i].n, &opts);
        assert_int_equal(om_graph_initializer(g, 0, &t), OM_OK);
        assert_true((const char *)t.data > p && (const char *)t.data < p + files[i].n);
        assert_false(omi_buffer_writable(g->inits[0].buf));
        om_graph_release(g);
        opts.borrow = false;
        g           = om_graph_load_memory(p, files[i].n, &opts);
        assert_int_equal(om_graph_initializer(g, 0, &t), OM_OK);
        assert_false((const char *)t.data >= p && (const char *)t.data < p + files[i].n);
        om_graph_release(g);
        om_bytes_free(files[i].p, files[i].n);
    }
}

static void limits_and_cancel(void **state) {
    (void)state;
    int64_t before = live_blocks();
    om_graph *g    = sample_all();
    bytes files[]  = {as_onnx(g), as_om(g)};
    om_graph_release(g);
    for (int i = 0; i < 2; i++) {
        om_load_opts opts = {.struct_size = sizeof opts, .memory_limit = 1200};
        assert_null(om_graph_load_memory(files[i].p, files[i].n, &opts));
        expect_error(OM_ERR_LIMIT);
        om_cancel stop    = {1};
        opts.memory_limit = 0;
        opts.cancel       = &stop;
        assert_null(om_graph_load_memory(files[i].p, files[i].n, &opts));
        expect_error(OM_ERR_CANCELLED);
        opts.cancel = NULL;
        om_set_cancel(&stop);
        assert_null(om_graph_load_memory(files[i].p, files[i].n, &opts));
        expect_error(OM_ERR_CANCELLED);
        om_set_cancel(NULL);
        opts.struct_size = 4000;
        assert_null(om_graph_load_memory(files[i].p, files[i].n, &opts));
        expect_error(OM_ERR_ARG);
        opts = (om_load_opts){.memory_limit = -1};
        assert_null(om_graph_load_memory(files[i].p, files[i].n, &opts));
        expect_error(OM_ERR_ARG);
        opts = (om_load_opts){0};
        om_graph_release(g = om_graph_load_memory(files[i].p, files[i].n, &opts));
        assert_non_null(g);
        om_bytes_free(files[i].p, files[i].n);
    }
    assert_int_equal(live_blocks(), before);
}

/* Flips a bit of the weights: found, unless the caller said not to look. */
static void skipping_the_checksum(void **state) {
    (void)state;
    om_graph *g = sample_small();
    bytes b     = as_om(g);
    om_graph_release(g);
    ((uint8_t *)b.p)[b.n - 1] ^= 1;
    assert_null(om_graph_load_memory(b.p, b.n, NULL));
    assert_non_null(strstr(expect_error(OM_ERR_MALFORMED), "checksum of section DATA"));
    om_load_opts opts = {.struct_size = sizeof opts, .skip_checksum = true};
    g                 = om_graph_load_memory(b.p, b.n, &opts);
    assert_non_null(g);
    om_graph_release(g);
    om_bytes_free(b.p, b.n);
}

static void provenance_on_demand(void **state) {
    (void)state;
    om_graph *g = sample_small();
    bytes plain = as_onnx(g), with = {0};
    g->nodes[0].site  = "net.c:12";
    om_onnx_opts opts = {.struct_size = sizeof opts, .provenance = true};
    assert_int_equal(om_graph_save_onnx_memory(g, &opts, &with.p, &with.n), OM_OK);
    assert_true(with.n > plain.n);
    assert_non_null(memmem(with.p, with.n, "net.c:12", 8));
    same_and_free(plain, as_onnx(g));
    om_graph_release(g);
    g = load(with);
    om_graph_release(g);
    om_bytes_free(with.p, with.n);
}

/* ---- files -------------------------------------------------------------------------------------
 */

static void saved_files_load(void **state) {
    (void)state;
    int64_t before = live_blocks();
    char dir[]     = "/tmp/om-files-XXXXXX", path[64], text[128];
    assert_non_null(mkdtemp(dir));
    om_graph *g = sample_all();
    for (int k = 0; k < 2; k++) {
        snprintf(path, sizeof path, "%s/model.%s", dir, k ? "om" : "onnx");
        om_status (*save)(const om_graph *, const char *) = om_graph_save;
        for (int again = 0; again < 2; again++)
            assert_int_equal(k ? save(g, path) : om_graph_save_onnx(g, path, NULL), OM_OK);
        for (int copy = 0; copy < 2; copy++) {
            om_load_opts opts = {.struct_size = sizeof opts, .copy = copy};
            om_graph *back    = om_graph_load(path, &opts);
            assert_non_null(back);
            same_and_free(as_onnx(g), as_onnx(back));
            // The weights live as long as the graph, whatever becomes of the file's name.
            if (copy) assert_int_equal(unlink(path), 0);
            om_graph_release(back);
        }
    }
    assert_null(om_graph_load(path, NULL));
    assert_non_null(strstr(expect_error(OM_ERR_IO), "No such file"));
    assert_null(om_graph_load(dir, NULL));
    assert_non_null(strstr(expect_error(OM_ERR_IO), "not a regular file"));
    assert_null(om_graph_load("/dev/zero", NULL));
    expect_error(OM_ERR_IO);
    assert_null(om_graph_load("/proc/self/status", NULL));
    assert_non_null(strstr(expect_error(OM_ERR_IO), "not an ordinary file"));
    snprintf(path, sizeof path, "%s/fifo", dir);
    assert_int_equal(mkfifo(path, 0600), 0);
    assert_null(om_graph_load(path, NULL));
    expect_error(OM_ERR_IO);
    assert_int_equal(om_graph_save(g, path), OM_ERR_IO);
    expect_error(OM_ERR_IO);
    assert_int_equal(om_graph_save(g, "/dev/null"), OM_ERR_IO);
    expect_error(OM_ERR_IO);
    snprintf(text, sizeof text, "%s/no/such.om", dir);
    assert_int_equal(om_graph_save(g, text), OM_ERR_IO);
    expect_error(OM_ERR_IO);
    om_graph_release(g);
    assert_int_equal(unlink(path), 0);
    assert_int_equal(rmdir(dir), 0); // no temporary file is left
    assert_int_equal(live_blocks(), before);
}

static void mode_of_the_old_file_stays(void **state) {
    (void)state;
    char path[] = "/tmp/om-mode-XXXXXX";
    struct stat st;
    int fd      = mkstemp(path);
    om_graph *g = sample_small();
    assert_true(fd >= 0);
    assert_int_equal(fchmod(fd, 0640), 0);
    close(fd);
    assert_int_equal(om_graph_save(g, path), OM_OK);
    assert_int_equal(stat(path, &st), 0);
    assert_int_equal(st.st_mode & 0777, 0640);
    unlink(path);
    om_graph_release(g);
}

/* ---- the container -----------------------------------------------------------------------------
 */

static void containers_for_others(void **state) {
    (void)state;
    const om_section s[] = {
        {.tag = "TRAI", .flags = OM_SECTION_CRITICAL, .data = "abc", .bytes = 3},
        {.tag = "NOTE", .data = "x", .bytes = 1},
        {.tag = "DATA", .flags = OM_SECTION_PAGE, .data = "12345", .bytes = 5}};
    bytes b     = {0};
    om_source o = {.label = ""};
    om_container c;
    assert_int_equal(omi_container_memory(s, 3, &b.p, &b.n), OM_OK);
    assert_int_equal(b.n, 4096 + 5);
    om_buffer *file = omi_buffer_wrap(b.p, b.n, OM_BUF_MAPPED, NULL, NULL);
    assert_int_equal(omi_container_open(&c, file, &o, "DATATRAI"), OM_OK);
    assert_int_equal(c.n, 3);
    const om_section *t = omi_container_find(&c, "TRAI");
    assert_int_equal(omi_container_offset(&c, t), 192);
    assert_memory_equal(t->data, "abc", 3);
    assert_null(omi_container_find(&c, "OPTM"));
    assert_int_equal(omi_container_open(&c, file, &o, "DATA"), OM_ERR_UNSUPPORTED);
    assert_non_null(strstr(expect_error(OM_ERR_UNSUPPORTED), "section TRAI is required"));
    omi_buffer_release(file);
    assert_null(om_graph_load_memory(b.p, b.n, NULL));
    expect_error(OM_ERR_UNSUPPORTED);
    om_bytes_free(b.p, b.n);
}

/* The worked example of docs/format.md: an empty container. */
static void empty_container_to_the_byte(void **state) {
    (void)state;
    bytes b          = {0};
    uint8_t want[64] = "OMODEL1";
    want[8]          = 1;
    memcpy(want + 12, "\4\3\2\1", 4);
    want[16] = 64;
    omi_store_u64(want + 32, 0xEF46DB3751D8E999ull); // XXH64 of nothing
    omi_store_u64(want + 56, omi_xxh64(want, 56, 0));
    assert_int_equal(omi_container_memory(NULL, 0, &b.p, &b.n), OM_OK);
    assert_int_equal(b.n, 64);
    assert_memory_equal(b.p, want, 64);
    om_bytes_free(b.p, b.n);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(small_round_trip),
        cmocka_unit_test(all_round_trip),
        cmocka_unit_test(everything_survives),
        cmocka_unit_test(borrow_points_into_the_bytes),
        cmocka_unit_test(limits_and_cancel),
        cmocka_unit_test(skipping_the_checksum),
        cmocka_unit_test(provenance_on_demand),
        cmocka_unit_test(saved_files_load),
        cmocka_unit_test(mode_of_the_old_file_stays),
        cmocka_unit_test(containers_for_others),
        cmocka_unit_test(empty_container_to_the_byte),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
