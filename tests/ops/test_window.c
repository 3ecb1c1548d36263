/*
 * test_window.c -- Conv2d against plain loops in double over a few hundred random geometries,
 * values and all three gradients, and what becomes of packed weights; windows of extreme sizes.
 */
#include "harness.h"

#include <math.h>
#include <time.h>

#include "compute/pool.h"
#include "ops/op.h"

static uint64_t draw_state;
static int64_t draw(int64_t lo, int64_t hi) { // lo .. hi
    draw_state = draw_state * 6364136223846793005u + 1442695040888963407u;
    return lo + (int64_t)((draw_state >> 33) % (uint64_t)(hi - lo + 1));
}

typedef struct geometry {
    int64_t n, c, h, w, oc, icg, kh, kw, groups, oh, ow, s[2], d[2], p[2], e[2];
} geometry;

/* False: the kernel does not fit. */
static bool draw_geometry(geometry *g) {
    *g     = (geometry){.n = draw(1, 3), .h = draw(1, 11), .w = draw(1, 11), .groups = draw(1, 3)};
    g->icg = draw(0, 9) == 0 ? draw(30, 70) : draw(1, 4);
    int64_t og = draw(0, 9) == 0 ? 17 : draw(1, 4);
    if (draw(0, 4) == 0) g->groups = draw(2, 20), g->icg = 1, og = draw(1, 2); // depthwise
    g->c  = g->icg * g->groups;
    g->oc = og * g->groups;
    g->kh = draw(0, 3) == 0 ? 1 : draw(1, 5);
    g->kw = draw(0, 3) == 0 ? 1 : draw(1, 5);
    for (int k = 0; k < 2; k++) {
        g->s[k] = draw(0, 1) ? 1 : draw(1, 4);
        g->d[k] = draw(0, 1) ? 1 : draw(1, 3);
        g->p[k] = draw(0, 3);
        g->e[k] = draw(0, 3) ? 0 : draw(0, 2);
    }
    int64_t rh = g->h + 2 * g->p[0] + g->e[0] - g->d[0] * (g->kh - 1) - 1;
    int64_t rw = g->w + 2 * g->p[1] + g->e[1] - g->d[1] * (g->kw - 1) - 1;
    g->oh      = rh / g->s[0] + 1;
    g->ow      = rw / g->s[1] + 1;
    return rh >= 0 && rw >= 0;
}

static om_tensor *draw_tensor(int rank, const int64_t *shape) {
    om_tensor *t = om_zeros(OM_F32, rank, shape);
    float *p     = om_data_mut(t);
    for (int64_t i = 0; i < om_numel(t); i++)
        p[i] = (float)draw(-1000, 1000) / 700.0f;
    return t;
}

static om_tensor *convolve(const geometry *g, om_tensor *x, om_tensor *w, om_tensor *b) {
    om_conv2d_opts o = {.struct_size = sizeof o, .groups = g->groups};
    for (int k = 0; k < 2; k++) {
        o.stride[k]      = g->s[k];
        o.dilation[k]    = g->d[k];
        o.padding[k]     = g->p[k];
        o.padding_end[k] = g->e[k];
    }
    return om_conv2d(x, w, b, &o);
}

typedef struct sums {
    double *y, *dx, *dw, *db;
    double *ay, *adx, *adw, *adb; /* the same over absolute values: the scale of the error */
} sums;

static void add_to(double *sum, double *scale, int64_t i, double a, double b) {
    sum[i] += a * b;
    scale[i] += fabs(a * b);
}

