/*
 * plan.c -- making a plan: bind, infer, fold, find what is needed, select steps; place.c lays them
 * out.
 *
 * Everything that is decided here is decided once: a run only calls the steps in order. Contents
 * that are known (constants, sizes, shape chains of at most OM_FOLD_LIMIT elements) are evaluated
 * with the kernels a run would use, so folding changes no bit.
 */
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#include "base/thread.h"
#include "base/utf8.h"
#include "runtime/builder.h"

static om_status take_inputs(om_builder *b, const om_feed *feeds) {
    const om_program *p = b->program;
    for (uint32_t i = 0; i < p->n_inputs; i++) {
        om_pval *v    = &b->values[p->inputs[i]];
        om_port *port = &b->plan->in[i];
        v->rank       = feeds[i].rank;
        memcpy(v->shape, feeds[i].shape, sizeof v->shape);
        if (!omi_numel_of(v->dtype, v->rank, v->shape, &v->numel))
            return omi_fail(OM_ERR_LIMIT, "input %u is larger than 1 TiB", i);
        size_t bytes    = omi_pval_bytes(v);
        port->dtype     = (om_dtype)v->dtype;
        port->rank      = v->rank;
        port->numel     = v->numel;
        port->bytes     = bytes;
        port->copy_from = OM_NO_VALUE;
        memcpy(port->shape, v->shape, sizeof port->shape);
        if (!b->program->by_value[i] || v->numel > OM_FOLD_LIMIT || !feeds[i].data) continue;
        // A copy: the caller may change its own while another thread runs this plan.
        void *copy = omi_arena_alloc(&b->plan->arena, bytes + 1);
        if (!copy) return om_pending();
        memcpy(copy, feeds[i].data, bytes);
        v->known = copy;
    }
    return OM_OK;
}

/* ---- inference and folding ------------------------------------------------------------------- */

static bool small_outputs(const om_nctx *c) {
    for (uint32_t k = 0; k < c->n_out; k++)
        if (c->out[k] && c->out[k]->numel > OM_FOLD_LIMIT) return false;
    return true;
}

/* What decides sizes must be known now, within the limit; the rest only up to a budget: run, it
 * costs less than a plan that holds it. */
#define PLAN_FOLD_BUDGET ((size_t)4 << 20)
static bool plan_worth_folding(const om_builder *b, const om_nctx *c) {
    return omi_program_decides_sizes(b->program, c) || b->plan->arena.total <= PLAN_FOLD_BUDGET;
}

static om_status fold(om_builder *b, om_nctx *c, bool *done) {
    void **dst = omi_arena_array(&b->plan->arena, c->n_out + 1u, sizeof *dst);
    if (!dst) return om_pending();
    for (uint32_t k = 0; k < c->n_out; k++)
        if (c->out[k]) {
            dst[k] = omi_arena_alloc(&b->plan->arena, omi_pval_bytes(c->out[k]) + 1);
            if (!dst[k]) return om_pending();
        }
    OM_TRY(omi_program_eval(b->program, c, b->ptr, dst));
    for (uint32_t k = 0; k < c->n_out; k++)
        if (c->out[k]) c->out[k]->known = dst[k];
    return *done = true, OM_OK;
}

static om_status infer_all(om_builder *b) {
    const om_program *p = b->program;
    for (uint32_t i = 0; i < p->n_nodes; i++) {
        om_nctx c = omi_program_ctx(p, &p->nodes[i], b->values, b->slots, &b->plan->arena,
                                    b->plan->workers);
        for (uint32_t k = 0; k < c.n_out; k++)
            if (c.out[k]) c.out[k]->rank = -1;
        if (c.def->infer(&c) != OM_OK)
            return c.status != OM_OK ? omi_program_raise(&c) : om_pending();
        for (uint32_t k = 0; k < c.n_out; k++) // a row that forgot an output must not be believed
            if (c.out[k] && c.out[k]->rank < 0)
                return omi_fail(OM_ERR_INTERNAL, "the sizes of '%s' were not inferred",
                                c.out[k]->name);
        if (c.def->fold && c.def->fold(&c) && small_outputs(&c) && plan_worth_folding(b, &c))
            OM_TRY(fold(b, &c, &b->done[i]));
        OM_TRY(omi_check_cancel());
    }
    return OM_OK;
}

/* ---- what is needed, and its steps ----------------------------------------------------------- */

static void mark_needed(om_builder *b) {
    const om_program *p = b->program;
    for (uint32_t i = 0; i < p->n_outputs; i++)
        b->needed[p->outputs[i]] = true;
    for (uint32_t i = p->n_nodes; i-- > 0;) {
        const om_pnode *n = &p->nodes[i];
        bool live         = false;
        for (uint32_t k = 0; k < n->n_out; k++)
            live = live || (n->out[k] != OM_NO_VALUE && b->needed[n->out[k]]);
        if (!live) b->done[i] = true;
        if (b->done[i]) continue;
        for (uint32_t k = 0; k < n->n_in; k++)
            if (n->in[k] != OM_NO_VALUE) b->needed[n->in[k]] = true;
    }
}

