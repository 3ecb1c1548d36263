/*
 * flow.c -- what If, Loop, Scan and NonZero do in a walk.
 *
 * A branch that is not taken is never planned. A loop looks at the cancel flag before each
 * iteration and makes at most OM_TURNS_MOST of them; scan outputs are kept as they come and
 * stacked at the end, so all must have the sizes of the first.
 */
#include <string.h>

#include "base/str.h"
#include "base/thread.h"
#include "compute/move.h"
#include "graphops/forms.h"
#include "runtime/walk.h"

/* ---- single elements ------------------------------------------------------------------------- */

/* Input k of n, one element; NULL and raised. */
static const void *flow_one_element(om_frame *f, const om_pnode *n, uint32_t k, const char *what) {
    om_cell *c = omi_frame_cell(f, n->in[k]);
    if (!c) return NULL;
    if (c->numel == 1) return c->data;
    omi_walk_fail(f, n, OM_ERR_SHAPE, "its %s has %lld elements; it must have one", what,
                  (long long)c->numel);
    return NULL;
}

static om_cell *scalar(om_walk *w, int32_t dtype, const void *element) {
    om_cell *c = omi_cell_new(w, dtype, 0, NULL);
    if (c) memcpy(omi_cell_ptr(c), element, om_dtype_size((om_dtype)dtype));
    return c;
}

/* ---- calling a subgraph ---------------------------------------------------------------------- */

/* Cells for one program: its inputs, then its outputs. */
typedef struct sub_call {
    const om_program *p;
    om_cell **in, **out;
} sub_call;

static size_t sub_bytes(const om_program *p) {
    return ((size_t)p->n_inputs + p->n_outputs + 1) * sizeof(om_cell *);
}

/* With what subgraph k of n captures. */
static om_status sub_open(om_frame *f, const om_pnode *n, uint32_t k, sub_call *c) {
    c->p  = n->nest->child[k];
    c->in = omi_calloc(sub_bytes(c->p));
    if (!c->in) return OM_ERR_NOMEM;
    c->out = c->in + c->p->n_inputs;
    for (uint32_t i = c->p->n_formal; i < c->p->n_inputs; i++) {
        om_cell *x = omi_frame_cell(f, n->in[n->nest->first[k] + i - c->p->n_formal]);
        if (!x) return om_pending();
        c->in[i] = omi_cell_retain(x);
    }
    return OM_OK;
}

static void sub_close(om_frame *f, sub_call *c) {
    if (!c->in) return;
    for (uint32_t i = 0; i < c->p->n_inputs + c->p->n_outputs; i++)
        omi_cell_release(f->w, c->in[i]);
    omi_free(c->in, sub_bytes(c->p));
}

static void put_value(om_frame *f, om_cell **at, om_cell *c) {
    omi_cell_release(f->w, *at);
    *at = c;
}

static om_status walk_if(om_frame *f, const om_pnode *n) {
    sub_call c       = {0};
    const uint8_t *y = flow_one_element(f, n, 0, "condition");
    if (!y) return om_pending();
    om_status s = sub_open(f, n, *y ? 0 : 1, &c);
    if (s == OM_OK) s = omi_walk_program(f->w, c.p, c.in, c.out);
    for (uint32_t i = 0; s == OM_OK && i < n->n_out; i++) {
        omi_frame_set(f, n->out[i], c.out[i]);
        c.out[i] = NULL;
    }
    sub_close(f, &c);
    return s;
}

/* ---- outputs of all iterations --------------------------------------------------------------- */

typedef struct om_pile {
    om_cell **v;
    size_t n, cap;
} om_pile;

OM_COLD static om_status sizes_differ(const om_frame *f, const om_pnode *n, uint32_t k,
                                      const om_pile *p, const om_cell *c) {
    char a[80], b[80];
    return omi_walk_fail(f, n, OM_ERR_SHAPE,
                         "scan output %u is %s in the first iteration and %s in iteration %zu", k,
                         omi_shape_text(a, sizeof a, p->v[0]->rank, p->v[0]->shape),
                         omi_shape_text(b, sizeof b, c->rank, c->shape), p->n);
}