/* Every product of the convolution, added where it belongs in the four results. */
static void plain_loops(const geometry *g, const float *x, const float *w, const float *b,
                        const float *dy, sums *r) {
    int64_t ocg = g->oc / g->groups, y = 0;
    for (int64_t n = 0; n < g->n; n++)
        for (int64_t o = 0; o < g->oc; o++)
            for (int64_t i = 0; i < g->oh; i++)
                for (int64_t j = 0; j < g->ow; j++, y++) {
                    add_to(r->y, r->ay, y, (double)b[o], 1);
                    add_to(r->db, r->adb, o, (double)dy[y], 1);
                    for (int64_t t = 0; t < g->icg * g->kh * g->kw; t++) {
                        int64_t c = t / (g->kh * g->kw) + o / ocg * g->icg;
                        int64_t h = i * g->s[0] + t / g->kw % g->kh * g->d[0] - g->p[0];
                        int64_t v = j * g->s[1] + t % g->kw * g->d[1] - g->p[1];
                        if (h < 0 || h >= g->h || v < 0 || v >= g->w) continue;
                        int64_t at = ((n * g->c + c) * g->h + h) * g->w + v;
                        int64_t k  = o * g->icg * g->kh * g->kw + t;
                        add_to(r->y, r->ay, y, (double)x[at], (double)w[k]);
                        add_to(r->dx, r->adx, at, (double)dy[y], (double)w[k]);
                        add_to(r->dw, r->adw, k, (double)dy[y], (double)x[at]);
                    }
                }
}

static void near_sums(const char *what, const geometry *g, om_tensor *got, const double *want,
                      const double *scale) {
    assert_non_null(got);
    const float *p = om_data(got);
    for (int64_t i = 0; i < om_numel(got); i++)
        if (!(fabs((double)p[i] - want[i]) <= 4e-6 * scale[i]))
            fail_msg("%s[%lld] is %.9g, not %.9g: n %lld c %lld %lldx%lld oc %lld k %lldx%lld "
                     "groups %lld stride %lld,%lld dilation %lld,%lld padding %lld,%lld+%lld,%lld",
                     what, (long long)i, (double)p[i], want[i], (long long)g->n, (long long)g->c,
                     (long long)g->h, (long long)g->w, (long long)g->oc, (long long)g->kh,
                     (long long)g->kw, (long long)g->groups, (long long)g->s[0], (long long)g->s[1],
                     (long long)g->d[0], (long long)g->d[1], (long long)g->p[0], (long long)g->p[1],
                     (long long)g->e[0], (long long)g->e[1]);
}

static double *zeros(int64_t n) {
    double *p = calloc((size_t)n + 1, sizeof *p);
    assert_non_null(p);
    return p;
}

static void random_geometries(void **state) {
    (void)state;
    int ran = 0;
    for (draw_state = 1; ran < 300;) {
        geometry g;
        if (!draw_geometry(&g)) continue;
        ran++;
        om_scope s       = om_scope_begin();
        om_tensor *x     = draw_tensor(OM_DIMS(g.n, g.c, g.h, g.w));
        om_tensor *w     = draw_tensor(OM_DIMS(g.oc, g.icg, g.kh, g.kw));
        om_tensor *b     = draw_tensor(OM_DIMS(g.oc)),
                  *dy    = draw_tensor(OM_DIMS(g.n, g.oc, g.oh, g.ow));
        om_tensor *plain = convolve(&g, x, w, b); // packed weights: nothing needs a gradient
        om_set_requires_grad(x, true);
        om_set_requires_grad(w, true);
        om_set_requires_grad(b, true);
        om_tensor *y = convolve(&g, x, w, b);
        check_ok();
        assert_true(om_bit_equal(y, plain));
        assert_int_equal(om_backward_with(y, OM_OPTS(backward, .grad = dy)), OM_OK);
        int64_t nx = om_numel(x), nw = om_numel(w), ny = om_numel(y);
        sums r = {zeros(ny), zeros(nx), zeros(nw), zeros(g.oc),
                  zeros(ny), zeros(nx), zeros(nw), zeros(g.oc)};
        plain_loops(&g, om_data(x), om_data(w), om_data(b), om_data(dy), &r);
        near_sums("y", &g, y, r.y, r.ay);
        near_sums("dx", &g, om_grad_of(x), r.dx, r.adx);
        near_sums("dw", &g, om_grad_of(w), r.dw, r.adw);
        near_sums("db", &g, om_grad_of(b), r.db, r.adb);
        double **all = &r.y;
        for (int i = 0; i < 8; i++)
            free(all[i]);
        om_scope_end(s);
    }
}

