/*
 * test_dtype.c -- element types: every row of the list is complete and is ONNX's, sets of them,
 * code by size, and that no computation takes an unknown type for one it knows.
 *
 * The expected values are written out here, not taken from the list.
 */
#include "harness.h"

#include <stdatomic.h>
#include <unistd.h>

#include "base/dtype.h"
#include "base/thread.h"
#include "compute/elementwise.h"
#include "compute/move.h"
#include "compute/reduce.h"
#include "compute/scatter.h"
#include "graph/graph.h"

enum { UNKNOWN = 16 /* BFLOAT16, which nothing computes with */ };

/* ---- the list ------------------------------------------------------------------------------- */

// clang-format off
static const struct { const char *name; int bytes; } onnx_says[] = {
    {"UNDEFINED", 0}, {"FLOAT", 4}, {"UINT8", 1}, {"INT8", 1}, {"UINT16", 2}, {"INT16", 2}, {"INT32", 4},
    {"INT64", 8}, {"STRING", 0}, {"BOOL", 1}, {"FLOAT16", 2}, {"DOUBLE", 8}, {"UINT32", 4}, {"UINT64", 8},
    {"COMPLEX64", 8}, {"COMPLEX128", 16}, {"BFLOAT16", 2}, {"FLOAT8E4M3FN", 1}, {"FLOAT8E4M3FNUZ", 1},
    {"FLOAT8E5M2", 1}, {"FLOAT8E5M2FNUZ", 1}, {"UINT4", 0}, {"INT4", 0}, {"FLOAT4E2M1", 0}, {"FLOAT8E8M0", 1},
    {"UINT2", 0}, {"INT2", 0}, {"FLOAT6E2M3", 0}, {"FLOAT6E3M2", 0}};

static const struct { om_dtype t; int number, size; const char *name, *constant, *npy; } ours[] = {
    {OM_F32, 1, 4, "float32", "OM_F32", "<f4"}, {OM_U8, 2, 1, "uint8", "OM_U8", "|u1"},
    {OM_I32, 6, 4, "int32", "OM_I32", "<i4"},   {OM_I64, 7, 8, "int64", "OM_I64", "<i8"},
    {OM_BOOL, 9, 1, "bool", "OM_BOOL", "|b1"},  {OM_F64, 11, 8, "float64", "OM_F64", "<f8"}};
// clang-format on

static void test_numbers_names_and_sizes_are_onnx(void **state) {
    (void)state;
    for (int n = 1; n < (int)OM_COUNT(onnx_says); n++) {
        const om_dtype_info *t = omi_dtype(n);
        assert_non_null(t);
        assert_string_equal(t->onnx, onnx_says[n].name);
        assert_string_equal(omi_onnx_type_name(n), onnx_says[n].name);
        assert_int_equal(omi_onnx_elem_size(n), onnx_says[n].bytes);
        assert_true(omi_onnx_type_known(n));
        assert_int_equal(t->bits * t->group % 8, 0);
        if (onnx_says[n].bytes) assert_int_equal(t->bits, 8 * onnx_says[n].bytes);
    }
    static const int strangers[] = {0, -1, 29, 31, 32, 255, INT32_MAX, INT32_MIN};
    for (size_t i = 0; i < OM_COUNT(strangers); i++) {
        assert_null(omi_dtype(strangers[i]));
        assert_int_equal(om_dtype_size((om_dtype)strangers[i]), 0);
        assert_string_equal(om_dtype_name((om_dtype)strangers[i]), "unsupported");
        assert_int_equal(omi_type_bit((om_dtype)strangers[i]), 0);
        assert_int_equal(omi_onnx_elem_size(strangers[i]), 0);
    }
}

static void test_types_that_are_computed_with(void **state) {
    (void)state;
    uint32_t seen = 0;
    for (size_t i = 0; i < OM_COUNT(ours); i++) {
        const om_dtype_info *t = omi_dtype_computed(ours[i].number);
        assert_non_null(t);
        assert_int_equal(ours[i].t, ours[i].number);
        assert_int_equal(om_dtype_size(ours[i].t), ours[i].size);
        assert_string_equal(om_dtype_name(ours[i].t), ours[i].name);
        assert_string_equal(t->constant, ours[i].constant);
        assert_string_equal(t->npy, ours[i].npy);
        assert_int_equal(omi_type_bit(ours[i].t), 1u << ours[i].number);
        seen |= omi_type_bit(ours[i].t);
    }
    assert_int_equal(seen, OM_SET_COMPUTED);
    for (int n = 0; n < 40; n++)
        assert_int_equal(omi_dtype_computed(n) != NULL, n < 32 && (seen >> n & 1));
    assert_int_equal(OM_SET_FLOAT, 1u << 1 | 1u << 11);
    assert_int_equal(OM_SET_SIGNED, 1u << 6 | 1u << 7);
    assert_int_equal(OM_SET_UNSIGNED, 1u << 2);
    assert_int_equal(OM_SET_INTEGER, 1u << 2 | 1u << 6 | 1u << 7);
    assert_int_equal(OM_SET_NUMBER, OM_SET_COMPUTED & ~(1u << 9));
}

