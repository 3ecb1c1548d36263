/*
 * pool.c -- MaxPool and AveragePool with their gradients (AR-1.5, AR-4.5, AR-8, AR-11.2), and the
 * blocked layout NCHW16c.
 *
 * Planes are independent and shared among threads. Forward goes tap by tap over rows of outputs;
 * the order of taps at each output is the rule's, row-major. Gradients go output by output, as the
 * rule adds them.
 */
#include "compute/conv.h"

#include <math.h>
#include <string.h>

#include "base/checked.h"
#include "compute/split.h"
#include "kernels/table.h"

int64_t omi_pool_out(int64_t in, int64_t k, int64_t stride, int64_t dilation, int64_t before,
                     int64_t after, bool ceil_mode) {
    int64_t room = in + before + after - dilation * (k - 1) - 1 + (ceil_mode ? stride - 1 : 0);
    if (room < 0) return 0;
    int64_t out = room / stride + 1;
    if (ceil_mode && (out - 1) * stride >= in + before) out--;
    return out;
}

typedef struct pool_run {
    const om_pool2d_geom *g;
    const om_kernels *kern;
    const float *x, *dy;
    float *y; /* or dx */
    bool max;
    int64_t planes; /* of a chunk */
} pool_run;

/* Outputs [*lo, *hi) along an axis whose tap k lies inside the input. */
static void valid_outputs(const om_pool2d_geom *g, int axis, int64_t k, int64_t *lo, int64_t *hi) {
    int64_t in = axis ? g->w : g->h, out = axis ? g->ow : g->oh, s = g->stride[axis];
    int64_t at = k * g->dilation[axis] - g->pad[axis]; /* input position for output 0 */
    *lo        = at < 0 ? omi_ceil_div(-at, s) : 0;
    *hi        = in - 1 - at < 0 ? 0 : omi_min64(out, (in - 1 - at) / s + 1);
}

/* Taps [*from, *to) of output o along an axis that lie at lo .. hi - 1: a kernel may reach far
 * beyond the image, and only what is there is looked at. */
static void taps_between(const om_pool2d_geom *g, int axis, int64_t o, int64_t lo, int64_t hi,
                         int64_t *from, int64_t *to) {
    int64_t at = o * g->stride[axis] - g->pad[axis], d = g->dilation[axis],
            k = axis ? g->kw : g->kh;
    *from     = at >= lo ? 0 : omi_ceil_div(lo - at, d);
    *to       = hi <= at ? 0 : omi_min64(k, (hi - 1 - at) / d + 1);
    *from     = omi_min64(*from, *to);
}

static void taps_in(const om_pool2d_geom *g, int axis, int64_t o, int64_t *from, int64_t *to) {
    taps_between(g, axis, o, 0, axis ? g->w : g->h, from, to);
}

/* Taps of output o along an axis that exist; with pads: that lie in the input or its padding. */
static int64_t taps_of(const om_pool2d_geom *g, int axis, int64_t o, bool pads) {
    int64_t in = axis ? g->w : g->h, from, to;
    taps_between(g, axis, o, pads ? -g->pad[axis] : 0, pads ? in + g->pad[axis + 2] : in, &from,
                 &to);
    return to - from;
}

static float divisor(const om_pool2d_geom *g, int64_t oh, int64_t ow) {
    return (float)(taps_of(g, 0, oh, g->include_pad) * taps_of(g, 1, ow, g->include_pad));
}

static void forward_plane(const pool_run *r, const float *x, float *y) {
    const om_pool2d_geom *g = r->g;
    for (int64_t i = 0; i < g->oh * g->ow; i++)
        y[i] = r->max ? -INFINITY : 0.0f;
    int64_t j0, j1, unused;
    taps_in(g, 1, g->ow - 1, &j0,
            &unused); // the last output meets the first taps, the first the last
    taps_in(g, 1, 0, &unused, &j1);
    for (int64_t oh = 0; oh < g->oh; oh++) {
        int64_t from, to;
        taps_in(g, 0, oh, &from, &to);
        for (int64_t i = from; i < to; i++) {
            int64_t h = oh * g->stride[0] + i * g->dilation[0] - g->pad[0];
            for (int64_t j = j0; j < j1; j++) {
                int64_t lo, hi;
                valid_outputs(g, 1, j, &lo, &hi);
                if (hi <= lo) continue;
                const float *s = x + h * g->w + lo * g->stride[1] + j * g->dilation[1] - g->pad[1];
                (r->max ? r->kern->pool_max : r->kern->pool_add)(y + oh * g->ow + lo, s, hi - lo,
                                                                 g->stride[1]);
            }
        }
    }
    if (r->max) return;
    for (int64_t oh = 0; oh < g->oh; oh++)
        for (int64_t ow = 0; ow < g->ow; ow++)
            y[oh * g->ow + ow] = y[oh * g->ow + ow] / divisor(g, oh, ow);
}

/* The first tap equal to the maximum, or the first NaN; -1 when the window has no tap. */
static int64_t winner(const om_pool2d_geom *g, const float *x, int64_t oh, int64_t ow) {
    int64_t best = -1, i0, i1, j0, j1;
    taps_in(g, 0, oh, &i0, &i1);
    taps_in(g, 1, ow, &j0, &j1);
    for (int64_t i = i0; i < i1; i++)
        for (int64_t j = j0; j < j1; j++) {
            int64_t h = oh * g->stride[0] + i * g->dilation[0] - g->pad[0];
            int64_t w = ow * g->stride[1] + j * g->dilation[1] - g->pad[1];
            float v   = x[h * g->w + w];
            if (v != v) return h * g->w + w;
            if (best < 0 || v > x[best]) best = h * g->w + w;
        }
    return best;
}