static size_t packed_forms(const om_tensor *w) {
    size_t n = 0;
    for (om_packed *p = atomic_load(&w->storage->buf->packed); p; p = p->next)
        n++;
    return n;
}

static void packed_weights_follow_the_weight(void **state) {
    (void)state;
    om_scope s   = om_scope_begin();
    om_tensor *x = draw_tensor(OM_DIMS(1, 4, 6, 6)), *w = draw_tensor(OM_DIMS(8, 4, 3, 3));
    om_tensor *a = om_conv2d(x, w, NULL, NULL);
    assert_int_equal(packed_forms(w), 1);
    om_conv2d(x, w, NULL, NULL);
    assert_int_equal(packed_forms(w), 1); // found again
    om_fill_(w, 0.25);
    assert_int_equal(packed_forms(w), 0); // a write drops it
    om_tensor *b = om_conv2d(x, w, NULL, NULL);
    assert_false(om_bit_equal(a, b));
    assert_true(
        om_bit_equal(b, om_conv2d(x, om_full(0.25, OM_F32, OM_DIMS(8, 4, 3, 3)), NULL, NULL)));
    // A weight that trains is not packed for keeps; without gradients it is.
    om_tensor *t = draw_tensor(OM_DIMS(8, 4, 3, 3));
    om_set_requires_grad(t, true);
    om_conv2d(x, t, NULL, NULL);
    assert_int_equal(packed_forms(t), 0);
    bool before = om_no_grad_begin();
    om_conv2d(x, t, NULL, NULL);
    om_no_grad_end(before);
    assert_int_equal(packed_forms(t), 1);
    check_ok();
    om_scope_end(s);
}

/* Only what a gradient will read is saved: the rest may change in between. */
static void unread_operands_may_change(void **state) {
    (void)state;
    om_scope s   = om_scope_begin();
    om_tensor *x = draw_tensor(OM_DIMS(1, 2, 4, 4)), *w = draw_tensor(OM_DIMS(2, 2, 3, 3));
    om_set_requires_grad(x, true);
    om_tensor *y = om_conv2d(x, w, NULL, NULL);
    om_data_mut(x); // dx needs w, not x
    assert_int_equal(
        om_backward_with(y, OM_OPTS(backward, .grad = om_ones(OM_F32, OM_DIMS(1, 2, 2, 2)))),
        OM_OK);
    y = om_conv2d(x, w, NULL, NULL);
    om_fill_(w, 1);
    om_backward_with(y, OM_OPTS(backward, .grad = om_ones(OM_F32, OM_DIMS(1, 2, 2, 2))));
    check_error(OM_ERR_STATE, "om_conv2d", "om_fill_");
    om_scope_end(s);
}

static void no_channels_give_the_bias(void **state) {
    (void)state;
    float *dirty =
        om_data_mut(om_full(7, OM_F32, OM_DIMS(2, 3, 4, 4))); // freed, and given out again
    (void)dirty;
    om_scope_drain();
    om_tensor *b = om_from((float[]){1.5f, -2.0f, -0.0f}, OM_F32, OM_DIMS(3));
    for (int with = 0; with < 2; with++) {
        om_tensor *y = om_conv2d(om_zeros(OM_F32, OM_DIMS(2, 0, 5, 5)),
                                 om_zeros(OM_F32, OM_DIMS(3, 0, 2, 2)), with ? b : NULL, NULL);
        om_tensor *w = with ? om_reshape(om_add_scalar(b, 0), OM_DIMS(1, 3, 1, 1))
                            : om_zeros(OM_F32, OM_DIMS(1, 3, 1, 1));
        assert_true(om_bit_equal(y, om_contiguous(om_expand(w, OM_DIMS(2, 3, 4, 4)))));
    }
}

static void conv_with_a_kernel_of_2_29_is_refused(void **state) {
    (void)state;
    om_set_threads(8);
    int64_t big  = (int64_t)1 << 29;
    om_tensor *x = om_zeros(OM_F32, OM_DIMS(1, 0, 1, 1)),
              *w = om_zeros(OM_F32, OM_DIMS(1, 0, big, big));
    assert_null(om_conv2d(x, w, NULL, OM_OPTS(conv2d, .padding = {1 << 28, 1 << 28})));
    assert_int_not_equal(om_catch(NULL), OM_OK);
    om_set_threads(0);
}

