/*
 * build.h -- graphs in a few lines, for the tests of the session.
 *
 *     om_graph *g = begin(20);
 *     in(g, "x", OM_F32, "batch,3");
 *     node(g, "Relu", "x", "y");
 *     out(g, "y");
 *     done(g);
 *
 * Axes: numbers are fixed, names are symbols, "?" is unknown. "_" is an absent operand.
 */
#ifndef OM_TESTS_RUNTIME_BUILD_H
#define OM_TESTS_RUNTIME_BUILD_H

#include "harness.h"

#include <ctype.h>
#include <stdio.h>

#include "graph/graph.h"
#include "onemodel/ops.h"
#include "onemodel/session.h"

#define AXES(...)                                                                                  \
    (int)(sizeof((int64_t[]){__VA_ARGS__}) / sizeof(int64_t)), (int64_t[]) {                       \
        __VA_ARGS__                                                                                \
    }

/* Asserts, but not while allocations are made to fail: then the graph is abandoned by done(). */
static inline om_graph *begin(int64_t opset) {
    om_graph *g = omi_graph_new("test", 0);
    if (g) omi_graph_add_opset(g, "", opset);
    return g;
}

static inline uint32_t value_of(om_graph *g, const char *name) {
    uint32_t v = omi_graph_find(g, name, strlen(name));
    return v != OM_NO_VALUE ? v : omi_graph_add_value(g, name, 0, -1, NULL);
}

static inline void in(om_graph *g, const char *name, om_dtype t, const char *axes) {
    om_gdim d[OM_MAX_RANK];
    int n = 0;
    for (const char *p = axes; g && *p; n++) {
        char word[32];
        size_t k = strcspn(p, ",");
        snprintf(word, sizeof word, "%.*s", (int)k, p);
        if (isdigit((unsigned char)word[0]))
            d[n] = OM_DIM_FIXED(atoll(word));
        else if (word[0] == '?')
            d[n] = OM_DIM_UNKNOWN;
        else
            d[n] = OM_DIM_SYM(omi_graph_symbol(g, word));
        p += k + (p[k] == ',');
    }
    if (omi_failed() || !g) return;
    uint32_t v = omi_graph_add_value(g, name, (int32_t)t, n, d);
    if (v != OM_NO_VALUE) omi_graph_add_input(g, v);
}

static inline void constant(om_graph *g, const char *name, om_dtype t, int rank,
                            const int64_t *dims, const void *data) {
    size_t bytes = om_dtype_size(t);
    for (int i = 0; i < rank; i++)
        bytes *= (size_t)dims[i];
    if (omi_failed()) return;
    uint32_t v   = omi_graph_add_value(g, name, (int32_t)t, -1, NULL);
    om_buffer *b = v == OM_NO_VALUE ? NULL : omi_buffer_new(bytes);
    if (!b) return;
    if (bytes) memcpy(b->data, data, bytes);
    omi_graph_add_init(g, v, (int32_t)t, rank, dims, b, 0, bytes);
    omi_buffer_release(b);
}
#define floats(g, name, ...)                                                                       \
    constant(g, name, OM_F32, 1, (int64_t[]){sizeof((float[]){__VA_ARGS__}) / 4},                  \
             (float[]){__VA_ARGS__})
#define ints(g, name, ...)                                                                         \
    constant(g, name, OM_I64, 1, (int64_t[]){sizeof((int64_t[]){__VA_ARGS__}) / 8},                \
             (int64_t[]){__VA_ARGS__})

static inline uint32_t words(om_graph *g, const char *text, uint32_t *v) {
    uint32_t n = 0;
    char word[64];
    for (const char *p = text; *p; p += *p == ' ') {
        size_t k = strcspn(p, " ");
        snprintf(word, sizeof word, "%.*s", (int)k, p);
        v[n++] = strcmp(word, "_") == 0 ? OM_NO_VALUE : value_of(g, word);
        p += k;
    }
    return n;
}

/* Its name is the name of its first output with "op_" in front. Returns its index. */
static inline int32_t node(om_graph *g, const char *type, const char *from, const char *to) {
    uint32_t a[64], b[64];
    char name[80];
    if (omi_failed()) return -1;
    uint32_t n_in = words(g, from, a), n_out = words(g, to, b);
    snprintf(name, sizeof name, "op_%.*s", (int)strcspn(to, " "), to);
    if (omi_failed()) return -1;
    return omi_graph_add_node(g, type, "", name, n_in, a, n_out, b);
}

/* Attributes of the node that node() returned; nothing when it failed. */
static inline void set_int(om_graph *g, int32_t n, const char *name, int64_t v) {
    if (n >= 0 && !omi_failed()) omi_graph_attr_int(g, n, name, v);
}
static inline void set_ints(om_graph *g, int32_t n, const char *name, size_t k, const int64_t *v) {
    if (n >= 0 && !omi_failed()) omi_graph_attr_ints(g, n, name, k, v);
}
static inline void set_text(om_graph *g, int32_t n, const char *name, const char *v) {
    if (n >= 0 && !omi_failed()) omi_graph_attr_string(g, n, name, v);
}

static inline void out(om_graph *g, const char *name) {
    if (!omi_failed()) omi_graph_add_output(g, value_of(g, name));
}

/* NULL when something failed. */
static inline om_graph *done(om_graph *g) {
    if (g && !omi_failed() && omi_graph_seal(g) == OM_OK) return g;
    om_graph_release(g);
    return NULL;
}

/* A session over g, which is released. */
static inline om_session *open_session(om_graph *g, om_arith arith, int threads) {
    if (!g) return NULL;
    om_session *s = om_session_new(g, &(om_session_opts){.struct_size = sizeof(om_session_opts),
                                                         .arith       = arith,
                                                         .threads     = threads});
    om_graph_release(g);
    return s;
}

static inline om_session *session(om_graph *g) {
    om_session *s = open_session(done(g), OM_EXACT, 1);
    check_ok();
    assert_non_null(s);
    return s;
}

/* x has exactly these float32 bits. */
static inline void check_floats(const om_tensor *t, int64_t n, const float *want) {
    check_ok();
    assert_non_null(t);
    assert_int_equal(om_numel(t), n);
    const float *got = om_data(t);
    for (int64_t i = 0; i < n; i++)
        if (memcmp(&got[i], &want[i], 4) != 0)
            fail_msg("element %lld is %a, not %a", (long long)i, (double)got[i], (double)want[i]);
}
#define check_values(t, ...)                                                                       \
    check_floats(t, sizeof((float[]){__VA_ARGS__}) / 4, (float[]){__VA_ARGS__})

#endif
