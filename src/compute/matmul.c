/*
 * matmul.c -- matrix products by AR-2: batches, threads, workspace around the gemm kernels.
 *
 * plan_of turns the views into (items, m, n, k) with as many batch axes as possible folded into m,
 * and picks one of three ways to share the work: whole items; a grid of row and column blocks of
 * one item after another; or, for few outputs and a long k, the 4,096-groups of AR-2.1 into slots
 * that one thread adds in order. The workspace function and the run derive everything from the same
 * plan.
 */
#include "compute/matmul.h"

#include "compute/pack.h"
#include "compute/split.h"
#include "kernels/table.h"

/* ---- panel16 --------------------------------------------------------------------------------- */

#define PACK_PANELS 8 /* panels per chunk of a packing job */

typedef struct pack_job {
    float *dst;
    const float *b;
    int64_t rs, cs, k, n;
} pack_job;

static int64_t panels_of(int64_t n) {
    return (n + 15) / 16;
}

size_t omi_panel16_bytes(int64_t k, int64_t n) {
    return (size_t)omi_max64(panels_of(n) * k * 16, 16) * sizeof(float);
}

static void pack_chunk(void *arg, int64_t chunk, int worker) {
    (void)worker;
    const pack_job *j = arg;
    int64_t p0 = chunk * PACK_PANELS, p1 = omi_min64(p0 + PACK_PANELS, panels_of(j->n));
    omi_kernels()->pack_b16(j->dst, j->b, j->rs, j->cs, j->k, j->n, p0, p1);
}

static void pack_all(const pack_job *job, int workers) {
    pack_job j     = *job;
    int64_t chunks = omi_ceil_div(panels_of(j.n), PACK_PANELS);
    if (j.k * j.n < OM_SPLIT_WORK / 4) workers = 1;
    omi_parallel_at_most(workers, chunks, pack_chunk, &j);
}

void omi_panel16_pack(float *dst, const float *b, int64_t rs, int64_t cs, int64_t k, int64_t n) {
    pack_all(&(pack_job){dst, b, rs, cs, k, n}, omi_workers());
}

static void pack_panel16(const void *ctx, float *dst) {
    const pack_job *j = ctx;
    omi_panel16_pack(dst, j->b, j->rs, j->cs, j->k, j->n);
}

const float *omi_panel16_cached(om_buffer *buf, int64_t offset, int64_t rs, int64_t cs, int64_t k,
                                int64_t n) {
    pack_job j = {.b = (const float *)buf->data + offset, .rs = rs, .cs = cs, .k = k, .n = n};
    return omi_pack_cached(buf, OM_PACK_PANEL16, (int64_t[]){offset, rs, cs, k, n}, 5,
                           omi_panel16_bytes(k, n), pack_panel16, &j);
}

/* ---- the plan -------------------------------------------------------------------------------- */

typedef struct mm_plan {
    int64_t m, n, k;
    int64_t a_rs, a_cs, b_rs, b_cs, c_rs, c_cs;
    int axes; /* batch axes left, outermost first                     */
    int64_t size[OM_MAX_RANK], sa[OM_MAX_RANK], sb[OM_MAX_RANK], sc[OM_MAX_RANK];
    int64_t items;
    bool one_b;       /* every item has the same b                            */
    bool by_item;     /* a chunk is a whole item; else a block of one item    */
    int64_t gm, gn;   /* grid of an item                                      */
    int64_t slots;    /* > 0: groups of k into slots                          */
    int64_t rows;     /* rows per chunk (grid), a multiple of 4               */
    int64_t cols;     /* columns per chunk, a multiple of 32                  */
    size_t shared;    /* floats of shared packed b                            */
    size_t own;       /* floats per worker: packed b of an item, then a tiles */
    size_t own_b;     /* floats of it that hold packed b                      */
    size_t slot_area; /* floats of all slots                                  */
} mm_plan;

