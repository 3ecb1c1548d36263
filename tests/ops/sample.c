/*
 * sample.c -- the checks that every operator sample goes through; see sample.h.
 */
#include "sample.h"

#include <math.h>
#include <stdarg.h>
#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "compute/move.h"
#include "autograd/engine.h"
#include "kernels/table.h"

/* ---- one run ------------------------------------------------------------------------------------
 */

typedef struct run {
    om_tensor *in[SAMPLE_IN], *out[SAMPLE_OUT], *grad[SAMPLE_IN];
    int n_out;
} run;

static bool is_float(const om_tensor *t) {
    return t->dtype == OM_F32 || t->dtype == OM_F64;
}

/* The record the last call left, seen on its way out. */
static om_op seen_op;
static uint32_t seen_in;
static int seen_calls;
static om_status watch(const om_call *c) {
    seen_op = c->op;
    seen_in = c->n_in;
    seen_calls++;
    return OM_OK;
}

/* Gradients of the inputs for fixed cotangents of all float outputs. */
static bool run_backward(const sample_op *op, run *r) {
    om_tensor *loss = NULL;
    bool any        = false;
    for (int k = 0; k < r->n_out; k++) {
        if (!is_float(r->out[k]) || !r->out[k]->record) continue;
        any          = true;
        om_tensor *g = sample_cotangent(r->out[k], k);
        if (!g) return false;
        if (r->n_out == 1) {
            if (om_backward_with(r->out[k], &(om_backward_opts){.grad = g}) != OM_OK) return false;
        } else {
            om_tensor *part = om_sum_all(om_mul(r->out[k], g));
            loss            = loss ? om_add(loss, part) : part;
            if (!loss) return false;
        }
    }
    if (!any) return true;
    if (loss && om_backward(loss) != OM_OK) return false;
    for (int k = 0; k < op->n_in; k++)
        r->grad[k] = r->in[k] ? om_grad_of(r->in[k]) : NULL;
    return true;
}

static void clear_grads(const sample_op *op, run *r) {
    for (int k = 0; k < op->n_in; k++)
        if (r->in[k]) om_clear_grad(r->in[k]);
}

/* The call, and backward when grads; false when something raised. */
static bool run_call(const sample_op *op, const sample *s, bool grads, run *r) {
    memset(r->out, 0, sizeof r->out);
    memset(r->grad, 0, sizeof r->grad);
    r->n_out = op->call(s, r->in, r->out);
    if (r->n_out < 1 || !r->out[0]) return false;
    return !grads || run_backward(op, r);
}

static bool run_all(const sample_op *op, const sample *s, const ref *v, sample_view view,
                    bool grads, run *r) {
    return sample_inputs(op, s, v, view, grads, r->in) && run_call(op, s, grads, r);
}

static void must(const sample_op *op, const sample *s, bool ok, const char *what) {
    om_error e;
    if (ok && om_pending() == OM_OK) return;
    om_catch(&e);
    SAMPLE_FAIL(op, s, "%s: %s: %s: %s", what, om_status_name(e.status), e.where, e.message);
}

/* ---- values -------------------------------------------------------------------------------------
 */

static bool near(double got, double want, double tol) {
    if (isnan(want) || isnan(got)) return isnan(want) && isnan(got);
    if (isinf(want) || isinf(got)) return want == got;
    return fabs(got - want) <= tol * (1 + fabs(want));
}

static void check_values(const sample_op *op, const sample *s, const run *r, const ref *want) {
    for (int k = 0; k < r->n_out; k++) {
        const om_tensor *y = r->out[k];
        if (!want[k].v) SAMPLE_FAIL(op, s, "output %d has no reference", k);
        if (y->dtype != want[k].dtype || y->rank != want[k].rank ||
            memcmp(y->shape, want[k].shape, sizeof(int64_t) * y->rank) != 0) {
            ref w = want[k];
            SAMPLE_FAIL(op, s, "output %d is %s, not of type %d, rank %d, %lld elements", k,
                        OMI_T(y), (int)w.dtype, w.rank, (long long)w.n);
        }
        double tol = s->tol != 0          ? s->tol
                     : y->dtype == OM_F32 ? 2e-6
                     : y->dtype == OM_F64 ? 1e-12
                                          : 0;
        for (int64_t i = 0; i < want[k].n; i++) {
            double w = want[k].v[i], got = sample_element(y, i);
            if (y->dtype == OM_F32) w = (double)(float)w; // overflow to infinity, as the type does
            if (!near(got, w, tol))
                SAMPLE_FAIL(op, s, "output %d element %lld is %.9g, want %.9g", k, (long long)i,
                            got, w);
        }
    }
}

