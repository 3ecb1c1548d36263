/*
 * pool.c -- MaxPool and AveragePool with their gradients.
 *
 * Planes are independent and shared among threads. Outputs all of whose taps exist go to the
 * column's kernels in runs of a row; those at the border are made here, over the taps that exist.
 * The order of taps at each output is the rule's, row-major. Gradients go output by output, as the
 * rule adds them.
 */
#include "compute/pool.h"

#include <math.h>
#include <string.h>

#include "compute/split.h"

#define PLANES_WORK 32768              /* taps of a chunk of planes, about       */
#define ASK_WORK    ((int64_t)1 << 18) /* taps between two questions about time */

void omi_pool_plan(const om_pool_geom *g, om_pool_plan *p) {
    *p = (om_pool_plan){.g = *g, .kern = omi_kernels()};
    int64_t work[4]; /* of one plane: a kernel may be larger than its input by any factor */
    for (int i = 0; i < 2; i++) {
        omi_window_inside(&g->win, i, &p->inside[i][0], &p->inside[i][1]);
        work[2 * i]     = g->win.out[i];
        work[2 * i + 1] = omi_min64(g->win.k[i], g->win.in[i]);
    }
    int64_t taps = omi_max64(omi_product_at_most(work, 4), g->win.in[0] * g->win.in[1]);
    p->planes    = omi_max64(1, PLANES_WORK / omi_max64(taps, 1));
}

typedef struct pool_run {
    const om_pool_plan *p;
    const float *x, *dy;
    float *y;           /* or dx */
    int32_t *at;        /* winners to write  */
    const int32_t *won; /* winners of before */
    bool max;
} pool_run;

/* Existing taps of one output. */
typedef struct taps {
    int64_t lo[2], hi[2];
    int64_t h, w; /* input position of tap 0, 0 */
} taps;

static taps taps_of(const om_window *w, int64_t oh, int64_t ow) {
    taps t;
    omi_window_taps(w, 0, oh, 0, w->in[0], &t.lo[0], &t.hi[0]);
    omi_window_taps(w, 1, ow, 0, w->in[1], &t.lo[1], &t.hi[1]);
    t.h = oh * w->stride[0] - w->before[0];
    t.w = ow * w->stride[1] - w->before[1];
    return t;
}

/* Taps of output o along an axis that an average counts: those that exist; with pads: that lie in
 * the input or its padding. */
static int64_t counted(const om_pool_geom *g, int axis, int64_t o) {
    const om_window *w = &g->win;
    int64_t lo, hi;
    omi_window_taps(w, axis, o, g->include_pad ? -w->before[axis] : 0,
                    w->in[axis] + (g->include_pad ? w->after[axis] : 0), &lo, &hi);
    return hi - lo;
}

/* Asks about time, but not for every few taps. */
static bool stop(const taps *t) {
    return t->hi[1] - t->lo[1] > 1024 && omi_cut_short();
}

/* ---- outputs at the border --------------------------------------------------------------------
 */

static float greater_of1(float a, float b) {
    if (a > b) return a;
    if (b > a) return b;
    if (a == b) return signbit(a) ? b : a;
    return a + b;
}

static float fold_border(const om_window *w, const taps *t, const float *x, bool max) {
    float r = max ? -INFINITY : 0.0f;
    for (int64_t i = t->lo[0]; i < t->hi[0] && !stop(t); i++) {
        const float *s = x + (t->h + i * w->dil[0]) * w->in[1] + t->w;
        for (int64_t j = t->lo[1]; j < t->hi[1]; j++)
            r = max ? greater_of1(r, s[j * w->dil[1]]) : r + s[j * w->dil[1]];
    }
    return r;
}

/* The first tap equal to the maximum, or the first NaN; -1 when the window has no tap. */
static int64_t winner(const om_window *w, const taps *t, const float *x) {
    int64_t best = -1;
    for (int64_t i = t->lo[0]; i < t->hi[0] && !stop(t); i++) {
        int64_t row = (t->h + i * w->dil[0]) * w->in[1] + t->w;
        for (int64_t j = t->lo[1]; j < t->hi[1]; j++) {
            int64_t k = row + j * w->dil[1];
            if (x[k] != x[k]) return k;
            if (best < 0 || x[k] > x[best]) best = k;
        }
    }
    return best;
}

/* Outputs [from, to) of a row. */
static void border_row(const pool_run *r, const float *x, int64_t oh, int64_t from, int64_t to,
                       float *y, int32_t *at) {
    const om_pool_geom *g = &r->p->g;
    for (int64_t ow = from; ow < to; ow++) {
        taps t = taps_of(&g->win, oh, ow);
        if (t.hi[0] - t.lo[0] > 16 && omi_cut_short()) return;
        if (at) at[ow] = (int32_t)winner(&g->win, &t, x);
        y[ow] = fold_border(&g->win, &t, x, r->max);
    }
}

/* ---- forward ----------------------------------------------------------------------------------
 */

/* Outputs [from, to) of a row, whose columns all exist; rows [lo, hi) do. */
static void inner_row(const pool_run *r, const float *x, int64_t oh, int64_t from, int64_t to,
                      float *y, int32_t *at) {
    const om_window *w = &r->p->g.win;
    int64_t lo, hi;
    omi_window_taps(w, 0, oh, 0, w->in[0], &lo, &hi);
    if (hi <= lo) {
        border_row(r, x, oh, from, to, y, at);
        return;
    }
    int64_t top    = oh * w->stride[0] - w->before[0] + lo * w->dil[0];
    om_pool_args a = {
        .rows = hi - lo, .cols = w->k[1], .col_step = w->dil[1], .step = w->stride[1]};
    a.row_step   = w->dil[0] * w->in[1];
    int64_t most = omi_max64(64, ASK_WORK / (a.rows * a.cols));
    for (int64_t o = from; o < to && !omi_cut_short(); o += a.n) {
        a.n  = omi_min64(most, to - o);
        a.at = top * w->in[1] + o * w->stride[1] - w->before[1];
        a.x  = x + a.at;
        (r->max ? r->p->kern->pool_max : r->p->kern->pool_sum)(&a, y + o);
        if (at) r->p->kern->pool_at(&a, at + o);
    }
}

