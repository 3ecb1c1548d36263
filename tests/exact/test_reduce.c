/*
 * test_reduce.c -- reductions, ArgMax, softmax and norms against AR-4 and AR-8 written down here,
 * in every column, layout and number of threads.
 */
#include "exact/plane.h"

#include "base/thread.h"
#include "compute/norm.h"
#include "compute/reduce.h"

/* Accepted together with the references of this file. */
#define HASH_REDUCE  0xb9fc1b93b464c20cu
#define HASH_SOFTMAX 0x13dca5b2ed4d254fu
#define HASH_NORM    0xa0667010878e525cu

/* The reduced index space of one output, in order, as float64; returns its length. */
static int64_t line_of(const om_view *x, uint32_t axes, int64_t out, double *line) {
    om_view kept = {.rank = 0}, red = {.rank = 0};
    for (int i = 0; i < x->rank; i++) {
        om_view *v          = axes >> i & 1 ? &red : &kept;
        v->shape[v->rank]   = x->shape[i];
        v->strides[v->rank] = x->strides[i];
        v->rank++;
    }
    int64_t base = offset_of(&kept, out), n = omi_view_numel(&red);
    for (int64_t i = 0; i < n; i++)
        line[i] = (double)((const float *)x->data)[base + offset_of(&red, i)];
    return n;
}

static float ref_reduce(om_reduce_kind k, int64_t n, double *v) {
    float m = k == OM_R_MAX ? -INFINITY : INFINITY;
    switch (k) {
    case OM_R_SUM:
        return (float)ref_sum64(n, v);
    case OM_R_MEAN:
        return (float)(ref_sum64(n, v) / (double)n);
    case OM_R_SUM_SQUARE:
        for (int64_t i = 0; i < n; i++)
            v[i] = v[i] * v[i];
        return (float)ref_sum64(n, v);
    case OM_R_PROD: {
        double total = 1.0;
        for (int64_t b = 0; b < n; b += 4096) {
            double s[16];
            for (int l = 0; l < 16; l++)
                s[l] = 1.0;
            for (int64_t i = b; i < n && i < b + 4096; i++)
                s[(i - b) % 16] *= v[i];
            for (int h = 8; h; h /= 2)
                for (int l = 0; l < h; l++)
                    s[l] *= s[l + h];
            total *= s[0];
        }
        return (float)total;
    }
    default:
        for (int64_t i = 0; i < n; i++)
            m = k == OM_R_MAX ? ref_max(m, (float)v[i]) : ref_min(m, (float)v[i]);
        return m;
    }
}

static const struct {
    int rank;
    int64_t shape[4];
    uint32_t axes;
} cases[] = {{1, {1}, 1},           {1, {37}, 1},          {1, {9000}, 1},
             {2, {7, 100}, 2},      {2, {5, 4097}, 2},     {2, {100, 7}, 1},
             {2, {5000, 3}, 1},     {2, {4500, 37}, 1},    {2, {3, 64}, 0},
             {3, {6, 5, 33}, 5},    {3, {6, 5, 33}, 2},    {3, {70, 9, 65}, 1},
             {4, {3, 4, 5, 6}, 13}, {4, {3, 4, 5, 6}, 10}, {4, {3, 4, 5, 6}, 5},
             {4, {3, 4, 5, 6}, 15}, {3, {2, 0, 3}, 2},     {3, {0, 2, 3}, 2}};

