/*
 * conv_grad.c -- gradients of Conv: by its input (the transposed rule of AR-8) and by its weights
 * (AR-2.1 over k = image, row, column; AR-11.2).
 *
 * By x: pixels of dx that share a phase (row and column modulo the stride) share their taps, so
 * each phase is a convolution of dy with stride 1 over those taps, in the order of ascending
 * positions of dy. At the border some taps do not exist and the rule skips them. Adding a zero
 * product instead is the same unless a weight is not finite or the running sum is -0, and it can be
 * -0 only after an underflow; with all products at least 2^-100 there is none (a product has 48
 * bits, so every sum is a multiple of 2^-149). Each chunk checks that; where it does not hold,
 * masks say which lanes exist.
 *
 * By w: dy is the left operand, patches of x are unfolded 256 pixels at a time as the right one.
 */
#include <string.h>

#include "compute/conv_pad.h"
#include "compute/split.h"
#include "kernels/table.h"

/* ---- by x -------------------------------------------------------------------------------------
 */

typedef struct gx_plan {
    int64_t icg, ocg, area, cb;
    om_padded pad;     /* of dy: step 1                                       */
    int64_t top, left; /* dy row, column of the first padded cell, negated    */
    int64_t tiles, tile_part, tile_parts;
    int64_t phase_pixels; /* most of a phase                                    */
    int64_t packed, shared, masks, scratch, taps_area, own;
} gx_plan;

/* Phases that have a pixel along an axis: a stride beyond the image leaves most without. */
static int64_t phases_of(const om_conv2d_geom *g, int axis) {
    return omi_min64(g->stride[axis], axis ? g->w : g->h);
}

/* The phase that tap i belongs to: (i * dilation - pad) modulo the stride. */
static int64_t tap_phase(const om_conv2d_geom *g, int axis, int64_t i) {
    int64_t m = (i * g->dilation[axis] - g->pad[axis]) % g->stride[axis];
    return m < 0 ? m + g->stride[axis] : m;
}

/* Taps along one axis, grouped by phase: those of phase p are at first[p] .. first[p + 1] - 1,
 * kernel index descending: kernel index, and position in dy for pixel 0 of the phase. */
typedef struct axis_taps {
    int64_t *first, *index, *pos;
} axis_taps;

static int64_t axis_taps_size(const om_conv2d_geom *g, int axis) {
    return phases_of(g, axis) + 1 + 2 * (axis ? g->kw : g->kh);
}

static axis_taps group_taps(const om_conv2d_geom *g, int axis, int64_t *area) {
    int64_t n = phases_of(g, axis), k = axis ? g->kw : g->kh;
    axis_taps t = {area, area + n + 1, area + n + 1 + k};
    memset(t.first, 0, (size_t)(n + 1) * sizeof *t.first);
    for (int64_t i = 0; i < k; i++)
        if (tap_phase(g, axis, i) < n) t.first[tap_phase(g, axis, i) + 1]++;
    for (int64_t p = 0; p < n; p++)
        t.first[p + 1] += t.first[p];
    for (int64_t i = 0; i < k; i++) { // filled from each end: descending
        int64_t p = tap_phase(g, axis, i);
        if (p >= n) continue;
        int64_t at  = --t.first[p + 1];
        t.index[at] = i;
        t.pos[at]   = (p + g->pad[axis] - i * g->dilation[axis]) / g->stride[axis];
    }
    for (int64_t p = 0; p < n; p++) // each now begins where it did end: shift back
        t.first[p] = t.first[p + 1];
    t.first[n] = 0;
    for (int64_t i = 0; i < k; i++)
        t.first[n] += tap_phase(g, axis, i) < n;
    return t;
}

static int64_t phase_count(int64_t extent, int64_t phase, int64_t stride) {
    return extent > phase ? (extent - phase + stride - 1) / stride : 0;
}

