/*
 * test_hostile.c -- ONNX bytes that break the format, one by one, each with the status it must get.
 *
 * The numbers are those of the list of inputs every reader must survive: A 1 to 19 the wire, B 20
 * to 34 tensors, D some of graphs. Prefixes and flipped bits are in test_mutants.c.
 */
#include "graph/sample.h"
#include "graph/wire_build.h"

#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

/* Loads and empties b; text must stand in the message of a refusal. */
static void gives(pb *b, om_status want, const char *text) {
    int64_t before = live_blocks();
    om_graph *g    = om_graph_load_memory(b->v, b->n, NULL);
    if (want == OM_OK && !g) {
        om_error e;
        om_catch(&e);
        fail_msg("refused: %s", e.message);
    }
    if (want != OM_OK) {
        assert_null(g);
        const char *message = expect_error(want);
        if (text && !strstr(message, text)) fail_msg("'%s' is not in: %s", text, message);
    }
    om_graph_release(g);
    assert_int_equal(live_blocks(), before);
    pb_clear(b);
}

static void gives_bytes(const char *p, size_t n, om_status want, const char *text) {
    pb b = {0};
    pb_raw(&b, p, n);
    gives(&b, want, text);
}
#define BYTES(literal, want, text) gives_bytes(literal, sizeof(literal) - 1, want, text)

static pb good_model(void) {
    const uint64_t one = 1;
    pb t               = pb_tensor(1, &one, 1, "c", "\0\0\0\0", 4);
    return pb_model_with(&t);
}

/* The good model with these bytes in front or behind. */
static void good_with(const char *front, size_t n, const char *behind, size_t m, om_status want,
                      const char *text) {
    pb b = {0}, good = good_model();
    pb_raw(&b, front, n);
    pb_raw(&b, good.v, good.n);
    pb_raw(&b, behind, m);
    pb_clear(&good);
    gives(&b, want, text);
}
#define BEFORE(literal, want, text) good_with(literal, sizeof(literal) - 1, "", 0, want, text)
#define BEHIND(literal, want, text) good_with("", 0, literal, sizeof(literal) - 1, want, text)

/* ---- A: the wire -------------------------------------------------------------------------------
 */

static void empty_and_foreign_files(void **state) {
    (void)state;
    BYTES("", OM_ERR_MALFORMED, "byte 0: the file is empty");
    assert_null(om_graph_load_memory(NULL, 0, NULL));
    expect_error(OM_ERR_MALFORMED);
    assert_null(om_graph_load_memory(NULL, 3, NULL));
    expect_error(OM_ERR_ARG);
    BYTES("<html>not a model</html>", OM_ERR_MALFORMED, "look like HTML");
    BYTES("this is a text file\n", OM_ERR_MALFORMED, "look like text");
    BYTES("PK\3\4aaaaaaaaaaaaaaaaaaaaaaaa", OM_ERR_MALFORMED, "ZIP");
    BYTES("\x1f\x8b\x08\0\0\0\0\0", OM_ERR_MALFORMED, "gzip");
    BYTES("\x7f"
          "ELF\2\1\1\0\0\0",
          OM_ERR_MALFORMED, "ELF");
    BYTES("version https://git-lfs.github.com/spec/v1\n", OM_ERR_MALFORMED, "Git LFS");
    BYTES("OMODEL2\0xxxxxxxx", OM_ERR_MALFORMED, "another version");
    BYTES("\x1c\0\0\0TFL3\0\0", OM_ERR_MALFORMED, "TensorFlow Lite");
    BYTES("OMODEL1\0", OM_ERR_MALFORMED, "within its header");
}