static void test_reductions(void **state) {
    (void)state;
    static float x[200000], y[60000], want[60000];
    static double line[200000];
    uint64_t first = 0;
    FOR_COLUMNS(c) {
        uint64_t h = HASH_START;
        test_xs    = XS_SEED;
        for (size_t s = 0; s < OM_COUNT(cases); s++)
            for (int l = 0; l < LAY_COUNT; l++)
                for (int special = 0; special < 2; special++) {
                    fill_plain(x, OM_COUNT(x), 2.5f);
                    if (special) fill_mixed(x, 500, 2.5f, true);
                    om_view vx  = lay_out(x, OM_F32, cases[s].rank, cases[s].shape, l);
                    int64_t out = 1;
                    for (int i = 0; i < vx.rank; i++)
                        out *= cases[s].axes >> i & 1 ? 1 : vx.shape[i];
                    om_view vy = VIEW(y, OM_F32, out);
                    for (int k = 0; k <= OM_R_SUM_SQUARE; k++) {
                        for (int64_t o = 0; o < out; o++) {
                            int64_t n = line_of(&vx, cases[s].axes, o, line);
                            want[o]   = ref_reduce((om_reduce_kind)k, n, line);
                        }
                        omi_reduce((om_reduce_kind)k, &vx, cases[s].axes, &vy);
                        char what[60];
                        snprintf(what, sizeof what, "%s: kind %d, case %d, layout %d",
                                 omi_kernels()->name, k, (int)s, l);
                        assert_same_f32(y, want, out, what);
                        h = hash_floats(h, y, out);
                    }
                }
        if (first == 0) first = h;
        expect_hash("reduce", h, first);
    }
    omi_kernels_force(-1);
    expect_hash("reduce", first, HASH_REDUCE);
}

/* One huge sum: blocks shared between threads, slots joined in order; also from a strided view. */
static void test_big_sums(void **state) {
    (void)state;
    int64_t n = 2000003;
    float *x  = test_alloc(sizeof(float) * (size_t)n), y[4];
    double *d = test_alloc(sizeof(double) * (size_t)n);
    fill_plain(x, n, 3.0f);
    for (int64_t i = 0; i < n; i++)
        d[i] = (double)x[i];
    double sum = ref_sum64(n, d);
    om_view v = VIEW(x, OM_F32, n), t = VIEW(x, OM_F32, 1000, 2000), o = VIEW(y, OM_F32, 4);
    t.strides[0] = 1, t.strides[1] = 1000;
    for (int64_t i = 0; i < 2000000; i++)
        d[i] = (double)at32(&t, i);
    double turned = ref_sum64(2000000, d);
    for (int64_t i = 0; i < 2000000; i++)
        d[i] = (double)at32(&t, i) * (double)at32(&t, i);
    double squares             = ref_sum64(2000000, d);
    static const int threads[] = {1, 2, 3, 8};
    for (size_t k = 0; k < OM_COUNT(threads); k++) {
        om_set_threads(threads[k]);
        assert_true(bits64(omi_sum64(&v, false)) == bits64(sum));
        assert_true(bits64(omi_sum64(&t, false)) == bits64(turned));
        assert_true(bits64(omi_sum64(&t, true)) == bits64(squares));
        om_view four = VIEW(x, OM_F32, 4, 500000);
        omi_reduce(OM_R_MAX, &four, 2, &o);
        for (int r = 0; r < 4; r++) {
            float m = -INFINITY;
            for (int64_t i = 0; i < 500000; i++)
                m = ref_max(m, x[r * 500000 + i]);
            assert_int_equal(bits32(y[r]), bits32(m));
        }
    }
    om_set_threads(0);
    free(x);
    free(d);
}

static void test_other_types(void **state) {
    (void)state;
    int64_t a[6] = {INT64_MAX, 1, -7, 2, 3, 4}, r[3];
    int32_t b[6] = {-7, 2, 1 << 30, 1 << 30, 1 << 30, 1 << 30}, s[3];
    double d[6]  = {0.1, 0.2, 0.3, NAN, 5, 6}, e[3];
    om_view va = VIEW(a, OM_I64, 3, 2), vr = VIEW(r, OM_I64, 3), vb = VIEW(b, OM_I32, 3, 2);
    om_view vs = VIEW(s, OM_I32, 3), vd = VIEW(d, OM_F64, 3, 2), ve = VIEW(e, OM_F64, 3);
    omi_reduce(OM_R_SUM, &va, 2, &vr);
    assert_true(r[0] == INT64_MIN && r[1] == -5 && r[2] == 7);
    omi_reduce(OM_R_MEAN, &va, 2, &vr);
    assert_true(r[1] == -2 && r[2] == 3);
    omi_reduce(OM_R_MAX, &va, 1, &vr);
    assert_true(r[0] == INT64_MAX && r[1] == 4);
    omi_reduce(OM_R_MIN, &va, 3, &vr);
    assert_true(r[0] == -7);
    omi_reduce(OM_R_PROD, &vb, 2, &vs);
    assert_true(s[0] == -14 && s[1] == 0);
    omi_reduce(OM_R_SUM, &vb, 2, &vs);
    assert_true(s[0] == -5 && s[1] == INT32_MIN);
    omi_reduce(OM_R_SUM, &vd, 2, &ve);
    assert_true(e[0] == 0.1 + 0.2 && e[1] != e[1] && e[2] == 11);
    omi_reduce(OM_R_MAX, &vd, 2, &ve);
    assert_true(e[0] == 0.2 && e[1] != e[1] && e[2] == 6);
    va.shape[1] = 0;
    omi_reduce(OM_R_MAX, &va, 2, &vr);
    assert_true(r[0] == INT64_MIN);
    omi_reduce(OM_R_PROD, &va, 2, &vr);
    assert_true(r[0] == 1);
}

