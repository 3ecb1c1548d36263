/*
 * thread.h -- one process-wide pool that sleeps when idle (CD-23, AR-6).
 *
 * Work comes as n chunks whose borders depend on the shape only, so results cannot depend on how
 * many threads there are or which one takes a chunk. The caller always works too; a nested job, and
 * a job that finds the pool busy, runs inline. Every worker runs with the default floating-point
 * control word (AR-1.3).
 */
#ifndef OM_BASE_THREAD_H
#define OM_BASE_THREAD_H

#include "base/error.h"

/* body(arg, chunk, worker): worker is in [0, omi_workers()) and unique among running chunks, so it
 * may index private workspace. Does not fail; allocates nothing once the pool has started. When the
 * caller's cancel flag is raised, chunks that have not begun are left out. */
typedef void (*omi_body)(void *arg, int64_t chunk, int worker);
void omi_parallel(int64_t n_chunks, omi_body body, void *arg);

/* Upper bound of workers a job started now on this thread may use (1 when threads are off). */
int omi_workers(void);
/* Caps the workers of jobs started by this thread; 0: no cap. Returns the previous cap. */
int omi_set_worker_cap(int cap);
/* Stops the pool's threads (tests, om_set_threads). */
void omi_pool_stop(void);

/* How long computations stop early (a deadline is a flag that a timer raises). Everything that
 * takes time asks omi_cut_short once per chunk of about a millisecond, in workers too, and returns
 * at once on true: what it was to write is then worthless. omi_parallel asks before each chunk;
 * loops inside a chunk ask themselves when one can be long. Whoever hands a result on calls
 * omi_check_cancel first (omi_record does for every operator, the runtime after its steps, the
 * engine after every backward function): it fails when work was left out, even if the flag has been
 * lowered since. Whoever writes in place what outlives the call asks before the first write and
 * then holds the flag off: bool was = omi_hold_cancel(true); ... omi_hold_cancel(was). */
bool omi_cancelled(void);         /* the flag is raised, and not held off */
bool omi_cut_short(void);         /* the same; true is remembered for omi_check_cancel */
om_status omi_check_cancel(void); /* OM_OK, or raises OM_ERR_CANCELLED */
bool omi_hold_cancel(bool on);    /* returns the previous state */

/* Thread creation goes through this pointer, so that tests can make it fail. */
extern int (*omi_thread_create)(void *thread, const void *attr, void *(*fn)(void *), void *arg);
/* Called by a worker that has joined a job, before its first chunk; NULL. Tests wait in it. */
extern void (*omi_pool_joined)(void);

#endif
