/*
 * test_conv.c -- convolution, its gradients, pooling and the blocked layout, bit for bit against
 * loops that write AR-3, AR-8 and AR-11.2 down once more, in every column and with 1, 2, 3 and 8
 * threads.
 */
#include "exact/exact.h"

#include "compute/conv.h"
#include "compute/nchw16c.h"
#include "compute/pool.h"

/* ---- the rules ---------------------------------------------------------------------------------
 */

static int64_t block_of(const om_conv_geom *g) {
    int64_t cb = 1, area = g->win.k[0] * g->win.k[1];
    while (cb * 2 * area <= 288)
        cb *= 2;
    return cb;
}

/* Block sums in order; with group, sums of 4096 channels (16 blocks of 256) in order. */
typedef struct sums {
    float total, group;
    int64_t blocks, per_group;
} sums;
static void sums_add(sums *s, float p) {
    int64_t in = s->per_group ? s->blocks % s->per_group : s->blocks;
    if (in == 0 && s->blocks > 0) {
        s->total = s->blocks == s->per_group ? s->group : s->total + s->group;
        s->group = p;
    } else {
        s->group = s->blocks == 0 ? p : s->group + p;
    }
    s->blocks++;
}
static float sums_end(const sums *s) {
    if (s->blocks == 0) return 0.0f;
    return s->per_group && s->blocks > s->per_group ? s->total + s->group : s->group;
}

static float x_at(const om_conv_geom *g, const float *plane, int64_t h, int64_t w) {
    return h >= 0 && h < g->win.in[0] && w >= 0 && w < g->win.in[1] ? plane[h * g->win.in[1] + w]
                                                                    : 0.0f;
}

/* AR-3.1 */
static void ref_conv(const om_conv_geom *g, const float *x, const float *wt, const float *bias,
                     float *y) {
    int64_t icg = g->c / g->groups, ocg = g->oc / g->groups, area = g->win.k[0] * g->win.k[1];
    int64_t cb = block_of(g);
    for (int64_t n = 0; n < g->n; n++)
        for (int64_t o = 0; o < g->oc; o++)
            for (int64_t p = 0; p < g->win.out[0] * g->win.out[1]; p++) {
                sums s = {.per_group = area == 1 ? 16 : 0};
                for (int64_t c0 = 0; c0 < icg; c0 += cb) {
                    float t = 0.0f;
                    for (int64_t c = c0; c < icg && c < c0 + cb; c++)
                        for (int64_t k = 0; k < area; k++) {
                            int64_t h = p / g->win.out[1] * g->win.stride[0] - g->win.before[0] +
                                        k / g->win.k[1] * g->win.dil[0];
                            int64_t w = p % g->win.out[1] * g->win.stride[1] - g->win.before[1] +
                                        k % g->win.k[1] * g->win.dil[1];
                            const float *plane =
                                x + (n * g->c + o / ocg * icg + c) * g->win.in[0] * g->win.in[1];
                            t = fmaf(wt[(o * icg + c) * area + k], x_at(g, plane, h, w), t);
                        }
                    sums_add(&s, t);
                }
                float v                                                = sums_end(&s);
                y[(n * g->oc + o) * g->win.out[0] * g->win.out[1] + p] = bias ? v + bias[o] : v;
            }
}

/* AR-8, row ConvTranspose: positions of dy ascending, only those that exist. */
static void ref_grad_x(const om_conv_geom *g, const float *dy, const float *wt, float *dx) {
    int64_t icg = g->c / g->groups, ocg = g->oc / g->groups, area = g->win.k[0] * g->win.k[1];
    int64_t cb = block_of(g);
    bool plain = area == 1 && g->win.stride[0] == 1 && g->win.stride[1] == 1;
    for (int64_t n = 0; n < g->n; n++)
        for (int64_t c = 0; c < g->c; c++)
            for (int64_t h = 0; h < g->win.in[0]; h++)
                for (int64_t w = 0; w < g->win.in[1]; w++) {
                    int64_t q = c / icg;
                    sums s    = {.per_group = plain ? 16 : 0};
                    for (int64_t o0 = 0; o0 < ocg; o0 += cb) {
                        float t = 0.0f;
                        for (int64_t o = o0; o < ocg && o < o0 + cb; o++)
                            for (int64_t oh = 0; oh < g->win.out[0]; oh++)
                                for (int64_t ow = 0; ow < g->win.out[1]; ow++) {
                                    int64_t a = h + g->win.before[0] - oh * g->win.stride[0];
                                    int64_t b = w + g->win.before[1] - ow * g->win.stride[1];
                                    if (a < 0 || b < 0 || a % g->win.dil[0] || b % g->win.dil[1])
                                        continue;
                                    a /= g->win.dil[0], b /= g->win.dil[1];
                                    if (a >= g->win.k[0] || b >= g->win.k[1]) continue;
                                    float d = dy[((n * g->oc + q * ocg + o) * g->win.out[0] + oh) *
                                                     g->win.out[1] +
                                                 ow];
                                    float f = wt[((q * ocg + o) * icg + c % icg) * area +
                                                 a * g->win.k[1] + b];
                                    t       = fmaf(f, d, t);
                                }
                        sums_add(&s, t);
                    }
                    dx[((n * g->c + c) * g->win.in[0] + h) * g->win.in[1] + w] = sums_end(&s);
                }
}

