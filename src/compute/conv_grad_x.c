/*
 * conv_grad_x.c -- the gradient of Conv by its input: the transposed rule of AR-8.
 *
 * Pixels of dx that share a phase (row and column modulo the stride) share their taps, so each
 * phase is a convolution of dy with stride 1 over those taps, in the order of ascending positions
 * of dy. Lists say once for each axis which phase has which taps; only phases that have some are
 * computed, and taps that exist for no pixel are on no list: cost follows the data, not the stride.
 *
 * At the border some taps do not exist and the rule skips them. Adding a zero product instead is
 * the same unless a weight is not finite or the running sum is -0, and it can be -0 only after an
 * underflow; with all products at least 2^-100 there is none (a product has 48 bits, so every sum
 * is a multiple of 2^-149). Each chunk checks that; where it does not hold, masks say which lanes
 * exist.
 */
#include <string.h>

#include "compute/conv_pad.h"
#include "compute/split.h"
#include "kernels/table.h"

/* ---- taps of an axis --------------------------------------------------------------------------
 */

static int64_t phase_count(int64_t extent, int64_t phase, int64_t stride) {
    return extent > phase ? (extent - phase + stride - 1) / stride : 0;
}

/* Lists of an axis, kernel index descending inside a phase: taps [start[f], start[f + 1]) belong to
 * phase f; kernel index and position in dy for pixel 0 of the phase. */
typedef struct gx_lists {
    int64_t *start, *index, *pos;
} gx_lists;

static gx_lists lists_at(const om_conv_gx_plan *p, int axis, int64_t *area) {
    if (axis) area += p->axis[0].lists;
    int64_t *index = area + p->axis[axis].phases + 1;
    return (gx_lists){area, index, index + p->axis[axis].taps};
}

/* The phase that has tap i, and its position in dy for pixel 0. False when there is no pixel of
 * that phase, or none for which the tap exists. */
static bool tap_phase(const om_window *w, int axis, int64_t i, int64_t *phase, int64_t *pos) {
    int64_t s  = w->stride[axis];
    int64_t at = i * w->dil[axis] - w->before[axis]; /* phase is at modulo s */
    *phase     = at >= 0 ? at % s : (s - -at % s) % s;
    *pos       = (*phase - at) / s;
    int64_t n  = phase_count(w->in[axis], *phase, s);
    return n > 0 && *pos < w->out[axis] && *pos + n > 0;
}

static om_gx_axis grad_axis_of(const om_window *w, int axis) {
    om_gx_axis a = {.phases = omi_min64(w->stride[axis], w->in[axis])};
    int64_t lo = 0, hi = w->out[axis] - 1;
    for (int64_t i = 0; i < w->k[axis]; i++) {
        int64_t phase, pos;
        if (!tap_phase(w, axis, i, &phase, &pos)) continue;
        a.taps++;
        lo = omi_min64(lo, pos);
        hi = omi_max64(hi, pos + phase_count(w->in[axis], phase, w->stride[axis]) - 1);
    }
    /* taps of a phase are lcm(stride, dilation) apart; this bound is near enough */
    a.most   = omi_min64(a.taps, hi - lo + 1);
    a.before = -lo;
    a.cells  = hi - lo + 1;
    a.lists  = a.phases + 1 + 2 * a.taps;
    return a;
}

/* A counting sort of the taps by phase. */
static void make_lists(const om_conv_gx_plan *p, int axis, int64_t *area) {
    const om_window *w = &p->g.win;
    gx_lists l         = lists_at(p, axis, area);
    int64_t phases     = p->axis[axis].phases, phase, pos;
    memset(l.start, 0, (size_t)(phases + 1) * sizeof *l.start);
    for (int64_t i = 0; i < w->k[axis]; i++)
        if (tap_phase(w, axis, i, &phase, &pos)) l.start[phase + 1]++;
    for (int64_t f = 0; f < phases; f++)
        l.start[f + 1] += l.start[f];
    for (int64_t i = 0; i < w->k[axis]; i++) /* from the end of each phase: descending */
        if (tap_phase(w, axis, i, &phase, &pos)) {
            int64_t at  = --l.start[phase + 1];
            l.index[at] = i;
            l.pos[at]   = pos;
        }
    /* start[f + 1] now is where phase f begins */
    for (int64_t f = 0; f < phases; f++)
        l.start[f] = l.start[f + 1];
    l.start[phases] = p->axis[axis].taps;
}

/* ---- the plan ---------------------------------------------------------------------------------
 */

