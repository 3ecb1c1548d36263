/*
 * program.c -- from graph to program: look up, check types, align constants, apply the passes.
 *
 * Every node is checked before anything is refused, so that one attempt lists all that is missing.
 */
#include "passes/program.h"

#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#include "base/checked.h"
#include "base/map.h"
#include "base/thread.h"
#include "base/utf8.h"

/* ---- problems -----------------------------------------------------------------------------------
 */

void omi_problems_free(om_problems *p) {
    omi_str_free(&p->text);
    omi_str_free(&p->brief);
}

static void note(om_problems *p, om_status s, const char *who, const char *brief,
                 const char *what) {
    p->n++;
    if (p->status == OM_OK || s == OM_ERR_UNSUPPORTED) p->status = s;
    omi_str_printf(&p->text, "%s: %s\n", who, what);
    omi_str_printf(&p->brief, "%s%s", p->n > 1 ? ", " : "", brief);
}

void omi_problems_note(om_problems *p, const om_graph *g, uint32_t node, om_status s,
                       const char *what) {
    char who[256];
    omi_node_text(g, node, who, sizeof who);
    note(p, s, who, who, what);
}

static void note_value(om_problems *p, const om_gvalue *v, const char *kind, om_status s,
                       const char *what) {
    char who[200], name[160];
    omi_escape_buf(name, sizeof name, v->name, strlen(v->name));
    snprintf(who, sizeof who, "%s '%s'", kind, name);
    note(p, s, who, who, what);
}

/* ---- constants ----------------------------------------------------------------------------------
 */

static bool keep_buffer(om_program *p, om_buffer *b) {
    if (p->n_bufs == p->cap_bufs) {
        uint32_t cap = p->cap_bufs ? p->cap_bufs * 2 : 16;
        void *v      = omi_realloc(p->bufs, p->cap_bufs * sizeof *p->bufs, cap * sizeof *p->bufs);
        if (!v) return omi_buffer_release(b), false;
        p->bufs     = v;
        p->cap_bufs = cap;
    }
    p->bufs[p->n_bufs++] = b;
    p->held += b->bytes;
    if (!p->limit || p->held <= p->limit) return true;
    omi_fail(OM_ERR_LIMIT,
             "the constants of the graph need more than memory_limit, %zu bytes: raise it",
             p->limit);
    return false;
}

bool omi_program_may_fold(const om_program *p, size_t bytes) {
    size_t most = OM_FOLD_BUDGET + 2 * p->given, all;
    if (!omi_add_size(p->folded, bytes, &all) || all > most) return false;
    return !p->limit || (p->held <= p->limit / 2 && bytes <= p->limit / 2 - p->held);
}

bool omi_program_decides_sizes(const om_program *p, const om_nctx *c) {
    for (uint32_t k = 0; k < c->n_out; k++)
        if (c->out[k] && p->sizes[c->out[k]->index]) return true;
    return false;
}

om_status omi_program_drop_unused(om_program *p) {
    om_map used = {0};
    om_status s = OM_OK;
    uint32_t n  = 0;
    for (uint32_t i = 0; s == OM_OK && i < p->n_nodes; i++)
        for (uint32_t k = 0; s == OM_OK && k < p->nodes[i].n_in; k++) {
            uint32_t v = p->nodes[i].def ? p->nodes[i].in[k] : OM_NO_VALUE;
            if (v != OM_NO_VALUE && p->values[v].buf &&
                !omi_map_set(&used, (uintptr_t)p->values[v].buf, p->values[v].buf))
                s = OM_ERR_NOMEM;
        }
    for (uint32_t i = 0; s == OM_OK && i < p->n_outputs; i++) {
        om_buffer *b = p->values[p->outputs[i]].buf;
        if (b && !omi_map_set(&used, (uintptr_t)b, b)) s = OM_ERR_NOMEM;
    }
    for (uint32_t v = 0; s == OM_OK && v < p->n_values; v++)
        if (p->values[v].buf && !omi_map_get(&used, (uintptr_t)p->values[v].buf)) {
            p->values[v].known = NULL; // nobody reads it; the graph keeps its own
            p->values[v].buf   = NULL;
        }
    for (uint32_t i = 0; s == OM_OK && i < p->n_bufs; i++)
        if (omi_map_get(&used, (uintptr_t)p->bufs[i]))
            p->bufs[n++] = p->bufs[i];
        else {
            p->held -= p->bufs[i]->bytes;
            omi_buffer_release(p->bufs[i]);
        }
    if (s == OM_OK) p->n_bufs = n;
    omi_map_free(&used);
    return s;
}