/* AR-2.1 over k = (n, oh, ow) */
static void ref_grad_w(const om_conv_geom *g, const float *dy, const float *x, float *dw) {
    int64_t icg = g->c / g->groups, ocg = g->oc / g->groups, area = g->win.k[0] * g->win.k[1];
    int64_t px = g->win.out[0] * g->win.out[1];
    for (int64_t o = 0; o < g->oc; o++)
        for (int64_t j = 0; j < icg * area; j++) {
            sums s = {.per_group = 16};
            for (int64_t k0 = 0; k0 < g->n * px; k0 += 256) {
                float t = 0.0f;
                for (int64_t k = k0; k < g->n * px && k < k0 + 256; k++) {
                    int64_t n = k / px, p = k % px, c = o / ocg * icg + j / area;
                    int64_t h = p / g->win.out[1] * g->win.stride[0] - g->win.before[0] +
                                j % area / g->win.k[1] * g->win.dil[0];
                    int64_t w = p % g->win.out[1] * g->win.stride[1] - g->win.before[1] +
                                j % area % g->win.k[1] * g->win.dil[1];
                    t = fmaf(dy[(n * g->oc + o) * px + p],
                             x_at(g, x + (n * g->c + c) * g->win.in[0] * g->win.in[1], h, w), t);
                }
                sums_add(&s, t);
            }
            dw[o * icg * area + j] = sums_end(&s);
        }
}

/* ---- running the library ------------------------------------------------------------------------
 */

static void fix_out(om_conv_geom *g) {
    g->win.nd = 2;
    assert_true(omi_window_make(&g->win, OM_WINDOW_FLOOR));
}
static om_conv_geom geom(int64_t n, int64_t c, int64_t h, int64_t w, int64_t oc, int64_t kh,
                         int64_t kw, int64_t stride, int64_t pad) {
    om_conv_geom g = {.n = n, .c = c, .oc = oc, .groups = 1};
    g.win = (om_window){2, {h, w}, {kh, kw}, {stride, stride}, {1, 1}, {pad, pad}, {pad, pad}, {0}};
    fix_out(&g);
    return g;
}

static void guard(char *ws, size_t bytes) {
    memset(ws + bytes, 0x5a, 4);
}
static void guard_check(char *ws, size_t bytes) {
    assert_memory_equal(ws + bytes, "\x5a\x5a\x5a\x5a", 4);
    free(ws);
}

static void run_conv(const om_conv_geom *g, const float *x, const float *w, const float *bias,
                     bool packed, float *y, int workers) {
    om_conv_ptrs d = {.x = x, .weight = w, .bias = bias, .y = y};
    om_conv_plan plan;
    float *p = NULL;
    if (packed) {
        d.w_packed = p = test_alloc(omi_conv_pack_bytes(g));
        omi_conv_pack(g, w, p);
    }
    assert_true(omi_conv_plan(g, packed, workers, &plan));
    char *ws = test_alloc(plan.ws_bytes + 4);
    guard(ws, plan.ws_bytes);
    omi_conv_run(&plan, &d, ws);
    guard_check(ws, plan.ws_bytes);
    free(p);
}
static void run_grad_x(const om_conv_geom *g, const float *dy, const float *w, float *dx,
                       int workers) {
    om_conv_gx_plan plan;
    assert_true(omi_conv_gx_plan(g, workers, &plan));
    char *ws = test_alloc(plan.ws_bytes + 4);
    guard(ws, plan.ws_bytes);
    omi_conv_gx_run(&plan, dy, w, dx, ws);
    guard_check(ws, plan.ws_bytes);
}
static void run_grad_w(const om_conv_geom *g, const float *dy, const float *x, float *dw,
                       int workers) {
    om_conv_gw_plan plan;
    assert_true(omi_conv_gw_plan(g, workers, &plan));
    char *ws = test_alloc(plan.ws_bytes + 4);
    guard(ws, plan.ws_bytes);
    omi_conv_gw_run(&plan, dy, x, dw, ws);
    guard_check(ws, plan.ws_bytes);
}

