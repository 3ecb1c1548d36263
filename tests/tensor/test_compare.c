/*
 * test_compare.c -- om_allclose, om_bit_equal, om_hash, om_text_of and the blocked layout.
 */
#include "harness.h"

#include <math.h>

#include "onemodel/graph.h"
#include "onemodel/ops.h"
#include "onemodel/autograd.h"
#include "tensor/tensor.h"

static om_tensor *floats(int n, const float *v) {
    return om_from(v, OM_F32, 1, (int64_t[]){n});
}
#define F(...)                                                                                     \
    floats((int)(sizeof((float[]){__VA_ARGS__}) / sizeof(float)), (const float[]){__VA_ARGS__})

static float odd_nan(void) {
    uint32_t u = 0xffc12345u;
    float f;
    memcpy(&f, &u, sizeof f);
    return f;
}

static void close(void **state) {
    (void)state;
    assert_true(om_allclose(F(1, 2), F(1, 2), 0, 0));
    assert_true(om_allclose(F(1.01f), F(1), 0.011, 0));
    assert_false(om_allclose(F(1.01f), F(1), 0.009, 0));
    assert_true(om_allclose(F(0.01f), F(0), 0, 0.011));
    assert_false(om_allclose(F(0.01f), F(0), 1, 0.009)); // rtol is of b
    assert_true(om_allclose(F(0), F(0.01f), 1, 0));
    assert_true(om_allclose(F(NAN, INFINITY, -0.0f), F(odd_nan(), INFINITY, 0), 0, 0));
    assert_false(om_allclose(F(INFINITY), F(-INFINITY), 1, 1));
    assert_false(om_allclose(F(INFINITY), F(3e38f), 1e30, INFINITY));
    assert_false(om_allclose(F(NAN), F(1), INFINITY, INFINITY));
    assert_false(om_allclose(F(1), F(1, 1), 0, 0));
    assert_false(om_allclose(F(1), om_ones(OM_F64, OM_DIMS(1)), 9, 9));
    assert_true(
        om_allclose(om_zeros(OM_F32, OM_DIMS(0, 2)), om_zeros(OM_F32, OM_DIMS(0, 2)), 0, 0));
    // Integers are compared as integers: these two are one float64.
    om_tensor *a = om_scalar_i64((1ll << 53) + 1), *b = om_scalar_i64(1ll << 53);
    assert_false(om_allclose(a, b, 0, 0));
    assert_true(om_allclose(a, b, 0, 1));
    assert_false(om_allclose(om_scalar_i64(INT64_MAX), om_scalar_i64(INT64_MIN), 0, 1e18));
    om_tensor *m = om_from((float[]){1, 2, 3, 4}, OM_F32, OM_DIMS(2, 2));
    om_tensor *t = om_from((float[]){1, 3, 2, 4}, OM_F32, OM_DIMS(2, 2));
    assert_true(om_allclose(om_transpose(m, 0, 1), t, 0, 0));
    assert_true(om_bit_equal(om_transpose(m, 0, 1), t));
    assert_false(om_bit_equal(m, t));
    check_ok();
    assert_false(om_allclose(NULL, m, 0, 0));
    check_error(OM_ERR_ARG, "a is NULL", "om_allclose");
    assert_false(om_bit_equal(m, NULL));
    assert_false(om_allclose(m, m, 0, 0)); // pending: nothing is true
    assert_false(om_bit_equal(m, m));
    check_error(OM_ERR_ARG, "b is NULL", "om_bit_equal");
}

static void bits(void **state) {
    (void)state;
    assert_true(om_bit_equal(F(NAN, 1), F(odd_nan(), 1)));
    assert_false(om_bit_equal(F(0.0f), F(-0.0f)));
    assert_false(om_bit_equal(F(1), F(nextafterf(1, 2))));
    om_tensor *a = om_zeros(OM_F64, OM_DIMS(1000)), *b = om_zeros(OM_F64, OM_DIMS(1000));
    assert_true(om_bit_equal(a, b));
    ((double *)om_data_mut(a))[999] = NAN;
    assert_false(om_bit_equal(a, b));
    ((double *)om_data_mut(b))[999] = -NAN;
    assert_true(om_bit_equal(a, b));
    assert_true(om_bit_equal(om_full(1, OM_BOOL, OM_DIMS(3)), om_full(7, OM_BOOL, OM_DIMS(3))));
    assert_false(om_bit_equal(om_zeros(OM_U8, OM_DIMS(3)), om_zeros(OM_BOOL, OM_DIMS(3))));
    check_ok();
}

