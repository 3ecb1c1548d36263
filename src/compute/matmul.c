/*
 * matmul.c -- running a planned matrix product (matmul_plan.c): batches, threads, workspace around
 * the gemm kernels.
 */
#include "compute/matmul.h"

#include "compute/split.h"

typedef struct mm_run {
    const om_matmul_plan *p;
    const om_matmul_ptrs *x;
    const void *a, *b; /* left and right operand, as the plan orders them */
    float *shared, *slot, *own;
    int64_t item, at_a, at_b, at_c; /* element offsets of the item at work (grid) */
    int64_t j0, width, gn;          /* the band of columns at work */
} mm_run;

static void item_offsets(const om_matmul_plan *p, int64_t item, int64_t *a, int64_t *b,
                         int64_t *c) {
    *a = *b = *c = 0;
    for (int i = p->axes - 1; i >= 0; i--) {
        int64_t x = item % p->size[i];
        item /= p->size[i];
        *a += x * p->sa[i];
        *b += x * p->sb[i];
        *c += x * p->sc[i];
    }
}

/* The band of one item as kernel arguments. packed: panel16, or NULL to read b in place. Field by
 * field: a struct that is built and then copied waits for its own stores, a third of a 4x4 product.
 */
static void item_args(om_gemm_args *g, const mm_run *r, int64_t item, int64_t a, int64_t b,
                      int64_t c, const float *packed) {
    const om_matmul_plan *p = r->p;
    g->m                    = p->m;
    g->n                    = r->width;
    g->k                    = p->k;
    g->a                    = (const float *)r->a + a;
    g->a_rs                 = p->a_rs;
    g->a_cs                 = p->a_cs;
    g->b                    = packed ? packed : (const float *)r->b + b + r->j0 * p->b_cs;
    g->b_ps                 = p->k * 16;
    g->b_rs                 = p->b_rs;
    g->b_cs                 = p->b_cs;
    g->y                    = (float *)r->x->y + item * p->m * p->n + r->j0;
    g->y_rs                 = p->n;
    g->into                 = false;
    g->c                    = p->has_c ? (const float *)r->x->c + c + r->j0 * p->c_cs : NULL;
    g->c_rs                 = p->c_rs;
    g->c_cs                 = p->c_cs;
    g->alpha                = p->alpha;
    g->beta                 = p->beta;
    g->ws                   = NULL;
}

static void mm_kernel(const om_matmul_plan *p, const om_gemm_args *g) {
    if (p->b_form == OM_MM_B_PLACE)
        p->kern->gemm_direct_f32(g);
    else
        p->kern->gemm_f32(g);
}

/* The epilogue on what g has just made; i0 counts rows of all items. A swapped plan's row is y's
 * column. */
static void mm_finish(const mm_run *r, const om_gemm_args *g, int64_t i0, int64_t j0) {
    if (!r->x->ep || omi_cut_short()) return;
    if (r->p->swapped)
        omi_epilogue_apply(r->p->kern, r->x->ep, i0 * r->p->n + j0, g->n, 0, 1, g->y, 1);
    else
        omi_epilogue_apply(r->p->kern, r->x->ep, i0, g->m, j0, g->n, g->y, g->y_rs);
}

static const float *packed_b(const mm_run *r) {
    return r->p->b_form == OM_MM_B_PLACE ? NULL : r->p->b_packed ? r->p->b_packed : r->shared;
}

static void run_item(void *arg, int64_t item, int worker) {
    const mm_run *r         = arg;
    const om_matmul_plan *p = r->p;
    int64_t a, b, c;
    item_offsets(p, item, &a, &b, &c);
    float *own          = r->own + (size_t)worker * p->own;
    const float *packed = packed_b(r);
    if (p->own_b) {
        p->kern->pack_b16(own, (const float *)r->b + b, p->b_rs, p->b_cs, p->k, p->n, 0,
                          omi_ceil_div(p->n, 16));
        packed = own;
    }
    om_gemm_args g;
    item_args(&g, r, item, a, b, c, packed);
    g.ws = own + p->own_b;
    mm_kernel(p, &g);
    mm_finish(r, &g, item * p->m, r->j0);
}

static void run_block_of_grid(void *arg, int64_t chunk, int worker) {
    const mm_run *r         = arg;
    const om_matmul_plan *p = r->p;
    int64_t i0 = chunk / r->gn * p->rows, j0 = chunk % r->gn * p->cols;
    om_gemm_args g;
    item_args(&g, r, r->item, r->at_a, r->at_b, r->at_c, packed_b(r));
    g.m = omi_min64(p->m - i0, p->rows);
    g.n = omi_min64(r->width - j0, p->cols);
    g.a += i0 * p->a_rs;
    g.b += p->b_form == OM_MM_B_PLACE ? j0 * p->b_cs : j0 / 16 * g.b_ps;
    g.y += i0 * p->n + j0;
    if (g.c) g.c += i0 * g.c_rs + j0 * g.c_cs;
    g.ws = r->own + (size_t)worker * p->own;
    mm_kernel(p, &g);
    mm_finish(r, &g, r->item * p->m + i0, r->j0 + j0);
}

