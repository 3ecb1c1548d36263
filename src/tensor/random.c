/*
 * random.c -- tensors of random numbers, and the generators of a thread (AR-12).
 *
 * A generator is three words that the caller may copy; the functions take the blocks they need from
 * it, whatever they draw. Each thread has one generator for each stream, so that adding dropout
 * does not move the initial weights (AR-12.6). A fill tells the tracer, because a random tensor
 * made during a trace must not become a constant (TD-9).
 *
 * Needs: tensor.h, compute/random.
 */
#include "compute/random.h"

#include <math.h>

#include "base/thread.h"
#include "tensor/tensor.h"

om_rng om_rng_new(uint64_t seed, uint64_t stream) {
    return (om_rng){seed, stream, 0};
}

void om_seed(uint64_t seed) {
    om_state *s = omi_state();
    for (uint64_t i = 0; i < OM_COUNT(s->rngs); i++)
        s->rngs[i] = om_rng_new(seed, i);
}

om_rng *om_thread_rng(int stream) {
    OMI_ENTER("om_thread_rng");
    om_state *s = omi_state();
    if (!omi_state_lasts(s)) return NULL;
    if (stream < 0 || (size_t)stream >= OM_COUNT(s->rngs))
        OM_FAIL_NULL(OM_ERR_ARG, "stream %d; a thread has streams 0 to 3, om_rng_new makes others",
                     stream);
    return &s->rngs[stream];
}

/* The tensor to fill and the generator to fill it from. */
static om_tensor *random_begin(om_rng **g, om_dtype t, int rank, const int64_t *dims) {
    if (!*g) *g = &omi_state()->rngs[OM_STREAM_USER];
    return omi_new(t, rank, dims);
}

om_tensor *om_rand(om_rng *g, float lo, float hi, int rank, const int64_t *dims) {
    OMI_ENTER("om_rand");
    if (omi_failed()) return NULL;
    if (!(lo <= hi) || !isfinite(hi - lo))
        OM_FAIL_NULL(OM_ERR_ARG, "from %g to %g; lo must not be above hi, and both finite",
                     (double)lo, (double)hi);
    om_tensor *y = random_begin(&g, OM_F32, rank, dims);
    if (!y) return NULL;
    int64_t n = omi_numel(y);
    om_draw d = omi_draw32(g, n);
    if (lo < hi)
        omi_fill_uniform(d, lo, hi, n, omi_ptr(y));
    else // the interval is one number
        for (int64_t i = 0; i < n; i++)
            ((float *)omi_ptr(y))[i] = lo;
    omi_random_filled(y);
    return omi_check_cancel() == OM_OK ? y : NULL;
}

om_tensor *om_randn(om_rng *g, float mean, float std, int rank, const int64_t *dims) {
    OMI_ENTER("om_randn");
    if (omi_failed()) return NULL;
    if (!isfinite(mean) || !(std >= 0) || !isfinite(std))
        OM_FAIL_NULL(OM_ERR_ARG,
                     "mean %g, standard deviation %g; both must be finite, the "
                     "deviation not negative",
                     (double)mean, (double)std);
    om_tensor *y = random_begin(&g, OM_F32, rank, dims);
    if (!y) return NULL;
    int64_t n = omi_numel(y);
    omi_fill_normal(omi_draw32(g, n), mean, std, n, omi_ptr(y));
    omi_random_filled(y);
    return omi_check_cancel() == OM_OK ? y : NULL;
}

om_tensor *om_randint(om_rng *g, int64_t lo, int64_t hi, int rank, const int64_t *dims) {
    OMI_ENTER("om_randint");
    if (omi_failed()) return NULL;
    if (lo >= hi)
        OM_FAIL_NULL(OM_ERR_ARG, "from %lld to below %lld; there is no integer", (long long)lo,
                     (long long)hi);
    om_tensor *y = random_begin(&g, OM_I64, rank, dims);
    if (!y) return NULL;
    int64_t n = omi_numel(y);
    omi_fill_randint(omi_draw64(g, n), lo, hi, n, omi_ptr(y));
    omi_random_filled(y);
    return omi_check_cancel() == OM_OK ? y : NULL;
}

om_tensor *om_permutation(om_rng *g, int64_t n) {
    OMI_ENTER("om_permutation");
    if (omi_failed()) return NULL;
    if (n < 0) OM_FAIL_NULL(OM_ERR_ARG, "n is %lld; it must not be negative", (long long)n);
    om_tensor *y = random_begin(&g, OM_I64, 1, &n);
    if (!y) return NULL;
    omi_permutation(g, n, omi_ptr(y));
    omi_random_filled(y);
    return omi_check_cancel() == OM_OK ? y : NULL;
}