/* SHA-256 of type, rank, sizes, elements; the constants come from Python's hashlib. */
static void hashes(void **state) {
    (void)state;
    char hex[65], other[65];
    float v[4] = {1.5f, -0.0f, 3, odd_nan()};
    assert_int_equal(om_hash(om_from(v, OM_F32, OM_DIMS(2, 2)), hex), OM_OK);
    assert_string_equal(hex, "89705bbee07cf277cc6d28510a9a764f685392e9fa41de55d9ab3e24e360ba84");
    assert_int_equal(om_hash(om_scalar_i64(-2), hex), OM_OK);
    assert_string_equal(hex, "166907fcf61467f8cd5080d8dd43250ef013d46b019fc5218dde073c765b4759");
    assert_int_equal(om_hash(om_zeros(OM_BOOL, OM_DIMS(0, 3)), hex), OM_OK);
    assert_string_equal(hex, "9bc41090c4c4d9842d49c7fb67974c91cf8c55e977e74667391f795ae81d3cbf");
    om_tensor *big = om_zeros(OM_F32, OM_DIMS(40, 50));
    om_hash(big, hex);
    om_hash(om_transpose(om_zeros(OM_F32, OM_DIMS(50, 40)), 0, 1), other);
    assert_string_equal(hex, other);
    om_hash(om_reshape(big, OM_DIMS(50, 40)), other);
    assert_string_not_equal(hex, other); // the shape counts
    ((float *)om_data_mut(big))[1999] = 1e-45f;
    om_hash(big, other);
    assert_string_not_equal(hex, other);
    assert_int_equal(om_hash(NULL, hex), OM_ERR_ARG);
    check_error(OM_ERR_ARG, "NULL");
    assert_int_equal(om_hash(big, NULL), OM_ERR_ARG);
    check_error(OM_ERR_ARG, "65 bytes");
}

static void assert_text(const om_tensor *t, const char *want) {
    char *text = om_text_of(t);
    check_ok();
    assert_string_equal(text, want);
    om_bytes_free(text, strlen(text) + 1);
}

static void texts(void **state) {
    (void)state;
    om_tensor *m = om_from((float[]){1, 2, 3, 4, 5.25f, -6e-9f}, OM_F32, OM_DIMS(2, 3));
    assert_text(m, "float32 [2,3]\n[[1, 2, 3],\n [4, 5.25, -6e-09]]");
    assert_text(om_transpose(m, 0, 1), "float32 [3,2]\n[[1, 4],\n [2, 5.25],\n [3, -6e-09]]");
    assert_text(om_scalar_f32(0.1f), "float32 []\n0.1");
    assert_text(F(NAN, -NAN, INFINITY, -INFINITY, -0.0f), "float32 [5]\n[nan, nan, inf, -inf, -0]");
    assert_text(om_from((int64_t[]){INT64_MIN, 7}, OM_I64, OM_DIMS(2)),
                "int64 [2]\n[-9223372036854775808, 7]");
    assert_text(om_from((uint8_t[]){0, 1}, OM_BOOL, OM_DIMS(1, 2)), "bool [1,2]\n[[false, true]]");
    assert_text(om_from((uint8_t[]){0, 255}, OM_U8, OM_DIMS(2, 1)), "uint8 [2,1]\n[[0],\n [255]]");
    assert_text(om_from((int32_t[]){-5}, OM_I32, OM_DIMS(1)), "int32 [1]\n[-5]");
    assert_text(om_full(1.0 / 3, OM_F64, OM_DIMS(1)), "float64 [1]\n[0.3333333333]");
    assert_text(om_zeros(OM_F32, OM_DIMS(2, 0)), "float32 [2,0]\n[[],\n []]");
    assert_text(om_zeros(OM_F32, OM_DIMS(0)), "float32 [0]\n[]");
    assert_text(om_arange(0, 8, 1), "int64 [8]\n[0, 1, 2, 3, 4, 5, 6, 7]");
    assert_text(om_arange(0, 1000, 1), "int64 [1000]\n[0, 1, 2, ..., 997, 998, 999]");
    assert_text(om_reshape(om_arange(0, 18, 1), OM_DIMS(9, 1, 2)),
                "int64 [9,1,2]\n[[[0, 1]],\n [[2, 3]],\n [[4, 5]],\n ...,\n [[12, 13]],\n "
                "[[14, 15]],\n [[16, 17]]]");
    assert_null(om_text_of(NULL));
    check_error(OM_ERR_ARG, "NULL", "om_text_of");
}