/* ---- by size -------------------------------------------------------------------------------- */

#define WIDTH(type) (width = sizeof(type))

static size_t width_of(size_t size) {
    size_t width = 0;
    OM_BY_SIZE(size, WIDTH)
    return width;
}

static void expect_no_type(void) {
    om_error e;
    assert_int_equal(omi_check_cancel(), OM_ERR_INTERNAL);
    assert_int_equal(om_catch(&e), OM_ERR_INTERNAL);
    assert_non_null(strstr(e.message, "element type"));
    assert_int_equal(omi_check_cancel(), OM_OK);
}

static void test_size_without_a_case_fails(void **state) {
    (void)state;
    for (size_t size = 1; size <= 8; size *= 2)
        assert_int_equal(width_of(size), size);
    assert_int_equal(omi_check_cancel(), OM_OK);
    for (size_t size = 0; size < 20; size++) {
        if (size == 1 || size == 2 || size == 4 || size == 8) continue;
        assert_int_equal(width_of(size), 0);
        expect_no_type();
    }
}

static void test_runs_of_every_size_move(void **state) {
    (void)state;
    _Alignas(8) uint8_t x[256], y[256];
    for (int i = 0; i < 256; i++)
        x[i] = (uint8_t)(i * 7 + 1);
    static const int64_t steps[][2] = {{1, 1}, {1, 3}, {2, 1}, {3, 2}, {1, 0}};
    for (size_t size = 1; size <= 8; size *= 2)
        for (size_t s = 0; s < OM_COUNT(steps); s++) {
            int64_t sy = steps[s][0], sx = steps[s][1], n = 9;
            memset(y, 0, sizeof y);
            omi_move_run(size, n, y, sy, x, sx);
            for (int64_t i = 0; i < n; i++)
                assert_memory_equal(y + (size_t)(i * sy) * size, x + (size_t)(i * sx) * size, size);
            if (sy > 1) // what lies between is untouched
                for (size_t k = size; k < (size_t)sy * size; k++)
                    assert_int_equal(y[k], 0);
        }
    assert_int_equal(omi_check_cancel(), OM_OK);
    omi_move_run(3, 2, y, 1, x, 2);
    expect_no_type();
    omi_move_run(0, 2, y, 1, x, 1);
    expect_no_type();
}

/* ---- unknown types -------------------------------------------------------------------------- */

static om_view row(void *data, int t, int64_t n) {
    return (om_view){.data = data, .dtype = (om_dtype)t, .rank = 1, .shape = {n}, .strides = {1}};
}

static void test_movers_refuse_an_unknown_type(void **state) {
    (void)state;
    uint64_t x[64] = {0}, y[64] = {0}, bits = 1, index[4] = {0};
    uint8_t c[4] = {1, 0, 1, 0};
    om_view xv = row(x, UNKNOWN, 4), yv = row(y, UNKNOWN, 4), cv = row(c, OM_BOOL, 4),
            iv = row(index, OM_I64, 4), bad = row(index, OM_F32, 4), fx = row(x, OM_F32, 4),
            fy = row(y, OM_F32, 4);
    omi_copy(&xv, &yv);
    expect_no_type();
    omi_fill(&yv, &bits);
    expect_no_type();
    omi_pad_constant(&xv, (const int64_t[]){0}, &bits, &yv);
    expect_no_type();
    omi_gather(&xv, &iv, 0, &yv);
    expect_no_type();
    omi_gather(&fx, &bad, 0, &fy);
    expect_no_type();
    omi_where(&cv, &xv, &xv, &yv);
    expect_no_type();
    omi_any_zero(&xv);
    expect_no_type();
    omi_topk(&xv, 0, 2, true, &yv, &iv, y + 8);
    expect_no_type();
    omi_argmax(true, &xv, 0, &iv);
    expect_no_type();
}