/* The window of every output is the whole image: its maximum, its mean over what exists. */
static void pools_look_only_at_what_exists(void **state) {
    (void)state;
    om_tensor *x = om_from((float[]){1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16}, OM_F32,
                           OM_DIMS(1, 1, 4, 4));
    int64_t k = INT32_MAX, p = INT32_MAX / 2;
    om_pool2d_opts o = {
        .struct_size = sizeof o, .stride = {1, 1}, .padding = {p, p}, .exclude_pad = true};
    om_set_requires_grad(x, true);
    om_tensor *m = om_max_pool2d(x, k, k, &o), *a = om_avg_pool2d(x, k, k, &o);
    assert_true(om_bit_equal(m, om_full(16, OM_F32, OM_DIMS(1, 1, 4, 4))));
    assert_true(om_bit_equal(a, om_full(8.5, OM_F32, OM_DIMS(1, 1, 4, 4))));
    om_backward(om_sum_all(om_add(m, a)));
    check_ok();
    const float *g = om_data(om_grad_of(x));
    for (int i = 0; i < 16; i++)
        assert_float_equal(g[i], i == 15 ? 17 : 1, 0);
}

/* A stride beyond the image leaves most phases without a pixel. */
static void a_stride_of_100000_costs_what_is_there(void **state) {
    (void)state;
    om_tensor *x = om_take(om_ones(OM_F32, OM_DIMS(1, 1, 3, 3))),
              *w = om_take(om_full(2, OM_F32, OM_DIMS(1, 1, 1, 1)));
    om_set_requires_grad(x, true);
    om_set_requires_grad(w, true);
    om_backward(om_sum_all(om_conv2d(x, w, NULL, OM_OPTS(conv2d, .stride = {100000, 100000}))));
    check_ok();
    assert_float_equal(om_item_f32(om_grad_of(w)), 1, 0);
    assert_float_equal(om_item_f32(om_sum_all(om_grad_of(x))), 2, 0);
    om_release(x);
    om_release(w);
}

/* stride = kernel = k on (4k)^2: each pixel has one tap, so 64 times the pixels cost about 64
 * times. */
static void a_gradient_of_patches_is_linear(void **state) {
    (void)state;
    clock_t start = clock();
    for (int64_t k = 8; k <= 64; k *= 2) {
        om_scope s   = om_scope_begin();
        om_tensor *x = om_ones(OM_F32, OM_DIMS(1, 1, 4 * k, 4 * k)),
                  *w = om_full(3, OM_F32, OM_DIMS(1, 1, k, k));
        om_set_requires_grad(x, true);
        om_backward(om_sum_all(om_conv2d(x, w, NULL, OM_OPTS(conv2d, .stride = {k, k}))));
        check_ok();
        assert_true(om_bit_equal(om_grad_of(x), om_full(3, OM_F32, OM_DIMS(1, 1, 4 * k, 4 * k))));
        om_scope_end(s);
    }
    assert_true((double)(clock() - start) / CLOCKS_PER_SEC <
                2); // 5 seconds for k = 32 alone before
}

/* Padding cells take part as +0: an infinite weight over padding gives NaN (AR-3). */
static void padding_cells_take_part(void **state) {
    (void)state;
    om_tensor *x = om_ones(OM_F32, OM_DIMS(1, 1, 1, 1));
    om_tensor *w = om_from((float[]){INFINITY, 2, 3}, OM_F32, OM_DIMS(1, 1, 1, 3));
    om_tensor *y = om_conv2d(x, w, NULL, OM_OPTS(conv2d, .padding = {0, 1}));
    assert_true(isnan(om_item_f32(y))); // inf * 0 + 2 * 1 + 3 * 0
    om_tensor *z = om_conv2d(x, om_from((float[]){INFINITY, 2, 3}, OM_F32, OM_DIMS(1, 1, 3, 1)),
                             NULL, OM_OPTS(conv2d, .padding = {1, 0}));
    assert_true(isnan(om_item_f32(z)));
}