static bool gx_sizes(om_conv_gx_plan *p) {
    const om_conv_geom *g = &p->g;
    const om_gx_axis *h = &p->axis[0], *w = &p->axis[1];
    int64_t pixels = phase_count(g->win.in[0], 0, g->win.stride[0]) *
                     phase_count(g->win.in[1], 0, g->win.stride[1]);
    int64_t most    = h->most * w->most, masks, scratch, copy;
    int64_t plane[] = {p->ocg, h->cells, w->cells}, mask[] = {omi_ceil_div(pixels, 16), most};
    if (!omi_product(plane, 3, &copy) || !omi_product(mask, 2, &masks) ||
        !omi_mul_i64(p->icg, pixels, &scratch) || copy > OM_CONV_WORK || masks > OM_CONV_WORK ||
        scratch > OM_CONV_WORK)
        return false;
    p->lists     = omi_line_floats((h->lists + w->lists) * 2);
    p->packed    = omi_line_floats(g->oc * p->icg * h->taps * w->taps + OM_CONV_SLACK);
    p->masks     = omi_line_floats(masks / 2 + 1);
    p->taps_area = omi_line_floats(most * 2 * 2);
    p->scratch   = p->dense ? 0 : omi_line_floats(scratch);
    bool grouped = p->area == 1 && p->dense && p->ocg > OM_GEMM_SB;
    int64_t kc   = omi_min64(p->cb, p->ocg) * most;
    p->own       = p->taps_area + p->masks + p->scratch + omi_line_floats(copy + OM_CONV_SLACK) +
             omi_line_floats(omi_conv_ws_floats(p->icg, kc, grouped));
    size_t all, bytes;
    return omi_mul_size((size_t)p->own, (size_t)p->workers, &all) &&
           omi_add_size(all, (size_t)(p->packed + p->lists), &all) &&
           omi_mul_size(all, sizeof(float), &bytes) && omi_add_size(bytes, OM_ALIGN, &p->ws_bytes);
}

/* No gradient to speak of: dx is empty, or every sum is over nothing. */
static bool gx_nothing(const om_conv_geom *g) {
    return g->n * g->c * g->win.in[0] * g->win.in[1] == 0 ||
           g->oc * g->win.out[0] * g->win.out[1] == 0;
}

bool omi_conv_gx_plan(const om_conv_geom *g, int workers, om_conv_gx_plan *p) {
    char why[1];
    const om_window *win = &g->win;
    *p                   = (om_conv_gx_plan){.g = *g, .kern = omi_kernels(), .workers = 1};
    if (!omi_conv_fits(g, why, sizeof why)) return false;
    if (gx_nothing(g)) return true;
    p->icg     = g->c / g->groups;
    p->ocg     = g->oc / g->groups;
    p->area    = win->k[0] * win->k[1];
    p->cb      = omi_conv_block(g);
    p->axis[0] = grad_axis_of(win, 0);
    p->axis[1] = grad_axis_of(win, 1);
    p->dense   = win->stride[0] == 1 && win->stride[1] == 1;
    p->pad     = (om_padded){.blocks = 1, .rows = p->axis[0].cells, .row_step = 1, .parts = 1};
    p->pad.row = p->pad.width = p->pad.out_step = p->axis[1].cells;
    p->pad.step                                 = 1;
    p->pad.plane                                = p->pad.rows * p->pad.row;
    p->tiles                                    = p->kern->conv_tiles(p->icg);
    if (g->n * g->oc * win->out[0] * win->out[1] * p->icg * p->area >= OM_SPLIT_WORK)
        p->workers = workers;
    p->tile_parts = omi_max64(1, omi_min64(omi_ceil_div(p->workers, g->n * g->groups), p->tiles));
    p->tile_part  = omi_ceil_div(p->tiles, p->tile_parts);
    p->tile_parts = omi_ceil_div(p->tiles, p->tile_part);
    return gx_sizes(p);
}

/* ---- running ----------------------------------------------------------------------------------
 */

typedef struct gx_run {
    const om_conv_gx_plan *p;
    const float *dy, *weight;
    float *dx, *packed, *own;
    gx_lists axis[2];
    float least; /* least nonzero |w|; 0 when some weight is not finite */
} gx_run;

/* One phase with taps. */
typedef struct phase {
    int64_t r, c;           /* row and column of pixel 0 in dx            */
    int64_t rows, cols;     /* pixels                                     */
    int64_t nh, nw;         /* taps along each axis                       */
    const int64_t *ih, *ph; /* kernel index, position in dy               */
    const int64_t *iw, *pw;
    int64_t *tap, *windex; /* offset in padded dy; offset in the weights */
} phase;