static bool needs_copy(const om_ginit *t, size_t item) {
    const unsigned char *d = (const unsigned char *)t->buf->data + t->offset;
    if ((uintptr_t)d % item || t->offset % item) return true;
    for (size_t i = 0; t->dtype == OM_BOOL && i < t->bytes; i++)
        if (d[i] > 1) return true; // kernels rely on 0 and 1
    return false;
}

/* What is wrong, for a problem. */
typedef struct om_fact {
    char text[280];
} om_fact;

/* Why the bytes of t cannot be those of its type and sizes. */
static void wrong_bytes(const om_ginit *t, size_t item, om_fact *f) {
    char shape[120];
    int64_t n = 0;
    omi_shape_text(shape, sizeof shape, t->rank, t->dims);
    if (omi_numel_of(t->dtype, t->rank, t->dims, &n))
        snprintf(f->text, sizeof f->text, "its type %s and sizes %s need %zu bytes; it has %zu",
                 om_dtype_name((om_dtype)t->dtype), shape, (size_t)n * item, t->bytes);
    else
        snprintf(f->text, sizeof f->text,
                 "its sizes %s are beyond what can be addressed (their product, zeros aside, times "
                 "%zu bytes, must stay below 2^63)",
                 shape, item);
}

/* Contents of t for value v. Types without kernels stay unknown; a node that uses them reports it.
 */
static om_status set_contents(om_program *p, om_pval *v, const om_ginit *t, om_fact *what) {
    int64_t n   = 0;
    size_t item = om_dtype_size((om_dtype)t->dtype), bytes = 0;
    v->dtype = t->dtype;
    v->rank  = t->rank;
    if (t->rank > OM_MAX_RANK || !item) return OM_OK;
    if (!omi_numel_of(t->dtype, t->rank, t->dims, &n) || (bytes = (size_t)n * item) != t->bytes ||
        (bytes && (!t->buf || t->offset > t->buf->bytes || bytes > t->buf->bytes - t->offset))) {
        wrong_bytes(t, item, what);
        return OM_ERR_MALFORMED;
    }
    for (int i = 0; i < t->rank; i++)
        v->shape[i] = t->dims[i];
    v->numel = n;
    if (!bytes) return v->known = v, OM_OK; // nothing will be read
    v->buf    = t->buf;
    v->offset = (int64_t)t->offset;
    if (needs_copy(t, item)) {
        om_buffer *b = omi_buffer_new(bytes);
        if (!b || !keep_buffer(p, b)) return om_pending();
        memcpy(b->data, (const char *)t->buf->data + t->offset, bytes);
        uint8_t *d = b->data;
        for (size_t i = 0; t->dtype == OM_BOOL && i < bytes; i++)
            d[i] = d[i] != 0;
        v->buf    = b;
        v->offset = 0;
    }
    v->known = (const char *)v->buf->data + v->offset;
    return OM_OK;
}

static om_status set_scalar_list(om_program *p, om_pval *v, int32_t dtype, int rank, size_t n,
                                 const void *data) {
    om_buffer *b = omi_buffer_new(n * om_dtype_size((om_dtype)dtype));
    if (!b) return OM_ERR_NOMEM;
    memcpy(b->data, data, b->bytes);
    v->dtype = dtype;
    return omi_program_set_const(p, v->index, rank, (int64_t[]){(int64_t)n}, b);
}

