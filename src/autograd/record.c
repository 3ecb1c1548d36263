/*
 * record.c -- records: making, copying of attributes, release without recursion.
 *
 * A record is one allocation: header, edges, outputs, saved slots, raw, res, and the integers their
 * lists point to. It leads to the records and leaves of its inputs, and keeps detached aliases of
 * those inputs and outputs that its backward reads: so there is no cycle, and no value is kept for
 * nothing.
 */
#include "autograd/record.h"

#include <string.h>

#include "autograd/engine.h"
#include "base/thread.h"
#include "tensor/scope.h"

/* ---- making --------------------------------------------------------------------------------- */

static size_t padded(size_t n) {
    return (n + 7) & ~(size_t)7;
}

static om_list *list_at(void *attrs, uint16_t offset_plus_one) {
    return (om_list *)(void *)((char *)attrs + offset_plus_one - 1);
}

static size_t list_bytes(const void *attrs, const uint16_t *lists) {
    size_t n      = 0;
    const char *p = attrs;
    for (int i = 0; p && i < 4 && lists[i]; i++) {
        om_list l;
        memcpy(&l, p + lists[i] - 1, sizeof l);
        n += (size_t)l.n * sizeof(int64_t);
    }
    return n;
}

/* Copies attrs to *at with its lists behind it, and moves *at past them. */
static const void *copy_attrs(char **at, const void *attrs, size_t bytes, const uint16_t *lists) {
    if (!attrs) return NULL;
    char *to = *at;
    memcpy(to, attrs, bytes);
    *at += padded(bytes);
    for (int i = 0; i < 4 && lists[i]; i++) {
        om_list *l = list_at(to, lists[i]);
        if (l->n) memcpy(*at, l->v, (size_t)l->n * sizeof(int64_t));
        l->v = (const int64_t *)(void *)*at;
        *at += (size_t)l->n * sizeof(int64_t);
    }
    return to;
}

static bool saves_input(const om_call *c, uint32_t i) {
    return c->save_mask & OM_SAVE_ALL_IN || (i < 15 && (c->save_mask & OM_SAVE_IN(i)));
}

static bool save_one(om_saved *s, om_tensor *t) {
    s->t       = omi_detached(t);
    s->version = atomic_load(&t->storage->version);
    return s->t != NULL;
}

static bool save_values(om_record *r, const om_call *c) {
    for (uint32_t i = 0; i < c->n_in; i++)
        if (c->in[i] && saves_input(c, i) && !save_one(&r->saved_in[i], c->in[i])) return false;
    for (uint32_t i = 0; i < c->n_out && i < 16; i++)
        if (c->save_mask & OM_SAVE_OUT(i) && !save_one(&r->saved_out[i], c->out[i])) return false;
    return true;
}

static bool set_edge(om_edge *e, om_tensor *t) {
    e->there = true;
    e->dtype = t->dtype;
    e->rank  = t->rank;
    memcpy(e->shape, t->shape, sizeof e->shape);
    if (t->record) {
        e->record    = t->record;
        e->out_index = t->out_index;
        atomic_fetch_add_explicit(&t->record->refs, 1, memory_order_relaxed);
    } else if (t->flags & OM_T_GRAD) {
        if (!(e->leaf = omi_grad_slot_of(t))) return false;
        atomic_fetch_add_explicit(&e->leaf->refs, 1, memory_order_relaxed);
    }
    return true;
}

static bool set_edges(om_record *r, const om_call *c) {
    for (uint32_t i = 0; i < c->n_in; i++)
        if (c->in[i] && !set_edge(&r->in[i], c->in[i])) return false;
    return true;
}

