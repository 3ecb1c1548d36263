/*
 * table.c -- picks the column of kernels this process runs.
 */
#include "kernels/table.h"

#include <stdatomic.h>

extern const om_kernels omi_kernel_table_scalar;
#if OM_HAVE_X86_COLUMNS
extern const om_kernels omi_kernel_table_avx2, omi_kernel_table_avx512;
#endif
#if OM_WIDE16
extern const om_kernels omi_kernel_table_wide16;
#endif

static _Atomic(const om_kernels *) current; /* NULL until the first call */

const om_kernels *omi_kernels_of(om_column c) {
    switch (c) {
    case OM_COL_SCALAR:
        return &omi_kernel_table_scalar;
#if OM_HAVE_X86_COLUMNS
    case OM_COL_AVX2:
        return omi_isa_best() >= OM_ISA_AVX2 ? &omi_kernel_table_avx2 : NULL;
    case OM_COL_AVX512:
        return omi_isa_best() >= OM_ISA_AVX512 ? &omi_kernel_table_avx512 : NULL;
#endif
#if OM_WIDE16
    case OM_COL_WIDE16:
        return &omi_kernel_table_wide16;
#endif
    default:
        return NULL;
    }
}

const om_kernels *omi_kernels(void) {
    const om_kernels *k = atomic_load_explicit(&current, memory_order_acquire);
    if (OM_LIKELY(k != NULL)) return k;
    k = omi_kernels_of((om_column)omi_isa());
    atomic_store_explicit(&current, k, memory_order_release);
    return k;
}

om_status omi_kernels_force(int column) {
    const om_kernels *k = NULL; /* -1: chosen again by the next call */
    if (column >= 0) {
        k = column < OM_COL_COUNT ? omi_kernels_of((om_column)column) : NULL;
        if (!k)
            return omi_fail(OM_ERR_UNSUPPORTED,
                            "kernel column %d cannot run here; ask omi_kernels_of first", column);
    }
    atomic_store_explicit(&current, k, memory_order_release);
    return OM_OK;
}

#if OM_WIDE16
static _Atomic uint64_t calls[OM_COL_COUNT];

void omi_kernel_count(om_column c) {
    atomic_fetch_add_explicit(&calls[c], 1, memory_order_relaxed);
}
uint64_t omi_kernel_calls(om_column c) {
    return atomic_load_explicit(&calls[c], memory_order_relaxed);
}
#else
uint64_t omi_kernel_calls(om_column c) {
    (void)c;
    return 0;
}
#endif
