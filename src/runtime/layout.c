/*
 * layout.c -- offsets in the arena: largest block first, each at the lowest place that is free
 * during its whole life ("greedy by size").
 *
 * Quadratic in the number of blocks, which is fine for the models there are (a thousand blocks take
 * a millisecond). Beyond a limit blocks are placed in order of their first step with a list of free
 * ranges instead, so a hostile graph of a million nodes costs memory, not time.
 */
#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "base/thread.h"
#include "runtime/plan.h"

#define GREEDY_LIMIT 6000

static size_t aligned(size_t n) {
    return (n + OM_ALIGN - 1) / OM_ALIGN * OM_ALIGN;
}

/* Size descending, then first step, then position: a total order, so qsort cannot matter. */
static int by_size(const void *x, const void *y) {
    const om_block *a = *(om_block *const *)x, *b = *(om_block *const *)y;
    if (a->bytes != b->bytes) return a->bytes < b->bytes ? 1 : -1;
    if (a->first != b->first) return a->first < b->first ? -1 : 1;
    return a < b ? -1 : 1;
}

/* placed: blocks placed so far, by offset. */
static size_t lowest_gap(om_block *const *placed, uint32_t n, const om_block *b) {
    size_t at = 0;
    for (uint32_t i = 0; i < n; i++) {
        const om_block *p = placed[i];
        if (p->last < b->first || b->last < p->first) continue;
        if (p->offset >= at + aligned(b->bytes)) break;
        size_t end = p->offset + aligned(p->bytes);
        if (end > at) at = end;
    }
    return at;
}

static om_status greedy(om_block *b, uint32_t n, size_t *total) {
    size_t bytes     = (size_t)n * 2 * sizeof(om_block *);
    om_block **order = omi_alloc(bytes), **placed = order ? order + n : NULL;
    if (!order) return OM_ERR_NOMEM;
    for (uint32_t i = 0; i < n; i++)
        order[i] = &b[i];
    qsort(order, n, sizeof *order, by_size);
    for (uint32_t i = 0; i < n; i++) {
        om_block *x = order[i];
        uint32_t at = i;
        x->offset   = lowest_gap(placed, i, x);
        while (at > 0 && placed[at - 1]->offset > x->offset) {
            placed[at] = placed[at - 1];
            at--;
        }
        placed[at] = x;
        if (x->offset + aligned(x->bytes) > *total) *total = x->offset + aligned(x->bytes);
    }
    omi_free(order, bytes);
    return OM_OK;
}

static int by_first(const void *x, const void *y) {
    const om_block *a = *(om_block *const *)x, *b = *(om_block *const *)y;
    if (a->first != b->first) return a->first < b->first ? -1 : 1;
    return a < b ? -1 : 1;
}

static int by_last(const void *x, const void *y) {
    const om_block *a = *(om_block *const *)x, *b = *(om_block *const *)y;
    if (a->last != b->last) return a->last < b->last ? -1 : 1;
    return a < b ? -1 : 1;
}

typedef struct range {
    size_t offset, bytes;
} range;

/* The smallest of the latest free ranges that holds bytes, or the end of the arena. */
static size_t take(range *list, uint32_t *n, size_t bytes, size_t *total) {
    uint32_t best = UINT32_MAX, from = *n > 64 ? *n - 64 : 0;
    for (uint32_t i = from; i < *n; i++)
        if (list[i].bytes >= bytes && (best == UINT32_MAX || list[i].bytes < list[best].bytes))
            best = i;
    if (best == UINT32_MAX) {
        size_t at = *total;
        *total += bytes;
        return at;
    }
    size_t at = list[best].offset;
    list[best].offset += bytes;
    list[best].bytes -= bytes;
    if (!list[best].bytes) list[best] = list[--*n];
    return at;
}

static om_status in_order(om_block *b, uint32_t n, size_t *total) {
    size_t obytes = (size_t)n * 2 * sizeof(om_block *), fbytes = ((size_t)n + 1) * sizeof(range);
    om_block **order = omi_alloc(obytes), **ends = order ? order + n : NULL;
    range *list     = omi_alloc(fbytes);
    om_status s     = order && list ? OM_OK : OM_ERR_NOMEM;
    uint32_t n_free = 0, done = 0;
    for (uint32_t i = 0; s == OM_OK && i < n; i++)
        order[i] = ends[i] = &b[i];
    if (s == OM_OK) {
        qsort(order, n, sizeof *order, by_first);
        qsort(ends, n, sizeof *ends, by_last);
    }
    for (uint32_t i = 0; s == OM_OK && i < n; i++) {
        for (; done < n && ends[done]->last < order[i]->first; done++)
            list[n_free++] = (range){ends[done]->offset, aligned(ends[done]->bytes)};
        order[i]->offset = take(list, &n_free, aligned(order[i]->bytes), total);
        if (i % 4096 == 0) s = omi_check_cancel();
    }
    omi_free(order, obytes);
    omi_free(list, fbytes);
    return s;
}

om_status omi_layout(om_block *b, uint32_t n, size_t *total) {
    size_t sum = 0;
    *total     = 0;
    for (uint32_t i = 0; i < n; i++) // if all of them fit side by side, no offset can overflow
        if (b[i].bytes > SIZE_MAX / 4 || !omi_add_size(sum, aligned(b[i].bytes), &sum) ||
            sum > SIZE_MAX / 4)
            return omi_fail(OM_ERR_LIMIT,
                            "the values of this graph need more memory than there can be");
    if (!n) return OM_OK;
    return n <= GREEDY_LIMIT ? greedy(b, n, total) : in_order(b, n, total);
}