/* Takes the innermost batch axis into m where rows go on with one stride. */
static bool fold_axis(mm_plan *p, bool has_c) {
    int i = p->axes - 1;
    if (i < 0 || p->sb[i] != 0) return false;
    if (p->m != 1 && (p->sa[i] != p->m * p->a_rs || (has_c && p->sc[i] != p->m * p->c_rs)))
        return false;
    if (p->m == 1) {
        p->a_rs = p->sa[i];
        p->c_rs = p->sc[i];
    }
    p->m *= p->size[i];
    p->axes = i;
    return true;
}

static void shape_of(mm_plan *p, const om_matmul_args *a) {
    int r      = a->y.rank;
    p->m       = a->y.shape[r - 2];
    p->n       = a->y.shape[r - 1];
    p->k       = a->a.shape[r - 1];
    p->a_rs    = a->a.strides[r - 2];
    p->a_cs    = a->a.strides[r - 1];
    p->b_rs    = a->b.strides[r - 2];
    p->b_cs    = a->b.strides[r - 1];
    bool has_c = a->c.data != NULL;
    if (has_c) {
        p->c_rs = a->c.strides[r - 2];
        p->c_cs = a->c.strides[r - 1];
    }
    for (int i = 0; i < r - 2; i++) {
        if (a->y.shape[i] == 1) continue;
        p->size[p->axes] = a->y.shape[i];
        p->sa[p->axes]   = a->a.strides[i];
        p->sb[p->axes]   = a->b.strides[i];
        p->sc[p->axes++] = has_c ? a->c.strides[i] : 0;
    }
    while (fold_axis(p, has_c)) {
    }
    p->items = 1;
    p->one_b = true;
    for (int i = 0; i < p->axes; i++) {
        p->items *= p->size[i];
        p->one_b &= p->sb[i] == 0;
    }
    /* one row or column has no use for its stride; canonical ones reach the fast paths */
    if (p->k == 1) p->a_cs = 1, p->b_rs = 1;
    if (p->m == 1) p->a_rs = p->k;
    if (p->n == 1 && p->b_rs != 1) p->b_cs = 1;
}

static void grid_of(mm_plan *p, int workers) {
    int64_t want = p->m * p->n < OM_SPLIT_WORK / omi_max64(p->k, 1) ? 1 : workers;
    p->gm        = omi_max64(1, omi_min64(want, p->m / 24));
    p->gn        = omi_max64(1, omi_min64(omi_ceil_div(want, p->gm), panels_of(p->n) / 2));
    p->rows      = omi_max64((omi_ceil_div(p->m, p->gm) + 3) / 4 * 4, 4);
    p->cols      = omi_max64((omi_ceil_div(p->n, p->gn) + 31) / 32 * 32, 32);
    p->gm        = omi_ceil_div(p->m, p->rows);
    p->gn        = omi_ceil_div(p->n, p->cols);
    if (want > 1 && p->k > OM_GEMM_SB && p->gm * p->gn < want && p->m * p->n <= 1 << 18) {
        p->slots = omi_ceil_div(p->k, OM_GEMM_SB);
        p->rows  = p->m;
        p->cols  = p->n;
    }
}

static mm_plan plan_of(const om_matmul_args *a, int workers) {
    mm_plan p = {0};
    shape_of(&p, a);
    p.by_item = p.items >= workers || p.m * p.n * p.k < OM_SPLIT_WORK;
    if (a->y.dtype != OM_F32) {
        p.by_item = p.items >= workers;
        p.rows = omi_max64(p.m * p.n * p.k < OM_SPLIT_WORK ? p.m : omi_ceil_div(p.m, workers), 1);
        p.gm   = omi_ceil_div(p.m, p.rows);
        p.own  = OM_GEMMX_WS / sizeof(float);
        return p;
    }
    size_t panels = omi_panel16_bytes(p.k, p.n) / sizeof(float);
    grid_of(&p, p.by_item ? 1 : workers);
    if (!a->b_packed) {
        if (p.by_item && !p.one_b)
            p.own_b = panels;
        else
            p.shared = panels;
    }
    int64_t k   = p.slots ? omi_min64(p.k, OM_GEMM_SB) : p.k;
    p.slot_area = (size_t)omi_line_floats(p.slots * p.m * p.n);
    p.own       = p.own_b + (size_t)omi_line_floats(omi_gemm_ws_floats(p.rows, k));
    return p;
}

