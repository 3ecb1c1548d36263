/*
 * lock.h -- locks that are held across fork (CD-41).
 *
 * A child has one thread and a copy of everything; a lock that another thread held at that moment
 * would never open again, and what it guards would be half changed. So every lock of the library is
 * an om_lock: fork takes all of them, in the order of their ranks, and the child puts right what
 * counted on threads that it does not have. A thread that holds a lock takes only others of a
 * higher rank; fork inside a callback is forbidden (base.h).
 *
 * Needs: compiler.h.  Used by: base, runtime, trace.
 */
#ifndef OM_BASE_LOCK_H
#define OM_BASE_LOCK_H

#include <pthread.h>
#include <stdatomic.h>

#include "base/compiler.h"

enum { OM_RANK_SESSION, OM_RANK_TRACE, OM_RANK_POOL, OM_RANK_WORDS, OM_RANK_KEEP };

typedef struct om_lock {
    pthread_mutex_t mutex;
    int rank;
    void (*in_child)(void *arg); /* may be NULL; runs with every lock held */
    void *arg;
    _Atomic bool listed;
    struct om_lock *next, *before; /* of the registry, by rank */
} om_lock;

/* A static lock. */
#define OM_LOCK(r, child, a)                                                                       \
    { .mutex = PTHREAD_MUTEX_INITIALIZER, .rank = (r), .in_child = (child), .arg = (a) }

void omi_lock_init(om_lock *l, int rank, void (*in_child)(void *), void *arg);
void omi_lock_destroy(om_lock *l);
/* Adds a lock to the registry; its first use does. */
void omi_lock_list(om_lock *l);

OM_INLINE void omi_lock(om_lock *l) {
    if (OM_UNLIKELY(!atomic_load_explicit(&l->listed, memory_order_acquire))) omi_lock_list(l);
    pthread_mutex_lock(&l->mutex);
}
OM_INLINE void omi_unlock(om_lock *l) {
    pthread_mutex_unlock(&l->mutex);
}

/* A function that runs once in the process, before any caller of this returns. */
typedef pthread_once_t omi_once;
#define OMI_ONCE PTHREAD_ONCE_INIT
OM_INLINE void omi_call_once(omi_once *once, void (*fn)(void)) {
    pthread_once(once, fn);
}

#endif
