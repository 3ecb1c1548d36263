/*
 * schedule.c -- learning rates over time, in double with + - * / only (AR-11.3, CD-22).
 */
#include <math.h>

#include "optim/optim.h"

/* cos(y) and sin(y) for 0 <= y <= pi/4 (plus rounding) by their Taylor series, in Horner form; the
 * first term left out is below 2^-60. */
static double cos_small(double y) {
    static const double c[] = {
        -1.0 / 2,       1.0 / 24,        -1.0 / 720,         1.0 / 40320,
        -1.0 / 3628800, 1.0 / 479001600, -1.0 / 87178291200, 1.0 / 20922789888000};
    double z = y * y, s = c[7];
    for (int i = 6; i >= 0; i--)
        s = c[i] + z * s;
    return 1.0 + z * s;
}
static double sin_small(double y) {
    static const double c[] = {
        -1.0 / 6,        1.0 / 120,        -1.0 / 5040,          1.0 / 362880,
        -1.0 / 39916800, 1.0 / 6227020800, -1.0 / 1307674368000, 1.0 / 355687428096000};
    double z = y * y, s = c[7];
    for (int i = 6; i >= 0; i--)
        s = c[i] + z * s;
    return y + y * (z * s);
}

double omi_cospi(double x) {
    const double pi = 0x1.921fb54442d18p+1;
    if (x > 0.5) return -omi_cospi(1.0 - x); /* 1 - x is exact here */
    return x <= 0.25 ? cos_small(pi * x) : sin_small(pi * (0.5 - x));
}

/* x^k by squaring: a fixed order of multiplications, and short for any k. */
static double power(double x, int64_t k) {
    double r = 1.0;
    for (; k > 0; k >>= 1, x = x * x)
        if (k & 1) r = r * x;
    return r;
}

double omi_schedule_factor(const om_schedule *s, int64_t t) {
    if (s->kind == OM_SCHEDULE_STEP) return power(s->gamma, t / s->every);
    if (s->kind == OM_SCHEDULE_COSINE) {
        if (t < s->warmup) return (double)(t + 1) / (double)(s->warmup + 1);
        if (t >= s->total) return s->floor;
        double x = (double)(t - s->warmup) / (double)(s->total - s->warmup);
        return s->floor + (1.0 - s->floor) * ((1.0 + omi_cospi(x)) * 0.5);
    }
    return 1.0;
}

om_status om_schedule_step(om_optim *o, int64_t every, double gamma) {
    OMI_ENTER("om_schedule_step");
    if (omi_failed()) return om_pending();
    if (!o || every < 1 || !(gamma > 0.0) || isinf(gamma))
        return omi_fail(
            OM_ERR_ARG, "%s (every %lld, gamma %g); every must be at least 1, gamma above 0",
            o ? "a setting is out of range" : "the optimizer is NULL", (long long)every, gamma);
    o->schedule = (om_schedule){.kind = OM_SCHEDULE_STEP, .every = every, .gamma = gamma};
    return OM_OK;
}

om_status om_schedule_cosine(om_optim *o, int64_t total, int64_t warmup, double floor) {
    OMI_ENTER("om_schedule_cosine");
    if (omi_failed()) return om_pending();
    if (!o || warmup < 0 || total <= warmup || !(floor >= 0.0 && floor <= 1.0))
        return omi_fail(
            OM_ERR_ARG,
            "%s (total %lld, warmup %lld, floor %g); 0 <= warmup < total, floor in [0, 1]",
            o ? "a setting is out of range" : "the optimizer is NULL", (long long)total,
            (long long)warmup, floor);
    o->schedule =
        (om_schedule){.kind = OM_SCHEDULE_COSINE, .total = total, .warmup = warmup, .floor = floor};
    return OM_OK;
}