static void lengths_and_numbers(void **state) {
    (void)state;
    BYTES("\x3a\x80\x80\x80\x80\x80\x20x", OM_ERR_MALFORMED, "past the end"); /* 4: 2^40 */
    BYTES("\x08\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01", OM_ERR_MALFORMED, "64 bits"); /* 5 */
    BYTES("\x08\xff\xff\xff\xff\xff\xff\xff\xff\xff\x02", OM_ERR_MALFORMED, "64 bits");
    BYTES("\x08\xff", OM_ERR_MALFORMED, "cut short");
    BYTES("\x0d\1\2\3", OM_ERR_MALFORMED, "cut short");
    BYTES("\x09\1\2\3\4\5\6\7", OM_ERR_MALFORMED, "cut short");
    BEFORE("\x00\x01", OM_ERR_MALFORMED, "field number is 0"); /* 6 */
    BEFORE("\x82\x00\x00", OM_ERR_MALFORMED, "field number is 0");
    BEFORE("\x80\x80\x80\x80\x20\x00", OM_ERR_MALFORMED, "too large");
    BEFORE("\x0f", OM_ERR_MALFORMED, "wire type"); /* 7 */
    BEFORE("\x0e", OM_ERR_MALFORMED, "wire type");
    BYTES("\x38\x05", OM_ERR_MALFORMED, "graph (field 7) has wire type 0");
    BYTES("\x0a\x01x", OM_ERR_MALFORMED, "ir_version");
    BEHIND("\xff\xff\xff", OM_ERR_MALFORMED, NULL); /* 11 */
}

static void unknown_fields_and_groups(void **state) {
    (void)state;
    BEFORE("\xc2\x3e\x03"
           "abc\xb8\x3e\x07\xbd\x3e"
           "1234\xb9\x3e"
           "12345678",
           OM_OK, NULL); /* 10 */
    BEHIND("\xc2\x3e\x03"
           "abc",
           OM_OK, NULL);
    BEFORE("\xc3\x3e\xc4\x3e", OM_OK, NULL); /* 8: a group of field 1000 */
    BEFORE("\xc3\x3e\x08\x01\x12\x01z\xcb\x3e\xcc\x3e\xc4\x3e", OM_OK, NULL);
    BEFORE("\xc3\x3e\xcc\x3e", OM_ERR_MALFORMED, "ends another group");
    BEFORE("\xc4\x3e", OM_ERR_MALFORMED, "wire type");
    BYTES("\xc3\x3e\x08\x01", OM_ERR_MALFORMED, "does not end");
    for (int depth = 64; depth <= 65; depth++) {
        pb b = {0}, good = good_model();
        for (int i = 0; i < depth; i++)
            pb_raw(&b, "\xc3\x3e", 2);
        for (int i = 0; i < depth; i++)
            pb_raw(&b, "\xc4\x3e", 2);
        pb_raw(&b, good.v, good.n);
        pb_clear(&good);
        gives(&b, depth == 64 ? OM_OK : OM_ERR_LIMIT, "too deep");
    }
    pb b = {0};
    for (int i = 0; i < 1000000; i++)
        pb_raw(&b, "\xc3\x3e", 2);
    gives(&b, OM_ERR_LIMIT, "too deep");
}

static void one_graph_with_a_name(void **state) {
    (void)state;
    pb good = good_model(), twice = {0};
    pb_raw(&twice, good.v, good.n);
    pb_raw(&twice, good.v, good.n);
    pb_clear(&good);
    gives(&twice, OM_ERR_MALFORMED, "second graph");                 /* 9 */
    BYTES("\x08\x09\x42\x02\x10\x14", OM_ERR_MALFORMED, "no graph"); /* 15 */
    for (int named = 0; named < 2; named++) {
        pb g = {0}, x = pb_value("x"), y = pb_value("x");
        if (named) pb_str(&g, 2, "");
        pb_msg(&g, 11, &x);
        pb_msg(&g, 12, &y);
        pb m = pb_model_of(&g);
        gives(&m, named ? OM_OK : OM_ERR_MALFORMED, "no name"); /* also 51: output is input */
    }
}

/* A graph in an attribute of a node in a graph, and so on. The innermost is empty. */
static pb nested(int levels) {
    pb_back b = pb_back_new((size_t)levels * 64 + 64);
    for (int i = 0; i < levels; i++) {
        pb_wrap(&b, 6);
        pb_front(&b,
                 "\x0a\x04"
                 "body\xa0\x01\x05",
                 9);
        pb_wrap(&b, 5);
        pb_front(&b,
                 "\x0a\x01x\x12\x01y\x22\x02"
                 "Do",
                 10);
        pb_wrap(&b, 1);
    }
    pb g = pb_back_take(&b), x = pb_value("x");
    pb_str(&g, 2, "g");
    pb_msg(&g, 11, &x);
    return pb_model_of(&g);
}

