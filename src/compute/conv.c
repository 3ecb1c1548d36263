/*
 * conv.c -- Conv forward by AR-3: packed weights, the plan, and the split over images, groups, rows
 * of pixels and tiles of output channels.
 *
 * A chunk copies the input rows it needs into a padded form that fits the second cache (conv_pad.h)
 * and runs the implicit matrix product over it; a kernel of one element with stride 1 and no
 * padding reads x in place. One input channel per group is the depthwise kernel.
 */
#include "compute/conv.h"

#include "compute/conv_pad.h"
#include "compute/pack.h"
#include "compute/split.h"
#include "kernels/table.h"

#define CACHE_FLOATS (64 * 1024) /* a chunk's copy: half a small second cache */
#define DW_CHANNELS  8           /* channels of a depthwise chunk             */
#define DW_SMALL     1024 /* floats of a channel up to which the chunk's are copied at once */

/* ---- the plan ---------------------------------------------------------------------------------
 */

static void split_conv(om_conv_plan *p) {
    const om_conv_geom *g = &p->g;
    const om_window *w    = &g->win;
    bool in_place         = p->way == OM_CONV_IN_PLACE;
    int64_t rows          = in_place ? p->pixels : w->out[0]; /* what parts are counted in */
    int64_t min           = in_place ? OM_CONV_PIXELS : omi_max64(1, OM_CONV_PIXELS / w->out[1]);
    int64_t per           = rows;
    if (!in_place) {
        om_padded one = omi_padded_of(w, 1);
        int64_t cells = one.block_step ? one.plane : one.row * w->stride[0]; /* of an output row */
        per           = CACHE_FLOATS / omi_max64(p->icg * cells, 1);
        per           = omi_min64(omi_max64(per, min), rows);
    }
    int64_t want = p->workers;
    int64_t have = g->n * g->groups;
    if (have * omi_ceil_div(rows, per) < want)
        per = omi_max64(omi_ceil_div(rows, omi_ceil_div(want, have)), omi_min64(min, rows));
    p->parts = omi_ceil_div(rows, per);
    p->part  = omi_ceil_div(rows, p->parts);
    if (in_place) p->part = (p->part + 15) / 16 * 16;
    p->parts      = omi_ceil_div(rows, p->part);
    p->tiles      = p->kern->conv_tiles(p->ocg);
    p->tile_parts = omi_min64(omi_ceil_div(want, have * p->parts), p->tiles);
    p->tile_part  = omi_ceil_div(p->tiles, p->tile_parts);
    p->tile_parts = omi_ceil_div(p->tiles, p->tile_part);
}

static om_conv_way way_of(const om_conv_plan *p) {
    const om_window *w = &p->g.win;
    if (p->g.n * p->g.oc * p->pixels == 0) return OM_CONV_NOTHING;
    if (p->g.c == 0) return OM_CONV_NO_CHANNELS;
    if (p->icg == 1) return OM_CONV_DEPTHWISE;
    bool plain = p->taps == 1 && w->stride[0] == 1 && w->stride[1] == 1 &&
                 !(w->before[0] | w->before[1] | w->after[0] | w->after[1]);
    return plain ? OM_CONV_IN_PLACE : OM_CONV_COPIED;
}

/* Floats of each worker. After omi_conv_fits all of them are far below 2^62. */
static void own_of(om_conv_plan *p) {
    p->own = omi_line_floats(p->taps * 2);
    if (p->way == OM_CONV_DEPTHWISE) {
        p->pad    = omi_padded_of(&p->g.win, p->g.win.out[0]);
        p->copied = p->pad.plane <= DW_SMALL ? DW_CHANNELS : 1;
        p->own += omi_line_floats(p->copied * p->pad.plane + OM_CONV_SLACK);
        return;
    }
    int64_t kc   = omi_min64(p->cb, p->icg) * p->taps;
    bool grouped = p->taps == 1 && p->icg > OM_GEMM_SB;
    p->own += omi_line_floats(omi_conv_ws_floats(p->ocg, kc, grouped));
    if (p->way == OM_CONV_COPIED) {
        p->pad = omi_padded_of(&p->g.win, p->part);
        p->own += omi_line_floats(p->icg * p->pad.plane + OM_CONV_SLACK);
    }
    p->packed_floats = omi_line_floats(p->g.oc * p->icg * p->taps + OM_CONV_SLACK);
}

bool omi_conv_plan(const om_conv_geom *g, bool packed, int workers, om_conv_plan *p) {
    char why[1];
    const om_window *w = &g->win;
    *p = (om_conv_plan){.g = *g, .kern = omi_kernels(), .packed = packed, .workers = 1};
    if (!omi_conv_fits(g, why, sizeof why)) return false;
    p->icg    = g->c / g->groups;
    p->ocg    = g->oc / g->groups;
    p->taps   = w->k[0] * w->k[1];
    p->pixels = w->out[0] * w->out[1];
    p->cb     = omi_conv_block(g);
    p->way    = way_of(p);
    if (p->way <= OM_CONV_NO_CHANNELS) return true;
    if (g->n * g->oc * p->pixels * p->icg * p->taps >= OM_SPLIT_WORK) p->workers = workers;
    if (p->way != OM_CONV_DEPTHWISE) split_conv(p);
    own_of(p);
    size_t all, bytes;
    if (!omi_mul_size((size_t)p->own, (size_t)p->workers, &all) ||
        !omi_add_size(all, packed ? 0 : (size_t)p->packed_floats, &all) ||
        !omi_mul_size(all, sizeof(float), &bytes))
        return false;
    return omi_add_size(bytes, OM_ALIGN, &p->ws_bytes);
}

