/*
 * walk.c -- run values and frames: the stages of a program, one after the other; see walk.h.
 */
#include "runtime/walk.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/checked.h"
#include "base/str.h"
#include "base/thread.h"
#include "compute/elementwise.h"

static const _Alignas(OM_ALIGN) char nothing[OM_ALIGN]; /* where a value without elements is */

/* ---- run values ------------------------------------------------------------------------------ */

om_status omi_walk_charge(om_walk *w, size_t bytes) {
    size_t all;
    if (!omi_add_size(w->base, w->now, &all) || !omi_add_size(all, bytes, &all) ||
        (w->limit && all > w->limit))
        return omi_fail(OM_ERR_LIMIT,
                        "a run needs %zu bytes and %zu more for its next value; memory_limit is "
                        "%zu: use smaller sizes or raise it",
                        w->base + w->now, bytes, w->limit);
    w->now += bytes;
    return OM_OK;
}

static om_cell *cell(om_walk *w, int32_t dtype, int rank, const int64_t *shape, size_t bytes) {
    if (omi_walk_charge(w, bytes + sizeof(om_cell)) != OM_OK) return NULL;
    om_cell *c = omi_calloc(sizeof *c);
    if (!c) return w->now -= bytes + sizeof *c, NULL;
    c->refs    = 1;
    c->charged = bytes + sizeof *c;
    c->dtype   = dtype;
    c->rank    = rank;
    c->data    = nothing;
    if (rank) memcpy(c->shape, shape, (size_t)rank * sizeof *shape);
    return c;
}

om_cell *omi_cell_new(om_walk *w, int32_t dtype, int rank, const int64_t *shape) {
    int64_t n;
    if (!omi_numel_of(dtype, rank, shape, &n))
        OM_FAIL_NULL(OM_ERR_LIMIT, "a value of a run is larger than 1 TiB");
    size_t bytes = (size_t)n * om_dtype_size((om_dtype)dtype);
    om_cell *c   = cell(w, dtype, rank, shape, bytes);
    if (!c) return NULL;
    c->own   = true;
    c->numel = n;
    c->buf   = omi_buffer_new(bytes ? bytes : 1);
    if (!c->buf) return omi_cell_release(w, c), NULL;
    c->data = c->buf->data;
    return c;
}

om_cell *omi_cell_over(om_walk *w, int32_t dtype, int rank, const int64_t *shape,
                       const void *data) {
    om_cell *c = cell(w, dtype, rank, shape, 0);
    if (!c) return NULL;
    c->numel = 1;
    for (int i = 0; i < rank; i++)
        c->numel *= shape[i];
    if (c->numel) c->data = data;
    return c;
}

om_cell *omi_cell_retain(om_cell *c) {
    c->refs++;
    return c;
}

void omi_cell_release(om_walk *w, om_cell *c) {
    if (!c || --c->refs) return;
    w->now -= c->charged;
    omi_buffer_release(c->buf);
    omi_free(c, sizeof *c);
}

om_view omi_cell_view(const om_cell *c) {
    om_view v = {.dtype = (om_dtype)c->dtype, .rank = c->rank};
    memcpy(&v.data, &c->data, sizeof v.data);
    for (int i = 0; i < c->rank; i++)
        v.shape[i] = c->shape[i];
    omi_view_pack_strides(&v);
    return v;
}

/* ---- frames ---------------------------------------------------------------------------------- */

om_cell *omi_frame_cell(om_frame *f, uint32_t v) {
    const om_pval *x = &f->p->values[v];
    if (!f->slot[v] && x->known)
        f->slot[v] = omi_cell_over(f->w, x->dtype, x->rank, x->shape, x->known);
    else if (!f->slot[v])
        OM_FAIL_NULL(OM_ERR_INTERNAL, "a value was read before it was made");
    return f->slot[v];
}

void omi_frame_set(om_frame *f, uint32_t v, om_cell *c) {
    if (v == OM_NO_VALUE) {
        omi_cell_release(f->w, c);
        return;
    }
    omi_cell_release(f->w, f->slot[v]);
    f->slot[v] = c;
}