/* Cells of padding before dy, and padded cells in all, along an axis. */
static void axis_pad(const om_conv2d_geom *g, int axis, int64_t *before, int64_t *cells) {
    int64_t in = axis ? g->w : g->h, out = axis ? g->ow : g->oh, k = axis ? g->kw : g->kh;
    int64_t s = g->stride[axis], lo = 0, hi = out - 1;
    for (int64_t i = 0; i < k; i++) {
        int64_t phase = tap_phase(g, axis, i);
        if (phase >= phases_of(g, axis)) continue;
        int64_t at = (phase + g->pad[axis] - i * g->dilation[axis]) / s;
        lo         = omi_min64(lo, at);
        hi         = omi_max64(hi, at + phase_count(in, phase, s) - 1);
    }
    *before = -lo;
    *cells  = hi - lo + 1;
}

static gx_plan gx_plan_of(const om_conv2d_geom *g, int workers) {
    gx_plan p = {.icg = g->c / g->groups, .ocg = g->oc / g->groups, .area = g->kh * g->kw};
    p.cb      = omi_conv_block(g);
    axis_pad(g, 0, &p.top, &p.pad.rows);
    axis_pad(g, 1, &p.left, &p.pad.row);
    p.pad.step = 1, p.pad.width = p.pad.row, p.pad.plane = p.pad.rows * p.pad.row;
    p.tiles      = omi_kernels()->conv_tiles(p.icg);
    int64_t want = omi_conv_work(g) < OM_SPLIT_WORK ? 1 : workers;
    p.tile_parts =
        omi_max64(1, omi_min64(omi_ceil_div(want, omi_max64(g->n * g->groups, 1)), p.tiles));
    p.tile_part    = omi_ceil_div(p.tiles, p.tile_parts);
    p.tile_parts   = omi_ceil_div(p.tiles, omi_max64(p.tile_part, 1));
    p.phase_pixels = phase_count(g->h, 0, g->stride[0]) * phase_count(g->w, 0, g->stride[1]);
    /* each phase packs its own taps; together they are all taps, each phase with its slack */
    p.packed     = g->groups * (p.icg * p.ocg * p.area +
                            omi_min64(phases_of(g, 0) * phases_of(g, 1), p.area) * OM_CONV_SLACK);
    p.packed     = omi_line_floats(p.packed);
    p.shared     = omi_line_floats((axis_taps_size(g, 0) + axis_taps_size(g, 1)) * 2);
    p.masks      = omi_line_floats(omi_ceil_div(p.phase_pixels, 16) * p.area / 2 + 1);
    p.taps_area  = omi_line_floats(p.area * 2 * 2);
    bool dense   = g->stride[0] == 1 && g->stride[1] == 1;
    p.scratch    = dense ? 0 : omi_line_floats(p.icg * p.phase_pixels);
    bool grouped = p.area == 1 && dense && p.ocg > OM_GEMM_SB;
    int64_t kc   = omi_min64(p.cb, p.ocg) * p.area;
    p.own        = p.taps_area + p.masks + p.scratch +
            omi_line_floats(p.ocg * p.pad.plane + OM_CONV_SLACK) +
            omi_line_floats(omi_conv_ws_floats(p.icg, kc, grouped));
    return p;
}

size_t omi_conv2d_grad_x_workspace(const om_conv2d_geom *g, int workers) {
    gx_plan p = gx_plan_of(g, workers);
    return (size_t)(p.packed + p.shared + p.own * workers) * sizeof(float) + OM_ALIGN;
}

typedef struct gx_run {
    const om_conv2d_geom *g;
    const gx_plan *p;
    const om_kernels *kern;
    const float *dy, *weight;
    float *dx, *packed, *own;
    axis_taps axis[2];
    int64_t group_floats; /* packed weights of one group */
    float least;          /* least nonzero |w|; 0 when some weight is not finite */
} gx_run;

