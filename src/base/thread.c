/*
 * thread.c -- the pool, the cancel flag, and the caller's own parallel-for.
 *
 * One job at a time. A job is published under the lock with a new serial; sleeping threads wake,
 * take chunks from an atomic counter, and the last one to finish wakes the caller. Threads start at
 * first need; when one cannot be started the job simply has fewer workers.
 */
#include "base/thread.h"

#include <pthread.h>
#include <stdatomic.h>
#include <string.h>
#include <unistd.h>

#include "base/fpenv.h"

#define MAX_WORKERS 256

static int real_create(void *t, const void *attr, void *(*fn)(void *), void *arg) {
    return pthread_create((pthread_t *)t, (const pthread_attr_t *)attr, fn, arg);
}
int (*omi_thread_create)(void *, const void *, void *(*)(void *), void *) = real_create;

static struct pool {
    pthread_mutex_t lock;
    pthread_cond_t wake, done;
    pthread_t threads[MAX_WORKERS];
    int started; /* threads running, without the caller          */
    int wanted;  /* om_set_threads; 0 = not set                  */
    bool stop;
    _Atomic int busy; /* a job is running                             */
    uint64_t serial;
    omi_body body;
    void *arg;
    int64_t n;
    _Atomic int64_t next;
    const om_cancel *cancel; /* the caller's flag, which every worker looks at */
    bool cut;                /* a worker left chunks out                        */
    int slots;               /* workers that may still join this job         */
    int joined;              /* worker ids handed out, the caller has 0      */
    int active;              /* threads inside the job                       */
} pool = {.lock = PTHREAD_MUTEX_INITIALIZER,
          .wake = PTHREAD_COND_INITIALIZER,
          .done = PTHREAD_COND_INITIALIZER};

static om_parallel_for_fn user_fn;
static void *user_ctx;

static OM_TLS int worker_cap;
static OM_TLS bool inside;             /* running a chunk: nested jobs go inline */
static OM_TLS const om_cancel *cancel; /* of this thread; in a worker: of the job's caller */
static OM_TLS bool held;               /* what is being written must be finished            */
static OM_TLS bool cut;                /* work was left out since the last omi_check_cancel */

/* ---- cancel -------------------------------------------------------------------------------- */

void om_set_cancel(om_cancel *c) {
    cancel = c;
}
bool omi_cancelled(void) {
    return cancel && !held && __atomic_load_n(&cancel->raised, __ATOMIC_RELAXED);
}
bool omi_cut_short(void) {
    if (OM_LIKELY(!omi_cancelled())) return false;
    return cut = true;
}
om_status omi_check_cancel(void) {
    if (OM_LIKELY(!cut && !omi_cancelled())) return OM_OK;
    cut = false;
    return omi_fail(OM_ERR_CANCELLED, "the cancel flag was raised");
}
bool omi_hold_cancel(bool on) {
    bool was = held;
    held     = on;
    return was;
}

/* ---- sizes --------------------------------------------------------------------------------- */

static int default_threads(void) {
    static _Atomic int cached;
    int n = atomic_load_explicit(&cached, memory_order_relaxed);
    if (!n) {
        long online = sysconf(_SC_NPROCESSORS_ONLN);
        n           = online < 1 ? 1 : online > MAX_WORKERS ? MAX_WORKERS : (int)online;
        atomic_store_explicit(&cached, n, memory_order_relaxed);
    }
    return n;
}

int om_threads(void) {
    return pool.wanted ? pool.wanted : default_threads();
}

int omi_workers(void) {
    int n = om_threads();
    return worker_cap && worker_cap < n ? worker_cap : n;
}

int omi_set_worker_cap(int cap) {
    int old    = worker_cap;
    worker_cap = cap;
    return old;
}

om_status om_set_threads(int n) {
    OMI_ENTER("om_set_threads");
    if (n < 0 || n > MAX_WORKERS)
        return omi_fail(OM_ERR_ARG, "%d threads asked for; 0 to %d can be had", n, MAX_WORKERS);
    if (atomic_load(&pool.busy))
        return omi_fail(OM_ERR_STATE, "a run is active; set the number of threads between runs");
    omi_pool_stop();
    pool.wanted = n;
    return OM_OK;
}

void om_set_parallel_for(om_parallel_for_fn fn, void *ctx) {
    user_fn  = fn;
    user_ctx = ctx;
}

/* ---- the pool ------------------------------------------------------------------------------ */

static void run_chunks(omi_body body, void *arg, int64_t n, int worker) {
    inside = true;
    for (;;) {
        int64_t i = atomic_fetch_add_explicit(&pool.next, 1, memory_order_relaxed);
        if (i >= n || omi_cut_short()) break;
        body(arg, i, worker);
    }
    inside = false;
}

static void *thread_main(void *unused) {
    (void)unused;
    omi_fp_enter();
    uint64_t seen = 0;
    pthread_mutex_lock(&pool.lock);
    while (!pool.stop) {
        if (pool.serial == seen || pool.slots == 0) {
            seen = pool.serial;
            pthread_cond_wait(&pool.wake, &pool.lock);
            continue;
        }
        seen          = pool.serial;
        omi_body body = pool.body;
        void *arg     = pool.arg;
        int64_t n     = pool.n;
        int id        = ++pool.joined;
        cancel        = pool.cancel;
        cut           = false;
        pool.slots--;
        pool.active++;
        pthread_mutex_unlock(&pool.lock);
        run_chunks(body, arg, n, id);
        pthread_mutex_lock(&pool.lock);
        pool.cut |= cut;
        if (--pool.active == 0) pthread_cond_signal(&pool.done);
    }
    pthread_mutex_unlock(&pool.lock);
    return NULL;
}

