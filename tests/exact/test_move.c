/*
 * test_move.c -- copies, fills, Gather and its adds, TopK, Pad, Trilu: bits move untouched, adds
 * come in index order, ties go to the lower index.
 */
#include "exact/plane.h"

#include "base/thread.h"
#include "compute/move.h"

static const om_dtype types[] = {OM_F32, OM_F64, OM_I64, OM_I32, OM_U8, OM_BOOL};

/* The bits of element i of a view, as bytes. */
static const char *element(const om_view *v, int64_t i) {
    return (const char *)v->data + offset_of(v, i) * (int64_t)om_dtype_size(v->dtype);
}
static void fill_bytes(void *p, size_t n) {
    for (size_t i = 0; i < n; i++)
        ((uint8_t *)p)[i] = (uint8_t)test_below(256);
}
static void expect_equal(const om_view *a, const om_view *b) {
    for (int64_t i = 0; i < omi_view_numel(a); i++)
        assert_memory_equal(element(a, i), element(b, i), om_dtype_size(a->dtype));
}

static void test_copy(void **state) {
    (void)state;
    static const int64_t shapes[][4] = {{1, 1, 1, 1},     {2, 3, 4, 5},   {7, 1, 33, 40},
                                        {1, 100, 1, 130}, {3, 17, 18, 2}, {0, 3, 4, 5}};
    char *x = test_alloc(8 * 20000), *y = test_alloc(8 * 20000);
    fill_bytes(x, 8 * 20000);
    for (size_t s = 0; s < OM_COUNT(shapes); s++)
        for (size_t t = 0; t < OM_COUNT(types); t++)
            for (int la = 0; la < LAY_COUNT; la++)
                for (int lb = 0; lb < LAY_COUNT; lb++) {
                    om_view a = lay_out(x, types[t], 4, shapes[s], la), b;
                    if (lb == LAY_ONE || lb == LAY_ROW || lb == LAY_COLUMN) continue;
                    if (omi_view_numel(&a) > 20000) continue;
                    b = lay_out(y, types[t], 4, shapes[s], lb);
                    memset(y, 0xee, 8 * 20000);
                    omi_copy(&a, &b);
                    expect_equal(&a, &b);
                    size_t used = (size_t)omi_view_numel(&a) * om_dtype_size(types[t]);
                    for (size_t k = used; k < used + 16 && k < 8 * 20000; k++)
                        assert_int_equal((uint8_t)y[k], 0xee);
                }
    free(x);
    free(y);
}

/* All axis orders of four axes, large enough for tiles and threads. */
static void test_transpose(void **state) {
    (void)state;
    int64_t shape[4] = {6, 40, 50, 20}, n = 240000;
    float *x = test_alloc(4 * (size_t)n), *y = test_alloc(4 * (size_t)n);
    fill_plain(x, n, 2.0f);
    for (int code = 0; code < 256; code++) {
        int p[4] = {code & 3, code >> 2 & 3, code >> 4 & 3, code >> 6};
        if ((1 << p[0] | 1 << p[1] | 1 << p[2] | 1 << p[3]) != 15) continue;
        om_view a = view_of(x, OM_F32, 4, shape), v = a, b;
        for (int i = 0; i < 4; i++) {
            v.shape[i]   = a.shape[p[i]];
            v.strides[i] = a.strides[p[i]];
        }
        b = view_of(y, OM_F32, 4, v.shape);
        omi_copy(&v, &b);
        for (int64_t i = 0; i < n; i += 1 + i % 7)
            assert_int_equal(bits32(y[i]), bits32(at32(&v, i)));
    }
    free(x);
    free(y);
}

