/*
 * kept.c -- see kept.h.
 *
 * A table by size and one list by age, under one lock. Sizes match exactly: steps repeat theirs,
 * and a block is freed with the size that it was asked with.
 */
#include "base/kept.h"

#include "base/lock.h"

static om_lock keep_lock = OM_LOCK(OM_RANK_KEEP, NULL, NULL);
static omi_kept *kept_table[1024], *kept_newest, *kept_oldest;
static _Atomic int64_t kept_bytes;
static int64_t kept_blocks;

static omi_kept **kept_place_of(size_t size, int kind) {
    uint64_t h = ((uint64_t)size * 2 + (uint64_t)kind) * 0x9e3779b97f4a7c15u;
    return &kept_table[h >> 54];
}

static void forget_kept(omi_kept *b) {
    if (b->next) b->next->prev = b->prev;
    *(b->prev ? &b->prev->next : kept_place_of(b->size, b->kind)) = b->next;
    *(b->newer ? &b->newer->older : &kept_newest)                 = b->older;
    *(b->older ? &b->older->newer : &kept_oldest)                 = b->newer;
    atomic_fetch_sub_explicit(&kept_bytes, (int64_t)b->size, memory_order_relaxed);
    kept_blocks--;
}

void *omi_keep_take(size_t size, int kind) {
    if (omi_keep_bytes() < (int64_t)size) return NULL;
    omi_lock(&keep_lock);
    omi_kept *b = *kept_place_of(size, kind);
    while (b && (b->size != size || b->kind != kind))
        b = b->next;
    if (b) forget_kept(b);
    omi_unlock(&keep_lock);
    return b;
}

/* With the lock. */
static omi_kept *drop_oldest(int64_t bytes, int64_t blocks) {
    omi_kept *gone = NULL;
    while (kept_oldest && (omi_keep_bytes() > bytes || kept_blocks > blocks)) {
        omi_kept *b = kept_oldest;
        forget_kept(b);
        b->older = gone;
        gone     = b;
    }
    return gone;
}

void omi_keep_give(void *p, size_t size, int kind, int64_t cap, omi_kept **over) {
    omi_kept *b = p;
    omi_lock(&keep_lock);
    omi_kept **head = kept_place_of(size, kind);
    *b              = (omi_kept){.older = kept_newest, .next = *head, .size = size, .kind = kind};
    if (*head) (*head)->prev = b;
    *head                                               = b;
    *(kept_newest ? &kept_newest->newer : &kept_oldest) = b;
    kept_newest                                         = b;
    kept_blocks++;
    atomic_fetch_add_explicit(&kept_bytes, (int64_t)size, memory_order_relaxed);
    *over = drop_oldest(cap, OMI_KEEP_BLOCKS);
    omi_unlock(&keep_lock);
}

omi_kept *omi_keep_shrink(int64_t bytes) {
    if (omi_keep_bytes() <= bytes) return NULL;
    omi_lock(&keep_lock);
    omi_kept *gone = drop_oldest(bytes, OMI_KEEP_BLOCKS);
    omi_unlock(&keep_lock);
    return gone;
}

int64_t omi_keep_bytes(void) {
    return atomic_load_explicit(&kept_bytes, memory_order_relaxed);
}