/* Lists of one phase. */
typedef struct phase {
    int64_t r, c;                     /* row and column of pixel 0 in dx              */
    int64_t rows, cols;               /* pixels                                       */
    int64_t nh, nw;                   /* taps along each axis                         */
    const int64_t *ih, *ph, *iw, *pw; /* kernel index, position in dy           */
    int64_t *tap, *windex;            /* offset in padded dy; offset in the weights   */
} phase;

static void phase_lists(const gx_run *r, int64_t row, int64_t column, int64_t *area, phase *f) {
    const om_conv2d_geom *g = r->g;
    const axis_taps *v = &r->axis[0], *h = &r->axis[1];
    f->r      = row;
    f->c      = column;
    f->rows   = phase_count(g->h, row, g->stride[0]);
    f->cols   = phase_count(g->w, column, g->stride[1]);
    f->nh     = v->first[row + 1] - v->first[row];
    f->nw     = h->first[column + 1] - h->first[column];
    f->ih     = v->index + v->first[row];
    f->ph     = v->pos + v->first[row];
    f->iw     = h->index + h->first[column];
    f->pw     = h->pos + h->first[column];
    f->tap    = area;
    f->windex = area + r->p->area;
    for (int64_t i = 0; i < f->nh; i++)
        for (int64_t j = 0; j < f->nw; j++) {
            f->tap[i * f->nw + j] = (f->ph[i] + r->p->top) * r->p->pad.row + f->pw[j] + r->p->left;
            f->windex[i * f->nw + j] = f->ih[i] * g->kw + f->iw[j];
        }
}

/* Floats of the packed weights of a phase; phases lie one after the other. */
static int64_t phase_floats(const gx_run *r, const phase *f) {
    int64_t taps = f->nh * f->nw;
    return taps ? taps * r->p->icg * r->p->ocg + OM_CONV_SLACK : 0;
}

static void pack_phases(gx_run *r, int64_t *lists) {
    const om_conv2d_geom *g = r->g;
    const gx_plan *p        = r->p;
    int64_t rows = phases_of(g, 0), columns = phases_of(g, 1), at = 0;
    for (int64_t q = 0; q < g->groups; q++) {
        for (int64_t i = 0; i < rows * columns; i++) {
            phase f;
            phase_lists(r, i / columns, i % columns, lists, &f);
            if (f.nh * f.nw == 0) continue;
            om_conv_pack_args a = {.rows = p->icg, .chans = p->ocg, .cb = p->cb};
            a.taps              = f.nh * f.nw;
            a.tap               = f.windex;
            a.w                 = r->weight + q * p->ocg * p->icg * p->area;
            a.row_step          = p->area;
            a.chan_step         = p->icg * p->area;
            a.dst               = r->packed + at;
            at += phase_floats(r, &f);
            r->kern->conv_pack_w(&a);
        }
        if (q == 0) r->group_floats = at;
    }
}

static void phase_masks(const gx_run *r, const phase *f, uint16_t *mask) {
    int64_t pixels = f->rows * f->cols, taps = f->nh * f->nw;
    memset(mask, 0, (size_t)(omi_ceil_div(pixels, 16) * taps) * sizeof *mask);
    for (int64_t px = 0; px < pixels; px++)
        for (int64_t i = 0; i < f->nh; i++)
            for (int64_t j = 0; j < f->nw; j++) {
                int64_t y = px / f->cols + f->ph[i], x = px % f->cols + f->pw[j];
                bool exists = y >= 0 && y < r->g->oh && x >= 0 && x < r->g->ow;
                mask[px / 16 * taps + i * f->nw + j] |= (uint16_t)(exists << px % 16);
            }
}

static void scatter_phase(const gx_run *r, const phase *f, const float *s, int64_t rows,
                          float *dx) {
    const om_conv2d_geom *g = r->g;
    for (int64_t c = 0; c < rows; c++)
        for (int64_t y = 0; y < f->rows; y++) {
            float *d       = dx + (c * g->h + f->r + y * g->stride[0]) * g->w + f->c;
            const float *q = s + (c * f->rows + y) * f->cols;
            for (int64_t x = 0; x < f->cols; x++)
                d[x * g->stride[1]] = q ? s[(c * f->rows + y) * f->cols + x] : 0.0f;
        }
}

