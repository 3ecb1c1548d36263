/*
 * norm.c -- LayerNormalization over rows and its gradients (AR-4.3, AR-11.2).
 *
 * dx is row by row. dw and db are sums over rows, so they go down columns in tiles, a block of
 * 4,096 rows at a time; the rows' statistics of that block are kept in the workspace, and computed
 * again only for rows of more than a thousand elements.
 */
#include "compute/norm.h"

#include <math.h>

#include "compute/lanes.h"
#include "compute/walk.h"
#include "kernels/table.h"

#define LONG_ROW (1 << 20) /* elements of a row between two looks at the cancel flag */

typedef struct row_stats {
    double mean, rs;
} row_stats;

static row_stats stats_of(const om_kernels *k, int64_t n, const float *x, float eps) {
    row_stats s;
    s.mean = k->sum_f32(n, x) / (double)n;
    s.rs   = 1.0 / sqrt(k->sum_dev_f32(n, x, s.mean) / (double)n + (double)eps);
    return s;
}

static void layernorm_rows(void *arg, int64_t begin, int64_t end, int worker) {
    (void)worker;
    const om_layernorm_args *a = arg;
    const om_kernels *k        = omi_kernels();
    for (int64_t r = begin; r < end; r++) {
        const float *x = a->x + r * a->n;
        row_stats s    = stats_of(k, a->n, x, a->eps);
        for (int64_t c = 0; c < a->n; c += LONG_ROW) { // one piece nearly always
            if (a->n > LONG_ROW && omi_cut_short()) return;
            k->normalize_f32(omi_min64(LONG_ROW, a->n - c), x + c, s.mean, s.rs,
                             a->w ? a->w + c : NULL, a->b ? a->b + c : NULL, 1,
                             a->y + r * a->n + c);
        }
    }
}

void omi_layernorm(const om_layernorm_args *a) {
    om_layernorm_args copy = *a;
    if (a->n == 0) return;
    omi_split(a->rows, omi_max64(1, OMI_GRAIN / 2 / a->n), layernorm_rows, &copy);
}

/* ---- gradients ------------------------------------------------------------------------------ */

#define WIDE 1024 /* columns whose totals are kept at once */

typedef struct ln_job {
    const om_layernorm_grad_args *a;
    int64_t r0, rows; /* the block of rows */
    int64_t c0;       /* first column of the totals */
    bool dx;
    double *mean, *rs; /* [rows of a block] */
    double *tw, *tb;   /* [WIDE] */
    double *lanes;     /* per worker: two of [OM_SUM_LANES][OM_COL_TILE] */
} ln_job;

#define LANE_DOUBLES (2 * OM_SUM_LANES * OM_COL_TILE)

static int64_t block_rows(const om_layernorm_grad_args *a) {
    return omi_min64(a->rows, OM_SUM_BLOCK);
}

size_t omi_layernorm_grad_workspace(const om_layernorm_grad_args *a, int workers) {
    return (size_t)(2 * block_rows(a) + 2 * WIDE + LANE_DOUBLES * (int64_t)workers) *
           sizeof(double);
}

static void ln_grad_rows(void *arg, int64_t begin, int64_t end, int worker) {
    (void)worker;
    ln_job *j                       = arg;
    const om_layernorm_grad_args *a = j->a;
    const om_kernels *k             = omi_kernels();
    for (int64_t r = begin; r < end; r++) {
        int64_t at     = (j->r0 + r) * a->n;
        const float *x = a->x + at, *g = a->g + at;
        row_stats s = stats_of(k, a->n, x, a->eps);
        j->mean[r]  = s.mean;
        j->rs[r]    = s.rs;
        if (!j->dx) continue;
        double sums[2];
        k->norm_grad_sums_f32(a->n, x, g, a->w, 1, s.mean, s.rs, sums);
        k->norm_grad_dx_f32(a->n, x, g, a->w, 1, s.mean, s.rs, sums[0] / (double)a->n,
                            sums[1] / (double)a->n, a->dx + at);
    }
}

/* Units are tiles of columns from c0 on. */
static void ln_grad_cols(void *arg, int64_t begin, int64_t end, int worker) {
    ln_job *j                       = arg;
    const om_layernorm_grad_args *a = j->a;
    double *aw = j->lanes + LANE_DOUBLES * (int64_t)worker, *ab = aw + LANE_DOUBLES / 2;
    memset(aw, 0, LANE_DOUBLES * sizeof *aw);
    for (int64_t u = begin; u < end; u++) {
        int64_t c = j->c0 + u * OM_COL_TILE, cols = omi_min64(OM_COL_TILE, a->n - c);
        int64_t at = j->r0 * a->n + c;
        omi_kernels()->norm_grad_cols_f32(j->rows, cols, a->x + at, a->g + at, a->n, j->mean, j->rs,
                                          0, aw, ab);
        omi_lanes_join(aw, j->tw + u * OM_COL_TILE, cols);
        omi_lanes_join(ab, j->tb + u * OM_COL_TILE, cols);
    }
}

static void ln_block(ln_job *j, int64_t cols) {
    const om_layernorm_grad_args *a = j->a;
    omi_split(j->rows, omi_max64(1, OMI_GRAIN / 4 / a->n), ln_grad_rows, j);
    if (cols)
        omi_split(omi_ceil_div(cols, OM_COL_TILE),
                  omi_max64(1, OMI_GRAIN / (2 * OM_COL_TILE * j->rows)), ln_grad_cols, j);
}

void omi_layernorm_grad(const om_layernorm_grad_args *a, void *ws) {
    ln_job j  = {.a = a, .mean = ws};
    bool sums = a->dw || a->db;
    j.rs      = j.mean + block_rows(a);
    j.tw      = j.rs + block_rows(a);
    j.tb      = j.tw + WIDE;
    j.lanes   = j.tb + WIDE;
    for (int64_t c0 = 0; c0 < (sums ? a->n : 1); c0 += WIDE) {
        int64_t cols = sums ? omi_min64(WIDE, a->n - c0) : 0;
        j.c0         = c0;
        j.dx         = a->dx && c0 == 0;
        memset(j.tw, 0, 2 * WIDE * sizeof *j.tw);
        for (j.r0 = 0; j.r0 < a->rows && a->n > 0; j.r0 += OM_SUM_BLOCK) {
            j.rows = omi_min64(OM_SUM_BLOCK, a->rows - j.r0);
            ln_block(&j, cols);
        }
        for (int64_t c = 0; c < cols; c++) {
            if (a->dw) a->dw[c0 + c] = (float)j.tw[c];
            if (a->db) a->db[c0 + c] = (float)j.tb[c];
        }
    }
}
