/*
 * epilogue.h -- what is done to a block of a product or convolution while it is in cache (CD-40).
 *
 * Each step is the arithmetic of one graph node, with that node's roundings, in the order of the
 * nodes it replaces; so an output has the bits of the separate nodes. The block is a matrix y of
 * rows and columns: of a product as they are, of a convolution one row per output channel and one
 * column per pixel. Operands have element strides over rows and columns, 0 where they do not
 * change: a bias per column has rs 0, cs 1; one per channel of a convolution rs 1, cs 0; a residual
 * the strides of its tensor. rs and cs are free, but runs with cs 0 or 1 are the fast ones.
 *
 * Needs: elementwise.h, kernels.  Used by: compute's products and convolutions, graphops.
 */
#ifndef OM_COMPUTE_EPILOGUE_H
#define OM_COMPUTE_EPILOGUE_H

#include "compute/elementwise.h"
#include "kernels/table.h"

typedef enum om_ep_kind {
    OM_EP_ADD,         /* y = y + a: Add of a bias or a residual (the sum is symmetric)      */
    OM_EP_SCALE_SHIFT, /* y = y * a + b, two roundings: BatchNormalization with folded a, b  */
    OM_EP_UNARY,       /* y = f(y): Relu, Sigmoid, Tanh ... ; fast: the Fast forms           */
    OM_EP_CLIP,        /* y = Min(Max(y, *a), *b); NULL for an absent bound                  */
    OM_EP_MUL          /* y = y * a                                                          */
} om_ep_kind;

typedef struct om_ep_step {
    om_ep_kind kind;
    om_unary_kind unary; /* of OM_EP_UNARY */
    bool fast;
    const float *a, *b; /* element of row 0, column 0; b has the strides of a */
    int64_t rs, cs;
    int64_t is; /* of a convolution: floats from one image to the next; 0: all have the same */
} om_ep_step;

typedef struct om_epilogue {
    int n;
    om_ep_step step[OM_EP_MAX];
} om_epilogue;

/* The steps as operations of a kernel on a block that begins at row i0, column j0; its address and
 * sizes are left open. False: one of them has none. */
bool omi_epilogue_plain(const om_epilogue *e, int64_t i0, int64_t j0, om_epilogue_args *a);
/* All steps on rows [i0, i0 + rows) and columns [j0, j0 + cols) of the result; y points to the
 * first of them, y_rs floats from one row to the next. Operands must not overlap y, but a residual
 * may be y itself in place. Does not fail. */
void omi_epilogue_apply(const om_kernels *k, const om_epilogue *e, int64_t i0, int64_t rows,
                        int64_t j0, int64_t cols, float *y, int64_t y_rs);

#endif