/* Takes c. */
static om_status pile_add(om_frame *f, const om_pnode *n, uint32_t k, om_pile *p, om_cell **c) {
    size_t item = sizeof *p->v;
    if (p->n && (p->v[0]->rank != (*c)->rank ||
                 memcmp(p->v[0]->shape, (*c)->shape, (size_t)(*c)->rank * sizeof(int64_t)) != 0))
        return sizes_differ(f, n, k, p, *c);
    if (p->n == p->cap) {
        size_t cap = p->cap ? p->cap * 2 : 8;
        OM_TRY(omi_walk_charge(f->w, (cap - p->cap) * item));
        om_cell **v = omi_realloc(p->v, p->cap * item, cap * item);
        if (!v) return f->w->now -= (cap - p->cap) * item, OM_ERR_NOMEM;
        p->v   = v;
        p->cap = cap;
    }
    p->v[p->n++] = *c;
    *c           = NULL;
    return OM_OK;
}

static void pile_free(om_frame *f, om_pile *p) {
    for (size_t i = 0; i < p->n; i++)
        omi_cell_release(f->w, p->v[i]);
    f->w->now -= p->cap * sizeof *p->v;
    omi_free(p->v, p->cap * sizeof *p->v);
}

/* Sizes of one item when there was none: what the body declares, 0 for what it does not. */
static int declared_sizes_of(const om_program *body, uint32_t output, int64_t *shape) {
    const om_gvalue *v = &body->graph->values[body->graph->outputs[output]];
    int rank           = v->rank < 0 || v->rank >= OM_MAX_RANK ? 0 : v->rank;
    for (int i = 0; i < rank; i++)
        shape[i] = v->dims[i].value > 0 ? v->dims[i].value : 0;
    return rank;
}

/* Item i of the pile becomes slice i (from the end: back) along the axis of a new value. */
static om_cell *pile_stack(om_frame *f, const om_pnode *n, const om_program *body, uint32_t output,
                           const om_pile *p, int64_t axis, bool back) {
    int64_t shape[OM_MAX_RANK], item[OM_MAX_RANK];
    int32_t dtype = body->values[body->outputs[output]].dtype;
    int rank      = p->n ? p->v[0]->rank : declared_sizes_of(body, output, item);
    if (p->n) memcpy(item, p->v[0]->shape, sizeof item);
    int64_t at = axis < 0 ? axis + rank + 1 : axis;
    if (rank >= OM_MAX_RANK || at < 0 || at > rank) {
        omi_walk_fail(f, n, OM_ERR_SHAPE, "scan output %u of rank %d cannot be stacked along %lld",
                      output, rank, (long long)axis);
        return NULL;
    }
    for (int i = 0; i <= rank; i++)
        shape[i] = i < at ? item[i] : i == at ? (int64_t)p->n : item[i - 1];
    om_cell *y = omi_cell_new(f->w, dtype, rank + 1, shape);
    if (!y) return NULL;
    om_view whole = omi_cell_view(y), slice = omi_view_without(&whole, (int)at);
    size_t stride = (size_t)whole.strides[at] * om_dtype_size(whole.dtype);
    for (size_t i = 0; i < p->n && y->numel; i++) {
        om_view from = omi_cell_view(p->v[i]);
        slice.data   = (char *)whole.data + stride * (back ? p->n - 1 - i : i);
        omi_copy(&from, &slice);
    }
    if (omi_check_cancel() != OM_OK) return omi_cell_release(f->w, y), NULL;
    return y;
}

/* ---- Loop and Scan --------------------------------------------------------------------------- */

typedef struct om_turns {
    sub_call c;
    uint32_t lead, state; /* inputs before the states, states           */
    uint32_t first;       /* output of the body that is the first state */
    om_pile *pile;        /* per scan output                            */
    uint32_t n_piles;
} om_turns;

