/*
 * sample_trace.c -- one row through trace -> session: the Exact session gives the eager bits, Fast
 * is near, and a graph that went through a file (format v1 and ONNX) is the same graph.
 *
 * The axes of the inputs are fixed, except for operators that read only shapes: of fixed shapes
 * those are constants, so every axis they may read gets a name. What tracing refuses must be
 * refused here too.
 */
#include "sample.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "onemodel/onnx.h"
#include "onemodel/session.h"
#include "onemodel/trace.h"
#include "trace/lower.h"

typedef struct passage {
    const sample_op *op;
    const sample *s;
    om_tensor *in[SAMPLE_IN], *out[SAMPLE_OUT];
    int n_out;
} passage;

static void need(const passage *p, bool ok, const char *what) {
    om_error e;
    if (ok && om_pending() == OM_OK) return;
    om_catch(&e);
    SAMPLE_FAIL(p->op, p->s, "%s: %s: %s: %s", what, om_status_name(e.status), e.where, e.message);
}

/* Losses, dropout and batch norm in training have no inference graph (TR-2). */
static bool refused(const passage *p) {
    if (p->op->id == OM_OP_BATCH_NORM2D) return p->s->i[0] != 0;
    return p->op->id != OM_OP_CUSTOM && omi_lower_rule(p->op->id)->refusal;
}

static bool reads_shapes_only(const passage *p) {
    return p->op->id == OM_OP_FULL_LIKE || p->op->id == OM_OP_ARANGE_LIKE ||
           p->op->id == OM_OP_CAUSAL_MASK;
}

/* Input k as a graph input. A symbol has one size, so sizes of at least two name their symbol. */
static om_tensor *declare(om_tracer *tr, const passage *p, int k) {
    const char *axes[OM_MAX_RANK] = {NULL};
    char symbols[OM_MAX_RANK][24], name[16];
    const om_tensor *t = p->in[k];
    snprintf(name, sizeof name, "x%d", k);
    for (int i = 0; reads_shapes_only(p) && i < t->rank; i++) {
        snprintf(symbols[i], sizeof symbols[i], "n%lld", (long long)t->shape[i]);
        if (t->shape[i] >= 2) axes[i] = symbols[i];
    }
    return om_trace_input(tr, name, p->in[k], t->rank, axes);
}

/* A row that failed must not leave its tracer to the next. */
static om_tracer *running;

/* NULL: the row cannot be a graph, as it should. */
static om_graph *traced(const passage *p) {
    om_tensor *ti[SAMPLE_IN] = {NULL}, *to[SAMPLE_OUT] = {NULL};
    om_error e;
    om_trace_abort(running);
    om_tracer *tr = running = om_trace_begin(NULL);
    need(p, tr != NULL, "om_trace_begin");
    for (int k = 0; k < p->op->n_in; k++)
        if (p->in[k]) need(p, (ti[k] = declare(tr, p, k)) != NULL, "om_trace_input");
    int n = p->op->call(p->s, ti, to);
    if (refused(p)) {
        if (to[0] || om_catch(&e) != OM_ERR_TRACE || e.trace_kind != OM_TRACE_UNSUPPORTED_OPERATION)
            SAMPLE_FAIL(p->op, p->s, "tracing was not refused");
        om_trace_abort(tr);
        running = NULL;
        return NULL;
    }
    need(p, n == p->n_out && to[0], "the call, traced");
    for (int k = 0; k < n; k++) {
        char name[16];
        snprintf(name, sizeof name, "y%d", k);
        if (om_trace_output(tr, name, to[k]) == OM_OK) continue;
        // Of fixed shapes only (sizes 0 and 1 cannot be named): a constant, and refused as an
        // output.
        if (reads_shapes_only(p) && om_catch(&e) == OM_ERR_TRACE &&
            e.trace_kind == OM_TRACE_INVALID_USAGE) {
            om_trace_abort(tr);
            running = NULL;
            return NULL;
        }
        need(p, false, "om_trace_output");
    }
    om_graph *g = om_trace_finish(tr);
    running     = NULL;
    need(p, g != NULL, "om_trace_finish");
    return g;
}

