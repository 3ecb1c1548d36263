/*
 * custom.c -- operators of the caller, by callbacks.
 *
 * While a trace records and an input is traced, the lowering callback runs instead, so that what is
 * recorded are library operators; without one the call is refused by name (CD-12).
 */
#include "base/opts.h"
#include "base/words.h"
#include "ops/op.h"

#include <string.h>

typedef struct custom {
    om_custom_op op;
} custom;

static void custom_free(void *extra) {
    omi_free(extra, sizeof(custom));
}

static om_status callback_failed(const char *name, const char *which, int code) {
    if (omi_failed()) return omi_pending_status;
    return omi_fail(OM_ERR_VALUE, "the %s callback of custom operator '%s' returned %d", which,
                    name, code);
}

static om_status check_gradients(const om_record *r, const char *name, om_tensor *const *dx) {
    for (uint32_t i = 0; i < r->n_in; i++) {
        int rank;
        const int64_t *shape = omi_in_shape(r, i, &rank);
        if (!dx[i] || !omi_in_there(r, i)) continue;
        if (dx[i]->rank == rank && dx[i]->dtype == r->in[i].dtype &&
            memcmp(dx[i]->shape, shape, (size_t)rank * sizeof *shape) == 0)
            continue;
        return omi_fail(
            OM_ERR_SHAPE,
            "the backward callback of custom operator '%s' gave %s as the gradient of input %u, "
            "which is %s: a gradient has the type and shape of its input",
            name, OMI_T(dx[i]), i, r->saved_in[i].t ? OMI_T(r->saved_in[i].t) : "another");
    }
    return OM_OK;
}

/* An operator without a backward callback amid a graph: said when a gradient is asked, not cut
 * without a word. */
static om_status no_backward(const om_record *r, om_tensor *const *dy, om_tensor **dx) {
    const custom *c = r->extra;
    (void)dy;
    (void)dx;
    return omi_fail(
        OM_ERR_UNSUPPORTED,
        "custom operator '%s' has no backward callback and a gradient goes through it; give one, or "
        "om_detach its inputs",
        c->op.name);
}

static om_status custom_backward(const om_record *r, om_tensor *const *dy, om_tensor **dx) {
    const custom *c  = r->extra;
    om_tensor **outs = omi_alloc(r->n_out * sizeof *outs);
    if (!outs) return omi_pending_status;
    om_tensor **ins = omi_alloc((r->n_in ? r->n_in : 1) * sizeof *ins);
    om_status st    = ins ? OM_OK : omi_pending_status;
    if (ins) {
        for (uint32_t i = 0; i < r->n_out; i++)
            outs[i] = r->saved_out[i].t;
        for (uint32_t i = 0; i < r->n_in; i++)
            ins[i] = r->saved_in[i].t;
        int code = c->op.backward(c->op.ctx, (int)r->n_in, ins, (int)r->n_out, outs, dy, dx);
        if (code || omi_failed())
            st = callback_failed(c->op.name, "backward", code);
        else
            st = check_gradients(r, c->op.name, dx);
        omi_free(ins, (r->n_in ? r->n_in : 1) * sizeof *ins);
    }
    omi_free(outs, r->n_out * sizeof *outs);
    return st;
}

static om_status check(const om_custom_op *op, int n_in, om_tensor *const *in, int n_out,
                       om_tensor **out) {
    if (omi_failed()) return omi_pending_status;
    if (!op || !op->name || !op->forward)
        return omi_fail(OM_ERR_ARG, "the custom operator has no name or no forward callback");
    if (n_in < 0 || n_in > 15 || (n_in && !in) || n_out < 1 || n_out > 16 || !out)
        return omi_fail(OM_ERR_ARG, "'%s': 0 to 15 inputs and 1 to 16 outputs are possible",
                        op->name);
    for (int i = 0; i < n_in; i++)
        if (in[i]) OM_TRY(omi_check_arg(in[i], "an input"));
    return OM_OK;
}

static bool some_traced(int n, om_tensor *const *in) {
    for (int i = 0; i < n; i++)
        if (in[i] && omi_traced(in[i])) return true;
    return false;
}

