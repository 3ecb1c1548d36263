/*
 * state.c -- see state.h.
 */
#include "base/state.h"

#include <pthread.h>
#include "base/alloc.h"
#include "base/os.h"

_Thread_local om_state *omi_state_of_thread;

#define NO_MEMORY                                                                                  \
    {                                                                                              \
        .pending_status = OM_ERR_NOMEM, .pending = {                                               \
            .status  = OM_ERR_NOMEM,                                                               \
            .where   = "onemodel",                                                                 \
            .message = "out of memory (the state of a thread)"                                     \
        }                                                                                          \
    }
om_state omi_state_none              = NO_MEMORY;
static const om_state untouched_none = NO_MEMORY;

static pthread_key_t state_key;
static pthread_once_t state_once = PTHREAD_ONCE_INIT;
static bool state_key_made;

static void end_of_thread(void *s) {
    // The key's value is gone by now; other destructors may already have made another state.
    if (omi_state_of_thread == s) omi_state_end();
}
static void make_state_key(void) {
    state_key_made = pthread_key_create(&state_key, end_of_thread) == 0;
}

void omi_state_adopt(om_state *s) {
    pthread_once(&state_once, make_state_key);
    if (state_key_made) pthread_setspecific(state_key, s);
    omi_state_of_thread = s;
}

om_state *omi_state_first(void) {
    om_state *s = omi_state_new();
    if (s) return omi_state_adopt(s), s;
    omi_state_none = untouched_none;
    return &omi_state_none;
}

bool omi_state_at_exit(void (*fn)(void)) {
    om_state *s = omi_state();
    for (int i = 0; i < s->n_exit_fns; i++)
        if (s->exit_fns[i] == fn) return true;
    if (!omi_state_lasts(s) || s->n_exit_fns == OMI_EXIT_FNS) return false;
    s->exit_fns[s->n_exit_fns++] = fn;
    return true;
}

void omi_state_end(void) {
    om_state *s = omi_state_of_thread;
    if (!s) return;
    while (s->n_exit_fns)
        s->exit_fns[--s->n_exit_fns]();
    omi_trim_thread();
    if (state_key_made) pthread_setspecific(state_key, NULL);
    omi_state_of_thread = NULL;
    omi_state_drop(s);
}