static void test_fill_range_tri_pad(void **state) {
    (void)state;
    float y[60], seven = 7.5f, zero = -0.0f;
    om_view v = VIEW(y, OM_F32, 5, 12), w = VIEW(y, OM_F32, 5, 4);
    omi_fill(&v, &zero);
    assert_int_equal(bits32(y[59]), 0x80000000u);
    w.strides[0] = 12, w.strides[1] = 3;
    omi_fill(&w, &seven);
    for (int i = 0; i < 60; i++)
        assert_true(y[i] == (i % 3 == 0 ? 7.5f : 0.0f));
    int64_t r[5], a = 10, step = -3;
    omi_range(&(om_view){r, OM_I64, 1, {5}, {1}}, &a, &step);
    assert_memory_equal(r, ((int64_t[]){10, 7, 4, 1, -2}), sizeof r);
    int32_t r32[3], a32 = INT32_MAX, s32 = 1;
    omi_range(&(om_view){r32, OM_I32, 1, {3}, {1}}, &a32, &s32);
    assert_memory_equal(r32, ((int32_t[]){INT32_MAX, INT32_MIN, INT32_MIN + 1}), sizeof r32);
    float rf[3], af = 1.0f, sf = 0.1f;
    omi_range(&(om_view){rf, OM_F32, 1, {3}, {1}}, &af, &sf);
    assert_true(rf[2] == 1.0f + 2.0f * 0.1f);

    float x[24], t[24];
    om_view vx = VIEW(x, OM_F32, 2, 3, 4), vt = VIEW(t, OM_F32, 2, 3, 4);
    for (int i = 0; i < 24; i++)
        x[i] = (float)(i + 1);
    x[0] = from32(0xffc00123u);
    for (int64_t k = -5; k <= 5; k++)
        for (int upper = 0; upper < 2; upper++) {
            omi_trilu(&vx, upper, k, &vt);
            for (int i = 0; i < 24; i++) {
                int row = i / 4 % 3, col = i % 4;
                bool keep = upper ? col >= row + k : col <= row + k;
                assert_int_equal(bits32(t[i]), keep ? bits32(x[i]) : 0);
            }
        }
    float p[120], fill = -1.0f;
    om_view vp = VIEW(p, OM_F32, 4, 5, 6);
    omi_pad_constant(&vx, (int64_t[]){1, 2, 0}, &fill, &vp);
    for (int i = 0; i < 120; i++) {
        int a0 = i / 30 - 1, a1 = i / 6 % 5 - 2, a2 = i % 6;
        bool in = a0 >= 0 && a0 < 2 && a1 >= 0 && a1 < 3 && a2 < 4;
        assert_int_equal(bits32(p[i]), bits32(in ? x[a0 * 12 + a1 * 4 + a2] : -1.0f));
    }
}

static void test_accumulate(void **state) {
    (void)state;
    static float x[3000], y[3000], z[3000];
    int64_t shape[3] = {5, 20, 30};
    for (int l = 0; l < LAY_COUNT; l++) {
        fill_mixed(x, 3000, 2.0f, true);
        fill_plain(y, 3000, 2.0f);
        om_view a = lay_out(x, OM_F32, 3, shape, l),
                b = lay_out(y, OM_F32, 3, shape, LAY_TRANSPOSED);
        for (int64_t i = 0; i < 3000; i++)
            z[i] = at32(&b, i) + at32(&a, i);
        omi_accumulate(&a, &b);
        for (int64_t i = 0; i < 3000; i++)
            assert_int_equal(canon32(at32(&b, i)), canon32(z[i]));
    }
    double d = 1.0, e = 0x1p-40;
    om_view vd = VIEW(&d, OM_F64, 1), ve = VIEW(&e, OM_F64, 1);
    omi_accumulate(&ve, &vd);
    assert_true(d == 1.0 + 0x1p-40);
}

/* ---- gather, index_add ---------------------------------------------------------------------- */

