/*
 * table.h -- one table of inner loops per instruction set (CD-24).
 *
 * kernels.def lists every entry once; each column is compiled from one source per family over
 * kernels/simd/ in its own object, with its own flags and a name suffix. Columns: scalar, avx2,
 * avx512, and in test builds wide16: the 16-lane source over plain C lanes, which runs the AVX-512
 * tiles on any machine. Entries do not allocate, fail or thread; compute/ splits the work.
 *
 * Needs: base.  Used by: compute.
 */
#ifndef OM_KERNELS_TABLE_H
#define OM_KERNELS_TABLE_H

#include "base/cpu.h"
#include "kernels/args.h"

typedef enum om_column {
    OM_COL_SCALAR = 0,
    OM_COL_AVX2   = 1,
    OM_COL_AVX512 = 2,
    OM_COL_WIDE16 = 3, /* only with OM_WIDE16 */
    OM_COL_COUNT
} om_column;

typedef struct om_kernels {
    const char *name; /* "avx2"                                     */
    int width;        /* float32 lanes                              */
#define OM_KERNEL(name, ret, params) ret(*name) params;
#include "kernels/kernels.def"
#undef OM_KERNEL
} om_kernels;

/* The column this thread uses: the test override if set, else that of omi_isa(). */
const om_kernels *omi_kernels(void);
/* A column by number; NULL when this build or machine cannot run it. */
const om_kernels *omi_kernels_of(om_column c);
/* Tests and `verify`: makes this and every worker thread use a column until reset with -1.
 * Process-wide; no run may be active. */
om_status omi_kernels_force(int column);
/* Calls of entries of column c since the start: proves which column ran. Every entry counts itself
 * (OM_COUNT_CALL), only in OM_WIDE16 (test) builds; otherwise 0. */
uint64_t omi_kernel_calls(om_column c);
#if OM_WIDE16
void omi_kernel_count(om_column c);
#endif

#endif