static void nesting_is_bounded(void **state) {
    (void)state;
    pb m = nested(32);
    gives(&m, OM_OK, NULL);
    const int deep[] = {33, 1000, 20000}; /* 12 */
    for (int i = 0; i < 3; i++) {
        m = nested(deep[i]);
        gives(&m, OM_ERR_LIMIT, "nested more than 32 deep");
    }
    pb_back b = pb_back_new(100000 * 16); /* 13: sequence of sequence of ... */
    for (int i = 0; i < 100000; i++) {
        pb_wrap(&b, 1);
        pb_wrap(&b, 4);
    }
    pb type = pb_back_take(&b);
    pb v = {0}, g = {0};
    pb_str(&v, 1, "x");
    pb_msg(&v, 2, &type);
    pb_str(&g, 2, "g");
    pb_msg(&g, 11, &v);
    m = pb_model_of(&g);
    gives(&m, OM_ERR_LIMIT, "types are nested");
}

static void *load_deepest(void *arg) {
    pb *m       = arg;
    om_graph *g = om_graph_load_memory(m->v, m->n, NULL);
    om_graph_release(g);
    return g ? arg : NULL;
}

/* The deepest legal model in a small stack: depth costs little. The sanitizers' frames are larger.
 */
static void deepest_in_a_small_stack(void **state) {
    (void)state;
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
    const size_t stack = 1 << 20;
#else
    const size_t stack = 128 << 10;
#endif
    pb m = nested(32);
    pthread_attr_t attr;
    pthread_t t;
    void *done = NULL;
    pthread_attr_init(&attr);
    assert_int_equal(pthread_attr_setstacksize(&attr, stack), 0);
    assert_int_equal(pthread_create(&t, &attr, load_deepest, &m), 0);
    pthread_join(t, &done);
    pthread_attr_destroy(&attr);
    assert_non_null(done);
    pb_clear(&m);
}

/* 14: millions of empty nodes must neither take memory nor time. */
static void amplification_is_capped(void **state) {
    (void)state;
    pb nodes = {0};
    for (int i = 0; i < 3000000; i++)
        pb_raw(&nodes, "\x0a\x00", 2);
    pb g = pb_graph_of(&nodes), m = pb_model_of(&g);
    struct timespec a, b;
    om_memory_stats before, after;
    om_memory(&before);
    om_memory_reset_peak();
    clock_gettime(CLOCK_MONOTONIC, &a);
    gives(&m, OM_ERR_LIMIT, NULL);
    clock_gettime(CLOCK_MONOTONIC, &b);
    om_memory(&after);
    assert_true(after.peak - before.bytes < (16 << 20));
    assert_true((double)(b.tv_sec - a.tv_sec) + 1e-9 * (double)(b.tv_nsec - a.tv_nsec) < 5);
}

