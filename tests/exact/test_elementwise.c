/*
 * test_elementwise.c -- two- and three-operand functions, casts, gradients and dropout, against
 * loops written here from AR-1.5, AR-7.5, AR-9, AR-11.2 and AR-12.5, over every layout and column.
 */
#include "exact/plane.h"

#include "base/rng.h"
#include "compute/elementwise.h"
#include "compute/epilogue.h"

#define MAX_N 4000

/* Accepted together with the references of this file. */
#define HASH_BINARY    0x257941324930eb6du
#define HASH_GRADIENTS 0xb44496e208d3dd1fu

static const struct {
    int rank;
    int64_t shape[3];
} shapes[] = {{1, {1}},      {1, {7}},          {1, {1000}},    {2, {5, 3}},
              {2, {3, 70}},  {3, {4, 6, 33}},   {3, {2, 1, 9}}, {3, {0, 4, 2}},
              {2, {40, 40}}, {3, {17, 2, 100}}, {2, {1, 65}},   {0, {0}}};

static float ref_binary(om_binary_kind k, float a, float b) {
    switch (k) {
    case OM_B_ADD:
        return a + b;
    case OM_B_SUB:
        return a - b;
    case OM_B_MUL:
        return a * b;
    case OM_B_DIV:
        return a / b;
    case OM_B_MAX:
        return ref_max(a, b);
    default:
        return ref_min(a, b);
    }
}
#define REF_COMPARE(k, a, b)                                                                       \
    ((k) == OM_B_EQUAL           ? (a) == (b)                                                      \
     : (k) == OM_B_LESS          ? (a) < (b)                                                       \
     : (k) == OM_B_LESS_EQUAL    ? (a) <= (b)                                                      \
     : (k) == OM_B_GREATER       ? (a) > (b)                                                       \
     : (k) == OM_B_GREATER_EQUAL ? (a) >= (b)                                                      \
                                 : (a) != (b))

static void test_binary_f32(void **state) {
    (void)state;
    static float x[MAX_N], z[MAX_N], y[MAX_N + 1], want[MAX_N];
    static uint8_t got8[MAX_N + 1];
    uint64_t first = 0;
    FOR_COLUMNS(c) {
        uint64_t h = HASH_START;
        test_xs    = XS_SEED;
        for (size_t s = 0; s < OM_COUNT(shapes); s++)
            for (int la = 0; la < LAY_COUNT; la++)
                for (int lb = 0; lb < LAY_COUNT; lb++) {
                    fill_mixed(x, MAX_N, 4.0f, true);
                    fill_mixed(z, MAX_N, 4.0f, true);
                    memcpy(z, x, 40); /* some equal pairs */
                    om_view a = lay_out(x, OM_F32, shapes[s].rank, shapes[s].shape, la);
                    om_view b = lay_out(z, OM_F32, shapes[s].rank, shapes[s].shape, lb);
                    om_view v = view_of(y, OM_F32, shapes[s].rank, shapes[s].shape);
                    om_view w = view_of(got8, OM_BOOL, shapes[s].rank, shapes[s].shape);
                    int64_t n = omi_view_numel(&v);
                    for (int k = 0; k < OM_B_EQUAL; k++) {
                        y[n] = 77.0f;
                        omi_binary((om_binary_kind)k, &a, &b, &v);
                        for (int64_t i = 0; i < n; i++)
                            want[i] = ref_binary((om_binary_kind)k, at32(&a, i), at32(&b, i));
                        assert_same_f32(y, want, n, "binary");
                        assert_true(y[n] == 77.0f);
                        h = hash_floats(h, y, n);
                    }
                    for (int k = OM_B_EQUAL; k < OM_B_AND; k++) {
                        got8[n] = 9;
                        omi_binary((om_binary_kind)k, &a, &b, &w);
                        for (int64_t i = 0; i < n; i++)
                            assert_int_equal(got8[i], REF_COMPARE(k, at32(&a, i), at32(&b, i)));
                        assert_int_equal(got8[n], 9);
                    }
                }
        if (first == 0) first = h;
        expect_hash("binary", h, first);
    }
    omi_kernels_force(-1);
    expect_hash("binary", first, HASH_BINARY);
}

