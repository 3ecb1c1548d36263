/*
 * conv.c -- Conv forward by AR-3: packed weights, workspace, and the split over images, groups,
 * rows of pixels and tiles of output channels.
 *
 * A chunk copies the input rows it needs into a padded form that fits the second cache (conv_pad.h)
 * and runs the implicit matrix product over it; a kernel of one element with stride 1 and no
 * padding reads x in place. One input channel per group is the depthwise kernel.
 */
#include "compute/conv.h"

#include <string.h>

#include "compute/conv_pad.h"
#include "compute/pack.h"
#include "compute/split.h"
#include "kernels/table.h"

#define CACHE_FLOATS                                                                               \
    (64 * 1024)       /* aim for the padded copy of a chunk: half a small second cache             \
                       */
#define DW_CHANNELS 8 /* channels of a depthwise chunk */

typedef struct conv_plan {
    int64_t icg, ocg, taps, cb, pixels; /* pixels of an image                    */
    bool depthwise, in_place;
    om_padded pad;       /* of a chunk                            */
    int64_t part, parts; /* output rows (in place: pixels) of one */
    int64_t tiles, tile_part, tile_parts;
    int64_t own, packed; /* floats per worker; of packed weights  */
} conv_plan;

/* Floats of one thing that a plan holds for each worker: with it no sum of a few, times workers and
 * bytes, can wrap. */
#define MOST_FLOATS 0x1p44

bool omi_conv2d_fits(const om_conv2d_geom *g, int64_t *rows, int64_t *columns) {
    // Options are below 2^31 and sizes below 2^61 (ops/window.h, graphops/conv.c): these do not
    // wrap.
    int64_t reach[2] = {(g->kh - 1) * g->dilation[0] + 1, (g->kw - 1) * g->dilation[1] + 1};
    int64_t out[2]   = {omi_max64(g->oh - 1, 0), omi_max64(g->ow - 1, 0)}, far[2];
    for (int i = 0; i < 2; i++)
        if (!omi_mul_i64(out[i], g->stride[i], &far[i]) || !omi_add_i64(far[i], reach[i], &far[i]))
            far[i] = INT64_MAX;
    *rows          = far[0];
    *columns       = far[1];
    double channel = (double)omi_max64(g->c, 1), taps = (double)g->kh * (double)g->kw;
    double padded = channel * (double)far[0] * ((double)far[1] + (double)g->stride[1]);
    double grads  = (double)omi_max64(g->oc, 1) * ((double)g->h + (double)g->oh + (double)g->kh) *
                   ((double)g->w + (double)g->ow + (double)g->kw);
    return padded <= MOST_FLOATS && grads <= MOST_FLOATS &&
           (double)omi_max64(g->oc, 1) * channel * taps <= MOST_FLOATS;
}

static void split_conv(const om_conv2d_geom *g, conv_plan *p, int workers) {
    int64_t rows = p->in_place ? p->pixels : g->oh; /* what parts are counted in */
    int64_t min  = p->in_place ? OM_CONV_PIXELS : omi_max64(1, OM_CONV_PIXELS / g->ow);
    int64_t per  = rows;
    if (!p->in_place) {
        om_padded one  = omi_padded_of(g, 1);
        int64_t line[] = {p->icg, one.row, g->stride[0]};
        per            = CACHE_FLOATS / omi_max64(omi_product_at_most(line, 3), 1);
        per            = omi_min64(omi_max64(per, min), rows);
    }
    int64_t want = omi_conv_work(g) < OM_SPLIT_WORK ? 1 : workers;
    int64_t have = g->n * g->groups;
    if (have * omi_ceil_div(rows, per) < want)
        per = omi_max64(omi_ceil_div(rows, omi_ceil_div(want, have)), omi_min64(min, rows));
    p->parts = omi_ceil_div(rows, per);
    p->part  = omi_ceil_div(rows, p->parts);
    if (p->in_place) p->part = (p->part + 15) / 16 * 16;
    p->parts      = omi_ceil_div(rows, p->part);
    p->tiles      = omi_kernels()->conv_tiles(p->ocg);
    p->tile_parts = omi_min64(omi_ceil_div(want, have * p->parts), p->tiles);
    p->tile_part  = omi_ceil_div(p->tiles, p->tile_parts);
    p->tile_parts = omi_ceil_div(p->tiles, p->tile_part);
}