/* ---- the hash of docs/arithmetic.md -------------------------------------------------------------
 */

static const int64_t hash_shapes[][7] = {{3, 20, 21, 16, 7, 2, 3}, {64, 14, 14, 40, 3, 1, 1},
                                         {33, 9, 9, 29, 3, 1, 1},  {70, 7, 7, 50, 1, 1, 0},
                                         {300, 8, 5, 31, 1, 1, 0}, {17, 15, 13, 20, 3, 2, 1},
                                         {5, 12, 12, 6, 5, 1, 2}};
#define CONV_HASH 0xbb3fa65538ebe14aull

static float half(xs *g) {
    return (float)xs_unit(g) - 0.5f;
}

static uint64_t hash_one(const om_conv_geom *g, const float *x, const float *w, bool own) {
    int64_t n = g->oc * g->win.out[0] * g->win.out[1];
    float *y  = test_alloc((size_t)n * 4);
    if (own)
        ref_conv(g, x, w, NULL, y);
    else
        run_conv(g, x, w, NULL, false, y, 1);
    uint64_t h = fnv32(y, (size_t)n);
    free(y);
    return h;
}

static uint64_t conv_hash(bool own, int flip) {
    xs g       = XS_SEED;
    uint64_t h = 0;
    for (size_t s = 0; s < OM_COUNT(hash_shapes); s++) {
        const int64_t *q = hash_shapes[s];
        om_conv_geom c   = geom(1, q[0], q[1], q[2], q[3], q[4], q[4], q[5], q[6]);
        int64_t k = c.c * c.win.k[0] * c.win.k[1], xn = c.c * c.win.in[0] * c.win.in[1];
        float *x = test_alloc((size_t)xn * 4), *w = test_alloc((size_t)(c.oc * k) * 4);
        for (int64_t i = 0; i < xn; i++)
            x[i] = (float)(xs_unit(&g)) - 0.5f;
        for (int64_t i = 0; i < c.oc * k; i++)
            w[i] = half(&g);
        if (flip == (int)s) ((uint32_t *)(void *)w)[k / 2] ^= 1u;
        h ^= hash_one(&c, x, w, own) + s;
        for (int stride = 1; c.c >= 5 && stride <= 2; stride++) {
            float *w9 = test_alloc((size_t)(c.c * 9) * 4);
            for (int64_t j = 0; j < c.c * 9; j++)
                w9[j] = w[j / 9 * 9 % (c.oc * k - 9) / 9 * 9 + j % 9];
            om_conv_geom d = geom(1, c.c, c.win.in[0], c.win.in[1], c.c, 3, 3, stride, 1);
            d.groups       = c.c;
            h ^= hash_one(&d, x, w9, own);
            free(w9);
        }
        free(x), free(w);
    }
    return h;
}

static void check_hash(const om_kernels *k, void *ctx) {
    (void)ctx;
    uint64_t h = conv_hash(false, -1);
    if (h != CONV_HASH) fail_msg("column %s: hash %016llx", k->name, (unsigned long long)h);
}
static void test_hash(void **state) {
    (void)state;
    assert_true(conv_hash(true, -1) == CONV_HASH);
    each_column(check_hash, NULL);
    assert_true(conv_hash(false, 0) != CONV_HASH);
    assert_true(conv_hash(false, 4) != CONV_HASH);
}

/* ---- forward and both gradients over many geometries --------------------------------------------
 */

/* values: 0 plain; 1 with signed zeros, tiny numbers (sums underflow to -0); 2 with Inf and NaN too
 */
static void fill(xs *g, float *p, int64_t n, int values) {
    static const float odd[] = {0.0f,       -0.0f,     0x1p-80f, -0x1p-80f, 0x1p-74f,
                                -0x1p-149f, 0x1p-126f, INFINITY, NAN,       -INFINITY};
    for (int64_t i = 0; i < n; i++)
        p[i] = values && xs_unit(g) < 0.8 ? odd[xs_int(g, 0, values == 2 ? 9 : 6)] : half(g);
}

