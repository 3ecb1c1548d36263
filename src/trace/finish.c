/*
 * finish.c -- from the recording to the graph: prune, number, name (CD-17, CD-18, TD-12).
 *
 * 1. Walk from the outputs, inputs left to right: what is kept, and in which order.
 * 2. From that order: which values hold which atoms, and the canonical order of atoms.
 * 3. Checks that need the whole: changed constants, unrolled loops.
 * 4. Walk again and write: before a Reshape or Expand whose sizes are computed come the values that
 *    hold its atoms, then its Shape, Mul and Concat nodes, shared by text.
 * Nothing here looks at the order in which calls ran: it depends on the compiler.
 */
#include <string.h>

#include "trace/emit.h"

typedef struct om_frame {
    om_tnode *node;
    uint32_t next; /* child to look at */
} om_frame;
typedef OM_VEC(om_frame) om_frames;

/* ---- 1: what the outputs need ------------------------------------------------------------------
 */

static bool walk_from(om_tnode *root, om_frames *stack, om_tnodes *order) {
    if (!root || root->order) return true;
    root->order = UINT32_MAX; // open
    if (!OMI_PUSH(stack, ((om_frame){root, 0}))) return false;
    while (stack->n) {
        om_frame *f = &stack->v[stack->n - 1];
        if (f->next < f->node->n_in) {
            om_tvalue *v = f->node->in[f->next++];
            if (!v || !v->node || v->node->order) continue;
            v->node->order = UINT32_MAX;
            if (!OMI_PUSH(stack, ((om_frame){v->node, 0}))) return false;
            continue;
        }
        om_tnode *done = f->node;
        stack->n--;
        if (!OMI_PUSH(order, done)) return false;
        done->order = (uint32_t)order->n;
    }
    return true;
}

static bool walk_outputs(om_tracer *tr, om_tnodes *order) {
    om_frames stack = {0};
    bool ok         = true;
    for (size_t i = 0; ok && i < tr->outputs.n; i++)
        ok = walk_from(tr->outputs.v[i].v->node, &stack, order);
    OMI_VEC_FREE(&stack);
    return ok;
}

/* ---- 2: who holds which atom --------------------------------------------------------------------
 */

static bool note_holders(om_tracer *tr, om_tvalue *v, uint32_t *rank) {
    for (int i = 0; v && i < v->rank; i++) {
        om_extent *e = &v->e[i];
        if (e->n != 1 || e->coef != 1) continue;
        om_atom *a = e->a[0];
        if (!a->rank) a->rank = ++*rank;
        if (!OMI_PUSH(&tr->holders[a->index], ((om_holder){v, i}))) return false;
    }
    return true;
}

static bool find_holders(om_tracer *tr, const om_tnodes *order) {
    uint32_t rank = 0;
    tr->holders   = omi_arena_array(&tr->arena, tr->atoms->list.n + 1, sizeof *tr->holders);
    if (!tr->holders) return false;
    for (size_t i = 0; i < tr->symbols.n; i++)
        tr->symbols.v[i]->rank = ++rank;
    for (size_t i = 0; i < tr->inputs.n; i++)
        if (!note_holders(tr, tr->inputs.v[i], &rank)) return false;
    for (size_t i = 0; i < order->n; i++)
        for (uint32_t k = 0; k < order->v[i]->n_out; k++)
            if (!note_holders(tr, order->v[i]->out[k], &rank)) return false;
    return true;
}

/* ---- 3: checks
 * ------------------------------------------------------------------------------------ */

/* The selections along one symbolic axis, of one sign of index. */
typedef struct om_loop {
    int64_t n_taken, n_seen;
    uint8_t *seen; /* bits, once n_taken may reach the size */
} om_loop;

static om_loop *loop_of(om_tracer *tr, om_strmap *loops, const om_tselect *s) {
    struct {
        const om_tvalue *v;
        int64_t axis;
    } *key = omi_arena_alloc(&tr->arena, sizeof *key);
    if (!key) return NULL;
    key->v        = s->v;
    key->axis     = 2 * s->axis + (s->index < 0);
    om_loop *loop = omi_strmap_get(loops, (const char *)key, sizeof *key);
    if (loop) return loop;
    loop = omi_arena_alloc(&tr->arena, sizeof *loop);
    return loop && omi_strmap_set(loops, (const char *)key, sizeof *key, loop) ? loop : NULL;
}

