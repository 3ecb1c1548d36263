/*
 * test_random.c -- random tensors against tools/random_vectors.py, an independent implementation of
 * AR-12, and the behaviour of generators.
 */
#include "harness.h"

#include <math.h>
#include <pthread.h>

#include "base/rng.h"
#include "tensor/seam.h"

enum { BLOCKS = 3 };
static const uint64_t seed = 0x0123456789abcdef, first = 0xfffffffe; /* crosses 2^32 */

// clang-format off
/* ---- made by tools/random_vectors.py ---- */
static const uint32_t want_words[] = {0xf473f121u, 0x1711d15bu, 0x0e92abb9u, 0x5ce07c5cu, 0x99b2a2afu, 0x6420bf62u, 0x20f49b6bu, 0x6dd31e1cu, 0xc2692e75u, 0x38a0d4e6u, 0xd164305au, 0xfd873ddfu};
static const float want_uniform[] = {0x1.70c9800000000p-5f, 0x1.5117ea0000000p+1f, 0x1.37eb5c0000000p+1f, 0x1.7fee9c0000000p-3f, 0x1.312e5c0000000p+1f, 0x1.a952c80000000p+0f, 0x1.cfcca60000000p+0f, -0x1.a490a00000000p-5f, 0x1.9d07440000000p-3f, 0x1.8d9d640000000p+1f, -0x1.4413c00000000p-7f};
static const float want_normal[] = {0x1.2b28180000000p-1f, -0x1.8bb7c40000000p+1f, 0x1.ca09840000000p-1f, 0x1.02dd5e0000000p+0f, -0x1.224e760000000p+0f, -0x1.e1c4f40000000p-5f, 0x1.8bf6fa0000000p+0f, 0x1.a43d5a0000000p-1f, 0x1.3d3c900000000p+1f, -0x1.b0ad0e0000000p+0f, 0x1.2be7f80000000p+1f};
static const int64_t want_randint[] = {772, 131, 517, 68, 896, 866, 882};
static const int64_t want_wide[] = {5053809952301542729, -6717179503237374934, 375766399714090227};
static const int64_t want_permutation[] = {7, 0, 9, 4, 3, 8, 6, 5, 2, 1};
// clang-format on

static om_rng generator(uint64_t stream) {
    om_rng g = om_rng_new(seed, stream);
    g.block  = first;
    return g;
}

static void vectors(void **state) {
    (void)state;
    uint32_t words[12];
    omi_philox_blocks(seed, 7, first, BLOCKS, words);
    assert_memory_equal(words, want_words, sizeof words);

    om_rng g     = generator(3);
    om_tensor *t = om_rand(&g, -1.0f / 3, 3.5f, OM_DIMS(11));
    assert_memory_equal(om_data(t), want_uniform, sizeof want_uniform);
    assert_int_equal(g.block, first + 3);
    g = generator(3);
    t = om_randn(&g, 0.1f, 1.5f, OM_DIMS(11));
    assert_memory_equal(om_data(t), want_normal, sizeof want_normal);
    assert_int_equal(g.block, first + 3);
    g = generator(3);
    t = om_randint(&g, -5, 1000, OM_DIMS(7));
    assert_memory_equal(om_data(t), want_randint, sizeof want_randint);
    assert_int_equal(g.block, first + 4);
    g = generator(3);
    t = om_randint(&g, INT64_MIN, INT64_MAX, OM_DIMS(3));
    assert_memory_equal(om_data(t), want_wide, sizeof want_wide);
    g = generator(1);
    t = om_permutation(&g, 10);
    assert_memory_equal(om_data(t), want_permutation, sizeof want_permutation);
    assert_int_equal(g.block, first + 5);
    check_ok();
}

/* Any number of values takes whole blocks, and a long fill is the short one continued. */
static void sizes(void **state) {
    (void)state;
    om_rng g = generator(3), h = generator(3);
    om_tensor *long_ = om_randn(&g, 0, 1, OM_DIMS(3, 100001));
    om_tensor *part  = om_randn(&h, 0, 1, OM_DIMS(5));
    assert_int_equal(g.block, first + 75001);
    assert_memory_equal(om_data(long_), om_data(part), 20);
    om_rand(&g, 0, 1, OM_DIMS(0, 4));
    assert_int_equal(g.block, first + 75001); // nothing was drawn
    om_rand(&g, 2, 2, 0, NULL);
    assert_int_equal(g.block, first + 75002);
    assert_true(om_item_f32(om_rand(&g, 2, 2, 0, NULL)) == 2.0f);
    const float *p = om_data(long_);
    double sum = 0, square = 0;
    for (int64_t i = 0; i < om_numel(long_); i++) {
        sum += (double)p[i];
        square += (double)p[i] * (double)p[i];
    }
    assert_true(fabs(sum / 300003) < 0.008 && fabs(square / 300003 - 1) < 0.012);
    om_tensor *u = om_rand(&g, -1, 1, OM_DIMS(100000));
    p            = om_data(u);
    for (int i = 0; i < 100000; i++)
        assert_true(p[i] >= -1 && p[i] < 1);
    // So narrow that rounding reaches the upper end: it is never returned.
    u = om_rand(&g, 1, nextafterf(1, 2), OM_DIMS(1000));
    p = om_data(u);
    for (int i = 0; i < 1000; i++)
        assert_true(p[i] == 1);
    check_ok();
}

