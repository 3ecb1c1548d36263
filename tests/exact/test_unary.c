/*
 * test_unary.c -- one-input functions: correctly rounded where AR-5.1 says so, against MPFR (or,
 * without it, against the C library in float64 with every candidate near a midpoint allowed), the
 * same in every column, in every layout. tests/long/long_unary.c covers all 2^32 inputs.
 */
#include "exact/plane.h"

#include "compute/elementwise.h"
#ifdef OM_HAVE_MPFR
#    include <mpfr.h>
#endif

static const struct {
    const char *name;
    om_unary_kind kind;
} rounded[] = {{"exp", OM_U_EXP},         {"log", OM_U_LOG}, {"tanh", OM_U_TANH},
               {"sigmoid", OM_U_SIGMOID}, {"erf", OM_U_ERF}, {"gelu", OM_U_GELU},
               {"sin", OM_U_SIN},         {"cos", OM_U_COS}};

/* ---- references ---------------------------------------------------------------------------- */

#ifdef OM_HAVE_MPFR
/* 400 bits settle every case: x Phi(x) of the smallest x differs from x/2 in bit 280. */
static mpfr_t ref_x, ref_t, ref_u;

static void ref_start(void) {
    mpfr_inits2(400, ref_x, ref_t, ref_u, (mpfr_ptr)0);
}
static void ref_stop(void) {
    mpfr_clears(ref_x, ref_t, ref_u, (mpfr_ptr)0);
    mpfr_free_cache();
}

static void ref_eval(om_unary_kind k) {
    switch (k) {
    case OM_U_EXP:
        mpfr_exp(ref_t, ref_x, MPFR_RNDN);
        break;
    case OM_U_LOG:
        mpfr_log(ref_t, ref_x, MPFR_RNDN);
        break;
    case OM_U_TANH:
        mpfr_tanh(ref_t, ref_x, MPFR_RNDN);
        break;
    case OM_U_ERF:
        mpfr_erf(ref_t, ref_x, MPFR_RNDN);
        break;
    case OM_U_SIN:
        mpfr_sin(ref_t, ref_x, MPFR_RNDN);
        break;
    case OM_U_COS:
        mpfr_cos(ref_t, ref_x, MPFR_RNDN);
        break;
    case OM_U_SIGMOID:
        mpfr_neg(ref_t, ref_x, MPFR_RNDN);
        mpfr_exp(ref_t, ref_t, MPFR_RNDN);
        mpfr_add_ui(ref_t, ref_t, 1, MPFR_RNDN);
        mpfr_ui_div(ref_t, 1, ref_t, MPFR_RNDN);
        break;
    default: /* x erfc(-x / sqrt 2) / 2 */
        mpfr_sqrt_ui(ref_u, 2, MPFR_RNDN);
        mpfr_div(ref_t, ref_x, ref_u, MPFR_RNDN);
        mpfr_neg(ref_t, ref_t, MPFR_RNDN);
        mpfr_erfc(ref_t, ref_t, MPFR_RNDN);
        mpfr_mul(ref_t, ref_t, ref_x, MPFR_RNDN);
        mpfr_div_ui(ref_t, ref_t, 2, MPFR_RNDN);
        break;
    }
}
/* True when y is what x must give. */
static bool ref_agrees(om_unary_kind k, float x, float y) {
    float want;
    if (k == OM_U_GELU && x == -INFINITY) {
        want = -0.0f; /* the limit; inf times 0 would be NaN */
    } else if (x == 0.0f && k != OM_U_EXP && k != OM_U_COS && k != OM_U_SIGMOID && k != OM_U_LOG) {
        want = x;
    } else {
        mpfr_set_flt(ref_x, x, MPFR_RNDN);
        ref_eval(k);
        want = mpfr_get_flt(ref_t, MPFR_RNDN);
    }
    return canon32(want) == canon32(y);
}
#else
static void ref_start(void) {}
static void ref_stop(void) {}
static double ref_double(om_unary_kind k, double x) {
    switch (k) {
    case OM_U_EXP:
        return exp(x);
    case OM_U_LOG:
        return log(x);
    case OM_U_TANH:
        return tanh(x);
    case OM_U_ERF:
        return erf(x);
    case OM_U_SIN:
        return sin(x);
    case OM_U_COS:
        return cos(x);
    case OM_U_SIGMOID:
        return 1.0 / (1.0 + exp(-x));
    default:
        return x == -INFINITY ? -0.0 : x * 0.5 * erfc(-x * 0.70710678118654752440);
    }
}
static bool ref_agrees(om_unary_kind k, float x, float y) {
    double r = ref_double(k, (double)x), m = k == OM_U_GELU ? 0x1p-43 : 0x1p-49;
    if (r != r) return y != y;
    return canon32(y) == canon32((float)(r * (1 - m))) ||
           canon32(y) == canon32((float)(r * (1 + m)));
}
#endif

