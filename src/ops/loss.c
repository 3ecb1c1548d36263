/*
 * loss.c -- losses: mean squared error and cross entropy are composites of recorded operators (O1);
 * negative log-likelihood is an operator of its own (AR-8).
 *
 * Target values are checked before anything is computed, so a wrong label fails by name instead of
 * reading beside the row.
 *
 * Needs: op.h, compute/reduce, compute/move.
 */
#include <string.h>

#include "base/opts.h"
#include "compute/move.h"
#include "compute/reduce.h"
#include "ops/op.h"

om_tensor *om_mse_loss(om_tensor *a, om_tensor *target) {
    OMI_ENTER("om_mse_loss");
    if (!omi_arg(a, "a") || !omi_arg(target, "target")) return NULL;
    if (!omi_same_shape(a, target)) // broadcasting here has hidden many a wrong target
        OM_FAIL_NULL(OM_ERR_SHAPE, "%s and target %s have different shapes", OMI_T(a),
                     OMI_T(target));
    om_scope s   = om_scope_begin(); // only the result is the caller's
    om_tensor *d = om_sub(a, target);
    return om_scope_return(s, om_mean_all(om_mul(d, d)));
}

/* ---- negative log-likelihood
 * ------------------------------------------------------------------------- */

/* logp as [n, c, inner], target as [n, inner]; all contiguous. */
typedef struct nll {
    int64_t n, c, inner, ignore;
    const float *logp, *weight; /* weight [c] or NULL */
    const int64_t *target;
} nll;

/* The position of a sample's entry in logp, or -1 when it is ignored. */
static int64_t nll_entry(const nll *k, int64_t sample) {
    int64_t t = k->target[sample];
    if (t == k->ignore) return -1;
    int64_t row = sample / k->inner, at = sample % k->inner;
    return (row * k->c + t) * k->inner + at;
}

static float nll_weight(const nll *k, int64_t sample) {
    if (k->target[sample] == k->ignore) return 0;
    return k->weight ? k->weight[k->target[sample]] : 1;
}

/* The unrounded sum of the weights that took part: the divisor of the mean. */
static bool nll_divisor(const nll *k, double *out) {
    int64_t n = k->n * k->inner;
    omi_work w;
    if (!omi_work_get(&w, (size_t)n * sizeof(float))) return false;
    float *v = w.data;
    for (int64_t i = 0; i < n; i++)
        v[i] = nll_weight(k, i);
    om_view all = {.data = v, .dtype = OM_F32, .rank = 1, .shape = {n}, .strides = {1}};
    *out        = omi_sum64(&all, false);
    omi_work_put(&w);
    return true;
}

/* f(sum of a) or f(sum of a / sum of w), a = -(w * logp), +0 where ignored. */
static bool nll_value(const nll *k, bool sum, float *out) {
    int64_t n = k->n * k->inner;
    omi_work w;
    double divisor = 1;
    if (!sum && !nll_divisor(k, &divisor)) return false;
    if (!omi_work_get(&w, (size_t)n * sizeof(float))) return false;
    float *v = w.data;
    for (int64_t i = 0; i < n; i++) {
        int64_t at = nll_entry(k, i);
        float p    = at < 0 ? 0 : k->logp[at];
        if (at >= 0 && k->weight) p = nll_weight(k, i) * p;
        v[i] = at < 0 ? 0 : -p;
    }
    om_view all  = {.data = v, .dtype = OM_F32, .rank = 1, .shape = {n}, .strides = {1}};
    double total = omi_sum64(&all, false);
    *out         = (float)(sum ? total : total / divisor);
    omi_work_put(&w);
    return true;
}

static void nll_shape(nll *k, const om_tensor *logp) {
    k->n     = logp->shape[0];
    k->c     = logp->shape[1];
    k->inner = 1;
    for (int i = 2; i < logp->rank; i++)
        k->inner *= logp->shape[i];
}

/* dlogp = -g w_t / (sum of w) at the target, left to right in float32; +0 elsewhere. */
static om_status nll_backward(const om_record *r, om_tensor *const *dy, om_tensor **dx) {
    if (!dy[0] || !omi_needs(r, 0)) return OM_OK;
    const om_nll_loss_raw *a = r->raw;
    om_tensor *tp = omi_pack(omi_saved_in(r, 1)), *d = omi_new_like_in(r, 0);
    om_tensor *wp = omi_in_there(r, 2) ? omi_pack(omi_saved_in(r, 2)) : NULL;
    if (!tp || (omi_in_there(r, 2) && !wp) || !d) return omi_pending_status;
    nll k = {.ignore = a->ignore_index, .target = omi_ptr(tp), .weight = wp ? omi_ptr(wp) : NULL};
    nll_shape(&k, d);
    double divisor = 1;
    if (!a->sum && !nll_divisor(&k, &divisor)) return omi_pending_status;
    om_view dv               = omi_view(d);
    static const double zero = 0;
    omi_fill(&dv, &zero);
    float *out = omi_ptr(d), g = -*(const float *)omi_ptr(dy[0]);
    for (int64_t i = 0; i < k.n * k.inner; i++) {
        int64_t at = nll_entry(&k, i);
        if (at < 0) continue;
        float v = k.weight ? g * nll_weight(&k, i) : g;
        out[at] = a->sum ? v : v / (float)divisor;
    }
    dx[0] = d;
    return OM_OK;
}