static conv_plan conv_plan_of(const om_conv2d_geom *g, int workers) {
    conv_plan p = {.icg = g->c / g->groups, .ocg = g->oc / g->groups, .taps = g->kh * g->kw};
    p.cb        = omi_conv_block(g);
    p.pixels    = g->oh * g->ow;
    p.depthwise = p.icg == 1;
    p.in_place  = p.taps == 1 && g->stride[0] == 1 && g->stride[1] == 1 && !p.depthwise &&
                 !(g->pad[0] | g->pad[1] | g->pad[2] | g->pad[3]);
    if (p.depthwise) {
        p.pad = omi_padded_of(g, g->oh);
        p.own = omi_line_floats(p.pad.plane + OM_CONV_SLACK) + omi_line_floats(p.taps * 2);
        return p;
    }
    split_conv(g, &p, workers);
    p.packed     = omi_line_floats(g->oc * p.icg * p.taps + OM_CONV_SLACK);
    int64_t kc   = omi_min64(p.cb, p.icg) * p.taps;
    bool grouped = p.taps == 1 && p.icg > OM_GEMM_SB;
    p.own = omi_line_floats(omi_conv_ws_floats(p.ocg, kc, grouped)) + omi_line_floats(p.taps * 2);
    if (!p.in_place) {
        p.pad = omi_padded_of(g, p.part);
        p.own += omi_line_floats(p.icg * p.pad.plane + OM_CONV_SLACK);
    }
    return p;
}

/* ---- the padded copy --------------------------------------------------------------------------
 */

void omi_conv_pad(const om_padded *p, const float *x, int64_t chans, int64_t h, int64_t w,
                  int64_t top, int64_t left, float *dst) {
    int64_t columns = p->row; /* of the padded input          */
    int64_t c0 = omi_max64(0, left), c1 = omi_min64(w, left + columns); /* input columns to copy */
    memset(dst, 0, (size_t)(chans * p->plane + OM_CONV_SLACK) * sizeof(float));
    for (int64_t c = 0; c < chans; c++)
        for (int64_t r = omi_max64(0, -top); r < p->rows && top + r < h; r++) {
            float *d       = dst + c * p->plane + r * p->row;
            const float *s = x + (c * h + top + r) * w;
            if (p->step == 1 && c1 > c0) {
                memcpy(d + c0 - left, s + c0, (size_t)(c1 - c0) * sizeof(float));
                continue;
            }
            for (int64_t phase = 0; phase < p->step; phase++) {
                int64_t q = omi_max64(0, omi_ceil_div(-left - phase, p->step)); /* first inside */
                float *e  = d + phase * p->width;
                for (int64_t i = left + phase + q * p->step; i < w && q < p->width; i += p->step)
                    e[q++] = s[i];
            }
        }
}

/* ---- weights ----------------------------------------------------------------------------------
 */

size_t omi_conv2d_pack_bytes(const om_conv2d_geom *g) {
    return (size_t)omi_line_floats(g->oc * (g->c / g->groups) * g->kh * g->kw + OM_CONV_SLACK) *
           sizeof(float);
}

void omi_conv2d_pack(const om_conv2d_geom *g, const float *weight, float *dst) {
    int64_t icg = g->c / g->groups, ocg = g->oc / g->groups, taps = g->kh * g->kw;
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
    const om_conv2d_geom *g;
    const float *w;
} conv_weights;

static void pack_conv(const void *ctx, float *dst) {
    const conv_weights *c = ctx;
    omi_conv2d_pack(c->g, c->w, dst);
}

const float *omi_conv2d_packed_cached(om_buffer *buf, int64_t offset, const om_conv2d_geom *g) {
    conv_weights c = {g, (const float *)buf->data + offset};
    /* the tiles depend on the column, which tests change */
    int64_t key[] = {offset, g->oc, g->c, g->kh, g->kw, g->groups, omi_kernels()->width};
    return omi_pack_cached(buf, OM_PACK_CONV, key, 7, omi_conv2d_pack_bytes(g), pack_conv, &c);
}

/* ---- running ----------------------------------------------------------------------------------
 */

typedef struct conv_run {
    const om_conv2d_args *a;
    const conv_plan *p;
    const om_kernels *kern;
    const float *w;
    float *own;
} conv_run;

static void list_taps(const conv_run *r, int64_t *tap) {
    const om_conv2d_geom *g = &r->a->g;
    for (int64_t i = 0; i < g->kh; i++)
        for (int64_t j = 0; j < g->kw; j++)
            tap[i * g->kw + j] = r->p->in_place ? 0 : omi_padded_tap(&r->p->pad, g, i, j);
}