static void phase_lists(const gx_run *r, int64_t row, int64_t col, int64_t *area, phase *f) {
    const om_window *w = &r->p->g.win;
    const gx_lists *h = &r->axis[0], *v = &r->axis[1];
    *f        = (phase){.r = row, .c = col, .tap = area};
    f->rows   = phase_count(w->in[0], row, w->stride[0]);
    f->cols   = phase_count(w->in[1], col, w->stride[1]);
    f->nh     = h->start[row + 1] - h->start[row];
    f->nw     = v->start[col + 1] - v->start[col];
    f->ih     = h->index + h->start[row];
    f->ph     = h->pos + h->start[row];
    f->iw     = v->index + v->start[col];
    f->pw     = v->pos + v->start[col];
    f->windex = area + f->nh * f->nw;
    for (int64_t i = 0; i < f->nh; i++)
        for (int64_t j = 0; j < f->nw; j++) {
            f->tap[i * f->nw + j] =
                (f->ph[i] + r->p->axis[0].before) * r->p->pad.row + f->pw[j] + r->p->axis[1].before;
            f->windex[i * f->nw + j] = f->ih[i] * w->k[1] + f->iw[j];
        }
}

/* Packed weights of a phase: behind those of all phases before it, row by row. */
static float *phase_weights(const gx_run *r, int64_t group, const phase *f) {
    int64_t all = r->p->axis[0].taps * r->p->axis[1].taps;
    int64_t at  = r->axis[0].start[f->r] * r->p->axis[1].taps + f->nh * r->axis[1].start[f->c];
    return r->packed + (group * all + at) * r->p->icg * r->p->ocg;
}

/* Calls body for each phase that has taps. */
typedef void (*phase_body)(const gx_run *r, const phase *f, void *arg);
static void each_phase(const gx_run *r, int64_t *area, phase_body body, void *arg) {
    const om_conv_gx_plan *p = r->p;
    phase f;
    for (int64_t y = 0; y < p->axis[0].phases; y++) {
        if (r->axis[0].start[y] == r->axis[0].start[y + 1]) continue;
        for (int64_t x = 0; x < p->axis[1].phases && !omi_cut_short(); x++) {
            if (r->axis[1].start[x] == r->axis[1].start[x + 1]) continue;
            phase_lists(r, y, x, area, &f);
            body(r, &f, arg);
        }
    }
}

static void pack_phase(const gx_run *r, const phase *f, void *arg) {
    const om_conv_gx_plan *p = r->p;
    int64_t q                = *(const int64_t *)arg;
    om_conv_pack_args a      = {.rows = p->icg, .chans = p->ocg, .cb = p->cb};
    a.taps                   = f->nh * f->nw;
    a.tap                    = f->windex;
    a.w                      = r->weight + q * p->ocg * p->icg * p->area;
    a.row_step               = p->area;
    a.chan_step              = p->icg * p->area;
    a.dst                    = phase_weights(r, q, f);
    p->kern->conv_pack_w(&a);
}

static void phase_masks(const gx_run *r, const phase *f, uint16_t *mask) {
    int64_t pixels = f->rows * f->cols, taps = f->nh * f->nw;
    const int64_t *out = r->p->g.win.out;
    memset(mask, 0, (size_t)(omi_ceil_div(pixels, 16) * taps) * sizeof *mask);
    for (int64_t px = 0; px < pixels; px++)
        for (int64_t i = 0; i < f->nh; i++)
            for (int64_t j = 0; j < f->nw; j++) {
                int64_t y = px / f->cols + f->ph[i], x = px % f->cols + f->pw[j];
                bool exists = y >= 0 && y < out[0] && x >= 0 && x < out[1];
                mask[px / 16 * taps + i * f->nw + j] |= (uint16_t)(exists << px % 16);
            }
}

static void scatter_phase(const gx_run *r, const phase *f, const float *s, int64_t rows,
                          float *dx) {
    const om_window *w = &r->p->g.win;
    for (int64_t c = 0; c < rows; c++)
        for (int64_t y = 0; y < f->rows; y++) {
            float *d       = dx + (c * w->in[0] + f->r + y * w->stride[0]) * w->in[1] + f->c;
            const float *q = s + (c * f->rows + y) * f->cols;
            for (int64_t x = 0; x < f->cols; x++)
                d[x * w->stride[1]] = q[x];
        }
}

/* What a chunk works on. */
typedef struct gx_chunk {
    om_conv_args base;
    bool skip;
    int64_t q, r0, rows; /* group; channels of dx */
    float *scratch, *dx;
    uint16_t *mask;
} gx_chunk;