static void options_of_an_older_caller(void **state) {
    (void)state;
    om_scope s   = om_scope_begin();
    om_tensor *x = draw_tensor(OM_DIMS(1, 2, 5, 5)), *w = draw_tensor(OM_DIMS(2, 2, 3, 3));
    om_conv2d_opts o = {.stride  = {2, 2},
                        .padding = {7, 7}}; // struct_size 0: the fields of version 0.1.0
    assert_int_equal(om_dim(om_conv2d(x, w, NULL, &o), 2), 9);
    check_ok();
    om_scope_end(s);
}

/* ---- sizes that only together are too large, and time that follows the data -------------------
 */

static double used(void) { // processor time of the process, in milliseconds
    struct timespec t;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (double)t.tv_sec * 1e3 + (double)t.tv_nsec * 1e-6;
}

/* A1: each option is allowed, the padded input would be 2^31 + 1 cells a side. */
static void conv_with_pads_of_2_30_is_refused(void **state) {
    (void)state;
    om_scope s   = om_scope_begin();
    om_tensor *x = draw_tensor(OM_DIMS(1, 2, 1, 1)), *w = draw_tensor(OM_DIMS(1, 2, 2, 2));
    int64_t big      = (int64_t)1 << 30;
    om_conv2d_opts o = {.struct_size = sizeof o,
                        .stride      = {big, big},
                        .padding     = {big, big},
                        .dilation    = {INT32_MAX, INT32_MAX}};
    assert_null(om_conv2d(x, w, NULL, &o));
    check_error(OM_ERR_LIMIT, "om_conv2d", "the padded extent 2147483649");
    om_scope_end(s);
}

/* A2: a weight without channels has no bytes, whatever its kernel is. */
static void conv_with_a_kernel_of_2_58_is_refused(void **state) {
    (void)state;
    om_scope s   = om_scope_begin();
    int was      = om_threads();
    int64_t side = (int64_t)1 << 29;
    om_set_threads(8);
    om_tensor *x = draw_tensor(OM_DIMS(1, 0, 1, 1)), *w = draw_tensor(OM_DIMS(1, 0, side, side));
    om_conv2d_opts o = {.struct_size = sizeof o, .padding = {side / 2, side / 2}};
    assert_null(om_conv2d(x, w, NULL, &o));
    check_error(OM_ERR_LIMIT, "om_conv2d", "the kernel of 536870912 x 536870912");
    om_set_threads(was);
    om_scope_end(s);
}

/* Legal and sparse: strides, dilations and pads that leave gaps of millions cost nothing, and the
 * taps they reach are right, forward and back. */
