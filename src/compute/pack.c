/*
 * pack.c -- packed weights kept with their buffer.
 */
#include "compute/pack.h"

#include "base/thread.h"

/* Two independent 64-bit mixes of the numbers: with kind and count, equal keys mean equal numbers
 * for all practical purposes. */
static void make_key(uint64_t key[4], int kind, const int64_t *v, int count) {
    key[0] = (uint64_t)kind;
    key[1] = (uint64_t)count;
    key[2] = 0x9e3779b97f4a7c15u;
    key[3] = 0xc2b2ae3d27d4eb4fu;
    for (int i = 0; i < count; i++)
        for (int h = 2; h < 4; h++) {
            uint64_t x = key[h] ^ (uint64_t)v[i];
            x *= h == 2 ? 0xbf58476d1ce4e5b9u : 0x94d049bb133111ebu;
            x ^= x >> (h == 2 ? 29 : 32);
            key[h] = x * 0xff51afd7ed558ccdu + (uint64_t)i + 1;
        }
}

bool omi_pack_seen(om_buffer *buf, int kind, const int64_t *numbers, int count) {
    uint64_t key[4];
    make_key(key, kind, numbers, count);
    key[2] |= 1; // 0 says that nothing was asked yet
    return atomic_exchange_explicit(&buf->asked, key[2], memory_order_relaxed) == key[2];
}

const float *omi_pack_cached(om_buffer *buf, int kind, const int64_t *numbers, int count,
                             size_t bytes, omi_pack_fn fn, const void *ctx) {
    uint64_t key[4];
    make_key(key, kind, numbers, count);
    om_packed *p = omi_buffer_packed_get(buf, key);
    if (p) return p->data;
    p = omi_calloc(sizeof *p);
    if (!p) return NULL;
    p->bytes = bytes;
    p->data  = omi_alloc_aligned(bytes);
    if (!p->data) {
        omi_free(p, sizeof *p);
        return NULL;
    }
    for (int i = 0; i < 4; i++)
        p->key[i] = key[i];
    fn(ctx, p->data);
    if (omi_check_cancel() != OM_OK) { // half a packed form must not be found again
        omi_free_aligned(p->data, bytes);
        omi_free(p, sizeof *p);
        return NULL;
    }
    return omi_buffer_packed_add(buf, p)->data;
}