/* A Constant node is a constant value. */
static om_status read_constant(om_program *p, uint32_t node, om_problems *pr) {
    const om_gnode *n = &p->graph->nodes[node];
    om_fact what      = {""};
    const om_attr *a  = n->n_attr == 1 ? &n->attrs[0] : NULL;
    om_status s       = OM_ERR_UNSUPPORTED;
    if (n->n_in || n->n_out != 1 || n->out[0] == OM_NO_VALUE || !a) {
        omi_problems_note(pr, p->graph, node, OM_ERR_MALFORMED,
                          "it needs one output and one value");
        return OM_OK;
    }
    om_pval *v = &p->values[n->out[0]];
    if (a->type == OM_ATTR_TENSOR && a->n == 1 && strcmp(a->name, "value") == 0)
        s = set_contents(p, v, &a->tensors[0], &what);
    else if (a->type == OM_ATTR_FLOAT && strcmp(a->name, "value_float") == 0)
        s = set_scalar_list(p, v, OM_F32, 0, 1, &a->f);
    else if (a->type == OM_ATTR_FLOATS && strcmp(a->name, "value_floats") == 0)
        s = set_scalar_list(p, v, OM_F32, 1, a->n, a->floats);
    else if (a->type == OM_ATTR_INT && strcmp(a->name, "value_int") == 0)
        s = set_scalar_list(p, v, OM_I64, 0, 1, &a->i);
    else if (a->type == OM_ATTR_INTS && strcmp(a->name, "value_ints") == 0)
        s = set_scalar_list(p, v, OM_I64, 1, a->n, a->ints);
    else
        snprintf(what.text, sizeof what.text, "this form of constant is not read");
    if (omi_failed()) return om_pending();
    if (s != OM_OK) omi_problems_note(pr, p->graph, node, s, what.text);
    return OM_OK;
}

om_status omi_program_set_const(om_program *p, uint32_t v, int rank, const int64_t *shape,
                                om_buffer *b) {
    om_pval *x = &p->values[v];
    if (!keep_buffer(p, b)) return om_pending();
    x->rank  = rank;
    x->numel = 1;
    for (int i = 0; i < rank; i++)
        x->numel *= x->shape[i] = shape[i];
    x->buf    = b;
    x->offset = 0;
    x->known  = b->data;
    return OM_OK;
}

/* ---- contexts -----------------------------------------------------------------------------------
 */

om_nctx omi_program_ctx(const om_program *p, const om_pnode *n, om_pval *values, om_pval **slots,
                        om_arena *arena, int workers) {
    om_nctx c = {.graph    = p->graph,
                 .index    = n->index,
                 .def      = n->def,
                 .form     = n->form,
                 .n_in     = n->n_in,
                 .n_out    = n->n_out,
                 .in       = slots,
                 .out      = slots + n->n_in,
                 .arena    = arena,
                 .workers  = workers,
                 .fast     = p->arith == OM_FAST,
                 .creating = p->creating};
    for (uint32_t i = 0; i < n->n_in; i++)
        c.in[i] = n->in[i] == OM_NO_VALUE ? NULL : &values[n->in[i]];
    for (uint32_t i = 0; i < n->n_out; i++)
        c.out[i] = n->out[i] == OM_NO_VALUE ? NULL : &values[n->out[i]];
    return c;
}

om_status omi_program_raise(const om_nctx *c) {
    char who[160];
    om_status s = c->creating && c->status == OM_ERR_SHAPE ? OM_ERR_MALFORMED : c->status;
    return omi_fail(s, "%s: %s", omi_node_text(c->graph, c->index, who, sizeof who), c->message);
}

om_run_step *omi_program_select(const om_program *p, om_nctx *c) {
    return omi_node_select(c->def, p->arith == OM_FAST)(c);
}

