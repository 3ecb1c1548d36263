/*
 * map.c -- open addressing with linear probing, at most three quarters full; names are hashed by
 * SipHash-1-3 (Aumasson and Bernstein), whose key is drawn once per process.
 */
#include "base/map.h"

#include <stdatomic.h>
#include <string.h>

#include "base/bytes.h"
#include "base/os.h"

static _Atomic uint64_t map_seed; /* 0: not drawn yet */

static uint64_t draw_seed(void) {
    uint64_t seed = omi_os_seed() | 1, none = 0;
    return atomic_compare_exchange_strong(&map_seed, &none, seed) ? seed : none;
}
OM_INLINE uint64_t seed_now(void) {
    uint64_t seed = atomic_load_explicit(&map_seed, memory_order_relaxed);
    return OM_LIKELY(seed != 0) ? seed : draw_seed();
}
uint64_t omi_map_seed(uint64_t seed) {
    return atomic_exchange(&map_seed, seed);
}

static uint64_t mix(uint64_t x) {
    x ^= x >> 33;
    x *= 0xff51afd7ed558ccdull;
    x ^= x >> 33;
    x *= 0xc4ceb9fe1a85ec53ull;
    return x ^ (x >> 33);
}

static om_map_slot *find_slot(om_map_slot *slots, size_t cap, uint64_t key) {
    size_t i = (size_t)mix(key ^ seed_now()) & (cap - 1);
    while (slots[i].value && slots[i].key != key)
        i = (i + 1) & (cap - 1);
    return &slots[i];
}

void *omi_map_get(const om_map *m, uint64_t key) {
    return m->cap ? find_slot(m->slots, m->cap, key)->value : NULL;
}

bool omi_map_set(om_map *m, uint64_t key, void *value) {
    if (m->n * 4 >= m->cap * 3) {
        size_t cap         = m->cap ? m->cap * 2 : 16;
        om_map_slot *slots = omi_calloc(cap * sizeof *slots);
        if (!slots) return false;
        for (size_t i = 0; i < m->cap; i++)
            if (m->slots[i].value) *find_slot(slots, cap, m->slots[i].key) = m->slots[i];
        omi_free(m->slots, m->cap * sizeof *slots);
        m->slots = slots;
        m->cap   = cap;
    }
    om_map_slot *s = find_slot(m->slots, m->cap, key);
    m->n += s->value == NULL;
    *s = (om_map_slot){key, value};
    return true;
}

void omi_map_free(om_map *m) {
    omi_free(m->slots, m->cap * sizeof *m->slots);
    *m = (om_map){0};
}

OM_INLINE uint64_t sip_rol(uint64_t x, int k) {
    return x << k | x >> (64 - k);
}
OM_INLINE void sip_round(uint64_t v[4]) {
    v[0] += v[1], v[1] = sip_rol(v[1], 13) ^ v[0], v[0] = sip_rol(v[0], 32);
    v[2] += v[3], v[3] = sip_rol(v[3], 16) ^ v[2];
    v[0] += v[3], v[3] = sip_rol(v[3], 21) ^ v[0];
    v[2] += v[1], v[1] = sip_rol(v[1], 17) ^ v[2], v[2] = sip_rol(v[2], 32);
}
OM_INLINE void sip_word(uint64_t v[4], uint64_t m) {
    v[3] ^= m;
    sip_round(v);
    v[0] ^= m;
}

uint64_t omi_hash_name(const char *text, size_t n) {
    const uint8_t *p = (const uint8_t *)text;
    uint64_t k0 = seed_now(), k1 = mix(k0 + 0x9e3779b97f4a7c15ull), last = (uint64_t)n << 56;
    uint64_t v[4] = {k0 ^ 0x736f6d6570736575ull, k1 ^ 0x646f72616e646f6dull,
                     k0 ^ 0x6c7967656e657261ull, k1 ^ 0x7465646279746573ull};
    size_t i      = 0;
    for (; i + 8 <= n; i += 8)
        sip_word(v, omi_load_u64(p + i));
    for (int bit = 0; i < n; i++, bit += 8)
        last |= (uint64_t)p[i] << bit;
    sip_word(v, last);
    v[2] ^= 0xff;
    for (int r = 0; r < 3; r++)
        sip_round(v);
    return v[0] ^ v[1] ^ v[2] ^ v[3];
}

static om_strmap_slot *find_str(om_strmap_slot *slots, size_t cap, const char *key, size_t len) {
    size_t i = (size_t)omi_hash_name(key, len) & (cap - 1);
    while (slots[i].value && (slots[i].len != len || memcmp(slots[i].key, key, len) != 0))
        i = (i + 1) & (cap - 1);
    return &slots[i];
}

void *omi_strmap_get(const om_strmap *m, const char *key, size_t len) {
    return m->cap ? find_str(m->slots, m->cap, key, len)->value : NULL;
}

bool omi_strmap_set(om_strmap *m, const char *key, size_t len, void *value) {
    if (m->n * 4 >= m->cap * 3) {
        size_t cap            = m->cap ? m->cap * 2 : 16;
        om_strmap_slot *slots = omi_calloc(cap * sizeof *slots);
        if (!slots) return false;
        for (size_t i = 0; i < m->cap; i++)
            if (m->slots[i].value)
                *find_str(slots, cap, m->slots[i].key, m->slots[i].len) = m->slots[i];
        omi_free(m->slots, m->cap * sizeof *slots);
        m->slots = slots;
        m->cap   = cap;
    }
    om_strmap_slot *s = find_str(m->slots, m->cap, key, len);
    m->n += s->value == NULL;
    *s = (om_strmap_slot){key, len, value};
    return true;
}

void omi_strmap_free(om_strmap *m) {
    omi_free(m->slots, m->cap * sizeof *m->slots);
    *m = (om_strmap){0};
}