/* 16: raw_data of 2.2 GiB in a sparse file loads, as a mapping, at once. */
static void more_than_two_gib(void **state) {
    (void)state;
    const uint64_t n = 590558004; // floats
    char path[]      = "/tmp/om-large-XXXXXX";
    int fd           = mkstemp(path);
    pb head = {0}, tensor = {0}, tail = {0}, x = pb_value("c"), opset = {0};
    pb_int_field(&tensor, 1, n);
    pb_int_field(&tensor, 2, 1);
    pb_str(&tensor, 8, "c");
    pb_num(&tensor, 9 << 3 | 2);
    pb_num(&tensor, 4 * n);
    pb_str(&tail, 2, "g");
    pb_msg(&tail, 12, &x);
    pb inner = {0};
    pb_num(&inner, 5 << 3 | 2);
    pb_num(&inner, tensor.n + 4 * n);
    pb_raw(&inner, tensor.v, tensor.n);
    pb_int_field(&head, 1, 9);
    pb_num(&head, 7 << 3 | 2);
    pb_num(&head, inner.n + 4 * n + tail.n);
    pb_raw(&head, inner.v, inner.n);
    pb_int_field(&opset, 2, 20);
    pb_msg(&tail, 8, &opset);
    bool wrote = fd >= 0 && write(fd, head.v, head.n) == (ssize_t)head.n &&
                 lseek(fd, (off_t)(head.n + 4 * n), SEEK_SET) > 0 &&
                 write(fd, tail.v, tail.n) == (ssize_t)tail.n;
    close(fd);
    pb_clear(&head), pb_clear(&tensor), pb_clear(&tail), pb_clear(&inner);
    om_init_info t = {0};
    om_graph *g    = wrote ? om_graph_load(path, NULL) : NULL;
    if (g) om_graph_initializer(g, 0, &t);
    om_status st = g ? om_graph_save_onnx(g, "/tmp/never.onnx", NULL) : OM_OK;
    om_catch(NULL);
    om_graph_release(g);
    unlink(path);
    if (!wrote) skip();
    assert_non_null(g);
    assert_int_equal(t.bytes, 4 * n);
    assert_int_equal(st, OM_ERR_LIMIT);
}

/* ---- B: tensors --------------------------------------------------------------------------------
 */

/* The model whose initializer is this tensor with extra fields behind. */
static void tensor_gives(pb t, const char *extra, size_t n, om_status want, const char *text) {
    pb_raw(&t, extra, n);
    pb m = pb_model_with(&t);
    gives(&m, want, text);
}
#define TENSOR(dims, dtype, raw, n_raw, extra, want, text)                                         \
    do {                                                                                           \
        const uint64_t dims_[] = {dims};                                                           \
        tensor_gives(                                                                              \
            pb_tensor((int)(sizeof dims_ / sizeof *dims_), dims_, dtype, "c", raw, n_raw), extra,  \
            sizeof(extra) - 1, want, text);                                                        \
    } while (0)
#define D(...) __VA_ARGS__

static void sizes_that_lie(void **state) {
    (void)state;
    const uint64_t minus = UINT64_MAX;
    static char zeros[400];
    TENSOR(D(1ull << 33, 1ull << 33), 1, zeros, 4, "", OM_ERR_MALFORMED, "overflows"); /* 20 */
    TENSOR(D(4194305, 4194305, 211106198978564), 1, zeros, 16, "", OM_ERR_MALFORMED, NULL);
    TENSOR(D(minus), 1, zeros, 4, "", OM_ERR_MALFORMED, "axis of size -1");         /* 21 */
    TENSOR(D(1000), 1, zeros, 4, "", OM_ERR_MALFORMED, "needs 4000");               /* 22 */
    TENSOR(D(1), 1, zeros, 400, "", OM_ERR_MALFORMED, "raw_data has 400");          /* 23 */
    TENSOR(D(1ull << 40), 1, NULL, 0, "", OM_ERR_MALFORMED, "needs 1099511627776"); /* 26 */
    TENSOR(D(0, 1ull << 62), 1, "", 0, "", OM_OK, NULL);                            /* 32 */
    TENSOR(D(1ull << 62, 1ull << 62, 0), 1, NULL, 0, "", OM_OK, NULL);
    TENSOR(D(2), 1, zeros, 8, "\x0a\x03\x01\x01\x01", OM_OK, NULL); /* packed dims */
    for (int rank = 64; rank <= 65; rank++) {                       /* 27: 1000 and the border */
        pb t = pb_tensor(0, NULL, 1, "c", zeros, 4);
        for (int i = 0; i < rank; i++)
            pb_int_field(&t, 1, 1);
        tensor_gives(t, "", 0, rank == 64 ? OM_OK : OM_ERR_LIMIT, "more than 64 axes");
    }
}

