/*
 * ranges.h -- free and taken ranges of an arena that only exists on paper: take, give back, join.
 *
 * Two-level segregated fit (Masmano, Ripoll, Crespo and Real, ECRTS 2004): every range knows its
 * neighbours by address, and free ones hang in lists by size, so that each call takes constant time
 * and what is given back is joined at once with what is free beside it. The arena grows at its end
 * when nothing fits.
 *
 * Needs: base.  Used by: layout.c.
 */
#ifndef OM_RUNTIME_RANGES_H
#define OM_RUNTIME_RANGES_H

#include "base/compiler.h"

#define OM_RANGE_BITS  4 /* 16 lists for each power of two */
#define OM_RANGE_LISTS (64 << OM_RANGE_BITS)

typedef struct om_range {
    size_t at, bytes;
    uint32_t below, above; /* neighbours by address; 0: none   */
    uint32_t prev, next;   /* in the list of its size; 0: none */
    bool is_free;
} om_range;

typedef struct om_ranges {
    om_range *v;            /* from the caller: v[0] is nobody                             */
    uint32_t n, top, spare; /* top: the last by address; spare: unused ones, by next */
    size_t total;           /* most bytes ever                                       */
    uint32_t list[OM_RANGE_LISTS];
} om_ranges;

/* v has two entries for each range that will be taken at once, and two more. */
void omi_ranges_init(om_ranges *r, om_range *v);
/* A number for a range of bytes (> 0): v[number].at is where. */
uint32_t omi_ranges_take(om_ranges *r, size_t bytes);
void omi_ranges_give(om_ranges *r, uint32_t number);

#endif