static void test_in_place(void **state) {
    (void)state;
    float x[100], z[100], y[100], want[100];
    FOR_COLUMNS(c) {
        fill_mixed(x, 100, 4.0f, true);
        fill_mixed(z, 100, 4.0f, true);
        om_view a = VIEW(x, OM_F32, 100), b = VIEW(z, OM_F32, 100), v = VIEW(y, OM_F32, 100);
        for (int k = 0; k < OM_B_EQUAL; k++) {
            omi_binary((om_binary_kind)k, &a, &b, &v);
            memcpy(want, y, sizeof y);
            memcpy(y, x, sizeof y);
            omi_binary((om_binary_kind)k, &v, &b, &v);
            assert_same_f32(y, want, 100, "y is a");
            memcpy(y, z, sizeof y);
            omi_binary((om_binary_kind)k, &a, &v, &v);
            assert_same_f32(y, want, 100, "y is b");
        }
    }
    omi_kernels_force(-1);
}

/* Wrapping integers, checked with 128-bit-free identities on values near the ends. */
static void test_integers(void **state) {
    (void)state;
    int64_t a64[] = {INT64_MAX, INT64_MIN, INT64_MIN, -7, 7, 5, 0};
    int64_t b64[] = {1, -1, 1, 2, -2, 0, 3}, y64[7];
    int32_t a32[] = {INT32_MAX, INT32_MIN, INT32_MIN, -7, 65536, 5, 0};
    int32_t b32[] = {1, -1, 1, 2, 65536, 0, 3}, y32[7];
    uint8_t a8[] = {255, 0, 200, 7, 16, 5, 0}, b8[] = {1, 1, 100, 2, 16, 0, 3}, y8[7];
    om_view va = VIEW(a64, OM_I64, 7), vb = VIEW(b64, OM_I64, 7), vy = VIEW(y64, OM_I64, 7);
    om_view wa = VIEW(a32, OM_I32, 7), wb = VIEW(b32, OM_I32, 7), wy = VIEW(y32, OM_I32, 7);
    om_view ua = VIEW(a8, OM_U8, 7), ub = VIEW(b8, OM_U8, 7), uy = VIEW(y8, OM_U8, 7);
    omi_binary(OM_B_ADD, &va, &vb, &vy);
    assert_true(y64[0] == INT64_MIN && y64[1] == INT64_MAX && y64[3] == -5);
    omi_binary(OM_B_SUB, &va, &vb, &vy);
    assert_true(y64[2] == INT64_MAX && y64[4] == 9);
    omi_binary(OM_B_MUL, &va, &vb, &vy);
    assert_true(y64[1] == INT64_MIN && y64[3] == -14);
    omi_binary(OM_B_DIV, &va, &vb, &vy);
    assert_true(y64[1] == INT64_MIN && y64[3] == -3 && y64[4] == -3 && y64[5] == 0 && y64[6] == 0);
    omi_binary(OM_B_MAX, &va, &vb, &vy);
    assert_true(y64[1] == -1 && y64[4] == 7);
    omi_binary(OM_B_ADD, &wa, &wb, &wy);
    assert_true(y32[0] == INT32_MIN && y32[1] == INT32_MAX);
    omi_binary(OM_B_MUL, &wa, &wb, &wy);
    assert_true(y32[4] == 0 && y32[1] == INT32_MIN);
    omi_binary(OM_B_DIV, &wa, &wb, &wy);
    assert_true(y32[1] == INT32_MIN && y32[3] == -3 && y32[5] == 0);
    omi_binary(OM_B_ADD, &ua, &ub, &uy);
    assert_true(y8[0] == 0 && y8[2] == 44);
    omi_binary(OM_B_SUB, &ua, &ub, &uy);
    assert_true(y8[1] == 255 && y8[2] == 100);
    omi_binary(OM_B_MUL, &ua, &ub, &uy);
    assert_true(y8[4] == 0 && y8[3] == 14);
    omi_binary(OM_B_DIV, &ua, &ub, &uy);
    assert_true(y8[5] == 0 && y8[2] == 2);
    omi_binary(OM_B_MIN, &ua, &ub, &uy);
    assert_true(y8[0] == 1 && y8[6] == 0);
    omi_unary(OM_U_NEG, &va, &vy, false);
    assert_true(y64[1] == INT64_MIN && y64[3] == 7);
    omi_unary(OM_U_ABS, &wa, &wy, false);
    assert_true(y32[1] == INT32_MIN && y32[3] == 7);
    assert_true(omi_any_zero(&vb) && omi_any_zero(&ub));
    vb.shape[0] = 5;
    assert_false(omi_any_zero(&vb));
    vb.shape[0]   = 2;
    vb.strides[0] = 5; /* elements 0 and 5 */
    assert_true(omi_any_zero(&vb));
    uint8_t bytes[] = {0, 1, 1, 0}, other[] = {1, 1, 0, 0}, out[4];
    om_view p = VIEW(bytes, OM_BOOL, 4), q = VIEW(other, OM_BOOL, 4), r = VIEW(out, OM_BOOL, 4);
    omi_binary(OM_B_AND, &p, &q, &r);
    assert_memory_equal(out, ((uint8_t[]){0, 1, 0, 0}), 4);
    omi_binary(OM_B_OR, &p, &q, &r);
    assert_memory_equal(out, ((uint8_t[]){1, 1, 1, 0}), 4);
    omi_binary(OM_B_XOR, &p, &q, &r);
    assert_memory_equal(out, ((uint8_t[]){1, 0, 1, 0}), 4);
    omi_unary(OM_U_NOT, &p, &r, false);
    assert_memory_equal(out, ((uint8_t[]){1, 0, 0, 1}), 4);
}