static void run_phase(const gx_run *r, const om_conv_args *base, const phase *f, bool skip,
                      const float *weights, float *scratch, uint16_t *mask, float *dx) {
    const om_conv2d_geom *g = r->g;
    bool dense              = r->p->scratch == 0;
    om_conv_args a          = *base;
    a.taps                  = f->nh * f->nw;
    a.tap                   = f->tap;
    a.out_w                 = f->cols;
    a.pixels                = f->rows * f->cols;
    a.y                     = dense ? dx : scratch;
    a.y_rs                  = dense ? g->h * g->w : a.pixels;
    a.group                 = dense && r->p->area == 1 ? OM_GEMM_SB : 0;
    if (a.pixels == 0) return;
    if (a.taps == 0) {
        memset(scratch, 0, (size_t)(r->p->icg * a.pixels) * sizeof(float));
    } else {
        a.w = weights;
        if (skip) {
            phase_masks(r, f, mask);
            a.mask = mask;
        }
        r->kern->conv_f32(&a);
    }
    if (!dense) {
        int64_t r0 = 0, rows = r->p->icg;
        if (base->tile1 - base->tile0 != r->p->tiles) { /* this chunk's channels only */
            int64_t tiles = r->p->tiles, low = rows / tiles, extra = rows % tiles;
            r0   = base->tile0 * low + omi_min64(base->tile0, extra);
            rows = base->tile1 * low + omi_min64(base->tile1, extra) - r0;
        }
        scatter_phase(r, f, scratch + r0 * a.pixels, rows, dx + r0 * g->h * g->w);
    }
}

static float bits_f32(uint32_t u) {
    float f;
    memcpy(&f, &u, sizeof f);
    return f;
}

static void gx_chunk(void *arg, int64_t chunk, int worker) {
    const gx_run *r         = arg;
    const gx_plan *p        = r->p;
    const om_conv2d_geom *g = r->g;
    int64_t part = chunk % p->tile_parts, plane = chunk / p->tile_parts;
    int64_t q = plane % g->groups, image = plane / g->groups;
    float *own     = r->own + worker * p->own;
    int64_t *lists = (int64_t *)(void *)own;
    own += p->taps_area;
    uint16_t *mask = (uint16_t *)(void *)own;
    own += p->masks;
    float *scratch = own;
    own += p->scratch;
    float *padded = own;
    own += omi_line_floats(p->ocg * p->pad.plane + OM_CONV_SLACK);

    const float *dy = r->dy + (image * g->oc + q * p->ocg) * g->oh * g->ow;
    float *dx       = r->dx + (image * g->c + q * p->icg) * g->h * g->w;
    omi_conv_pad(&p->pad, dy, p->ocg, g->oh, g->ow, -p->top, -p->left, padded);
    uint32_t lo = 0, hi = 0; /* 0 - 1 is the greatest: nothing seen yet */
    r->kern->abs_range(dy, p->ocg * g->oh * g->ow, &lo, &hi);
    /* nothing but zeros in dy: every sum is +0 and stays it */
    bool safe = r->least > 0 && (lo == 0 || (double)r->least * (double)bits_f32(lo) >= 0x1p-100);

    om_conv_args a       = {.rows = p->icg, .chans = p->ocg, .cb = p->cb, .x = padded};
    a.tile0              = part * p->tile_part;
    a.tile1              = omi_min64(a.tile0 + p->tile_part, p->tiles);
    a.plane              = p->pad.plane;
    a.row_step           = p->pad.row;
    a.slack              = true;
    a.ws                 = own;
    const float *weights = r->packed + q * r->group_floats;
    int64_t rows = phases_of(g, 0), columns = phases_of(g, 1);
    for (int64_t i = 0; i < rows * columns; i++) {
        phase f;
        phase_lists(r, i / columns, i % columns, lists, &f);
        run_phase(r, &a, &f, !safe, weights, scratch, mask, dx);
        weights += phase_floats(r, &f);
    }
}