static void *other_thread(void *arg) {
    om_rng *seen = arg;
    *seen        = *om_thread_rng(3);
    om_scope_drain();
    return NULL;
}

static void generators_of_a_thread(void **state) {
    (void)state;
    om_seed(5);
    for (int i = 0; i < 4; i++) {
        assert_int_equal(om_thread_rng(i)->seed, 5);
        assert_int_equal(om_thread_rng(i)->stream, i);
        assert_int_equal(om_thread_rng(i)->block, 0);
    }
    om_tensor *a = om_rand(NULL, 0, 1, OM_DIMS(8));
    assert_int_equal(om_thread_rng(3)->block, 2);
    assert_int_equal(om_thread_rng(0)->block, 0); // other streams stay where they are
    om_rng g = om_rng_new(5, 3);
    assert_true(om_bit_equal(a, om_rand(&g, 0, 1, OM_DIMS(8))));
    om_rng seen, copy = g; // a copy is a saved state
    assert_true(om_bit_equal(om_permutation(&g, 100), om_permutation(&copy, 100)));
    pthread_t t;
    assert_int_equal(pthread_create(&t, NULL, other_thread, &seen), 0);
    pthread_join(t, NULL);
    assert_int_equal(seen.seed, 0);
    assert_int_equal(seen.block, 0);
    om_seed(0);
    check_ok();
}

static int filled;
static void note_random(void *self, om_storage *s, const om_site *site) {
    (void)self;
    assert_non_null(s);
    assert_non_null(strstr(site->function, "om_"));
    filled++;
}

/* TD-9: a tracer hears of every fill. */
static void fills_are_reported(void **state) {
    (void)state;
    const om_seam hooks = {.random = note_random};
    omi_seam            = &hooks;
    om_rand(NULL, 0, 1, OM_DIMS(2));
    om_randn(NULL, 0, 1, OM_DIMS(2));
    om_randint(NULL, 0, 9, OM_DIMS(2));
    om_permutation(NULL, 3);
    omi_seam = NULL;
    assert_int_equal(filled, 4);
    check_ok();
}

static void refused(void **state) {
    (void)state;
    uint64_t at = om_thread_rng(3)->block;
    assert_null(om_rand(NULL, 1, 0, OM_DIMS(2)));
    check_error(OM_ERR_ARG, "om_rand", "from 1 to 0");
    assert_null(om_rand(NULL, -3e38f, 3e38f, OM_DIMS(2)));
    check_error(OM_ERR_ARG, "finite");
    assert_null(om_rand(NULL, NAN, 1, OM_DIMS(2)));
    check_error(OM_ERR_ARG, "finite");
    assert_null(om_rand(NULL, 0, 1, OM_DIMS(2, -1)));
    check_error(OM_ERR_SHAPE, "-1");
    assert_null(om_randn(NULL, 0, -1, OM_DIMS(2)));
    check_error(OM_ERR_ARG, "deviation -1");
    assert_null(om_randn(NULL, INFINITY, 1, OM_DIMS(2)));
    check_error(OM_ERR_ARG, "mean inf");
    assert_null(om_randint(NULL, 3, 3, OM_DIMS(2)));
    check_error(OM_ERR_ARG, "no integer");
    assert_null(om_permutation(NULL, -1));
    check_error(OM_ERR_ARG, "n is -1");
    assert_null(om_thread_rng(4));
    check_error(OM_ERR_ARG, "0 to 3");
    om_permutation(NULL, -1);
    assert_null(om_rand(NULL, 0, 1, OM_DIMS(2)));
    check_error(OM_ERR_ARG, "om_permutation");
    assert_int_equal(om_thread_rng(3)->block, at); // a refused call draws nothing
}

int main(void) {
    const struct CMUnitTest tests[] = {
        OM_TEST(vectors),
        OM_TEST(sizes),
        OM_TEST(generators_of_a_thread),
        OM_TEST(fills_are_reported),
        OM_TEST(refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