static void test_f64(void **state) {
    (void)state;
    double a[6] = {1.5, -0.0, 0.0, NAN, 1e308, -2.0}, b[6] = {0.25, 0.0, -0.0, 1.0, 1e308, 4.0},
           y[6];
    om_view va = VIEW(a, OM_F64, 6), vb = VIEW(b, OM_F64, 6), vy = VIEW(y, OM_F64, 6);
    omi_binary(OM_B_DIV, &va, &vb, &vy);
    assert_true(y[0] == 6.0 && y[5] == -0.5 && y[1] != y[1]);
    omi_binary(OM_B_ADD, &va, &vb, &vy);
    assert_true(y[0] == 1.75 && isinf(y[4]));
    omi_binary(OM_B_MAX, &va, &vb, &vy);
    assert_true(!signbit(y[1]) && !signbit(y[2]) && y[3] != y[3]);
    omi_binary(OM_B_MIN, &va, &vb, &vy);
    assert_true(signbit(y[1]) && signbit(y[2]) && y[3] != y[3] && y[0] == 0.25);
    assert_true(omi_binary_supports(OM_B_LESS, OM_F64) && !omi_unary_supports(OM_U_EXP, OM_F64));
    assert_false(omi_binary_supports(OM_B_ADD, OM_BOOL));
}

static void test_where_and_clip(void **state) {
    (void)state;
    static float x[MAX_N], z[MAX_N], y[MAX_N];
    static uint8_t cond[MAX_N];
    for (int i = 0; i < MAX_N; i++)
        cond[i] = (uint8_t)test_below(2);
    fill_mixed(x, MAX_N, 4.0f, true);
    x[3] = from32(0xffc12345u); /* payloads move untouched */
    fill_mixed(z, MAX_N, 4.0f, true);
    FOR_COLUMNS(c) {
        for (size_t s = 0; s < OM_COUNT(shapes); s++)
            for (int l = 0; l < LAY_COUNT * LAY_COUNT * LAY_COUNT; l++) {
                int r      = shapes[s].rank;
                om_view vc = lay_out(cond, OM_BOOL, r, shapes[s].shape, l % LAY_COUNT);
                om_view va = lay_out(x, OM_F32, r, shapes[s].shape, l / LAY_COUNT % LAY_COUNT);
                om_view vb = lay_out(z, OM_F32, r, shapes[s].shape, l / LAY_COUNT / LAY_COUNT);
                om_view vy = view_of(y, OM_F32, r, shapes[s].shape);
                omi_where(&vc, &va, &vb, &vy);
                for (int64_t i = 0; i < omi_view_numel(&vy); i++) {
                    bool t     = ((uint8_t *)vc.data)[offset_of(&vc, i)];
                    float want = t ? at32(&va, i) : at32(&vb, i);
                    assert_int_equal(bits32(y[i]), bits32(want));
                }
            }
        static const float bounds[][2] = {{-1.0f, 1.0f}, {0.0f, -0.0f}, {2.0f, -2.0f}, {NAN, 1.0f}};
        om_view vx = VIEW(x, OM_F32, 1003), vy = VIEW(y, OM_F32, 1003);
        for (size_t b = 0; b < OM_COUNT(bounds); b++)
            for (int m = 0; m < 4; m++) {
                const float *lo = m & 1 ? &bounds[b][0] : NULL, *hi = m & 2 ? &bounds[b][1] : NULL;
                omi_clip(&vx, lo, hi, &vy);
                for (int64_t i = 0; i < 1003; i++) {
                    float v = x[i];
                    if (lo) v = ref_max(v, *lo);
                    if (hi) v = ref_min(v, *hi);
                    assert_int_equal(canon32(y[i]), canon32(v));
                }
                omi_clip_grad(&vx, lo, hi, &(om_view){z, OM_F32, 1, {1003}, {1}}, &vy);
                for (int64_t i = 0; i < 1003; i++) {
                    bool in = x[i] == x[i] && (!lo || *lo <= x[i]) && (!hi || x[i] <= *hi);
                    assert_int_equal(canon32(y[i]), in ? canon32(z[i]) : 0);
                }
            }
    }
    omi_kernels_force(-1);
    int64_t i64[3] = {-5, 2, 9}, lo = 0, hi = 4, o64[3];
    om_view vi = VIEW(i64, OM_I64, 3), vo = VIEW(o64, OM_I64, 3);
    omi_clip(&vi, &lo, &hi, &vo);
    assert_true(o64[0] == 0 && o64[1] == 2 && o64[2] == 4);
    omi_where(&(om_view){cond, OM_BOOL, 1, {3}, {1}}, &vi, &(om_view){&lo, OM_I64, 1, {3}, {0}},
              &vo);
    for (int i = 0; i < 3; i++)
        assert_true(o64[i] == (cond[i] ? i64[i] : 0));
}