static om_conv_geom random_geom(xs *r, int t) {
    static const int64_t ks[] = {1, 2, 3, 3, 3, 5, 7};
    om_conv_geom g            = {.n = xs_int(r, 1, 3), .groups = 1};
    g.c                       = xs_int(r, 1, t % 4 ? 12 : 50);
    g.oc                      = xs_int(r, 1, t % 4 == 2 ? 45 : 20);
    g.win.k[0] = ks[xs_int(r, 0, 6)], g.win.k[1] = ks[xs_int(r, 0, 6)];
    for (int i = 0; i < 2; i++) {
        g.win.stride[i] = xs_int(r, 1, t % 3 ? 2 : 3);
        g.win.dil[i]    = t % 5 == 4 ? xs_int(r, 1, 2) : 1;
    }
    if (t % 7 < 4) g.win.stride[0] = g.win.stride[1] = 1;
    for (int i = 0; i < 4; i++)
        (i < 2 ? g.win.before : g.win.after)[i % 2] = xs_int(r, 0, 3);
    if (t % 6 == 5) g.win.before[0] = g.win.before[1] = g.win.after[0] = g.win.after[1] = 0;
    if (t % 9 == 8) g.win.k[0] = g.win.k[1] = 1;
    if (t % 4 == 3) { /* groups, sometimes depthwise, sometimes with a multiplier */
        g.groups = xs_int(r, 1, 5);
        g.c      = g.groups * xs_int(r, 1, 3);
        g.oc     = g.groups * xs_int(r, 1, 3);
    }
    g.win.in[0] = (g.win.k[0] - 1) * g.win.dil[0] + 1 + xs_int(r, 0, 12);
    g.win.in[1] = (g.win.k[1] - 1) * g.win.dil[1] + 1 + xs_int(r, 0, 20);
    fix_out(&g);
    return g;
}

static void check_geometry(const om_conv_geom *g, xs *r, int values, int workers,
                           const char *what) {
    int64_t icg = g->c / g->groups, xn = g->n * g->c * g->win.in[0] * g->win.in[1];
    int64_t wn = g->oc * icg * g->win.k[0] * g->win.k[1],
            yn = g->n * g->oc * g->win.out[0] * g->win.out[1];
    float *x = test_alloc((size_t)xn * 4), *w = test_alloc((size_t)wn * 4);
    float *b = test_alloc((size_t)g->oc * 4), *dy = test_alloc((size_t)yn * 4);
    int64_t most = xn > yn ? xn : yn;
    if (wn > most) most = wn;
    float *got = test_alloc((size_t)most * 4), *want = test_alloc((size_t)most * 4);
    fill(r, x, xn, values), fill(r, w, wn, values), fill(r, dy, yn, values);
    fill(r, b, g->oc, 0);
    char label[200];
    snprintf(label, sizeof label, "%s n%d c%d %dx%d oc%d k%dx%d s%d,%d d%d,%d p%d,%d,%d,%d g%d v%d",
             what, (int)g->n, (int)g->c, (int)g->win.in[0], (int)g->win.in[1], (int)g->oc,
             (int)g->win.k[0], (int)g->win.k[1], (int)g->win.stride[0], (int)g->win.stride[1],
             (int)g->win.dil[0], (int)g->win.dil[1], (int)g->win.before[0], (int)g->win.before[1],
             (int)g->win.after[0], (int)g->win.after[1], (int)g->groups, values);
    const float *bias = values ? NULL : b;
    ref_conv(g, x, w, bias, want);
    run_conv(g, x, w, bias, workers & 1, got, workers);
    assert_same_f32(got, want, yn, label);
    ref_grad_x(g, dy, w, want);
    memset(got, 0xff, (size_t)most * 4);
    run_grad_x(g, dy, w, got, workers);
    assert_same_f32(got, want, xn, label);
    ref_grad_w(g, dy, x, want);
    memset(got, 0xff, (size_t)most * 4);
    run_grad_w(g, dy, x, got, workers);
    assert_same_f32(got, want, wn, label);
    free(x), free(w), free(b), free(dy), free(got), free(want);
}

