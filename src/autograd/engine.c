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
#include "base/opts.h"
#include "base/thread.h"
#include "base/vec.h"
#include "compute/move.h"
#include "tensor/scope.h"

/* What the walk knows of one record. */
typedef struct visit {
    om_record *r;
    om_tensor **dy; /* n_out gradients, +1 each, NULL until one arrives */
} visit;

/* An input of om_grad: a leaf's slot, or an output of a record. */
typedef struct wanted {
    const om_grad_slot *leaf;
    const om_record *record;
    uint32_t out_index;
    om_tensor *grad; /* +1 */
} wanted;

/* The new gradient of a leaf: the old one and what came, handed over when the whole walk has gone
 * well, so that a failure leaves every leaf as it was. */
typedef omi_leaf_grad pending;

typedef struct walk {
    OM_VEC(visit *) order; /* post-order */
    om_map seen;           /* record address -> visit */
    wanted *wanted;        /* om_grad's inputs, NULL for backward */
    int n_wanted;
    omi_leaf_grads leaves; /* in the order they were met */
    om_map leaf_at;        /* slot address -> place in leaves + 1 */
    bool into_leaves, retain;
    omi_leaf_grads *apart; /* gets the gradients instead of the leaves, which begin from nothing */
} walk;

static uint64_t key_of(const void *r) {
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
    atomic_fetch_add_explicit(&r->refs, 1,
                              memory_order_relaxed); // edges that led here may go first
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
        om_record *from = top->v->r->in[top->next++].record;
        if (!from || omi_map_get(&w->seen, key_of(from))) continue;
        if (!(v = visit_new(w, from)) || !OMI_PUSH(&stack, ((step){v, 0}))) goto done;
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
        om_record *r = v->r;
        omi_free(v, sizeof *v + r->n_out * sizeof(om_tensor *));
        omi_record_release(r);
    }
    omi_leaf_grads_free(&w->leaves);
    omi_map_free(&w->leaf_at);
    OMI_VEC_FREE(&w->order);
    omi_map_free(&w->seen);
}

void omi_leaf_grads_free(omi_leaf_grads *l) {
    for (size_t i = 0; i < l->n; i++) {
        om_tensor *dead = NULL;
        om_release(l->v[i].grad);
        omi_grad_slot_release(l->v[i].slot, &dead);
        omi_release_list(dead);
    }
    OMI_VEC_FREE(l);
}

static om_tensor *copy_of(om_tensor *g) {
    om_tensor *copy = omi_new_like(g);
    if (!copy) return NULL;
    om_view from = omi_view(g), to = omi_view(copy);
    omi_copy(&from, &to);
    return copy;
}

/* Is the one reference all there is, so that writing into g changes nothing that anyone can see? */
static bool alone(const om_tensor *g) {
    return atomic_load(&g->refs) == 1 && atomic_load(&g->storage->refs) == 1 &&
           omi_buffer_writable(g->storage->buf) && omi_contiguous(g) && g->offset == 0;
}

om_tensor *omi_grad_like(om_tensor *dy) {
    // Whoever watches compares the two.
    return alone(dy) && !omi_backward_watch ? dy : omi_new_like(dy);
}

/* *slot = *slot + g, or g itself when first. A first term is taken as is and may be shared, so it
 * is copied before anything is added into it. */
om_status omi_add_term(om_tensor **slot, om_tensor *g) {
    if (!*slot) {
        *slot = om_retain(g);
        return OM_OK;
    }
    om_tensor *sum = *slot;
    if (!alone(sum)) {
        om_tensor *copy = copy_of(sum);
        if (!copy) return omi_pending_status;
        om_release(sum);
        *slot = sum = om_retain(copy);
    }
    om_view x = omi_view(g), y = omi_view(sum);
    omi_accumulate(&x, &y);
    return OM_OK;
}

/* What becomes the gradient of a leaf in this walk; it begins with the one that is there. */
static pending *pending_of(walk *w, om_grad_slot *slot) {
    uintptr_t at = (uintptr_t)omi_map_get(&w->leaf_at, key_of(slot));
    if (at) return &w->leaves.v[at - 1];
    pending p = {.slot = slot};
    if (slot->grad && !w->apart && !(p.grad = om_retain(copy_of(slot->grad)))) return NULL;
    union {
        uintptr_t n;
        void *p;
    } place = {.n = w->leaves.n + 1};
    if (!omi_map_set(&w->leaf_at, key_of(slot), place.p) || !OMI_PUSH(&w->leaves, p))
        return om_release(p.grad), NULL;
    atomic_fetch_add_explicit(&slot->refs, 1, memory_order_relaxed);
    return &w->leaves.v[w->leaves.n - 1];
}