static void test_casts(void **state) {
    (void)state;
    float f[] = {1.9f, -1.9f,    3e9f,   -3e9f,  1e19f, -1e19f,
                 NAN,  INFINITY, 255.5f, 256.0f, -0.5f, 0.0f};
    int64_t i64[12];
    int32_t i32[12];
    uint8_t u8[12];
    float back[12];
    om_view vf = VIEW(f, OM_F32, 12), vl = VIEW(i64, OM_I64, 12), vi = VIEW(i32, OM_I32, 12);
    om_view vu = VIEW(u8, OM_U8, 12), vb = VIEW(u8, OM_BOOL, 12), vr = VIEW(back, OM_F32, 12);
    omi_cast(&vf, &vl);
    assert_true(i64[0] == 1 && i64[1] == -1 && i64[2] == 3000000000 && i64[4] == INT64_MAX &&
                i64[5] == INT64_MIN && i64[6] == 0 && i64[7] == INT64_MAX);
    omi_cast(&vf, &vi);
    assert_true(i32[2] == INT32_MAX && i32[3] == INT32_MIN && i32[6] == 0 && i32[1] == -1);
    omi_cast(&vf, &vu);
    assert_true(u8[1] == 0 && u8[8] == 255 && u8[9] == 255 && u8[6] == 0 && u8[10] == 0);
    omi_cast(&vf, &vb);
    assert_true(u8[6] == 1 && u8[10] == 1 && u8[11] == 0);
    i64[0] = 16777217, i64[1] = 0x1234567890abcdef, i64[2] = -1;
    omi_cast(&vl, &vr);
    assert_true(back[0] == 16777216.0f && back[2] == -1.0f);
    omi_cast(&vl, &vi);
    assert_true(i32[1] == (int32_t)0x90abcdef && i32[2] == -1);
    omi_cast(&vl, &vu);
    assert_true(u8[1] == 0xef && u8[2] == 255);
    double d = 1.0 + 0x1p-24, e;
    float g;
    om_view vd = VIEW(&d, OM_F64, 1), vg = VIEW(&g, OM_F32, 1), ve = VIEW(&e, OM_F64, 1);
    omi_cast(&vd, &vg); /* a tie goes to even */
    assert_true(g == 1.0f);
    g = 0x1.abcdeep-130f;
    omi_cast(&vg, &ve);
    assert_true(e == (double)g);
    om_view t = VIEW(f, OM_F32, 3, 4), o = VIEW(i64, OM_I64, 3, 4); /* strided source */
    t.strides[0] = 1, t.strides[1] = 3;
    omi_cast(&t, &o);
    assert_true(i64[1] == -3000000000);
    assert_true(i64[4] == -1);
}

/* ---- gradients ------------------------------------------------------------------------------ */

static double phi64(double x) {
    return 0.5 * erfc(-x * 0.70710678118654752440);
}

