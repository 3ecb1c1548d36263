/*
 * engine.c -- backward: reverse post-order of a depth-first walk from the root (AR-11.1).
 *
 * The order of records depends on the graph alone, never on the order in which calls ran, because C
 * leaves the evaluation order of arguments to the compiler. Contributions to one tensor are added
 * in the order its consumers are visited, slots ascending, the first taken as is. Everything is on
 * explicit stacks: a chain of a million records must not exhaust the C stack.
 */
#include "autograd/engine.h"

#include <string.h>

#include "base/map.h"
#include "base/thread.h"
#include "base/vec.h"
#include "compute/move.h"

/* What the walk knows of one record. */
typedef struct visit {
    om_record *r;
    om_tensor **dy; /* n_out gradients, +1 each, NULL until one arrives */
} visit;

typedef struct wanted {
    om_tensor *t, *grad; /* grad +1 */
} wanted;

typedef struct walk {
    OM_VEC(visit *) order; /* post-order */
    om_map seen;           /* record address -> visit */
    wanted *wanted;        /* om_grad's inputs, NULL for backward */
    int n_wanted;
    bool into_leaves, retain;
} walk;

static OM_TLS walk *current;

bool omi_grad_wanted(const om_tensor *t) {
    for (int i = 0; current && i < current->n_wanted; i++)
        if (current->wanted[i].t == t) return true;
    return false;
}

static uint64_t key_of(const om_record *r) {
    return (uint64_t)(uintptr_t)r;
}

static visit *visit_new(walk *w, om_record *r) {
    visit *v = omi_calloc(sizeof *v + r->n_out * sizeof(om_tensor *));
    if (!v) return NULL;
    v->r  = r;
    v->dy = (om_tensor **)(void *)(v + 1);
    if (!omi_map_set(&w->seen, key_of(r), v)) {
        omi_free(v, sizeof *v + r->n_out * sizeof(om_tensor *));
        return NULL;
    }
    return v;
}

typedef struct step {
    visit *v;
    uint32_t next; /* input to look at next */
} step;

/* Fills w->order with every record reachable from root. */
static om_status collect(walk *w, om_record *root) {
    OM_VEC(step) stack = {0};
    om_status st       = OM_ERR_NOMEM;
    visit *v           = visit_new(w, root);
    if (!v || !OMI_PUSH(&stack, ((step){v, 0}))) goto done;
    while (stack.n) {
        step *top = &stack.v[stack.n - 1];
        if (top->next == top->v->r->n_in) {
            if (!OMI_PUSH(&w->order, top->v)) goto done;
            stack.n--;
            continue;
        }
        om_tensor *t = top->v->r->in[top->next++].t;
        if (!t || !t->record || omi_map_get(&w->seen, key_of(t->record))) continue;
        if (!(v = visit_new(w, t->record)) || !OMI_PUSH(&stack, ((step){v, 0}))) goto done;
    }
    st = OM_OK;
done:
    OMI_VEC_FREE(&stack);
    return st == OM_OK ? OM_OK : omi_pending_status;
}

static void walk_free(walk *w) {
    // Visits that never reached the order are in the map only.
    for (size_t i = 0; i < w->seen.cap; i++) {
        visit *v = w->seen.slots[i].value;
        if (!v) continue;
        for (uint32_t k = 0; k < v->r->n_out; k++)
            om_release(v->dy[k]);
        omi_free(v, sizeof *v + v->r->n_out * sizeof(om_tensor *));
    }
    OMI_VEC_FREE(&w->order);
    omi_map_free(&w->seen);
}

/* *slot = *slot + g, or g itself when first. A first term is taken as is and may be shared, so it
 * is copied before anything is added into it. */
static om_status add_term(om_tensor **slot, om_tensor *g) {
    if (!*slot) {
        *slot = om_retain(g);
        return OM_OK;
    }
    om_tensor *sum = *slot;
    bool own       = atomic_load(&sum->refs) == 1 && atomic_load(&sum->storage->refs) == 1 &&
               omi_buffer_writable(sum->storage->buf) && omi_contiguous(sum) && sum->offset == 0;
    if (!own) {
        om_tensor *copy = omi_new_like(sum);
        if (!copy) return omi_pending_status;
        om_view from = omi_view(sum), to = omi_view(copy);
        omi_copy(&from, &to);
        om_release(sum);
        *slot = sum = om_retain(copy);
    }
    om_view x = omi_view(g), y = omi_view(sum);
    omi_accumulate(&x, &y);
    return OM_OK;
}

