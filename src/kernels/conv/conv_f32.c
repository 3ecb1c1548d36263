/*
 * conv_f32.c -- convolution by AR-3.1 as an implicit matrix product: weights are the rows, pixels
 * the columns, and the patches of 128 pixels at a time are packed into panels of 16 block by block.
 *
 * The micro-kernels are those of the matrix product. A second, slower tile serves the input
 * gradient where taps are missing and skipping them could be told from adding zero (AR-2.3, AR-8).
 */
#include <string.h>

#include "kernels/gemm/pack.h"

#define PANELS (OM_CONV_PIXELS / 16)

/* ---- patches ----------------------------------------------------------------------------------
 */

/* A panel's pixels as stretches of one output row each. */
typedef struct stretch {
    int64_t from; /* offset in x, without tap and channel */
    int at, len;
} stretch;
typedef struct stretches {
    int n;
    stretch s[16];
} stretches;

static void find_stretches(const om_conv_args *a, int64_t p, stretches *r) {
    int at = 0;
    r->n   = 0;
    while (at < 16 && p < a->pixels) {
        int64_t row = p / a->out_w, col = p % a->out_w;
        int len      = (int)omi_min64(a->out_w - col, 16 - at);
        r->s[r->n++] = (stretch){row * a->row_step + col, at, len};
        at += len;
        p += len;
    }
}

/* The same as moves of whole vectors. What a move copies beyond its stretch is overwritten by the
 * next stretch or row; the source may be read that far when there is slack. */
typedef struct moves {
    int n;
    int at[32];
    int64_t from[32];
} moves;

static void find_moves(const stretches *r, moves *m) {
    m->n = 0;
    for (int i = 0; i < r->n; i++)
        for (int q = 0; q < r->s[i].len; q += W) {
            m->at[m->n]     = r->s[i].at + q;
            m->from[m->n++] = r->s[i].from + q;
        }
}

OM_INLINE void patches_moved(const om_conv_args *a, const moves *m, int n, int64_t c0,
                             int64_t chans, float *d) {
    for (int64_t c = c0; c < c0 + chans; c++) {
        const float *x = a->x + c * a->plane;
        for (int64_t t = 0; t < a->taps; t++, d += 16) {
            const float *s = x + a->tap[t];
            OM_UNROLL for (int i = 0; i < n; i++) vstore(d + m->at[i], vload(s + m->from[i]));
        }
    }
}

static void patches(const om_conv_args *a, const stretches *r, int64_t c0, int64_t chans,
                    float *d) {
    moves m;
    find_moves(r, &m);
    if (m.n == 2)
        patches_moved(a, &m, 2, c0, chans, d);
    else if (m.n == 3)
        patches_moved(a, &m, 3, c0, chans, d);
    else if (m.n == 4)
        patches_moved(a, &m, 4, c0, chans, d);
    else
        for (int64_t c = c0; c < c0 + chans; c++) {
            const float *x = a->x + c * a->plane;
            for (int64_t t = 0; t < a->taps; t++, d += 16)
                for (int i = 0; i < m.n; i++)
                    vstore(d + m.at[i], vload(x + a->tap[t] + m.from[i]));
        }
}

/* Without slack: the last panel of an input used in place. */
static void patches_exact(const om_conv_args *a, const stretches *r, int64_t c0, int64_t chans,
                          float *d) {
    for (int64_t c = c0; c < c0 + chans; c++)
        for (int64_t t = 0; t < a->taps; t++, d += 16)
            for (int i = 0; i < r->n; i++)
                memcpy(d + r->s[i].at, a->x + c * a->plane + a->tap[t] + r->s[i].from,
                       (size_t)r->s[i].len * sizeof(float));
}

OM_INLINE void patches_whole(const om_conv_args *a, int64_t from, int64_t c0, int64_t chans,
                             float *d) {
    for (int64_t c = c0; c < c0 + chans; c++) {
        const float *x = a->x + c * a->plane + from;
        for (int64_t t = 0; t < a->taps; t++, d += 16)
            OM_UNROLL for (int v = 0; v < VP; v++) vstore(d + v * W, vload(x + a->tap[t] + v * W));
    }
}

/* One tap, pixels contiguous: channel by channel over all whole panels, so that x is read in long
 * runs. Returns how many panels that were. */
static int64_t pack_rows(const om_conv_args *a, int64_t p0, int64_t pixels, int64_t c0,
                         int64_t chans, float *d) {
    if (a->taps != 1 || a->out_w < p0 + pixels) return 0;
    int64_t whole = pixels / 16;
    for (int64_t c = 0; c < chans; c++) {
        const float *s = a->x + (c0 + c) * a->plane + a->tap[0] + p0;
        for (int64_t p = 0; p < whole; p++)
            OM_UNROLL for (int v = 0; v < VP; v++)
                vstore(d + (p * chans + c) * 16 + v * W, vload(s + p * 16 + v * W));
    }
    return whole;
}

