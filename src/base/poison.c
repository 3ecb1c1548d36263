/*
 * poison.c -- see poison.h.
 */
#include "base/poison.h"

#include <string.h>

#include "base/error.h"
#include "base/lock.h"

enum { RING = 65536 };
#define MOST_BYTES ((int64_t)64 << 20)

_Atomic bool omi_poison_flag;
static om_lock ring_lock = OM_LOCK(OM_RANK_KEEP, NULL, NULL);
static omi_waiting ring[RING]; // untouched pages until the mode is used
static uint32_t ring_first, ring_n;
static _Atomic int64_t ring_bytes;

/* With the lock. */
static bool ring_pop(omi_waiting *out) {
    if (!ring_n) return false;
    *out       = ring[ring_first];
    ring_first = (ring_first + 1) % RING;
    ring_n--;
    atomic_fetch_sub(&ring_bytes, (int64_t)out->size);
    return true;
}

static void look_for_writes(const omi_waiting *b) {
    const unsigned char *p = b->p;
    size_t i               = 0;
    while (!b->standing && i < b->size && p[i] == 0xff)
        i++;
    if (!b->standing && i < b->size)
        omi_log(OM_LOG_ERROR, "byte %zu of a block of %zu was written after the block was freed", i,
                b->size);
}

bool omi_poison_wait(const omi_waiting *b, omi_waiting *out) {
    if (!b->standing) memset(b->p, 0xff, b->size);
    omi_lock(&ring_lock);
    bool room = ring_n < RING && (!ring_n || omi_poison_bytes() + (int64_t)b->size <= MOST_BYTES);
    if (room) {
        ring[(ring_first + ring_n++) % RING] = *b;
        atomic_fetch_add(&ring_bytes, (int64_t)b->size);
    } else
        ring_pop(out);
    omi_unlock(&ring_lock);
    if (!room) look_for_writes(out);
    return room;
}

bool omi_poison_next(omi_waiting *out) {
    omi_lock(&ring_lock);
    bool any = ring_pop(out);
    omi_unlock(&ring_lock);
    if (any) look_for_writes(out);
    return any;
}

int64_t omi_poison_bytes(void) {
    return atomic_load_explicit(&ring_bytes, memory_order_relaxed);
}
