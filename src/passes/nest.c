/*
 * nest.c -- the subgraphs of a node as programs of their own (CD-37).
 *
 * A child is made when its node is parsed: what it captures has a type by then, and constants of
 * the program around are constants inside. Everything else it captures becomes an input of the
 * child and of the node, so that dead code, liveness and the runtime see captures as what they are.
 * What a file may have wrong here -- other counts or types than the node's -- is noted like any
 * other problem.
 */
#include <stdio.h>
#include <string.h>

#include "graphops/forms.h"
#include "passes/program.h"

/* What a node says of its subgraphs. */
typedef struct shape_of_nest {
    const char *attr[OM_NEST_MOST];
    uint32_t n;
    uint32_t formal;  /* inputs of each subgraph                                           */
    uint32_t lead;    /* formal inputs before the node's own: iteration and condition      */
    uint32_t skip;    /* inputs of the node that the subgraph does not see                 */
    uint32_t leadout; /* outputs of the subgraph that the node does not have: condition    */
    uint32_t state;   /* further outputs that must have the type of the state going in     */
} shape_of_nest;

static shape_of_nest nested_shape_of(const om_pnode *n) {
    if (n->def->arg == OM_MET_IF)
        return (shape_of_nest){.attr = {"then_branch", "else_branch"}, .n = 2, .skip = 1};
    if (n->def->arg == OM_MET_LOOP) {
        uint32_t state = n->n_in > 2 ? n->n_in - 2 : 0;
        return (shape_of_nest){.attr    = {"body"},
                               .n       = 1,
                               .formal  = 2 + state,
                               .lead    = 2,
                               .skip    = 2,
                               .leadout = 1,
                               .state   = state};
    }
    const om_scan_form *f = n->form;
    return (shape_of_nest){.attr = {"body"}, .n = 1, .formal = n->n_in, .state = f->n_state};
}

OM_COLD static om_status note_nest(const om_program *p, const om_pnode *n, om_problems *pr,
                                   om_status s, const char *attr, const char *what) {
    char text[200];
    snprintf(text, sizeof text, "its %s %s", attr, what);
    omi_problems_note(pr, p->graph, n->index, s, text);
    return OM_OK;
}

/* Counts of inputs and outputs. False and noted. */
static bool check_counts_of(const om_program *p, const om_pnode *n, const shape_of_nest *s,
                            uint32_t k, const om_graph *g, om_problems *pr) {
    char what[120];
    if (g->n_inputs != s->formal) {
        snprintf(what, sizeof what, "has %u inputs; it needs %u", g->n_inputs, s->formal);
        return note_nest(p, n, pr, OM_ERR_MALFORMED, s->attr[k], what), false;
    }
    uint32_t least = s->leadout + s->state, most = n->n_out + s->leadout;
    // Scan and Loop may leave trailing outputs unnamed; an If has all of them.
    bool ok = s->lead || s->state || n->def->arg == OM_MET_SCAN
                  ? g->n_outputs >= least && g->n_outputs >= most
                  : g->n_outputs == most;
    if (ok) return true;
    snprintf(what, sizeof what, "has %u outputs; it needs %u", g->n_outputs,
             least > most ? least : most);
    return note_nest(p, n, pr, OM_ERR_MALFORMED, s->attr[k], what), false;
}

/* Types that the formal inputs are given. */
static void formal_types(const om_program *p, const om_pnode *n, const shape_of_nest *s,
                         int32_t *types) {
    if (s->lead == 2) {
        types[0] = OM_I64;
        types[1] = OM_BOOL;
    }
    for (uint32_t i = s->lead; i < s->formal; i++) {
        uint32_t at = i - s->lead + s->skip;
        uint32_t v  = at < n->n_in ? n->in[at] : OM_NO_VALUE;
        types[i]    = v == OM_NO_VALUE ? 0 : p->values[v].dtype;
    }
}

/* A list of an attribute has an entry for each scan output, or is not there. */
static bool check_scan_lists(const om_program *p, const om_pnode *n, uint32_t outputs,
                             om_problems *pr) {
    const om_scan_form *f = n->form;
    uint32_t piles        = outputs - f->n_state;
    if ((!f->out_axes || f->n_out_axes == piles) && (!f->out_back || f->n_out_back == piles))
        return true;
    omi_problems_note(pr, p->graph, n->index, OM_ERR_MALFORMED,
                      "scan_output_axes and scan_output_directions need an entry for each scan "
                      "output");
    return false;
}