static om_status turns_open(om_frame *f, const om_pnode *n, om_turns *t, uint32_t skip) {
    OM_TRY(sub_open(f, n, 0, &t->c));
    t->n_piles = t->c.p->n_outputs - t->first - t->state;
    t->pile    = omi_calloc((t->n_piles + 1u) * sizeof *t->pile);
    if (!t->pile) return OM_ERR_NOMEM;
    for (uint32_t i = 0; i < t->state; i++) {
        om_cell *x = omi_frame_cell(f, n->in[skip + i]);
        if (!x) return om_pending();
        t->c.in[t->lead + i] = omi_cell_retain(x);
    }
    return OM_OK;
}

static void turns_close(om_frame *f, om_turns *t) {
    for (uint32_t i = 0; t->pile && i < t->n_piles; i++)
        pile_free(f, &t->pile[i]);
    if (t->pile) omi_free(t->pile, (t->n_piles + 1u) * sizeof *t->pile);
    sub_close(f, &t->c);
}

/* One iteration; states move on, scan outputs are kept. */
static om_status turn(om_frame *f, const om_pnode *n, om_turns *t) {
    om_walk *w = f->w;
    OM_TRY(omi_check_cancel());
    if (++w->turns > OM_TURNS_MOST)
        return omi_walk_fail(f, n, OM_ERR_LIMIT, "the loops of one run may make %lld iterations",
                             (long long)OM_TURNS_MOST);
    OM_TRY(omi_walk_program(w, t->c.p, t->c.in, t->c.out));
    for (uint32_t i = 0; i < t->state; i++) {
        put_value(f, &t->c.in[t->lead + i], t->c.out[t->first + i]);
        t->c.out[t->first + i] = NULL;
    }
    for (uint32_t i = 0; i < t->n_piles; i++)
        OM_TRY(pile_add(f, n, i, &t->pile[i], &t->c.out[t->first + t->state + i]));
    return OM_OK;
}

/* States and stacked outputs become outputs of the node. */
static om_status turns_finish(om_frame *f, const om_pnode *n, om_turns *t, const om_scan_form *sf) {
    for (uint32_t i = 0; i < t->state; i++) {
        if (i < n->n_out) omi_frame_set(f, n->out[i], omi_cell_retain(t->c.in[t->lead + i]));
    }
    for (uint32_t i = 0; i < t->n_piles && t->state + i < n->n_out; i++) {
        int64_t axis = sf && sf->out_axes ? sf->out_axes[i] : 0;
        bool back    = sf && sf->out_back && sf->out_back[i];
        om_cell *y   = pile_stack(f, n, t->c.p, t->first + t->state + i, &t->pile[i], axis, back);
        if (!y) return om_pending();
        omi_frame_set(f, n->out[t->state + i], y);
    }
    return OM_OK;
}

static om_status loop_turns(om_frame *f, const om_pnode *n, om_turns *t) {
    uint32_t formal = n->nest->first[0]; // inputs of the file: captures stand behind them
    bool asks = formal > 1 && n->in[1] != OM_NO_VALUE, go = true;
    int64_t most = INT64_MAX;
    if (formal > 0 && n->in[0] != OM_NO_VALUE) {
        const void *m = flow_one_element(f, n, 0, "trip count");
        if (!m) return om_pending();
        memcpy(&most, m, sizeof most);
    }
    if (asks) {
        const uint8_t *c = flow_one_element(f, n, 1, "condition");
        if (!c) return om_pending();
        go = *c != 0;
    }
    OM_TRY(turns_open(f, n, t, 2));
    for (int64_t i = 0; go && i < most; i++) {
        put_value(f, &t->c.in[0], scalar(f->w, OM_I64, &i));
        if (t->c.in[0]) put_value(f, &t->c.in[1], scalar(f->w, OM_BOOL, &go));
        if (!t->c.in[0] || !t->c.in[1]) return om_pending();
        OM_TRY(turn(f, n, t));
        if (t->c.out[0]->numel != 1)
            return omi_walk_fail(f, n, OM_ERR_SHAPE,
                                 "the condition of its body has %lld elements; it must have one",
                                 (long long)t->c.out[0]->numel);
        go = *(const uint8_t *)t->c.out[0]->data != 0;
        put_value(f, &t->c.out[0], NULL);
    }
    return turns_finish(f, n, t, NULL);
}