bool sample_same_bits(const om_tensor *a, const om_tensor *b) {
    if (!a || !b) return !a && !b;
    if (!omi_same_shape(a, b) || a->dtype != b->dtype) return false;
    for (int64_t i = 0, n = omi_numel(a); i < n; i++) {
        double x = sample_element(a, i), y = sample_element(b, i);
        if (isnan(x) && isnan(y)) continue;
        if (memcmp(&x, &y, sizeof x) != 0) return false;
    }
    return true;
}

static void check_same(const sample_op *op, const sample *s, const run *a, const run *b,
                       const char *what) {
    if (a->n_out != b->n_out)
        SAMPLE_FAIL(op, s, "%s: %d outputs, not %d", what, b->n_out, a->n_out);
    for (int k = 0; k < a->n_out; k++)
        if (!sample_same_bits(a->out[k], b->out[k]))
            SAMPLE_FAIL(op, s, "%s: output %d has other bits", what, k);
    for (int k = 0; k < op->n_in; k++)
        if (!sample_same_bits(a->grad[k], b->grad[k]))
            SAMPLE_FAIL(op, s, "%s: the gradient of input %d has other bits", what, k);
}

/* ---- gradients
 * ----------------------------------------------------------------------------------- */

/* sum of cotangent * output of the reference. */
static double reference_loss(const sample_op *op, const sample *s, const ref *v, const run *r,
                             double *const *cot) {
    ref out[SAMPLE_OUT] = {{0}};
    double total        = 0;
    op->reference(s, v, out);
    for (int k = 0; k < r->n_out; k++) {
        for (int64_t i = 0; cot[k] && i < out[k].n; i++)
            total += cot[k][i] * out[k].v[i];
    }
    for (int k = 0; k < SAMPLE_OUT; k++)
        ref_free(&out[k]);
    return total;
}

static void check_gradient_of(const sample_op *op, const sample *s, ref *v, const run *r, int k,
                              double *const *cot) {
    double tol = s->grad_tol != 0 ? s->grad_tol : v[k].dtype == OM_F64 ? 1e-7 : 2e-5;
    for (int64_t i = 0; i < v[k].n; i++) {
        double x = v[k].v[i], h = 1e-5 * (1 + fabs(x));
        v[k].v[i]   = x + h;
        double up   = reference_loss(op, s, v, r, cot);
        v[k].v[i]   = x - h;
        double down = reference_loss(op, s, v, r, cot);
        v[k].v[i]   = x;
        double want = (up - down) / (2 * h), got = r->grad[k] ? sample_element(r->grad[k], i) : 0;
        if (!near(got, want, tol))
            SAMPLE_FAIL(op, s, "gradient of input %d element %lld is %.9g, want %.9g", k,
                        (long long)i, got, want);
    }
}

static void check_gradients(const sample_op *op, const sample *s, ref *v, const run *r) {
    double *cot[SAMPLE_OUT] = {NULL};
    bool any                = false;
    for (int k = 0; k < r->n_out; k++) {
        if (!is_float(r->out[k]) || !r->out[k]->record) continue;
        om_tensor *g = sample_cotangent(r->out[k], k);
        must(op, s, g != NULL, "cotangent");
        cot[k] = calloc((size_t)omi_numel(g) + 1, sizeof(double));
        any    = true;
        for (int64_t i = 0; cot[k] && i < omi_numel(g); i++)
            cot[k][i] = sample_element(g, i);
    }
    for (int k = 0; any && k < op->n_in; k++)
        if (r->in[k] && is_float(r->in[k]) && !s->in[k].no_grad)
            check_gradient_of(op, s, v, r, k, cot);
    for (int k = 0; k < SAMPLE_OUT; k++)
        free(cot[k]);
}

