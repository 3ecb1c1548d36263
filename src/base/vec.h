/*
 * vec.h -- growable arrays: OM_VEC(type) v = {0}; OMI_PUSH(&v, item) is false (and raised) when
 * memory is out; OMI_VEC_FREE(&v).
 */
#ifndef OM_BASE_VEC_H
#define OM_BASE_VEC_H

#include <string.h>

#include "base/alloc.h"

#define OM_VEC(type)                                                                               \
    struct {                                                                                       \
        type *v;                                                                                   \
        size_t n, cap;                                                                             \
    }

/* v is the address of a pointer of any type; it is read and written by memcpy, because an access
 * through void ** would break the aliasing rules, and compilers do use them here. */
OM_INLINE bool omi_vec_grow(void *v, size_t n, size_t *cap, size_t item) {
    if (n < *cap) return true;
    size_t want = *cap ? *cap * 2 : 8;
    if (want > SIZE_MAX / 2 / item) return omi_fail_nomem(SIZE_MAX), false;
    void *p;
    memcpy(&p, v, sizeof p);
    p = omi_realloc(p, *cap * item, want * item);
    if (!p) return false;
    memcpy(v, &p, sizeof p);
    *cap = want;
    return true;
}

#define OMI_PUSH(vec, item)                                                                        \
    (omi_vec_grow(&(vec)->v, (vec)->n, &(vec)->cap, sizeof *(vec)->v)                              \
         ? ((vec)->v[(vec)->n++] = (item), true)                                                   \
         : false)
#define OMI_VEC_FREE(vec)                                                                          \
    (omi_free((vec)->v, (vec)->cap * sizeof *(vec)->v), (vec)->v = NULL, (vec)->n = (vec)->cap = 0)

#endif
