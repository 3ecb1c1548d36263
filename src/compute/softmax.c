/*
 * softmax.c -- Softmax, LogSoftmax and their gradients along any axis (AR-4.4, AR-8, AR-11.2).
 *
 * Contiguous lines go straight to the kernels. Others are brought into the workspace sixteen lines
 * at a time: lines along an outer axis are neighbours in memory, so a tile reads whole cache lines.
 */
#include "compute/lanes.h"
#include "compute/reduce.h"
#include "compute/walk.h"
#include "kernels/table.h"

#define LINES 16
#define PIECE 256 /* elements of a strided line at once; divides OM_SUM_BLOCK */

typedef struct soft_job {
    const float *x;
    float *y, *ws;
    omi_walk rest; /* every axis but the one of the lines */
    int64_t n, stride, inner;
    void (*fn)(int64_t rows, int64_t n, const float *x, float *y);
} soft_job;

static int64_t inner_of(const om_view *x, int axis) {
    int64_t n = 1;
    for (int i = axis + 1; i < x->rank; i++)
        n *= x->shape[i];
    return n;
}
/* Lines that are rows of a contiguous block. */
static bool rows_of(const om_view *x, int axis) {
    return inner_of(x, axis) == 1 && omi_view_contiguous(x);
}

size_t omi_softmax_workspace(const om_view *x, int axis, int workers) {
    if (rows_of(x, axis)) return 0;
    return (size_t)x->shape[axis] * LINES * sizeof(float) * (size_t)workers;
}

static void soft_rows(void *arg, int64_t begin, int64_t end, int worker) {
    (void)worker;
    const soft_job *j = arg;
    j->fn(end - begin, j->n, j->x + begin * j->n, j->y + begin * j->n);
}

/* Units are tiles of LINES lines. */
static void soft_tiles(void *arg, int64_t begin, int64_t end, int worker) {
    const soft_job *j = arg;
    float *ws         = j->ws + (int64_t)worker * LINES * j->n;
    for (int64_t u = begin; u < end; u++) {
        int64_t r0 = u * LINES, lines = omi_min64(LINES, j->rest.numel - r0);
        int64_t from[LINES], to[LINES];
        omi_pos p;
        omi_walk_seek(&j->rest, r0, &p);
        for (int64_t l = 0; l < lines; l++) {
            from[l] = p.off[0];
            to[l]   = (r0 + l) / j->inner * j->n * j->inner + (r0 + l) % j->inner;
            omi_walk_advance(&j->rest, &p, 1);
        }
        for (int64_t i = 0; i < j->n; i++)
            for (int64_t l = 0; l < lines; l++)
                ws[l * j->n + i] = j->x[from[l] + i * j->stride];
        j->fn(lines, j->n, ws, ws);
        for (int64_t i = 0; i < j->n; i++)
            for (int64_t l = 0; l < lines; l++)
                j->y[to[l] + i * j->inner] = ws[l * j->n + i];
    }
}

void omi_softmax(bool log, const om_view *x, int axis, const om_view *y, void *ws, bool fast) {
    const om_kernels *k = omi_kernels();
    om_view rest        = omi_view_without(x, axis);
    const om_view *v[1] = {&rest};
    soft_job j          = {.x      = x->data,
                           .y      = y->data,
                           .ws     = ws,
                           .n      = x->shape[axis],
                           .stride = x->strides[axis],
                           .inner  = inner_of(x, axis)};
    j.fn                = log ? (fast ? k->log_softmax_fast_f32 : k->log_softmax_f32)
                              : (fast ? k->softmax_fast_f32 : k->softmax_f32);
    omi_walk_init(&j.rest, 1, v);
    if (j.rest.numel == 0 || j.n == 0) return;
    if (rows_of(x, axis))
        omi_split(j.rest.numel, omi_max64(1, OMI_GRAIN / 4 / j.n), soft_rows, &j);
    else
        omi_split(omi_ceil_div(j.rest.numel, LINES), omi_max64(1, OMI_GRAIN / 4 / (LINES * j.n)),
                  soft_tiles, &j);
}

