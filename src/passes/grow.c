/*
 * grow.c -- what passes add to a program: values, constants, nodes (CD-36).
 *
 * Values are numbered on; pointers to values do not outlive the next one. A node that a pass makes
 * joins the list when the pass is over, before the node it was made for, so that numbers of nodes
 * and pointers to them hold while a pass runs. All of it lies in the program's arena and counts
 * against memory_limit.
 */
#include <string.h>

#include "passes/program.h"

/* Room for one more; arrays grow by doubling, what they leave stays in the arena. */
static void *one_more(om_program *p, void *array, uint32_t n, uint32_t *cap, size_t size) {
    if (n < *cap) return array;
    if (n >= UINT32_MAX / 2) return omi_fail(OM_ERR_LIMIT, "a pass adds too much"), NULL;
    uint32_t more = n < 8 ? 16 : n * 2;
    void *v       = omi_arena_array(&p->arena, more, size);
    if (!v) return NULL;
    if (n) memcpy(v, array, n * size);
    *cap = more;
    return v;
}

uint32_t omi_program_add_value(om_program *p, const char *name, int32_t dtype, int rank) {
    void *v = one_more(p, p->values, p->n_values, &p->cap_values, sizeof *p->values);
    if (!v) return OM_NO_VALUE;
    p->values     = v;
    uint32_t at   = p->n_values++;
    p->values[at] = (om_pval){.name = name, .index = at, .dtype = dtype, .rank = rank};
    return at;
}

uint32_t omi_program_add_const(om_program *p, const char *name, int32_t dtype, int rank,
                               const int64_t *shape, om_buffer *b) {
    uint32_t v = omi_program_add_value(p, name, dtype, rank);
    if (v == OM_NO_VALUE) return omi_buffer_release(b), v;
    return omi_program_set_const(p, v, rank, shape, b) == OM_OK ? v : OM_NO_VALUE;
}

om_status omi_program_add_node(om_program *p, uint32_t before, const om_pnode *n,
                               size_t form_bytes) {
    void *v = one_more(p, p->added, p->n_added, &p->cap_added, sizeof *p->added);
    if (!v) return om_pending();
    p->added     = v;
    om_added *a  = &p->added[p->n_added];
    *a           = (om_added){.node = *n, .before = before};
    uint32_t *io = omi_arena_array(&p->arena, (size_t)n->n_in + n->n_out + 1, sizeof *io);
    void *form   = omi_arena_alloc(&p->arena, form_bytes + 1);
    if (!io || !form) return om_pending();
    a->node.in  = io;
    a->node.out = io + n->n_in;
    if (n->n_in) memcpy(a->node.in, n->in, n->n_in * sizeof *io);
    if (n->n_out) memcpy(a->node.out, n->out, n->n_out * sizeof *io);
    if (form_bytes) memcpy(form, n->form, form_bytes);
    a->node.form = form_bytes ? form : n->form;
    if (n->n_in + n->n_out > p->max_io) p->max_io = n->n_in + n->n_out;
    p->n_added++;
    return OM_OK;
}

om_status omi_program_settle(om_program *p) {
    if (!p->n_added) return OM_OK;
    size_t all      = (size_t)p->n_nodes + p->n_added;
    om_pnode *nodes = omi_arena_array(&p->arena, all + 1, sizeof *nodes);
    // Where each goes: a count of the nodes added before it, kept in the order they were added.
    uint32_t *first = omi_arena_array(&p->arena, (size_t)p->n_nodes + 2, sizeof *first);
    if (!nodes || !first || all > UINT32_MAX) return om_pending();
    for (uint32_t i = 0; i < p->n_added; i++)
        first[omi_min64(p->added[i].before, p->n_nodes) + 1]++;
    for (uint32_t i = 0; i < p->n_nodes; i++) {
        first[i + 1] += first[i];
        nodes[i + first[i + 1]] = p->nodes[i];
    }
    for (uint32_t i = 0; i < p->n_added; i++) {
        uint32_t at             = (uint32_t)omi_min64(p->added[i].before, p->n_nodes);
        nodes[at + first[at]++] = p->added[i].node;
    }
    p->nodes   = nodes;
    p->n_nodes = (uint32_t)all;
    p->n_added = 0;
    return OM_OK;
}