/* ---- failures
 * ------------------------------------------------------------------------------------- */

/* With the cancel flag raised, the call gives nothing and says so. */
static void check_cancelled(const sample_op *op, const sample *s, run *r) {
    om_cancel c                = {.raised = 1};
    om_tensor *out[SAMPLE_OUT] = {0};
    om_error e;
    om_set_cancel(&c);
    op->call(s, r->in, out);
    om_set_cancel(NULL);
    if (out[0]) SAMPLE_FAIL(op, s, "gave a result although the cancel flag was raised");
    if (om_catch(&e) != OM_ERR_CANCELLED)
        SAMPLE_FAIL(op, s, "did not say that it was cancelled: %s", e.message);
}

/* With an error pending, the call does nothing and the error stays. */
static void check_pending(const sample_op *op, const sample *s, run *r) {
    omi_fail(OM_ERR_STATE, "left by the test");
    om_tensor *out[SAMPLE_OUT] = {NULL};
    int64_t live               = om_live_tensors();
    seen_calls                 = 0;
    (void)op->call(s, r->in, out);
    om_error e;
    if (out[0]) SAMPLE_FAIL(op, s, "gave a result while an error was pending");
    if (om_live_tensors() != live || seen_calls)
        SAMPLE_FAIL(op, s, "did something while an error was pending");
    if (om_catch(&e) != OM_ERR_STATE || strcmp(e.message, "left by the test") != 0)
        SAMPLE_FAIL(op, s, "replaced the pending error by: %s", e.message);
}

static int64_t live_blocks(void) {
    om_memory_stats m;
    om_memory(&m);
    return m.blocks;
}

/* Every allocation of the call and of backward fails once; then the same call must work. */
static void check_allocations(const sample_op *op, const sample *s, run *r, const run *golden,
                              bool grads) {
    for (int64_t n = 1;; n++) {
        om_scope scope = om_scope_begin();
        clear_grads(op, r);
        int64_t blocks = live_blocks();
        sample_alloc_fail(n);
        bool ok    = run_call(op, s, grads, r);
        bool spent = sample_alloc_fail(0) >= n; // the failing one was reached
        om_error e;
        if (spent && (ok || om_catch(&e) != OM_ERR_NOMEM))
            SAMPLE_FAIL(op, s, "allocation %lld failed and the call %s", (long long)n,
                        ok ? "did not notice" : "raised something else");
        if (!spent) {
            must(op, s, ok, "last round of failing allocations");
            check_same(op, s, golden, r, "after failing allocations");
        }
        om_scope_end(scope);
        clear_grads(op, r);
        memset(r->grad, 0, sizeof r->grad);
        if (live_blocks() != blocks)
            SAMPLE_FAIL(op, s, "%lld blocks stayed after allocation %lld failed",
                        (long long)(live_blocks() - blocks), (long long)n);
        if (!spent) return;
    }
}

/* A row that must fail: status, place, message, and nothing left behind. */
static void check_failure(const sample_op *op, const sample *s, run *r) {
    om_tensor *out[SAMPLE_OUT] = {NULL};
    om_scope scope             = om_scope_begin();
    om_error e;
    char public_name[64];
    snprintf(public_name, sizeof public_name, "om_%s", op->name);
    int64_t live = om_live_tensors();
    (void)op->call(s, r->in, out);
    om_status st = om_catch(&e);
    if (out[0] || st != s->fails)
        SAMPLE_FAIL(op, s, "%s, want %s: %s", om_status_name(st), om_status_name(s->fails),
                    e.message);
    if (!op->composite && !strstr(e.where, public_name))
        SAMPLE_FAIL(op, s, "the error names '%s', not %s", e.where, public_name);
    if (!e.message[0] || strchr(e.message, '\n') || (s->says && !strstr(e.message, s->says)))
        SAMPLE_FAIL(op, s, "the message is '%s', without '%s'", e.message, s->says ? s->says : "");
    om_scope_end(scope);
    if (om_live_tensors() != live) SAMPLE_FAIL(op, s, "tensors stayed alive");
}

/* ---- the checks of a row
 * ---------------------------------------------------------------------------- */

