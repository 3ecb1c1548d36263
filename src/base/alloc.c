/*
 * alloc.c -- allocation with statistics and a cap; a per-thread cache of small blocks; large blocks
 * that are kept.
 *
 * An eager operator on four elements allocates a tensor, a storage and a buffer, so small blocks
 * are kept in per-thread lists by size. Frees name their size, which makes a list index of it.
 * Cached blocks stay counted; om_trim gives them back. Large freed blocks are kept for all threads
 * (kept.h), counted apart, and go before the limit or the system refuses anything. With a caller's
 * allocator, and under the sanitizers, every call reaches the allocator.
 *
 * Counters are relaxed atomics: they are statistics, and the cap may be passed by one block per
 * thread for a moment, never by more.
 */
#include "base/alloc.h"

#include <stdatomic.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "base/kept.h"
#include "base/lock.h"
#include "base/poison.h"

#define KEPT_DEFAULT ((int64_t)512 << 20)

static _Atomic int64_t bytes_now, bytes_peak, blocks_now, bytes_limit;
static _Atomic int64_t kept_cap = KEPT_DEFAULT;

static void *default_alloc(void *ctx, void *p, size_t old, size_t size, size_t align) {
    (void)ctx;
    if (size == 0) {
        free(p);
        return NULL;
    }
    if (align <= _Alignof(max_align_t)) // 8 on some machines
        return p ? realloc(p, size) : malloc(size);
    void *q = NULL;
    if (posix_memalign(&q, align, size)) return NULL;
    if (p) {
        memcpy(q, p, old < size ? old : size);
        free(p);
    }
    return q;
}

static om_alloc_fn alloc_fn = default_alloc;
static void *alloc_ctx;

#ifndef __has_feature
#    define __has_feature(x) 0
#endif
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__) ||                               \
    __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#    define CACHE_DEFAULT false
#else
#    define CACHE_DEFAULT true
#endif
static bool cache_on = CACHE_DEFAULT;

static void free_waiting(int64_t most);

om_status om_set_allocator(om_alloc_fn fn, void *ctx) {
    OMI_ENTER("om_set_allocator");
    om_trim();
    free_waiting(0);
    if (atomic_load(&blocks_now) != 0)
        return omi_fail(
            OM_ERR_STATE,
            "%lld blocks are still allocated; release everything and call om_trim first",
            (long long)atomic_load(&blocks_now));
    alloc_fn  = fn ? fn : default_alloc;
    alloc_ctx = ctx;
    cache_on  = CACHE_DEFAULT && !fn;
    return OM_OK;
}

void om_memory(om_memory_stats *out) {
    out->bytes  = atomic_load(&bytes_now);
    out->peak   = atomic_load(&bytes_peak);
    out->blocks = atomic_load(&blocks_now);
    out->limit  = atomic_load(&bytes_limit);
    out->kept   = omi_keep_bytes() + omi_poison_bytes();
}

void om_memory_reset_peak(void) {
    atomic_store(&bytes_peak, atomic_load(&bytes_now));
}

static void count_bytes(int64_t bytes, int64_t blocks) {
    int64_t now = atomic_fetch_add_explicit(&bytes_now, bytes, memory_order_relaxed) + bytes;
    atomic_fetch_add_explicit(&blocks_now, blocks, memory_order_relaxed);
    int64_t peak = atomic_load_explicit(&bytes_peak, memory_order_relaxed);
    while (now > peak && !atomic_compare_exchange_weak(&bytes_peak, &peak, now)) {
    }
}

/* ---- large blocks that are kept ---------------------------------------------------------------
 */

static void free_kept(omi_kept *b) {
    while (b) {
        omi_kept *next = b->older;
        alloc_fn(alloc_ctx, b, b->size, 0, b->kind ? OM_ALIGN : 16);
        b = next;
    }
}

/* Frees the oldest of what waits poisoned, until at most so many bytes do. */
static void free_waiting(int64_t most) {
    omi_waiting w;
    while (omi_poison_bytes() > most && omi_poison_next(&w))
        alloc_fn(alloc_ctx, w.p, w.size, 0, w.kind ? OM_ALIGN : 16);
}

