/*
 * cache.h (internal) -- plans of a session by input signature: bounded, least recently used first
 * out.
 *
 * Building is outside the lock. A second thread that wants a plan which is being built waits for
 * it. A plan that a run holds is never evicted, so the cache may be larger than its bound for a
 * while.
 */
#ifndef OM_RUNTIME_CACHE_H
#define OM_RUNTIME_CACHE_H

#include "base/lock.h"
#include "runtime/run.h"

typedef struct om_entry {
    struct om_entry *next;
    const om_program *program; /* the session's, or a part of it */
    uint8_t *key;
    size_t key_bytes;
    om_plan *plan; /* NULL while it is being built */
    uint64_t used;
    om_run *idle; /* runs without outputs, ready for om_session_run */
    uint32_t n_idle;
} om_entry;

typedef struct om_cache {
    om_lock lock;
    pthread_cond_t changed;
    om_entry *entries;
    uint32_t n, bound;
    int running; /* calls of the session in progress */
    uint64_t clock;
    uint64_t builds, evictions; /* statistics, for tests */
} om_cache;

om_status omi_cache_init(om_cache *c, uint32_t bound);
/* The bound counts plans of a whole program: one that has so many parts has a plan for each. */
void omi_cache_widen(om_cache *c, uint32_t parts);
/* Nothing may be using it. */
void omi_cache_clear(om_cache *c);
/* The plan of these inputs (a reference for the caller), built when it is not there. Raises. */
om_plan *omi_cache_plan(om_cache *c, om_program *p, const om_feed *feeds, int workers,
                        int64_t limit);
/* An idle run of the plan, or a new one. */
om_run *omi_cache_take_run(om_cache *c, om_plan *plan);
void omi_cache_give_run(om_cache *c, om_run *r);

#endif