om_status omi_program_eval(const om_program *p, om_nctx *c, void **ptr, void *const *dst) {
    om_run_step *s = omi_program_select(p, c);
    if (!s) return c->status != OM_OK ? omi_program_raise(c) : om_pending();
    static const _Alignas(OM_ALIGN) char nothing[OM_ALIGN] = {
        0}; // where a value without elements is
    for (uint32_t i = 0; i < c->n_in; i++) {
        const void *from = !c->in[i] ? NULL : c->in[i]->known ? c->in[i]->known : nothing;
        if (from) memcpy(&ptr[c->in[i]->index], &from, sizeof from);
    }
    for (uint32_t k = 0; k < c->n_out; k++) {
        if (!c->out[k]) continue;
        ptr[c->out[k]->index] = dst[k];
        if (!s->run && omi_pval_bytes(c->out[k]))
            memcpy(dst[k], (const char *)c->in[0]->known + s->views[k], omi_pval_bytes(c->out[k]));
    }
    if (!s->run) return OM_OK;
    void *ws = s->ws_bytes ? omi_alloc_aligned(s->ws_bytes) : NULL;
    if (s->ws_bytes && !ws) return OM_ERR_NOMEM;
    om_exec e    = {.ptr = ptr, .ws = ws, .workers = c->workers, .graph = p->graph};
    om_status st = s->run(s, &e);
    omi_free_aligned(ws, s->ws_bytes);
    return st == OM_OK ? omi_check_cancel() : st;
}

/* ---- making -------------------------------------------------------------------------------------
 */

static om_status set_values(om_program *p, om_problems *pr) {
    const om_graph *g = p->graph;
    for (uint32_t i = 0; i < g->n_values; i++) {
        om_pval *v = &p->values[i];
        *v         = (om_pval){.name = g->values[i].name, .index = i, .rank = -1};
        if (g->values[i].init < 0) continue;
        om_fact what = {""};
        om_status s  = set_contents(p, v, &g->inits[g->values[i].init], &what);
        if (omi_failed()) return om_pending();
        if (s != OM_OK) note_value(pr, &g->values[i], "initializer", s, what.text);
    }
    for (uint32_t i = 0; i < p->n_formal; i++) {
        const om_gvalue *v = &g->values[g->inputs[i]];
        om_pval *x         = &p->values[g->inputs[i]];
        x->dtype           = v->dtype;
        x->rank            = v->rank; // for parse; sizes come with a plan
        if (v->type_text) {
            char what[120];
            snprintf(what, sizeof what, "it is %.60s; tensors are computed", v->type_text);
            note_value(pr, v, "input", OM_ERR_UNSUPPORTED, what);
        } else if (!v->dtype && !p->inner)
            note_value(pr, v, "input", OM_ERR_MALFORMED, "it has no element type");
    }
    return OM_OK;
}

/* What a subgraph is told by the node that holds it and by the program around. */
static om_status set_formal_types(om_program *p, uint32_t n, const int32_t *types,
                                  om_problems *pr) {
    char what[160];
    for (uint32_t i = 0; i < n; i++) {
        om_pval *x         = &p->values[p->inputs[i]];
        const om_gvalue *v = &p->graph->values[p->inputs[i]];
        if (x->dtype && types[i] && x->dtype != types[i]) {
            snprintf(what, sizeof what, "it is declared %s and given as %s",
                     omi_elem_name(x->dtype), omi_elem_name(types[i]));
            note_value(pr, v, "input", OM_ERR_MALFORMED, what);
        }
        if (!x->dtype) x->dtype = types[i];
        if (!x->dtype) note_value(pr, v, "input", OM_ERR_MALFORMED, "it has no element type");
    }
    return OM_OK;
}

/* Captured values: constants are constants here too, the rest are inputs. */
static om_status set_captures(om_program *p, const om_program *outer) {
    const om_graph *g = p->graph;
    for (uint32_t i = 0; i < g->n_values; i++) {
        if (!g->values[i].captured) continue;
        om_pval *x  = &p->values[i];
        uint32_t at = omi_graph_find(outer->graph, g->values[i].name, strlen(g->values[i].name));
        if (at == OM_NO_VALUE)
            return omi_fail(OM_ERR_INTERNAL, "a captured value is not in the graph around");
        const om_pval *from = &outer->values[at];
        *x                  = *from;
        x->name             = g->values[i].name;
        x->index            = i;
        if (from->known == from) x->known = x; // a value without elements
        if (x->known && x->buf) p->lent[p->n_lent++] = omi_buffer_retain(x->buf);
        if (x->known) continue;
        p->captured[p->n_inputs - p->n_formal] = at;
        p->inputs[p->n_inputs++]               = i;
    }
    return OM_OK;
}

