/*
 * kept.h -- large freed blocks, kept for the next one of the same size (C19).
 *
 * A training step frees what it allocated and the next one asks for the same sizes again. The C
 * library gives large blocks back to the kernel in between, which then zeroes fresh pages. So freed
 * blocks above OMI_KEEP_MIN bytes are kept, for every thread, up to a cap; the one that waited
 * longest goes first. What the blocks hold is in the blocks themselves.
 *
 * This file only remembers: alloc.c counts, caps and frees.
 *
 * Needs: lock.h.  Used by: alloc.c.
 */
#ifndef OM_BASE_KEPT_H
#define OM_BASE_KEPT_H

#include <stddef.h>
#include <stdint.h>

#include "base/compiler.h"

enum { OMI_KEEP_MIN = 4096, OMI_KEEP_BLOCKS = 8192 };

/* A block that is kept: the head of its own bytes. */
typedef struct omi_kept {
    struct omi_kept *newer, *older; /* by the time it was freed             */
    struct omi_kept *next, *prev;   /* of the same place in the table       */
    size_t size;
    int kind; /* 0: aligned to 16, 1: to 64 */
} omi_kept;

/* A kept block of just this size and kind; NULL: there is none. */
void *omi_keep_take(size_t size, int kind);
/* Keeps p. *over: blocks that must go to stay within cap bytes, linked by older; p may be one. */
void omi_keep_give(void *p, size_t size, int kind, int64_t cap, omi_kept **over);
/* Forgets the blocks that waited longest until at most bytes are kept; linked by older. */
omi_kept *omi_keep_shrink(int64_t bytes);
int64_t omi_keep_bytes(void);

#endif