static void check_geometries(const om_kernels *k, void *ctx) {
    (void)ctx;
    xs r = {2024};
    for (int t = 0; t < 72; t++) {
        om_conv_geom g = random_geom(&r, t);
        check_geometry(&g, &r, t % 3, t % 2 ? 1 : 3, k->name);
    }
}
static void test_geometries(void **state) {
    (void)state;
    assert_int_equal(om_set_threads(3), OM_OK);
    each_column(check_geometries, NULL);
    assert_int_equal(om_set_threads(0), OM_OK);
}

/* More than 4096 channels, more than 4096 positions, more than one block; split in every way. */
static void check_levels(const om_kernels *k, void *ctx) {
    (void)ctx;
    om_conv_geom shapes[] = {
        geom(1, 4200, 2, 3, 7, 1, 1, 1, 0), geom(1, 5, 2, 3, 4200, 1, 1, 1, 0),
        geom(9, 2, 24, 25, 5, 3, 3, 1, 1),  geom(2, 70, 6, 6, 40, 3, 3, 1, 1),
        geom(5, 2, 32, 32, 3, 1, 1, 1, 0),  geom(1, 4200, 3, 3, 5, 1, 1, 2, 0)};
    static const int counts[] = {1, 2, 3, 8};
    xs r                      = {31};
    for (size_t s = 0; s < OM_COUNT(shapes); s++)
        for (size_t t = 0; t < OM_COUNT(counts); t++) {
            assert_int_equal(om_set_threads(counts[t]), OM_OK);
            check_geometry(&shapes[s], &r, 0, counts[t], k->name);
        }
    assert_int_equal(om_set_threads(0), OM_OK);
}
static void test_levels(void **state) {
    (void)state;
    each_column(check_levels, NULL);
}

/* The rule is also close to the truth. */
static void test_accuracy(void **state) {
    (void)state;
    om_conv_geom g = geom(1, 64, 9, 9, 8, 3, 3, 1, 1);
    static float x[64 * 81], w[8 * 64 * 9], y[8 * 81];
    xs r = {6};
    for (size_t i = 0; i < OM_COUNT(x); i++)
        x[i] = (float)xs_unit(&r);
    for (size_t i = 0; i < OM_COUNT(w); i++)
        w[i] = (float)xs_unit(&r);
    run_conv(&g, x, w, NULL, false, y, 1);
    for (int o = 0; o < 8; o++)
        for (int p = 0; p < 81; p++) {
            double s = 0;
            for (int c = 0; c < 64; c++)
                for (int k = 0; k < 9; k++)
                    s += (double)w[(o * 64 + c) * 9 + k] *
                         (double)x_at(&g, x + c * 81, p / 9 - 1 + k / 3, p % 9 - 1 + k % 3);
            assert_true(fabs((double)y[o * 81 + p] - s) <= 16 * 0x1p-24 * s);
        }
}

static void test_cached(void **state) {
    (void)state;
    om_conv_geom g = geom(1, 3, 8, 8, 5, 3, 3, 1, 1);
    om_buffer *buf = omi_buffer_new(5 * 27 * 4);
    assert_non_null(buf);
    xs r = {3};
    fill(&r, buf->data, 5 * 27, 0);
    const float *p = omi_conv_packed_cached(buf, 0, &g);
    assert_non_null(p);
    assert_ptr_equal(p, omi_conv_packed_cached(buf, 0, &g));
    float x[192], y[320], want[320];
    fill(&r, x, 192, 0);
    om_conv_ptrs d = {.x = x, .weight = buf->data, .w_packed = p, .y = y};
    om_conv_plan plan;
    assert_true(omi_conv_plan(&g, true, 1, &plan));
    void *ws = test_alloc(plan.ws_bytes);
    omi_conv_run(&plan, &d, ws);
    ref_conv(&g, x, buf->data, NULL, want);
    assert_same_f32(y, want, 320, "cached");
    free(ws);
    omi_buffer_release(buf);
}

/* ---- the epilogue -------------------------------------------------------------------------------
 */

typedef struct ep_data {
    const float *scale, *shift, *residual;
    float lo, hi;
} ep_data;

/* What five separate nodes would make of y: BatchNormalization by folded numbers, Add, Relu, Clip,
 * Mul, each with its own rounding. */
static void separate_nodes(const om_conv_geom *g, const ep_data *e, float *y) {
    int64_t px = g->win.out[0] * g->win.out[1];
    for (int64_t i = 0; i < g->n * g->oc * px; i++) {
        int64_t c        = i / px % g->oc;
        volatile float v = y[i] * e->scale[c];
        v                = v + e->shift[c];
        v                = v + e->residual[i];
        v                = 0.0f > v ? 0.0f : v;
        v                = v < e->lo ? e->lo : v > e->hi ? e->hi : v;
        y[i]             = v * e->scale[c];
    }
}

