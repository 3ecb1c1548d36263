/*
 * epilogue.h -- what follows a product or convolution, on a block while it is in cache: each vector
 * is loaded once, goes through all operations in registers, each with the rounding of its node, and
 * is stored once.
 */
#ifndef OM_KERNELS_EPILOGUE_H
#define OM_KERNELS_EPILOGUE_H

#include "kernels/elementwise/extreme.h"
#include "kernels/elementwise/tail.h"
#include "kernels/simd.h"

#define EP_AT_ONCE 4 /* vectors: so many times cheaper is choosing the operation */

/* One operand of nv vectors from column j on, the last of t lanes. */
OM_INLINE vf ep_load(const float *a, bool cs, int64_t j, int k, int t) {
    return cs ? om_load_t(a + j + k * W, t) : vset1(*a);
}

OM_INLINE void ep_op(const om_ep_op *o, int64_t i, int64_t j, vf *v, int nv, int t) {
    const float *a = o->a, *b = o->b;
    switch (o->kind) {
    case OM_EP_OP_ADD:
        a += i * o->rs;
        OM_UNROLL for (int k = 0; k < nv; k++) v[k] = vadd(v[k], ep_load(a, o->cs, j, k, t));
        break;
    case OM_EP_OP_MUL:
        a += i * o->rs;
        OM_UNROLL for (int k = 0; k < nv; k++) v[k] = vmul(v[k], ep_load(a, o->cs, j, k, t));
        break;
    case OM_EP_OP_SCALE_SHIFT:
        a += i * o->rs;
        b += i * o->rs;
        OM_UNROLL for (int k = 0; k < nv; k++) v[k] =
            vadd(vmul(v[k], ep_load(a, o->cs, j, k, t)), ep_load(b, o->cs, j, k, t));
        break;
    case OM_EP_OP_RELU:
        OM_UNROLL for (int k = 0; k < nv; k++) v[k] = om_relu1(v[k]);
        break;
    case OM_EP_OP_LIMIT: {
        /* lo > v ? lo : v keeps NaN, and -0 beside a bound of +0, which the sum makes +0; to all
         * else, and with every other bound, the sum adds nothing. */
        vf lo = vset1(o->lo), hi = vset1(o->hi);
        vf none = vset1(o->lo == 0.0f && !__builtin_signbit(o->lo) ? 0.0f : -0.0f);
        OM_UNROLL for (int k = 0; k < nv; k++) v[k] = vmin_raw(hi, vadd(vmax_raw(lo, v[k]), none));
        break;
    }
    }
}

/* Rows [i0, i0 + rows) and columns [j0, j0 + cols) of e's block; y is its row 0, column 0. */
static inline void om_epilogue_block(const om_epilogue_args *e, float *y0, int64_t y_rs, int64_t i0,
                                     int64_t rows, int64_t j0, int64_t cols) {
    for (int64_t i = i0; i < i0 + rows; i++) {
        float *y  = y0 + i * y_rs;
        int64_t j = j0, end = j0 + cols;
        for (; j + EP_AT_ONCE * W <= end; j += EP_AT_ONCE * W) {
            vf v[EP_AT_ONCE];
            OM_UNROLL for (int k = 0; k < EP_AT_ONCE; k++) v[k] = vload(y + j + k * W);
            for (int s = 0; s < e->n; s++)
                ep_op(&e->op[s], i, j, v, EP_AT_ONCE, W);
            OM_UNROLL for (int k = 0; k < EP_AT_ONCE; k++) vstore(y + j + k * W, v[k]);
        }
        for (; j < end; j += W) {
            int t = om_lanes_at(j, end, W);
            vf v  = om_load_t(y + j, t);
            for (int s = 0; s < e->n; s++)
                ep_op(&e->op[s], i, j, &v, 1, t);
            om_store_t(y + j, v, t);
        }
    }
}

#endif