void omi_conv2d_grad_x(const om_conv2d_geom *g, const float *dy, const float *weight, float *dx,
                       void *ws, int workers) {
    if (g->n * g->c * g->h * g->w == 0) return;
    if (g->oc * g->oh * g->ow == 0) {
        memset(dx, 0, (size_t)(g->n * g->c * g->h * g->w) * sizeof(float));
        return;
    }
    gx_plan p = gx_plan_of(g, workers);
    gx_run r  = {.g = g, .p = &p, .kern = omi_kernels(), .dy = dy, .weight = weight, .dx = dx};
    r.packed  = (float *)(void *)((char *)ws + (-(uintptr_t)ws & (OM_ALIGN - 1)));
    int64_t *shared = (int64_t *)(void *)(r.packed + p.packed);
    r.axis[0]       = group_taps(g, 0, shared);
    r.axis[1]       = group_taps(g, 1, shared + axis_taps_size(g, 0));
    r.own           = r.packed + p.packed + p.shared;
    pack_phases(&r, (int64_t *)(void *)r.own);
    uint32_t lo = 0, hi = 0;
    r.kern->abs_range(weight, g->oc * p.icg * p.area, &lo, &hi);
    /* all weights zero: the least is any number, products are zeros and sums stay +0 */
    r.least = hi >= 0x7f800000u ? 0.0f : lo == 0 ? 1.0f : bits_f32(lo);
    omi_parallel_at_most(omi_conv_work(g) < OM_SPLIT_WORK ? 1 : workers,
                         g->n * g->groups * p.tile_parts, gx_chunk, &r);
}

/* ---- by w -------------------------------------------------------------------------------------
 */

typedef struct gw_plan {
    int64_t icg, ocg, area, cols, panels, pixels, k, groups_k;
    om_padded pad;
    int64_t part, parts; /* panels of a chunk                                      */
    int64_t slots;       /* > 0: groups of k into slots                            */
    int64_t chans;       /* most channels of x that a chunk touches                */
    int64_t cols_area, pad_area, b_area, a_area, sum_area, own, slot_area;
} gw_plan;

static gw_plan gw_plan_of(const om_conv2d_geom *g, int workers) {
    gw_plan p    = {.icg = g->c / g->groups, .ocg = g->oc / g->groups, .area = g->kh * g->kw};
    p.cols       = p.icg * p.area;
    p.panels     = omi_ceil_div(p.cols, 16);
    p.pixels     = g->oh * g->ow;
    p.k          = g->n * p.pixels;
    p.groups_k   = omi_ceil_div(p.k, OM_GEMM_SB);
    p.pad        = omi_padded_of(g, g->oh);
    int64_t want = omi_conv_work(g) < OM_SPLIT_WORK ? 1 : workers;
    p.parts      = omi_max64(1, omi_min64(omi_ceil_div(want, g->groups), p.panels));
    p.part       = omi_max64(omi_ceil_div(p.panels, p.parts), 1);
    p.part       = omi_min64(p.part, omi_max64(1, 32)); /* 32 panels of 256 pixels: 512 KB */
    p.parts      = omi_ceil_div(p.panels, p.part);
    if (p.parts * g->groups < want && p.groups_k > 1 &&
        p.groups_k * g->oc * p.cols <= (int64_t)1 << 22)
        p.slots = p.groups_k;
    p.chans     = omi_min64(p.icg, (p.part * 16 + p.area - 2) / p.area + 1);
    p.cols_area = omi_line_floats(p.part * 16 * 2);
    p.pad_area  = omi_line_floats(p.chans * p.pad.plane + OM_CONV_SLACK);
    p.b_area    = p.part * OM_GEMM_KB * 16 + OM_CONV_SLACK;
    p.a_area    = omi_line_floats(p.ocg * OM_GEMM_KB);
    p.sum_area  = p.slots || p.groups_k == 1 ? 0 : omi_line_floats(p.ocg * p.part * 16);
    p.own       = p.cols_area + p.pad_area + p.b_area + p.a_area + p.sum_area +
            omi_line_floats(omi_gemm_ws_floats(p.ocg, OM_GEMM_KB));
    p.slot_area = omi_line_floats(p.slots * g->oc * p.cols);
    return p;
}

