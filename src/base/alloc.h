/*
 * alloc.h -- the one way the library gets memory: sized, counted, capped, replaceable.
 *
 * Every block is freed with the size it was asked with, so a caller's allocator needs no header of
 * its own. Each function raises OM_ERR_NOMEM itself when it returns NULL. Tests install a failing
 * allocator by om_set_allocator.
 */
#ifndef OM_BASE_ALLOC_H
#define OM_BASE_ALLOC_H

#include "base/error.h"

#define OM_ALIGN 64

void *omi_alloc(size_t size);  /* 16-byte aligned, uninitialised   */
void *omi_calloc(size_t size); /* the same, zeroed                 */
void *omi_realloc(void *p, size_t old, size_t size);
void omi_free(void *p, size_t size);  /* p may be NULL                    */
void *omi_alloc_aligned(size_t size); /* 64-byte aligned: tensor data     */
void omi_free_aligned(void *p, size_t size);
/* The same; under OM_DEBUG_POISON the bytes stay as they are while the block waits, so that a use
 * after it can be told what it was. */
void omi_free_standing(void *p, size_t size);
void omi_trim_thread(void); /* gives back what this thread caches      */
void omi_trim_kept(void);   /* gives back the large blocks of all threads */

#endif
