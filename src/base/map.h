/*
 * map.h -- hash map from 64-bit keys, or from byte strings, to pointers. Open addressing; never
 * shrinks; iteration order is not used anywhere (it would reach files).
 *
 * Keys may come from a file that somebody else wrote. The hash is keyed by a number that each
 * process draws, so a file cannot hold names that all meet in one place.
 */
#ifndef OM_BASE_MAP_H
#define OM_BASE_MAP_H

#include "base/alloc.h"

typedef struct om_map_slot {
    uint64_t key;
    void *value; /* NULL: empty */
} om_map_slot;
typedef struct om_map {
    om_map_slot *slots;
    size_t n, cap;
} om_map;

void *omi_map_get(const om_map *m, uint64_t key);
/* Sets key to value (not NULL). False and raised when memory is out. */
bool omi_map_set(om_map *m, uint64_t key, void *value);
void omi_map_free(om_map *m);

/* Strings: keys are borrowed and must outlive the map. */
typedef struct om_strmap_slot {
    const char *key;
    size_t len;
    void *value;
} om_strmap_slot;
typedef struct om_strmap {
    om_strmap_slot *slots;
    size_t n, cap;
} om_strmap;

void *omi_strmap_get(const om_strmap *m, const char *key, size_t len);
bool omi_strmap_set(om_strmap *m, const char *key, size_t len, void *value);
void omi_strmap_free(om_strmap *m);

/* Tests: the number that keys the hash, before any map that is still in use was filled. 0: drawn
 * anew by the next use. Returns the previous one. */
uint64_t omi_map_seed(uint64_t seed);
uint64_t omi_hash_name(const char *p, size_t n); /* what om_strmap goes by */

#endif