bool omi_matmul_supports(om_dtype t) {
    return t == OM_F32 || t == OM_F64 || t == OM_I64 || t == OM_I32;
}

size_t omi_matmul_workspace(const om_matmul_args *m, int workers) {
    mm_plan p = plan_of(m, workers);
    return (p.shared + p.slot_area + p.own * (size_t)workers) * sizeof(float) + OM_ALIGN;
}

/* ---- running --------------------------------------------------------------------------------- */

typedef struct mm_run {
    const om_matmul_args *args;
    const mm_plan *p;
    const om_kernels *kern;
    float *shared, *slot, *own;
    int64_t a, b, c, y; /* element offsets of the item at work (grid) */
} mm_run;

static void item_offsets(const mm_plan *p, int64_t item, int64_t *a, int64_t *b, int64_t *c) {
    *a = *b = *c = 0;
    for (int i = p->axes - 1; i >= 0; i--) {
        int64_t x = item % p->size[i];
        item /= p->size[i];
        *a += x * p->sa[i];
        *b += x * p->sb[i];
        *c += x * p->sc[i];
    }
}

/* The whole of one item as kernel arguments. */
static om_gemm_args item_args(const mm_run *r, int64_t a, int64_t c, int64_t y,
                              const float *packed) {
    const mm_plan *p = r->p;
    om_gemm_args g   = {.m = p->m, .n = p->n, .k = p->k, .a_rs = p->a_rs, .a_cs = p->a_cs};
    g.a              = (const float *)r->args->a.data + a;
    g.b              = packed;
    g.b_ps           = p->k * 16;
    g.y              = (float *)r->args->y.data + y;
    g.y_rs           = p->n;
    g.alpha          = r->args->alpha;
    g.beta           = r->args->beta;
    if (r->args->c.data) {
        g.c    = (const float *)r->args->c.data + c;
        g.c_rs = p->c_rs;
        g.c_cs = p->c_cs;
    }
    return g;
}

static void run_item(void *arg, int64_t item, int worker) {
    const mm_run *r  = arg;
    const mm_plan *p = r->p;
    int64_t a, b, c;
    item_offsets(p, item, &a, &b, &c);
    float *own          = r->own + (size_t)worker * p->own;
    const float *packed = r->args->b_packed ? r->args->b_packed : r->shared;
    if (p->own_b) {
        r->kern->pack_b16(own, (const float *)r->args->b.data + b, p->b_rs, p->b_cs, p->k, p->n, 0,
                          panels_of(p->n));
        packed = own;
    }
    om_gemm_args g = item_args(r, a, c, item * p->m * p->n, packed);
    g.ws           = own + p->own_b;
    r->kern->gemm_f32(&g);
}

static void run_block_of_grid(void *arg, int64_t chunk, int worker) {
    const mm_run *r  = arg;
    const mm_plan *p = r->p;
    int64_t i0 = chunk / p->gn * p->rows, j0 = chunk % p->gn * p->cols;
    om_gemm_args g =
        item_args(r, r->a, r->c, r->y, r->args->b_packed ? r->args->b_packed : r->shared);
    g.m = omi_min64(p->m - i0, p->rows);
    g.n = omi_min64(p->n - j0, p->cols);
    g.a += i0 * p->a_rs;
    g.b += j0 / 16 * g.b_ps;
    g.y += i0 * p->n + j0;
    if (g.c) g.c += i0 * g.c_rs + j0 * g.c_cs;
    g.ws = r->own + (size_t)worker * p->own;
    r->kern->gemm_f32(&g);
}