size_t omi_conv2d_grad_w_workspace(const om_conv2d_geom *g, int workers) {
    gw_plan p = gw_plan_of(g, workers);
    return (size_t)(p.slot_area + p.own * workers) * sizeof(float) + OM_ALIGN;
}

typedef struct gw_run {
    const om_conv2d_geom *g;
    const gw_plan *p;
    const om_kernels *kern;
    const float *dy, *x;
    float *dw, *slot, *own;
} gw_run;

/* What a chunk works on. */
typedef struct gw_chunk {
    int64_t q, panel0, panels, cols, c0, chans; /* group; panels; columns; channels of x in it */
    int64_t *col;                               /* offsets of the columns in the padded copy   */
    float *pad, *b, *a, *sum, *ws;
    float *y; /* where the sums of the group of k at work go */
    int64_t y_rs;
} gw_chunk;

static void gw_columns(const gw_run *r, gw_chunk *c) {
    const gw_plan *p = r->p;
    int64_t first = c->panel0 * 16, last = omi_min64(first + c->panels * 16, p->cols);
    c->cols  = last - first;
    c->c0    = first / p->area;
    c->chans = (last - 1) / p->area - c->c0 + 1;
    for (int64_t j = first; j < last; j++) {
        int64_t t         = j % p->area;
        c->col[j - first] = (j / p->area - c->c0) * p->pad.plane +
                            omi_padded_tap(&p->pad, r->g, t / r->g->kw, t % r->g->kw);
    }
}

/* Rows [at, at + p1 - p0) of the operands of one block of 256: pixels [p0, p1) of an image whose
 * padded x is ready. */
static void gw_fill(const gw_run *r, const gw_chunk *c, int64_t image, int64_t p0, int64_t p1,
                    int64_t at) {
    const om_conv2d_geom *g = r->g;
    for (int64_t o = 0; o < r->p->ocg; o++)
        memcpy(c->a + o * OM_GEMM_KB + at,
               r->dy + (image * g->oc + c->q * r->p->ocg + o) * r->p->pixels + p0,
               (size_t)(p1 - p0) * sizeof(float));
    om_unfold_args u = {.x = c->pad, .out_w = g->ow, .row_step = g->stride[0] * r->p->pad.row};
    u.p0             = p0;
    u.p1             = p1;
    for (int64_t i = 0; i < c->panels; i++) {
        u.col  = c->col + i * 16;
        u.cols = (int)omi_min64(c->cols - i * 16, 16);
        u.dst  = c->b + (i * OM_GEMM_KB + at) * 16;
        r->kern->unfold_f32(&u);
    }
}

static void gw_block(const gw_run *r, const gw_chunk *c, int64_t kc, bool first) {
    om_gemm_args m = {.m = r->p->ocg, .n = c->cols, .k = kc, .a = c->a, .b = c->b, .alpha = 1.0f};
    m.a_rs         = OM_GEMM_KB;
    m.a_cs         = 1;
    m.b_ps         = OM_GEMM_KB * 16;
    m.y            = c->y;
    m.y_rs         = c->y_rs;
    m.into         = !first;
    m.ws           = c->ws;
    r->kern->gemm_f32(&m);
}

/* Sums over k in [k0, k1), inside one group of 4,096. pads the images it meets; *image: the one
 * that is padded now. */
