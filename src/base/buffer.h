/*
 * buffer.h -- counted bytes: the only thing a tensor storage, a graph and a file mapping share
 * (CD-1).
 *
 * A buffer is written only while it has one owner; a storage that shares its buffer makes a private
 * copy first. Packed weights hang on the buffer they were made from (CD-25) and go with it.
 *
 * Needs: alloc.h.  Used by: tensor, graph, runtime.
 */
#ifndef OM_BASE_BUFFER_H
#define OM_BASE_BUFFER_H

#include <stdatomic.h>

#include "base/alloc.h"

enum { OM_BUF_HEAP = 0, OM_BUF_MAPPED = 1, OM_BUF_USER = 2 };

/* One packed form of some weights, shared by every session and plan that uses the buffer. */
typedef struct om_packed {
    struct om_packed *next;
    uint64_t key[4]; /* kind, and a hash of offset, shape, strides: see compute/pack.h */
    size_t bytes;
    void *data;
} om_packed;

typedef struct om_buffer {
    _Atomic uint32_t refs;
    _Atomic uint32_t pins, writers; /* pins of storages on it, and those that may write (CD-45) */
    uint8_t kind;
    bool read_only; /* memory of the caller that is never written: writers get a copy */
    void *data;
    size_t bytes;
    void (*free_fn)(void *ctx, void *data);
    void *ctx;
    _Atomic(om_packed *) packed; /* lock-free list, only ever pushed to */
    _Atomic uint64_t asked;      /* what packed form was asked for last; compute/pack.h */
} om_buffer;

/* 64-byte aligned heap bytes, uninitialised. */
om_buffer *omi_buffer_new(size_t bytes);
/* Wraps bytes of somebody else; free_fn (may be NULL) runs when the last reference goes, not when
 * this call fails. */
om_buffer *omi_buffer_wrap(void *data, size_t bytes, uint8_t kind, void (*free_fn)(void *, void *),
                           void *ctx);
om_buffer *omi_buffer_retain(om_buffer *b);
void omi_buffer_release(om_buffer *b); /* NULL is fine */
/* True when bytes may be changed in place. */
OM_INLINE bool omi_buffer_writable(const om_buffer *b) {
    return b->kind != OM_BUF_MAPPED && !b->read_only &&
           atomic_load_explicit(&b->refs, memory_order_acquire) == 1;
}
/* Somebody outside holds the address and expects to see what is written; or writes himself. */
OM_INLINE bool omi_buffer_pinned(const om_buffer *b) {
    return OM_UNLIKELY(atomic_load_explicit(&b->pins, memory_order_acquire) != 0);
}
OM_INLINE bool omi_buffer_written_outside(const om_buffer *b) {
    return OM_UNLIKELY(atomic_load_explicit(&b->writers, memory_order_acquire) != 0);
}
om_packed *omi_buffer_packed_get(om_buffer *b, const uint64_t key[4]);
/* Adds p (heap, data from omi_alloc_aligned); when another thread was faster, frees p and returns
 * the one that is there. */
om_packed *omi_buffer_packed_add(om_buffer *b, om_packed *p);
/* Forgets packed forms: the caller has the only reference and is about to change the bytes. */
void omi_buffer_packed_drop(om_buffer *b);

#endif
