/*
 * gemm_f32.c -- the float32 matrix product of AR-2.1 over a panel16 b, with the epilogue of AR-2.2.
 *
 * Every output is its own chain of k, so tiles, blocking and packing change nothing in the bits.
 * Loops: row block, block of 256 k (a packed once), panel, row tiles; the next panel is prefetched
 * meanwhile. Up to FEW rows a is read in place and b streams through once; with few columns a is
 * read in place too, because packing it would cost more than it saves.
 */
#include <string.h>

#include "base/thread.h"
#include "kernels/gemm/direct.h"
#include "kernels/gemm/pack.h"

/* ---- tiles that read a in place -------------------------------------------------------------- */

TILE_U(1, 1)
TILE_U(2, 1)
TILE_U(3, 1)
TILE_U(4, 1)
TILE_U(5, 1)
TILE_U(6, 1)
#if W == 8
TILE_U(1, 4)
TILE_U(2, 2)
#elif W == 16
TILE_U(1, 8)
TILE_U(2, 4)
TILE_U(3, 4)
TILE_U(4, 4)
TILE_U(5, 4)
TILE_U(6, 4)
TILE_U(7, 1)
TILE_U(8, 1)
TILE_U(9, 1)
TILE_U(10, 1)
TILE_U(11, 1)
TILE_U(12, 1)
TILE_U(13, 1)
TILE_U(14, 1)
TILE_U(7, 2)
TILE_U(8, 2)
TILE_U(9, 2)
TILE_U(10, 2)
TILE_U(11, 2)
TILE_U(12, 2)
TILE_U(13, 2)
TILE_U(14, 2)
#endif

/* Wide tiles for few rows: enough accumulators to hide the latency of an FMA. */
static const struct {
    int np;
    om_tile f;
} wide[UMAX + 1] = {
#if W == 8
    [1] = {4, om_tile_u1x4},
    [2] = {2, om_tile_u2x2},
#elif W == 16
    [1] = {8, om_tile_u1x8}, [2] = {4, om_tile_u2x4}, [3] = {4, om_tile_u3x4},
    [4] = {4, om_tile_u4x4}, [5] = {4, om_tile_u5x4}, [6] = {4, om_tile_u6x4},
#else
    [1] = {0, NULL}
#endif
};
static const om_tile narrow[] = {
    NULL,          om_tile_u1x1,  om_tile_u2x1, om_tile_u3x1,  om_tile_u4x1,
    om_tile_u5x1,  om_tile_u6x1,
#if W == 16
    om_tile_u7x1,  om_tile_u8x1,  om_tile_u9x1, om_tile_u10x1, om_tile_u11x1,
    om_tile_u12x1, om_tile_u13x1, om_tile_u14x1
#endif
};
#if W == 16
static const om_tile pairs[] = {NULL,          NULL,          NULL,          NULL,
                                NULL,          NULL,          NULL,          om_tile_u7x2,
                                om_tile_u8x2,  om_tile_u9x2,  om_tile_u10x2, om_tile_u11x2,
                                om_tile_u12x2, om_tile_u13x2, om_tile_u14x2};
#endif

/* ---- epilogue -------------------------------------------------------------------------------- */

static void finish_row(float *y, const float *c, int64_t c_cs, float alpha, float beta, int64_t n) {
    int64_t j = 0;
    vf al = vset1(alpha), be = vset1(beta);
    if (W > 1 && (!c || c_cs == 1 || c_cs == 0))
        for (; j + W <= n; j += W) {
            vf v = vload(y + j);
            if (alpha != 1.0f) v = vmul(al, v);
            if (c) {
                vf cv = c_cs ? vload(c + j) : vset1(*c);
                v     = vadd(v, beta == 1.0f ? cv : vmul(be, cv));
            }
            vstore(y + j, v);
        }
    for (; j < n; j++) {
        float v = y[j];
        if (alpha != 1.0f) v = alpha * v;
        if (c) {
            float cv = c[j * c_cs];
            v        = v + (beta == 1.0f ? cv : beta * cv);
        }
        y[j] = v;
    }
}