static void test_gather(void **state) {
    (void)state;
    static float x[1200], y[8000];
    static int64_t index[30];
    static int32_t index32[30];
    int64_t shape[3] = {10, 8, 15}, ishape[2] = {5, 6};
    for (int i = 0; i < 1200; i++)
        x[i] = from32((uint32_t)i * 77777u);
    for (int axis = 0; axis < 3; axis++)
        for (int l = 0; l < LAY_COUNT; l++)
            for (int li = 0; li < LAY_COUNT; li++)
                for (int narrow = 0; narrow < 2; narrow++) {
                    for (int i = 0; i < 30; i++) {
                        index[i]   = test_below(2 * shape[axis]) - shape[axis];
                        index32[i] = (int32_t)index[i];
                    }
                    om_view vx = lay_out(x, OM_F32, 3, shape, l);
                    om_view vi = narrow ? lay_out(index32, OM_I32, 2, ishape, li)
                                        : lay_out(index, OM_I64, 2, ishape, li);
                    om_view vy = {.data = y, .dtype = OM_F32, .rank = 4};
                    for (int i = 0, k = 0; i < 3; i++) {
                        if (i == axis) vy.shape[k++] = 5;
                        vy.shape[k++] = i == axis ? 6 : shape[i];
                    }
                    omi_view_pack_strides(&vy);
                    int64_t bad;
                    assert_false(omi_index_bad(&vi, shape[axis], &bad));
                    omi_gather(&vx, &vi, axis, &vy);
                    for (int64_t i = 0; i < omi_view_numel(&vy); i++) {
                        int64_t c[4], r = i, at[3], off = 0;
                        for (int a = 3; a >= 0; a--) {
                            c[a] = r % vy.shape[a];
                            r /= vy.shape[a];
                        }
                        int64_t io = offset_of(&vi, c[axis] * 6 + c[axis + 1]);
                        int64_t q  = narrow ? ((int32_t *)vi.data)[io] : ((int64_t *)vi.data)[io];
                        for (int a = 0; a < 3; a++) {
                            at[a] = a < axis    ? c[a]
                                    : a == axis ? (q < 0 ? q + shape[axis] : q)
                                                : c[a + 1];
                            off += at[a] * vx.strides[a];
                        }
                        assert_int_equal(bits32(y[i]), bits32(((float *)vx.data)[off]));
                    }
                }
    int64_t bad = 0;
    memset(index, 0, sizeof index);
    index[7] = 10;
    assert_true(omi_index_bad(&(om_view){index, OM_I64, 1, {30}, {1}}, 10, &bad));
    assert_int_equal(bad, 10);
    index[7] = -11;
    assert_true(omi_index_bad(&(om_view){index, OM_I64, 1, {30}, {1}}, 10, &bad));
}

/* Many repeats, so that the order of the adds shows in the bits. */
static void test_index_add(void **state) {
    (void)state;
    int64_t n = 20000, rows = 7, cols = 130;
    float *src = test_alloc(4 * (size_t)(n * cols)), *dst = test_alloc(4 * (size_t)(rows * cols));
    float *want    = test_alloc(4 * (size_t)(rows * cols));
    int64_t *index = test_alloc(8 * (size_t)n);
    fill_plain(src, n * cols, 1.0f);
    for (int64_t i = 0; i < n; i++)
        index[i] = test_below(rows) - (i % 2 ? rows : 0);
    for (int64_t c = 0; c < rows * cols; c++)
        want[c] = 1.0f;
    for (int64_t i = 0; i < n; i++) {
        int64_t q = index[i] < 0 ? index[i] + rows : index[i];
        for (int64_t c = 0; c < cols && q != 3; c++)
            want[q * cols + c] += src[i * cols + c];
    }
    for (int threads = 1; threads <= 8; threads += 3) {
        om_set_threads(threads);
        for (int64_t c = 0; c < rows * cols; c++)
            dst[c] = 1.0f;
        om_view vd = VIEW(dst, OM_F32, rows, cols), vi = VIEW(index, OM_I64, n);
        om_view vs = VIEW(src, OM_F32, n, cols);
        omi_index_add(&vd, &vi, 0, &vs, 3);
        assert_same_f32(dst, want, rows * cols, "index_add");
    }
    om_set_threads(0);
    /* axis 1 of [2, 3, 2], index [2, 2], from a strided source */
    double d[12]   = {0}, s[16];
    int32_t i32[4] = {2, 0, -1, 2};
    for (int i = 0; i < 16; i++)
        s[i] = i + 1;
    om_view wd = VIEW(d, OM_F64, 2, 3, 2), wi = VIEW(i32, OM_I32, 2, 2),
            ws    = VIEW(s, OM_F64, 2, 2, 2, 2);
    ws.strides[0] = 1, ws.strides[1] = 2, ws.strides[2] = 4, ws.strides[3] = 8;
    omi_index_add(&wd, &wi, 1, &ws, -1);
    for (int a = 0; a < 2; a++)
        for (int c = 0; c < 2; c++) {
            assert_true(d[a * 6 + 0 + c] == s[a + 0 + 4 + 8 * c]);
            assert_true(d[a * 6 + 2 + c] == 0);
            assert_true(d[a * 6 + 4 + c] == s[a + 8 * c] + s[a + 2 + 8 * c] + s[a + 6 + 8 * c]);
        }
    free(src), free(dst), free(want), free(index);
}

