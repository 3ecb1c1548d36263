/*
 * trace_test.h -- what the tests of tracing share: short forms for tensors and traces, graphs as
 * text.
 *
 * pick(&a, f, ..) forms: OM_PAIR evaluates two operand expressions in either order. C leaves the
 * order of arguments open; the suite is built a second time with OM_SWAP_ARGS, and one test
 * compares bytes of both orders (CD-18).
 */
#ifndef OM_TESTS_TRACE_TEST_H
#define OM_TESTS_TRACE_TEST_H

#include <stdio.h>

#include "graph/graph.h"
#include "harness.h"
#include "onemodel/autograd.h"
#include "onemodel/nn.h"
#include "onemodel/onnx.h"
#include "onemodel/ops.h"
#include "onemodel/trace.h"
#include "tensor/seam.h"

#ifdef OM_SWAP_ARGS
OM_UNUSED static bool swap_args = true;
#else
OM_UNUSED static bool swap_args = false;
#endif
#define OM_PAIR(a, ea, b, eb)                                                                      \
    do {                                                                                           \
        if (swap_args) {                                                                           \
            (b) = (eb);                                                                            \
            (a) = (ea);                                                                            \
        } else {                                                                                   \
            (a) = (ea);                                                                            \
            (b) = (eb);                                                                            \
        }                                                                                          \
    } while (0)

/* Float32 elements in [-1, 1) from a fixed sequence of our own: the library's generators are
 * refused as constants while a trace records (TD-9). */
static inline om_tensor *filled(uint64_t seed, int rank, const int64_t *dims) {
    int64_t n = 1;
    for (int i = 0; i < rank; i++)
        n *= dims[i];
    float *v = malloc(sizeof *v * (size_t)(n + 1));
    for (int64_t i = 0; i < n; i++) {
        seed = seed * 6364136223846793005u + 1442695040888963407u;
        v[i] = (float)((double)(seed >> 40) / (1 << 23) - 1.0);
    }
    om_tensor *t = om_from(v, OM_F32, rank, dims);
    free(v);
    return t;
}
static inline om_tensor *example(int rank, const int64_t *dims) {
    return filled(7, rank, dims);
}
/* int64 0, 1, 2, .. modulo n. */
static inline om_tensor *ids(int64_t n, int rank, const int64_t *dims) {
    int64_t v[256], count = 1;
    for (int i = 0; i < rank; i++)
        count *= dims[i];
    for (int64_t i = 0; i < count && i < 256; i++)
        v[i] = (3 * i + 1) % n;
    return om_from(v, OM_I64, rank, dims);
}

/* ---- graphs as text -------------------------------------------------------------------------- */

typedef struct text {
    char s[1024];
} text;

static inline void put(text *t, const char *fmt, ...) {
    size_t n = strlen(t->s);
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(t->s + n, sizeof t->s - n, fmt, ap);
    va_end(ap);
}

static inline const om_gnode *node_k(const om_graph *g, const char *type, int k) {
    for (uint32_t i = 0; i < g->n_nodes; i++)
        if (!strcmp(g->nodes[i].op_type, type) && k-- == 0) return &g->nodes[i];
    return NULL;
}
static inline int count_nodes(const om_graph *g, const char *type) {
    int n = 0;
    for (uint32_t i = 0; i < g->n_nodes; i++)
        n += !type || !strcmp(g->nodes[i].op_type, type);
    return n;
}

/* "Concat(Shape(x,0,1),Mul(Shape(x,1,2),[4]),[2])": size-computing nodes and int64 constants
 * written out, other values by name. */