static void run_group(void *arg, int64_t group, int worker) {
    const mm_run *r         = arg;
    const om_matmul_plan *p = r->p;
    int64_t k               = group * OM_GEMM_SB;
    om_gemm_args g;
    item_args(&g, r, r->item, r->at_a, r->at_b, r->at_c, packed_b(r));
    g.k = omi_min64(p->k - k, OM_GEMM_SB);
    g.a += k * p->a_cs;
    g.b += p->b_form == OM_MM_B_PLACE ? k * p->b_rs : k * 16;
    g.c     = NULL;
    g.alpha = 1.0f;
    g.y     = r->slot + group * p->m * p->n;
    g.ws    = r->own + (size_t)worker * p->own;
    mm_kernel(p, &g);
}

static void pack_shared(const mm_run *r, int64_t b) {
    const om_matmul_plan *p = r->p;
    omi_panel16_pack(r->shared, (const float *)r->b + b + r->j0 * p->b_cs, p->b_rs, p->b_cs, p->k,
                     r->width, p->workers);
}

static void run_items_in_turn(mm_run *r) {
    const om_matmul_plan *p = r->p;
    for (r->item = 0; r->item < p->items && !omi_cut_short(); r->item++) {
        item_offsets(p, r->item, &r->at_a, &r->at_b, &r->at_c);
        if (p->b_form == OM_MM_B_SHARED && (r->item == 0 || !p->one_b)) pack_shared(r, r->at_b);
        if (p->way == OM_MM_GRID) {
            r->gn = omi_ceil_div(r->width, p->cols); // the last band may be narrower
            omi_parallel_at_most(p->workers, p->gm * r->gn, run_block_of_grid, r);
            continue;
        }
        omi_parallel_at_most(p->workers, p->slots, run_group, r);
        om_gemm_args g;
        item_args(&g, r, r->item, r->at_a, r->at_b, r->at_c, NULL);
        p->kern->gemm_combine_f32(&g, r->slot, p->m * p->n, p->slots);
        mm_finish(r, &g, r->item * p->m, 0);
    }
}

/* Rows of one item in another type. */
static void run_other(void *arg, int64_t chunk, int worker) {
    const mm_run *r         = arg;
    const om_matmul_plan *p = r->p;
    size_t e                = om_dtype_size(p->dtype);
    int64_t item = chunk / p->gm, i0 = chunk % p->gm * p->rows, a, b, c;
    item_offsets(p, item, &a, &b, &c);
    om_gemmx_args g = {.m = omi_min64(p->m - i0, p->rows), .n = p->n, .k = p->k};
    g.a             = (const char *)r->a + (a + i0 * p->a_rs) * (int64_t)e;
    g.b             = (const char *)r->b + b * (int64_t)e;
    g.y             = (char *)r->x->y + (size_t)((item * p->m + i0) * p->n) * e;
    if (p->has_c) g.c = (const char *)r->x->c + (c + i0 * p->c_rs) * (int64_t)e;
    g.a_rs = p->a_rs, g.a_cs = p->a_cs;
    g.b_rs = p->b_rs, g.b_cs = p->b_cs;
    g.c_rs = p->c_rs, g.c_cs = p->c_cs;
    g.y_rs  = p->n;
    g.alpha = p->alpha;
    g.beta  = p->beta;
    g.ws    = r->own + (size_t)worker * p->own;
    if (p->dtype == OM_F64)
        p->kern->gemm_f64(&g);
    else if (p->dtype == OM_I64)
        p->kern->gemm_i64(&g);
    else
        p->kern->gemm_i32(&g);
}

static void run_items(mm_run *r) {
    const om_matmul_plan *p = r->p;
    if (p->b_form == OM_MM_B_SHARED) pack_shared(r, 0);
    if (p->items == 1) // the commonest: no job at all
        run_item(r, 0, 0);
    else
        omi_parallel_at_most(p->workers, p->items, run_item, r);
}

void omi_matmul_run(const om_matmul_plan *p, const om_matmul_ptrs *x, void *ws) {
    mm_run r = {.p = p, .x = x, .a = x->a, .b = x->b};
    if (p->swapped) r.a = x->b, r.b = x->a;
    static float none[1]; // a run without workspace still makes addresses
    r.shared = r.slot = r.own = none;
    if (ws) {
        char *base = (char *)ws + (-(uintptr_t)ws & (OM_ALIGN - 1));
        r.shared   = (float *)(void *)base;
        r.slot     = r.shared + p->shared;
        r.own      = r.slot + p->slot_area;
    }
    switch (p->way) {
    case OM_MM_NOTHING:
        return;
    case OM_MM_ITEMS:
    case OM_MM_GRID:
    case OM_MM_SLOTS:
        for (; r.j0 < p->n && !omi_cut_short(); r.j0 += p->band) {
            r.width = omi_min64(p->n - r.j0, p->band);
            if (p->way == OM_MM_ITEMS)
                run_items(&r);
            else
                run_items_in_turn(&r);
        }
        return;
    case OM_MM_OTHER:
        omi_parallel_at_most(p->workers, p->items * p->gm, run_other, &r);
        return;
    }
}