/* The gradient of a leaf outlives the walk, so it must not share bytes with anything a user can
 * see. */
static om_status add_to_leaf(walk *w, om_grad_slot *slot, om_tensor *g) {
    pending *p = pending_of(w, slot);
    if (!p) return omi_pending_status;
    // One reference, the scope's, and no other view of the bytes: nobody else has g.
    bool fresh =
        atomic_load(&g->refs) == 1 && atomic_load(&g->storage->refs) == 1 && omi_contiguous(g);
    if (!p->grad && !fresh && !(g = copy_of(g))) return omi_pending_status;
    return omi_add_term(&p->grad, g);
}

/* Nothing here can fail. */
static void commit(walk *w) {
    for (size_t i = 0; i < w->leaves.n; i++) {
        pending *p = &w->leaves.v[i];
        if (!p->grad) continue;
        om_tensor *old = p->slot->grad;
        p->slot->grad  = p->grad;
        p->grad        = old; // released with the walk
    }
}

/* Hands dx of one input to whoever wants it. */
static om_status deliver(walk *w, const om_edge *e, om_tensor *g) {
    bool fits = e->rank == g->rank && e->dtype == g->dtype &&
                memcmp(e->shape, g->shape, (size_t)e->rank * sizeof *e->shape) == 0;
    if (!fits)
        return omi_fail(OM_ERR_INTERNAL, "a gradient %s came for an input of another shape",
                        OMI_T(g));
    for (int i = 0; i < w->n_wanted; i++) {
        wanted *x = &w->wanted[i];
        if (x->leaf ? x->leaf == e->leaf : x->record == e->record && x->out_index == e->out_index)
            OM_TRY(omi_add_term(&x->grad, g));
    }
    if (e->record) {
        visit *v = omi_map_get(&w->seen, key_of(e->record));
        return v ? omi_add_term(&v->dy[e->out_index], g) : OM_OK;
    }
    return w->into_leaves && e->leaf ? add_to_leaf(w, e->leaf, g) : OM_OK;
}

static om_status check_version(const om_record *r, const om_tensor *t, uint64_t version,
                               const char *what, uint32_t i) {
    uint64_t now = atomic_load(&t->storage->version);
    if (now == version && !omi_buffer_written_outside(t->storage->buf)) return OM_OK;
    if (now == version)
        return omi_fail(
            OM_ERR_STATE,
            "%s %u of %s, %s, is held by a writable pin, whose holder may have changed it since; "
            "end the pin (om_pin_free) before the operator runs, or give it a clone",
            what, i, r->site.function ? r->site.function : "an operator", OMI_T(t));
    return omi_fail(
        OM_ERR_STATE,
        "%s %u of %s, %s, was changed by %s after the operator saved it; clone it before "
        "the change",
        what, i, r->site.function ? r->site.function : "an operator", OMI_T(t),
        t->storage->writer ? t->storage->writer : "a write");
}

static om_status check_saved(const om_record *r) {
    for (uint32_t i = 0; i < r->n_in; i++)
        if (r->saved_in[i].t)
            OM_TRY(check_version(r, r->saved_in[i].t, r->saved_in[i].version, "input", i));
    for (uint32_t i = 0; i < r->n_out; i++)
        if (r->saved_out[i].t)
            OM_TRY(check_version(r, r->saved_out[i].t, r->saved_out[i].version, "output", i));
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
    for (uint32_t i = 0; st == OM_OK && i < r->n_in; i++)
        if (dx[i] && omi_needs(r, i)) st = deliver(w, &r->in[i], dx[i]);
    if (dx) omi_free(dx, (r->n_in ? r->n_in : 1) * sizeof *dx);
    om_scope_end(s);
    for (uint32_t i = 0; i < r->n_out; i++) {
        om_release(v->dy[i]);
        v->dy[i] = NULL;
    }
    if (!w->retain && st == OM_OK) omi_record_done(r);
    return st == OM_OK ? om_pending() : st;
}