/* Sums become averages; where all columns exist, they are divided by one number. */
static void average_row(const pool_run *r, int64_t oh, float *y) {
    const om_pool_geom *g = &r->p->g;
    int64_t rows = counted(g, 0, oh), lo = r->p->inside[1][0], hi = r->p->inside[1][1];
    float whole = (float)(rows * g->win.k[1]);
    for (int64_t o = 0; o < lo; o++)
        y[o] = y[o] / (float)(rows * counted(g, 1, o));
    for (int64_t o = lo; o < hi; o++)
        y[o] = y[o] / whole;
    for (int64_t o = hi; o < g->win.out[1]; o++)
        y[o] = y[o] / (float)(rows * counted(g, 1, o));
}

static void forward_plane(const pool_run *r, const float *x, float *y, int32_t *at) {
    const om_pool_geom *g = &r->p->g;
    int64_t ow = g->win.out[1], lo = r->p->inside[1][0], hi = r->p->inside[1][1];
    for (int64_t oh = 0; oh < g->win.out[0]; oh++, y += ow) {
        if (omi_cut_short()) return;
        border_row(r, x, oh, 0, lo, y, at);
        inner_row(r, x, oh, lo, hi, y, at);
        border_row(r, x, oh, hi, ow, y, at);
        if (at) at += ow; // winners are kept only where a gradient will be asked
        if (r->max) continue;
        average_row(r, oh, y);
    }
}

/* ---- gradients --------------------------------------------------------------------------------
 */

static void max_grad_plane(const pool_run *r, const float *x, const int32_t *at, const float *dy,
                           float *dx) {
    const om_window *w = &r->p->g.win;
    memset(dx, 0, (size_t)(w->in[0] * w->in[1]) * sizeof(float));
    if (at) {
        for (int64_t o = 0; o < w->out[0] * w->out[1]; o++)
            if (at[o] >= 0) dx[at[o]] = dx[at[o]] + dy[o];
        return;
    }
    for (int64_t oh = 0; oh < w->out[0]; oh++)
        for (int64_t ow = 0; ow < w->out[1] && !omi_cut_short(); ow++) {
            taps t    = taps_of(w, oh, ow);
            int64_t k = winner(w, &t, x);
            if (k >= 0) dx[k] = dx[k] + dy[oh * w->out[1] + ow];
        }
}

static void avg_grad_plane(const pool_run *r, const float *dy, float *dx) {
    const om_window *w = &r->p->g.win;
    memset(dx, 0, (size_t)(w->in[0] * w->in[1]) * sizeof(float));
    for (int64_t oh = 0; oh < w->out[0]; oh++) {
        int64_t rows = counted(&r->p->g, 0, oh);
        for (int64_t ow = 0; ow < w->out[1]; ow++) {
            float v = dy[oh * w->out[1] + ow] / (float)(rows * counted(&r->p->g, 1, ow));
            taps t  = taps_of(w, oh, ow);
            for (int64_t i = t.lo[0]; i < t.hi[0] && !stop(&t); i++) {
                float *d = dx + (t.h + i * w->dil[0]) * w->in[1] + t.w;
                for (int64_t j = t.lo[1]; j < t.hi[1]; j++)
                    d[j * w->dil[1]] = d[j * w->dil[1]] + v;
            }
        }
    }
}

/* ---- planes -----------------------------------------------------------------------------------
 */

static void pool_chunk(void *arg, int64_t chunk, int worker) {
    (void)worker;
    const pool_run *r  = arg;
    const om_window *w = &r->p->g.win;
    int64_t in = w->in[0] * w->in[1], out = w->out[0] * w->out[1];
    int64_t end = omi_min64((chunk + 1) * r->p->planes, r->p->g.planes);
    for (int64_t p = chunk * r->p->planes; p < end; p++) {
        int32_t *at        = r->at ? r->at + p * out : NULL;
        const int32_t *won = r->won ? r->won + p * out : NULL;
        if (!r->dy)
            forward_plane(r, r->x + p * in, r->y + p * out, at);
        else if (r->max)
            max_grad_plane(r, won ? NULL : r->x + p * in, won, r->dy + p * out, r->y + p * in);
        else
            avg_grad_plane(r, r->dy + p * out, r->y + p * in);
    }
}

static void pool_planes(pool_run *r) {
    const om_window *w = &r->p->g.win;
    if (!r->dy && w->out[0] * w->out[1] == 0) return;
    omi_parallel(omi_ceil_div(r->p->g.planes, r->p->planes), pool_chunk, r);
}

void omi_maxpool(const om_pool_plan *p, const float *x, float *y, int32_t *at) {
    pool_planes(&(pool_run){.p = p, .x = x, .y = y, .at = at, .max = true});
}
void omi_maxpool_grad(const om_pool_plan *p, const float *x, const int32_t *at, const float *dy,
                      float *dx) {
    pool_planes(&(pool_run){.p = p, .x = x, .dy = dy, .y = dx, .won = at, .max = true});
}
void omi_avgpool(const om_pool_plan *p, const float *x, float *y) {
    pool_planes(&(pool_run){.p = p, .x = x, .y = y});
}
void omi_avgpool_grad(const om_pool_plan *p, const float *dy, float *dx) {
    pool_planes(&(pool_run){.p = p, .dy = dy, .y = dx});
}