static inline void put_value(text *t, const om_graph *g, uint32_t v) {
    const om_gvalue *val = &g->values[v];
    if (val->init >= 0 && g->inits[val->init].dtype == OM_I64 && g->inits[val->init].rank == 1) {
        const om_ginit *in = &g->inits[val->init];
        for (int64_t i = 0; i < in->dims[0]; i++) {
            int64_t x;
            memcpy(&x, (char *)in->buf->data + in->offset + (size_t)i * 8, 8);
            put(t, "%s%lld", i ? "," : "[", (long long)x);
        }
        put(t, "]");
        return;
    }
    const om_gnode *n = val->producer >= 0 ? &g->nodes[val->producer] : NULL;
    bool sizes        = n && (!strcmp(n->op_type, "Shape") || !strcmp(n->op_type, "Concat") ||
                       !strcmp(n->op_type, "Mul"));
    if (!sizes || val->dtype != OM_I64) {
        put(t, "%s", val->name);
        return;
    }
    put(t, "%s(", n->op_type);
    for (uint32_t i = 0; i < n->n_in; i++) {
        if (i) put(t, ",");
        put_value(t, g, n->in[i]);
    }
    if (omi_attr(n, "start"))
        put(t, ",%lld,%lld", (long long)omi_attr_int(n, "start", 0),
            (long long)omi_attr_int(n, "end", 0));
    put(t, ")");
}

/* The size operand of the k-th node of a type (Reshape, Expand). */
static inline text operand_of(const om_graph *g, const char *type, int k) {
    text t            = {""};
    const om_gnode *n = node_k(g, type, k);
    if (n && n->n_in > 1) put_value(&t, g, n->in[1]);
    if (n && omi_attr_int(n, "allowzero", 0)) put(&t, " allowzero");
    return t;
}

static inline text axes_text(const om_value_info *v) {
    text t = {"("};
    for (int i = 0; i < v->rank; i++)
        if (v->axes[i].symbol)
            put(&t, "%s%s", i ? "," : "", v->axes[i].symbol);
        else
            put(&t, "%s%lld", i ? "," : "", (long long)v->axes[i].size);
    put(&t, ")");
    return t;
}
static inline text output_axes(const om_graph *g, int i) {
    om_value_info v = {0};
    om_graph_output(g, i, &v);
    return axes_text(&v);
}

/* All nodes as "Add(x,w)->y; ..", without size-computing ones when short. */
static inline text node_list(const om_graph *g) {
    text t = {""};
    for (uint32_t i = 0; i < g->n_nodes; i++)
        put(&t, "%s%s", i ? " " : "", g->nodes[i].op_type);
    return t;
}

static inline const om_ginit *init_named(const om_graph *g, const char *name) {
    uint32_t v = omi_graph_find(g, name, strlen(name));
    return v != OM_NO_VALUE && g->values[v].init >= 0 ? &g->inits[g->values[v].init] : NULL;
}

/* ---- errors ------------------------------------------------------------------------------------
 */

/* The pending error is OM_ERR_TRACE of this kind and names every word, in message or place. */
#define check_trace_error(kind, ...)                                                               \
    trace_error((kind), (const char *[]){__VA_ARGS__, NULL}, __FILE__, __LINE__)
static inline void trace_error(om_trace_kind kind, const char *const *words, const char *file,
                               int line) {
    om_error e;
    om_catch(&e);
    if (e.status != OM_ERR_TRACE || e.trace_kind != kind) {
        print_error("%s:%d: %s expected, got %s %s: %s: %s\n", file, line, om_trace_kind_name(kind),
                    om_status_name(e.status), om_trace_kind_name(e.trace_kind), e.where, e.message);
        _fail(file, line);
    }
    for (; *words; words++)
        if (!strstr(e.message, *words) && !strstr(e.where, *words) && !strstr(e.site, *words)) {
            print_error("%s:%d: '%s' is not in: %s: %s [%s]\n", file, line, *words, e.where,
                        e.message, e.site);
            _fail(file, line);
        }
    if (strchr(e.message, '\n') || !e.where[0]) _fail(file, line);
}

/* ---- one-input traces
 * ----------------------------------------------------------------------------- */

/* A failed test leaves its tracer behind; the next one must not trip over it. */
static inline om_tracer *fresh_tracer(void) {
    if (omi_seam) om_trace_abort(omi_seam->self);
    return om_trace_begin(NULL);
}

typedef om_tensor *(*model_fn)(om_tensor *x);
/* Traces y = f(x). NULL with the error pending; the thread is free again either way. */
static inline om_graph *trace_one(model_fn f, int rank, const int64_t *dims, int n_axes,
                                  const char *const *axes) {
    om_tracer *tr = fresh_tracer();
    om_tensor *x  = om_trace_input(tr, "x", example(rank, dims), n_axes, axes);
    om_trace_output(tr, "y", f(x));
    return om_trace_finish(tr);
}

#endif