/* ---- blocked layout -------------------------------------------------------------------------- */

static void there_and_back(void **state) {
    (void)state;
    static const int64_t channels[] = {1, 15, 16, 17, 40, 0};
    for (int i = 0; i < 6; i++) {
        int64_t c = channels[i], n = 2 * c * 3 * 5;
        om_tensor *x = om_cast(om_reshape(om_arange(1, n + 1, 1), OM_DIMS(2, c, 3, 5)), OM_F32);
        om_tensor *b = om_to_nchw16c(x);
        assert_int_equal(b->layout, OM_NCHW16C);
        assert_int_equal(om_rank(b), 4);
        assert_int_equal(om_dim(b, 1), c);
        assert_int_equal(om_numel(b), n);
        const float *p = omi_ptr(b), *q = om_data(x);
        for (int64_t k = 0; k < 2 * omi_ceil_div(c, 16) * 16 * 15; k++) {
            int64_t lane = k % 16, at = k / 16 % 15, block = k / 240;
            int64_t image = block / omi_ceil_div(c, 16),
                    ch    = block % omi_ceil_div(c, 16) * 16 + lane;
            assert_true(p[k] == (ch < c ? q[(image * c + ch) * 15 + at] : 0.0f));
        }
        assert_true(om_bit_equal(om_from_nchw16c(b), x));
        om_tensor *t = om_transpose(x, 2, 3);
        assert_true(om_bit_equal(om_from_nchw16c(om_to_nchw16c(t)), t));
    }
    check_ok();
}

static void blocked_is_refused_elsewhere(void **state) {
    (void)state;
    om_tensor *x = om_ones(OM_F32, OM_DIMS(1, 2, 3, 3)), *b = om_to_nchw16c(x);
    char hex[65];
    assert_null(om_relu(b));
    check_error(OM_ERR_LAYOUT, "NCHW16c", "om_from_nchw16c");
    assert_null(om_data(b));
    check_error(OM_ERR_LAYOUT, "NCHW16c");
    assert_null(om_to_nchw16c(b));
    check_error(OM_ERR_LAYOUT, "already");
    assert_null(om_from_nchw16c(x));
    check_error(OM_ERR_LAYOUT, "not");
    assert_false(om_allclose(x, b, 0, 0));
    check_error(OM_ERR_LAYOUT, "b is");
    om_hash(b, hex);
    check_error(OM_ERR_LAYOUT, "NCHW16c");
    assert_null(om_text_of(b));
    check_error(OM_ERR_LAYOUT, "NCHW16c");
    om_npy_save(b, "/nowhere");
    check_error(OM_ERR_LAYOUT, "NCHW16c");
    assert_null(om_to_nchw16c(NULL));
    check_error(OM_ERR_ARG, "NULL");
    assert_null(om_to_nchw16c(om_ones(OM_I64, OM_DIMS(1, 1, 1, 1))));
    check_error(OM_ERR_DTYPE, "float32");
    assert_null(om_to_nchw16c(om_ones(OM_F32, OM_DIMS(1, 1, 1))));
    check_error(OM_ERR_SHAPE, "[N,C,H,W]");
    om_set_requires_grad(x, true);
    assert_null(om_to_nchw16c(x));
    check_error(OM_ERR_STATE, "om_detach");
    assert_non_null(om_to_nchw16c(om_detach(x)));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        OM_TEST(close), OM_TEST(bits),           OM_TEST(hashes),
        OM_TEST(texts), OM_TEST(there_and_back), OM_TEST(blocked_is_refused_elsewhere),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
