/*
 * poison.h -- freed blocks that are overwritten and held back (CD-42): om_debug(OM_DEBUG_POISON).
 *
 * A block that was freed comes back at the next allocation of its size, so who still looks at it
 * sees another tensor's data and nothing fails. In this mode it is filled with 0xff (NaN, -1, no
 * address) and waits in a ring until 64 MiB or 65,536 blocks came after it; what was written into
 * it meanwhile is logged when it goes. Tensors and modules leave their heads standing, which say
 * what they were.
 *
 * Needs: lock.h.  Used by: alloc.c.
 */
#ifndef OM_BASE_POISON_H
#define OM_BASE_POISON_H

#include <stdatomic.h>

#include "base/compiler.h"

/* A block that leaves the ring: alloc.c frees it. p NULL: none. */
typedef struct omi_waiting {
    void *p;
    size_t size;
    uint8_t kind;
    bool standing; /* not overwritten */
} omi_waiting;

extern _Atomic bool omi_poison_flag;
OM_INLINE bool omi_poison_on(void) {
    return OM_UNLIKELY(atomic_load_explicit(&omi_poison_flag, memory_order_relaxed));
}
/* Takes b in. False: there was no room, *out is the oldest, to free; call again. */
bool omi_poison_wait(const omi_waiting *b, omi_waiting *out);
/* The oldest that waits; false: none. */
bool omi_poison_next(omi_waiting *out);
int64_t omi_poison_bytes(void);

#endif