/* ---- argmax, gradient of max ---------------------------------------------------------------- */

static void test_argmax(void **state) {
    (void)state;
    static float x[6000];
    static int64_t y[6000];
    FOR_COLUMNS(c) {
        for (int round = 0; round < 3; round++)
            for (int l = 0; l < LAY_COUNT; l++)
                for (int axis = 0; axis < 3; axis++)
                    for (int max = 0; max < 2; max++) {
                        int64_t shape[3] = {5, 30, 40};
                        fill_mixed(x, 6000, 4.0f, round == 2);
                        if (round == 1)
                            for (int i = 0; i < 6000; i++)
                                x[i] = truncf(x[i]); /* many ties and zeros of both signs */
                        om_view vx = lay_out(x, OM_F32, 3, shape, l), rest = vx;
                        om_view vy = VIEW(y, OM_I64, 6000 / shape[axis]);
                        omi_argmax(max, &vx, axis, &vy);
                        for (int i = axis; i < 2; i++) {
                            rest.shape[i]   = vx.shape[i + 1];
                            rest.strides[i] = vx.strides[i + 1];
                        }
                        rest.rank = 2;
                        for (int64_t o = 0; o < 6000 / shape[axis]; o++) {
                            const float *p = (const float *)vx.data + offset_of(&rest, o);
                            int64_t best   = 0;
                            for (int64_t i = 1; i < shape[axis]; i++) {
                                float v = p[i * vx.strides[axis]], b = p[best * vx.strides[axis]];
                                if (b == b && (v != v || (max ? v > b : v < b))) best = i;
                            }
                            assert_int_equal(y[o], best);
                        }
                    }
    }
    omi_kernels_force(-1);
    int64_t i64[4] = {3, 9, 9, -1}, at;
    omi_argmax(true, &(om_view){i64, OM_I64, 1, {4}, {1}}, 0, &(om_view){&at, OM_I64, 0, {0}, {0}});
    assert_int_equal(at, 1);
}

static void test_extreme_gradient(void **state) {
    (void)state;
    float x[12] = {1, 3, 3, NAN, 2, NAN, -0.0f, 0.0f, -1, 5, 5, 5}, dx[12], y[4],
          g[4]  = {6, 4, 2, 9};
    om_view vx = VIEW(x, OM_F32, 4, 3), vy = VIEW(y, OM_F32, 4, 1), vg = VIEW(g, OM_F32, 4, 1);
    om_view vd = VIEW(dx, OM_F32, 4, 3);
    omi_reduce(OM_R_MAX, &vx, 2, &vy);
    omi_reduce_extreme_grad(&vx, &vy, &vg, 2, &vd);
    assert_memory_equal(dx, ((float[]){0, 3, 3, 2, 0, 2, 1, 1, 0, 3, 3, 3}), sizeof dx);
    float h[3] = {1, 2, 3}, m[3];
    om_view vm = VIEW(m, OM_F32, 1, 3), vh = VIEW(h, OM_F32, 1, 3);
    omi_reduce(OM_R_MIN, &vx, 1, &vm);
    omi_reduce_extreme_grad(&vx, &vm, &vh, 1, &vd);
    assert_memory_equal(dx, ((float[]){0, 0, 0, 1, 0, 3, 0, 2, 0, 0, 0, 0}), sizeof dx);
}