/* The real derivative, in float64. */
static double slope(om_unary_kind k, double x) {
    double s, t;
    switch (k) {
    case OM_U_NEG:
        return -1;
    case OM_U_ABS:
        return x > 0 ? 1 : x < 0 ? -1 : 0;
    case OM_U_EXP:
        return exp(x);
    case OM_U_LOG:
        return 1 / x;
    case OM_U_SQRT:
        return 0.5 / sqrt(x);
    case OM_U_TANH:
        return 1 - tanh(x) * tanh(x);
    case OM_U_SIGMOID:
        s = 1 / (1 + exp(-x));
        return s * (1 - s);
    case OM_U_ERF:
        return 1.1283791670955125739 * exp(-x * x);
    case OM_U_RELU:
        return x > 0;
    case OM_U_GELU:
        return phi64(x) + x * 0.39894228040143267794 * exp(-x * x / 2);
    case OM_U_GELU_TANH:
        t = 2 * 0.79788456080286535588 * (x + 0.044715 * x * x * x); /* s: (1 + tanh(t / 2)) / 2 */
        s = 1 / (1 + exp(-t));
        return s + 2 * x * s * (1 / (1 + exp(t))) * 0.79788456080286535588 * (1 + 0.134145 * x * x);
    case OM_U_RECIPROCAL:
        return -1 / (x * x);
    case OM_U_SILU:
        s = 1 / (1 + exp(-x));
        return s * (1 + x * (1 - s));
    case OM_U_SIN:
        return cos(x);
    default:
        return -sin(x);
    }
}

/* The steps of AR-11.2, with float64 libm for the functions. */
static float grad_steps(om_unary_kind k, float s, float g) {
    switch (k) {
    case OM_U_NEG:
        return -g;
    case OM_U_ABS:
        return g * (s > 0 ? 1.0f : s < 0 ? -1.0f : s == 0 ? 0.0f : s);
    case OM_U_EXP:
        return g * s;
    case OM_U_LOG:
        return g / s;
    case OM_U_SQRT:
        return g / (2.0f * s);
    case OM_U_TANH:
        return g * (1.0f - s * s);
    case OM_U_SIGMOID:
        return g * s * (1.0f - s);
    case OM_U_ERF:
        return g * 0x1.20dd76p+0f * ref_exp(-(s * s));
    case OM_U_RELU:
        return s > 0 ? g : 0.0f;
    case OM_U_GELU: /* float64, rounded once */
    case OM_U_GELU_TANH:
        return (float)((double)g * slope(k, (double)s));
    case OM_U_RECIPROCAL:
        return -g * (s * s);
    case OM_U_SILU: {
        float v = (float)(1 / (1 + exp(-(double)s)));
        return g * v * (1.0f + s * (1.0f - v));
    }
    case OM_U_SIN:
        return g * (float)cos((double)s);
    default:
        return -g * (float)sin((double)s);
    }
}

static void test_unary_gradients(void **state) {
    (void)state;
    static float x[1003], g[1003], s[1003], y[1003], want[1003];
    uint64_t first = 0;
    FOR_COLUMNS(c) {
        uint64_t h = HASH_START;
        test_xs    = XS_SEED;
        for (int k = 0; k < OM_U_NOT; k++) {
            bool positive = k == OM_U_LOG || k == OM_U_SQRT;
            for (int i = 0; i < 1003; i++) {
                x[i] = positive ? 0.01f + (float)xs_unit(&test_xs) * 5.0f : test_uniform(8.0f);
                if (k == OM_U_RECIPROCAL && fabsf(x[i]) < 0.01f) x[i] = 1.0f;
                g[i] = test_uniform(4.0f);
            }
            om_view vx = VIEW(x, OM_F32, 1003), vg = VIEW(g, OM_F32, 1003),
                    vs = VIEW(s, OM_F32, 1003);
            om_view vy = VIEW(y, OM_F32, 1003);
            if (omi_unary_saves_of((om_unary_kind)k) == OM_SAVES_OUT)
                omi_unary((om_unary_kind)k, &vx, &vs, false);
            else
                memcpy(s, x, sizeof s);
            omi_unary_grad((om_unary_kind)k, &vs, &vg, &vy);
            for (int i = 0; i < 1003; i++) {
                double d = slope((om_unary_kind)k, (double)x[i]);
                want[i]  = grad_steps((om_unary_kind)k, s[i], g[i]);
                /* the formula itself, loosely: cancellation in 1 - y y is the formula's own */
                assert_true(fabs((double)y[i] - d * (double)g[i]) <= 1e-5 * fmax(1.0, fabs(d)) * 2);
            }
            assert_same_f32(y, want, 1003, "unary gradient");
            om_view t = VIEW(s, OM_F32, 17, 59), u = VIEW(g, OM_F32, 17, 59),
                    v    = VIEW(y, OM_F32, 17, 59);
            t.strides[0] = 1, t.strides[1] = 17; /* transposed, and g from one row */
            u.strides[0] = 0;
            omi_unary_grad((om_unary_kind)k, &t, &u, &v);
            for (int i = 0; i < 1003; i++)
                want[i] = grad_steps((om_unary_kind)k, at32(&t, i), at32(&u, i));
            assert_same_f32(y, want, 1003, "unary gradient, strided");
            h = hash_floats(h, y, 1003);
        }
        if (first == 0) first = h;
        expect_hash("gradients", h, first);
    }
    omi_kernels_force(-1);
    expect_hash("gradients", first, HASH_GRADIENTS);
}

