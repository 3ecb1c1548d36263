/*
 * stages.c -- cutting a program into parts that have one plan each (CD-37).
 *
 * A node whose output sizes are met while running (If, Loop, Scan, NonZero) is a stage of its own;
 * the plain nodes between two of them are a part: a small program with values of its own numbers,
 * so that its plans cost what the part costs and not what the whole does. Its inputs are what it
 * reads from outside, its outputs what somebody outside reads. A program without such nodes stays
 * whole, unless it is a subgraph.
 */
#include <stdatomic.h>
#include <string.h>

#include "base/thread.h"
#include "passes/program.h"

#define NEVER_READ UINT32_MAX

typedef struct cutter {
    om_program *p;
    om_arena scratch;
    uint32_t *last;        /* per value: the last stage that reads it              */
    uint32_t *made;        /* per value: the stage that makes it                   */
    uint32_t *map, *stamp; /* per value: its number in the part that is being made */
    uint32_t *from;        /* per number in the part: the value                    */
} cutter;

static bool met(const om_program *p, uint32_t i) {
    return omi_node_met(p->nodes[i].def);
}

/* Nodes [i, end) are one stage. */
static uint32_t stage_end(const om_program *p, uint32_t i) {
    uint32_t end = i + 1;
    while (!met(p, i) && end < p->n_nodes && !met(p, end))
        end++;
    return end;
}

/* Which stage makes each value, and which reads it last; outputs outlive all stages. */
static void find_lives(cutter *k) {
    om_program *p = k->p;
    for (uint32_t v = 0; v < p->n_values; v++)
        k->last[v] = k->made[v] = NEVER_READ;
    for (uint32_t i = 0, s = 0; i < p->n_nodes; s++)
        for (uint32_t end = stage_end(p, i); i < end; i++) {
            const om_pnode *n = &p->nodes[i];
            for (uint32_t j = 0; j < n->n_in; j++)
                if (n->in[j] != OM_NO_VALUE) k->last[n->in[j]] = s;
            for (uint32_t j = 0; j < n->n_out; j++)
                if (n->out[j] != OM_NO_VALUE) k->last[n->out[j]] = k->made[n->out[j]] = s;
        }
    for (uint32_t i = 0; i < p->n_outputs; i++)
        k->last[p->outputs[i]] = p->n_stages;
}

/* The number of v in part number s; a new one where the part has not met it. */
static uint32_t number_in(cutter *k, om_program *part, uint32_t v, uint32_t s) {
    if (v == OM_NO_VALUE) return v;
    if (k->stamp[v] == s + 1) return k->map[v];
    uint32_t at      = part->n_values++;
    k->stamp[v]      = s + 1;
    k->map[v]        = at;
    k->from[at]      = v;
    om_pval *x       = &part->values[at];
    const om_pval *w = &k->p->values[v];
    *x               = *w;
    x->index         = at;
    if (w->known == w) x->known = x; // a value without elements
    return at;
}

static om_status copy_nodes(cutter *k, om_program *part, uint32_t i, uint32_t end, uint32_t s) {
    for (; i < end; i++) {
        const om_pnode *n = &k->p->nodes[i];
        om_pnode *c       = &part->nodes[part->n_nodes++];
        *c                = *n;
        c->in = omi_arena_array(&part->arena, (size_t)n->n_in + n->n_out + 1, sizeof *c->in);
        if (!c->in) return om_pending();
        c->out = c->in + n->n_in;
        for (uint32_t j = 0; j < n->n_in; j++)
            c->in[j] = number_in(k, part, n->in[j], s);
        for (uint32_t j = 0; j < n->n_out; j++)
            c->out[j] = number_in(k, part, n->out[j], s);
        if (n->n_in + n->n_out > part->max_io) part->max_io = n->n_in + n->n_out;
    }
    return OM_OK;
}

/* What the part reads from outside and what is read outside, in the order they were met. */
static om_status set_ports(cutter *k, om_program *part, om_stage *st, uint32_t s) {
    for (uint32_t at = 0; at < part->n_values; at++) {
        uint32_t v = k->from[at];
        if (part->values[at].known) continue;
        part->n_inputs += k->made[v] != s;
        part->n_outputs += k->made[v] == s && k->last[v] != s;
    }
    size_t in = part->n_inputs + 1u, out = part->n_outputs + 1u;
    part->inputs   = omi_arena_array(&part->arena, in, sizeof *part->inputs);
    part->outputs  = omi_arena_array(&part->arena, out, sizeof *part->outputs);
    part->by_value = omi_arena_array(&part->arena, in, sizeof *part->by_value);
    st->in         = omi_arena_array(&part->arena, in, sizeof *st->in);
    st->out        = omi_arena_array(&part->arena, out, sizeof *st->out);
    if (!part->inputs || !part->outputs || !part->by_value || !st->in || !st->out)
        return om_pending();
    uint32_t i = 0, o = 0;
    for (uint32_t at = 0; at < part->n_values; at++) {
        uint32_t v = k->from[at];
        if (part->values[at].known) continue;
        if (k->made[v] != s) {
            part->inputs[i] = at;
            st->in[i++]     = v;
        } else if (k->last[v] != s) {
            part->outputs[o] = at;
            st->out[o++]     = v;
        }
    }
    return omi_program_find_by_value(part);
}