static void types_that_are_not(void **state) {
    (void)state;
    TENSOR(D(1), 0, "\0\0\0\0", 4, "", OM_ERR_MALFORMED, "no element type"); /* 24 */
    TENSOR(D(1), 99, "\0\0\0\0", 4, "", OM_ERR_UNSUPPORTED, "99");
    TENSOR(D(1), 1ull << 40, "\0\0\0\0", 4, "", OM_ERR_UNSUPPORTED, NULL);
    TENSOR(D(1), 17, "\0", 1, "", OM_ERR_UNSUPPORTED, "FLOAT8E4M3FN (17)"); /* 34 */
    TENSOR(D(3), 22, "\0\0", 2, "", OM_ERR_UNSUPPORTED, "INT4 (22)");
    TENSOR(D(1), 8, "abcd", 4, "", OM_ERR_MALFORMED, "strings has raw_data"); /* 30 */
    TENSOR(D(2), 8, NULL, 0,
           "\x32\x01"
           "a\x32\x00",
           OM_OK, NULL);
    TENSOR(D(2), 8, NULL, 0,
           "\x32\x01"
           "a",
           OM_ERR_MALFORMED, "string_data has 1");
    TENSOR(D(1), 1, NULL, 0, "\x70\x01", OM_ERR_UNSUPPORTED, "external");
    TENSOR(D(1), 1, NULL, 0, "\x6a\x00", OM_ERR_UNSUPPORTED, "external");
    TENSOR(D(1), 1, NULL, 0, "\x70\x02", OM_ERR_MALFORMED, "data_location");
    TENSOR(D(1), 1, NULL, 0, "\x1a\x00", OM_ERR_UNSUPPORTED, "segments");
}

static void typed_fields(void **state) {
    (void)state;
    TENSOR(D(1), 1, "\0\0\0\0", 4, "\x22\x04\0\0\0\0", OM_ERR_MALFORMED,
           "beside raw_data");                                                     /* 25 */
    TENSOR(D(1), 1, NULL, 0, "\x22\x03\0\0\0", OM_ERR_MALFORMED, "multiple of 4"); /* 28 */
    TENSOR(D(1), 7, NULL, 0, "\x3a\x02\xff\xff", OM_ERR_MALFORMED, NULL);
    TENSOR(D(2), 7, NULL, 0, "\x3a\x03\x01\xff\xff", OM_ERR_MALFORMED, NULL);
    TENSOR(D(1), 1, NULL, 0, "\x28\x00", OM_ERR_MALFORMED, "int32_data");
    TENSOR(D(1), 3, NULL, 0, "\x28\x80\x01", OM_ERR_MALFORMED, "128, which is no INT8"); /* 33 */
    TENSOR(D(1), 2, NULL, 0, "\x28\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01", OM_ERR_MALFORMED,
           "-1");
    TENSOR(D(1), 2, NULL, 0, "\x28\x80\x02", OM_ERR_MALFORMED, "256");
    TENSOR(D(1), 10, NULL, 0, "\x28\x80\x80\x04", OM_ERR_MALFORMED, "65536");
    TENSOR(D(1), 6, NULL, 0, "\x28\x80\x80\x80\x80\x10", OM_ERR_MALFORMED, NULL);
    TENSOR(D(1), 12, NULL, 0, "\x58\x80\x80\x80\x80\x10", OM_ERR_MALFORMED, "UINT32");
}

/* Loads the tensor and compares its bytes. */
static void tensor_is(pb t, const char *extra, size_t n, const char *want, size_t m) {
    om_init_info info;
    pb_raw(&t, extra, n);
    pb file     = pb_model_with(&t);
    om_graph *g = om_graph_load_memory(file.v, file.n, NULL);
    assert_non_null(g);
    assert_int_equal(om_graph_initializer(g, 0, &info), OM_OK);
    assert_int_equal(info.bytes, m);
    assert_memory_equal(info.data, want, m);
    om_graph_release(g);
    pb_clear(&file);
}
#define IS(dim, dtype, extra, want)                                                                \
    do {                                                                                           \
        const uint64_t d_ = dim;                                                                   \
        tensor_is(pb_tensor(1, &d_, dtype, "c", NULL, 0), extra, sizeof(extra) - 1, want,          \
                  sizeof(want) - 1);                                                               \
    } while (0)

