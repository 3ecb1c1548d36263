/*
 * matmul_plan.c -- how a matrix product is computed: decided once from shapes and strides.
 *
 * The views become (items, m, n, k) with as many batch axes as possible folded into m. Few rows
 * read b in place, because packing b costs as much as a row or two of the product; one column is
 * the product of the transposes, which has one row. Then one of the ways of om_matmul_way.
 */
#include "base/checked.h"
#include "compute/matmul.h"
#include "compute/split.h"

/* Takes the innermost batch axis into m where rows go on with one stride. */
static bool fold_axis(om_matmul_plan *p) {
    int i = p->axes - 1;
    if (i < 0 || p->sb[i] != 0) return false;
    if (p->m != 1 && (p->sa[i] != p->m * p->a_rs || (p->has_c && p->sc[i] != p->m * p->c_rs)))
        return false;
    if (p->m == 1) {
        p->a_rs = p->sa[i];
        p->c_rs = p->sc[i];
    }
    p->m *= p->size[i];
    p->axes = i;
    return true;
}

static void shape_of(om_matmul_plan *p, const om_matmul_args *a) {
    int r    = a->y.rank;
    p->m     = a->y.shape[r - 2];
    p->n     = a->y.shape[r - 1];
    p->k     = a->a.shape[r - 1];
    p->a_rs  = a->a.strides[r - 2];
    p->a_cs  = a->a.strides[r - 1];
    p->b_rs  = a->b.strides[r - 2];
    p->b_cs  = a->b.strides[r - 1];
    p->has_c = a->has_c;
    if (p->has_c) {
        p->c_rs = a->c.strides[r - 2];
        p->c_cs = a->c.strides[r - 1];
    }
    for (int i = 0; i < r - 2; i++) {
        if (a->y.shape[i] == 1) continue;
        p->size[p->axes] = a->y.shape[i];
        p->sa[p->axes]   = a->a.strides[i];
        p->sb[p->axes]   = a->b.strides[i];
        p->sc[p->axes++] = p->has_c ? a->c.strides[i] : 0;
    }
}

/* One row or column has no use for its stride; canonical ones reach the fast paths. */
static void canonical(om_matmul_plan *p) {
    if (p->k == 1) p->a_cs = 1, p->b_rs = 1;
    if (p->m == 1) p->a_rs = p->k;
    if (p->n == 1 && p->b_rs != 1) p->b_cs = 1;
}

static void swap64(int64_t *a, int64_t *b) {
    int64_t t = *a;
    *a        = *b;
    *b        = t;
}

/* y' = b' a': the same products in the same chains. One column of y is one row of y'. */
static void transpose_plan(om_matmul_plan *p) {
    swap64(&p->m, &p->n);
    swap64(&p->a_rs, &p->b_cs);
    swap64(&p->a_cs, &p->b_rs);
    swap64(&p->c_rs, &p->c_cs);
    for (int i = 0; i < p->axes; i++)
        swap64(&p->sa[i], &p->sb[i]);
    p->swapped = true;
}

#define DIRECT_ROWS   4
#define DIRECT_ROWS_T 2

/* Rows of the product up to which b is read in place. Whole vectors of b lie as the tile wants them
 * when its columns are neighbours; when its rows are, they go through registers for each tile. */
static int64_t most_in_place(const om_matmul_plan *p) {
    return p->b_cs == 1 ? DIRECT_ROWS : p->b_rs == 1 ? DIRECT_ROWS_T : 1;
}

static void grid_of(om_matmul_plan *p, int workers) {
    int64_t want = p->m * p->n < OM_SPLIT_WORK / omi_max64(p->k, 1) ? 1 : workers;
    p->gm        = omi_max64(1, omi_min64(want, p->m / 24));
    int64_t gn   = omi_max64(1, omi_min64(omi_ceil_div(want, p->gm), omi_ceil_div(p->n, 16) / 2));
    p->rows      = omi_max64((omi_ceil_div(p->m, p->gm) + 3) / 4 * 4, 4);
    p->cols      = omi_max64((omi_ceil_div(p->n, gn) + 31) / 32 * 32, 32);
    p->gm        = omi_ceil_div(p->m, p->rows);
    gn           = omi_ceil_div(p->n, p->cols);
    if (want > 1 && p->k > OM_GEMM_SB && p->gm * gn < want && p->m * p->n <= 1 << 18) {
        p->slots = omi_ceil_div(p->k, OM_GEMM_SB);
        p->rows  = p->m;
        p->cols  = p->n;
    }
    p->way     = p->slots ? OM_MM_SLOTS : OM_MM_GRID;
    p->workers = want > 1 ? workers : 1;
}

