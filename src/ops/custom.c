/*
 * custom.c -- operators of the caller, by callbacks.
 *
 * While a trace records and an input is traced, the lowering callback runs instead, so that what is
 * recorded are library operators; without one the call is refused by name (CD-12).
 */
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

static om_status custom_backward(const om_record *r, om_tensor *const *dy, om_tensor **dx) {
    const custom *c  = r->extra;
    om_tensor **outs = omi_alloc(r->n_out * sizeof *outs);
    if (!outs) return omi_pending_status;
    om_tensor **ins = omi_alloc((r->n_in ? r->n_in : 1) * sizeof *ins);
    om_status st    = ins ? OM_OK : omi_pending_status;
    if (ins) {
        for (uint32_t i = 0; i < r->n_out; i++)
            outs[i] = r->saved[i].t;
        for (uint32_t i = 0; i < r->n_in; i++)
            ins[i] = r->in[i].t;
        int code = c->op.backward(c->op.ctx, (int)r->n_in, ins, (int)r->n_out, outs, dy, dx);
        if (code || omi_failed()) st = callback_failed(c->op.name, "backward", code);
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

static om_status check_outputs(const om_custom_op *op, int n_in, om_tensor *const *in, int n_out,
                               om_tensor **out) {
    for (int i = 0; i < n_out; i++) {
        if (!out[i]) return omi_fail(OM_ERR_ARG, "'%s' left output %d unset", op->name, i);
        for (int k = 0; k < n_in; k++)
            if (out[i] == in[k])
                return omi_fail(OM_ERR_ARG, "'%s' returned its input %d; return om_clone of it",
                                op->name, k);
    }
    return OM_OK;
}

om_status om_custom(const om_custom_op *op, int n_in, om_tensor *const *in, int n_out,
                    om_tensor **out) {
    OMI_ENTER("om_custom");
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
                                    : check_outputs(op, n_in, in, n_out, out);
    }
    bool off = omi_no_grad();
    int code = op->forward(op->ctx, n_in, in, n_out, out);
    omi_grad_restore(off);
    if (code || omi_failed()) return callback_failed(op->name, "forward", code);
    OM_TRY(check_outputs(op, n_in, in, n_out, out));
    custom *extra = NULL;
    if (op->backward) {
        if (!(extra = omi_alloc(sizeof *extra))) return omi_pending_status;
        extra->op      = *op;
        extra->op.name = omi_intern(op->name);
    }
    om_call c    = {.op         = OM_OP_CUSTOM,
                    .name       = omi_intern(op->name),
                    .n_in       = (uint32_t)n_in,
                    .n_out      = (uint32_t)n_out,
                    .save_mask  = OM_SAVE_ALL_IN | 0xffff0000u,
                    .in         = in,
                    .out        = out,
                    .backward   = op->backward ? custom_backward : NULL,
                    .extra      = extra,
                    .extra_free = extra ? custom_free : NULL};
    om_status st = omi_record(&c);
    return st;
}