/* The step of one node, over whatever c says it is. */
static om_status select_one(om_builder *b, om_nctx *c) {
    c->held        = b->held;
    c->limit       = b->plan->arena.cap;
    om_run_step *s = omi_program_select(b->program, c);
    b->held        = c->held;
    if (!s) {
        if (c->status != OM_OK) return omi_program_raise(c);
        if (omi_failed()) return om_pending();
        return omi_fail(OM_ERR_INTERNAL, "there is no kernel for %s", c->def->type);
    }
    b->plan->steps[b->plan->n_steps++] = s;
    return omi_check_cancel();
}

static om_status select_all(om_builder *b) {
    const om_program *p = b->program;
    b->plan->steps      = omi_arena_array(&b->plan->arena, p->n_nodes + 1u, sizeof *b->plan->steps);
    if (!b->plan->steps) return om_pending();
    for (uint32_t i = 0; i < p->n_nodes; i++) {
        if (!b->done[i]) OM_TRY(omi_chain_from(b, i));
        if (b->done[i]) continue;
        om_nctx c = b->chain[i] ? omi_chain_ctx(b, b->chain[i])
                                : omi_program_ctx(p, &p->nodes[i], b->values, b->slots,
                                                  &b->plan->arena, b->plan->workers);
        OM_TRY(select_one(b, &c));
    }
    return OM_OK;
}

/* ---- the whole ------------------------------------------------------------------------------- */

static om_status set_up(om_builder *b) {
    const om_program *p = b->program;
    size_t n            = p->n_values + 1u;
    b->values           = omi_arena_array(&b->scratch, n, sizeof *b->values);
    b->slots       = omi_arena_array(&b->scratch, p->max_io + 1u + OM_CHAIN_IO, sizeof *b->slots);
    b->chain       = omi_arena_array(&b->scratch, p->n_nodes + 1u, sizeof *b->chain);
    b->ptr         = omi_arena_array(&b->scratch, n, sizeof *b->ptr);
    b->needed      = omi_arena_array(&b->scratch, n, sizeof *b->needed);
    b->done        = omi_arena_array(&b->scratch, p->n_nodes + 1u, sizeof *b->done);
    b->plan->in    = omi_arena_array(&b->plan->arena, p->n_inputs + 1u, sizeof(om_port));
    b->plan->out   = omi_arena_array(&b->plan->arena, p->n_outputs + 1u, sizeof(om_port));
    b->plan->fixed = omi_arena_array(&b->plan->arena, n, sizeof(void *));
    if (!b->values || !b->slots || !b->ptr || !b->needed || !b->done || !b->chain || !b->plan->in ||
        !b->plan->out || !b->plan->fixed)
        return om_pending();
    memcpy(b->values, p->values, p->n_values * sizeof *b->values);
    b->plan->n_in     = p->n_inputs;
    b->plan->n_out    = p->n_outputs;
    b->plan->n_values = p->n_values;
    return OM_OK;
}

static om_status build_plan(om_builder *b, const om_feed *feeds, int64_t limit) {
    if (!b->program->inner) OM_TRY(omi_bind_inputs(b->program->graph, feeds));
    OM_TRY(set_up(b));
    OM_TRY(take_inputs(b, feeds));
    OM_TRY(infer_all(b));
    mark_needed(b);
    OM_TRY(select_all(b));
    OM_TRY(omi_place(b));
    size_t run = b->plan->bytes + b->plan->out_bytes, need = b->held + b->plan->arena.total + run;
    b->plan->need = need;
    if (limit <= 0 || need <= (size_t)limit) return OM_OK;
    char largest[300];
    omi_plan_largest(b->plan, largest, sizeof largest);
    return omi_fail(
        OM_ERR_LIMIT,
        "a run of these sizes needs %zu bytes, %zu of them for its values; memory_limit "
        "is %lld: use smaller sizes or raise it%s",
        need, run, (long long)limit, largest);
}

om_plan *omi_plan_new(om_program *p, const om_feed *feeds, int workers, int64_t limit) {
    om_plan *plan = omi_calloc(sizeof *plan);
    if (!plan) return NULL;
    atomic_init(&plan->refs, 1);
    plan->program = omi_program_retain(p);
    plan->workers = workers;
    om_builder b  = {.program = p, .plan = plan, .held = omi_program_held(p)};
    if (limit > 0) plan->arena.cap = b.scratch.cap = (size_t)limit;
    om_status s = build_plan(&b, feeds, limit);
    omi_arena_clear(&b.scratch);
    if (s == OM_OK) return plan;
    omi_plan_release(plan);
    return NULL;
}

void omi_plan_largest(const om_plan *p, char *out, size_t n) {
    const om_graph *g = p->program->graph;
    char name[100], node[160];
    out[0] = 0;
    if (p->largest >= p->n_values) return;
    const char *is = p->program->values[p->largest].name; // a part has numbers of its own
    uint32_t v     = omi_graph_find(g, is, strlen(is));
    if (v == OM_NO_VALUE || g->values[v].producer < 0) return;
    snprintf(out, n, "; the largest value is '%s' of %s, %zu bytes",
             omi_escape_buf(name, sizeof name, is, strlen(is)),
             omi_node_text(g, (uint32_t)g->values[v].producer, node, sizeof node),
             p->largest_bytes);
}

om_plan *omi_plan_retain(om_plan *p) {
    atomic_fetch_add(&p->refs, 1);
    return p;
}

void omi_plan_release(om_plan *p) {
    if (!p || atomic_fetch_sub(&p->refs, 1) != 1) return;
    omi_program_release(p->program);
    omi_arena_clear(&p->arena);
    omi_free(p, sizeof *p);
}