static om_epilogue epilogue_of(const om_conv_geom *g, const ep_data *e) {
    int64_t px     = g->win.out[0] * g->win.out[1];
    om_epilogue ep = {.n = 5};
    ep.step[0]     = (om_ep_step){OM_EP_SCALE_SHIFT, .a = e->scale, .b = e->shift, .rs = 1};
    ep.step[1]     = (om_ep_step){OM_EP_ADD, .a = e->residual, .rs = px, .cs = 1, .is = g->oc * px};
    ep.step[2]     = (om_ep_step){OM_EP_UNARY, .unary = OM_U_RELU};
    ep.step[3]     = (om_ep_step){OM_EP_CLIP, .a = &e->lo, .b = &e->hi};
    ep.step[4]     = (om_ep_step){OM_EP_MUL, .a = e->scale, .rs = 1};
    return ep;
}

static void check_fused(const om_conv_geom *g, xs *r, int workers, const char *what) {
    int64_t yn = g->n * g->oc * g->win.out[0] * g->win.out[1];
    int64_t xn = g->n * g->c * g->win.in[0] * g->win.in[1];
    int64_t wn = g->oc * (g->c / g->groups) * g->win.k[0] * g->win.k[1];
    float *x = test_alloc((size_t)xn * 4 + 4), *w = test_alloc((size_t)wn * 4 + 4);
    float *b = test_alloc((size_t)g->oc * 4), *scale = test_alloc((size_t)g->oc * 4);
    float *res = test_alloc((size_t)yn * 4), *got = test_alloc((size_t)yn * 4);
    float *want = test_alloc((size_t)yn * 4);
    fill(r, x, xn, 0), fill(r, w, wn, 0), fill(r, b, g->oc, 0), fill(r, scale, g->oc, 0);
    fill(r, res, yn, 0);
    ep_data e      = {scale, b, res, 0.01f, 0.3f};
    om_epilogue ep = epilogue_of(g, &e);
    run_conv(g, x, w, b, false, want, 1);
    separate_nodes(g, &e, want);
    om_conv_plan plan;
    assert_true(omi_conv_plan(g, false, workers, &plan));
    char *ws = test_alloc(plan.ws_bytes + 4);
    guard(ws, plan.ws_bytes);
    omi_conv_run(&plan, &(om_conv_ptrs){.x = x, .weight = w, .bias = b, .y = got, .ep = &ep}, ws);
    guard_check(ws, plan.ws_bytes);
    assert_same_f32(got, want, yn, what);
    free(x), free(w), free(b), free(scale), free(res), free(got), free(want);
}

static void check_epilogues(const om_kernels *k, void *ctx) {
    (void)ctx;
    om_conv_geom g[8] = {geom(2, 5, 9, 9, 7, 3, 3, 1, 1),     geom(1, 16, 20, 31, 40, 1, 1, 1, 0),
                         geom(3, 6, 12, 13, 9, 3, 3, 2, 1),   geom(2, 8, 15, 15, 8, 3, 3, 1, 1),
                         geom(1, 12, 30, 30, 70, 3, 3, 1, 1), geom(2, 4, 6, 6, 5, 1, 1, 2, 0),
                         geom(2, 0, 4, 4, 3, 2, 2, 1, 0),     geom(2, 4, 11, 9, 8, 3, 3, 2, 1)};
    g[2].groups       = 3;
    g[3].groups       = 8; // depthwise
    g[7].groups       = 4; // with a multiplier
    xs r              = {77};
    for (size_t i = 0; i < OM_COUNT(g); i++)
        for (int workers = 1; workers <= 3; workers += 2)
            check_fused(&g[i], &r, workers, k->name);
}
static void test_epilogue(void **state) {
    (void)state;
    assert_int_equal(om_set_threads(3), OM_OK);
    each_column(check_epilogues, NULL);
    assert_int_equal(om_set_threads(0), OM_OK);
}

