/*
 * conv_grad_w.c -- the gradient of Conv by its weights (AR-2.1 over k = image, row, column;
 * AR-11.2): dy is the left operand, patches of x are unfolded 256 pixels at a time as the right
 * one.
 */
#include <string.h>

#include "compute/conv_pad.h"
#include "compute/split.h"
#include "kernels/table.h"

static bool gw_sizes(om_conv_gw_plan *p) {
    int64_t copy, slots = 0, weights = p->g.oc * p->cols; /* stored, so it fits */
    if (!omi_mul_i64(p->chans, p->pad.plane, &copy) || copy > OM_CONV_WORK ||
        !omi_mul_i64(p->slots, weights, &slots) || slots > OM_CONV_WORK)
        return false;
    p->cols_area = omi_line_floats(p->part * 16 * 2);
    p->pad_area  = omi_line_floats(copy + OM_CONV_SLACK);
    p->b_area    = p->part * OM_GEMM_KB * 16 + OM_CONV_SLACK;
    p->a_area    = omi_line_floats(p->ocg * OM_GEMM_KB);
    p->sum_area  = p->slots || p->groups_k == 1 ? 0 : omi_line_floats(p->ocg * p->part * 16);
    p->own       = p->cols_area + p->pad_area + p->b_area + p->a_area + p->sum_area +
             omi_line_floats(omi_gemm_ws_floats(p->ocg, OM_GEMM_KB));
    p->slot_area = omi_line_floats(slots);
    size_t all, bytes;
    return omi_mul_size((size_t)p->own, (size_t)p->workers, &all) &&
           omi_add_size(all, (size_t)p->slot_area, &all) &&
           omi_mul_size(all, sizeof(float), &bytes) && omi_add_size(bytes, OM_ALIGN, &p->ws_bytes);
}

bool omi_conv_gw_plan(const om_conv_geom *g, int workers, om_conv_gw_plan *p) {
    char why[1];
    *p = (om_conv_gw_plan){.g = *g, .kern = omi_kernels(), .workers = 1};
    if (!omi_conv_fits(g, why, sizeof why)) return false;
    p->icg    = g->c / g->groups;
    p->ocg    = g->oc / g->groups;
    p->area   = g->win.k[0] * g->win.k[1];
    p->pixels = g->win.out[0] * g->win.out[1];
    p->k      = g->n * p->pixels;
    if (g->oc == 0 || p->icg == 0) return true; /* nothing to compute */
    p->cols = p->icg * p->area;
    if (p->k == 0) return true; /* zeros */
    p->panels   = omi_ceil_div(p->cols, 16);
    p->groups_k = omi_ceil_div(p->k, OM_GEMM_SB);
    p->pad      = omi_padded_of(&g->win, g->win.out[0]);
    if (p->k * p->ocg * p->cols * g->groups >= OM_SPLIT_WORK) p->workers = workers;
    p->parts = omi_max64(1, omi_min64(omi_ceil_div(p->workers, g->groups), p->panels));
    p->part  = omi_ceil_div(p->panels, p->parts);
    p->part  = omi_min64(p->part, 32); /* 32 panels of 256 pixels: 512 KB */
    p->parts = omi_ceil_div(p->panels, p->part);
    if (p->parts * g->groups < p->workers && p->groups_k > 1 &&
        p->groups_k * g->oc * p->cols <= (int64_t)1 << 22)
        p->slots = p->groups_k;
    p->chans = omi_min64(p->icg, (p->part * 16 + p->area - 2) / p->area + 1);
    return gw_sizes(p);
}

typedef struct gw_run {
    const om_conv_gw_plan *p;
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
    const om_conv_gw_plan *p = r->p;
    int64_t first = c->panel0 * 16, last = omi_min64(first + c->panels * 16, p->cols);
    c->cols  = last - first;
    c->c0    = first / p->area;
    c->chans = (last - 1) / p->area - c->c0 + 1;
    for (int64_t j = first; j < last; j++) {
        int64_t t = j % p->area;
        c->col[j - first] =
            (j / p->area - c->c0) * p->pad.plane +
            omi_padded_tap(&p->pad, &p->g.win, t / p->g.win.k[1], t % p->g.win.k[1]);
    }
}

/* Rows [at, at + p1 - p0) of the operands of one block of 256: pixels [p0, p1) of an image whose
 * padded x is ready. */
static void gw_fill(const gw_run *r, const gw_chunk *c, int64_t image, int64_t p0, int64_t p1,
                    int64_t at) {
    const om_conv_geom *g = &r->p->g;
    for (int64_t o = 0; o < r->p->ocg; o++)
        memcpy(c->a + o * OM_GEMM_KB + at,
               r->dy + (image * g->oc + c->q * r->p->ocg + o) * r->p->pixels + p0,
               (size_t)(p1 - p0) * sizeof(float));
    om_unfold_args u = {.x = c->pad, .out_w = g->win.out[1], .row_step = r->p->pad.out_step};
    u.p0             = p0;
    u.p1             = p1;
    for (int64_t i = 0; i < c->panels; i++) {
        u.col  = c->col + i * 16;
        u.cols = (int)omi_min64(c->cols - i * 16, 16);
        u.dst  = c->b + (i * OM_GEMM_KB + at) * 16;
        r->p->kern->unfold_f32(&u);
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
    r->p->kern->gemm_f32(&m);
}

/* Sums over k in [k0, k1), inside one group of 4,096. pads the images it meets; *image: the one
 * that is padded now. */
static void gw_range(const gw_run *r, const gw_chunk *c, int64_t k0, int64_t k1, int64_t *image) {
    const om_conv_gw_plan *p = r->p;
    const om_conv_geom *g    = &p->g;
    bool first               = true;
    for (int64_t b0 = k0; b0 < k1 && !omi_cut_short(); b0 += OM_GEMM_KB) {
        int64_t b1 = omi_min64(b0 + OM_GEMM_KB, k1);
        for (int64_t k = b0; k < b1;) {
            int64_t n = k / p->pixels, p0 = k % p->pixels;
            int64_t p1 = omi_min64(p->pixels, p0 + b1 - k);
            if (n != *image) {
                omi_conv_pad(&p->pad, p->kern,
                             r->x +
                                 (n * g->c + c->q * p->icg + c->c0) * g->win.in[0] * g->win.in[1],
                             c->chans, g->win.in[0], g->win.in[1], -g->win.before[0],
                             -g->win.before[1], c->pad);
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
    const gw_run *r          = arg;
    const om_conv_gw_plan *p = r->p;
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
        c.y = r->slot + group_k * p->g.oc * p->cols + at;
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

void omi_conv_gw_run(const om_conv_gw_plan *p, const float *dy, const float *x, float *dw,
                     void *ws) {
    const om_conv_geom *g = &p->g;
    if (g->oc * p->cols == 0) return;
    if (p->k == 0) {
        memset(dw, 0, (size_t)(g->oc * p->cols) * sizeof(float));
        return;
    }
    gw_run r       = {.p = p, .dy = dy, .x = x, .dw = dw};
    r.slot         = (float *)(void *)((char *)ws + (-(uintptr_t)ws & (OM_ALIGN - 1)));
    r.own          = r.slot + p->slot_area;
    int64_t chunks = g->groups * p->parts * omi_max64(p->slots, 1);
    omi_parallel_at_most(p->workers, chunks, gw_run_chunk, &r);
    if (p->slots) {
        om_gemm_args m = {.m = g->oc, .n = p->cols, .y = dw, .y_rs = p->cols, .alpha = 1.0f};
        p->kern->gemm_combine_f32(&m, r.slot, g->oc * p->cols, p->slots);
    }
}