/* Looks a node up, checks it against its row and parses it, or reports why it cannot be run. */
static void parse_node(om_program *p, om_pnode *n, om_pval **slots, om_problems *pr) {
    const om_gnode *gn = &p->graph->nodes[n->index];
    int32_t oldest     = 0;
    n->def             = omi_node_def(gn->op_type, gn->domain, p->opset, &oldest);
    om_nctx c          = omi_program_ctx(p, n, p->values, slots, &p->arena, 1);
    c.node             = gn;
    c.opset            = p->opset;
    if (oldest)
        omi_problem(&c, OM_ERR_UNSUPPORTED,
                    "opset %lld is declared; the form of %d and later is read", (long long)p->opset,
                    oldest);
    else if (!n->def && gn->domain[0])
        omi_problem(&c, OM_ERR_UNSUPPORTED, "there is no operator %.60s of domain %.60s",
                    gn->op_type, gn->domain);
    else if (!n->def)
        omi_problem(&c, OM_ERR_UNSUPPORTED, "there is no operator %.60s", gn->op_type);
    else if (!omi_node_select(n->def, p->arith == OM_FAST))
        omi_problem(&c, OM_ERR_UNSUPPORTED, "there is no exact kernel; OM_FAST runs it");
    if (c.status == OM_OK && omi_node_parse(&c) != OM_OK && c.status == OM_OK)
        return; // raised: memory
    n->form = c.form;
    if (c.status == OM_OK && omi_node_met(n->def) && omi_program_nest(p, n, pr) != OM_OK) return;
    om_status s = c.status == OM_ERR_SHAPE ? OM_ERR_MALFORMED : c.status; // the file is at fault
    if (s != OM_OK) omi_problems_note(pr, p->graph, n->index, s, c.message);
}

static om_status set_nodes(om_program *p, om_problems *pr) {
    const om_graph *g = p->graph;
    for (uint32_t i = 0; i < g->n_nodes; i++) {
        const om_gnode *gn = &g->nodes[i];
        if (gn->n_in > p->max_io || gn->n_out > p->max_io - gn->n_in)
            p->max_io = gn->n_in + gn->n_out;
    }
    om_pval **slots = omi_arena_array(&p->arena, (size_t)p->max_io + 1, sizeof *slots);
    p->nodes        = omi_arena_array(&p->arena, (size_t)g->n_nodes + 1, sizeof *p->nodes);
    if (!slots || !p->nodes) return om_pending();
    for (uint32_t i = 0; i < g->n_nodes; i++) {
        const om_gnode *gn = &g->nodes[i];
        if (strcmp(gn->op_type, "Constant") == 0 &&
            (!gn->domain[0] || !strcmp(gn->domain, "ai.onnx"))) {
            OM_TRY(read_constant(p, i, pr));
            continue;
        }
        om_pnode *n  = &p->nodes[p->n_nodes++];
        n->index     = i;
        n->n_in      = gn->n_in;
        n->n_out     = gn->n_out;
        uint32_t *io = omi_arena_array(&p->arena, (size_t)gn->n_in + gn->n_out + 1, sizeof *io);
        if (!io) return om_pending();
        n->in  = io;
        n->out = io + gn->n_in;
        if (gn->n_in) memcpy(n->in, gn->in, gn->n_in * sizeof *io);
        if (gn->n_out) memcpy(n->out, gn->out, gn->n_out * sizeof *io);
        parse_node(p, n, slots, pr);
        if (omi_failed()) return om_pending();
    }
    return OM_OK;
}

