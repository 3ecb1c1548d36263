/*
 * arena.c -- bump allocation in chunks that double up to 1 MiB.
 */
#include "base/arena.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/checked.h"
#include "base/str.h"

struct omi_arena_chunk {
    omi_arena_chunk *next;
    size_t size; /* of the whole block */
};

#define HEAD ((sizeof(omi_arena_chunk) + 15) & ~(size_t)15)

static bool grow_arena(om_arena *a, size_t size) {
    size_t want = a->chunk ? a->chunk->size * 2 : 1024;
    if (want > (1u << 20)) want = 1u << 20;
    size_t need;
    if (!omi_add_size(size, HEAD, &need)) return omi_fail_nomem(size), false;
    if (want < need) want = need;
    if (a->cap && want > a->cap - (a->total < a->cap ? a->total : a->cap)) {
        want = need;
        if (a->total > a->cap || want > a->cap - a->total) {
            omi_fail(OM_ERR_LIMIT, "more than %zu bytes are needed, which is the limit set",
                     a->cap);
            return false;
        }
    }
    omi_arena_chunk *c = omi_alloc(want);
    if (!c) return false;
    c->next  = a->chunk;
    c->size  = want;
    a->chunk = c;
    a->used  = HEAD;
    a->total += want;
    return true;
}

void *omi_arena_alloc(om_arena *a, size_t size) {
    if (size > SIZE_MAX - 15) return omi_fail_nomem(size), NULL;
    size = (size + 15) & ~(size_t)15;
    if (size == 0) size = 16;
    if ((!a->chunk || size > a->chunk->size - a->used) && !grow_arena(a, size)) return NULL;
    void *p = (char *)a->chunk + a->used;
    a->used += size;
    return memset(p, 0, size);
}

void *omi_arena_array(om_arena *a, size_t n, size_t size) {
    size_t bytes;
    if (!omi_mul_size(n, size, &bytes)) return omi_fail_nomem(SIZE_MAX), NULL;
    return omi_arena_alloc(a, bytes);
}

char *omi_arena_strndup(om_arena *a, const char *s, size_t n) {
    char *p = n < SIZE_MAX ? omi_arena_alloc(a, n + 1) : NULL;
    if (p && n) memcpy(p, s, n);
    return p;
}

char *omi_arena_printf(om_arena *a, const char *fmt, ...) {
    va_list ap, ap2;
    va_start(ap, fmt);
    va_copy(ap2, ap);
    int n   = omi_vformat(NULL, 0, fmt, ap);
    char *p = n < 0 ? NULL : omi_arena_alloc(a, (size_t)n + 1);
    if (p) omi_vformat(p, (size_t)n + 1, fmt, ap2);
    va_end(ap);
    va_end(ap2);
    return p;
}

void omi_arena_clear(om_arena *a) {
    for (omi_arena_chunk *c = a->chunk, *next; c; c = next) {
        next = c->next;
        omi_free(c, c->size);
    }
    *a = (om_arena){.cap = a->cap};
}