/* AR-2.2 on rows [i0, i1), columns [j0, j1) of y. */
static void finish(const om_gemm_args *g, int64_t i0, int64_t i1, int64_t j0, int64_t j1) {
    if (!g->c && g->alpha == 1.0f) return;
    for (int64_t i = i0; i < i1; i++)
        finish_row(g->y + i * g->y_rs + j0, g->c ? g->c + i * g->c_rs + j0 * g->c_cs : NULL,
                   g->c_cs, g->alpha, g->beta, j1 - j0);
}

/* y[rows, cols] += s */
static void add_block(float *y, int64_t y_rs, const float *s, int64_t s_rs, int64_t rows,
                      int64_t cols) {
    for (int64_t i = 0; i < rows; i++) {
        float *d       = y + i * y_rs;
        const float *p = s + i * s_rs;
        int64_t j      = 0;
        for (; j + W <= cols; j += W)
            vstore(d + j, vadd(vload(d + j), vload(p + j)));
        for (; j < cols; j++)
            d[j] = d[j] + p[j];
    }
}

/* ---- few rows -------------------------------------------------------------------------------- */

#define FEW        12                /* rows that go this way: b is read once, front to back */
#define FEW_PANELS (W == 16 ? 4 : 1) /* panels at once where there are that many rows */

/* One block of k for all row tiles of np panels. */
static void few_block(const om_gemm_args *g, const om_rows *rows, int np, int64_t k0,
                      const float *b, float *d, int64_t ldd, int into, int64_t cols) {
    int64_t kc     = omi_min64(g->k - k0, OM_GEMM_KB);
    const float *a = g->a + k0;
    for (int64_t t = 0; t < rows->tiles; t++) {
        int mr    = om_rows_height(rows, t);
        om_tile f = np > 1 ? wide[mr].f : narrow[mr];
        run_tile(f, mr, np, kc, a, g->a_rs, b, g->b_ps, d, ldd, into, cols);
        a += mr * g->a_rs;
        d += mr * ldd;
    }
}

static void few_rows(const om_gemm_args *g) {
    om_rows rows   = {.tiles = (g->m + UMAX - 1) / UMAX};
    int64_t panels = (g->n + 15) / 16;
    rows.base      = g->m / rows.tiles;
    rows.extra     = g->m % rows.tiles;
    int most       = wide[rows.base].np; /* both heights must have the wide tile */
    if (rows.extra && wide[rows.base + 1].np != most) most = 1;
    for (int64_t p = 0; p < panels;) {
        int np     = most > 1 && p + most <= panels ? most : 1;
        int64_t j0 = p * 16, cols = omi_min64(g->n - j0, np * 16);
        float group[FEW * FEW_PANELS * 16] __attribute__((aligned(64)));
        for (int64_t k0 = 0; k0 < g->k; k0 += OM_GEMM_KB) {
            int64_t in_group = k0 % OM_GEMM_SB;
            const float *b   = g->b + p * g->b_ps + k0 * 16;
            if (in_group == 0 && omi_cut_short()) return;
            if (k0 < OM_GEMM_SB) {
                few_block(g, &rows, np, k0, b, g->y + j0, g->y_rs, g->into || k0 > 0, cols);
                continue;
            }
            few_block(g, &rows, np, k0, b, group, np * 16, in_group > 0, np * 16);
            if (k0 + OM_GEMM_KB >= g->k || in_group + OM_GEMM_KB == OM_GEMM_SB)
                add_block(g->y + j0, g->y_rs, group, np * 16, g->m, cols);
        }
        finish(g, 0, g->m, j0, j0 + cols);
        p += np;
    }
}

/* ---- many rows ------------------------------------------------------------------------------- */

/* Most rows of a block: its packed a, MC x 256, stays in the second cache. */
#if W == 16
#    define MC 420
#else
#    define MC 288
#endif

/* Part of one k block: rows [i0, i0 + mc), columns of some panels. */
typedef struct block {
    const om_gemm_args *g;
    om_rows rows;
    int64_t i0, mc, k0, kc;
    bool packed;
} block;

static void pack_block(const block *b) {
    float *o = b->g->ws;
    for (int64_t t = 0, i = b->i0; t < b->rows.tiles; t++) {
        int mr = om_rows_height(&b->rows, t);
        pack_a_tile(o, b->g->a + i * b->g->a_rs + b->k0 * b->g->a_cs, b->g->a_rs, b->g->a_cs, mr,
                    b->kc);
        o += mr * b->kc;
        i += mr;
    }
}

