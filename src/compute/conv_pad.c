/*
 * conv_pad.c -- see conv_pad.h. Also what may be planned at all.
 */
#include "compute/conv_pad.h"

#include <stdio.h>
#include <string.h>

#include "compute/split.h"
#include "kernels/table.h"

/* ---- limits -----------------------------------------------------------------------------------
 */

bool omi_conv_fits(const om_conv_geom *g, char *why, size_t n) {
    const om_window *w = &g->win;
    int64_t area, work;
    for (int i = 0; i < 2; i++) {
        int64_t extent = w->in[i] + w->before[i] + w->after[i];
        if (extent > OM_CONV_EXTENT) {
            snprintf(why, n, "the padded extent %lld is above %lld", (long long)extent,
                     (long long)OM_CONV_EXTENT);
            return false;
        }
    }
    if (!omi_mul_i64(w->k[0], w->k[1], &area) || area > INT32_MAX) {
        snprintf(why, n, "the kernel of %lld x %lld has more than %d cells", (long long)w->k[0],
                 (long long)w->k[1], INT32_MAX);
        return false;
    }
    int64_t factors[] = {g->n, g->oc, w->out[0], w->out[1], g->c / g->groups, area};
    if (!omi_product(factors, 4, &work) || work > OM_CONV_WORK || !omi_product(factors, 6, &work) ||
        work > OM_CONV_WORK) {
        snprintf(why, n, "%lld x %lld outputs with a kernel of %lld cells need over 2^53 products",
                 (long long)w->out[0], (long long)w->out[1], (long long)area);
        return false;
    }
    return true;
}

/* ---- the copy ---------------------------------------------------------------------------------
 */

om_padded omi_padded_of(const om_window *w, int64_t out_rows) {
    om_padded p = {.row_step = 1, .part_step = 1, .blocks = 1};
    p.rows      = (out_rows - 1) * w->stride[0] + omi_window_reach(w, 0);
    p.parts = p.step = w->stride[1];
    p.width = omi_ceil_div((w->out[1] - 1) * w->stride[1] + omi_window_reach(w, 1), p.step);
    if (p.rows > w->k[0] * out_rows) {
        p.blocks     = w->k[0];
        p.block_step = w->dil[0];
        p.rows       = out_rows;
        p.row_step   = w->stride[0];
    }
    if (p.parts * p.width > w->k[1] * w->out[1]) {
        p.parts     = w->k[1];
        p.part_step = w->dil[1];
        p.width     = w->out[1];
    }
    p.row      = p.parts * p.width;
    p.plane    = p.blocks * p.rows * p.row;
    p.out_step = p.block_step ? p.row : w->stride[0] * p.row;
    return p;
}

/* The gathered form of an axis has a step of the dilation between its blocks or parts, and there
 * are as many as taps. */
int64_t omi_padded_tap(const om_padded *p, const om_window *w, int64_t i, int64_t j) {
    int64_t y = p->block_step ? i * p->rows : i * w->dil[0];
    int64_t x = j * w->dil[1];
    bool gaps = p->width == w->out[1] && p->parts == w->k[1] && p->part_step == w->dil[1];
    return y * p->row + (gaps ? j * p->width : x % p->step * p->width + x / p->step);
}

/* Cells [*lo, *hi) of n, step apart from position at on, that lie in [0, in). */
static void cells_inside(int64_t at, int64_t step, int64_t n, int64_t in, int64_t *lo,
                         int64_t *hi) {
    *lo = at < 0 ? omi_min64(omi_ceil_div(-at, step), n) : 0;
    *hi = at < in ? omi_min64((in - 1 - at) / step + 1, n) : 0;
    *hi = omi_max64(*lo, *hi);
}

/* One block of rows and one part of columns, of all channels. */
static void pad_part(const om_padded *p, const om_kernels *k, const float *x, int64_t chans,
                     int64_t h, int64_t w, int64_t y0, int64_t x0, float *dst) {
    int64_t r0, r1, c0, c1;
    cells_inside(y0, p->row_step, p->rows, h, &r0, &r1);
    cells_inside(x0, p->step, p->width, w, &c0, &c1);
    if (r1 == r0 || c1 == c0) return;
    x += (y0 + r0 * p->row_step) * w + x0 + c0 * p->step;
    dst += r0 * p->row + c0;
    for (int64_t c = 0; c < chans; c++, x += h * w, dst += p->plane) {
        if (c % 64 == 63 && omi_cut_short()) return;
        k->copy_rows_f32(r1 - r0, c1 - c0, x, p->row_step * w, p->step, dst, p->row);
    }
}

void omi_conv_pad(const om_padded *p, const om_kernels *k, const float *x, int64_t chans, int64_t h,
                  int64_t w, int64_t top, int64_t left, float *dst) {
    memset(dst, 0, (size_t)(chans * p->plane + OM_CONV_SLACK) * sizeof(float));
    for (int64_t b = 0; b < p->blocks; b++)
        for (int64_t part = 0; part < p->parts; part++)
            pad_part(p, k, x, chans, h, w, top + b * p->block_step, left + part * p->part_step,
                     dst + b * p->rows * p->row + part * p->width);
}

/* ---- the kernel in pieces ---------------------------------------------------------------------
 */

#define PIECE_WORK ((int64_t)1 << 27) /* multiply-adds between two questions: milliseconds */
#define PIECE_ROWS 128                /* no fewer rows, or packing the patches would weigh */

void omi_conv_pieces(const om_kernels *k, const om_conv_args *a, const om_epilogue *ep,
                     int64_t row0, int64_t pixel0) {
    om_conv_args p = *a;
    int64_t tiles = k->conv_tiles(a->rows), deep = a->chans * a->taps, end = a->pixels;
    int64_t high = omi_max64(a->rows / tiles, 1), tile = high * deep; /* for one pixel */
    int64_t step = PIECE_WORK / (tile * omi_min64(end, OM_CONV_PIXELS));
    step         = omi_max64(step, omi_ceil_div(PIECE_ROWS, high)); /* tiles */
    int64_t px   = PIECE_WORK / (tile * omi_min64(step, omi_max64(a->tile1 - a->tile0, 1)));
    px           = ep ? OM_CONV_PIXELS : omi_max64(px / OM_CONV_PIXELS, 1) * OM_CONV_PIXELS;
    for (p.first = 0; p.first < end; p.first += px)
        for (p.tile0 = a->tile0; p.tile0 < a->tile1; p.tile0 = p.tile1) {
            if (omi_cut_short()) return;
            p.pixels = omi_min64(p.first + px, end);
            p.tile1  = omi_min64(p.tile0 + step, a->tile1);
            k->conv_f32(&p);
            if (!ep) continue;
            int64_t r0 = omi_conv_rows_before(a->rows, tiles, p.tile0);
            int64_t r1 = omi_conv_rows_before(a->rows, tiles, p.tile1);
            omi_epilogue_apply(k, ep, row0 + r0, r1 - r0, pixel0 + p.first, p.pixels - p.first,
                               p.y + r0 * p.y_rs + p.first, p.y_rs);
        }
}