/* The largest magnitude: Fast may differ by 1e-5 of it. */
static double scale_of(const om_tensor *t) {
    double m = 1;
    for (int64_t i = 0; i < omi_numel(t); i++) {
        double v = fabs(sample_element(t, i));
        if (isfinite(v) && v > m) m = v;
    }
    return m;
}

static void compare(const passage *p, const om_tensor *want, const om_tensor *got, bool exact,
                    const char *what, int k) {
    if (!got || got->dtype != want->dtype || !omi_same_shape(want, got))
        SAMPLE_FAIL(p->op, p->s, "%s: output %d is %s, not %s", what, k, OMI_T(got), OMI_T(want));
    double tol = exact ? 0 : 1e-5 * scale_of(want);
    for (int64_t i = 0; i < omi_numel(want); i++) {
        double a = sample_element(want, i), b = sample_element(got, i);
        if (isnan(a) && isnan(b)) continue;
        bool same = exact ? memcmp(&a, &b, sizeof a) == 0 : a == b || fabs(a - b) <= tol;
        if (!same)
            SAMPLE_FAIL(p->op, p->s, "%s: output %d element %lld is %.9g, eager gave %.9g", what, k,
                        (long long)i, b, a);
    }
}

static void run_session(const passage *p, om_graph *g, om_arith arith, const char *what) {
    om_session *s = om_session_new(g, OM_OPTS(session, .arith = arith));
    need(p, s != NULL, what);
    om_binding b[SAMPLE_IN];
    om_tensor *out[SAMPLE_OUT] = {NULL};
    int n                      = om_session_n_inputs(s);
    for (int i = 0; i < n; i++) {
        om_value_info v;
        need(p, om_session_input(s, i, &v) == OM_OK, "om_session_input");
        b[i] = (om_binding){v.name, p->in[v.name[1] - '0']};
    }
    om_scope scope = om_scope_begin();
    need(p, om_session_run(s, n, b, p->n_out, out) == OM_OK, what);
    for (int k = 0; k < p->n_out; k++)
        compare(p, p->out[k], out[k], arith == OM_EXACT, what, k);
    om_scope_end(scope);
    om_session_free(s);
}

typedef om_status (*save_fn)(const om_graph *g, void **data, size_t *bytes);
static om_status save_v1(const om_graph *g, void **data, size_t *bytes) {
    return om_graph_save_memory(g, data, bytes);
}
static om_status save_onnx(const om_graph *g, void **data, size_t *bytes) {
    return om_graph_save_onnx_memory(g, NULL, data, bytes);
}

/* Save, load, save: equal bytes, and the loaded graph computes the same. */
static void through_a_file(const passage *p, om_graph *g, save_fn save, const char *what) {
    void *first, *second;
    size_t n_first, n_second;
    need(p, save(g, &first, &n_first) == OM_OK, what);
    om_graph *back = om_graph_load_memory(first, n_first, NULL);
    need(p, back != NULL, what);
    need(p, save(back, &second, &n_second) == OM_OK, what);
    if (n_first != n_second || memcmp(first, second, n_first) != 0)
        SAMPLE_FAIL(p->op, p->s, "%s: saved again, the bytes differ", what);
    run_session(p, back, OM_EXACT, what);
    om_graph_release(back);
    om_bytes_free(first, n_first);
    om_bytes_free(second, n_second);
}

void sample_trace_check(const sample_op *op, const sample *s) {
    passage p      = {.op = op, .s = s};
    om_scope scope = om_scope_begin();
    ref v[SAMPLE_IN];
    for (int k = 0; k < op->n_in; k++)
        sample_values(op, s, k, &v[k]);
    need(&p, sample_inputs(op, s, v, VIEW_AS_ROW, false, p.in), "inputs");
    p.n_out = op->call(s, p.in, p.out);
    need(&p, p.n_out > 0 && p.out[0], "the call");
    om_graph *g = traced(&p);
    if (g) {
        run_session(&p, g, OM_EXACT, "Exact");
        run_session(&p, g, OM_FAST, "Fast");
        through_a_file(&p, g, save_v1, "format v1");
        through_a_file(&p, g, save_onnx, "ONNX");
        om_graph_release(g);
    }
    om_scope_end(scope);
    for (int k = 0; k < op->n_in; k++)
        ref_free(&v[k]);
}