static void check_outputs(om_program *p, om_problems *pr) {
    const om_graph *g = p->graph;
    char what[160];
    for (uint32_t i = 0; i < g->n_outputs; i++) {
        const om_gvalue *v = &g->values[g->outputs[i]];
        int32_t has        = p->values[g->outputs[i]].dtype;
        p->outputs[i]      = g->outputs[i];
        if (!has && p->inner) p->values[g->outputs[i]].dtype = v->dtype;
        if (!has || !v->dtype || has == v->dtype) continue;
        snprintf(what, sizeof what, "it is declared %s and computed as %s", omi_elem_name(v->dtype),
                 omi_elem_name(has));
        note_value(pr, v, "output", OM_ERR_MALFORMED, what);
    }
}

/* Inputs whose contents decide sizes: operands of that kind, and through nodes that fold. */
om_status omi_program_find_by_value(om_program *p) {
    bool *wanted = p->sizes = omi_arena_array(&p->arena, p->n_values + 1u, sizeof *p->sizes);
    if (!wanted) return om_pending();
    for (uint32_t i = p->n_nodes; i-- > 0;) {
        const om_pnode *n = &p->nodes[i];
        if (!n->def) continue;
        bool all = false;
        for (uint32_t k = 0; k < n->n_out; k++)
            if (n->out[k] != OM_NO_VALUE && wanted[n->out[k]]) all = true;
        // A node that folds hands the wish on to all its inputs, but for Shape, which needs none.
        all = all && n->def->fold == omi_fold_known;
        for (uint32_t k = 0; k < n->n_in; k++)
            if (n->in[k] != OM_NO_VALUE && (all || omi_node_sizes(n->def, k)))
                wanted[n->in[k]] = true;
    }
    for (uint32_t i = 0; i < p->n_inputs; i++)
        p->by_value[i] = wanted[p->inputs[i]];
    return OM_OK;
}

static bool program_opset(om_program *p, om_problems *pr) {
    const om_graph *g = omi_graph_root(p->graph);
    char what[120];
    p->opset = OM_OPSET_DEFAULT;
    for (uint32_t i = 0; i < g->n_opsets; i++)
        if (!g->opsets[i].domain[0] || strcmp(g->opsets[i].domain, "ai.onnx") == 0)
            p->opset = g->opsets[i].version;
    if (p->opset >= 1 && p->opset <= OM_OPSET_MAX) return true;
    snprintf(what, sizeof what, "opset %lld is not known; 1 to %d are", (long long)p->opset,
             OM_OPSET_MAX);
    note(pr, OM_ERR_UNSUPPORTED, "the model", "the model", what);
    return false;
}

static om_status make_tables(om_program *p, const om_program *outer) {
    const om_graph *g = p->graph;
    size_t in         = g->n_inputs + (outer ? (size_t)g->n_values : 0) + 1;
    p->cap_values = p->n_values = g->n_values;
    p->n_inputs = p->n_formal = g->n_inputs;
    p->n_outputs              = g->n_outputs;
    p->values   = omi_arena_array(&p->arena, (size_t)p->cap_values + 1, sizeof *p->values);
    p->inputs   = omi_arena_array(&p->arena, in, sizeof *p->inputs);
    p->outputs  = omi_arena_array(&p->arena, (size_t)g->n_outputs + 1, sizeof *p->outputs);
    p->by_value = omi_arena_array(&p->arena, in, sizeof *p->by_value);
    p->input_of = omi_arena_array(&p->arena, (size_t)g->n_values + 1, sizeof *p->input_of);
    if (!p->values || !p->inputs || !p->outputs || !p->by_value || !p->input_of)
        return om_pending();
    p->captured = outer ? omi_arena_array(&p->arena, in, sizeof *p->captured) : NULL;
    p->lent     = outer ? omi_arena_array(&p->arena, in, sizeof *p->lent) : NULL;
    if (outer && (!p->captured || !p->lent)) return om_pending();
    for (uint32_t i = 0; i < g->n_values; i++)
        p->input_of[i] = -1;
    for (uint32_t i = 0; i < g->n_inputs; i++) {
        p->inputs[i]              = g->inputs[i];
        p->input_of[g->inputs[i]] = (int32_t)i;
    }
    for (uint32_t i = 0; i < g->n_inits; i++)
        p->given += g->inits[i].bytes;
    return OM_OK;
}