/* ---- correct rounding ---------------------------------------------------------------------- */

/* Inputs whose exact result lies so near a midpoint of two float32 that float64 cannot tell. */
static const float hard[] = {0x1.827a74p-7f,   0x1.2f1fd6p+3f,  0x1.bacb4ap+25f,  0x1.b121a6p+76f,
                             0x1.6351d8p+95f,  0x1.81d5acp-13f, 0x1.954ecap-25f,  0x1.6148dep-16f,
                             0x1.051d12p-15f,  0x1.33333p+13f,  0x1.3170fp+63f,   0x1.2b9622p+67f,
                             -0x1.250c02p-10f, 0x1.250c02p-10f, -0x1.81d5acp-13f, -0x1.33333p+13f,
                             -0x1.3170fp+63f,  -0x1.2b9622p+67f};

#define STRIDE     110881 /* a prime: every exponent, no pattern in the low bits */
#define MAX_SAMPLE ((int64_t)(((uint64_t)1 << 32) / STRIDE) + 400)

static int64_t sample(float *x) {
    int64_t n = 0;
    for (uint64_t u = 0; u < (uint64_t)1 << 32; u += STRIDE)
        x[n++] = from32((uint32_t)u);
    for (size_t i = 0; i < OM_COUNT(hard); i++)
        x[n++] = hard[i];
    for (size_t i = 0; i < OM_COUNT(test_specials); i++)
        x[n++] = test_specials[i];
    for (int i = 0; i < 100; i++) { /* near zero, subnormal, and where functions saturate */
        x[n++] = from32((uint32_t)i * 7 + 1);
        x[n++] = 0x1p-14f + (float)(i - 50) * 0x1p-38f;
        x[n++] = 88.7f + (float)i * 0.0005f;
    }
    return n;
}

/* Accepted together with the references of this file; one per function, in the order of `rounded`.
 */
static const uint64_t accepted[] = {0x238caf9051d35c62u, 0xa51f77f48ae47d6cu, 0xc4a40f810b81a7b1u,
                                    0xae93b8dfffc48755u, 0xc5b4d48753f238dau, 0x215ed20b5080ffaau,
                                    0x12fca0644f5f131fu, 0xe1dd7d2c84c56445u};

static void test_correctly_rounded(void **state) {
    (void)state;
    float *x = malloc(sizeof(float) * MAX_SAMPLE), *y = malloc(sizeof(float) * MAX_SAMPLE);
    int64_t n = sample(x);
    ref_start();
    for (size_t f = 0; f < OM_COUNT(rounded); f++) {
        FOR_COLUMNS(c) {
            om_view vx = VIEW(x, OM_F32, n), vy = VIEW(y, OM_F32, n);
            omi_unary(rounded[f].kind, &vx, &vy, false);
            for (int64_t i = 0; c == 0 && i < n; i++)
                if (!ref_agrees(rounded[f].kind, x[i], y[i]))
                    fail_msg("%s(%a) = %a is not correctly rounded", rounded[f].name, (double)x[i],
                             (double)y[i]);
            char what[40];
            snprintf(what, sizeof what, "%s, column %s", rounded[f].name, omi_kernels()->name);
            expect_hash(what, hash_floats(HASH_START, y, n), accepted[f]);
        }
    }
    omi_kernels_force(-1);
    ref_stop();
    free(x);
    free(y);
}