static om_status check_select(om_tracer *tr, om_loop *l, const om_tselect *s, bool counting) {
    int64_t n = s->v->e[s->axis].size, at = s->index < 0 ? -1 - s->index : s->index;
    if (counting) return l->n_taken++, OM_OK;
    if (l->n_taken < n) return OM_OK;
    if (!l->seen && !(l->seen = omi_arena_alloc(&tr->arena, (size_t)n / 8 + 1)))
        return om_pending();
    if (l->seen[at / 8] >> (at % 8) & 1) return OM_OK;
    l->seen[at / 8] |= (uint8_t)(1 << at % 8);
    if (++l->n_seen < n) return OM_OK;
    return omi_fail_trace(OM_TRACE_SYMBOLIC_SHAPE,
                          "a loop over symbolic axis %d ('%s') was unrolled: all its %lld indices "
                          "were selected one by one (%s); use an operator over the whole axis",
                          s->axis, OMI_EXT(&s->v->e[s->axis]), (long long)n,
                          OMI_SITE(&s->out->node->site));
}

/* TD-17: every index of one symbolic axis was selected, by what the outputs need. Indices from the
 * front and from the end are two things: 0 and -1 of two are the first and the last. */
static om_status check_loops(om_tracer *tr) {
    om_strmap loops = {0};
    om_status st    = OM_OK;
    for (size_t i = 0; i < 2 * tr->selects.n && st == OM_OK; i++) {
        const om_tselect *s = &tr->selects.v[i % tr->selects.n];
        if (!s->out->node->order) continue;
        om_loop *l = loop_of(tr, &loops, s);
        st         = l ? check_select(tr, l, s, i < tr->selects.n) : om_pending();
    }
    omi_strmap_free(&loops);
    return st;
}

/* ---- 4: writing
 * ----------------------------------------------------------------------------------- */

/* Child i of a node: its inputs, then whom its operand asks. NULL: none to wait for. */
static om_tnode *child(const om_tnode *n, uint32_t i) {
    if (i < n->n_in) return n->in[i] ? n->in[i]->node : NULL;
    om_holder *h = &n->operand->holders[(i - n->n_in) / OM_MAX_ATOMS][(i - n->n_in) % OM_MAX_ATOMS];
    return h->v ? h->v->node : NULL;
}

static uint32_t n_children(const om_tnode *n) {
    return n->n_in + (n->operand ? (uint32_t)n->operand->rank * OM_MAX_ATOMS : 0);
}

static bool open_node(om_emit *em, om_frames *stack, om_tnode *n) {
    n->state = 1;
    return omi_emit_resolve(em, n) && OMI_PUSH(stack, ((om_frame){n, 0}));
}

static bool emit_from(om_emit *em, om_frames *stack, om_tnode *root) {
    if (!root || root->state) return true;
    if (!open_node(em, stack, root)) return false;
    while (stack->n) {
        om_frame *f = &stack->v[stack->n - 1];
        om_tnode *n = f->node;
        if (f->next < n_children(n)) {
            om_tnode *c = child(n, f->next++);
            if (!c || c->state == 2) continue;
            if (c->state == 1)
                return omi_fail_trace(
                           OM_TRACE_SYMBOLIC_SHAPE,
                           "the sizes of %s come from a value that depends on its result",
                           OMI_SITE(&n->site)),
                       false;
            if (!open_node(em, stack, c)) return false;
            continue;
        }
        stack->n--;
        if (!omi_emit_node(em, n)) return false;
        n->state = 2;
    }
    return true;
}

/* The first request for a value names it; an input, or a value asked for again, needs an Identity.
 */
static void claim_names(om_tracer *tr) {
    for (size_t i = 0; i < tr->outputs.n; i++) {
        om_toutput *o = &tr->outputs.v[i];
        if (o->v->kind == OM_TV_NODE && !o->v->name) o->v->name = o->name;
    }
}

static bool emit_outputs(om_emit *em) {
    om_tracer *tr   = em->tr;
    om_frames stack = {0};
    bool ok         = true;
    for (size_t i = 0; ok && i < tr->outputs.n; i++)
        ok = emit_from(em, &stack, tr->outputs.v[i].v->node) &&
             omi_emit_output(em, &tr->outputs.v[i]);
    OMI_VEC_FREE(&stack);
    return ok;
}

static bool build_graph(om_emit *em, const om_tnodes *order) {
    claim_names(em->tr);
    if (!find_holders(em->tr, order) || omi_tr_check_consts(em->tr) != OM_OK ||
        check_loops(em->tr) != OM_OK)
        return false;
    return omi_emit_begin(em) && emit_outputs(em) && omi_emit_end(em);
}

om_graph *omi_tr_finish(om_tracer *tr) {
    if (!tr->outputs.n)
        return omi_fail_trace(OM_TRACE_INVALID_USAGE,
                              "the trace has no output; declare one with om_trace_output"),
               NULL;
    om_tnodes order = {0};
    om_emit em      = {.tr = tr, .order = &order};
    bool ok         = walk_outputs(tr, &order) && build_graph(&em, &order);
    om_graph *g     = em.g;
    omi_emit_free(&em);
    OMI_VEC_FREE(&order);
    if (ok) return g;
    om_graph_release(g);
    return NULL;
}