static om_status build_program(om_program *p, const om_program *outer, const int32_t *types,
                               om_problems *pr) {
    uint32_t before = pr->n;
    OM_TRY(make_tables(p, outer));
    if (!program_opset(p, pr)) return OM_OK;
    OM_TRY(set_values(p, pr));
    if (outer) OM_TRY(set_formal_types(p, p->n_formal, types, pr));
    if (outer) OM_TRY(set_captures(p, outer));
    OM_TRY(set_nodes(p, pr));
    check_outputs(p, pr);
    if (pr->n != before) return OM_OK;
    OM_TRY(omi_run_passes(p));
    OM_TRY(omi_program_find_by_value(p));
    return omi_program_cut(p);
}

static om_program *new_program(om_graph *g, om_arith arith, size_t limit) {
    om_program *p = omi_calloc(sizeof *p);
    if (!p) return NULL;
    atomic_init(&p->refs, 1);
    p->graph = g;
    om_graph_retain(omi_graph_root(g));
    p->arith     = arith;
    p->limit     = limit;
    p->arena.cap = limit;
    p->creating  = true;
    atomic_fetch_add(&omi_graph_root(g)->sessions, 1);
    return p;
}

om_program *omi_program_new(om_graph *g, om_arith arith, size_t limit, om_problems *pr) {
    om_program *p = new_program(g, arith, limit);
    if (!p) return NULL;
    om_status s = build_program(p, NULL, NULL, pr);
    if (pr->text.failed || pr->brief.failed) s = om_pending();
    if (s == OM_OK && pr->n == 0) return p;
    omi_program_release(p);
    return NULL;
}

om_program *omi_program_sub(const om_program *outer, om_graph *g, uint32_t n, const int32_t *types,
                            om_problems *pr) {
    size_t held = omi_program_held(outer), left = 0;
    if (outer->limit) left = outer->limit > held ? outer->limit - held : 1;
    om_program *p = new_program(g, outer->arith, left);
    if (!p) return NULL;
    uint32_t before = pr->n;
    p->inner        = true;
    p->depth        = outer->depth + 1;
    om_status s     = n == g->n_inputs ? build_program(p, outer, types, pr)
                                       : omi_fail(OM_ERR_INTERNAL, "a subgraph was not checked");
    if (s == OM_OK && pr->n == before) return p;
    omi_program_release(p);
    return NULL;
}

/* ---- the whole tree -----------------------------------------------------------------------------
 */

size_t omi_program_held(const om_program *p) {
    return p->session ? p->session : p->held + p->arena.total + p->nested;
}

static void spread_total(om_program *p, size_t total) {
    p->creating = false;
    p->session  = total;
    for (const om_nest *e = p->nests; e; e = e->next)
        for (uint32_t k = 0; k < e->n; k++)
            spread_total(e->child[k], total);
    for (uint32_t i = 0; i < p->n_stages; i++)
        if (p->stages[i].part) spread_total(p->stages[i].part, total);
}

void omi_program_ready(om_program *p) {
    spread_total(p, omi_program_held(p));
}

om_program *omi_program_retain(om_program *p) {
    atomic_fetch_add(&p->refs, 1);
    return p;
}

void omi_program_release(om_program *p) {
    if (!p || atomic_fetch_sub(&p->refs, 1) != 1) return;
    for (uint32_t i = 0; i < p->n_stages; i++)
        omi_program_release(p->stages[i].part);
    for (om_nest *n = p->nests; n; n = n->next)
        for (uint32_t k = 0; k < n->n; k++)
            omi_program_release(n->child[k]);
    for (uint32_t i = 0; i < p->n_lent; i++)
        omi_buffer_release(p->lent[i]);
    for (uint32_t i = 0; i < p->n_bufs; i++)
        omi_buffer_release(p->bufs[i]);
    omi_free(p->bufs, p->cap_bufs * sizeof *p->bufs);
    om_graph *root = omi_graph_root(p->graph);
    atomic_fetch_sub(&root->sessions, 1);
    om_graph_release(root);
    omi_arena_clear(&p->arena);
    omi_free(p, sizeof *p);
}