/* ---- the gradient of GELU, everywhere -------------------------------------------------------- */

static long double gelu_slope_wide(bool tanh_form, long double x) {
    const long double c = 0.398942280401432677939946059934381868L; /* 1 / sqrt(2 pi) */
    if (!tanh_form) return 0.5L * erfcl(-x * sqrtl(0.5L)) + x * c * expl(-0.5L * x * x);
    long double t = 4 * c * (x + 0.044715L * x * x * x), w = 4 * c * x * (1 + 0.134145L * x * x);
    if (fabsl(t) > 5000) return t > 0;
    long double s = 1 / (1 + expl(-t));
    return s + w * s * (1 / (1 + expl(t)));
}

/* Units in the last place of float32 at want. */
static double ulps_off(float got, long double want) {
    int e = -126;
    if (want != 0) frexpl(want, &e), e--;
    return (double)fabsl((long double)got - want) / ldexp(1, (e < -126 ? -126 : e) - 23);
}

static void gelu_at(const om_view *vx, const om_view *vg, const om_view *vy, int64_t n) {
    const float *x = vx->data, *g = vg->data, *y = vy->data;
    for (int tanh_form = 0; tanh_form < 2; tanh_form++) {
        omi_unary_grad(tanh_form ? OM_U_GELU_TANH : OM_U_GELU, vx, vg, vy);
        for (int64_t i = 0; i < n; i++) {
            long double want = (long double)g[i] * gelu_slope_wide(tanh_form, (long double)x[i]);
            double off       = ulps_off(y[i], want);
            if (!(off <= 1.5))
                fail_msg("%s at %a times %a: %a, not %La: %.2f ulp",
                         tanh_form ? "tanh form" : "erf form", (double)x[i], (double)g[i],
                         (double)y[i], want, off);
        }
    }
}

/* Every exponent, densely where it bends, and the neighbours of its zero; gradients of any size. */
static void the_gradient_of_gelu_is_right_everywhere(void **state) {
    (void)state;
    enum { N = 4096 };
    static float x[N], g[N], y[N];
    om_view vx = VIEW(x, OM_F32, N), vg = VIEW(g, OM_F32, N), vy = VIEW(y, OM_F32, N);
    FOR_COLUMNS(c) {
        bool thin = c == OM_COL_WIDE16; /* built without optimisation */
        for (int part = 0; part < (thin ? 8 : 64); part++) {
            for (int i = 0; i < N; i++) {
                g[i] = 1.0f;
                x[i] = -22.0f + ((float)part * N + (float)i) * (30.0f / (64 * N));
            }
            gelu_at(&vx, &vg, &vy, N);
        }
        static const float points[] = {-5,     -6,    -7,     -8, -14.5f, 1e20f,
                                       -1e20f, 3e38f, -3e38f, 0,  -0.0f,  1e-40f};
        for (int i = 0; i < N; i++) {
            g[i] = 1.0f;
            if (i < (int)OM_COUNT(points))
                x[i] = points[i];
            else if (i < 2000) /* next to the zeros of both forms */
                x[i] = (i % 2 ? -0x1.80f6a4p-1f : -0x1.814c2ep-1f) + (float)(i - 1000) * 0x1p-24f;
            else
                x[i] = ldexpf(i % 2 ? -1.37f : 1.37f, (i - 3000) / 9);
        }
        gelu_at(&vx, &vg, &vy, N);
        for (int i = 0; i < N; i++) { /* what a large gradient still sees */
            x[i] = -9.0f - 11.0f * (float)i / N;
            g[i] = i % 3 ? 1e30f : -3e38f;
        }
        gelu_at(&vx, &vg, &vy, N);
    }
    omi_kernels_force(-1);
}