static void make_values(const sample_op *op, const sample *s, ref *v) {
    for (int k = 0; k < SAMPLE_IN; k++) {
        memset(&v[k], 0, sizeof v[k]);
        if (k < op->n_in) sample_values(op, s, k, &v[k]);
    }
}
static void free_values(ref *v) {
    for (int k = 0; k < SAMPLE_IN; k++)
        ref_free(&v[k]);
}

static void unit_row(const sample_op *op, const sample *s) {
    ref v[SAMPLE_IN];
    run r                = {0};
    ref want[SAMPLE_OUT] = {{0}};
    int64_t live         = om_live_tensors();
    om_scope scope       = om_scope_begin();
    make_values(op, s, v);
    bool grads = s->fails == OM_OK;
    must(op, s, sample_inputs(op, s, v, VIEW_AS_ROW, grads, r.in), "inputs");
    if (s->fails != OM_OK)
        check_failure(op, s, &r);
    else {
        seen_op          = -1;
        omi_record_watch = watch;
        must(op, s, run_call(op, s, false, &r), "call");
        omi_record_watch = NULL;
        if (!op->composite) {
            om_op_arity a = omi_op_arity(op->id);
            if (seen_op != op->id) SAMPLE_FAIL(op, s, "recorded %s", omi_op_name(seen_op));
            if ((int)seen_in < a.in_min || (a.in_max != 255 && (int)seen_in > a.in_max))
                SAMPLE_FAIL(op, s, "recorded %u inputs", seen_in);
        }
        op->reference(s, v, want);
        check_values(op, s, &r, want);
        run g = r;
        must(op, s, run_call(op, s, true, &g), "backward");
        if (!s->no_grad) check_gradients(op, s, v, &g);
        for (int k = 0; k < op->n_in; k++) // keep these gradients: the inputs are used again
            om_retain(g.grad[k]);
        check_pending(op, s, &r);
        check_cancelled(op, s, &r);
        check_allocations(op, s, &r, &g, true);
        for (int k = 0; k < op->n_in; k++)
            om_release(g.grad[k]);
    }
    om_scope_end(scope);
    for (int k = 0; k < SAMPLE_OUT; k++)
        ref_free(&want[k]);
    free_values(v);
    if (om_live_tensors() != live)
        SAMPLE_FAIL(op, s, "%lld tensors stayed alive", (long long)(om_live_tensors() - live));
}

void sample_check_unit(const sample_op *op) {
    for (int i = 0; i < op->n_samples; i++)
        unit_row(op, &op->samples[i]);
}

/* Strided inputs and every column of kernels give the bits of plain inputs on the default column.
 */
static void exact_row(const sample_op *op, const sample *s) {
    static const char *const views[] = {"plain", "transposed", "sliced", "broadcast",
                                        "as the row says"};
    ref v[SAMPLE_IN];
    run plain      = {0};
    om_scope scope = om_scope_begin();
    make_values(op, s, v);
    must(op, s, run_all(op, s, v, VIEW_PLAIN, true, &plain), "plain");
    for (sample_view w = VIEW_TRANSPOSED; w <= VIEW_AS_ROW; w++) {
        if (w == VIEW_BROADCAST) continue; // only where a row asks for it: its values repeat
        run r = {0};
        must(op, s, run_all(op, s, v, w, true, &r), views[w]);
        check_same(op, s, &plain, &r, views[w]);
    }
    for (om_column c = 0; c < OM_COL_COUNT; c++) {
        if (!omi_kernels_of(c)) continue;
        omi_kernels_force((int)c);
        run r   = {0};
        bool ok = run_all(op, s, v, VIEW_PLAIN, true, &r);
        omi_kernels_force(-1);
        must(op, s, ok, omi_kernels_of(c)->name);
        check_same(op, s, &plain, &r, omi_kernels_of(c)->name);
    }
    om_scope_end(scope);
    free_values(v);
    sample_trace_check(op, s);
}

void sample_check_exact(const sample_op *op) {
    for (int i = 0; i < op->n_samples; i++)
        if (op->samples[i].fails == OM_OK) exact_row(op, &op->samples[i]);
}