/* ---- softmax -------------------------------------------------------------------------------- */

static void ref_softmax(bool log, int64_t n, const float *x, float *y) {
    static double e[10000];
    float m = x[0];
    for (int64_t i = 1; i < n; i++)
        m = ref_max(m, x[i]);
    for (int64_t i = 0; i < n; i++) {
        y[i] = x[i] - m;
        e[i] = (double)ref_exp(y[i]);
    }
    float s = (float)ref_sum64(n, e);
    for (int64_t i = 0; i < n; i++)
        y[i] = log ? y[i] - ref_log(s) : (float)e[i] / s;
}
static void ref_softmax_grad(bool log, int64_t n, const float *y, const float *g, float *dx) {
    static double t[10000];
    for (int64_t i = 0; i < n; i++)
        t[i] = log ? (double)g[i] : (double)g[i] * (double)y[i];
    double s = ref_sum64(n, t);
    for (int64_t i = 0; i < n; i++)
        dx[i] = log ? (float)((double)g[i] - (double)ref_exp(y[i]) * s)
                    : (float)((double)y[i] * ((double)g[i] - s));
}

static void test_softmax(void **state) {
    (void)state;
    static float x[20000], g[20000], y[20000], d[20000], line[10000], gl[10000], out[10000];
    static const int64_t shapes[][3] = {{1, 1, 1},   {3, 7, 5},    {2, 1, 9000},
                                        {2, 5, 600}, {4, 1000, 3}, {20, 17, 33}};
    uint64_t first                   = 0;
    FOR_COLUMNS(c) {
        uint64_t h = HASH_START;
        test_xs    = XS_SEED;
        for (size_t s = 0; s < OM_COUNT(shapes); s++)
            for (int l = 0; l < LAY_COUNT; l++)
                for (int axis = 0; axis < 3; axis++)
                    for (int log = 0; log < 2; log++) {
                        om_view vx = lay_out(x, OM_F32, 3, shapes[s], l), vy = vx, vg = vx, vd;
                        int64_t total = omi_view_numel(&vx), n = vx.shape[axis];
                        fill_plain(x, total, 12.0f);
                        if (s == 1) fill_mixed(x, total, 12.0f, l == 1);
                        fill_plain(g, total, 2.0f);
                        vy.data = y;
                        omi_view_pack_strides(&vy);
                        vg       = lay_out(g, OM_F32, 3, shapes[s], l);
                        vd       = vy;
                        vd.data  = d;
                        void *ws = test_alloc(omi_softmax_workspace(&vx, axis, omi_workers()) + 64);
                        omi_softmax(log, &vx, axis, &vy, ws, false);
                        omi_softmax_grad(log, &vy, &vg, axis, &vd);
                        int64_t inner = vy.strides[axis];
                        for (int64_t r = 0; r < total / n; r++) {
                            int64_t at = r / inner * n * inner + r % inner;
                            for (int64_t i = 0; i < n; i++)
                                line[i] = at32(&vx, at + i * inner);
                            ref_softmax(log, n, line, out);
                            for (int64_t i = 0; i < n; i++) {
                                assert_int_equal(canon32(y[at + i * inner]), canon32(out[i]));
                                line[i] = y[at + i * inner];
                                gl[i]   = at32(&vg, at + i * inner);
                            }
                            ref_softmax_grad(log, n, line, gl, out);
                            for (int64_t i = 0; i < n; i++)
                                assert_int_equal(canon32(d[at + i * inner]), canon32(out[i]));
                        }
                        h = hash_floats(hash_floats(h, y, total), d, total);
                        free(ws);
                    }
        if (first == 0) first = h;
        expect_hash("softmax", h, first);
    }
    omi_kernels_force(-1);
    expect_hash("softmax", first, HASH_SOFTMAX);
}

