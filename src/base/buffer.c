/*
 * buffer.c -- counted bytes and the packed weights that hang on them.
 */
#include "base/buffer.h"

#include <string.h>

om_buffer *omi_buffer_wrap(void *data, size_t bytes, uint8_t kind, void (*free_fn)(void *, void *),
                           void *ctx) {
    om_buffer *b = omi_calloc(sizeof *b);
    if (!b) return NULL;
    atomic_init(&b->refs, 1);
    b->kind    = kind;
    b->data    = data;
    b->bytes   = bytes;
    b->free_fn = free_fn;
    b->ctx     = ctx;
    return b;
}

om_buffer *omi_buffer_new(size_t bytes) {
    void *data = omi_alloc_aligned(bytes);
    if (!data) return NULL;
    om_buffer *b = omi_buffer_wrap(data, bytes, OM_BUF_HEAP, NULL, NULL);
    if (!b) omi_free_aligned(data, bytes);
    return b;
}

om_buffer *omi_buffer_retain(om_buffer *b) {
    atomic_fetch_add_explicit(&b->refs, 1, memory_order_relaxed);
    return b;
}

void omi_buffer_packed_drop(om_buffer *b) {
    atomic_store_explicit(&b->asked, 0, memory_order_relaxed);
    om_packed *p = atomic_exchange(&b->packed, NULL);
    while (p) {
        om_packed *next = p->next;
        omi_free_aligned(p->data, p->bytes);
        omi_free(p, sizeof *p);
        p = next;
    }
}

void omi_buffer_release(om_buffer *b) {
    if (!b || atomic_fetch_sub_explicit(&b->refs, 1, memory_order_acq_rel) != 1) return;
    omi_buffer_packed_drop(b);
    if (b->kind == OM_BUF_HEAP)
        omi_free_aligned(b->data, b->bytes);
    else if (b->free_fn)
        b->free_fn(b->ctx, b->data);
    omi_free(b, sizeof *b);
}

static om_packed *search(om_packed *p, const uint64_t key[4]) {
    while (p && memcmp(p->key, key, sizeof p->key) != 0)
        p = p->next;
    return p;
}

om_packed *omi_buffer_packed_get(om_buffer *b, const uint64_t key[4]) {
    return search(atomic_load_explicit(&b->packed, memory_order_acquire), key);
}

om_packed *omi_buffer_packed_add(om_buffer *b, om_packed *p) {
    om_packed *head = atomic_load_explicit(&b->packed, memory_order_acquire);
    do {
        om_packed *there = search(head, p->key);
        if (there) {
            omi_free_aligned(p->data, p->bytes);
            omi_free(p, sizeof *p);
            return there;
        }
        p->next = head;
    } while (!atomic_compare_exchange_weak_explicit(&b->packed, &head, p, memory_order_acq_rel,
                                                    memory_order_acquire));
    return p;
}