/* A b that is packed for this call alone is packed some columns at a time: the memory stays small
 * and what was packed is still in cache when it is read. a is read once for each band, so a band is
 * not narrower than BAND_COLUMNS. */
#define BAND_FLOATS  (128 * 1024)
#define BAND_COLUMNS 256

static void band_of(om_matmul_plan *p) {
    int64_t cols = omi_max64(BAND_FLOATS / omi_max64(p->k, 1) / 32 * 32, BAND_COLUMNS);
    p->band      = p->n;
    if (p->b_form != OM_MM_B_SHARED || p->way == OM_MM_SLOTS || cols >= p->n) return;
    int64_t bands = omi_ceil_div(p->n, cols); // of equal width
    p->band       = omi_ceil_div(omi_ceil_div(p->n, bands), 32) * 32;
    p->cols       = omi_min64(p->cols, p->band);
    p->shared     = omi_panel16_bytes(p->k, p->band) / sizeof(float);
}

static void plan_f32(om_matmul_plan *p, int workers) {
    bool by_item = p->items >= workers || p->m * p->n * p->k < OM_SPLIT_WORK;
    grid_of(p, by_item ? 1 : workers);
    if (by_item) {
        p->way     = OM_MM_ITEMS;
        p->workers = p->items * p->m * p->n * p->k < OM_SPLIT_WORK ? 1 : workers;
    }
    size_t panels = omi_panel16_bytes(p->k, p->n) / sizeof(float);
    if (p->b_packed)
        p->b_form = OM_MM_B_PACKED;
    else if (p->m <= most_in_place(p))
        p->b_form = OM_MM_B_PLACE;
    else if (by_item && !p->one_b)
        p->b_form = OM_MM_B_OWN, p->own_b = panels;
    else
        p->b_form = OM_MM_B_SHARED, p->shared = panels;
    band_of(p);
    int64_t k    = p->slots ? omi_min64(p->k, OM_GEMM_SB) : p->k;
    p->slot_area = (size_t)omi_line_floats(p->slots * p->m * p->n);
    p->own       = p->own_b;
    if (p->b_form != OM_MM_B_PLACE)
        p->own += (size_t)omi_line_floats(omi_gemm_ws_floats(p->rows, k));
}

static void plan_other(om_matmul_plan *p, int workers) {
    bool by_item = p->items >= workers || p->m * p->n * p->k < OM_SPLIT_WORK;
    p->way       = OM_MM_OTHER;
    p->rows      = omi_max64(by_item ? p->m : omi_ceil_div(p->m, workers), 1);
    p->gm        = omi_ceil_div(p->m, p->rows);
    p->own       = OM_GEMMX_WS / sizeof(float);
    p->workers   = workers;
}

bool omi_matmul_supports(om_dtype t) {
    return t == OM_F32 || t == OM_F64 || t == OM_I64 || t == OM_I32;
}

/* items * m * n * k within the limit; each factor at least 1, so partial products are too. */
static bool work_fits(const om_matmul_plan *p) {
    int64_t w = omi_max64(p->k, 1);
    return omi_mul_i64(w, p->m, &w) && omi_mul_i64(w, p->n, &w) && omi_mul_i64(w, p->items, &w) &&
           w <= OM_MATMUL_WORK;
}

bool omi_matmul_plan(const om_matmul_args *a, int workers, om_matmul_plan *p) {
    *p = (om_matmul_plan){.kern     = omi_kernels(),
                          .dtype    = a->y.dtype,
                          .alpha    = a->alpha,
                          .beta     = a->beta,
                          .b_packed = a->b_packed,
                          .items    = 1,
                          .one_b    = true};
    shape_of(p, a);
    bool none = p->m == 0 || p->n == 0;
    for (int i = 0; i < p->axes; i++)
        none = none || p->size[i] == 0;
    if (none) return true; // OM_MM_NOTHING
    while (fold_axis(p)) {
    }
    for (int i = 0; i < p->axes; i++) { // y's elements: a tensor has them
        p->items *= p->size[i];
        p->one_b &= p->sb[i] == 0;
    }
    if (!work_fits(p)) return false;
    canonical(p);
    if (p->dtype != OM_F32) {
        plan_other(p, workers);
    } else {
        if (p->n == 1 && p->m > 1 && !p->b_packed) {
            transpose_plan(p);
            p->one_b = true;
            for (int i = 0; i < p->axes; i++)
                p->one_b &= p->sb[i] == 0;
            canonical(p);
        }
        plan_f32(p, workers);
    }
    p->ws_bytes = (p->shared + p->slot_area + p->own * (size_t)p->workers) * sizeof(float);
    if (p->ws_bytes) p->ws_bytes += OM_ALIGN;
    return true;
}
