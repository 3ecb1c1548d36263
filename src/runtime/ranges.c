/*
 * ranges.c -- two-level segregated fit over numbers (ranges.h).
 */
#include "runtime/ranges.h"

#include <string.h>

enum { LOOKS = 32 }; /* in the list of the very size, before the next larger one is asked */

void omi_ranges_init(om_ranges *r, om_range *v) {
    memset(r, 0, sizeof *r);
    r->v = v;
    r->n = 1;
}

/* The list of ranges of about these bytes: the highest bit, and the four below it. */
static uint32_t range_list_of(size_t bytes) {
    uint32_t high = 63u - (uint32_t)__builtin_clzll((unsigned long long)bytes);
    uint32_t low  = high < OM_RANGE_BITS
                        ? 0
                        : (uint32_t)(bytes >> (high - OM_RANGE_BITS)) & ((1u << OM_RANGE_BITS) - 1);
    return (high << OM_RANGE_BITS) + low;
}

static void link_free(om_ranges *r, uint32_t i) {
    uint32_t *head  = &r->list[range_list_of(r->v[i].bytes)];
    r->v[i].is_free = true;
    r->v[i].prev    = 0;
    r->v[i].next    = *head;
    if (*head) r->v[*head].prev = i;
    *head = i;
}

static void unlink_free(om_ranges *r, uint32_t i) {
    om_range *x = &r->v[i];
    if (x->prev)
        r->v[x->prev].next = x->next;
    else
        r->list[range_list_of(x->bytes)] = x->next;
    if (x->next) r->v[x->next].prev = x->prev;
    x->is_free = false;
}

static uint32_t new_range(om_ranges *r, size_t at, size_t bytes, uint32_t below, uint32_t above) {
    uint32_t i = r->spare;
    if (i)
        r->spare = r->v[i].next;
    else
        i = r->n++;
    r->v[i] = (om_range){.at = at, .bytes = bytes, .below = below, .above = above};
    if (below) r->v[below].above = i;
    if (above)
        r->v[above].below = i;
    else
        r->top = i;
    return i;
}

/* Joins free range i with the one above it, which is free too. */
static void join_above(om_ranges *r, uint32_t i) {
    uint32_t gone = r->v[i].above, after = r->v[gone].above;
    unlink_free(r, gone);
    r->v[i].bytes += r->v[gone].bytes;
    r->v[i].above = after;
    if (after)
        r->v[after].below = i;
    else
        r->top = i;
    r->v[gone].next = r->spare;
    r->spare        = gone;
}

static uint32_t find_fit(const om_ranges *r, size_t bytes) {
    uint32_t k = range_list_of(bytes);
    int looks  = LOOKS;
    for (uint32_t i = r->list[k]; i && looks--; i = r->v[i].next)
        if (r->v[i].bytes >= bytes) return i;
    for (k++; k < OM_RANGE_LISTS; k++)
        if (r->list[k]) return r->list[k]; // all of them are larger
    return 0;
}

uint32_t omi_ranges_take(om_ranges *r, size_t bytes) {
    uint32_t i = find_fit(r, bytes);
    if (!i && r->top && r->v[r->top].is_free) { // the end is free: it grows by what is missing
        i = r->top;
        r->total += bytes - r->v[i].bytes;
        unlink_free(r, i);
        r->v[i].bytes = bytes;
        return i;
    }
    if (!i) {
        i = new_range(r, r->total, bytes, r->top, 0);
        r->total += bytes;
        return i;
    }
    unlink_free(r, i);
    if (r->v[i].bytes > bytes) {
        uint32_t rest = new_range(r, r->v[i].at + bytes, r->v[i].bytes - bytes, i, r->v[i].above);
        r->v[i].bytes = bytes;
        link_free(r, rest);
    }
    return i;
}

void omi_ranges_give(om_ranges *r, uint32_t i) {
    link_free(r, i);
    uint32_t above = r->v[i].above, below = r->v[i].below;
    if (above && r->v[above].is_free) {
        unlink_free(r, i);
        join_above(r, i);
        link_free(r, i);
    }
    if (below && r->v[below].is_free) {
        unlink_free(r, below);
        join_above(r, below);
        link_free(r, below);
    }
}
