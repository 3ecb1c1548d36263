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

/* One row: s is the input row, NULL when it does not exist. */
static void pad_row(const om_padded *p, const om_kernels *k, const float *s, int64_t w,
                    int64_t left, float *d) {
    if (!s) {
        memset(d, 0, (size_t)p->row * sizeof(float));
        return;
    }
    for (int64_t part = 0; part < p->parts; part++, d += p->width) {
        int64_t at = left + part * p->part_step; /* input column of cell 0 */
        int64_t lo = at < 0 ? omi_min64(omi_ceil_div(-at, p->step), p->width) : 0;
        int64_t hi = at < w ? omi_min64((w - 1 - at) / p->step + 1, p->width) : 0;
        if (hi <= lo) {
            memset(d, 0, (size_t)p->width * sizeof(float));
            continue;
        }
        for (int64_t i = 0; i < lo; i++)
            d[i] = 0.0f;
        if (p->step == 1)
            memcpy(d + lo, s + at + lo, (size_t)(hi - lo) * sizeof(float));
        else
            k->copy_step_f32(hi - lo, s + at + lo * p->step, p->step, d + lo);
        for (int64_t i = hi; i < p->width; i++)
            d[i] = 0.0f;
    }
}

void omi_conv_pad(const om_padded *p, const om_kernels *k, const float *x, int64_t chans, int64_t h,
                  int64_t w, int64_t top, int64_t left, float *dst) {
    for (int64_t c = 0; c < chans && !omi_cut_short(); c++, x += h * w)
        for (int64_t b = 0; b < p->blocks; b++)
            for (int64_t r = 0; r < p->rows; r++, dst += p->row) {
                int64_t at = top + b * p->block_step + r * p->row_step;
                pad_row(p, k, at >= 0 && at < h ? x + at * w : NULL, w, left, dst);
            }
    memset(dst, 0, OM_CONV_SLACK * sizeof(float));
}

/* ---- the kernel in pieces ---------------------------------------------------------------------
 */

#define PIECE_WORK ((int64_t)1 << 25) /* multiply-adds between two questions */

void omi_conv_pieces(const om_kernels *k, const om_conv_args *a, const om_epilogue *ep,
                     int64_t row0, int64_t pixel0) {
    om_conv_args p = *a;
    int64_t tiles = k->conv_tiles(a->rows), deep = a->chans * a->taps, end = a->pixels;
    int64_t row  = omi_max64(a->rows / tiles * deep, 1); /* multiply-adds of a tile for a pixel */
    int64_t step = omi_max64(1, PIECE_WORK / OM_CONV_PIXELS / row); /* tiles  */
    int64_t px   = PIECE_WORK / (row * omi_min64(step, omi_max64(a->tile1 - a->tile0, 1)));
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