static void test_softmax_fast(void **state) {
    (void)state;
    float x[300], y[300], z[300];
    fill_plain(x, 300, 20.0f);
    om_view vx = VIEW(x, OM_F32, 3, 100), vy = VIEW(y, OM_F32, 3, 100),
            vz = VIEW(z, OM_F32, 3, 100);
    for (int log = 0; log < 2; log++) {
        int differ = 0;
        omi_softmax(log, &vx, 1, &vy, NULL, true);
        omi_softmax(log, &vx, 1, &vz, NULL, false);
        for (int i = 0; i < 300; i++) {
            assert_true(fabsf(y[i] - z[i]) <= fabsf(z[i]) * 4e-7f + 1e-30f);
            differ += bits32(y[i]) != bits32(z[i]);
        }
        assert_true(log || differ > 0);
    }
}

/* ---- norms ---------------------------------------------------------------------------------- */

/* Mean and 1 / sqrt(var + eps) of AR-4.2. */
static void ref_stats(int64_t n, const double *x, float eps, double *mean, double *var,
                      double *rs) {
    static double t[70000];
    *mean = ref_sum64(n, x) / (double)n;
    for (int64_t i = 0; i < n; i++)
        t[i] = (x[i] - *mean) * (x[i] - *mean);
    *var = ref_sum64(n, t) / (double)n;
    *rs  = 1.0 / sqrt(*var + (double)eps);
}

/* dx of AR-11.2 for one group of elements that share statistics; h already g w. */
static void ref_norm_dx(int64_t n, const double *x, const double *h, double mean, double rs,
                        float *dx) {
    static double t[70000];
    double m1 = ref_sum64(n, h) / (double)n;
    for (int64_t i = 0; i < n; i++)
        t[i] = h[i] * ((x[i] - mean) * rs);
    double m2 = ref_sum64(n, t) / (double)n;
    for (int64_t i = 0; i < n; i++)
        dx[i] = (float)(rs * ((h[i] - m1) - ((x[i] - mean) * rs) * m2));
}

static void check_layernorm(int64_t rows, int64_t n, bool wb, uint64_t *hash) {
    float *x = test_alloc(4 * (size_t)(rows * n)), *g = test_alloc(4 * (size_t)(rows * n));
    float *y = test_alloc(4 * (size_t)(rows * n)), *dx = test_alloc(4 * (size_t)(rows * n));
    float *w = test_alloc(4 * (size_t)n), *b = test_alloc(4 * (size_t)n);
    float *dw = test_alloc(4 * (size_t)n), *db = test_alloc(4 * (size_t)n), eps = 1e-5f;
    double *xs64 = test_alloc(8 * (size_t)n), *h = test_alloc(8 * (size_t)n);
    double *mean = test_alloc(8 * (size_t)rows), *rs = test_alloc(8 * (size_t)rows), var;
    double *col = test_alloc(8 * (size_t)rows);
    float *want = test_alloc(4 * (size_t)n);
    fill_plain(x, rows * n, 6.0f);
    fill_plain(g, rows * n, 2.0f);
    fill_plain(w, n, 2.0f);
    fill_plain(b, n, 2.0f);
    omi_layernorm(&(om_layernorm_args){rows, n, x, wb ? w : NULL, wb ? b : NULL, eps, y});
    om_layernorm_grad_args args = {rows, n, x, wb ? w : NULL, g, eps, dx, dw, db};
    void *ws                    = test_alloc(omi_layernorm_grad_workspace(&args, omi_workers()));
    omi_layernorm_grad(&args, ws);
    free(ws);
    for (int64_t r = 0; r < rows; r++) {
        for (int64_t i = 0; i < n; i++) {
            xs64[i] = (double)x[r * n + i];
            h[i]    = wb ? (double)g[r * n + i] * (double)w[i] : (double)g[r * n + i];
        }
        ref_stats(n, xs64, eps, &mean[r], &var, &rs[r]);
        for (int64_t i = 0; i < n; i++) {
            double v = (xs64[i] - mean[r]) * rs[r];
            if (wb) {
                v = v * (double)w[i];
                v = v + (double)b[i];
            }
            want[i] = (float)v;
        }
        assert_same_f32(y + r * n, want, n, "layernorm");
        ref_norm_dx(n, xs64, h, mean[r], rs[r], want);
        assert_same_f32(dx + r * n, want, n, "layernorm dx");
    }
    for (int64_t i = 0; i < n; i++) {
        for (int64_t r = 0; r < rows; r++)
            col[r] = (double)g[r * n + i] * (((double)x[r * n + i] - mean[r]) * rs[r]);
        want[0] = (float)ref_sum64(rows, col);
        assert_same_f32(dw + i, want, 1, "layernorm dw");
        for (int64_t r = 0; r < rows; r++)
            col[r] = (double)g[r * n + i];
        want[0] = (float)ref_sum64(rows, col);
        assert_same_f32(db + i, want, 1, "layernorm db");
    }
    *hash = hash_floats(
        hash_floats(hash_floats(hash_floats(*hash, y, rows * n), dx, rows * n), dw, n), db, n);
    void *all[] = {x, g, y, dx, w, b, dw, db, xs64, h, mean, rs, col, want};
    for (size_t i = 0; i < OM_COUNT(all); i++)
        free(all[i]);
}