static void gw_range(const gw_run *r, const gw_chunk *c, int64_t k0, int64_t k1, int64_t *image) {
    const om_conv2d_geom *g = r->g;
    const gw_plan *p        = r->p;
    bool first              = true;
    for (int64_t b0 = k0; b0 < k1; b0 += OM_GEMM_KB) {
        int64_t b1 = omi_min64(b0 + OM_GEMM_KB, k1);
        for (int64_t k = b0; k < b1;) {
            int64_t n = k / p->pixels, p0 = k % p->pixels;
            int64_t p1 = omi_min64(p->pixels, p0 + b1 - k);
            if (n != *image) {
                omi_conv_pad(&p->pad, r->x + (n * g->c + c->q * p->icg + c->c0) * g->h * g->w,
                             c->chans, g->h, g->w, -g->pad[0], -g->pad[1], c->pad);
                *image = n;
            }
            gw_fill(r, c, n, p0, p1, k - b0);
            k += p1 - p0;
        }
        gw_block(r, c, b1 - b0, first);
        first = false;
    }
}

static void gw_run_chunk(void *arg, int64_t chunk, int worker) {
    const gw_run *r  = arg;
    const gw_plan *p = r->p;
    int64_t group_k = p->slots ? chunk % p->slots : 0, rest = p->slots ? chunk / p->slots : chunk;
    gw_chunk c = {.q = rest / p->parts, .panel0 = rest % p->parts * p->part};
    c.panels   = omi_min64(p->part, p->panels - c.panel0);
    float *own = r->own + worker * p->own;
    c.col      = (int64_t *)(void *)own;
    c.pad      = own + p->cols_area;
    c.b        = c.pad + p->pad_area;
    c.a        = c.b + p->b_area;
    c.sum      = c.a + p->a_area;
    c.ws       = c.sum + p->sum_area;
    gw_columns(r, &c);
    int64_t at = c.q * p->ocg * p->cols + c.panel0 * 16, image = -1;
    c.y_rs = p->cols;
    if (p->slots) {
        c.y = r->slot + group_k * r->g->oc * p->cols + at;
        gw_range(r, &c, group_k * OM_GEMM_SB, omi_min64((group_k + 1) * OM_GEMM_SB, p->k), &image);
        return;
    }
    for (int64_t s = 0; s < p->groups_k; s++) {
        c.y    = s ? c.sum : r->dw + at;
        c.y_rs = s ? c.cols : p->cols;
        gw_range(r, &c, s * OM_GEMM_SB, omi_min64((s + 1) * OM_GEMM_SB, p->k), &image);
        for (int64_t o = 0; s && o < p->ocg; o++)
            for (int64_t j = 0; j < c.cols; j++) {
                float *d = r->dw + at + o * p->cols + j;
                *d       = *d + c.sum[o * c.cols + j];
            }
    }
}

void omi_conv2d_grad_w(const om_conv2d_geom *g, const float *dy, const float *x, float *dw,
                       void *ws, int workers) {
    gw_plan p = gw_plan_of(g, workers);
    if (g->oc * p.cols == 0) return;
    if (p.k == 0) {
        memset(dw, 0, (size_t)(g->oc * p.cols) * sizeof(float));
        return;
    }
    gw_run r = {.g = g, .p = &p, .kern = omi_kernels(), .dy = dy, .x = x, .dw = dw};
    r.slot   = (float *)(void *)((char *)ws + (-(uintptr_t)ws & (OM_ALIGN - 1)));
    r.own    = r.slot + p.slot_area;
    if (omi_conv_work(g) < OM_SPLIT_WORK) workers = 1;
    int64_t chunks = g->groups * p.parts * omi_max64(p.slots, 1);
    omi_parallel_at_most(workers, chunks, gw_run_chunk, &r);
    if (p.slots) {
        om_gemm_args m = {.m = g->oc, .n = p.cols, .y = dw, .y_rs = p.cols, .alpha = 1.0f};
        r.kern->gemm_combine_f32(&m, r.slot, g->oc * p.cols, p.slots);
    }
}