static bool nll_args(om_tensor *logp, om_tensor *target, om_tensor *weight) {
    if (!omi_arg(logp, "logp") || !omi_arg(target, "target") ||
        (weight && !omi_arg(weight, "weight")))
        return false;
    if (!omi_need_dtype(logp, OMI_TYPE_F32) || !omi_need_dtype(target, OMI_TYPE_I64) ||
        (weight && !omi_need_dtype(weight, OMI_TYPE_F32)))
        return false;
    bool fits =
        logp->rank >= 2 && target->rank == logp->rank - 1 && target->shape[0] == logp->shape[0];
    for (int i = 1; fits && i < target->rank; i++)
        fits = target->shape[i] == logp->shape[i + 1];
    if (!fits)
        omi_fail(OM_ERR_SHAPE, "target %s does not fit logp %s; [N, ..] and [N, C, ..] are needed",
                 OMI_T(target), OMI_T(logp));
    else if (weight && (weight->rank != 1 || weight->shape[0] != logp->shape[1]))
        omi_fail(OM_ERR_SHAPE, "weight %s does not fit logp %s; [%lld] is needed", OMI_T(weight),
                 OMI_T(logp), (long long)logp->shape[1]);
    return !omi_failed();
}

static bool nll_targets_ok(const nll *k, om_tensor *target) {
    for (int64_t i = 0; i < k->n * k->inner; i++) {
        int64_t t = k->target[i];
        if (t == k->ignore || (t >= 0 && t < k->c)) continue;
        omi_fail(
            OM_ERR_VALUE,
            "target %s holds %lld at position %lld; classes are 0 to %lld, and %lld is ignored",
            OMI_T(target), (long long)t, (long long)i, (long long)k->c - 1, (long long)k->ignore);
        return false;
    }
    return true;
}

om_tensor *om_nll_loss(om_tensor *logp, om_tensor *target, const om_nll_opts *opts) {
    OMI_ENTER("om_nll_loss");
    om_nll_opts o;
    if (omi_failed() || !OMI_OPTS(&o, opts, sum)) return NULL;
    om_tensor *weight = o.weight;
    if (!nll_args(logp, target, weight)) return NULL;
    bool sum       = o.sum;
    int64_t ignore = o.ignore_index || o.ignore_zero ? o.ignore_index : -100;
    om_tensor *y   = omi_new(OM_F32, 0, NULL);
    om_tensor *lp = y ? omi_pack(logp) : NULL, *tp = lp ? omi_pack(target) : NULL;
    om_tensor *wp = tp && weight ? omi_pack(weight) : NULL;
    if (!tp || (weight && !wp)) return NULL;
    nll k = {.ignore = ignore,
             .logp   = omi_ptr(lp),
             .target = omi_ptr(tp),
             .weight = wp ? omi_ptr(wp) : NULL};
    nll_shape(&k, logp);
    if (!nll_targets_ok(&k, target) || !nll_value(&k, sum, omi_ptr(y))) return NULL;
    omi_drop_packed(wp, weight);
    omi_drop_packed(tp, target);
    omi_drop_packed(lp, logp);
    om_nll_loss_raw a = {.ignore_index = ignore, .sum = sum};
    return omi_record1(OM_OP_NLL_LOSS, &a, NULL, 3, (om_tensor *[]){logp, target, weight}, y,
                       nll_backward, OM_SAVE_IN(1) | (weight ? OM_SAVE_IN(2) : 0));
}

om_tensor *om_cross_entropy_with(om_tensor *logits, om_tensor *target, const om_nll_opts *opts) {
    OMI_ENTER("om_cross_entropy_with");
    if (!omi_arg(logits, "logits")) return NULL;
    if (logits->rank < 2)
        OM_FAIL_NULL(OM_ERR_SHAPE, "logits %s; [N, C] or [N, C, ..] is needed", OMI_T(logits));
    om_scope s = om_scope_begin(); // only the result is the caller's
    return om_scope_return(s, om_nll_loss(om_log_softmax(logits, 1), target, opts));
}

om_tensor *om_cross_entropy(om_tensor *logits, om_tensor *target) {
    OMI_ENTER("om_cross_entropy");
    return om_cross_entropy_with(logits, target, NULL);
}
