/*
 * column.c -- the table of one column; compiled once per column like the kernels themselves.
 */
#include "kernels/simd.h"

extern const om_kernels FN(kernel_table);
const om_kernels FN(kernel_table) = {
    .name  = OM_STR(OM_SIMD_NAME),
    .width = W,
#define OM_KERNEL(name, ret, params) .name = FN(name),
#include "kernels/kernels.def"
#undef OM_KERNEL
};