static void typed_fields_become_bytes(void **state) {
    (void)state;
    IS(2, 1, "\x22\x04\0\0\x80\x3f\x22\x04\0\0\0\x40", "\0\0\x80\x3f\0\0\0\x40"); /* 29: split */
    IS(2, 1, "\x25\0\0\x80\x3f\x22\x04\0\0\0\x40", "\0\0\x80\x3f\0\0\0\x40");     /* mixed */
    IS(2, 1, "\x22\x08\0\0\x80\x3f\0\0\0\x40", "\0\0\x80\x3f\0\0\0\x40");
    IS(3, 7, "\x3a\x02\x01\x02\x38\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01",
       "\1\0\0\0\0\0\0\0\2\0\0\0\0\0\0\0\xff\xff\xff\xff\xff\xff\xff\xff");
    IS(2, 3, "\x2a\x0b\x7f\x80\xff\xff\xff\xff\xff\xff\xff\xff\x01", "\x7f\x80");
    IS(1, 3, "\x28\x80\xff\xff\xff\x0f", "\x80"); /* -128 cut to 32 bits */
    IS(2, 4, "\x2a\x04\xff\xff\x03\x01", "\xff\xff\1\0");
    IS(1, 10, "\x28\x80\xf8\x03", "\x00\xfc");
    IS(4, 9, "\x2a\x04\x00\x01\x07\x00", "\0\1\1\0"); /* 31 */
    IS(1, 12, "\x58\xff\xff\xff\xff\x0f", "\xff\xff\xff\xff");
    IS(1, 14, "\x22\x08\0\0\x80\x3f\0\0\0\x40", "\0\0\x80\x3f\0\0\0\x40"); /* complex */
    const uint64_t four = 4;
    tensor_is(pb_tensor(1, &four, 9, "c", "\x07\x00\x01\xff", 4), "", 0, "\1\0\1\1", 4);
}

/* ---- D: some graphs ----------------------------------------------------------------------------
 */

/* A model of these nodes. */
static void nodes_give(pb nodes, om_status want, const char *text) {
    pb g = pb_graph_of(&nodes), m = pb_model_of(&g);
    gives(&m, want, text);
}

/* One node y = Relu(x) with an attribute made of these bytes. */
static void attr_gives(const char *p, size_t n, om_status want, const char *text) {
    pb attrs = {0}, nodes = {0};
    pb_data(&attrs, 5, p, n);
    pb node = pb_node("Relu", "x", "y", &attrs);
    pb_msg(&nodes, 1, &node);
    nodes_give(nodes, want, text);
}
#define ATTR(literal, want, text) attr_gives(literal, sizeof(literal) - 1, want, text)

static void attributes(void **state) {
    (void)state;
    ATTR("\x0a\x01"
         "a\x18\x05\xa0\x01\x02",
         OM_OK, NULL);
    ATTR("\x0a\x01"
         "a\x18\x05",
         OM_OK, NULL); /* no type: the value decides */
    ATTR("\x0a\x01"
         "a\xa0\x01\x02",
         OM_OK, NULL); /* proto3 writers leave 0 out */
    ATTR("\x0a\x01"
         "a\xa0\x01\x03",
         OM_OK, NULL);
    ATTR("\x0a\x01"
         "a",
         OM_ERR_MALFORMED, "no type");
    ATTR("\x0a\x01"
         "a\xa0\x01\x63",
         OM_ERR_MALFORMED, "type 99");
    ATTR("\x0a\x01"
         "a\x18\x05\x22\x01s\xa0\x01\x02",
         OM_ERR_MALFORMED, "another type"); /* 53 */
    ATTR("\x18\x05\xa0\x01\x02", OM_ERR_MALFORMED, "no name");
    ATTR("\x0a\x01"
         "a\xaa\x01\x01r\xa0\x01\x02",
         OM_ERR_MALFORMED, "outside a function"); /* 72 */
    ATTR("\x0a\x01"
         "a\x42\x03\x01\x02\x03\x40\x04\xa0\x01\x07",
         OM_OK, NULL); /* ints, mixed */
    ATTR("\x0a\x01"
         "a\x42\x01\xff\xa0\x01\x07",
         OM_ERR_MALFORMED, NULL);
    ATTR("\x0a\x01"
         "a\x3a\x03\0\0\0\xa0\x01\x06",
         OM_ERR_MALFORMED, "floats has 3");
    ATTR("\x0a\x01"
         "a\xa0\x01\x04",
         OM_ERR_MALFORMED, "one tensor");
    ATTR("\x0a\x01"
         "a\xa0\x01\x05",
         OM_ERR_MALFORMED, "one graph");
    ATTR("\x0a\x01"
         "a\x72\x00\xa0\x01\x0d",
         OM_OK, NULL); /* a type: kept by name */
    pb attrs = {0}, nodes = {0};
    pb_data(&attrs, 5,
            "\x0a\x01"
            "a\x18\x05\xa0\x01\x02",
            8);
    pb_data(&attrs, 5,
            "\x0a\x01"
            "a\x18\x05\xa0\x01\x02",
            8);
    pb node = pb_node("Relu", "x", "y", &attrs);
    pb_msg(&nodes, 1, &node);
    nodes_give(nodes, OM_ERR_MALFORMED, "'a' twice");
}

