/*
 * arena.h -- bump allocation with one owner: a graph, a reader, a trace. Blocks are never freed
 * alone; the whole arena goes at once. An optional cap in bytes stops hostile files.
 */
#ifndef OM_BASE_ARENA_H
#define OM_BASE_ARENA_H

#include "base/alloc.h"

typedef struct omi_arena_chunk omi_arena_chunk;
typedef struct om_arena {
    omi_arena_chunk *chunk;
    size_t used, total, cap; /* cap 0: none */
} om_arena;

/* 16-byte aligned and zeroed; NULL and raised (OM_ERR_NOMEM, or OM_ERR_LIMIT past the cap). */
void *omi_arena_alloc(om_arena *a, size_t size);
void *omi_arena_array(om_arena *a, size_t n, size_t size); /* checks n * size */
char *omi_arena_strndup(om_arena *a, const char *s, size_t n);
char *omi_arena_printf(om_arena *a, const char *fmt, ...) OM_PRINTF(2, 3);
void omi_arena_clear(om_arena *a);

#endif
