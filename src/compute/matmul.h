/*
 * matmul.h -- matrix products by AR-2: MatMul, Gemm, Linear and their gradients.
 *
 * y[.., m, n] = alpha * S(a, b) + beta * c, where S is the blocked FMA chain of AR-2.1; alpha and
 * beta are applied as AR-2.2 writes them. Strides of the last two axes are free, so transposes cost
 * nothing but packing. Batch axes of a and b are broadcast to y's already (stride 0).
 *
 * A product is planned once and run as often as one likes (CD-30): the plan holds the geometry with
 * every offset, the workspace's size, the column of kernels and the way chosen. It has no pointers
 * to operands, so a session's step keeps it.
 */
#ifndef OM_COMPUTE_MATMUL_H
#define OM_COMPUTE_MATMUL_H

#include "base/buffer.h"
#include "compute/epilogue.h"
#include "compute/view.h"

typedef struct om_matmul_args {
    om_view a, b, y; /* same rank >= 2; y contiguous; data is not read by the plan  */
    om_view c;       /* broadcast to y's shape; rank 0 or has_c false: none         */
    bool has_c;
    float alpha, beta;     /* 1, 1 for MatMul                                            */
    const float *b_packed; /* panel16 of b when b has one batch item (all batch strides 0) */
} om_matmul_args;

/* The ways to compute a product of float32; the other types have one. */
typedef enum om_matmul_way {
    OM_MM_NOTHING, /* no elements */
    OM_MM_ITEMS,   /* a chunk is a whole batch item                                  */
    OM_MM_GRID,    /* one item after another, a chunk is a block of rows and columns */
    OM_MM_SLOTS,   /* few outputs, long k: groups of AR-2.1 into slots, added in order */
    OM_MM_OTHER    /* another element type: rows of one item                         */
} om_matmul_way;

typedef enum om_matmul_b {
    OM_MM_B_PACKED, /* given as panel16                                          */
    OM_MM_B_SHARED, /* packed once a run, or once an item, into shared workspace */
    OM_MM_B_OWN,    /* packed by each worker for its item                        */
    OM_MM_B_PLACE   /* read in place: few rows do not pay for packing            */
} om_matmul_b;

typedef struct om_matmul_plan {
    const om_kernels *kern;
    om_matmul_way way;
    om_matmul_b b_form;
    om_dtype dtype;
    int workers;         /* 1 where the work is not worth more */
    int axes;            /* batch axes left, outermost first  */
    bool one_b;          /* every item has the same b         */
    bool has_c, swapped; /* swapped: computed as b' a', for one column */
    float alpha, beta;
    int64_t m, n, k, items;
    int64_t a_rs, a_cs, b_rs, b_cs, c_rs, c_cs;
    int64_t size[OM_MAX_RANK], sa[OM_MAX_RANK], sb[OM_MAX_RANK], sc[OM_MAX_RANK];
    int64_t gm, rows,
        cols;     /* blocks of rows in an item; a block: rows a multiple of 4, cols of 32 */
    int64_t band; /* columns of b that are packed at a time; n when all are */
    int64_t slots;
    size_t shared, slot_area, own,
        own_b; /* floats: packed b; slots; of each worker, its packed b */
    const float *b_packed;
    size_t ws_bytes; /* of workspace, any alignment */
} om_matmul_plan;

/* What a run brings. a, b, c and y are those of the args; ep (NULL: none) is applied to the result
 * a block at a time; its operands count y as one matrix of all items' rows. */
typedef struct om_matmul_ptrs {
    const void *a, *b, *c;
    void *y;
    const om_epilogue *ep;
} om_matmul_ptrs;

/* Multiply-adds above which a product is refused: days of work, asked for by strides of 0. */
#define OM_MATMUL_WORK ((int64_t)1 << 53)

/* float32 and float64 (AR-9.4), int64 and int32 (wrap). */
bool omi_matmul_supports(om_dtype t);
/* False when the product has more than OM_MATMUL_WORK multiply-adds; every product of sizes that
 * the plan makes is bounded by it. */
bool omi_matmul_plan(const om_matmul_args *m, int workers, om_matmul_plan *plan);
void omi_matmul_run(const om_matmul_plan *p, const om_matmul_ptrs *x, void *ws);

/* Panel16 (arithmetic.md 2.2): [ceil(n/16)][k][16], zero padded, 64-byte aligned. b has element
 * strides rs (k) and cs (n). Sizes are those of a plan that was made. */
size_t omi_panel16_bytes(int64_t k, int64_t n);
void omi_panel16_pack(float *dst, const float *b, int64_t rs, int64_t cs, int64_t k, int64_t n,
                      int workers);
/* Panel16 of the float32 matrix at data + offset (elements) with strides rs, cs, made once per
 * buffer and kept with it (CD-25). NULL and raised when memory is out. */
const float *omi_panel16_cached(om_buffer *buf, int64_t offset, int64_t rs, int64_t cs, int64_t k,
                                int64_t n);
/* The same from the second time on that it is asked for, so that what is used once is not packed
 * for keeping; NULL before that. *failed: raised. */
const float *omi_panel16_at_second_use(om_buffer *buf, int64_t offset, int64_t rs, int64_t cs,
                                       int64_t k, int64_t n, bool *failed);

#endif