/* ---- gradients ------------------------------------------------------------------------------ */

typedef struct soft_grad_job {
    bool log, rows;
    const float *y, *g;
    float *dx;
    omi_walk rest; /* 0: y, 1: g, 2: dx */
    int64_t n, sy, sg, sd;
} soft_grad_job;

static void grad_row(const soft_grad_job *j, const float *y, const float *g, float *dx) {
    const om_kernels *k = omi_kernels();
    if (j->log)
        k->log_softmax_grad_f32(j->n, y, g, k->sum_f32(j->n, g), dx);
    else
        k->softmax_grad_f32(j->n, y, g, k->sum_mul_f32(j->n, g, y), dx);
}

/* A piece of a strided line side by side. */
static void grad_piece(const soft_grad_job *j, const float *y, const float *g, int64_t at,
                       int64_t n, float *by, float *bg) {
    for (int64_t i = 0; i < n; i++) {
        by[i] = y[(at + i) * j->sy];
        bg[i] = g[(at + i) * j->sg];
    }
}

/* A line with strides, in pieces of the blocks of AR-4.1: first the sum, then the elements. */
static void grad_line(const soft_grad_job *j, const float *y, const float *g, float *dx) {
    const om_kernels *k = omi_kernels();
    float by[PIECE], bg[PIECE];
    double s = 0.0, acc[OM_SUM_LANES] = {0};
    for (int64_t b = 0; b < j->n; b += PIECE) {
        int64_t n = omi_min64(PIECE, j->n - b);
        grad_piece(j, y, g, b, n, by, bg);
        if (j->log)
            k->lanes_sum_f32(n, bg, b, acc);
        else
            k->lanes_sum_mul_f32(n, bg, by, b, acc);
        if ((b + n) % OM_SUM_BLOCK == 0 || b + n == j->n) s += omi_lanes_total(acc);
    }
    for (int64_t b = 0; b < j->n; b += PIECE) {
        int64_t n = omi_min64(PIECE, j->n - b);
        if (b % OM_SUM_BLOCK == 0 && b && omi_cut_short()) return;
        grad_piece(j, y, g, b, n, by, bg);
        if (j->log)
            k->log_softmax_grad_f32(n, by, bg, s, by);
        else
            k->softmax_grad_f32(n, by, bg, s, by);
        for (int64_t i = 0; i < n; i++)
            dx[(b + i) * j->sd] = by[i];
    }
}

static void soft_grad_range(void *arg, int64_t begin, int64_t end, int worker) {
    (void)worker;
    const soft_grad_job *j = arg;
    omi_pos p;
    omi_walk_seek(&j->rest, begin, &p);
    for (int64_t r = begin; r < end; r++) {
        const float *y = j->y + p.off[0], *g = j->g + p.off[1];
        if (j->rows)
            grad_row(j, y, g, j->dx + p.off[2]);
        else
            grad_line(j, y, g, j->dx + p.off[2]);
        omi_walk_advance(&j->rest, &p, 1);
    }
}

void omi_softmax_grad(bool log, const om_view *y, const om_view *g, int axis, const om_view *dx) {
    om_view ry = omi_view_without(y, axis), rg = omi_view_without(g, axis),
            rd          = omi_view_without(dx, axis);
    const om_view *v[3] = {&ry, &rg, &rd};
    soft_grad_job j     = {.log = log,
                           .y   = y->data,
                           .g   = g->data,
                           .dx  = dx->data,
                           .n   = y->shape[axis],
                           .sy  = y->strides[axis],
                           .sg  = g->strides[axis],
                           .sd  = dx->strides[axis]};
    j.rows              = j.n == 1 || (j.sy == 1 && j.sg == 1 && j.sd == 1);
    omi_walk_init(&j.rest, 3, v);
    if (j.rest.numel == 0 || j.n == 0) return;
    omi_split(j.rest.numel, omi_max64(1, OMI_GRAIN / 4 / j.n), soft_grad_range, &j);
}