static void gaps_of_a_convolution_cost_nothing(void **state) {
    (void)state;
    om_scope s   = om_scope_begin();
    int64_t far  = 1 << 28;
    om_tensor *x = draw_tensor(OM_DIMS(2, 3, 3, 3)), *w = draw_tensor(OM_DIMS(4, 3, 3, 3));
    om_conv2d_opts o = {.struct_size = sizeof o,
                        .stride      = {far, 1},
                        .padding     = {far - 1, far},
                        .dilation    = {far, far}};
    double t         = used();
    om_set_requires_grad(x, true);
    om_set_requires_grad(w, true);
    om_tensor *y = om_conv2d(x, w, NULL, &o);
    assert_int_equal(om_dim(y, 2), 1); // rows -far+1, 1, far+1: the middle one exists
    assert_int_equal(om_dim(y, 3), 3); // columns j-far, j, j+far
    om_backward_with(y, OM_OPTS(backward, .grad = om_ones(OM_F32, OM_DIMS(2, 4, 1, 3))));
    check_ok();
    om_tensor *row  = om_slice(om_detach(x), 2, 1, 2, 1); // [2, 3, 1, 3]
    om_tensor *mid  = om_slice(om_slice(om_detach(w), 2, 1, 2, 1), 3, 1, 2, 1);
    om_tensor *want = om_conv2d(row, mid, NULL, NULL);
    for (int64_t i = 0; i < om_numel(want); i++)
        assert_true(fabsf(((const float *)om_data(y))[i] - ((const float *)om_data(want))[i]) <=
                    1e-5f);
    const float *dx = om_data(om_grad_of(x)), *dw = om_data(om_grad_of(w));
    const float *wv = om_data(w), *xv = om_data(x);
    for (int64_t i = 0; i < om_numel(x); i++) {
        double sum = 0;
        for (int o4 = 0; o4 < 4 && i / 3 % 3 == 1; o4++)
            sum += (double)wv[(o4 * 3 + i / 9 % 3) * 9 + 4];
        assert_true(fabs((double)dx[i] - sum) <= 1e-5);
    }
    for (int64_t i = 0; i < om_numel(w); i++) {
        double sum = 0;
        for (int k = 0; k < 6 && i % 9 == 4; k++)
            sum += (double)xv[(k / 3 * 3 + i / 9 % 3) * 9 + 3 + k % 3];
        assert_true(fabs((double)dw[i] - sum) <= 1e-5);
    }
    if (used() - t > 500) fail_msg("%.0f ms", used() - t);
    om_scope_end(s);
}

/* A5: 1.8 ms, 187 ms and 5.2 s before; the data are 64 KiB at most. */
static void gradients_follow_the_data_not_the_stride(void **state) {
    (void)state;
    static const int64_t cases[][3] = {{32, 8, 8}, {64, 16, 16}, {128, 32, 32}, {3, 3, 100000}};
    for (size_t i = 0; i < OM_COUNT(cases); i++) {
        om_scope s   = om_scope_begin();
        int64_t side = cases[i][0], k = cases[i][1], step = cases[i][2];
        om_tensor *x     = draw_tensor(OM_DIMS(1, 1, side, side)),
                  *w     = draw_tensor(OM_DIMS(1, 1, k, k));
        om_conv2d_opts o = {.struct_size = sizeof o, .stride = {step, step}};
        om_set_requires_grad(x, true);
        om_set_requires_grad(w, true);
        om_tensor *y = om_conv2d(x, w, NULL, &o), *g = om_ones_like(y);
        double t = used();
        om_backward_with(y, OM_OPTS(backward, .grad = g));
        check_ok();
        if (used() - t > 400) fail_msg("kernel %lld: %.0f ms", (long long)k, used() - t);
        const float *dx = om_data(om_grad_of(x)), *wv = om_data(w);
        for (int64_t p = 0; p < side * side; p++)
            assert_true(dx[p] == wv[p / side % k * k + p % side % k]);
        om_scope_end(s);
    }
}

/* A4: the window covers everything from every position. */
static void a_pool_of_2_31_looks_at_what_exists(void **state) {
    (void)state;
    om_scope s       = om_scope_begin();
    int64_t k        = INT32_MAX;
    om_tensor *x     = draw_tensor(OM_DIMS(1, 2, 4, 4));
    om_pool2d_opts o = {
        .struct_size = sizeof o, .stride = {1, 1}, .padding = {k / 2, k / 2}, .exclude_pad = true};
    double t = used();
    om_set_requires_grad(x, true);
    om_tensor *y = om_max_pool2d(x, k, k, &o), *a = om_avg_pool2d(x, k, k, &o);
    assert_int_equal(om_dim(y, 2), 4);
    const float *xv = om_data(x), *yv = om_data(y), *av = om_data(a);
    float dx[32] = {0};
    for (int p = 0; p < 2; p++) {
        float most = xv[p * 16], sum = 0;
        int at = p * 16;
        for (int i = p * 16; i < p * 16 + 16; i++) {
            sum = sum + xv[i];
            if (xv[i] > most) most = xv[at = i];
        }
        dx[at] = 16;
        for (int i = p * 16; i < p * 16 + 16; i++)
            assert_true(yv[i] == most && av[i] == sum / 16);
    }
    om_backward_with(y, OM_OPTS(backward, .grad = om_ones_like(y)));
    assert_memory_equal(om_data(om_grad_of(x)), dx, sizeof dx);
    om_backward_with(a, OM_OPTS(backward, .grad = om_ones_like(a)));
    check_ok();
    if (used() - t > 50) fail_msg("%.0f ms", used() - t);
    om_scope_end(s);
}