/* Gives back what is kept beyond so many bytes. */
static void free_beyond(int64_t bytes) {
    free_waiting(bytes);
    free_kept(omi_keep_shrink(bytes - omi_poison_bytes()));
}

/* How much may be kept beside what is in use now and `more` bytes. */
static int64_t room_to_keep(int64_t more) {
    int64_t cap   = atomic_load_explicit(&kept_cap, memory_order_relaxed);
    int64_t limit = atomic_load_explicit(&bytes_limit, memory_order_relaxed);
    if (!limit) return cap;
    int64_t room = limit - atomic_load_explicit(&bytes_now, memory_order_relaxed) - more;
    return room < 0 ? 0 : room < cap ? room : cap;
}

void om_set_memory_limit(int64_t bytes) {
    atomic_store(&bytes_limit, bytes < 0 ? 0 : bytes);
    free_beyond(room_to_keep(0));
}

void om_set_memory_kept(int64_t bytes) {
    atomic_store(&kept_cap, bytes < 0 ? KEPT_DEFAULT : bytes);
    free_beyond(room_to_keep(0));
}

/* True when the block was kept. Its bytes count as kept before they stop counting as in use. */
static bool keep_block(void *p, size_t size, size_t align) {
    if (OM_LIKELY(size <= OMI_KEEP_MIN) || !cache_on) return false;
    int64_t cap = room_to_keep(-(int64_t)size);
    if ((int64_t)size > cap) return false;
    omi_kept *over;
    omi_keep_give(p, size, align > 16, cap, &over);
    count_bytes(-(int64_t)size, -1);
    free_kept(over);
    return true;
}

static void *get(void *p, size_t old, size_t size, size_t align) {
    if (size == 0) size = 1;
    int64_t limit = atomic_load_explicit(&bytes_limit, memory_order_relaxed);
    if (size > (size_t)INT64_MAX / 2) return omi_fail_nomem(size), NULL;
    int64_t grow = (int64_t)size - (int64_t)old;
    if (limit && atomic_load_explicit(&bytes_now, memory_order_relaxed) + grow > limit) {
        omi_fail(OM_ERR_NOMEM, "the memory limit of %lld bytes was reached (%zu asked for)",
                 (long long)limit, size);
        return NULL;
    }
    void *q = !p && size > OMI_KEEP_MIN ? omi_keep_take(size, align > 16) : NULL;
    if (!q) {
        if (limit) free_beyond(room_to_keep(grow));
        q = alloc_fn(alloc_ctx, p, old, size, align);
    }
    if (!q && omi_keep_bytes() + omi_poison_bytes()) { // what is kept may be what is missing
        free_beyond(0);
        q = alloc_fn(alloc_ctx, p, old, size, align);
    }
    if (!q) return omi_fail_nomem(size), NULL;
    count_bytes(grow, p ? 0 : 1);
    return q;
}

static void put(void *p, size_t size, size_t align) {
    if (!p) return;
    if (size == 0) size = 1;
    if (keep_block(p, size, align)) return;
    alloc_fn(alloc_ctx, p, size, 0, align);
    count_bytes(-(int64_t)size, -1);
}

/* ---- the cache: lists[0] holds 16-byte aligned blocks in steps of 16, lists[1] 64-byte ones
 * -------- */

#define CLASSES   OMI_CACHE_SIZES
#define PER_CLASS 64

static size_t step_of(int kind) {
    return kind ? OM_ALIGN : 16;
}

void omi_trim_kept(void) {
    free_kept(omi_keep_shrink(0));
}

void om_trim(void) {
    omi_trim_thread();
    omi_trim_kept();
}

void omi_trim_thread(void) {
    omi_cache *c = &omi_state()->cache;
    for (int kind = 0; kind < 2; kind++)
        for (int i = 0; i < CLASSES; i++) {
            for (omi_block *b = c->head[kind][i], *next; b; b = next) {
                next = b->next;
                put(b, step_of(kind) * (size_t)(i + 1), step_of(kind));
            }
            c->head[kind][i] = NULL;
            c->held[kind][i] = 0;
        }
}

