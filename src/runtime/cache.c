/*
 * cache.c -- the plans of a session: see cache.h.
 */
#include "runtime/cache.h"

#include <errno.h>
#include <stdatomic.h>
#include <string.h>
#include <time.h>

#include "base/thread.h"

#define IDLE_RUNS 4 /* kept per plan: as many threads run it without allocating */

static void free_entry(om_entry *e) {
    while (e->idle) {
        om_run *r = e->idle;
        e->idle   = r->next;
        om_run_free(r);
    }
    omi_plan_release(e->plan);
    omi_free(e->key, e->key_bytes);
    omi_free(e, sizeof *e);
}

/* In a forked child nobody goes on building the plans that other threads had begun, and nobody
 * waits. Plans that they were running stay pinned: whose a reference is cannot be told. */
static void cache_in_child(void *arg) {
    om_cache *c = arg;
    for (om_entry **at = &c->entries, *e; (e = *at) != NULL;)
        if (e->plan)
            at = &e->next;
        else {
            *at = e->next;
            c->n--;
            free_entry(e);
        }
    c->running = 0;
    pthread_cond_init(&c->changed, NULL);
}

om_status omi_cache_init(om_cache *c, uint32_t bound) {
    c->bound = bound;
    if (pthread_cond_init(&c->changed, NULL)) return omi_fail_nomem(sizeof c->changed);
    omi_lock_init(&c->lock, OM_RANK_SESSION, cache_in_child, c);
    return OM_OK;
}

void omi_cache_widen(om_cache *c, uint32_t parts) {
    if (parts > 1) c->bound = c->bound > UINT32_MAX / parts ? UINT32_MAX : c->bound * parts;
}

void omi_cache_clear(om_cache *c) {
    while (c->entries) {
        om_entry *e = c->entries;
        c->entries  = e->next;
        free_entry(e);
    }
    pthread_cond_destroy(&c->changed);
    omi_lock_destroy(&c->lock);
}

/* ---- keys ------------------------------------------------------------------------------------ */

static size_t value_bytes(const om_program *p, uint32_t i, const om_feed *f) {
    int64_t n = 1;
    for (int k = 0; k < f->rank; k++)
        n *= f->shape[k];
    if (!p->by_value[i] || !f->data || n > OM_FOLD_LIMIT) return 0;
    return (size_t)n * om_dtype_size((om_dtype)p->values[p->inputs[i]].dtype);
}

/* Rank, sizes and, where they decide sizes, contents of each input. Types are the graph's. The
 * sizes were checked by omi_bind_inputs. */
static uint8_t *make_plan_key(const om_program *p, const om_feed *feeds, size_t *bytes) {
    size_t n = 1;
    for (uint32_t i = 0; i < p->n_inputs; i++)
        n += 2 + (size_t)feeds[i].rank * sizeof(int64_t) + value_bytes(p, i, &feeds[i]);
    uint8_t *key = omi_alloc(n), *to = key;
    if (!key) return NULL;
    for (uint32_t i = 0; i < p->n_inputs; i++) {
        const om_feed *f = &feeds[i];
        size_t sizes = (size_t)f->rank * sizeof(int64_t), v = value_bytes(p, i, f);
        *to++ = (uint8_t)f->rank;
        *to++ = f->data != NULL && p->by_value[i];
        memcpy(to, f->shape, sizes);
        to += sizes;
        if (v) memcpy(to, f->data, v);
        to += v;
    }
    *to    = 0;
    *bytes = n;
    return key;
}

static om_entry *find_entry(om_cache *c, const om_program *p, const uint8_t *key, size_t bytes) {
    for (om_entry *e = c->entries; e; e = e->next)
        if (e->program == p && e->key_bytes == bytes && memcmp(e->key, key, bytes) == 0) return e;
    return NULL;
}

static void unlink_entry(om_cache *c, om_entry *e) {
    om_entry **at = &c->entries;
    while (*at != e)
        at = &(*at)->next;
    *at = e->next;
    c->n--;
}

/* Entries over the bound that nobody runs, oldest first; the caller frees the list after unlocking.
 */