/* ---- the rest of the rules ----------------------------------------------------------------- */

static float one(om_unary_kind k, float x) {
    float y;
    om_view vx = VIEW(&x, OM_F32, 1), vy = VIEW(&y, OM_F32, 1);
    omi_unary(k, &vx, &vy, false);
    return y;
}

/* The definition of AR-7.5 from functions that the first test has checked. */
static float by_rule(om_unary_kind k, float x) {
    switch (k) {
    case OM_U_NEG:
        return x != x ? NAN : from32(bits32(x) ^ 0x80000000u);
    case OM_U_ABS:
        return x != x ? NAN : from32(bits32(x) & 0x7fffffffu);
    case OM_U_SQRT:
        return sqrtf(x);
    case OM_U_RELU:
        return 0.0f > x ? 0.0f : x;
    case OM_U_RECIPROCAL:
        return 1.0f / x;
    case OM_U_SILU:
        return x * one(OM_U_SIGMOID, x);
    default: {
        volatile float xx = x * x, u = xx * x, v = 0.044715f * u, w = x + v, z = 0x1.988454p-1f * w;
        volatile float t = 1.0f + one(OM_U_TANH, z), h = 0.5f * x;
        return h * t;
    }
    }
}

static void test_plain_and_composite(void **state) {
    (void)state;
    static const om_unary_kind kinds[] = {OM_U_NEG,        OM_U_ABS,  OM_U_SQRT,     OM_U_RELU,
                                          OM_U_RECIPROCAL, OM_U_SILU, OM_U_GELU_TANH};
    float *x = malloc(sizeof(float) * MAX_SAMPLE), *y = malloc(sizeof(float) * MAX_SAMPLE);
    float *want = malloc(sizeof(float) * MAX_SAMPLE);
    int64_t n   = sample(x);
    for (size_t f = 0; f < OM_COUNT(kinds); f++) {
        omi_kernels_force(-1);
        for (int64_t i = 0; i < n; i++)
            want[i] = by_rule(kinds[f], x[i]);
        FOR_COLUMNS(c) {
            om_view vx = VIEW(x, OM_F32, n), vy = VIEW(y, OM_F32, n);
            omi_unary(kinds[f], &vx, &vy, false);
            assert_same_f32(y, want, n, "unary");
        }
    }
    omi_kernels_force(-1);
    assert_int_equal(bits32(one(OM_U_NEG, from32(0xffc00001u))), 0x7fc00000u);
    assert_int_equal(bits32(one(OM_U_ABS, from32(0xffc12345u))), 0x7fc00000u);
    assert_int_equal(bits32(one(OM_U_RELU, -0.0f)), 0x80000000u);
    free(x);
    free(y);
    free(want);
}

/* Every length up to three vectors, in place, and strided, broadcast and backward views. */
static void test_layouts(void **state) {
    (void)state;
    float x[7 * 50], y[7 * 50], want[7 * 50];
    fill_mixed(x, 350, 8.0f, true);
    FOR_COLUMNS(c) {
        for (int k = 0; k < OM_U_NOT; k++) {
            for (int64_t n = 0; n <= 50; n++) {
                om_view vx = VIEW(x, OM_F32, n), vy = VIEW(y, OM_F32, n);
                y[n] = 1234.5f;
                omi_unary((om_unary_kind)k, &vx, &vy, false);
                for (int64_t i = 0; i < n; i++)
                    want[i] = one((om_unary_kind)k, x[i]);
                assert_same_f32(y, want, n, "length");
                assert_true(y[n] == 1234.5f);
                memcpy(y, x, sizeof(float) * (size_t)n);
                omi_unary((om_unary_kind)k, &vy, &vy, false);
                assert_same_f32(y, want, n, "in place");
            }
            om_view v[3]    = {VIEW(x, OM_F32, 50, 7), VIEW(x, OM_F32, 5, 10, 7),
                               VIEW(x + 349, OM_F32, 350)};
            v[0].strides[0] = 1, v[0].strides[1] = 50; /* transposed */
            v[1].strides[1] = 0;                       /* broadcast  */
            v[1].strides[0] = 7;
            v[2].strides[0] = -1;
            for (int l = 0; l < 3; l++) {
                om_view vy = v[l];
                vy.data    = y;
                omi_view_pack_strides(&vy);
                omi_unary((om_unary_kind)k, &v[l], &vy, false);
                for (int64_t i = 0; i < 350; i++)
                    want[i] = one((om_unary_kind)k, at32(&v[l], i));
                assert_same_f32(y, want, 350, "layout");
            }
        }
    }
    omi_kernels_force(-1);
}