/* Strides, dilations and pads that leave gaps: the copy holds only what is read. */
static void check_gaps(const om_kernels *k, void *ctx) {
    (void)ctx;
    xs r = {99};
    for (int t = 0; t < 24; t++) {
        om_conv_geom g = {.n = 2, .c = 2 + t % 3, .oc = 3, .groups = 1};
        if (t % 4 == 3) g.oc = g.groups = g.c;
        for (int i = 0; i < 2; i++) {
            g.win.k[i]      = xs_int(&r, 1, 3);
            g.win.dil[i]    = xs_int(&r, 1, 9);
            g.win.stride[i] = xs_int(&r, 1, 11);
            g.win.before[i] = xs_int(&r, 0, 20);
            g.win.after[i]  = xs_int(&r, 0, 20);
            g.win.in[i]     = (g.win.k[i] - 1) * g.win.dil[i] + xs_int(&r, 1, 30);
        }
        fix_out(&g);
        check_geometry(&g, &r, t % 3, t % 2 ? 1 : 3, k->name);
    }
}
static void test_gaps(void **state) {
    (void)state;
    each_column(check_gaps, NULL);
}

/* ---- pools --------------------------------------------------------------------------------------
 */

static bool greater(float a, float b) { /* AR-1.5: NaN greatest, +0 > -0 */
    if (a != a || b != b) return a != a && b == b;
    return a > b || (a == b && !signbit(a) && signbit(b));
}

static void ref_pool(const om_pool_geom *g, bool max, const float *x, const float *dy, float *y,
                     float *dx) {
    for (int64_t i = 0; dx && i < g->planes * g->win.in[0] * g->win.in[1]; i++)
        dx[i] = 0.0f;
    for (int64_t o = 0; o < g->planes * g->win.out[0] * g->win.out[1]; o++) {
        int64_t plane = o / (g->win.out[0] * g->win.out[1]), oh = o / g->win.out[1] % g->win.out[0],
                ow = o % g->win.out[1];
        float best = -INFINITY, acc = 0.0f;
        int64_t at = -1, exist = 0, padded = 0;
        for (int pass = 0; pass < (dx && !max ? 2 : 1); pass++)
            for (int64_t k = 0; k < g->win.k[0] * g->win.k[1]; k++) {
                int64_t h =
                    oh * g->win.stride[0] + k / g->win.k[1] * g->win.dil[0] - g->win.before[0];
                int64_t w =
                    ow * g->win.stride[1] + k % g->win.k[1] * g->win.dil[1] - g->win.before[1];
                if (!pass)
                    padded +=
                        h < g->win.in[0] + g->win.after[0] && w < g->win.in[1] + g->win.after[1];
                if (h < 0 || h >= g->win.in[0] || w < 0 || w >= g->win.in[1]) continue;
                int64_t i = (plane * g->win.in[0] + h) * g->win.in[1] + w;
                if (pass) {
                    dx[i] = dx[i] + dy[o] / (float)(g->include_pad ? padded : exist);
                    continue;
                }
                exist++;
                acc = acc + x[i];
                if (greater(x[i], best)) best = x[i];
                if (at < 0 || (x[at] == x[at] && !(x[at] >= x[i]))) at = i;
            }
        if (y) y[o] = max ? best : acc / (float)(g->include_pad ? padded : exist);
        if (dx && max && at >= 0) dx[at] = dx[at] + dy[o];
    }
}