static void max_grad_plane(const pool_run *r, const float *x, const float *dy, float *dx) {
    const om_pool2d_geom *g = r->g;
    memset(dx, 0, (size_t)(g->h * g->w) * sizeof(float));
    for (int64_t oh = 0; oh < g->oh; oh++)
        for (int64_t ow = 0; ow < g->ow; ow++) {
            int64_t at = winner(g, x, oh, ow);
            if (at >= 0) dx[at] = dx[at] + dy[oh * g->ow + ow];
        }
}

static void avg_grad_plane(const pool_run *r, const float *dy, float *dx) {
    const om_pool2d_geom *g = r->g;
    memset(dx, 0, (size_t)(g->h * g->w) * sizeof(float));
    for (int64_t oh = 0; oh < g->oh; oh++)
        for (int64_t ow = 0; ow < g->ow; ow++) {
            float v = dy[oh * g->ow + ow] / divisor(g, oh, ow);
            int64_t i0, i1, j0, j1;
            taps_in(g, 0, oh, &i0, &i1);
            taps_in(g, 1, ow, &j0, &j1);
            for (int64_t i = i0; i < i1; i++)
                for (int64_t j = j0; j < j1; j++) {
                    int64_t h        = oh * g->stride[0] + i * g->dilation[0] - g->pad[0];
                    int64_t w        = ow * g->stride[1] + j * g->dilation[1] - g->pad[1];
                    dx[h * g->w + w] = dx[h * g->w + w] + v;
                }
        }
}

static void pool_chunk(void *arg, int64_t chunk, int worker) {
    (void)worker;
    const pool_run *r = arg;
    int64_t in = r->g->h * r->g->w, out = r->g->oh * r->g->ow;
    int64_t end = omi_min64((chunk + 1) * r->planes, r->g->planes);
    for (int64_t p = chunk * r->planes; p < end; p++) {
        if (!r->dy)
            forward_plane(r, r->x + p * in, r->y + p * out);
        else if (r->max)
            max_grad_plane(r, r->x + p * in, r->dy + p * out, r->y + p * in);
        else
            avg_grad_plane(r, r->dy + p * out, r->y + p * in);
    }
}

static void pool_planes(pool_run *r) {
    const om_pool2d_geom *g = r->g;
    int64_t taps[]          = {g->oh, g->ow, omi_min64(g->kh, g->h), omi_min64(g->kw, g->w)};
    int64_t work            = omi_max64(omi_product_at_most(taps, 4), g->h * g->w);
    r->kern                 = omi_kernels();
    r->planes               = omi_max64(1, 32768 / omi_max64(work, 1));
    omi_parallel(omi_ceil_div(g->planes, r->planes), pool_chunk, r);
}

void omi_maxpool2d(const om_pool2d_geom *g, const float *x, float *y) {
    pool_planes(&(pool_run){.g = g, .x = x, .y = y, .max = true});
}
void omi_maxpool2d_grad(const om_pool2d_geom *g, const float *x, const float *dy, float *dx) {
    pool_planes(&(pool_run){.g = g, .x = x, .dy = dy, .y = dx, .max = true});
}
void omi_avgpool2d(const om_pool2d_geom *g, const float *x, float *y) {
    pool_planes(&(pool_run){.g = g, .x = x, .y = y});
}
void omi_avgpool2d_grad(const om_pool2d_geom *g, const float *dy, float *dx) {
    pool_planes(&(pool_run){.g = g, .dy = dy, .y = dx});
}

/* ---- NCHW16c ----------------------------------------------------------------------------------
 */

typedef struct layout_run {
    int64_t c, hw, blocks;
    const float *x;
    float *y;
} layout_run;

/* One image in blocks of 16 channels is the panel16 form of its [hw, c] matrix. */
static void to_blocks(void *arg, int64_t chunk, int worker) {
    (void)worker;
    const layout_run *r = arg;
    int64_t n = chunk / r->blocks, b = chunk % r->blocks;
    omi_kernels()->pack_b16(r->y + n * r->blocks * r->hw * 16, r->x + n * r->c * r->hw, 1, r->hw,
                            r->hw, r->c, b, b + 1);
}

static void from_blocks(void *arg, int64_t chunk, int worker) {
    (void)worker;
    const layout_run *r = arg;
    int64_t n = chunk / r->blocks, b = chunk % r->blocks;
    for (int64_t c = b * 16; c < omi_min64(r->c, b * 16 + 16); c++)
        for (int64_t i = 0; i < r->hw; i++)
            r->y[(n * r->c + c) * r->hw + i] = r->x[(chunk * r->hw + i) * 16 + c % 16];
}

void omi_to_nchw16c(int64_t n, int64_t c, int64_t hw, const float *x, float *y) {
    layout_run r = {.c = c, .hw = hw, .blocks = (c + 15) / 16, .x = x, .y = y};
    omi_parallel(n * r.blocks, to_blocks, &r);
}
void omi_from_nchw16c(int64_t n, int64_t c, int64_t hw, const float *x, float *y) {
    layout_run r = {.c = c, .hw = hw, .blocks = (c + 15) / 16, .x = x, .y = y};
    omi_parallel(n * r.blocks, from_blocks, &r);
}
