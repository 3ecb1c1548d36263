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

#include "base/alloc.h"
#include "base/dtype.h"
#include "base/fpenv.h"
#include "base/lock.h"
#include "base/os.h"

#define MAX_WORKERS 256

static int real_create(void *t, const void *attr, void *(*fn)(void *), void *arg) {
    return pthread_create((pthread_t *)t, (const pthread_attr_t *)attr, fn, arg);
}
int (*omi_thread_create)(void *, const void *, void *(*)(void *), void *) = real_create;

void (*omi_pool_joined)(void);

static void pool_in_child(void *);
static struct pool {
    om_lock lock;
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
    uint8_t cut;             /* OMI_CUT_*: a worker left work out               */
    int slots;               /* workers that may still join this job         */
    int joined;              /* worker ids handed out, the caller has 0      */
    int active;              /* threads inside the job                       */
} pool = {.lock = OM_LOCK(OM_RANK_POOL, pool_in_child, NULL),
          .wake = PTHREAD_COND_INITIALIZER,
          .done = PTHREAD_COND_INITIALIZER};

static om_parallel_for_fn user_fn;
static void *user_ctx;

/* ---- cancel -------------------------------------------------------------------------------- */

void om_set_cancel(om_cancel *c) {
    om_state *s = omi_state();
    if (omi_state_lasts(s)) s->cancel = c;
}
void om_cancel_raise(om_cancel *c) {
    __atomic_store_n(&c->raised, 1, __ATOMIC_RELAXED);
}
void om_cancel_lower(om_cancel *c) {
    __atomic_store_n(&c->raised, 0, __ATOMIC_RELAXED);
}
bool om_cancel_raised(const om_cancel *c) {
    return __atomic_load_n(&c->raised, __ATOMIC_RELAXED) != 0;
}

OM_INLINE bool cancelled(const om_state *s) {
    return s->cancel && !s->held && om_cancel_raised(s->cancel);
}
bool omi_cancelled(void) {
    return cancelled(omi_state());
}
bool omi_cut_short(void) {
    om_state *s = omi_state();
    if (OM_LIKELY(!cancelled(s))) return false;
    s->cut |= OMI_CUT_CANCEL;
    return true;
}
om_status omi_check_cancel(void) {
    om_state *s = omi_state();
    if (OM_LIKELY(!s->cut && !cancelled(s))) return OM_OK;
    bool no_type = s->cut & OMI_CUT_TYPE;
    s->cut       = 0;
    if (no_type)
        return omi_fail(OM_ERR_INTERNAL, "a computation met an element type it has no code for");
    return omi_fail(OM_ERR_CANCELLED, "the cancel flag was raised");
}
void omi_no_type(void) {
    omi_state()->cut |= OMI_CUT_TYPE;
}
bool omi_hold_cancel(bool on) {
    om_state *s = omi_state();
    bool was    = s->held;
    s->held     = on;
    return was;
}

/* ---- sizes --------------------------------------------------------------------------------- */

static int default_threads(void) {
    static _Atomic int cached;
    int n = atomic_load_explicit(&cached, memory_order_relaxed);
    if (!n) {
        n = (int)omi_min64(omi_os_processors(), MAX_WORKERS);
        atomic_store_explicit(&cached, n, memory_order_relaxed);
    }
    return n;
}

int om_threads(void) {
    return pool.wanted ? pool.wanted : default_threads();
}

int omi_workers(void) {
    int n = om_threads(), cap = omi_state()->worker_cap;
    return cap && cap < n ? cap : n;
}