om_status omi_walk_fail(const om_frame *f, const om_pnode *n, om_status s, const char *fmt, ...) {
    char text[200], node[160];
    va_list ap;
    va_start(ap, fmt);
    omi_vformat(text, sizeof text, fmt, ap);
    va_end(ap);
    return omi_fail(s, "%s: %s", omi_node_text(f->p->graph, n->index, node, sizeof node), text);
}

/* What one part needs to be called, in one block. */
typedef struct part_call {
    om_feed *feed;
    const void **in;
    void **out;
    size_t bytes;
} part_call;

static om_status part_call_new(part_call *c, const om_program *part) {
    size_t in = part->n_inputs + 1u, out = part->n_outputs + 1u;
    c->bytes = in * (sizeof *c->feed + sizeof *c->in) + out * sizeof *c->out;
    c->feed  = omi_calloc(c->bytes);
    if (!c->feed) return OM_ERR_NOMEM;
    c->in  = (const void **)(c->feed + in);
    c->out = (void **)(c->feed + in) + in;
    return OM_OK;
}

static om_status run_plan(om_frame *f, const om_stage *st, part_call *c, om_plan *plan) {
    om_walk *w  = f->w;
    om_run *run = NULL;
    om_status s = OM_OK;
    // With the plan's own arena, outputs and constants; the outputs are counted as they are made.
    if (w->limit && (plan->need > w->limit || w->now > w->limit - plan->need))
        return omi_fail(OM_ERR_LIMIT,
                        "a run holds %zu bytes and its next part needs %zu; memory_limit is %zu: "
                        "use smaller sizes or raise it",
                        w->now, plan->need, w->limit);
    for (uint32_t i = 0; s == OM_OK && i < plan->n_out; i++) {
        const om_port *o = &plan->out[i];
        om_cell *y       = omi_cell_new(w, (int32_t)o->dtype, o->rank, o->shape);
        if (!y) return om_pending();
        c->out[i] = omi_cell_ptr(y);
        omi_frame_set(f, st->out[i], y);
    }
    run = omi_cache_take_run(w->cache, plan);
    if (!run) return om_pending();
    s = omi_run_steps(run, c->in, c->out);
    omi_cache_give_run(w->cache, run);
    return s;
}

static om_status walk_part(om_frame *f, const om_stage *st) {
    om_program *part = st->part;
    part_call c      = {0};
    om_status s      = part_call_new(&c, part);
    for (uint32_t i = 0; s == OM_OK && i < part->n_inputs; i++) {
        om_cell *x = omi_frame_cell(f, st->in[i]);
        if (!x) {
            s = om_pending();
            break;
        }
        c.in[i]        = x->data;
        c.feed[i].rank = x->rank;
        memcpy(c.feed[i].shape, x->shape, sizeof c.feed[i].shape);
        if (part->by_value[i]) c.feed[i].data = x->data;
    }
    om_plan *plan = NULL;
    if (s == OM_OK) {
        plan = omi_cache_plan(f->w->cache, part, c.feed, f->w->workers, (int64_t)f->w->limit);
        s    = plan ? run_plan(f, st, &c, plan) : om_pending();
        omi_plan_release(plan);
    }
    if (c.feed) omi_free(c.feed, c.bytes);
    return s;
}

/* Sizes that the file declares for inputs of a subgraph are hints but for the rank, which was
 * believed when nodes were parsed. */
static om_status take_cells(om_frame *f, om_cell *const *in) {
    const om_program *p = f->p;
    for (uint32_t i = 0; i < p->n_inputs; i++) {
        const om_pval *x = &p->values[p->inputs[i]];
        if (p->inner && x->rank >= 0 && x->rank != in[i]->rank)
            return omi_fail(OM_ERR_SHAPE, "'%.80s' of a subgraph has rank %d; it is declared %d",
                            x->name, in[i]->rank, x->rank);
        omi_frame_set(f, p->inputs[i], omi_cell_retain(in[i]));
    }
    return OM_OK;
}