static void run_phase(const gx_run *r, const phase *f, void *arg) {
    const gx_chunk *c        = arg;
    const om_conv_gx_plan *p = r->p;
    int64_t plane            = p->g.win.in[0] * p->g.win.in[1];
    om_conv_args a           = c->base;
    a.taps                   = f->nh * f->nw;
    a.tap                    = f->tap;
    a.out_w                  = f->cols;
    a.pixels                 = f->rows * f->cols;
    a.y                      = p->dense ? c->dx : c->scratch;
    a.y_rs                   = p->dense ? plane : a.pixels;
    a.group                  = p->dense && p->area == 1 ? OM_GEMM_SB : 0;
    a.w                      = phase_weights(r, c->q, f);
    if (c->skip) {
        phase_masks(r, f, c->mask);
        a.mask = c->mask;
    }
    omi_conv_pieces(p->kern, &a, NULL, 0, 0);
    if (!p->dense && !omi_cut_short())
        scatter_phase(r, f, c->scratch + c->r0 * a.pixels, c->rows, c->dx + c->r0 * plane);
}

static float bits_f32(uint32_t u) {
    float f;
    memcpy(&f, &u, sizeof f);
    return f;
}

static void gx_run_chunk(void *arg, int64_t chunk, int worker) {
    const gx_run *r          = arg;
    const om_conv_gx_plan *p = r->p;
    const om_window *w       = &p->g.win;
    int64_t part = chunk % p->tile_parts, plane = chunk / p->tile_parts;
    int64_t q = plane % p->g.groups, image = plane / p->g.groups, out = w->out[0] * w->out[1];
    float *own    = r->own + worker * p->own;
    int64_t *area = (int64_t *)(void *)own;
    own += p->taps_area;
    gx_chunk c = {.q = q, .mask = (uint16_t *)(void *)own};
    own += p->masks;
    c.scratch = own;
    own += p->scratch;
    float *padded = own;
    own += omi_line_floats(p->ocg * p->pad.plane + OM_CONV_SLACK);

    const float *dy = r->dy + (image * p->g.oc + q * p->ocg) * out;
    c.dx            = r->dx + (image * p->g.c + q * p->icg) * w->in[0] * w->in[1];
    omi_conv_pad(&p->pad, p->kern, dy, p->ocg, w->out[0], w->out[1], -p->axis[0].before,
                 -p->axis[1].before, padded);
    uint32_t lo = 0, hi = 0; /* 0 - 1 is the greatest: nothing seen yet */
    p->kern->abs_range(dy, p->ocg * out, &lo, &hi);
    /* nothing but zeros in dy: every sum is +0 and stays it */
    c.skip = !(r->least > 0 && (lo == 0 || (double)r->least * (double)bits_f32(lo) >= 0x1p-100));

    om_conv_args *a = &c.base;
    *a              = (om_conv_args){.rows = p->icg, .chans = p->ocg, .cb = p->cb, .x = padded};
    a->tile0        = part * p->tile_part;
    a->tile1        = omi_min64(a->tile0 + p->tile_part, p->tiles);
    a->plane        = p->pad.plane;
    a->row_step     = p->pad.row;
    a->slack        = true;
    a->ws           = own;
    c.r0            = omi_conv_rows_before(p->icg, p->tiles, a->tile0);
    c.rows          = omi_conv_rows_before(p->icg, p->tiles, a->tile1) - c.r0;
    /* pixels of phases without taps */
    if (!p->dense || p->axis[0].taps * p->axis[1].taps == 0)
        memset(c.dx + c.r0 * w->in[0] * w->in[1], 0,
               (size_t)(c.rows * w->in[0] * w->in[1]) * sizeof(float));
    each_phase(r, area, run_phase, &c);
}

void omi_conv_gx_run(const om_conv_gx_plan *p, const float *dy, const float *weight, float *dx,
                     void *ws) {
    const om_conv_geom *g = &p->g;
    if (gx_nothing(g)) {
        memset(dx, 0, (size_t)(g->n * g->c * g->win.in[0] * g->win.in[1]) * sizeof(float));
        return;
    }
    gx_run r       = {.p = p, .dy = dy, .weight = weight, .dx = dx};
    float *base    = (float *)(void *)((char *)ws + (-(uintptr_t)ws & (OM_ALIGN - 1)));
    int64_t *lists = (int64_t *)(void *)base;
    r.packed       = base + p->lists;
    r.own          = r.packed + p->packed;
    for (int axis = 0; axis < 2; axis++) {
        make_lists(p, axis, lists);
        r.axis[axis] = lists_at(p, axis, lists);
    }
    for (int64_t q = 0; q < g->groups; q++) /* ascending: packing may touch what follows */
        each_phase(&r, (int64_t *)(void *)r.own, pack_phase, &q);
    uint32_t lo = 0, hi = 0;
    p->kern->abs_range(weight, g->oc * p->icg * p->area, &lo, &hi);
    /* all weights zero: the least is any number, products are zeros and sums stay +0 */
    r.least = hi >= 0x7f800000u ? 0.0f : lo == 0 ? 1.0f : bits_f32(lo);
    omi_parallel_at_most(p->workers, g->n * g->groups * p->tile_parts, gx_run_chunk, &r);
}
