/*
 * split.h -- how compute/ shares work: jobs with at most the workers whose workspace was counted,
 * and the limits below which sharing costs more than it gives.
 *
 * Splits are by outputs, or by whole groups of AR-2.1 into private slots (AR-6); so they may depend
 * on the number of workers and results still do not.
 */
#ifndef OM_COMPUTE_SPLIT_H
#define OM_COMPUTE_SPLIT_H

#include "base/thread.h"

/* Multiply-adds below which a job runs on the caller: waking a thread takes about 10 us. */
#define OM_SPLIT_WORK (1 << 18)

/* omi_parallel with worker numbers below workers. */
OM_INLINE void omi_parallel_at_most(int workers, int64_t n, omi_body body, void *arg) {
    int old = omi_set_worker_cap(0);
    int cap = old && old < workers ? old : workers;
    omi_set_worker_cap(cap < 1 ? 1 : cap);
    omi_parallel(n, body, arg);
    omi_set_worker_cap(old);
}

/* Floats rounded up to whole cache lines. */
OM_INLINE int64_t omi_line_floats(int64_t n) {
    return (n + 15) / 16 * 16;
}

#endif