static void test_threads(void **state) {
    (void)state;
    int64_t n = 200003;
    float *x = malloc(sizeof(float) * (size_t)n), *y = malloc(sizeof(float) * (size_t)n);
    float *want = malloc(sizeof(float) * (size_t)n);
    om_view vx = VIEW(x, OM_F32, n), vy = VIEW(y, OM_F32, n), vw = VIEW(want, OM_F32, n);
    fill_mixed(x, n, 20.0f, true);
    om_set_threads(1);
    omi_unary(OM_U_GELU, &vx, &vw, false);
    static const int threads[] = {2, 3, 8};
    for (size_t t = 0; t < OM_COUNT(threads); t++) {
        om_set_threads(threads[t]);
        memset(y, 0, sizeof(float) * (size_t)n);
        omi_unary(OM_U_GELU, &vx, &vy, false);
        assert_same_f32(y, want, n, "threads");
    }
    om_set_threads(0);
    free(x);
    free(y);
    free(want);
}

/* ---- Fast mode ----------------------------------------------------------------------------- */

static double ulps(float got, double want) {
    if (got != got || want != want) return (got != got) == (want != want) ? 0 : 1e9;
    if (fabs(want) >= 0x1.ffffffp127) return isinf(got) || fabsf(got) == 0x1.fffffep127f ? 0 : 1e9;
    int e;
    double m = frexp(want, &e);
    (void)m;
    e = e - 24 < -149 ? -149 : e - 24;
    return fabs((double)got - want) / ldexp(1.0, e);
}

static void test_fast(void **state) {
    (void)state;
    static const om_unary_kind kinds[] = {OM_U_EXP, OM_U_TANH, OM_U_SIGMOID};
    float *x = malloc(sizeof(float) * MAX_SAMPLE), *y = malloc(sizeof(float) * MAX_SAMPLE);
    float *exact = malloc(sizeof(float) * MAX_SAMPLE), *first = malloc(sizeof(float) * MAX_SAMPLE);
    int64_t n  = sample(x);
    om_view vx = VIEW(x, OM_F32, n), vy = VIEW(y, OM_F32, n), ve = VIEW(exact, OM_F32, n);
    for (size_t f = 0; f < OM_COUNT(kinds); f++) {
        int64_t differ = 0;
        FOR_COLUMNS(c) {
            omi_unary(kinds[f], &vx, &vy, true);
            if (c == 0) memcpy(first, y, sizeof(float) * (size_t)n);
            assert_same_f32(y, first, n, "fast");
        }
        omi_kernels_force(-1);
        omi_unary(kinds[f], &vx, &ve, false);
        for (int64_t i = 0; i < n; i++) {
            double d = (double)x[i];
            double r = kinds[f] == OM_U_EXP    ? exp(d)
                       : kinds[f] == OM_U_TANH ? tanh(d)
                                               : 1 / (1 + exp(-d));
            if (ulps(y[i], r) > 2.0)
                fail_msg("fast %d(%a) = %a is %f ulp off", kinds[f], d, (double)y[i],
                         ulps(y[i], r));
            differ += canon32(y[i]) != canon32(exact[i]);
        }
        assert_true(differ > 0);
    }
    free(x);
    free(y);
    free(exact);
    free(first);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_correctly_rounded),
        cmocka_unit_test(test_plain_and_composite),
        cmocka_unit_test(test_layouts),
        cmocka_unit_test(test_threads),
        cmocka_unit_test(test_fast),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