static void pack_patches(const om_conv_args *a, int64_t p, int64_t c0, int64_t chans, float *d) {
    stretches r;
    find_stretches(a, p, &r);
    stretch last = r.s[r.n - 1];
    if (last.at + last.len < 16) /* pixels that do not exist: any number, but the same one */
        memset(d, 0, (size_t)(chans * a->taps * 16) * sizeof(float));
    if (r.n == 1 && last.len == 16)
        patches_whole(a, last.from, c0, chans, d);
    else if (a->slack)
        patches(a, &r, c0, chans, d);
    else
        patches_exact(a, &r, c0, chans, d);
}

/* ---- tiles with missing taps ------------------------------------------------------------------
 */

/* As tile_packed, but a lane keeps its sum at a tap whose mask bit is clear. */
static void masked_tile(int mr, int64_t chans, int64_t taps, const float *a, const float *b,
                        const uint16_t *mask, float *c, int64_t ldc, int into, int64_t cols) {
    for (int i = 0; i < mr; i++) {
        vf acc[VP];
        float t[16];
        for (int v = 0; v < VP; v++)
            acc[v] = vset1(0.0f);
        for (int64_t k = 0; k < chans * taps; k++) {
            vf av         = vset1(a[k * mr + i]);
            uint32_t bits = mask[k % taps];
            for (int v = 0; v < VP; v++)
                acc[v] = vsel(vm_bits(bits >> (v * W)), vfma(av, vload(b + k * 16 + v * W), acc[v]),
                              acc[v]);
        }
        for (int v = 0; v < VP; v++)
            vstore(t + v * W, acc[v]);
        for (int64_t j = 0; j < omi_min64(cols, 16); j++)
            c[i * ldc + j] = into ? c[i * ldc + j] + t[j] : t[j];
    }
}

static bool all_exist(const uint16_t *mask, int64_t taps) {
    for (int64_t t = 0; t < taps; t++)
        if (mask[t] != 0xffff) return false;
    return true;
}

/* ---- one block of channels --------------------------------------------------------------------
 */

typedef struct job {
    const om_conv_args *a;
    om_rows rows;
    int64_t p0, pixels; /* pixels at work        */
    int64_t c0, chans;  /* channels of the block */
    const float *w;     /* weights of the block  */
} job;

static void one_tile(const job *j, int mr, const float *w, int64_t panel, float *d, int64_t ldd,
                     int into) {
    const om_conv_args *a = j->a;
    int64_t kc = j->chans * a->taps, left = j->pixels - panel * 16;
    const float *b       = a->ws + panel * kc * 16;
    const uint16_t *mask = a->mask ? a->mask + (j->p0 / 16 + panel) * a->taps : NULL;
    if (mask && !all_exist(mask, a->taps))
        masked_tile(mr, j->chans, a->taps, w, b, mask, d, ldd, into, left);
    else
        run_tile(tiles_packed[0][mr], mr, 1, kc, w, 1, b, kc * 16, d, ldd, into, left);
}

/* The tile at row (weights w) over panels [p, p1). */
static void tile_over(const job *j, int mr, const float *w, int64_t p, int64_t p1, float *d,
                      int64_t ldd, int into) {
    const om_conv_args *a = j->a;
    int64_t kc            = j->chans * a->taps;
    while (p < p1) {
        float *c = d + p * 16;
        if (NPM == 2 && !a->mask && p + 2 <= p1) {
            run_tile(tiles_packed[NPM - 1][mr], mr, 2, kc, w, 1, a->ws + p * kc * 16, kc * 16, c,
                     ldd, into, j->pixels - p * 16);
            p += 2;
        } else {
            one_tile(j, mr, w, p++, c, ldd, into);
        }
    }
}

#define WEIGHTS_CACHED (48 * 1024) /* floats of a block's weights that stay in the second cache */

/* All tiles of the block into d[row][pixel]: a panel stays in the first cache while the weights
 * pass, or, when those are many, a tile's weights do while the panels pass. */
static void block_tiles(const job *j, float *d, int64_t ldd, int into) {
    const om_conv_args *a = j->a;
    int64_t kc            = j->chans * a->taps;
    int64_t panels        = (j->pixels + 15) / 16;
    int64_t step          = a->rows * kc <= WEIGHTS_CACHED ? NPM : panels;
    for (int64_t p = 0; p < panels; p += step) {
        const float *w = j->w;
        for (int64_t t = 0, row = 0; t < a->tile1; t++) {
            int mr = om_rows_height(&j->rows, t);
            if (t >= a->tile0)
                tile_over(j, mr, w, p, omi_min64(p + step, panels), d + row * ldd, ldd, into);
            w += mr * kc;
            row += mr;
        }
    }
}