/* The gradient of a leaf outlives the walk, so it must not share bytes with anything a user can
 * see. */
static om_status add_to_leaf(om_tensor *leaf, om_tensor *g) {
    if (!leaf->grad && !(leaf->grad = omi_calloc(sizeof *leaf->grad))) return omi_pending_status;
    // One reference, the scope's, and no other view of the bytes: nobody else has g.
    bool fresh =
        atomic_load(&g->refs) == 1 && atomic_load(&g->storage->refs) == 1 && omi_contiguous(g);
    if (!leaf->grad->grad && !fresh) {
        om_tensor *copy = omi_new_like(g);
        if (!copy) return omi_pending_status;
        om_view from = omi_view(g), to = omi_view(copy);
        omi_copy(&from, &to);
        g = copy;
    }
    return add_term(&leaf->grad->grad, g);
}

/* Hands dx of one input to whoever wants it. */
static om_status deliver(walk *w, om_tensor *t, om_tensor *g) {
    if (!omi_same_shape(t, g) || t->dtype != g->dtype)
        return omi_fail(OM_ERR_INTERNAL, "a gradient %s came for %s", OMI_T(g), OMI_T(t));
    for (int i = 0; i < w->n_wanted; i++)
        if (w->wanted[i].t == t) OM_TRY(add_term(&w->wanted[i].grad, g));
    if (t->record) {
        visit *v = omi_map_get(&w->seen, key_of(t->record));
        return v ? add_term(&v->dy[t->out_index], g) : OM_OK;
    }
    if (w->into_leaves && (t->flags & OM_T_GRAD)) return add_to_leaf(t, g);
    return OM_OK;
}

static om_status check_version(const om_record *r, const om_tensor *t, uint64_t version,
                               const char *what, uint32_t i) {
    uint64_t now = atomic_load(&t->storage->version);
    if (now == version) return OM_OK;
    return omi_fail(
        OM_ERR_STATE,
        "%s %u of %s, %s, was changed by %s after the operator saved it; clone it before "
        "the change",
        what, i, r->site.function ? r->site.function : "an operator", OMI_T(t),
        t->storage->writer ? t->storage->writer : "a write");
}

static om_status check_saved(const om_record *r) {
    for (uint32_t i = 0; i < r->n_in; i++) {
        bool saved = (r->save_mask & OM_SAVE_ALL_IN) == OM_SAVE_ALL_IN ||
                     (i < 15 && (r->save_mask & OM_SAVE_IN(i)));
        if (saved && r->in[i].t) OM_TRY(check_version(r, r->in[i].t, r->in[i].version, "input", i));
    }
    for (uint32_t i = 0; i < r->n_out; i++)
        if (r->saved[i].t)
            OM_TRY(check_version(r, r->saved[i].t, r->saved[i].version, "output", i));
    return OM_OK;
}

static om_status run_one(walk *w, visit *v) {
    om_record *r = v->r;
    bool any     = false;
    for (uint32_t i = 0; i < r->n_out; i++)
        any |= v->dy[i] != NULL;
    if (!any) return OM_OK; // nothing of the root's gradient came here
    if (r->used)
        return omi_fail(OM_ERR_STATE,
                        "backward went through %s a second time; set retain_graph in the first",
                        r->site.function ? r->site.function : "an operator");
    OM_TRY(check_saved(r));
    om_scope s     = om_scope_begin();
    om_tensor **dx = omi_calloc((r->n_in ? r->n_in : 1) * sizeof *dx);
    om_status st   = dx ? r->backward(r, v->dy, dx) : omi_pending_status;
    if (st == OM_OK) st = omi_check_cancel();
    if (OM_UNLIKELY(omi_backward_watch != NULL) && st == OM_OK)
        st = omi_backward_watch(r, v->dy, dx);
    bool was = omi_hold_cancel(true); // gradients of leaves outlive the call
    for (uint32_t i = 0; st == OM_OK && i < r->n_in; i++)
        if (dx[i] && omi_needs(r, i)) st = deliver(w, r->in[i].t, dx[i]);
    omi_hold_cancel(was);
    if (dx) omi_free(dx, (r->n_in ? r->n_in : 1) * sizeof *dx);
    om_scope_end(s);
    for (uint32_t i = 0; i < r->n_out; i++) {
        om_release(v->dy[i]);
        v->dy[i] = NULL;
    }
    if (!w->retain) {
        r->used = 1;
        omi_record_free_saved(r);
    }
    return st == OM_OK ? om_pending() : st;
}