static om_status walk_loop(om_frame *f, const om_pnode *n) {
    om_turns t  = {.lead = 2, .first = 1, .state = n->nest->child[0]->n_formal - 2};
    om_status s = loop_turns(f, n, &t);
    turns_close(f, &t);
    return s;
}

/* Slice i of x along an axis. */
static om_cell *slice_of(om_frame *f, const om_cell *x, int axis, int64_t i) {
    om_view whole = omi_cell_view(x), v = omi_view_without(&whole, axis);
    v.data     = (char *)v.data + (size_t)(i * whole.strides[axis]) * om_dtype_size(v.dtype);
    om_cell *y = omi_cell_new(f->w, x->dtype, v.rank, v.shape);
    if (!y || !y->numel) return y;
    om_view to = omi_cell_view(y);
    omi_copy(&v, &to);
    return y;
}

/* The axis of scan input k, and that all are equally long there. */
static om_status scan_axis(om_frame *f, const om_pnode *n, const om_scan_form *sf, uint32_t k,
                           int *axis, int64_t *length) {
    om_cell *x = omi_frame_cell(f, n->in[sf->n_state + k]);
    if (!x) return om_pending();
    int64_t a = sf->in_axes ? sf->in_axes[k] : 0;
    if (a < 0) a += x->rank;
    if (a < 0 || a >= x->rank)
        return omi_walk_fail(f, n, OM_ERR_SHAPE, "scan input %u has rank %d and no axis %lld", k,
                             x->rank, (long long)(sf->in_axes ? sf->in_axes[k] : 0));
    *axis = (int)a;
    if (*length >= 0 && *length != x->shape[a])
        return omi_walk_fail(f, n, OM_ERR_SHAPE,
                             "scan input %u has %lld slices; the first has %lld", k,
                             (long long)x->shape[a], (long long)*length);
    *length = x->shape[a];
    return OM_OK;
}

static om_status scan_turns(om_frame *f, const om_pnode *n, om_turns *t) {
    const om_scan_form *sf = n->form;
    int64_t length         = -1;
    int axis               = 0;
    for (uint32_t k = 0; k < sf->n_scan; k++)
        OM_TRY(scan_axis(f, n, sf, k, &axis, &length));
    OM_TRY(turns_open(f, n, t, 0));
    for (int64_t i = 0; i < length; i++) {
        for (uint32_t k = 0; k < sf->n_scan; k++) {
            int64_t at = sf->in_back && sf->in_back[k] ? length - 1 - i : i;
            OM_TRY(scan_axis(f, n, sf, k, &axis, &length));
            om_cell *x = slice_of(f, f->slot[n->in[sf->n_state + k]], axis, at);
            if (!x) return om_pending();
            put_value(f, &t->c.in[t->state + k], x);
        }
        OM_TRY(turn(f, n, t));
    }
    return turns_finish(f, n, t, sf);
}

static om_status walk_scan(om_frame *f, const om_pnode *n) {
    om_turns t  = {.state = ((const om_scan_form *)n->form)->n_state};
    om_status s = scan_turns(f, n, &t);
    turns_close(f, &t);
    return s;
}

/* ---- NonZero --------------------------------------------------------------------------------- */

static om_status walk_nonzero(om_frame *f, const om_pnode *n) {
    om_cell *x = omi_frame_cell(f, n->in[0]);
    if (!x) return om_pending();
    om_view v  = omi_cell_view(x);
    om_cell *y = omi_cell_new(f->w, OM_I64, 2, (int64_t[]){v.rank, omi_count_nonzero(&v)});
    if (!y) return om_pending();
    omi_nonzero(&v, y->shape[1], omi_cell_ptr(y));
    omi_frame_set(f, n->out[0], y);
    return omi_check_cancel();
}

om_status omi_walk_node(om_frame *f, const om_pnode *n) {
    switch (n->def->arg) {
    case OM_MET_IF:
        return walk_if(f, n);
    case OM_MET_LOOP:
        return walk_loop(f, n);
    case OM_MET_SCAN:
        return walk_scan(f, n);
    case OM_MET_NONZERO:
        return walk_nonzero(f, n);
    default:
        return omi_walk_fail(f, n, OM_ERR_INTERNAL, "nothing runs it");
    }
}