/* first: the id that was given out before the callback ran; what it made itself has a later one. */
static om_status check_custom_outputs(const om_custom_op *op, int n_in, om_tensor *const *in,
                                      int n_out, om_tensor **out, uint64_t first) {
    for (int i = 0; i < n_out; i++) {
        if (!out[i]) return omi_fail(OM_ERR_ARG, "'%s' left output %d unset", op->name, i);
        for (int k = 0; k < i; k++)
            if (out[i] == out[k])
                return omi_fail(
                    OM_ERR_ARG,
                    "'%s' returned one tensor as outputs %d and %d; return om_clone of it",
                    op->name, k, i);
        if (first && (out[i]->id <= first || out[i]->record || (out[i]->flags & OM_T_GRAD)))
            return omi_fail(
                OM_ERR_ARG,
                "'%s' returned %s, which it did not make in this call, as output %d; return om_clone of it",
                op->name, OMI_T(out[i]), i);
        for (int k = 0; k < n_in; k++)
            if (out[i] == in[k])
                return omi_fail(OM_ERR_ARG, "'%s' returned its input %d; return om_clone of it",
                                op->name, k);
    }
    return OM_OK;
}

/* Two computations of one thing: as near as float32 sums in another order are. */
static bool near_enough(const om_tensor *a, const om_tensor *b) {
    return a->dtype == b->dtype && omi_same_shape(a, b) && om_allclose(a, b, 1e-4, 1e-5);
}

/* What is recorded must be what the operator computes: forward runs too, on the same values
 * untraced, and both are compared. */
static om_status check_lowering(const om_custom_op *op, int n_in, om_tensor *const *in, int n_out,
                                om_tensor **out) {
    om_tensor *plain[15] = {0}, *want[16] = {0};
    OM_TRY(check_custom_outputs(op, n_in, in, n_out, out, 0));
    om_scope s   = om_scope_begin();
    bool off     = omi_no_grad();
    om_status st = OM_OK;
    for (int i = 0; i < n_in && st == OM_OK; i++)
        if (in[i] && !(plain[i] = omi_file_owned(omi_detached(in[i])))) st = om_pending();
    int code = st == OM_OK ? op->forward(op->ctx, n_in, plain, n_out, want) : 0;
    if (code || omi_failed()) st = callback_failed(op->name, "forward", code);
    for (int i = 0; i < n_out && st == OM_OK; i++) {
        om_tensor *got = omi_file_owned(omi_detached(out[i]));
        if (!got)
            st = om_pending();
        else if (!want[i] || !near_enough(got, want[i]))
            st = omi_fail_trace(
                OM_TRACE_INVALID_USAGE,
                "the lowering of custom operator '%s' computes another output %d than its forward "
                "on the example: %s; the graph would not be the model",
                op->name, i, OMI_T(got));
    }
    omi_grad_restore(off);
    om_scope_end(s);
    return st;
}

om_status om_custom(const om_custom_op *given, int n_in, om_tensor *const *in, int n_out,
                    om_tensor **out) {
    OMI_ENTER("om_custom");
    om_custom_op own;
    const om_custom_op *op = given ? &own : NULL;
    if (omi_failed() || !OMI_OPTS(&own, given, ctx)) return om_pending();
    OM_TRY(check(op, n_in, in, n_out, out));
    memset(out, 0, (size_t)n_out * sizeof *out);
    if (some_traced(n_in, in)) {
        if (!op->lowering)
            return omi_fail_trace(
                OM_TRACE_UNSUPPORTED_OPERATION,
                "custom operator '%s' has no lowering; give om_custom_op.lowering, "
                "the same computation with library operators",
                op->name);
        int code = op->lowering(op->ctx, n_in, in, n_out, out);
        return code || omi_failed() ? callback_failed(op->name, "lowering", code)
                                    : check_lowering(op, n_in, in, n_out, out);
    }
    uint64_t first = omi_next_id();
    bool off       = omi_no_grad();
    int code       = op->forward(op->ctx, n_in, in, n_out, out);
    omi_grad_restore(off);
    if (code || omi_failed()) return callback_failed(op->name, "forward", code);
    OM_TRY(check_custom_outputs(op, n_in, in, n_out, out, first));
    custom *extra = omi_alloc(sizeof *extra);
    if (!extra) return omi_pending_status;
    extra->op      = *op;
    extra->op.name = omi_intern(op->name);
    om_call c      = {.op         = OM_OP_CUSTOM,
                      .name       = omi_intern(op->name),
                      .n_in       = (uint32_t)n_in,
                      .n_out      = (uint32_t)n_out,
                      .save_mask  = op->backward ? OM_SAVE_ALL_IN | 0xffff0000u : 0,
                      .in         = in,
                      .out        = out,
                      .backward   = op->backward ? custom_backward : no_backward,
                      .extra      = extra,
                      .extra_free = custom_free};
    om_status st   = omi_record(&c);
    return st;
}