static om_record *record_new(const om_call *c) {
    const om_op_layout *l = omi_op_layout(c->op);
    size_t bytes = sizeof(om_record) + c->n_in * sizeof(om_edge) + c->n_out * sizeof(om_out) +
                   (c->n_in + c->n_out) * sizeof(om_saved) + padded(l->raw_bytes) +
                   padded(l->res_bytes) + list_bytes(c->raw, l->raw_lists) +
                   list_bytes(c->res, l->res_lists);
    om_record *r = omi_calloc(bytes);
    if (!r) {
        if (c->extra_free) c->extra_free(c->extra);
        return NULL;
    }
    char *at     = (char *)(r + 1);
    r->in        = (om_edge *)(void *)at;
    r->out       = (om_out *)(void *)(at += c->n_in * sizeof(om_edge));
    r->saved_in  = (om_saved *)(void *)(at += c->n_out * sizeof(om_out));
    r->saved_out = r->saved_in + c->n_in;
    at += (c->n_in + c->n_out) * sizeof(om_saved);
    r->raw        = copy_attrs(&at, c->raw, l->raw_bytes, l->raw_lists);
    r->res        = copy_attrs(&at, c->res, l->res_bytes, l->res_lists);
    r->bytes      = bytes;
    r->op         = c->op;
    r->n_in       = c->n_in;
    r->n_out      = c->n_out;
    r->save_mask  = c->save_mask;
    r->backward   = c->backward;
    r->site       = omi_site();
    r->extra      = c->extra; // the record owns a custom operator's state from here on
    r->extra_free = c->extra_free;
    atomic_init(&r->refs, 1);
    for (uint32_t i = 0; i < c->n_out; i++) {
        r->out[i] =
            (om_out){.id = c->out[i]->id, .dtype = c->out[i]->dtype, .rank = c->out[i]->rank};
        memcpy(r->out[i].shape, c->out[i]->shape, sizeof r->out[i].shape);
    }
    if (!set_edges(r, c) || !save_values(r, c)) {
        omi_record_release(r);
        return NULL;
    }
    return r;
}

/* ---- release -------------------------------------------------------------------------------- */

static void unref(om_tensor *t, om_tensor **dead) {
    if (t && atomic_fetch_sub_explicit(&t->refs, 1, memory_order_acq_rel) == 1)
        omi_push_dead(dead, t);
}

static void free_values(om_record *r, om_tensor **dead) {
    for (uint32_t i = 0; i < r->n_in + r->n_out; i++) { // saved_out lies behind saved_in
        unref(r->saved_in[i].t, dead);
        r->saved_in[i].t = NULL;
    }
}

/* A list of records that nobody holds runs through their attributes, which no one reads any more.
 */
static void unref_record(om_record *r, om_record **gone) {
    if (!r || atomic_fetch_sub_explicit(&r->refs, 1, memory_order_acq_rel) != 1) return;
    r->res = *gone;
    *gone  = r;
}

static void free_edges(om_record *r, om_record **gone, om_tensor **dead) {
    for (uint32_t i = 0; i < r->n_in; i++) {
        omi_grad_slot_release(r->in[i].leaf, dead);
        unref_record(r->in[i].record, gone);
        r->in[i].leaf   = NULL;
        r->in[i].record = NULL;
    }
}

static void free_records(om_record *gone, om_tensor **dead) {
    while (gone) {
        om_record *r = gone;
        union {
            const void *res;
            om_record *next;
        } link = {.res = r->res};
        gone   = link.next;
        free_values(r, dead);
        free_edges(r, &gone, dead);
        if (r->extra_free) r->extra_free(r->extra);
        omi_free(r, r->bytes);
    }
}

static void release_into(om_record *r, om_tensor **dead) {
    om_record *gone = NULL;
    unref_record(r, &gone);
    free_records(gone, dead);
}

void omi_record_release(om_record *r) {
    om_tensor *dead = NULL;
    release_into(r, &dead);
    omi_release_list(dead);
}

void omi_record_done(om_record *r) {
    om_tensor *dead = NULL;
    om_record *gone = NULL;
    r->used         = 1;
    free_values(r, &dead);
    free_edges(r, &gone, &dead);
    free_records(gone, &dead);
    omi_release_list(dead);
}

/* ---- the exit of every operator ------------------------------------------------------------- */

static void spread_marks(const om_call *c) {
    for (uint32_t i = 0; i < c->n_in; i++)
        for (uint32_t k = 0; c->in[i] && k < c->n_out; k++)
            omi_spread_marks(c->out[k], c->in[i]);
}

static bool any_traced(const om_call *c) {
    for (uint32_t i = 0; i < c->n_in; i++)
        if (c->in[i] && omi_traced(c->in[i])) return true;
    return false;
}