int omi_set_worker_cap(int cap) {
    om_state *s   = omi_state();
    int old       = s->worker_cap;
    s->worker_cap = cap;
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

static void run_chunks(om_state *s, omi_body body, void *arg, int64_t n, int worker) {
    s->inside = true;
    for (;;) {
        int64_t i = atomic_fetch_add_explicit(&pool.next, 1, memory_order_relaxed);
        if (i >= n || omi_cut_short()) break;
        body(arg, i, worker);
    }
    s->inside = false;
}

static void *thread_main(void *arg_state) {
    om_state *s = arg_state;
    omi_state_adopt(s);
    omi_fp_enter();
    uint64_t seen = 0;
    omi_lock(&pool.lock);
    while (!pool.stop) {
        if (pool.serial == seen || pool.slots == 0) {
            seen = pool.serial;
            pthread_cond_wait(&pool.wake, &pool.lock.mutex);
            continue;
        }
        seen          = pool.serial;
        omi_body body = pool.body;
        void *arg     = pool.arg;
        int64_t n     = pool.n;
        int id        = ++pool.joined;
        s->cancel     = pool.cancel;
        s->cut        = 0;
        pool.slots--;
        pool.active++;
        omi_unlock(&pool.lock);
        if (OM_UNLIKELY(omi_pool_joined != NULL)) omi_pool_joined();
        run_chunks(s, body, arg, n, id);
        omi_lock(&pool.lock);
        pool.cut |= s->cut;
        if (--pool.active == 0) pthread_cond_signal(&pool.done);
    }
    omi_unlock(&pool.lock);
    return NULL;
}

/* A forked child has the parent's bookkeeping but none of its threads: it starts its own. */
static void pool_in_child(void *unused) {
    (void)unused;
    pthread_cond_init(&pool.wake, NULL);
    pthread_cond_init(&pool.done, NULL);
    pool.started = pool.active = pool.slots = 0;
    pool.stop                               = false;
    atomic_store(&pool.busy, 0);
}

/* A worker's state is made here, where a failure only means one worker less. */
static void start_threads(int want) {
    while (pool.started < want) {
        om_state *s = omi_state_new();
        if (!s) break;
        omi_signals old = omi_os_block_signals();
        int failed      = omi_thread_create(&pool.threads[pool.started], NULL, thread_main, s);
        omi_os_restore_signals(&old);
        if (failed) {
            omi_state_drop(s);
            break;
        }
        pool.started++;
    }
}

void om_shutdown(void) {
    omi_pool_stop();
    omi_state_end();
    omi_trim_kept();
}

void omi_pool_stop(void) {
    omi_lock(&pool.lock);
    int n     = pool.started;
    pool.stop = true;
    pthread_cond_broadcast(&pool.wake);
    omi_unlock(&pool.lock);
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
    uint8_t cut;
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
    om_state *s           = omi_state();
    const om_cancel *flag = s->cancel;
    bool old = s->inside, own_held = s->held;
    uint8_t own_cut = s->cut, left_out;
    s->inside       = true;
    s->cancel       = j->cancel;
    s->held         = false;
    s->cut          = 0;
    if (!omi_cut_short()) j->body(j->arg, i, id);
    left_out  = s->cut;
    s->inside = old;
    s->cancel = flag;
    s->held   = own_held;
    s->cut    = own_cut;
    pthread_mutex_lock(&j->lock);
    j->cut |= left_out;
    j->ids[j->n_ids++] = id;
    pthread_cond_signal(&j->freed);
    pthread_mutex_unlock(&j->lock);
    omi_fp_leave(e);
}

static void run_by_caller(om_state *s, int64_t n, omi_body body, void *arg) {
    user_job j = {.body   = body,
                  .arg    = arg,
                  .cancel = s->held ? NULL : s->cancel,
                  .lock   = PTHREAD_MUTEX_INITIALIZER,
                  .freed  = PTHREAD_COND_INITIALIZER,
                  .n_ids  = omi_workers()};
    for (int i = 0; i < j.n_ids; i++)
        j.ids[i] = j.n_ids - 1 - i;
    user_fn(user_ctx, n, user_body, &j);
    s->cut |= j.cut;
    pthread_cond_destroy(&j.freed);
    pthread_mutex_destroy(&j.lock);
}

static void run_inline(om_state *s, int64_t n, omi_body body, void *arg) {
    bool old  = s->inside;
    s->inside = true;
    for (int64_t i = 0; i < n && !omi_cut_short(); i++)
        body(arg, i, 0);
    s->inside = old;
}

void omi_parallel(int64_t n, omi_body body, void *arg) {
    om_state *s = omi_state();
    if (user_fn && !s->inside && n > 1) {
        run_by_caller(s, n, body, arg);
        return;
    }
    int workers = n > 1 && !s->inside ? omi_workers() : 1;
    if (workers > n) workers = (int)n;
    int idle = 0;
    if (workers < 2 || !atomic_compare_exchange_strong(&pool.busy, &idle, 1)) {
        run_inline(s, n, body, arg);
        return;
    }
    omi_lock(&pool.lock);
    start_threads(om_threads() - 1);
    pool.body   = body;
    pool.arg    = arg;
    pool.n      = n;
    pool.cancel = s->held ? NULL : s->cancel;
    pool.cut    = 0;
    atomic_store_explicit(&pool.next, 0, memory_order_relaxed);
    pool.joined = 0;
    pool.slots  = workers - 1 < pool.started ? workers - 1 : pool.started;
    pool.serial++;
    pthread_cond_broadcast(&pool.wake);
    omi_unlock(&pool.lock);

    run_chunks(s, body, arg, n, 0);

    omi_lock(&pool.lock);
    pool.slots = 0; // late sleepers find nothing to join
    while (pool.active)
        pthread_cond_wait(&pool.done, &pool.lock.mutex);
    s->cut |= pool.cut;
    omi_unlock(&pool.lock);
    atomic_store(&pool.busy, 0);
}