static void node_gives(const char *op, const char *in, const char *out, om_status want,
                       const char *text) {
    pb nodes = {0}, node = pb_node(op, in, out, NULL);
    pb_msg(&nodes, 1, &node);
    nodes_give(nodes, want, text);
}

static void graphs(void **state) {
    (void)state;
    node_gives("Relu", "x", "y", OM_OK, NULL);
    node_gives("Relu", "x", "", OM_ERR_MALFORMED, "no output");
    node_gives("Relu", "x", NULL, OM_ERR_MALFORMED, "no output");
    node_gives("", "x", "y", OM_ERR_MALFORMED, "no operator");
    node_gives("Relu", "nope", "y", OM_ERR_MALFORMED, "'nope', which nothing produces"); /* 45 */
    node_gives("Relu", "x", "z", OM_ERR_MALFORMED, "list of outputs reads 'y'");
    node_gives("Relu", "x", "x", OM_ERR_MALFORMED, "produced twice");
    node_gives("Relu", "\xff", "y", OM_ERR_MALFORMED, "node.input is not UTF-8"); /* 54 */
    node_gives("Re\xc0\x80lu", "x", "y", OM_ERR_MALFORMED, "node.op_type is not UTF-8");
    node_gives("Relu\x1b[2J", "x", "y", OM_OK, NULL);
    pb nodes = {0}, node = {0};
    pb_data(&node, 1, "x\0z", 3);
    pb_str(&node, 2, "y");
    pb_str(&node, 4, "Relu");
    pb_msg(&nodes, 1, &node);
    nodes_give(nodes, OM_ERR_MALFORMED, "NUL");
    pb g = {0}, t, m; /* 47: an initializer twice */
    for (int i = 0; i < 2; i++) {
        t = pb_tensor(0, NULL, 1, "x", "\0\0\0\0", 4);
        pb_msg(&g, 5, &t);
    }
    pb_str(&g, 2, "g");
    m = pb_model_of(&g);
    gives(&m, OM_ERR_MALFORMED, "initializer 'x' is there twice");
    pb sparse = {0}; /* 73 */
    pb_str(&sparse, 2, "g");
    pb_str(&sparse, 15, "");
    m = pb_model_of(&sparse);
    gives(&m, OM_ERR_UNSUPPORTED, "sparse");
}

/* x with this TypeProto. */
static void type_gives(const char *type, size_t n, om_status want, const char *text) {
    pb v = {0}, g = {0};
    pb_str(&v, 1, "x");
    pb_data(&v, 2, type, n);
    pb_str(&g, 2, "g");
    pb_msg(&g, 11, &v);
    pb m = pb_model_of(&g);
    gives(&m, want, text);
}
#define TYPE(literal, want, text) type_gives(literal, sizeof(literal) - 1, want, text)

