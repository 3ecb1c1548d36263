/*
 * map.c -- open addressing with linear probing, at most three quarters full.
 */
#include "base/map.h"

#include <string.h>

static uint64_t mix(uint64_t x) {
    x ^= x >> 33;
    x *= 0xff51afd7ed558ccdull;
    x ^= x >> 33;
    x *= 0xc4ceb9fe1a85ec53ull;
    return x ^ (x >> 33);
}

static om_map_slot *find(om_map_slot *slots, size_t cap, uint64_t key) {
    size_t i = (size_t)mix(key) & (cap - 1);
    while (slots[i].value && slots[i].key != key)
        i = (i + 1) & (cap - 1);
    return &slots[i];
}

void *omi_map_get(const om_map *m, uint64_t key) {
    return m->cap ? find(m->slots, m->cap, key)->value : NULL;
}

bool omi_map_set(om_map *m, uint64_t key, void *value) {
    if (m->n * 4 >= m->cap * 3) {
        size_t cap         = m->cap ? m->cap * 2 : 16;
        om_map_slot *slots = omi_calloc(cap * sizeof *slots);
        if (!slots) return false;
        for (size_t i = 0; i < m->cap; i++)
            if (m->slots[i].value) *find(slots, cap, m->slots[i].key) = m->slots[i];
        omi_free(m->slots, m->cap * sizeof *slots);
        m->slots = slots;
        m->cap   = cap;
    }
    om_map_slot *s = find(m->slots, m->cap, key);
    m->n += s->value == NULL;
    *s = (om_map_slot){key, value};
    return true;
}

void omi_map_free(om_map *m) {
    omi_free(m->slots, m->cap * sizeof *m->slots);
    *m = (om_map){0};
}

static uint64_t hash_bytes(const char *p, size_t n) {
    uint64_t h = 1469598103934665603ull;
    for (size_t i = 0; i < n; i++)
        h = (h ^ (unsigned char)p[i]) * 1099511628211ull;
    return mix(h);
}

static om_strmap_slot *find_str(om_strmap_slot *slots, size_t cap, const char *key, size_t len) {
    size_t i = (size_t)hash_bytes(key, len) & (cap - 1);
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
