/*
 * cpu.h -- what the machine has, and the cap set on it (om_set_isa).
 */
#ifndef OM_BASE_CPU_H
#define OM_BASE_CPU_H

#include "base/error.h"

/* The instruction set kernels use: the best the machine has under the cap. The first call fixes it.
 */
om_isa omi_isa(void);
/* What the machine has, regardless of the cap. */
om_isa omi_isa_best(void);

#endif