/* ---- weights ----------------------------------------------------------------------------------
 */

size_t omi_conv_pack_bytes(const om_conv_geom *g) {
    int64_t area = g->win.k[0] * g->win.k[1];
    return (size_t)omi_line_floats(g->oc * (g->c / g->groups) * area + OM_CONV_SLACK) *
           sizeof(float);
}

void omi_conv_pack(const om_conv_geom *g, const float *weight, float *dst) {
    int64_t icg = g->c / g->groups, ocg = g->oc / g->groups, taps = g->win.k[0] * g->win.k[1];
    for (int64_t q = 0; q < g->groups; q++) {
        om_conv_pack_args a = {.rows = ocg, .chans = icg, .cb = omi_conv_block(g), .taps = taps};
        a.w                 = weight + q * ocg * icg * taps;
        a.row_step          = icg * taps;
        a.chan_step         = taps;
        a.dst               = dst + q * ocg * icg * taps;
        omi_kernels()->conv_pack_w(&a);
    }
}

typedef struct conv_weights {
    const om_conv_geom *g;
    const float *w;
} conv_weights;

static void pack_conv(const void *ctx, float *dst) {
    const conv_weights *c = ctx;
    omi_conv_pack(c->g, c->w, dst);
}

const float *omi_conv_packed_cached(om_buffer *buf, int64_t offset, const om_conv_geom *g) {
    conv_weights c = {g, (const float *)buf->data + offset};
    /* the tiles depend on the column, which tests change */
    int64_t key[] = {
        offset, g->oc, g->c, g->win.k[0], g->win.k[1], g->groups, omi_kernels()->width};
    return omi_pack_cached(buf, OM_PACK_CONV, key, 7, omi_conv_pack_bytes(g), pack_conv, &c);
}

/* ---- running ----------------------------------------------------------------------------------
 */

typedef struct conv_run {
    const om_conv_plan *p;
    const om_conv_ptrs *d;
    const float *w;
    float *own;
} conv_run;

static void list_taps(const om_conv_plan *p, int64_t *tap) {
    const om_window *w = &p->g.win;
    for (int64_t i = 0; i < w->k[0]; i++)
        for (int64_t j = 0; j < w->k[1]; j++)
            tap[i * w->k[1] + j] =
                p->way == OM_CONV_IN_PLACE ? 0 : omi_padded_tap(&p->pad, w, i, j);
}

/* The epilogue for an image; NULL when there is none. */
static const om_epilogue *image_epilogue(const om_epilogue *ep, int64_t image, om_epilogue *out) {
    if (!ep) return NULL;
    *out = *ep;
    for (int i = 0; i < ep->n; i++) {
        if (out->step[i].is == 0) continue;
        out->step[i].a += image * out->step[i].is;
        if (out->step[i].b) out->step[i].b += image * out->step[i].is;
    }
    return out;
}

static void conv_chunk(void *arg, int64_t chunk, int worker) {
    const conv_run *r     = arg;
    const om_conv_plan *p = r->p;
    const om_window *win  = &p->g.win;
    int64_t tile_part = chunk % p->tile_parts, part = chunk / p->tile_parts % p->parts;
    int64_t plane = chunk / p->tile_parts / p->parts; /* image * groups + group */
    int64_t q = plane % p->g.groups, image = plane / p->g.groups;
    float *own = r->own + worker * p->own;

    int64_t *tap = (int64_t *)(void *)own;
    own += omi_line_floats(p->taps * 2);
    list_taps(p, tap);
    const float *x = r->d->x + (image * p->g.c + q * p->icg) * win->in[0] * win->in[1];
    float *y       = r->d->y + (image * p->g.oc + q * p->ocg) * p->pixels;
    int64_t from = part * p->part, pixel0 = from;
    om_conv_args a = {.rows = p->ocg, .chans = p->icg, .cb = p->cb, .taps = p->taps, .tap = tap};
    a.tile0        = tile_part * p->tile_part;
    a.tile1        = omi_min64(a.tile0 + p->tile_part, p->tiles);
    a.group        = p->taps == 1 ? OM_GEMM_SB : 0;
    a.w            = r->w + q * p->ocg * p->icg * p->taps;
    a.bias         = r->d->bias ? r->d->bias + q * p->ocg : NULL;
    a.y_rs         = p->pixels;
    if (p->way == OM_CONV_IN_PLACE) {
        a.x      = x + from;
        a.plane  = p->pixels;
        a.out_w  = p->pixels;
        a.pixels = omi_min64(p->part, p->pixels - from);
    } else {
        omi_conv_pad(&p->pad, p->kern, x, p->icg, win->in[0], win->in[1],
                     from * win->stride[0] - win->before[0], -win->before[1], own);
        a.x        = own;
        a.slack    = true;
        a.plane    = p->pad.plane;
        a.out_w    = win->out[1];
        a.row_step = p->pad.out_step;
        a.pixels   = omi_min64(p->part, win->out[0] - from) * win->out[1];
        pixel0     = from * win->out[1];
        own += omi_line_floats(p->icg * p->pad.plane + OM_CONV_SLACK);
    }
    om_epilogue ep;
    a.y  = y + pixel0;
    a.ws = own;
    omi_conv_pieces(p->kern, &a, image_epilogue(r->d->ep, image, &ep), q * p->ocg, pixel0);
}