static void test_arithmetic_refuses_an_unknown_type(void **state) {
    (void)state;
    uint64_t x[64] = {0}, y[64] = {0}, index[4] = {0};
    om_view xv = row(x, UNKNOWN, 4), yv = row(y, UNKNOWN, 4), f = row(y, OM_F32, 4),
            iv = row(index, OM_I64, 4), i8 = row(x, OM_I64, 4);
    omi_unary(OM_U_NEG, &xv, &yv, false);
    expect_no_type();
    omi_unary(OM_U_EXP, &i8, &yv, false); // a known type without the function
    expect_no_type();
    omi_binary(OM_B_ADD, &xv, &xv, &yv);
    expect_no_type();
    omi_clip(&xv, x, x, &yv);
    expect_no_type();
    omi_cast(&xv, &f);
    expect_no_type();
    omi_cast(&f, &xv);
    expect_no_type();
    omi_accumulate(&xv, &yv);
    expect_no_type();
    omi_index_add(&yv, &iv, 0, &xv, -1);
    expect_no_type();
    omi_scatter_add(&yv, &iv, 0, &xv);
    expect_no_type();
    om_view one = row(y, UNKNOWN, 1);
    one.rank    = 0;
    omi_reduce(OM_R_SUM, &xv, 1, &one);
    expect_no_type();
    omi_reduce(OM_R_MAX, &xv, 1, &one);
    expect_no_type();
    omi_reduce_extreme_grad(&xv, &one, &one, 1, &yv);
    expect_no_type();
    omi_range(&yv, x, x);
    expect_no_type();
    omi_element_from_double(1, (om_dtype)UNKNOWN, y);
    expect_no_type();
    omi_element_to_double(y, (om_dtype)UNKNOWN);
    expect_no_type();
    omi_element_to_int(y, OM_F32);
    expect_no_type();
}

/* Only workers meet the type; the caller waits in its chunk until one has. */
static void no_type_chunk(void *arg, int64_t chunk, int worker) {
    atomic_int *met = arg;
    (void)chunk;
    if (worker) {
        omi_no_type();
        atomic_store(met, 1);
    }
    for (int i = 0; i < 5000 && !atomic_load(met); i++)
        usleep(1000);
}
static void test_a_worker_tells_its_caller(void **state) {
    (void)state;
    assert_int_equal(om_set_threads(4), OM_OK);
    atomic_int met = 0;
    omi_parallel(64, no_type_chunk, &met);
    assert_true(atomic_load(&met));
    expect_no_type();
    assert_int_equal(om_set_threads(0), OM_OK);
}

static void test_one_element_of_every_type(void **state) {
    (void)state;
    static const struct {
        om_dtype t;
        double in, out;
    } rows[] = {{OM_F32, 0.1, (double)0.1f},
                {OM_F64, 0.1, 0.1},
                {OM_I64, -2.9, -2},
                {OM_I64, 1e300, 0x1p63},
                {OM_I64, -1e300, -0x1p63},
                {OM_I32, -2.9, -2},
                {OM_I32, 2147483647.5, 0x1p31 - 1},
                {OM_I32, -2147483649.0, -0x1p31},
                {OM_U8, 255.5, 255},
                {OM_U8, 300, 255},
                {OM_U8, -1, 0},
                {OM_BOOL, 0.5, 1},
                {OM_BOOL, 0, 0}};
    for (size_t i = 0; i < OM_COUNT(rows); i++) {
        uint64_t e = 0;
        omi_element_from_double(rows[i].in, rows[i].t, &e);
        assert_true(omi_element_to_double(&e, rows[i].t) == rows[i].out);
    }
    int64_t big = INT64_MAX - 1;
    int32_t low = INT32_MIN;
    uint8_t top = 255;
    assert_int_equal(omi_element_to_int(&big, OM_I64), INT64_MAX - 1);
    assert_int_equal(omi_element_to_int(&low, OM_I32), INT32_MIN);
    assert_int_equal(omi_element_to_int(&top, OM_U8), 255);
    assert_int_equal(omi_check_cancel(), OM_OK);
}

int main(void) {
    static const struct CMUnitTest tests[] = {
        OM_TEST(test_numbers_names_and_sizes_are_onnx),
        OM_TEST(test_types_that_are_computed_with),
        OM_TEST(test_size_without_a_case_fails),
        OM_TEST(test_runs_of_every_size_move),
        OM_TEST(test_movers_refuse_an_unknown_type),
        OM_TEST(test_arithmetic_refuses_an_unknown_type),
        OM_TEST(test_a_worker_tells_its_caller),
        OM_TEST(test_one_element_of_every_type),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