static om_tensor *root_gradient(om_tensor *root, om_tensor *given) {
    if (given) {
        if (!omi_same_shape(given, root) || given->dtype != root->dtype)
            OM_FAIL_NULL(OM_ERR_SHAPE, "the gradient %s does not fit the root %s", OMI_T(given),
                         OMI_T(root));
        return root->record ? given : copy_of(given); // a leaf keeps it
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

/* The root as an edge leads to it; holds nothing. */
static om_status edge_to(om_tensor *t, om_edge *e) {
    *e = (om_edge){.record    = t->record,
                   .out_index = t->out_index,
                   .there     = true,
                   .dtype     = t->dtype,
                   .rank      = t->rank};
    memcpy(e->shape, t->shape, sizeof e->shape);
    if (!t->record && !(e->leaf = omi_grad_slot_of(t))) return omi_pending_status;
    return OM_OK;
}

static om_status run(walk *w, om_tensor *root, om_tensor *given) {
    om_edge to;
    OM_TRY(check_root(root));
    OM_TRY(edge_to(root, &to));
    om_scope s   = om_scope_begin();
    bool off     = omi_no_grad();
    om_tensor *g = root_gradient(root, given);
    om_status st = g ? OM_OK : omi_pending_status;
    if (st == OM_OK && root->record) st = collect(w, root->record);
    if (st == OM_OK) st = deliver(w, &to, g);
    for (size_t i = w->order.n; st == OM_OK && i-- > 0;) {
        st = omi_check_cancel();
        if (st == OM_OK) st = run_one(w, w->order.v[i]);
    }
    if (st == OM_OK) st = omi_check_cancel(); // sums of the last record may have been cut short
    if (st == OM_OK && w->apart) {
        *w->apart = w->leaves;
        memset(&w->leaves, 0, sizeof w->leaves);
    } else if (st == OM_OK)
        commit(w);
    walk_free(w);
    omi_grad_restore(off);
    om_scope_end(s);
    return st;
}

om_status omi_backward_apart(om_tensor *root, omi_leaf_grads *out) {
    walk w = {.into_leaves = true, .apart = out};
    return run(&w, root, NULL);
}

static om_status check_not_accumulating(void) {
    if (OM_LIKELY(!omi_state()->accumulation)) return OM_OK;
    return omi_fail(OM_ERR_STATE,
                    "an accumulation is open, and leaf gradients are undefined until it ends: use "
                    "om_accumulate_backward, or call om_accumulate_end first");
}

om_status om_backward(om_tensor *root) {
    OMI_ENTER("om_backward");
    OM_TRY(check_not_accumulating());
    walk w = {.into_leaves = true};
    return run(&w, root, NULL);
}

om_status om_backward_with(om_tensor *root, const om_backward_opts *opts) {
    OMI_ENTER("om_backward_with");
    om_backward_opts o;
    if (omi_failed() || !OMI_OPTS(&o, opts, retain_graph)) return om_pending();
    OM_TRY(check_not_accumulating());
    walk w = {.into_leaves = true, .retain = o.retain_graph};
    return run(&w, root, o.grad);
}

om_status om_grad(om_tensor *root, int n, om_tensor *const *inputs, om_tensor **out,
                  const om_backward_opts *opts) {
    OMI_ENTER("om_grad");
    om_backward_opts o;
    if (omi_failed() || !OMI_OPTS(&o, opts, retain_graph)) return om_pending();
    if (n < 1 || !inputs || !out) return omi_fail(OM_ERR_ARG, "no inputs to differentiate by");
    OM_TRY(check_root(root));
    for (int i = 0; i < n; i++) {
        out[i] = NULL;
        OM_TRY(omi_check_arg(inputs[i], "an input"));
        if (!inputs[i]->record && !(inputs[i]->flags & OM_T_GRAD))
            return omi_fail(
                OM_ERR_STATE,
                "input %d, %s, is no result of a recorded operator and not marked: mark it with "
                "om_set_requires_grad before it is used",
                i, OMI_T(inputs[i]));
    }
    walk w   = {.retain = o.retain_graph, .n_wanted = n};
    w.wanted = omi_calloc((size_t)n * sizeof *w.wanted);
    if (!w.wanted) return omi_pending_status;
    for (int i = 0; i < n && !omi_failed(); i++)
        w.wanted[i] = (wanted){.leaf      = inputs[i]->record ? NULL : omi_grad_slot_of(inputs[i]),
                               .record    = inputs[i]->record,
                               .out_index = inputs[i]->out_index};
    om_status st = omi_failed() ? om_pending() : run(&w, root, o.grad);
    for (int i = 0; i < n; i++) {
        if (st == OM_OK && w.wanted[i].grad && !(out[i] = omi_file_owned(w.wanted[i].grad)))
            st = omi_pending_status;
        else if (st != OM_OK)
            om_release(w.wanted[i].grad);
        // All that a gradient is made of has gone into the root: what a trace knows of that
        // (TD-23).
        if (st == OM_OK && out[i]) omi_spread_marks(out[i], root);
    }
    omi_free(w.wanted, (size_t)n * sizeof *w.wanted);
    return st;
}
