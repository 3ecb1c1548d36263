/*
 * sample_dump.c -- `test_ops dump`: every row that works as one line of JSON, with inputs, options,
 * outputs, the gradients given and the gradients found. tools/torch_ops_check.py compares them.
 */
#include <math.h>
#include <stdio.h>

#include "sample.h"

/* As Python's json reads it. */
static void put_number(const char *before, double v) {
    if (isnan(v))
        printf("%sNaN", before);
    else if (isinf(v))
        printf("%s%s", before, v > 0 ? "Infinity" : "-Infinity");
    else
        printf("%s%.17g", before, v);
}

static void put_tensor(const om_tensor *t) {
    if (!t) {
        printf("null");
        return;
    }
    printf("{\"type\":\"%s\",\"shape\":[", om_dtype_name((om_dtype)t->dtype));
    for (int i = 0; i < t->rank; i++)
        printf("%s%lld", i ? "," : "", (long long)t->shape[i]);
    printf("],\"v\":[");
    for (int64_t i = 0; i < omi_numel(t); i++)
        put_number(i ? "," : "", sample_element(t, i));
    printf("]}");
}

static void put_list(const char *name, int n, om_tensor *const *t) {
    printf(",\"%s\":[", name);
    for (int k = 0; k < n; k++) {
        printf("%s", k ? "," : "");
        put_tensor(t[k]);
    }
    printf("]");
}

static bool dump_row(const sample_op *op, const sample *s) {
    ref v[SAMPLE_IN];
    om_tensor *in[SAMPLE_IN] = {NULL}, *out[SAMPLE_OUT] = {NULL}, *cot[SAMPLE_OUT] = {NULL};
    om_tensor *grad[SAMPLE_IN] = {NULL};
    for (int k = 0; k < op->n_in; k++)
        sample_values(op, s, k, &v[k]);
    bool ok = sample_inputs(op, s, v, VIEW_AS_ROW, true, in);
    int n   = ok ? op->call(s, in, out) : 0;
    for (int k = 0; k < n; k++) // one output at a time: gradients add up
        if (out[k] && out[k]->record && (out[k]->dtype == OM_F32 || out[k]->dtype == OM_F64)) {
            cot[k] = sample_cotangent(out[k], k);
            om_backward_with(out[k], OM_OPTS(backward, .grad = cot[k], .retain_graph = true));
        }
    for (int k = 0; k < op->n_in; k++)
        grad[k] = in[k] ? om_grad_of(in[k]) : NULL;
    if (om_pending() == OM_OK) {
        printf("{\"op\":\"%s\",\"row\":\"%s\",\"no_grad\":%s,\"i\":[", op->name, s->name,
               s->no_grad ? "true" : "false");
        for (int k = 0; k < SAMPLE_INTS; k++)
            printf("%s%lld", k ? "," : "", (long long)s->i[k]);
        printf("],\"f\":[");
        for (int k = 0; k < 4; k++)
            put_number(k ? "," : "", s->f[k]);
        printf("]");
        put_list("in", op->n_in, in);
        put_list("out", n, out);
        put_list("given", n, cot);
        put_list("grad", op->n_in, grad);
        printf("}\n");
    }
    for (int k = 0; k < op->n_in; k++)
        ref_free(&v[k]);
    return om_pending() == OM_OK;
}

bool sample_dump(const sample_op *op) {
    bool ok = true;
    for (int i = 0; ok && i < op->n_samples; i++) {
        if (op->samples[i].fails != OM_OK) continue;
        om_scope scope = om_scope_begin();
        ok             = dump_row(op, &op->samples[i]);
        om_scope_end(scope);
    }
    return ok;
}