static void add_rows(float *y, int64_t y_rs, const float *s, int64_t s_rs, int64_t r0, int64_t r1,
                     int64_t n) {
    for (int64_t r = r0; r < r1; r++)
        for (int64_t i = 0; i < n; i++)
            y[r * y_rs + i] = y[r * y_rs + i] + s[r * s_rs + i];
}

static void add_bias(const om_conv_args *a, int64_t r0, int64_t r1, int64_t p0, int64_t n) {
    for (int64_t r = r0; r < r1; r++) {
        float *y  = a->y + r * a->y_rs + p0;
        vf b      = vset1(a->bias[r]);
        int64_t i = 0;
        for (; i + W <= n; i += W)
            vstore(y + i, vadd(vload(y + i), b));
        for (; i < n; i++)
            y[i] = y[i] + a->bias[r];
    }
}

void FN(conv_f32)(const om_conv_args *a) {
    OM_COUNT_CALL();
    om_rows rows = om_rows_of(a->rows);
    int64_t r0 = 0, r1 = 0;
    for (int64_t t = 0; t < a->tile1; t++) {
        r0 += t < a->tile0 ? om_rows_height(&rows, t) : 0;
        r1 += om_rows_height(&rows, t);
    }
    float *group = a->ws + OM_CONV_PIXELS * a->cb * a->taps + OM_CONV_SLACK;
    for (int64_t p0 = a->first; p0 < a->pixels; p0 += OM_CONV_PIXELS) {
        job j    = {.a = a, .rows = rows, .p0 = p0, .w = a->w};
        j.pixels = omi_min64(a->pixels - p0, OM_CONV_PIXELS);
        for (j.c0 = 0; j.c0 < a->chans; j.c0 += a->cb) {
            j.chans    = omi_min64(a->chans - j.c0, a->cb);
            int64_t kc = j.chans * a->taps, in_group = a->group ? j.c0 % a->group : j.c0;
            for (int64_t p = pack_rows(a, p0, j.pixels, j.c0, j.chans, a->ws); p * 16 < j.pixels;
                 p++)
                pack_patches(a, p0 + p * 16, j.c0, j.chans, a->ws + p * kc * 16);
            if (!a->group || j.c0 < a->group) {
                block_tiles(&j, a->y + p0, a->y_rs, j.c0 > 0);
            } else {
                block_tiles(&j, group, OM_CONV_PIXELS, in_group > 0);
                if (j.c0 + j.chans == a->chans || in_group + a->cb == a->group)
                    add_rows(a->y + p0, a->y_rs, group, OM_CONV_PIXELS, r0, r1, j.pixels);
            }
            j.w += kc * a->rows;
        }
        if (a->bias) add_bias(a, r0, r1, p0, j.pixels);
    }
}

/* ---- weights ----------------------------------------------------------------------------------
 */

/* mr rows of chans channels at w, taps gathered. */
OM_INLINE void gather_tile(const om_conv_pack_args *a, const float *w, int mr, int64_t chans,
                           float *o) {
    for (int64_t c = 0; c < chans; c++)
        for (int64_t k = 0; k < a->taps; k++, o += mr) {
            const float *s = w + c * a->chan_step + a->tap[k];
            for (int i = 0; i < mr; i++)
                o[i] = s[i * a->row_step];
        }
}

void FN(conv_pack_w)(const om_conv_pack_args *a) {
    OM_COUNT_CALL();
    om_rows rows = om_rows_of(a->rows);
    float *o     = a->dst;
    for (int64_t c0 = 0; c0 < a->chans; c0 += a->cb) {
        int64_t chans = omi_min64(a->chans - c0, a->cb);
        for (int64_t t = 0, r = 0; t < rows.tiles; t++) {
            int mr         = om_rows_height(&rows, t);
            const float *w = a->w + r * a->row_step + c0 * a->chan_step;
            if (!a->tap) /* taps and channels contiguous */
                pack_a_tile(o, w, a->row_step, 1, mr, chans * a->taps);
            else if (mr == MRM)
                gather_tile(a, w, MRM, chans, o);
            else
                gather_tile(a, w, mr, chans, o);
            o += mr * chans * a->taps;
            r += mr;
        }
    }
}

int64_t FN(conv_tiles)(int64_t rows) {
    return om_rows_of(rows).tiles;
}