/* Touches this tile's share of the next panels, spread over the tiles of this one. */
OM_INLINE void prefetch_share(const float *next, int64_t b_ps, int64_t kc, int np, int64_t tile,
                              int64_t tiles) {
    int64_t lines = kc * np, share = (lines + tiles - 1) / tiles;
    int64_t end = omi_min64((tile + 1) * share, lines);
    for (int64_t q = tile * share; q < end; q++)
        __builtin_prefetch(next + (q < kc ? q * 16 : b_ps + (q - kc) * 16), 0, 2);
}

/* d[row of block][column - j0] (+)= the chains of this k block; cols columns from panel p0. */
static void run_block(const block *b, int64_t p0, int64_t cols, float *d, int64_t ldd, int into) {
    const om_gemm_args *g = b->g;
    int64_t panels        = (cols + 15) / 16;
    for (int64_t p = 0; p < panels;) {
        int np            = NPM == 2 && p + 2 <= panels ? 2 : 1;
        const float *bp   = g->b + (p0 + p) * g->b_ps + b->k0 * 16;
        const float *next = p + np < panels ? bp + np * g->b_ps : NULL;
        const float *o    = g->ws;
        for (int64_t t = 0, i = 0; t < b->rows.tiles; t++) {
            int mr   = om_rows_height(&b->rows, t);
            float *c = d + i * ldd + p * 16;
            om_tile f;
            if (next) prefetch_share(next, g->b_ps, b->kc, np, t, b->rows.tiles);
            if (b->packed) {
                f = tiles_packed[np - 1][mr];
                run_tile(f, mr, np, b->kc, o, 1, bp, g->b_ps, c, ldd, into, cols - p * 16);
            } else {
                f = narrow[mr];
#if W == 16
                if (np == 2) f = pairs[mr];
#endif
                run_tile(f, mr, np, b->kc, g->a + (b->i0 + i) * g->a_rs + b->k0, g->a_rs, bp,
                         g->b_ps, c, ldd, into, cols - p * 16);
            }
            o += mr * b->kc;
            i += mr;
        }
        p += np;
    }
}

static void many_rows(const om_gemm_args *g) {
    int64_t blocks = (g->m + MC - 1) / MC; /* of nearly equal height: each streams all of b */
    int64_t height = ((g->m + blocks - 1) / blocks + MRM - 1) / MRM * MRM;
    bool grouped   = g->k > OM_GEMM_SB;
    int64_t width  = grouped ? OM_GEMM_COLS : g->n;
    float *group   = g->ws + omi_min64(g->m, OM_GEMM_ROWS) * OM_GEMM_KB + 64;
    for (int64_t i0 = 0; i0 < g->m; i0 += height) {
        block b  = {.g = g, .i0 = i0, .mc = omi_min64(g->m - i0, height)};
        b.rows   = om_rows_of(b.mc);
        b.packed = !(g->a_cs == 1 && g->n <= 128 && (W < 16 || b.rows.base >= 7));
        for (int64_t j0 = 0; j0 < g->n; j0 += width) {
            int64_t cols = omi_min64(g->n - j0, width);
            float *y     = g->y + i0 * g->y_rs + j0;
            for (b.k0 = 0; b.k0 < g->k; b.k0 += OM_GEMM_KB) {
                int64_t in_group = b.k0 % OM_GEMM_SB;
                b.kc             = omi_min64(g->k - b.k0, OM_GEMM_KB);
                if (omi_cut_short()) return;
                if (b.packed) pack_block(&b);
                if (b.k0 < OM_GEMM_SB) {
                    run_block(&b, j0 / 16, cols, y, g->y_rs, g->into || b.k0 > 0);
                    continue;
                }
                run_block(&b, j0 / 16, cols, group, OM_GEMM_COLS, in_group > 0);
                if (b.k0 + b.kc == g->k || in_group + OM_GEMM_KB == OM_GEMM_SB)
                    add_block(y, g->y_rs, group, OM_GEMM_COLS, b.mc, cols);
            }
            finish(g, i0, i0 + b.mc, j0, j0 + cols);
        }
    }
}

/* ---- entries --------------------------------------------------------------------------------- */