static om_status walk_stages(om_frame *f, om_cell *const *in, om_cell **out) {
    const om_program *p = f->p;
    OM_TRY(take_cells(f, in));
    for (uint32_t k = 0; k < p->n_stages; k++) {
        const om_stage *st = &p->stages[k];
        OM_TRY(omi_check_cancel());
        OM_TRY(st->part ? walk_part(f, st) : omi_walk_node(f, st->node));
        for (uint32_t i = 0; i < st->n_drop; i++)
            omi_frame_set(f, st->drop[i], NULL);
    }
    for (uint32_t i = 0; i < p->n_outputs; i++) {
        om_cell *y = omi_frame_cell(f, p->outputs[i]);
        if (!y) return om_pending();
        out[i] = omi_cell_retain(y);
    }
    return OM_OK;
}

om_status omi_walk_program(om_walk *w, const om_program *p, om_cell *const *in, om_cell **out) {
    om_frame f   = {.w = w, .p = p};
    size_t bytes = (p->n_values + 1u) * sizeof *f.slot;
    OM_TRY(omi_walk_charge(w, bytes));
    f.slot      = omi_calloc(bytes);
    om_status s = f.slot ? walk_stages(&f, in, out) : OM_ERR_NOMEM;
    for (uint32_t v = 0; f.slot && v < p->n_values; v++)
        omi_cell_release(w, f.slot[v]);
    omi_free(f.slot, bytes);
    w->now -= bytes;
    for (uint32_t i = 0; s != OM_OK && i < p->n_outputs; i++) {
        omi_cell_release(w, out[i]);
        out[i] = NULL;
    }
    return s;
}

/* ---- from and to tensors --------------------------------------------------------------------- */

/* What the walk made is handed over; constants and the caller's own are copied. */
static om_tensor *to_tensor(const om_cell *c) {
    if (c->own) return omi_from_buffer(c->buf, 0, (om_dtype)c->dtype, c->rank, c->shape);
    om_tensor *t = omi_new((om_dtype)c->dtype, c->rank, c->shape);
    if (!t) return NULL;
    size_t bytes = (size_t)c->numel * om_dtype_size((om_dtype)c->dtype);
    if (bytes) memcpy(omi_ptr(t), c->data, bytes);
    om_view v = omi_view(t);
    if (bytes) omi_canonical_nan(&v);
    return t;
}

static om_status walk_session(om_walk *w, const om_program *p, const om_feed *feeds,
                              const void *const *in, om_cell **cells, om_tensor **made) {
    om_cell **out = cells + p->n_inputs;
    for (uint32_t i = 0; i < p->n_inputs; i++) {
        const om_pval *x = &p->values[p->inputs[i]];
        cells[i]         = omi_cell_over(w, x->dtype, feeds[i].rank, feeds[i].shape, in[i]);
        if (!cells[i]) return om_pending();
    }
    OM_TRY(omi_walk_program(w, p, cells, out));
    for (uint32_t i = 0; i < p->n_outputs; i++)
        if (!(made[i] = to_tensor(out[i]))) return om_pending();
    return omi_check_cancel();
}

om_status omi_walk_session(om_cache *c, const om_program *p, int workers, int64_t limit,
                           const om_feed *feeds, const void *const *in, om_tensor **made) {
    om_walk w = {
        .cache = c, .workers = workers, .limit = (size_t)limit, .base = omi_program_held(p)};
    size_t n       = (size_t)p->n_inputs + p->n_outputs;
    om_cell **cell = omi_calloc((n + 1) * sizeof *cell);
    if (!cell) return OM_ERR_NOMEM;
    om_status s = omi_bind_inputs(p->graph, feeds);
    if (s == OM_OK) s = walk_session(&w, p, feeds, in, cell, made);
    for (size_t i = 0; i < n; i++)
        omi_cell_release(&w, cell[i]);
    omi_free(cell, (n + 1) * sizeof *cell);
    return s;
}