static void types_and_versions(void **state) {
    (void)state;
    TYPE("\x0a\x02\x08\x01", OM_OK, NULL);
    TYPE("\x0a\x02\x08\x63", OM_ERR_UNSUPPORTED, "99");
    TYPE("\x22\x06\x0a\x04\x0a\x02\x08\x01", OM_OK, NULL);
    TYPE("\x0a\x11\x08\x01\x12\x0d\x0a\x0b\x08\xfb\xff\xff\xff\xff\xff\xff\xff\xff\x01",
         OM_ERR_MALFORMED, "axis has size -5"); /* 64 */
    TYPE("\x0a\x11\x08\x01\x12\x0d\x0a\x0b\x08\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01", OM_OK,
         NULL);
    const struct {
        const char *bytes;
        size_t n;
        om_status want;
        const char *text;
    } versions[] = {
        {"\x3a\x03\x12\x01g\x42\x02\x10\x14", 9, OM_ERR_MALFORMED, "IR version is 0"},
        {"\x08\x02\x3a\x03\x12\x01g\x42\x02\x10\x14", 11, OM_ERR_UNSUPPORTED, "3 to 14"},
        {"\x08\x8f\x4e\x3a\x03\x12\x01g\x42\x02\x10\x14", 12, OM_ERR_UNSUPPORTED, "9999"},
        {"\x08\x09\x3a\x03\x12\x01g", 7, OM_ERR_MALFORMED, "no operator set"},
        {"\x08\x09\x3a\x03\x12\x01g\x42\x02\x10\x00", 11, OM_ERR_MALFORMED, "version 0"},
        {"\x08\x09\x3a\x03\x12\x01g\x42\x02\x10\x14\x42\x02\x10\x13", 15, OM_ERR_MALFORMED,
         "imported twice"},
        {"\x08\x09\x3a\x03\x12\x01g\x42\x02\x10\x14\xca\x01\x03\x0a\x01"
         "F",
         17, OM_ERR_UNSUPPORTED, "(F)"},
        {"\x08\x09\x3a\x03\x12\x01g\x42\x02\x10\x14\xa2\x01\x00", 14, OM_OK, NULL}};
    for (size_t i = 0; i < sizeof versions / sizeof *versions; i++)
        gives_bytes(versions[i].bytes, versions[i].n, versions[i].want, versions[i].text);
}

/* 52: a chain of 100,000 nodes and a node of 100,000 inputs take well under a second. */
static void long_chains_are_quick(void **state) {
    (void)state;
    pb nodes = {0}, wide = {0};
    char in[16] = "x", out[16];
    for (int i = 0; i < 100000; i++) {
        snprintf(out, sizeof out, i == 99999 ? "y" : "a%d", i);
        pb node = pb_node("Relu", in, out, NULL);
        pb_msg(&nodes, 1, &node);
        memcpy(in, out, sizeof in);
        pb_str(&wide, 1, "x");
    }
    pb_str(&wide, 2, "z");
    pb_str(&wide, 4, "Sum");
    pb_msg(&nodes, 1, &wide);
    struct timespec a, b;
    clock_gettime(CLOCK_MONOTONIC, &a);
    nodes_give(nodes, OM_OK, NULL);
    clock_gettime(CLOCK_MONOTONIC, &b);
    assert_true((double)(b.tv_sec - a.tv_sec) + 1e-9 * (double)(b.tv_nsec - a.tv_nsec) < 5);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(empty_and_foreign_files),
        cmocka_unit_test(lengths_and_numbers),
        cmocka_unit_test(unknown_fields_and_groups),
        cmocka_unit_test(one_graph_with_a_name),
        cmocka_unit_test(nesting_is_bounded),
        cmocka_unit_test(deepest_in_a_small_stack),
        cmocka_unit_test(amplification_is_capped),
        cmocka_unit_test(more_than_two_gib),
        cmocka_unit_test(sizes_that_lie),
        cmocka_unit_test(types_that_are_not),
        cmocka_unit_test(typed_fields),
        cmocka_unit_test(typed_fields_become_bytes),
        cmocka_unit_test(attributes),
        cmocka_unit_test(graphs),
        cmocka_unit_test(types_and_versions),
        cmocka_unit_test(long_chains_are_quick),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