/* ONNX lets pads exceed the kernel: windows in the padding have no tap, and a stride of 2^29 skips
 * everything. */
static void windows_without_a_tap(void **state) {
    (void)state;
    om_window w = {2,
                   {4, 4},
                   {1 << 20, 1 << 20},
                   {1 << 19, 1 << 19},
                   {1, 1},
                   {1 << 21, 1 << 21},
                   {1 << 21, 1 << 21},
                   {0}};
    float x[16], y[49];
    double t = used();
    om_pool_plan p;
    for (int i = 0; i < 16; i++)
        x[i] = (float)(i + 1);
    assert_true(omi_window_make(&w, OM_WINDOW_FLOOR));
    assert_int_equal(w.out[0], 7);
    omi_pool_plan(&(om_pool_geom){.planes = 1, .win = w}, &p);
    omi_maxpool(&p, x, y, NULL);
    for (int i = 0; i < 49; i++) { // windows 3 and 4 of each axis reach the input
        bool reach = (i / 7 == 3 || i / 7 == 4) && (i % 7 == 3 || i % 7 == 4);
        assert_true(y[i] == (reach ? 16.0f : -INFINITY));
    }
    if (used() - t > 50) fail_msg("%.0f ms", used() - t);
}

/* AR-3: padding is +0 and takes part, so an infinite or NaN weight over it gives NaN. */
static void padding_takes_part_in_a_convolution(void **state) {
    (void)state;
    om_scope s         = om_scope_begin();
    const float bad[2] = {INFINITY, NAN};
    for (int64_t stride = 1; stride <= 2; stride++)
        for (int64_t groups = 1; groups <= 2; groups++)
            for (int n = 0; n < 2; n++) {
                om_tensor *x                 = om_ones(OM_F32, OM_DIMS(1, 2, 5, 5));
                om_tensor *w                 = om_zeros(OM_F32, OM_DIMS(2, 2 / groups, 3, 3));
                om_conv2d_opts o             = {.struct_size = sizeof o,
                                                .stride      = {stride, stride},
                                                .padding     = {1, 1},
                                                .groups      = groups};
                ((float *)om_data_mut(w))[0] = bad[n]; // first output channel, upper left tap
                om_tensor *y                 = om_conv2d(x, w, NULL, &o);
                const float *v               = om_data(y);
                int64_t side                 = om_dim(y, 2);
                for (int64_t i = 0; i < side * side; i++) {
                    bool edge = i / side == 0 || i % side == 0;
                    assert_true(edge || n == 1 ? isnan(v[i]) : v[i] == INFINITY);
                    assert_true(v[side * side + i] == 0);
                }
            }
    om_scope_end(s);
}

