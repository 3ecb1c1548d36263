/*
 * nan.c -- finds the operator that first makes a value that is not finite out of finite ones.
 *
 * It looks at every untraced call through the watch of autograd/engine.h, and at every gradient an
 * operator's backward makes. A result that is not finite while some input already was not is
 * somebody else's doing and passes: the first one was reported. Integers and bools are finite.
 */
#include <math.h>
#include <string.h>

#include "autograd/engine.h"
#include "base/str.h"

/* What is wrong with a tensor. */
typedef struct finding {
    int64_t bad, n, at[OM_MAX_RANK]; /* at: index of the first */
    double value;
} finding;

static double element(const om_tensor *t, int64_t at) {
    const void *base = t->storage->buf->data;
    return t->dtype == OM_F32 ? (double)((const float *)base)[at] : ((const double *)base)[at];
}

/* Scans t in row-major order. False when everything is finite; stop_at_first for inputs. */
static bool find_bad(const om_tensor *t, bool stop_at_first, finding *f) {
    *f = (finding){.n = omi_numel(t)};
    if (!(omi_type_bit((om_dtype)t->dtype) & OM_SET_FLOAT) || f->n == 0) return false;
    int64_t index[OM_MAX_RANK] = {0}, at = t->offset;
    for (int64_t i = 0; i < f->n; i++) {
        double v = element(t, at);
        if (!isfinite(v)) {
            if (f->bad++ == 0) {
                f->value = v;
                for (int k = 0; k < t->rank; k++)
                    f->at[k] = index[k];
            }
            if (stop_at_first) return true;
        }
        for (int k = t->rank - 1; k >= 0; k--) {
            at += t->strides[k];
            if (++index[k] < t->shape[k]) break;
            at -= index[k] * t->strides[k];
            index[k] = 0;
        }
    }
    return f->bad > 0;
}

static bool all_finite(uint32_t n, om_tensor *const *v) {
    finding f;
    for (uint32_t i = 0; i < n; i++)
        if (v[i] && find_bad(v[i], true, &f)) return false;
    return true;
}

static om_status tell(const char *op, const char *what, const om_tensor *t, const finding *f,
                      const char *module) {
    char at[160];
    omi_shape_text(at, sizeof at, t->rank, f->at);
    return omi_fail(OM_ERR_VALUE,
                    "%s%s%s made %s at %s of %s%s out of finite inputs (%lld of %lld elements)", op,
                    module && *module ? " of " : "", module ? module : "",
                    isnan(f->value) ? "NaN"
                    : f->value > 0  ? "inf"
                                    : "-inf",
                    at, what, OMI_T(t), (long long)f->bad, (long long)f->n);
}

/* Infinite because the caller said so. */
static bool on_request(const char *op) {
    static const char *const names[] = {"full_like", "causal_mask", "pad"};
    for (size_t i = 0; i < OM_COUNT(names); i++)
        if (strcmp(op, names[i]) == 0) return true;
    return false;
}

static om_status watch_call(const om_call *c) {
    const char *op = omi_op_layout(c->op)->name;
    if (on_request(op)) return OM_OK;
    finding f;
    for (uint32_t i = 0; i < c->n_out; i++)
        if (find_bad(c->out[i], false, &f) && all_finite(c->n_in, c->in))
            return tell(c->name ? c->name : op, "", c->out[i], &f, omi_module_path());
    return OM_OK;
}

static om_status watch_backward(const om_record *r, om_tensor *const *dy, om_tensor *const *dx) {
    finding f;
    for (uint32_t i = 0; i < r->n_in; i++) {
        if (!dx[i] || !find_bad(dx[i], false, &f) || !all_finite(r->n_out, dy)) continue;
        return tell(r->site.op ? r->site.op : omi_op_layout(r->op)->name, "its gradient ", dx[i],
                    &f, r->site.module);
    }
    return OM_OK;
}

bool om_nan_check(bool on) {
    bool was           = omi_record_watch != NULL;
    omi_record_watch   = on ? watch_call : NULL;
    omi_backward_watch = on ? watch_backward : NULL;
    return was;
}
