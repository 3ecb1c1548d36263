/*
 * cpu.h -- what the machine has, and the cap set on it (om_set_isa).
 *
 * Features are read by cpuid and xgetbv (CD-44): the compiler's builtin answers no under some
 * toolchains, which then ran scalar without a word. A column of kernels runs only where the machine
 * has every extension that its flags let the compiler use, and the system keeps the registers.
 *
 * Needs: error.h.  Used by: kernels, the command through base.h.
 */
#ifndef OM_BASE_CPU_H
#define OM_BASE_CPU_H

#include "base/error.h"

/* What cpuid and xgetbv say, as far as a column asks. */
enum { OMI_CPU_1C, OMI_CPU_7B, OMI_CPU_EXT_1C, OMI_CPU_XCR0, OMI_CPU_WORDS };
typedef struct omi_cpu {
    uint32_t words[OMI_CPU_WORDS];
} omi_cpu;

/* All zero on other processors. */
omi_cpu omi_cpu_read(void);
/* The best column that these words allow. */
om_isa omi_isa_of(const omi_cpu *cpu);
/* From now on the machine is this one; NULL: the real one. Tests only. */
void omi_cpu_pretend(const omi_cpu *cpu);

/* The instruction set kernels use: the best the machine has under the cap. The first call fixes it.
 */
om_isa omi_isa(void);
/* What the machine has, regardless of the cap. */
om_isa omi_isa_best(void);

#endif