/* ---- topk ----------------------------------------------------------------------------------- */

/* a comes before b in the wanted order. */
static bool before(const float *x, int64_t stride, int64_t a, int64_t b, bool largest) {
    float p = x[a * stride], q = x[b * stride];
    bool np = p != p, nq = q != q;
    if (np != nq) return largest ? np : nq;
    if (np || p == q) return a < b;
    return largest ? p > q : p < q;
}

static void test_topk(void **state) {
    (void)state;
    static float x[3 * 50 * 11], v[3 * 50 * 11];
    static int64_t idx[3 * 50 * 11];
    int64_t shape[3] = {3, 50, 11};
    for (int l = 0; l < LAY_COUNT; l++)
        for (int axis = 0; axis < 3; axis++)
            for (int largest = 0; largest < 2; largest++)
                for (int64_t k = 0; k <= shape[axis]; k += shape[axis] > 20 ? 7 : 1) {
                    fill_mixed(x, 1650, 6.0f, true);
                    for (int i = 0; i < 1650; i += 2)
                        x[i] = truncf(x[i]);
                    om_view vx = lay_out(x, OM_F32, 3, shape, l), vv = vx, vi;
                    vv.data        = v;
                    vv.shape[axis] = k;
                    omi_view_pack_strides(&vv);
                    vi       = vv;
                    vi.data  = idx;
                    vi.dtype = OM_I64;
                    void *ws = test_alloc(omi_topk_workspace(&vx, axis, omi_workers()));
                    omi_topk(&vx, axis, k, largest, &vv, &vi, ws);
                    free(ws);
                    for (int64_t i = 0; i < omi_view_numel(&vv); i++) {
                        int64_t c[3], r = i, base = 0;
                        for (int a = 2; a >= 0; a--) {
                            c[a] = r % vv.shape[a];
                            r /= vv.shape[a];
                            if (a != axis) base += c[a] * vx.strides[a];
                        }
                        const float *p = (const float *)vx.data + base;
                        int64_t st = vx.strides[axis], rank = 0;
                        int64_t self = idx[i];
                        assert_in_range((uint64_t)self, 0, (uint64_t)shape[axis] - 1);
                        for (int64_t o = 0; o < shape[axis]; o++)
                            rank += before(p, st, o, self, largest);
                        assert_int_equal(rank, c[axis]);
                        assert_int_equal(bits32(v[i]), bits32(p[self * st]));
                    }
                }
    int64_t a[5] = {3, INT64_MIN, INT64_MAX, 3, -1}, w[2], at[2];
    _Alignas(8) char room[200];
    om_view va = VIEW(a, OM_I64, 5), vw = VIEW(w, OM_I64, 2), vi = VIEW(at, OM_I64, 2);
    omi_topk(&va, 0, 2, true, &vw, &vi, room);
    assert_true(w[0] == INT64_MAX && w[1] == 3 && at[1] == 0);
    omi_topk(&va, 0, 2, false, &vw, &vi, room);
    assert_true(w[0] == INT64_MIN && w[1] == -1);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_copy),       cmocka_unit_test(test_transpose),
        cmocka_unit_test(test_accumulate), cmocka_unit_test(test_fill_range_tri_pad),
        cmocka_unit_test(test_gather),     cmocka_unit_test(test_index_add),
        cmocka_unit_test(test_topk),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
