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
 * may index private workspace. Does not fail; allocates nothing once the pool has started. */
typedef void (*omi_body)(void *arg, int64_t chunk, int worker);
void omi_parallel(int64_t n_chunks, omi_body body, void *arg);

/* Upper bound of workers a job started now on this thread may use (1 when threads are off). */
int omi_workers(void);
/* Caps the workers of jobs started by this thread; 0: no cap. Returns the previous cap. */
int omi_set_worker_cap(int cap);
/* Stops the pool's threads (tests, om_set_threads). */
void omi_pool_stop(void);

/* True when the thread's cancel flag is raised; cheap enough for every operator and tile. */
bool omi_cancelled(void);
om_status omi_check_cancel(void); /* OM_OK, or raises OM_ERR_CANCELLED */

/* Thread creation goes through this pointer, so that tests can make it fail. */
extern int (*omi_thread_create)(void *thread, const void *attr, void *(*fn)(void *), void *arg);

#endif