/* A forked child has the parent's bookkeeping but none of its threads: it starts its own. */
static void after_fork(void) {
    pthread_mutex_init(&pool.lock, NULL);
    pthread_cond_init(&pool.wake, NULL);
    pthread_cond_init(&pool.done, NULL);
    pool.started = pool.active = pool.slots = 0;
    pool.stop                               = false;
    atomic_store(&pool.busy, 0);
}

static void install_fork_handler(void) {
    pthread_atfork(NULL, NULL, after_fork);
}

static void start_threads(int want) {
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, install_fork_handler);
    while (pool.started < want &&
           omi_thread_create(&pool.threads[pool.started], NULL, thread_main, NULL) == 0)
        pool.started++;
}

void omi_pool_stop(void) {
    pthread_mutex_lock(&pool.lock);
    int n     = pool.started;
    pool.stop = true;
    pthread_cond_broadcast(&pool.wake);
    pthread_mutex_unlock(&pool.lock);
    for (int i = 0; i < n; i++)
        pthread_join(pool.threads[i], NULL);
    pool.started = 0;
    pool.stop    = false;
}

/* A caller's parallel-for gives no worker numbers: chunks draw one from a list, and wait when the
 * caller has more threads than there are numbers. */
typedef struct user_job {
    omi_body body;
    void *arg;
    const om_cancel *cancel;
    bool cut;
    pthread_mutex_t lock;
    pthread_cond_t freed;
    int n_ids;
    int ids[MAX_WORKERS];
} user_job;

static void user_body(void *arg, int64_t i) {
    user_job *j = arg;
    omi_fpenv e = omi_fp_enter();
    pthread_mutex_lock(&j->lock);
    while (j->n_ids == 0)
        pthread_cond_wait(&j->freed, &j->lock);
    int id = j->ids[--j->n_ids];
    pthread_mutex_unlock(&j->lock);
    // The thread may be one of the caller's own, with a flag and a call of its own.
    const om_cancel *own_flag = cancel;
    bool old = inside, own_held = held, own_cut = cut;
    inside = true;
    cancel = j->cancel;
    held = cut = false;
    if (!omi_cut_short()) j->body(j->arg, i, id);
    bool left_out = cut;
    inside        = old;
    cancel        = own_flag;
    held          = own_held;
    cut           = own_cut;
    pthread_mutex_lock(&j->lock);
    j->cut |= left_out;
    j->ids[j->n_ids++] = id;
    pthread_cond_signal(&j->freed);
    pthread_mutex_unlock(&j->lock);
    omi_fp_leave(e);
}

static void run_by_caller(int64_t n, omi_body body, void *arg) {
    user_job j = {.body   = body,
                  .arg    = arg,
                  .cancel = held ? NULL : cancel,
                  .lock   = PTHREAD_MUTEX_INITIALIZER,
                  .freed  = PTHREAD_COND_INITIALIZER,
                  .n_ids  = omi_workers()};
    for (int i = 0; i < j.n_ids; i++)
        j.ids[i] = j.n_ids - 1 - i;
    user_fn(user_ctx, n, user_body, &j);
    cut |= j.cut;
    pthread_cond_destroy(&j.freed);
    pthread_mutex_destroy(&j.lock);
}

static void run_inline(int64_t n, omi_body body, void *arg) {
    bool old = inside;
    inside   = true;
    for (int64_t i = 0; i < n && !omi_cut_short(); i++)
        body(arg, i, 0);
    inside = old;
}

void omi_parallel(int64_t n, omi_body body, void *arg) {
    if (user_fn && !inside && n > 1) {
        run_by_caller(n, body, arg);
        return;
    }
    int workers = n > 1 && !inside ? omi_workers() : 1;
    if (workers > n) workers = (int)n;
    int idle = 0;
    if (workers < 2 || !atomic_compare_exchange_strong(&pool.busy, &idle, 1)) {
        run_inline(n, body, arg);
        return;
    }
    pthread_mutex_lock(&pool.lock);
    start_threads(om_threads() - 1);
    pool.body   = body;
    pool.arg    = arg;
    pool.n      = n;
    pool.cancel = held ? NULL : cancel;
    pool.cut    = false;
    atomic_store_explicit(&pool.next, 0, memory_order_relaxed);
    pool.joined = 0;
    pool.slots  = workers - 1 < pool.started ? workers - 1 : pool.started;
    pool.serial++;
    pthread_cond_broadcast(&pool.wake);
    pthread_mutex_unlock(&pool.lock);

    run_chunks(body, arg, n, 0);

    pthread_mutex_lock(&pool.lock);
    pool.slots = 0; // late sleepers find nothing to join
    while (pool.active)
        pthread_cond_wait(&pool.done, &pool.lock);
    cut |= pool.cut;
    pthread_mutex_unlock(&pool.lock);
    atomic_store(&pool.busy, 0);
}
