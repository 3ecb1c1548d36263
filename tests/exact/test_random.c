/*
 * test_random.c -- Philox4x32-10 and what is drawn from it (AR-12): the published vectors, the
 * fixed place of every value, and that columns and threads do not show.
 */
#include "exact/plane.h"

#include "base/thread.h"
#include "compute/random.h"

static void test_vectors(void **state) {
    (void)state;
    /* the known answers of Salmon et al. */
    uint32_t w[4];
    omi_philox(0, 0, 0, w);
    assert_memory_equal(w, ((uint32_t[]){0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}), 16);
    omi_philox(UINT64_MAX, UINT64_MAX, UINT64_MAX, w);
    assert_memory_equal(w, ((uint32_t[]){0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}), 16);
    omi_philox(0x299f31d0a4093822u, 0x0370734413198a2eu, 0x85a308d3243f6a88u, w);
    assert_memory_equal(w, ((uint32_t[]){0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}), 16);
    uint32_t many[4 * 37];
    omi_philox_blocks(7, 3, 0xfffffffeu, 37, many); /* across a carry of the low word */
    for (uint64_t b = 0; b < 37; b++) {
        omi_philox(7, 3, 0xfffffffeu + b, w);
        assert_memory_equal(w, many + 4 * b, 16);
    }
}

static void test_draws(void **state) {
    (void)state;
    int64_t n = 70001;
    float *u = test_alloc(4 * (size_t)n), *z = test_alloc(4 * (size_t)n);
    int64_t *r    = test_alloc(8 * (size_t)n);
    double *d     = test_alloc(8 * (size_t)n);
    uint8_t *b    = test_alloc((size_t)n);
    uint64_t hash = 0;
    FOR_COLUMNS(c) {
        for (int t = 1; t <= 8; t += 3) {
            om_rng g = {123, OM_STREAM_USER, 5};
            om_set_threads(t);
            om_draw du = omi_draw32(&g, n);
            assert_true(du.block == 5 && g.block == 5 + (uint64_t)(n + 3) / 4);
            om_draw dn = omi_draw32(&g, n), dr = omi_draw64(&g, n);
            assert_true(g.block == dr.block + (uint64_t)(n + 1) / 2);
            omi_fill_uniform(du, -2.0f, 3.0f, n, u);
            omi_fill_normal(dn, 1.0f, 2.0f, n, z);
            omi_fill_randint(dr, -5, 12, n, r);
            omi_fill_uniform_f64(dr, 0.0, 1.0, n, d);
            omi_fill_bernoulli(du, 0.25f, n, b);
            double sum = 0, squares = 0, ones = 0;
            for (int64_t i = 0; i < n; i++) {
                uint32_t w[4], v[4], x[4];
                omi_philox(123, 3, du.block + (uint64_t)(i / 4), w);
                omi_philox(123, 3, dn.block + (uint64_t)(i / 4), v);
                omi_philox(123, 3, dr.block + (uint64_t)(i / 2), x);
                float f = -2.0f + 5.0f * ((float)(w[i % 4] >> 8) * 0x1p-24f);
                assert_int_equal(bits32(u[i]), bits32(f >= 3.0f ? nextafterf(3.0f, 0.0f) : f));
                assert_int_equal(b[i], w[i % 4] < 0x40000000u);
                int p     = (int)(i % 4) & 2;
                float rad = sqrtf(-2.0f * ref_log((float)((v[p] >> 8) + 1) * 0x1p-24f));
                float th  = 0x1.921fb6p+2f * ((float)(v[p + 1] >> 8) * 0x1p-24f);
                float s   = (float)(i % 2 ? sin((double)th) : cos((double)th));
                float q = rad * s, m = 2.0f * q;
                assert_int_equal(bits32(z[i]), bits32(1.0f + m));
                uint64_t wide = (uint64_t)x[i % 2 * 2 + 1] << 32 | x[i % 2 * 2];
                /* 17 values: high word of a product with a small number, in two halves */
                uint64_t high = ((wide >> 32) * 17 + ((wide & 0xffffffffu) * 17 >> 32)) >> 32;
                assert_true(r[i] == -5 + (int64_t)high);
                assert_true(d[i] == (double)(wide >> 11) * 0x1p-53);
                sum += (double)z[i];
                squares += ((double)z[i] - 1) * ((double)z[i] - 1);
                ones += b[i];
            }
            assert_true(fabs(sum / (double)n - 1) < 0.03 && fabs(squares / (double)n - 4) < 0.1);
            assert_true(fabs(ones / (double)n - 0.25) < 0.01);
            uint64_t h = hash_floats(hash_floats(HASH_START, u, n), z, n);
            if (!hash) hash = h;
            expect_hash("draws", h, hash);
        }
    }
    om_set_threads(0);
    omi_kernels_force(-1);
    expect_hash("draws", hash, 0xb5a0dc2eadde1bbeu); /* accepted with the reference above */
    free(u), free(z), free(r), free(d), free(b);
}

static void test_integers(void **state) {
    (void)state;
    assert_true(omi_randint_of(0, INT64_MIN, INT64_MAX) == INT64_MIN);
    assert_true(omi_randint_of(UINT64_MAX, INT64_MIN, INT64_MAX) == INT64_MAX - 1);
    assert_true(omi_randint_of(UINT64_MAX, 0, 10) == 9 && omi_randint_of(1ull << 63, 0, 10) == 5);
    assert_true(omi_randint_of(12345, 4, 4) == 4);
    assert_true(omi_bernoulli_threshold(0.0f) == 0 && omi_bernoulli_threshold(1.0f) == 1ull << 32);
    assert_true(omi_bernoulli_threshold(0.5f) == 1ull << 31);
    assert_true(omi_uniform_of(UINT32_MAX, 0.0f, 1.0f) < 1.0f);
    assert_true(omi_uniform_of(UINT32_MAX, 1.0f, 1.0f + 0x1p-23f) == 1.0f); /* rounds up to hi */

    om_rng g = {9, OM_STREAM_SHUFFLE, 100};
    int64_t p[11], q[11];
    omi_permutation(&g, 11, p);
    assert_true(g.block == 105);
    for (int64_t i = 0; i < 11; i++)
        q[i] = i;
    for (int64_t i = 10, v = 0; i > 0; i--, v++) {
        int64_t k = omi_randint_of(omi_rng_value64(9, OM_STREAM_SHUFFLE, 100, v), 0, i + 1);
        int64_t t = q[i];
        q[i] = q[k], q[k] = t;
    }
    assert_memory_equal(p, q, sizeof p);
    omi_permutation(&g, 1, p);
    assert_true(g.block == 105 && p[0] == 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_vectors),
        cmocka_unit_test(test_draws),
        cmocka_unit_test(test_integers),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