static void conv_chunk(void *arg, int64_t chunk, int worker) {
    const conv_run *r       = arg;
    const conv_plan *p      = r->p;
    const om_conv2d_geom *g = &r->a->g;
    int64_t tile_part = chunk % p->tile_parts, part = chunk / p->tile_parts % p->parts;
    int64_t plane = chunk / p->tile_parts / p->parts; /* image * groups + group */
    int64_t q = plane % g->groups, image = plane / g->groups;
    float *own = r->own + worker * p->own;

    int64_t *tap = (int64_t *)(void *)own;
    own += omi_line_floats(p->taps * 2);
    list_taps(r, tap);
    const float *x = r->a->x + (image * g->c + q * p->icg) * g->h * g->w;
    float *y       = r->a->y + (image * g->oc + q * p->ocg) * p->pixels;
    int64_t from   = part * p->part;
    om_conv_args a = {.rows = p->ocg, .chans = p->icg, .cb = p->cb, .taps = p->taps, .tap = tap};
    a.tile0        = tile_part * p->tile_part;
    a.tile1        = omi_min64(a.tile0 + p->tile_part, p->tiles);
    a.group        = p->taps == 1 ? OM_GEMM_SB : 0;
    a.w            = r->w + q * p->ocg * p->icg * p->taps;
    a.bias         = r->a->bias ? r->a->bias + q * p->ocg : NULL;
    a.y_rs         = p->pixels;
    if (p->in_place) {
        a.x      = x + from;
        a.plane  = p->pixels;
        a.out_w  = p->pixels;
        a.pixels = omi_min64(p->part, p->pixels - from);
        a.y      = y + from;
    } else {
        int64_t rows = omi_min64(p->part, g->oh - from);
        omi_conv_pad(&p->pad, x, p->icg, g->h, g->w, from * g->stride[0] - g->pad[0], -g->pad[1],
                     own);
        a.x        = own;
        a.slack    = true;
        a.plane    = p->pad.plane;
        a.out_w    = g->ow;
        a.row_step = g->stride[0] * p->pad.row;
        a.pixels   = rows * g->ow;
        a.y        = y + from * g->ow;
        own += omi_line_floats(p->icg * p->pad.plane + OM_CONV_SLACK);
    }
    a.ws = own;
    r->kern->conv_f32(&a);
}

static void depthwise_chunk(void *arg, int64_t chunk, int worker) {
    const conv_run *r       = arg;
    const conv_plan *p      = r->p;
    const om_conv2d_geom *g = &r->a->g;
    float *own              = r->own + worker * p->own;
    int64_t *tap            = (int64_t *)(void *)own;
    own += omi_line_floats(p->taps * 2);
    list_taps(r, tap);
    int64_t end = omi_min64((chunk + 1) * DW_CHANNELS, g->n * g->c);
    for (int64_t c = chunk * DW_CHANNELS; c < end; c++) { /* image * channels + channel */
        omi_conv_pad(&p->pad, r->a->x + c * g->h * g->w, 1, g->h, g->w, -g->pad[0], -g->pad[1],
                     own);
        for (int64_t m = 0; m < p->ocg; m++) {
            int64_t oc          = c % g->c * p->ocg + m;
            om_depthwise_args a = {.taps = p->taps, .tap = tap, .x = own, .out_h = g->oh};
            a.w                 = r->a->weight + oc * p->taps;
            a.out_w             = g->ow;
            a.row_step          = g->stride[0] * p->pad.row;
            a.bias              = r->a->bias ? r->a->bias + oc : NULL;
            a.y                 = r->a->y + (c / g->c * g->oc + oc) * p->pixels;
            r->kern->depthwise_f32(&a);
        }
    }
}

size_t omi_conv2d_workspace(const om_conv2d_geom *g, bool packed, int workers) {
    if (g->n * g->oc * g->oh * g->ow == 0 || g->c == 0) return 0; /* nothing to plan */
    conv_plan p = conv_plan_of(g, workers);
    return (size_t)((packed ? 0 : p.packed) + p.own * workers) * sizeof(float) + OM_ALIGN;
}

/* A sum over no channels is +0, and then the bias: kernels begin with a first channel. */
static void no_channels(const om_conv2d_args *a) {
    const om_conv2d_geom *g = &a->g;
    float *y                = a->y;
    for (int64_t row = 0; row < g->n * g->oc; row++)
        for (int64_t i = 0; i < g->oh * g->ow; i++)
            *y++ = a->bias ? 0.0f + a->bias[row % g->oc] : 0.0f;
}

void omi_conv2d(const om_conv2d_args *a, void *ws, int workers) {
    const om_conv2d_geom *g = &a->g;
    if (g->n * g->oc * g->oh * g->ow == 0) return;
    if (g->c == 0) {
        no_channels(a);
        return;
    }
    conv_plan p = conv_plan_of(g, workers);
    float *base = (float *)(void *)((char *)ws + (-(uintptr_t)ws & (OM_ALIGN - 1)));
    conv_run r  = {.a = a, .p = &p, .kern = omi_kernels(), .w = a->w_packed, .own = base};
    if (p.depthwise) {
        int64_t chunks = omi_ceil_div(g->n * g->c, DW_CHANNELS);
        if (omi_conv_work(g) < OM_SPLIT_WORK) workers = 1;
        omi_parallel_at_most(workers, chunks, depthwise_chunk, &r);
        return;
    }
    if (!r.w) {
        omi_conv2d_pack(g, a->weight, base);
        r.w = base;
        r.own += p.packed;
    }
    if (omi_conv_work(g) < OM_SPLIT_WORK) workers = 1;
    omi_parallel_at_most(workers, g->n * g->groups * p.parts * p.tile_parts, conv_chunk, &r);
}