OM_INLINE void *take(size_t size, int kind) {
    size_t step = kind ? OM_ALIGN : 16, i = size ? (size - 1) / step : 0;
    if (OM_UNLIKELY(i >= CLASSES || !cache_on)) return get(NULL, 0, size, step);
    omi_cache *c = &omi_state()->cache;
    omi_block *b = c->head[kind][i];
    if (OM_UNLIKELY(!b)) return get(NULL, 0, step * (i + 1), step);
    c->head[kind][i] = b->next;
    c->held[kind][i]--;
    return b;
}

/* Holds p back, poisoned; see poison.h. */
static void hold_back(void *p, size_t size, int kind, bool standing) {
    if (!p) return;
    size_t step = step_of(kind), i = size ? (size - 1) / step : 0;
    if (i < CLASSES && cache_on) size = step * (i + 1);
    omi_waiting b = {.p = p, .size = size ? size : 1, .kind = (uint8_t)kind, .standing = standing};
    omi_waiting old;
    while (!omi_poison_wait(&b, &old))
        alloc_fn(alloc_ctx, old.p, old.size, 0, step_of(old.kind));
    count_bytes(-(int64_t)b.size, -1);
    if (atomic_load_explicit(&bytes_limit, memory_order_relaxed)) free_beyond(room_to_keep(0));
}

OM_INLINE void give(void *p, size_t size, int kind) {
    size_t step = kind ? OM_ALIGN : 16, i = size ? (size - 1) / step : 0;
    if (omi_poison_on()) {
        hold_back(p, size, kind, false);
        return;
    }
    if (OM_UNLIKELY(i >= CLASSES || !cache_on)) {
        put(p, size, step);
        return;
    }
    if (!p) return;
    om_state *s  = omi_state();
    omi_cache *c = &s->cache;
    if (OM_UNLIKELY(c->held[kind][i] == PER_CLASS || !omi_state_lasts(s))) {
        put(p, step * (i + 1), step);
        return;
    }
    omi_block *b     = p;
    b->next          = c->head[kind][i];
    c->head[kind][i] = b;
    c->held[kind][i]++;
}

void *omi_alloc(size_t size) {
    return take(size, 0);
}

void *omi_calloc(size_t size) {
    void *p = take(size, 0);
    if (p) memset(p, 0, size);
    return p;
}

void *omi_realloc(void *p, size_t old, size_t size) {
    if (!p) return omi_alloc(size);
    bool cached =
        omi_poison_on() ||
        (cache_on && ((old ? old - 1 : 0) / 16 < CLASSES || (size ? size - 1 : 0) / 16 < CLASSES));
    if (!cached) return get(p, old ? old : 1, size, 16);
    void *q = omi_alloc(size);
    if (!q) return NULL;
    memcpy(q, p, old < size ? old : size);
    omi_free(p, old);
    return q;
}

void omi_free(void *p, size_t size) {
    give(p, size, 0);
}
void omi_free_standing(void *p, size_t size) {
    if (omi_poison_on())
        hold_back(p, size, 0, true);
    else
        give(p, size, 0);
}
om_status om_debug(uint32_t what) {
    OMI_ENTER("om_debug");
    if (what & ~(uint32_t)OM_DEBUG_POISON)
        return omi_fail(OM_ERR_ARG, "%#x is not known; om_debug takes OM_DEBUG_POISON or 0", what);
    atomic_store(&omi_poison_flag, (what & OM_DEBUG_POISON) != 0);
    if (what)
        omi_trim_kept(); // what was freed before must not hide what is freed now
    else
        free_waiting(0);
    return OM_OK;
}
void *omi_alloc_aligned(size_t size) {
    return take(size, 1);
}
void omi_free_aligned(void *p, size_t size) {
    give(p, size, 1);
}

/* ---- states of threads ----------------------------------------------------------------------- */

om_state *omi_state_new(void) {
    // Not counted, and not the caller's allocator's: it lives as long as the thread.
    om_state *s = calloc(1, sizeof *s);
    if (s)
        for (uint64_t i = 0; i < OM_COUNT(s->rngs); i++)
            s->rngs[i].stream = i;
    return s;
}

void omi_state_drop(om_state *s) {
    free(s);
}