/* Copies channel ch of [n, c, inner]. */
static void channel(int64_t n, int64_t c, int64_t inner, int64_t ch, const float *x, double *out) {
    for (int64_t i = 0; i < n * inner; i++)
        out[i] = (double)x[(i / inner * c + ch) * inner + i % inner];
}

static void check_batchnorm(int64_t n, int64_t c, int64_t inner, bool wb, uint64_t *hash) {
    int64_t all = n * c * inner, count = n * inner;
    float *x = test_alloc(4 * (size_t)all), *g = test_alloc(4 * (size_t)all);
    float *y = test_alloc(4 * (size_t)all), *dx = test_alloc(4 * (size_t)all);
    float *want = test_alloc(4 * (size_t)count);
    double *v = test_alloc(8 * (size_t)count), *h = test_alloc(8 * (size_t)count);
    float w[64], b[64], dw[64], db[64], rm[64], rv[64], s[64], t[64], eps = 1e-3f;
    double mean[64], var[64], m1, v1, rs;
    fill_plain(x, all, 6.0f);
    fill_plain(g, all, 2.0f);
    fill_plain(w, 64, 2.0f);
    fill_plain(b, 64, 2.0f);
    for (int i = 0; i < 64; i++)
        rm[i] = test_uniform(1.0f), rv[i] = 1.0f + test_uniform(1.0f);
    omi_batchnorm_train(n, c, inner, x, wb ? w : NULL, wb ? b : NULL, eps, mean, var, y);
    omi_batchnorm_grad(true, n, c, inner, x, wb ? w : NULL, mean, var, eps, g, dx, dw, db);
    for (int64_t ch = 0; ch < c; ch++) {
        channel(n, c, inner, ch, x, v);
        channel(n, c, inner, ch, g, h);
        ref_stats(count, v, eps, &m1, &v1, &rs);
        assert_true(bits64(m1) == bits64(mean[ch]) && bits64(v1) == bits64(var[ch]));
        want[0] = (float)ref_sum64(count, h);
        assert_same_f32(db + ch, want, 1, "batchnorm db");
        static double p[70000];
        for (int64_t i = 0; i < count; i++)
            p[i] = h[i] * ((v[i] - m1) * rs);
        want[0] = (float)ref_sum64(count, p);
        assert_same_f32(dw + ch, want, 1, "batchnorm dw");
        for (int64_t i = 0; wb && i < count; i++)
            h[i] = h[i] * (double)w[ch];
        ref_norm_dx(count, v, h, m1, rs, want);
        for (int64_t i = 0; i < count; i++) {
            int64_t at = (i / inner * c + ch) * inner + i % inner;
            double q   = (v[i] - m1) * rs;
            if (wb) {
                q = q * (double)w[ch];
                q = q + (double)b[ch];
            }
            assert_int_equal(bits32(y[at]), bits32((float)q));
            assert_int_equal(bits32(dx[at]), bits32(want[i]));
        }
    }
    *hash = hash_floats(hash_floats(hash_floats(*hash, y, all), dx, all), dw, c);

    omi_batchnorm_fold(c, wb ? w : NULL, wb ? b : NULL, rm, rv, eps, s, t);
    omi_batchnorm_apply(n, c, inner, x, s, t, y);
    for (int64_t ch = 0; ch < c; ch++) {
        mean[ch] = (double)rm[ch];
        var[ch]  = (double)rv[ch];
    }
    omi_batchnorm_grad(false, n, c, inner, x, wb ? w : NULL, mean, var, eps, g, dx, dw, db);
    for (int64_t ch = 0; ch < c; ch++) {
        float sc = (float)((wb ? (double)w[ch] : 1.0) / sqrt((double)rv[ch] + (double)eps));
        float sh = (float)((wb ? (double)b[ch] : 0.0) - (double)rm[ch] * (double)sc);
        float r  = 1.0f / sqrtf(rv[ch] + eps);
        channel(n, c, inner, ch, g, h);
        for (int64_t i = 0; i < count; i++) {
            int64_t at = (i / inner * c + ch) * inner + i % inner;
            float q = x[at] * sc, xh = (x[at] - rm[ch]) * r;
            assert_int_equal(bits32(y[at]), bits32(q + sh));
            assert_int_equal(bits32(dx[at]), bits32((wb ? g[at] * w[ch] : g[at]) * r));
            v[i] = h[i] * (double)xh;
        }
        want[0] = (float)ref_sum64(count, v);
        assert_same_f32(dw + ch, want, 1, "batchnorm dw, running");
        want[0] = (float)ref_sum64(count, h);
        assert_same_f32(db + ch, want, 1, "batchnorm db, running");
    }
    *hash = hash_floats(hash_floats(hash_floats(*hash, y, all), dx, all), dw, c);
    free(x), free(g), free(y), free(dx), free(want), free(v), free(h);
}