/* The constructor: what it makes, and what it refuses. */
static void a_window_is_checked_where_it_is_made(void **state) {
    (void)state;
    const om_window good = {2, {7, 9}, {3, 2}, {2, 3}, {2, 1}, {1, 0}, {0, 1}, {0}};
    om_window w          = good;
    assert_true(omi_window_make(&w, OM_WINDOW_FLOOR));
    assert_int_equal(w.out[0], 2); // (7 + 1 - 5) / 2 + 1: dilation counts
    assert_int_equal(w.out[1], 3); // (9 + 1 - 2) / 3 + 1
    w = good;
    assert_true(omi_window_make(&w, OM_WINDOW_CEIL));
    assert_int_equal(w.out[0], 3);
    w = good;
    assert_true(omi_window_make(&w, OM_WINDOW_SAME_UPPER));
    assert_int_equal(w.out[0], 4); // pads 2 * 3 + 5 - 7 = 4 and 3 * 2 + 2 - 9 < 0
    assert_int_equal(w.before[0] * 10 + w.after[0], 22);
    assert_int_equal(w.before[1] * 10 + w.after[1], 0);
    w = (om_window){1, {6}, {2}, {1}, {1}, {0}, {0}, {0}};
    assert_true(omi_window_make(&w, OM_WINDOW_SAME_LOWER));
    assert_int_equal(w.before[0] * 10 + w.after[0], 10);
    for (int k = 0; k < 9; k++) {
        w             = good;
        int64_t far   = (int64_t)INT32_MAX + 1;
        int64_t *at[] = {&w.k[1],   &w.k[1],      &w.stride[0], &w.stride[0], &w.dil[1],
                         &w.dil[1], &w.before[0], &w.after[1],  &w.in[0]};
        *at[k]        = k == 8 ? OM_WINDOW_IN : k % 2 && k < 6 ? 0 : k == 7 ? -1 : far;
        if (omi_window_make(&w, OM_WINDOW_FLOOR)) fail_msg("number %d was taken", k);
    }
    int64_t lo, hi;
    w = (om_window){2, {4, 5}, {3, 3}, {2, 1}, {1, 2}, {1, 2}, {1, 2}, {0}};
    assert_true(omi_window_make(&w, OM_WINDOW_FLOOR));
    omi_window_inside(&w, 1, &lo, &hi); // of 5 outputs the third alone has all its taps
    assert_int_equal(lo * 10 + hi, 23);
    omi_window_taps(&w, 1, 1, 0, 5, &lo, &hi); // positions -1, 1, 3
    assert_int_equal(lo * 10 + hi, 13);
    omi_window_taps(&w, 0, 1, 0, 4, &lo, &hi); // positions 1, 2, 3
    assert_int_equal(lo * 10 + hi, 3);
}

/* The gradient goes to the winner of the forward pass; the input is not kept and may change. */
static void a_max_pool_keeps_its_winners_not_its_input(void **state) {
    (void)state;
    om_scope s       = om_scope_begin();
    const float v[9] = {1, 5, 2, 7, 3, NAN, 4, 7, 0};
    om_tensor *x     = om_from(v, OM_F32, OM_DIMS(1, 1, 3, 3));
    om_set_requires_grad(x, true);
    om_tensor *y = om_max_pool2d(x, 2, 2, OM_OPTS(pool2d, .stride = {1, 1}));
    om_set_requires_grad(x, false);
    om_fill_(x, -1);
    om_set_requires_grad(x, true);
    const float g[4] = {1, 10, 100, 1000};
    om_backward_with(y, OM_OPTS(backward, .grad = om_from(g, OM_F32, OM_DIMS(1, 1, 2, 2))));
    check_ok();
    // the first of the two sevens, and the NaN twice
    const float want[9] = {0, 0, 0, 101, 0, 1010, 0, 0, 0};
    assert_memory_equal(om_data(om_grad_of(x)), want, sizeof want);
    om_scope_end(s);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        OM_TEST(random_geometries),
        OM_TEST(packed_weights_follow_the_weight),
        OM_TEST(unread_operands_may_change),
        OM_TEST(no_channels_give_the_bias),
        OM_TEST(conv_with_pads_of_2_30_is_refused),
        OM_TEST(conv_with_a_kernel_of_2_29_is_refused),
        OM_TEST(pools_look_only_at_what_exists),
        OM_TEST(a_stride_of_100000_costs_what_is_there),
        OM_TEST(a_gradient_of_patches_is_linear),
        OM_TEST(padding_cells_take_part),
        OM_TEST(options_of_an_older_caller),
        OM_TEST(a_max_pool_keeps_its_winners_not_its_input),
        OM_TEST(a_window_is_checked_where_it_is_made),
        OM_TEST(padding_takes_part_in_a_convolution),
        OM_TEST(windows_without_a_tap),
        OM_TEST(a_pool_of_2_31_looks_at_what_exists),
        OM_TEST(gradients_follow_the_data_not_the_stride),
        OM_TEST(gaps_of_a_convolution_cost_nothing),
        OM_TEST(conv_with_a_kernel_of_2_58_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