static void test_maxmin_gradient(void **state) {
    (void)state;
    float a[]  = {1, 2, 3, NAN, 1, NAN, 0.0f, INFINITY},
          b[]  = {2, 1, 3, 1, NAN, NAN, -0.0f, INFINITY};
    float g[]  = {8, 8, 8, 8, 8, 8, 8, 8}, da[8], db[8];
    om_view va = VIEW(a, OM_F32, 8), vb = VIEW(b, OM_F32, 8), vg = VIEW(g, OM_F32, 8);
    om_view wa = VIEW(da, OM_F32, 8), wb = VIEW(db, OM_F32, 8);
    FOR_COLUMNS(c) {
        omi_maxmin_grad(true, &va, &vb, &vg, &wa, &wb);
        assert_memory_equal(da, ((float[]){0, 8, 4, 8, 0, 4, 4, 4}), sizeof da);
        assert_memory_equal(db, ((float[]){8, 0, 4, 0, 8, 4, 4, 4}), sizeof db);
        omi_maxmin_grad(false, &va, &vb, &vg, &wa, NULL);
        assert_memory_equal(da, ((float[]){8, 0, 4, 8, 0, 4, 4, 4}), sizeof da);
    }
    omi_kernels_force(-1);
}

/* ---- dropout, canonical NaN ----------------------------------------------------------------- */

static void test_dropout(void **state) {
    (void)state;
    int64_t n = 50003;
    float *x = test_alloc(sizeof(float) * (size_t)n), *y = test_alloc(sizeof(float) * (size_t)n);
    fill_plain(x, n, 2.0f);
    x[5] = INFINITY;
    FOR_COLUMNS(c) {
        for (int threads = 1; threads <= 3; threads += 2) {
            om_set_threads(threads);
            om_view vx = VIEW(x, OM_F32, n), vy = VIEW(y, OM_F32, n);
            float p = 0.3f, scale = (float)(1.0 / (1.0 - (double)p));
            int64_t kept = 0;
            omi_dropout(&vx, p, 42, OM_STREAM_DROPOUT, 1000, &vy);
            for (int64_t i = 0; i < n; i++) {
                uint32_t w[4];
                omi_philox(42, OM_STREAM_DROPOUT, 1000 + (uint64_t)(i / 4), w);
                bool keep = w[i % 4] >= (uint64_t)((double)p * 4294967296.0);
                assert_int_equal(bits32(y[i]), keep ? bits32(x[i] * scale) : 0);
                kept += keep;
            }
            assert_true(kept > n * 69 / 100 && kept < n * 71 / 100);
            omi_dropout(&vx, 1.0f, 42, 2, 0, &vy);
            for (int64_t i = 0; i < n; i++)
                assert_int_equal(bits32(y[i]), 0);
            omi_dropout(&vx, 0.0f, 42, 2, 0, &vy);
            assert_memory_equal(x, y, sizeof(float) * (size_t)n);
        }
    }
    om_set_threads(0);
    omi_kernels_force(-1);
    free(x);
    free(y);
}

/* One NaN anywhere in a long run is found, and nothing else is touched. */
static void a_single_nan_is_found_anywhere(void **state) {
    (void)state;
    enum { N = 300 };
    float y[N];
    FOR_COLUMNS(c) {
        om_view v = VIEW(y, OM_F32, N);
        for (int at = 0; at < N; at++) {
            for (int i = 0; i < N; i++)
                y[i] = i == at ? from32(0xffabcdefu) : (float)i - 150.0f;
            omi_canonical_nan(&v);
            for (int i = 0; i < N; i++)
                assert_int_equal(bits32(y[i]), i == at ? 0x7fc00000u : bits32((float)i - 150.0f));
        }
    }
    omi_kernels_force(-1);
}

/* ---- epilogues ------------------------------------------------------------------------------- */