static om_tensor *root_gradient(om_tensor *root, om_tensor *given) {
    if (given) {
        if (!omi_same_shape(given, root) || given->dtype != root->dtype)
            OM_FAIL_NULL(OM_ERR_SHAPE, "the gradient %s does not fit the root %s", OMI_T(given),
                         OMI_T(root));
        return given;
    }
    if (omi_numel(root) != 1)
        OM_FAIL_NULL(OM_ERR_SHAPE,
                     "%s has several elements; reduce it, or give its gradient (om_backward_with)",
                     OMI_T(root));
    return om_full(1, (om_dtype)root->dtype, root->rank, root->shape);
}

static om_status check_root(om_tensor *root) {
    OM_TRY(omi_check_arg(root, "the root"));
    if (omi_traced(root))
        return omi_fail_trace(
            OM_TRACE_INVALID_USAGE,
            "%s is traced; tracing is for inference graphs, run backward outside it", OMI_T(root));
    if (!root->record && !(root->flags & OM_T_GRAD))
        return omi_fail(
            OM_ERR_STATE,
            "%s does not depend on anything that needs a gradient (om_set_requires_grad)",
            OMI_T(root));
    return OM_OK;
}

static om_status run(walk *w, om_tensor *root, om_tensor *given) {
    OM_TRY(check_root(root));
    om_scope s   = om_scope_begin();
    walk *was    = current;
    bool off     = omi_no_grad();
    om_tensor *g = root_gradient(root, given);
    om_status st = g ? OM_OK : omi_pending_status;
    current      = w;
    if (st == OM_OK && root->record) st = collect(w, root->record);
    if (st == OM_OK) st = deliver(w, root, g);
    for (size_t i = w->order.n; st == OM_OK && i-- > 0;) {
        st = omi_check_cancel();
        if (st == OM_OK) st = run_one(w, w->order.v[i]);
    }
    walk_free(w);
    current = was;
    omi_grad_restore(off);
    om_scope_end(s);
    return st;
}

om_status om_backward(om_tensor *root) {
    OMI_ENTER("om_backward");
    walk w = {.into_leaves = true};
    return run(&w, root, NULL);
}

om_status om_backward_with(om_tensor *root, const om_backward_opts *opts) {
    OMI_ENTER("om_backward_with");
    walk w = {.into_leaves = true, .retain = opts && opts->retain_graph};
    return run(&w, root, opts ? opts->grad : NULL);
}

om_status om_grad(om_tensor *root, int n, om_tensor *const *inputs, om_tensor **out,
                  const om_backward_opts *opts) {
    OMI_ENTER("om_grad");
    if (omi_failed()) return omi_pending_status;
    if (n < 1 || !inputs || !out) return omi_fail(OM_ERR_ARG, "no inputs to differentiate by");
    for (int i = 0; i < n; i++) {
        out[i] = NULL;
        OM_TRY(omi_check_arg(inputs[i], "an input"));
    }
    walk w   = {.retain = opts && opts->retain_graph, .n_wanted = n};
    w.wanted = omi_calloc((size_t)n * sizeof *w.wanted);
    if (!w.wanted) return omi_pending_status;
    for (int i = 0; i < n; i++)
        w.wanted[i].t = inputs[i];
    om_status st = run(&w, root, opts ? opts->grad : NULL);
    for (int i = 0; i < n; i++) {
        if (st == OM_OK && w.wanted[i].grad && !(out[i] = omi_file_owned(w.wanted[i].grad)))
            st = omi_pending_status;
        else if (st != OM_OK)
            om_release(w.wanted[i].grad);
    }
    omi_free(w.wanted, (size_t)n * sizeof *w.wanted);
    return st;
}