/* Types of the outputs against those of the states and of the other branch. */
static om_status take_types(om_program *p, om_pnode *n, const shape_of_nest *s, uint32_t k,
                            const om_program *child, om_problems *pr) {
    char what[160];
    if (n->def->arg == OM_MET_SCAN && !check_scan_lists(p, n, child->n_outputs, pr)) return OM_OK;
    if (s->leadout && child->values[child->outputs[0]].dtype != OM_BOOL)
        return note_nest(p, n, pr, OM_ERR_MALFORMED, s->attr[k], "does not return a bool first");
    for (uint32_t i = s->leadout; i < child->n_outputs; i++) {
        int32_t has = child->values[child->outputs[i]].dtype, must = 0;
        uint32_t to = i - s->leadout;
        if (to < s->state) must = child->values[child->inputs[s->lead + to]].dtype;
        uint32_t v = to < n->n_out ? n->out[to] : OM_NO_VALUE;
        if (v != OM_NO_VALUE && k > 0 && !must) must = p->values[v].dtype;
        if (!has || (must && has != must)) {
            snprintf(what, sizeof what, "returns %s as output %u; it must be %s",
                     has ? omi_elem_name(has) : "no known type", i,
                     must ? omi_elem_name(must) : "known");
            return note_nest(p, n, pr, OM_ERR_MALFORMED, s->attr[k], what);
        }
        if (v != OM_NO_VALUE) p->values[v].dtype = has;
    }
    return OM_OK;
}

static om_status make_child(om_program *p, om_pnode *n, const shape_of_nest *s, uint32_t k,
                            om_nest *nest, om_problems *pr) {
    om_graph *g = omi_attr(&p->graph->nodes[n->index], s->attr[k])->graphs[0];
    if (p->depth >= OM_NEST_DEPTH) {
        char what[80];
        snprintf(what, sizeof what, "is nested deeper than %d", OM_NEST_DEPTH);
        return note_nest(p, n, pr, OM_ERR_LIMIT, s->attr[k], what);
    }
    if (!check_counts_of(p, n, s, k, g, pr)) return OM_OK;
    int32_t *types = omi_arena_array(&p->arena, (size_t)s->formal + 1, sizeof *types);
    if (!types) return om_pending();
    formal_types(p, n, s, types);
    nest->child[k] = omi_program_sub(p, g, s->formal, types, pr);
    if (!nest->child[k]) return om_pending(); // noted, where nothing is raised
    nest->n = k + 1;
    p->nested += omi_program_held(nest->child[k]);
    p->n_parts += nest->child[k]->n_parts;
    p->n_met += nest->child[k]->n_met;
    return take_types(p, n, s, k, nest->child[k], pr);
}

/* Behind the inputs of the file, what the children capture. */
static om_status add_captures(om_program *p, om_pnode *n, om_nest *nest) {
    size_t all = n->n_in;
    for (uint32_t k = 0; k < nest->n; k++)
        all += nest->child[k]->n_inputs - nest->child[k]->n_formal;
    if (all >= UINT32_MAX / 2 - n->n_out) return omi_fail(OM_ERR_LIMIT, "a node captures too much");
    uint32_t *in = omi_arena_array(&p->arena, all + n->n_out + 1, sizeof *in);
    if (!in) return om_pending();
    if (n->n_in) memcpy(in, n->in, n->n_in * sizeof *in);
    uint32_t at = n->n_in;
    for (uint32_t k = 0; k < nest->n; k++) {
        const om_program *c = nest->child[k];
        nest->first[k]      = at;
        for (uint32_t i = 0; i < c->n_inputs - c->n_formal; i++)
            in[at++] = c->captured[i];
    }
    if (n->n_out) memcpy(in + at, n->out, n->n_out * sizeof *in);
    n->in   = in;
    n->n_in = at;
    n->out  = in + at;
    if (n->n_in + n->n_out > p->max_io) p->max_io = n->n_in + n->n_out;
    return OM_OK;
}

om_status omi_program_nest(om_program *p, om_pnode *n, om_problems *pr) {
    if (n->def->arg == OM_MET_NONZERO) return OM_OK;
    shape_of_nest s = nested_shape_of(n);
    om_nest *nest   = omi_arena_alloc(&p->arena, sizeof *nest);
    if (!nest) return om_pending();
    uint32_t before = pr->n;
    nest->next      = p->nests;
    p->nests        = nest;
    n->nest         = nest;
    for (uint32_t k = 0; k < s.n; k++) {
        OM_TRY(make_child(p, n, &s, k, nest, pr));
        if (pr->n != before) return OM_OK;
    }
    return add_captures(p, n, nest);
}