void FN(gemm_f32)(const om_gemm_args *g) {
    OM_COUNT_CALL();
    if (g->k == 0) {
        if (!g->into)
            for (int64_t i = 0; i < g->m; i++)
                for (int64_t j = 0; j < g->n; j++)
                    g->y[i * g->y_rs + j] = 0.0f;
        finish(g, 0, g->m, 0, g->n);
    } else if (g->m <= FEW && g->a_cs == 1) {
        few_rows(g);
    } else {
        many_rows(g);
    }
}

/* One tile over all of k: rows [i, i + mr), columns [j, j + cols) of y. */
static void direct_block(const om_gemm_args *g, om_direct d, om_direct_tile f, int64_t i, int mr,
                         int64_t j, int64_t cols, int64_t width) {
    float part[DVECS * DW_COLS] __attribute__((aligned(64)));
    float group[DVECS * DW_COLS] __attribute__((aligned(64)));
    float *y = g->y + i * g->y_rs + j;
    for (int64_t k0 = 0; k0 < g->k; k0 += OM_GEMM_KB) {
        int64_t in_group = k0 % OM_GEMM_SB;
        if (in_group == 0 && k0 && omi_cut_short()) return;
        d.kc = omi_min64(g->k - k0, OM_GEMM_KB);
        d.a  = g->a + i * g->a_rs + k0 * g->a_cs;
        d.b  = g->b + j * g->b_cs + k0 * g->b_rs;
        f(&d, part);
        if (k0 == 0) {
            for (int r = 0; r < mr; r++)
                memcpy(y + r * g->y_rs, part + r * width, (size_t)cols * sizeof *y);
        } else if (k0 < OM_GEMM_SB) {
            add_block(y, g->y_rs, part, width, mr, cols);
        } else {
            if (in_group == 0)
                memcpy(group, part, sizeof *part * (size_t)(mr * width));
            else
                add_block(group, width, part, width, mr, width);
            if (k0 + d.kc == g->k || in_group + OM_GEMM_KB == OM_GEMM_SB)
                add_block(y, g->y_rs, group, width, mr, cols);
        }
    }
}

void FN(gemm_direct_f32)(const om_gemm_args *g) {
    OM_COUNT_CALL();
    om_direct d = {.ars = g->a_rs, .acs = g->a_cs, .brs = g->b_rs, .bcs = g->b_cs};
    for (int64_t i = 0; i < g->m && g->k > 0; i += DROWS) {
        int mr = (int)omi_min64(DROWS, g->m - i);
        for (int64_t j = 0; j < g->n;) {
            int nv;
            om_direct_tile f = direct_choose(&d, mr, g->n - j, &nv);
            int64_t cols     = omi_min64(nv * DW_COLS, g->n - j);
            d.lanes          = (int)(cols - (nv - 1) * DW_COLS);
            direct_block(g, d, f, i, mr, j, cols, nv * DW_COLS);
            j += cols;
        }
    }
    for (int64_t i = 0; i < g->m && g->k == 0; i++)
        memset(g->y + i * g->y_rs, 0, (size_t)g->n * sizeof *g->y);
    finish(g, 0, g->m, 0, g->n);
}

void FN(gemm_combine_f32)(const om_gemm_args *g, const float *s, int64_t slot, int64_t slots) {
    OM_COUNT_CALL();
    for (int64_t i = 0; i < g->m; i++)
        memcpy(g->y + i * g->y_rs, s + i * g->n, (size_t)g->n * sizeof(float));
    for (int64_t q = 1; q < slots; q++)
        add_block(g->y, g->y_rs, s + q * slot, g->n, g->m, g->n);
    finish(g, 0, g->m, 0, g->n);
}

#define PACK_K 8192 /* rows of a panel between two looks at the cancel flag */

void FN(pack_b16)(float *dst, const float *b, int64_t rs, int64_t cs, int64_t k, int64_t n,
                  int64_t p0, int64_t p1) {
    OM_COUNT_CALL();
    for (int64_t p = p0; p < p1; p++)
        for (int64_t k0 = 0; k0 < k; k0 += PACK_K) {
            if (omi_cut_short()) return;
            pack_b_panel(dst + (p * k + k0) * 16, b + p * 16 * cs + k0 * rs, rs, cs,
                         omi_min64(k - k0, PACK_K), (int)omi_min64(n - p * 16, 16));
        }
}