/* x: the channel's copy. */
static void depthwise_channel(const conv_run *r, int64_t c, const int64_t *tap, const float *x) {
    const om_conv_plan *p = r->p;
    const om_window *win  = &p->g.win;
    int64_t image         = c / p->g.c;
    om_epilogue ep;
    const om_epilogue *e = image_epilogue(r->d->ep, image, &ep);
    for (int64_t m = 0; m < p->ocg; m++) {
        int64_t oc          = c % p->g.c * p->ocg + m;
        om_depthwise_args a = {.taps = p->taps, .tap = tap, .x = x};
        a.w                 = r->d->weight + oc * p->taps;
        a.out_w             = win->out[1];
        a.row_step          = p->pad.out_step;
        a.bias              = r->d->bias ? r->d->bias + oc : NULL;
        a.y                 = r->d->y + (image * p->g.oc + oc) * p->pixels;
        int64_t rows        = omi_max64(4, (1 << 24) / (a.out_w * p->taps) / 4 * 4);
        for (int64_t h = 0; h < win->out[0]; h += rows) {
            if (h && omi_cut_short()) return;
            a.out_h = omi_min64(rows, win->out[0] - h);
            p->kern->depthwise_f32(&a);
            a.x += a.out_h * a.row_step;
            a.y += a.out_h * a.out_w;
        }
        if (e) omi_epilogue_apply(p->kern, e, oc, 1, 0, p->pixels, a.y - p->pixels, p->pixels);
    }
}

static void depthwise_chunk(void *arg, int64_t chunk, int worker) {
    const conv_run *r     = arg;
    const om_conv_plan *p = r->p;
    float *own            = r->own + worker * p->own;
    int64_t *tap          = (int64_t *)(void *)own;
    own += omi_line_floats(p->taps * 2);
    list_taps(p, tap);
    const om_window *win = &p->g.win;
    int64_t plane = win->in[0] * win->in[1], end = (chunk + 1) * DW_CHANNELS, n;
    end = omi_min64(end, p->g.n * p->g.c);
    for (int64_t c = chunk * DW_CHANNELS; c < end; c += n) { /* image * channels + channel */
        n = omi_min64(p->copied, end - c);
        omi_conv_pad(&p->pad, p->kern, r->d->x + c * plane, n, win->in[0], win->in[1],
                     -win->before[0], -win->before[1], own);
        for (int64_t i = 0; i < n; i++)
            depthwise_channel(r, c + i, tap, own + i * p->pad.plane);
    }
}

/* A sum over no channels is +0, and then the bias: kernels begin with a first channel. */
static void no_channels(const om_conv_plan *p, const om_conv_ptrs *d) {
    om_epilogue ep;
    for (int64_t row = 0; row < p->g.n * p->g.oc && !omi_cut_short(); row++) {
        float *y             = d->y + row * p->pixels;
        const om_epilogue *e = image_epilogue(d->ep, row / p->g.oc, &ep);
        for (int64_t i = 0; i < p->pixels; i++)
            y[i] = d->bias ? 0.0f + d->bias[row % p->g.oc] : 0.0f;
        if (e) omi_epilogue_apply(p->kern, e, row % p->g.oc, 1, 0, p->pixels, y, p->pixels);
    }
}

void omi_conv_run(const om_conv_plan *p, const om_conv_ptrs *d, void *ws) {
    if (p->way == OM_CONV_NOTHING) return;
    if (p->way == OM_CONV_NO_CHANNELS) {
        no_channels(p, d);
        return;
    }
    float *base = (float *)(void *)((char *)ws + (-(uintptr_t)ws & (OM_ALIGN - 1)));
    conv_run r  = {.p = p, .d = d, .w = d->w_packed, .own = base};
    if (p->way == OM_CONV_DEPTHWISE) {
        int64_t chunks = omi_ceil_div(p->g.n * p->g.c, DW_CHANNELS);
        omi_parallel_at_most(p->workers, chunks, depthwise_chunk, &r);
        return;
    }
    if (!p->packed) {
        omi_conv_pack(&p->g, d->weight, base);
        r.w = base;
        r.own += p->packed_floats;
    }
    omi_parallel_at_most(p->workers, p->g.n * p->g.groups * p->parts * p->tile_parts, conv_chunk,
                         &r);
}