/* A block's steps have the bits of the nodes one after the other, in every column and layout. */
static void an_epilogue_has_the_bits_of_its_nodes(void **state) {
    (void)state;
    enum { M = 7, N = 600 };
    static float y[M * N], want[M * N], bias[N], rest[M * N * 2], scale[M], shift[M];
    const float lo = -0.5f, hi = 1.5f;
    FOR_COLUMNS(c) {
        for (int i = 0; i < M * N; i++) {
            y[i] = want[i] = test_uniform(3.0f);
            rest[2 * i]    = test_uniform(1.0f);
        }
        for (int i = 0; i < N; i++)
            bias[i] = test_uniform(1.0f);
        for (int i = 0; i < M; i++)
            scale[i] = test_uniform(2.0f), shift[i] = test_uniform(1.0f);
        om_epilogue e = {6,
                         {{.kind = OM_EP_ADD, .a = bias, .cs = 1},
                          {.kind = OM_EP_SCALE_SHIFT, .a = scale, .b = shift, .rs = 1},
                          {.kind = OM_EP_ADD, .a = rest, .rs = 2 * N, .cs = 2},
                          {.kind = OM_EP_UNARY, .unary = OM_U_TANH},
                          {.kind = OM_EP_MUL, .a = &hi},
                          {.kind = OM_EP_CLIP, .a = &lo, .b = &hi}}};
        om_view w = VIEW(want, OM_F32, M, N), v = w, s = w;
        v.data = bias, v.strides[0] = 0;
        omi_binary(OM_B_ADD, &w, &v, &w);
        s.data = scale, s.strides[0] = 1, s.strides[1] = 0;
        omi_binary(OM_B_MUL, &w, &s, &w);
        s.data = shift;
        omi_binary(OM_B_ADD, &w, &s, &w);
        s.data = rest, s.strides[0] = 2 * N, s.strides[1] = 2;
        omi_binary(OM_B_ADD, &w, &s, &w);
        omi_unary(OM_U_TANH, &w, &w, false);
        for (int i = 0; i < M * N; i++)
            want[i] = want[i] * hi;
        omi_clip(&w, &lo, &hi, &w);
        /* in two blocks, split at row 3 and column 77 */
        omi_epilogue_apply(omi_kernels(), &e, 0, 3, 0, N, y, N);
        omi_epilogue_apply(omi_kernels(), &e, 3, M - 3, 0, 77, y + 3 * N, N);
        omi_epilogue_apply(omi_kernels(), &e, 3, M - 3, 77, N - 77, y + 3 * N + 77, N);
        assert_same_f32(y, want, M * N, "epilogue");
    }
    omi_kernels_force(-1);
}

/* Bounds and values that only signs and NaNs tell apart, against Clip itself. */
static void a_clip_in_an_epilogue_is_clip(void **state) {
    (void)state;
    static const float odd[] = {0.0f, -0.0f, 1.0f, -1.0f, 6.0f, INFINITY, -INFINITY, NAN, 1e-41f};
    enum { N = OM_COUNT(odd) };
    FOR_COLUMNS(c) {
        for (int lo = -1; lo < N; lo++)
            for (int hi = -1; hi < N; hi++) {
                float y[N * 9], want[N * 9];
                for (int i = 0; i < N * 9; i++)
                    y[i] = odd[i % N];
                const float *l = lo < 0 ? NULL : &odd[lo], *h = hi < 0 ? NULL : &odd[hi];
                om_epilogue e = {1, {{.kind = OM_EP_CLIP, .a = l, .b = h}}};
                om_view from = VIEW(y, OM_F32, N * 9), to = VIEW(want, OM_F32, N * 9);
                omi_clip(&from, l, h, &to);
                omi_epilogue_apply(omi_kernels(), &e, 0, 1, 0, N * 9, y, N * 9);
                omi_canonical_nan(&from);
                omi_canonical_nan(&to);
                assert_same_f32(y, want, N * 9, "clip");
            }
    }
    omi_kernels_force(-1);
}

static void test_canonical(void **state) {
    (void)state;
    float y[37];
    double d[2] = {1.0, -NAN};
    FOR_COLUMNS(c) {
        for (int i = 0; i < 37; i++)
            y[i] = i % 3 ? (float)i : from32(0xff800001u + (uint32_t)i);
        om_view v = VIEW(y, OM_F32, 37);
        omi_canonical_nan(&v);
        for (int i = 0; i < 37; i++)
            assert_int_equal(bits32(y[i]), i % 3 ? bits32((float)i) : 0x7fc00000u);
    }
    omi_kernels_force(-1);
    om_view v = VIEW(d, OM_F64, 2);
    omi_canonical_nan(&v);
    assert_true(d[0] == 1.0 && bits64(d[1]) == 0x7ff8000000000000u);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_binary_f32),
        cmocka_unit_test(a_clip_in_an_epilogue_is_clip),
        cmocka_unit_test(test_in_place),
        cmocka_unit_test(a_single_nan_is_found_anywhere),
        cmocka_unit_test(an_epilogue_has_the_bits_of_its_nodes),
        cmocka_unit_test(test_integers),
        cmocka_unit_test(test_f64),
        cmocka_unit_test(test_where_and_clip),
        cmocka_unit_test(test_casts),
        cmocka_unit_test(test_unary_gradients),
        cmocka_unit_test(test_maxmin_gradient),
        cmocka_unit_test(the_gradient_of_gelu_is_right_everywhere),
        cmocka_unit_test(test_dropout),
        cmocka_unit_test(test_canonical),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