static void run_group(void *arg, int64_t group, int worker) {
    const mm_run *r  = arg;
    const mm_plan *p = r->p;
    int64_t k        = group * OM_GEMM_SB;
    om_gemm_args g =
        item_args(r, r->a, r->c, r->y, r->args->b_packed ? r->args->b_packed : r->shared);
    g.k = omi_min64(p->k - k, OM_GEMM_SB);
    g.a += k * p->a_cs;
    g.b += k * 16;
    g.c     = NULL;
    g.alpha = 1.0f;
    g.y     = r->slot + group * p->m * p->n;
    g.ws    = r->own + (size_t)worker * p->own;
    r->kern->gemm_f32(&g);
}

static void run_grid(mm_run *r, int workers) {
    const mm_plan *p = r->p;
    for (int64_t item = 0; item < p->items; item++) {
        item_offsets(p, item, &r->a, &r->b, &r->c);
        r->y = item * p->m * p->n;
        if (r->shared && (item == 0 || !p->one_b))
            pack_all(&(pack_job){r->shared, (const float *)r->args->b.data + r->b, p->b_rs, p->b_cs,
                                 p->k, p->n},
                     workers);
        if (p->slots) {
            omi_parallel_at_most(workers, p->slots, run_group, r);
            om_gemm_args g = item_args(r, r->a, r->c, r->y, NULL);
            r->kern->gemm_combine_f32(&g, r->slot, p->m * p->n, p->slots);
        } else {
            omi_parallel_at_most(workers, p->gm * p->gn, run_block_of_grid, r);
        }
    }
}

/* Rows of one item in another type. */
static void run_other(void *arg, int64_t chunk, int worker) {
    const mm_run *r         = arg;
    const mm_plan *p        = r->p;
    const om_matmul_args *m = r->args;
    size_t e                = om_dtype_size(m->y.dtype);
    int64_t item = chunk / p->gm, i0 = chunk % p->gm * p->rows, a, b, c;
    item_offsets(p, item, &a, &b, &c);
    om_gemmx_args g = {.m = omi_min64(p->m - i0, p->rows), .n = p->n, .k = p->k};
    g.a             = (const char *)m->a.data + (a + i0 * p->a_rs) * (int64_t)e;
    g.b             = (const char *)m->b.data + b * (int64_t)e;
    g.y             = (char *)m->y.data + (size_t)((item * p->m + i0) * p->n) * e;
    if (m->c.data) g.c = (const char *)m->c.data + (c + i0 * p->c_rs) * (int64_t)e;
    g.a_rs = p->a_rs, g.a_cs = p->a_cs;
    g.b_rs = p->b_rs, g.b_cs = p->b_cs;
    g.c_rs = p->c_rs, g.c_cs = p->c_cs;
    g.y_rs  = p->n;
    g.alpha = m->alpha;
    g.beta  = m->beta;
    g.ws    = r->own + (size_t)worker * p->own;
    if (m->y.dtype == OM_F64)
        r->kern->gemm_f64(&g);
    else if (m->y.dtype == OM_I64)
        r->kern->gemm_i64(&g);
    else
        r->kern->gemm_i32(&g);
}

void omi_matmul(const om_matmul_args *m, void *ws, int workers) {
    mm_plan p = plan_of(m, workers);
    if (p.m * p.n * p.items == 0) return;
    char *base = (char *)ws + (-(uintptr_t)ws & (OM_ALIGN - 1));
    mm_run r   = {.args = m, .p = &p, .kern = omi_kernels()};
    r.shared   = p.shared ? (float *)(void *)base : NULL;
    r.slot     = (float *)(void *)base + p.shared;
    r.own      = r.slot + p.slot_area;
    if (m->y.dtype != OM_F32) {
        omi_parallel_at_most(workers, p.items * p.gm, run_other, &r);
    } else if (p.by_item) {
        if (r.shared) pack_all(&(pack_job){r.shared, m->b.data, p.b_rs, p.b_cs, p.k, p.n}, workers);
        if (p.items * p.m * p.n * p.k < OM_SPLIT_WORK) workers = 1;
        omi_parallel_at_most(workers, p.items, run_item, &r);
    } else {
        run_grid(&r, workers);
    }
}
