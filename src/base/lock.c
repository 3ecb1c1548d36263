/*
 * lock.c -- see lock.h.
 */
#include "base/lock.h"

#include "base/os.h"

static pthread_mutex_t registry = PTHREAD_MUTEX_INITIALIZER;
static om_lock *first_lock, *last_lock;

static void before_fork(void) {
    pthread_mutex_lock(&registry);
    for (om_lock *l = first_lock; l; l = l->next)
        pthread_mutex_lock(&l->mutex);
}

static void after_fork_parent(void) {
    for (om_lock *l = last_lock; l; l = l->before)
        pthread_mutex_unlock(&l->mutex);
    pthread_mutex_unlock(&registry);
}

static void after_fork_child(void) {
    for (om_lock *l = first_lock; l; l = l->next)
        if (l->in_child) l->in_child(l->arg);
    after_fork_parent();
}

static void install_fork_handlers(void) {
    pthread_atfork(before_fork, after_fork_parent, after_fork_child);
}

void omi_lock_list(om_lock *l) {
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, install_fork_handlers);
    pthread_mutex_lock(&registry);
    if (!atomic_load(&l->listed)) {
        om_lock *before = last_lock;
        while (before && before->rank > l->rank)
            before = before->before;
        l->before                                  = before;
        l->next                                    = before ? before->next : first_lock;
        *(l->next ? &l->next->before : &last_lock) = l;
        *(before ? &before->next : &first_lock)    = l;
        atomic_store_explicit(&l->listed, true, memory_order_release);
    }
    pthread_mutex_unlock(&registry);
}

void omi_lock_init(om_lock *l, int rank, void (*in_child)(void *), void *arg) {
    *l = (om_lock)OM_LOCK(rank, in_child, arg);
    omi_lock_list(l);
}

void omi_lock_destroy(om_lock *l) {
    pthread_mutex_lock(&registry);
    if (atomic_load(&l->listed)) {
        *(l->next ? &l->next->before : &last_lock)    = l->before;
        *(l->before ? &l->before->next : &first_lock) = l->next;
    }
    pthread_mutex_unlock(&registry);
    pthread_mutex_destroy(&l->mutex);
}
