/*
 * matmul.h -- matrix products by AR-2: MatMul, Gemm, Linear and their gradients.
 *
 * y[.., m, n] = alpha * S(a, b) + beta * c, where S is the blocked FMA chain of AR-2.1; alpha and
 * beta are applied as AR-2.2 writes them. Strides of the last two axes are free, so transposes cost
 * nothing but packing. Batch axes of a and b are broadcast to y's already (stride 0).
 */
#ifndef OM_COMPUTE_MATMUL_H
#define OM_COMPUTE_MATMUL_H

#include "base/buffer.h"
#include "compute/view.h"

typedef struct om_matmul_args {
    om_view a, b, y;       /* same rank >= 2; y contiguous                              */
    om_view c;             /* broadcast to y's shape; data NULL: none                    */
    float alpha, beta;     /* 1, 1 for MatMul                                            */
    const float *b_packed; /* panel16 of b when b has one batch item (all batch strides 0) */
} om_matmul_args;

/* float32 and float64 (AR-9.4), int64 and int32 (wrap). */
bool omi_matmul_supports(om_dtype t);
size_t omi_matmul_workspace(const om_matmul_args *m, int workers);
void omi_matmul(const om_matmul_args *m, void *ws, int workers);

/* Panel16 (arithmetic.md 2.2): [ceil(n/16)][k][16], zero padded, 64-byte aligned. b has element
 * strides rs (k) and cs (n). */
size_t omi_panel16_bytes(int64_t k, int64_t n);
void omi_panel16_pack(float *dst, const float *b, int64_t rs, int64_t cs, int64_t k, int64_t n);
/* Panel16 of the float32 matrix at data + offset (elements) with strides rs, cs, made once per
 * buffer and kept with it (CD-25). NULL and raised when memory is out. */
const float *omi_panel16_cached(om_buffer *buf, int64_t offset, int64_t rs, int64_t cs, int64_t k,
                                int64_t n);

#endif