static void check_pools(const om_kernels *k, void *ctx) {
    (void)ctx;
    xs r = {404};
    for (int t = 0; t < 120; t++) {
        om_pool_geom g = {.planes = xs_int(&r, 1, 20), .include_pad = t & 1};
        bool common    = t >= 60; /* 2x2 and 3x3, two outputs apart: kernels of their own */
        bool ceil_mode = t % 3 == 2;
        g.win.k[0] = xs_int(&r, 1, 4), g.win.k[1] = xs_int(&r, 1, 4);
        g.win.in[0] = xs_int(&r, 8, 15), g.win.in[1] = xs_int(&r, 8, 30);
        for (int i = 0; i < 2; i++) {
            int64_t kk      = i ? g.win.k[1] : g.win.k[0];
            g.win.stride[i] = xs_int(&r, 1, 3);
            g.win.dil[i]    = xs_int(&r, 1, 2);
            g.win.before[i] = xs_int(&r, 0, kk / 2);
            g.win.after[i]  = xs_int(&r, 0, kk / 2);
            if (common) g.win.k[i] = 2 + t % 2, g.win.stride[i] = 2, g.win.dil[i] = 1;
        }
        if (common) g.win.in[1] = xs_int(&r, 4, 90);
        g.win.nd = 2;
        assert_true(omi_window_make(&g.win, ceil_mode ? OM_WINDOW_CEIL : OM_WINDOW_FLOOR));
        om_pool_plan p;
        omi_pool_plan(&g, &p);
        int64_t xn = g.planes * g.win.in[0] * g.win.in[1],
                yn = g.planes * g.win.out[0] * g.win.out[1];
        float *x = test_alloc((size_t)xn * 4), *dy = test_alloc((size_t)yn * 4);
        float *got = test_alloc((size_t)(xn + yn) * 4), *want = test_alloc((size_t)(xn + yn) * 4);
        fill(&r, x, xn, t % 3), fill(&r, dy, yn, t % 2);
        ref_pool(&g, true, x, dy, want, want + yn);
        int32_t *at = test_alloc((size_t)yn * sizeof *at);
        omi_maxpool(&p, x, got, NULL), omi_maxpool_grad(&p, x, NULL, dy, got + yn);
        assert_same_f32(got, want, xn + yn, k->name);
        memset(got, 0xff, (size_t)(xn + yn) * 4);
        omi_maxpool(&p, x, got, at), omi_maxpool_grad(&p, NULL, at, dy, got + yn);
        assert_same_f32(got, want, xn + yn, k->name);
        free(at);
        ref_pool(&g, false, x, dy, want, want + yn);
        omi_avgpool(&p, x, got), omi_avgpool_grad(&p, dy, got + yn);
        assert_same_f32(got, want, xn + yn, k->name);
        free(x), free(dy), free(got), free(want);
    }
}
static void test_pools(void **state) {
    (void)state;
    each_column(check_pools, NULL);
}

static int64_t pool_out(int64_t in, int64_t k, int64_t stride, int64_t dil, int64_t before,
                        int64_t after, bool up) {
    om_window w = {1, {in}, {k}, {stride}, {dil}, {before}, {after}, {0}};
    assert_true(omi_window_make(&w, up ? OM_WINDOW_CEIL : OM_WINDOW_FLOOR));
    return w.out[0];
}
static void test_pool_out(void **state) {
    (void)state;
    /* values of torch.nn.functional.max_pool2d's output sizes */
    assert_int_equal(pool_out(7, 2, 2, 1, 0, 0, false), 3);
    assert_int_equal(pool_out(7, 2, 2, 1, 0, 0, true), 4);
    assert_int_equal(pool_out(5, 2, 3, 1, 1, 1, true), 2);
    assert_int_equal(pool_out(5, 2, 2, 1, 1, 1, true), 3);
    assert_int_equal(pool_out(4, 1, 3, 1, 0, 0, true), 2);
    assert_int_equal(pool_out(6, 3, 4, 1, 1, 1, true), 2);
    assert_int_equal(pool_out(1, 2, 2, 1, 0, 0, true), 1);
    assert_int_equal(pool_out(2, 3, 1, 1, 0, 0, false), 0);
    assert_int_equal(pool_out(10, 3, 2, 2, 1, 1, true), 5);
}

/* ---- NCHW16c ------------------------------------------------------------------------------------
 */

static void check_layout(const om_kernels *k, void *ctx) {
    (void)ctx, (void)k;
    enum { N = 2, C = 37, HW = 21 };
    static float x[N * C * HW], y[N * 48 * HW], z[N * C * HW];
    for (size_t i = 0; i < OM_COUNT(x); i++)
        x[i] = (float)(i + 1);
    memset(y, 0xff, sizeof y);
    omi_to_nchw16c(N, C, HW, x, y);
    for (int n = 0; n < N; n++)
        for (int c = 0; c < 48; c++)
            for (int i = 0; i < HW; i++)
                assert_true(y[((n * 3 + c / 16) * HW + i) * 16 + c % 16] ==
                            (c < C ? x[(n * C + c) * HW + i] : 0.0f));
    omi_from_nchw16c(N, C, HW, y, z);
    assert_memory_equal(x, z, sizeof x);
}
static void test_layout(void **state) {
    (void)state;
    each_column(check_layout, NULL);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_hash),     cmocka_unit_test(test_geometries),
        cmocka_unit_test(test_levels),   cmocka_unit_test(test_accuracy),
        cmocka_unit_test(test_cached),   cmocka_unit_test(test_epilogue),
        cmocka_unit_test(test_gaps),     cmocka_unit_test(test_pools),
        cmocka_unit_test(test_pool_out), cmocka_unit_test(test_layout),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
