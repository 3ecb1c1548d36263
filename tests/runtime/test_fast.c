/*
 * test_fast.c -- what Fast arithmetic may do and how far it goes: exp, tanh and what is built from
 * them by 1 to 2 ulp sequences, batch norm folded into convolution weights. Each has a bound
 * against Exact, and its bits must differ somewhere, or Fast would be Exact under another name.
 */
#include "runtime/build.h"

#include <math.h>

#define N 40000

/* Distance in units of the last place of b. */
static double ulps(float a, float b) {
    if (memcmp(&a, &b, 4) == 0 || a == b || (isnan(a) && isnan(b))) return 0;
    int e;
    frexpf(b, &e);
    double ulp = ldexp(1, (e < -125 ? -125 : e) - 24);
    return fabs((double)a - (double)b) / ulp;
}

static om_tensor *run_one(const char *type, const char *form, om_arith arith, om_tensor *x) {
    om_graph *g = begin(20);
    in(g, "x", OM_F32, "n,m");
    int32_t n = node(g, type, "x", "y");
    if (form) set_text(g, n, "approximate", form);
    out(g, "y");
    om_session *s = open_session(done(g), arith, 1);
    om_tensor *y  = om_session_call(s, x);
    check_ok();
    om_session_free(s);
    return y;
}

/* Largest distance of Fast from Exact in ulp, or, absolute, in units of 2^-24; how many differ. */
static void measure(const char *type, const char *form, float lo, float hi, bool absolute,
                    double bound) {
    OM_SCOPE {
        om_tensor *x       = om_linspace(lo, hi, N);
        x                  = om_reshape(x, OM_DIMS(N / 100, 100));
        const float *exact = om_data(run_one(type, form, OM_EXACT, x));
        const float *fast  = om_data(run_one(type, form, OM_FAST, x));
        double worst       = 0;
        int differ         = 0;
        for (int i = 0; i < N; i++) {
            double d = absolute ? fabs((double)exact[i] - (double)fast[i]) * 0x1p24
                                : ulps(fast[i], exact[i]);
            if (d > worst) worst = d;
            differ += memcmp(&fast[i], &exact[i], 4) != 0;
        }
        print_message("%s %s: %.2f, %d of %d differ\n", type, form ? form : "", worst, differ, N);
        assert_true(worst <= bound);
        // LogSoftmax takes its logarithm of a sum that hides the last bits of its terms.
        if (strcmp(type, "LogSoftmax") != 0) assert_true(differ > 0);
    }
}

static void test_functions(void **state) {
    (void)state;
    measure("Exp", NULL, -87, 88, false, 2);
    measure("Tanh", NULL, -9, 9, false, 3);
    measure("Sigmoid", NULL, -20, 20, false, 3);
    measure("Gelu", "tanh", -6, 6, true, 16);
    measure("Softmax", NULL, -40, 40, false, 4);
    measure("LogSoftmax", NULL, -40, 40, true, 16);
}

/* Functions that Fast does not touch have the same bits. */
static void test_the_rest(void **state) {
    (void)state;
    static const char *const same[] = {"Log", "Sqrt", "Erf", "Relu", "Reciprocal", "Neg"};
    OM_SCOPE {
        om_tensor *x = om_reshape(om_linspace(0.001f, 30, N), OM_DIMS(N / 100, 100));
        for (size_t i = 0; i < OM_COUNT(same); i++)
            assert_true(om_bit_equal(run_one(same[i], NULL, OM_EXACT, x),
                                     run_one(same[i], NULL, OM_FAST, x)));
    }
}

/* ---- batch norm ------------------------------------------------------------------------------ */

enum { OC = 8, IC = 6, K = 3, H = 10 };
static float w[OC * IC * K * K], image[IC * H * H], stats[5][OC]; /* gamma, beta, mean, var, bias */

static float noise(uint32_t *s) {
    *s = *s * 1664525u + 1013904223u;
    return (float)(*s >> 8) * 0x1p-23f - 1;
}

static void make_numbers(void) {
    uint32_t s = 11;
    for (size_t i = 0; i < OM_COUNT(w); i++)
        w[i] = noise(&s);
    for (size_t i = 0; i < OM_COUNT(image); i++)
        image[i] = noise(&s);
    for (int k = 0; k < 5; k++)
        for (int i = 0; i < OC; i++)
            stats[k][i] = k == 3 ? 0.1f + fabsf(noise(&s)) : noise(&s);
}

static om_tensor *conv_norm(om_arith arith, bool bias) {
    static const char *const names[5] = {"gamma", "beta", "mean", "var", "bias"};
    om_graph *g                       = begin(20);
    in(g, "x", OM_F32, "n,6,10,10");
    constant(g, "w", OM_F32, 4, (int64_t[]){OC, IC, K, K}, w);
    for (int i = 0; i < 5; i++)
        constant(g, names[i], OM_F32, 1, (int64_t[]){OC}, stats[i]);
    node(g, "Conv", bias ? "x w bias" : "x w", "c");
    node(g, "BatchNormalization", "c gamma beta mean var", "y");
    out(g, "y");
    om_session *s = open_session(done(g), arith, 1);
    om_tensor *y  = om_session_call(s, om_from(image, OM_F32, OM_DIMS(1, IC, H, H)));
    check_ok();
    om_session_free(s);
    return y;
}

/* The real value in double, and the sum of magnitudes that rounding errors scale with. */
static double reference(int o, int r, int c, bool bias, double *size) {
    double s = stats[0][o] / sqrt((double)stats[3][o] + 1e-5f), v = bias ? stats[4][o] : 0;
    *size = fabs(v);
    for (int i = 0; i < IC; i++)
        for (int k = 0; k < K * K; k++) {
            double t =
                (double)w[(o * IC + i) * K * K + k] * image[(i * H + r + k / K) * H + c + k % K];
            v += t;
            *size += fabs(t);
        }
    *size = (*size + fabs(stats[2][o])) * fabs(s) + fabs(stats[1][o]);
    return (v - stats[2][o]) * s + stats[1][o];
}

static void test_batch_norm(void **state) {
    (void)state;
    make_numbers();
    for (int bias = 0; bias < 2; bias++)
        OM_SCOPE {
            const float *exact = om_data(conv_norm(OM_EXACT, bias)),
                        *fast  = om_data(conv_norm(OM_FAST, bias));
            int differ         = 0;
            double worst       = 0;
            for (int i = 0; i < OC * 64; i++) {
                double size, want = reference(i / 64, i / 8 % 8, i % 8, bias, &size);
                double e = fabs(exact[i] - want) / size, f = fabs(fast[i] - want) / size;
                if (f > worst) worst = f;
                assert_true(e <= 8 * 0x1p-24);
                differ += memcmp(&exact[i], &fast[i], 4) != 0;
            }
            print_message("folded: %.2f x 2^-24 of the sum of magnitudes, %d of %d differ\n",
                          worst * 0x1p24, differ, OC * 64);
            assert_true(worst <= 8 * 0x1p-24);
            assert_true(differ > OC * 64 / 10);
        }
}

int main(void) {
    const struct CMUnitTest tests[] = {OM_TEST(test_functions), OM_TEST(test_the_rest),
                                       OM_TEST(test_batch_norm)};
    return cmocka_run_group_tests_name("fast", tests, NULL, NULL);
}
