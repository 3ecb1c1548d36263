/*
 * scope.c -- scopes are marks in a per-thread stack of results (docs/ownership.md).
 *
 * A tensor notes where it lies, so that one from the middle is taken at once: garbage collectors of
 * other languages end values in any order. It leaves a hole; when most are holes, they are closed.
 * One that is filed twice, or by two threads, is looked for.
 *
 * Ending a scope releases everything above its mark, so an inner scope that a `break` or `return`
 * left open heals itself. Serials tell a stale mark (an om_scope used twice) from a live one.
 */
#include "tensor/scope.h"

#include <string.h>

#define ROOT_WARN 4096

typedef omi_scope_mark mark;
typedef omi_scope_stack stack;

#define FILED_TWICE UINT32_MAX

static uint32_t place_noted(const om_tensor *t) {
    return atomic_load_explicit(&t->filed, memory_order_relaxed);
}

/* Threads that share t may note over each other: a place is only believed when t lies there. */
static void note_place(om_tensor *t, size_t i) {
    uint32_t at = place_noted(t) ? FILED_TWICE : (uint32_t)i + 1;
    atomic_store_explicit(&t->filed, at, memory_order_relaxed);
}

static void forget_place(om_tensor *t) {
    if (place_noted(t) != FILED_TWICE) atomic_store_explicit(&t->filed, 0, memory_order_relaxed);
}

static void release_above(stack *s, size_t height) {
    while (s->n > height) {
        om_tensor *t = s->v[--s->n];
        if (t) {
            forget_place(t);
            om_release(t);
        } else
            s->holes--;
    }
}

void om_scope_drain(void) {
    stack *s = &omi_state()->scopes;
    if (omi_pending_status != OM_OK && s->n)
        omi_log(OM_LOG_WARN, "a root scope was drained while the error %s was pending",
                om_status_name(omi_pending_status));
    release_above(s, 0);
    s->n_marks = 0;
    s->warned  = false;
    omi_free(s->v, s->cap * sizeof *s->v);
    omi_free(s->marks, s->cap_marks * sizeof *s->marks);
    s->v     = NULL;
    s->marks = NULL;
    s->cap = s->cap_marks = s->holes = 0;
}

static bool grow(stack *s) {
    if (!omi_state_at_exit(om_scope_drain)) return false;
    size_t cap    = s->cap ? s->cap * 2 : 64;
    om_tensor **v = omi_realloc(s->v, s->cap * sizeof *v, cap * sizeof *v);
    if (!v) return false;
    s->v   = v;
    s->cap = cap;
    return true;
}

om_tensor *omi_file_owned(om_tensor *t) {
    stack *s = &omi_state()->scopes;
    if (!t) return NULL;
    if (OM_UNLIKELY(s->n == s->cap) && !grow(s)) {
        om_release(t);
        return NULL;
    }
    note_place(t, s->n);
    s->v[s->n++] = t;
    if (OM_UNLIKELY(s->n == ROOT_WARN && s->n_marks == 0 && !s->warned)) {
        s->warned = true;
        omi_log(OM_LOG_WARN, "%d tensors are in this thread's root scope; open a scope per step",
                ROOT_WARN);
    }
    return t;
}

om_tensor *omi_file(om_tensor *t) {
    return omi_file_owned(om_retain(t));
}

om_scope om_scope_begin(void) {
    stack *s        = &omi_state()->scopes;
    uint32_t serial = ++s->next_serial;
    if (s->n_marks == s->cap_marks) {
        size_t cap = s->cap_marks ? s->cap_marks * 2 : 16;
        bool ends  = omi_state_at_exit(om_scope_drain);
        mark *m    = ends ? omi_realloc(s->marks, s->cap_marks * sizeof *m, cap * sizeof *m) : NULL;
        // Without memory there is no mark: what follows is filed in the scope around it.
        if (!m) return (om_scope){UINT32_MAX, serial};
        s->marks     = m;
        s->cap_marks = cap;
    }
    s->marks[s->n_marks++] = (mark){(uint32_t)s->n, serial};
    return (om_scope){(uint32_t)(s->n_marks - 1), serial};
}

static bool valid(const stack *s, om_scope c) {
    return c.mark < s->n_marks && s->marks[c.mark].serial == c.serial;
}

static void end_scope(om_scope c, om_tensor *keep) {
    stack *s = &omi_state()->scopes;
    if (!valid(s, c)) return;
    size_t height = s->marks[c.mark].height;
    s->n_marks    = c.mark;
    if (keep && s->n > height) {
        // The kept tensor takes the first slot, so returning one needs no memory.
        om_tensor *first = s->v[height];
        s->v[height]     = om_retain(keep);
        release_above(s, height + 1);
        if (first)
            forget_place(first);
        else
            s->holes--;
        note_place(keep, height);
        om_release(first);
    } else
        release_above(s, height);
}

om_status om_scope_end(om_scope c) {
    end_scope(c, NULL);
    return omi_pending_status;
}

om_tensor *om_scope_return(om_scope c, om_tensor *t) {
    // With nothing above the mark, t is from outside and stays where it is.
    end_scope(c, omi_alive(t) ? t : NULL);
    return omi_failed() ? NULL : t;
}

/* Where t lies in this thread's stack; s->n: nowhere. */
static size_t place_of(const stack *s, om_tensor *t) {
    size_t at = place_noted(t);
    if (at == 0) return s->n;
    if (at != FILED_TWICE && at <= s->n && s->v[at - 1] == t) return at - 1;
    for (size_t i = s->n; i-- > 0;)
        if (s->v[i] == t) return i;
    return s->n;
}

static void close_holes(stack *s) {
    size_t to = 0, k = 0;
    for (size_t i = 0; i < s->n; i++) {
        for (; k < s->n_marks && s->marks[k].height == i; k++)
            s->marks[k].height = (uint32_t)to;
        om_tensor *t = s->v[i];
        if (!t) continue;
        forget_place(t);
        if (!place_noted(t)) note_place(t, to);
        s->v[to++] = t;
    }
    for (; k < s->n_marks; k++)
        s->marks[k].height = (uint32_t)to;
    s->n     = to;
    s->holes = 0;
}

om_tensor *om_take(om_tensor *t) {
    if (!t) return NULL;
    stack *s      = &omi_state()->scopes;
    size_t i      = place_of(s, t);
    size_t bottom = s->n_marks ? s->marks[s->n_marks - 1].height : 0;
    if (i == s->n) return om_retain(t); // not filed here: a reference of its own
    forget_place(t);
    s->v[i] = NULL;
    s->holes++;
    for (; s->n > bottom && !s->v[s->n - 1]; s->n--)
        s->holes--;
    if (s->holes > 32 && s->holes > s->n / 2) close_holes(s);
    return t;
}

void om_drop(om_tensor *t) {
    om_release(om_take(t));
}
