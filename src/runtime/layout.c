/*
 * layout.c -- offsets in the arena: largest block first, each at the lowest place that is free
 * during its whole life ("greedy by size").
 *
 * Quadratic in the number of blocks, which is fine for the models there are (a thousand blocks take
 * a millisecond). Beyond a limit blocks are placed in order of their first step, in ranges that are
 * joined when they are free again (ranges.h): nearly linear, and a chain of any length needs what a
 * short one does.
 */
#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "base/thread.h"
#include "runtime/plan.h"
#include "runtime/ranges.h"

#define GREEDY_LIMIT 6000

static size_t layout_aligned(size_t n) {
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
        if (p->offset >= at + layout_aligned(b->bytes)) break;
        size_t end = p->offset + layout_aligned(p->bytes);
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
        if (x->offset + layout_aligned(x->bytes) > *total)
            *total = x->offset + layout_aligned(x->bytes);
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

static om_status in_order(om_block *b, uint32_t n, size_t *total) {
    size_t obytes = (size_t)n * 2 * sizeof(om_block *), nbytes = (size_t)n * sizeof(uint32_t);
    size_t rbytes    = (2 * (size_t)n + 2) * sizeof(om_range);
    om_block **order = omi_alloc(obytes), **ends = order ? order + n : NULL;
    uint32_t *number = omi_alloc(nbytes), done = 0;
    om_range *v  = omi_alloc(rbytes);
    om_ranges *r = omi_alloc(sizeof *r);
    om_status s  = order && number && v && r ? OM_OK : OM_ERR_NOMEM;
    for (uint32_t i = 0; s == OM_OK && i < n; i++)
        order[i] = ends[i] = &b[i];
    if (s == OM_OK) {
        qsort(order, n, sizeof *order, by_first);
        qsort(ends, n, sizeof *ends, by_last);
        omi_ranges_init(r, v);
    }
    for (uint32_t i = 0; s == OM_OK && i < n; i++) {
        om_block *x = order[i];
        for (; done < n && ends[done]->last < x->first; done++)
            if (ends[done]->bytes) omi_ranges_give(r, number[ends[done] - b]);
        if (x->bytes) {
            number[x - b] = omi_ranges_take(r, layout_aligned(x->bytes));
            x->offset     = v[number[x - b]].at;
        }
        if (i % 4096 == 0) s = omi_check_cancel();
    }
    if (s == OM_OK) *total = r->total;
    omi_free(order, obytes);
    omi_free(number, nbytes);
    omi_free(v, rbytes);
    omi_free(r, sizeof *r);
    return s;
}

om_status omi_layout(om_block *b, uint32_t n, size_t *total) {
    size_t sum = 0;
    *total     = 0;
    for (uint32_t i = 0; i < n; i++) // if all of them fit side by side, no offset can overflow
        if (b[i].bytes > SIZE_MAX / 4 || !omi_add_size(sum, layout_aligned(b[i].bytes), &sum) ||
            sum > SIZE_MAX / 4)
            return omi_fail(OM_ERR_LIMIT,
                            "the values of this graph need more memory than there can be");
    if (!n) return OM_OK;
    return n <= GREEDY_LIMIT ? greedy(b, n, total) : in_order(b, n, total);
}