static om_status make_part(cutter *k, om_stage *st, uint32_t i, uint32_t end, uint32_t s) {
    om_program *p = k->p, *part = omi_calloc(sizeof *part);
    size_t most = 0;
    if (!part) return OM_ERR_NOMEM;
    st->part = part;
    atomic_init(&part->refs, 1);
    part->graph    = p->graph;
    om_graph *root = omi_graph_root(p->graph);
    om_graph_retain(root);
    atomic_fetch_add(&root->sessions, 1);
    part->arith     = p->arith;
    part->opset     = p->opset;
    part->inner     = true;
    part->creating  = true;
    part->limit     = p->limit;
    part->arena.cap = p->arena.cap;
    for (uint32_t n = i; n < end; n++)
        most += (size_t)p->nodes[n].n_in + p->nodes[n].n_out;
    if (most > p->n_values) most = p->n_values;
    part->nodes  = omi_arena_array(&part->arena, (size_t)(end - i) + 1, sizeof *part->nodes);
    part->values = omi_arena_array(&part->arena, most + 1, sizeof *part->values);
    if (!part->nodes || !part->values) return om_pending();
    OM_TRY(copy_nodes(k, part, i, end, s));
    OM_TRY(set_ports(k, part, st, s));
    OM_TRY(omi_run_planned_passes(part));
    p->nested += part->arena.total;
    p->n_parts++;
    return OM_OK;
}

/* Per stage the values that nobody reads after it: a counting sort by last. */
static om_status set_drops(cutter *k) {
    om_program *p = k->p;
    size_t n      = 0;
    for (uint32_t v = 0; v < p->n_values; v++)
        if (k->last[v] < p->n_stages) p->stages[k->last[v]].n_drop++, n++;
    uint32_t *all = omi_arena_array(&p->arena, n + 1, sizeof *all);
    if (!all) return om_pending();
    for (uint32_t s = 0; s < p->n_stages; s++) {
        p->stages[s].drop = all;
        all += p->stages[s].n_drop;
        p->stages[s].n_drop = 0;
    }
    for (uint32_t v = 0; v < p->n_values; v++)
        if (k->last[v] < p->n_stages) {
            om_stage *st           = &p->stages[k->last[v]];
            st->drop[st->n_drop++] = v;
        }
    return OM_OK;
}

static om_status cut_parts(cutter *k, uint32_t stages) {
    om_program *p = k->p;
    size_t n      = p->n_values + 1u;
    k->last       = omi_arena_array(&k->scratch, n, sizeof *k->last);
    k->made       = omi_arena_array(&k->scratch, n, sizeof *k->made);
    k->map        = omi_arena_array(&k->scratch, n, sizeof *k->map);
    k->stamp      = omi_arena_array(&k->scratch, n, sizeof *k->stamp);
    k->from       = omi_arena_array(&k->scratch, n, sizeof *k->from);
    p->stages     = omi_arena_array(&p->arena, stages + 1u, sizeof *p->stages);
    if (!k->last || !k->made || !k->map || !k->stamp || !k->from || !p->stages) return om_pending();
    p->n_stages = stages;
    find_lives(k);
    for (uint32_t i = 0, s = 0; i < p->n_nodes; s++) {
        uint32_t end = stage_end(p, i);
        if (met(p, i))
            p->stages[s].node = &p->nodes[i];
        else
            OM_TRY(make_part(k, &p->stages[s], i, end, s));
        i = end;
        OM_TRY(omi_check_cancel());
    }
    return set_drops(k);
}

om_status omi_program_cut(om_program *p) {
    uint32_t stages = 0;
    bool any        = false;
    for (uint32_t i = 0; i < p->n_nodes; i = stage_end(p, i), stages++) {
        if (!any && met(p, i)) p->first_met = p->nodes[i].index;
        any = any || met(p, i);
        p->n_met += met(p, i);
    }
    p->staged = any || p->inner;
    if (!p->staged) return omi_run_planned_passes(p);
    cutter k    = {.p = p};
    om_status s = cut_parts(&k, stages);
    omi_arena_clear(&k.scratch);
    return s;
}