static om_entry *evict(om_cache *c) {
    om_entry *out = NULL;
    while (c->n > c->bound) {
        om_entry *old = NULL;
        for (om_entry *e = c->entries; e; e = e->next)
            if (e->plan && atomic_load(&e->plan->refs) == 1 + e->n_idle &&
                (!old || e->used < old->used))
                old = e;
        if (!old) break;
        unlink_entry(c, old);
        c->evictions++;
        old->next = out;
        out       = old;
    }
    return out;
}

/* ---- plans ----------------------------------------------------------------------------------- */

/* Waits for a change, looking at the cancel flag now and then. Called with the lock. */
static om_status wait_changed(om_cache *c) {
    struct timespec t;
    clock_gettime(CLOCK_REALTIME, &t);
    t.tv_nsec += 50 * 1000 * 1000;
    if (t.tv_nsec >= 1000000000) t.tv_sec++, t.tv_nsec -= 1000000000;
    pthread_cond_timedwait(&c->changed, &c->lock.mutex, &t);
    return omi_check_cancel();
}

/* The lock is held on entry and exit. Takes key. */
static om_plan *build_entry(om_cache *c, uint8_t *key, size_t bytes, om_program *p,
                            const om_feed *feeds, int workers, int64_t limit) {
    om_entry *e = omi_calloc(sizeof *e), *gone = NULL;
    if (!e) return omi_free(key, bytes), NULL;
    e->key       = key;
    e->key_bytes = bytes;
    e->program   = p;
    e->next      = c->entries;
    c->entries   = e;
    c->n++;
    c->builds++;
    omi_unlock(&c->lock);
    om_plan *plan = omi_plan_new(p, feeds, workers, limit);
    omi_lock(&c->lock);
    if (plan) {
        e->plan = plan;
        e->used = ++c->clock;
        omi_plan_retain(plan);
        gone = evict(c);
    } else {
        unlink_entry(c, e);
        e->next = NULL;
        gone    = e;
    }
    pthread_cond_broadcast(&c->changed);
    omi_unlock(&c->lock);
    while (gone) {
        om_entry *next = gone->next;
        free_entry(gone);
        gone = next;
    }
    omi_lock(&c->lock);
    return plan;
}

om_plan *omi_cache_plan(om_cache *c, om_program *p, const om_feed *feeds, int workers,
                        int64_t limit) {
    size_t bytes = 0;
    if (!p->inner && omi_bind_inputs(p->graph, feeds) != OM_OK) return NULL;
    uint8_t *key = make_plan_key(p, feeds, &bytes);
    if (!key) return NULL;
    om_plan *plan = NULL;
    omi_lock(&c->lock);
    for (;;) {
        om_entry *e = find_entry(c, p, key, bytes);
        if (!e) {
            plan = build_entry(c, key, bytes, p, feeds, workers, limit);
            key  = NULL;
            break;
        }
        if (e->plan) {
            e->used = ++c->clock;
            plan    = omi_plan_retain(e->plan);
            break;
        }
        if (wait_changed(c) != OM_OK) break;
    }
    omi_unlock(&c->lock);
    omi_free(key, bytes);
    return plan;
}

/* ---- idle runs ------------------------------------------------------------------------------- */

static om_entry *entry_of(om_cache *c, const om_plan *plan) {
    for (om_entry *e = c->entries; e; e = e->next)
        if (e->plan == plan) return e;
    return NULL;
}

om_run *omi_cache_take_run(om_cache *c, om_plan *plan) {
    om_run *r = NULL;
    omi_lock(&c->lock);
    om_entry *e = entry_of(c, plan);
    if (e && e->idle) {
        r       = e->idle;
        e->idle = r->next;
        e->n_idle--;
    }
    omi_unlock(&c->lock);
    return r ? r : omi_run_new(plan, false);
}

void omi_cache_give_run(om_cache *c, om_run *r) {
    omi_lock(&c->lock);
    om_entry *e = entry_of(c, r->plan);
    if (e && e->n_idle < IDLE_RUNS) {
        r->next = e->idle;
        e->idle = r;
        e->n_idle++;
        r = NULL;
    }
    omi_unlock(&c->lock);
    om_run_free(r);
}