static bool any_needs_grad(const om_call *c) {
    for (uint32_t i = 0; i < c->n_in; i++)
        if (c->in[i] && (c->in[i]->record || (c->in[i]->flags & OM_T_GRAD))) return true;
    return false;
}

static bool is_float(const om_tensor *t) {
    return omi_type_bit((om_dtype)t->dtype) & OM_SET_FLOAT;
}

static om_status keep_record(const om_call *c) {
    om_record *r = record_new(c);
    if (!r) return omi_pending_status;
    for (uint32_t i = 0; i < c->n_out; i++) {
        om_tensor *y = c->out[i];
        if (!is_float(y)) continue; // indices of top_k: not differentiable
        y->record    = r;
        y->out_index = i;
        atomic_fetch_add_explicit(&r->refs, 1, memory_order_relaxed);
    }
    omi_record_release(r); // the outputs hold it now
    return OM_OK;
}

/* Where a call goes; *kept: a record took the custom operator's state. */
static om_status leave(const om_call *c, bool *kept) {
    if (omi_failed()) return omi_pending_status;
    OM_TRY(omi_check_cancel()); // a result that was cut short goes no further
    if (c->name)
        for (uint32_t i = 0; i < c->n_out; i++)
            c->out[i]->origin = c->name;
    if (OM_UNLIKELY(omi_record_watch != NULL)) OM_TRY(omi_record_watch(c));
    if (OM_UNLIKELY(any_traced(c))) {
        for (uint32_t i = 0; i < c->n_in; i++)
            if (c->in[i]) OM_TRY(omi_check_thread(c->in[i]));
        return omi_seam->record(omi_seam->self, c, c->out);
    }
    spread_marks(c);
    if (omi_failed()) return omi_pending_status;
    if (!c->backward || omi_grad_off || !any_needs_grad(c)) return OM_OK;
    *kept = true;
    return keep_record(c);
}

om_status omi_record(const om_call *c) {
    bool kept    = false;
    om_status st = leave(c, &kept);
    if (OM_UNLIKELY(!kept && c->extra_free)) c->extra_free(c->extra);
    return st;
}

om_tensor *omi_record1(om_op op, const void *raw, const void *res, uint32_t n_in,
                       om_tensor *const *in, om_tensor *y, om_backward_fn backward,
                       uint32_t save_mask) {
    if (!y) return NULL;
    om_call c = {.op        = op,
                 .name      = omi_function(),
                 .raw       = raw,
                 .res       = res,
                 .n_in      = n_in,
                 .n_out     = 1,
                 .save_mask = save_mask,
                 .in        = in,
                 .out       = &y,
                 .backward  = backward};
    return omi_record(&c) == OM_OK ? y : NULL;
}

/* ---- for backward functions ----------------------------------------------------------------- */

bool omi_needs(const om_record *r, uint32_t i) {
    const om_edge *e = &r->in[i];
    return (e->record || e->leaf) && omi_type_bit((om_dtype)e->dtype) & OM_SET_FLOAT;
}

static om_tensor *saved(const om_record *r, const om_saved *s, const char *what, uint32_t i) {
    if (s->t) return s->t;
    OM_FAIL_NULL(OM_ERR_INTERNAL, "%s %u of %s is read by its gradient and was not saved", what, i,
                 r->site.function ? r->site.function : "an operator");
}

om_tensor *omi_saved_in(const om_record *r, uint32_t i) {
    return saved(r, &r->saved_in[i], "input", i);
}
om_tensor *omi_saved_out(const om_record *r, uint32_t i) {
    return saved(r, &r->saved_out[i], "output", i);
}

bool omi_in_there(const om_record *r, uint32_t i) {
    return i < r->n_in && r->in[i].there;
}

const int64_t *omi_in_shape(const om_record *r, uint32_t i, int *rank) {
    *rank = r->in[i].rank;
    return r->in[i].shape;
}

om_tensor *omi_new_like_in(const om_record *r, uint32_t i) {
    return omi_new((om_dtype)r->in[i].dtype, r->in[i].rank, r->in[i].shape);
}

/* Ties the knot without a dependency of tensor on autograd. */
__attribute__((constructor)) static void install(void) {
    omi_release_record  = release_into;
    omi_needs_grad_hook = omi_needs_grad;
}