static void test_norms(void **state) {
    (void)state;
    uint64_t first = 0;
    FOR_COLUMNS(c) {
        uint64_t h = HASH_START;
        test_xs    = XS_SEED;
        check_layernorm(1, 1, true, &h);
        check_layernorm(3, 7, true, &h);
        check_layernorm(40, 100, false, &h);
        check_layernorm(20, 1100, true, &h);
        check_layernorm(2, 5000, true, &h);
        check_layernorm(4200, 9, true, &h);
        check_batchnorm(4, 3, 50, true, &h);
        check_batchnorm(30, 40, 1, true, &h);
        check_batchnorm(2, 5, 4500, false, &h);
        check_batchnorm(90, 2, 49, true, &h);
        if (first == 0) first = h;
        expect_hash("norm", h, first);
    }
    omi_kernels_force(-1);
    for (int t = 2; t <= 8; t += 3) {
        om_set_threads(t);
        uint64_t h = HASH_START;
        check_layernorm(300, 400, true, &h);
        check_batchnorm(10, 16, 1000, true, &h);
    }
    om_set_threads(0);
    expect_hash("norm", first, HASH_NORM);
}

static void test_running(void **state) {
    (void)state;
    float rm[2] = {0.5f, -1.0f}, rv[2] = {1.0f, 2.0f}, mu = 0.1f;
    double mean[2] = {0.3, 0.7}, var[2] = {0.9, 4.1};
    float keep = (float)(1.0 - (double)mu), a[2], b[2];
    for (int i = 0; i < 2; i++) {
        a[i] = keep * rm[i] + mu * (float)mean[i];
        b[i] = keep * rv[i] + mu * (float)(var[i] * 10.0 / 9.0);
    }
    omi_batchnorm_running(2, 10, mean, var, mu, rm, rv);
    assert_memory_equal(rm, a, sizeof a);
    assert_memory_equal(rv, b, sizeof b);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_reductions),       cmocka_unit_test(test_big_sums),
        cmocka_unit_test(test_other_types),      cmocka_unit_test(test_argmax),
        cmocka_unit_test(test_extreme_gradient), cmocka_unit_test(test_softmax),
        cmocka_unit_test(test_softmax_fast),     cmocka_unit_test(test_norms),
        cmocka_unit_test(test_running),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
