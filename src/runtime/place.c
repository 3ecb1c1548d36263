/*
 * place.c -- where values live: constants, the caller's inputs, the outputs, or the arena of a run.
 *
 * A step without work (Reshape and its kind) gives its outputs the bytes of its input; all values
 * that share bytes have one root. Roots of steps get a block with a lifetime; a step that may work
 * in place takes over the block of an input that dies there. A root that is an output of the graph
 * is written straight into the output. The rest is layout.c.
 */
#include <string.h>

#include "base/checked.h"
#include "runtime/builder.h"

enum { IN_CONST, IN_INPUT, IN_STEP };

typedef struct om_home {
    uint32_t root;  /* value whose bytes these are        */
    int64_t offset; /* from the start of the root's bytes */
    uint8_t kind;   /* of a root                          */
    uint32_t io;    /* of a root: input index; output index or OM_NO_VALUE */
    uint32_t block; /* of a root in the arena             */
    uint32_t first, last;
} om_home;

typedef struct om_placer {
    om_builder *b;
    om_home *home;
    om_block *blocks;
    uint32_t n_blocks;
} om_placer;

static size_t bytes_of(const om_placer *p, uint32_t v) {
    return omi_pval_bytes(&p->b->values[v]);
}
static om_home *root_of(om_placer *p, uint32_t v) {
    return &p->home[p->home[v].root];
}

static void set_roots(om_placer *p) {
    const om_program *g = p->b->program;
    for (uint32_t v = 0; v < p->b->plan->n_values; v++)
        p->home[v] =
            (om_home){.root = v, .kind = IN_CONST, .io = OM_NO_VALUE, .block = OM_NO_VALUE};
    for (uint32_t i = 0; i < g->n_inputs; i++)
        if (!p->b->values[g->inputs[i]].known) {
            p->home[g->inputs[i]].kind = IN_INPUT;
            p->home[g->inputs[i]].io   = i;
        }
}

/* Roots of step outputs; the steps that only rename disappear. */
static void follow_steps(om_placer *p) {
    om_plan *plan = p->b->plan;
    uint32_t n    = 0;
    for (uint32_t i = 0; i < plan->n_steps; i++) {
        om_run_step *s = plan->steps[i];
        for (uint32_t k = 0; k < s->n_out; k++) {
            if (s->out[k] == OM_NO_VALUE) continue;
            om_home *h = &p->home[s->out[k]];
            if (s->run) {
                h->kind  = IN_STEP;
                h->first = h->last = n;
            } else {
                h->root   = p->home[s->in[0]].root;
                h->offset = p->home[s->in[0]].offset + s->views[k];
            }
        }
        if (s->run) {
            for (uint32_t k = 0; k < s->n_in; k++)
                if (s->in[k] != OM_NO_VALUE) root_of(p, s->in[k])->last = n;
            plan->steps[n++] = s;
        }
    }
    plan->n_steps = n;
}

/* Outputs: in place where a root is the whole output, else copied at the end. */
static om_status set_outputs(om_placer *p) {
    om_plan *plan = p->b->plan;
    for (uint32_t i = 0; i < plan->n_out; i++) {
        uint32_t v       = p->b->program->outputs[i];
        const om_pval *x = &p->b->values[v];
        om_port *port    = &plan->out[i];
        om_home *r       = root_of(p, v);
        port->dtype      = (om_dtype)x->dtype;
        port->rank       = x->rank;
        port->numel      = x->numel;
        port->bytes      = omi_pval_bytes(x);
        port->copy_from  = v;
        memcpy(port->shape, x->shape, sizeof port->shape);
        if (!omi_add_size(plan->out_bytes, (port->bytes + OM_ALIGN - 1) / OM_ALIGN * OM_ALIGN,
                          &plan->out_bytes))
            return omi_fail(OM_ERR_LIMIT, "the outputs need more memory than there can be");
        r->last = plan->n_steps;
        if (r->kind != IN_STEP || r->io != OM_NO_VALUE || p->home[v].offset != 0 ||
            port->bytes != bytes_of(p, p->home[v].root))
            continue;
        r->io           = i;
        port->copy_from = OM_NO_VALUE;
    }
    return OM_OK;
}

/* Input k of step i dies there and output 0 may have its bytes. */
static bool reusable(om_placer *p, const om_run_step *s, uint32_t i, uint32_t k) {
    const om_home *h = &p->home[s->in[k]], *r = root_of(p, s->in[k]);
    size_t n = bytes_of(p, s->out[0]);
    if (r->kind != IN_STEP || r->io != OM_NO_VALUE || r->last != i || h->offset != 0) return false;
    if (bytes_of(p, h->root) != n || bytes_of(p, s->in[k]) != n) return false;
    for (uint32_t j = 0; j < s->n_in; j++) { // another operand in the same bytes, read otherwise
        if (j == k || s->in[j] == OM_NO_VALUE || p->home[s->in[j]].root != h->root) continue;
        if (p->home[s->in[j]].offset != 0 || bytes_of(p, s->in[j]) != n) return false;
    }
    return true;
}

static uint32_t new_block(om_placer *p, size_t bytes, uint32_t first, uint32_t last) {
    p->blocks[p->n_blocks] = (om_block){.bytes = bytes, .first = first, .last = last};
    return p->n_blocks++;
}

static void set_blocks(om_placer *p, uint32_t *ws) {
    om_plan *plan = p->b->plan;
    for (uint32_t i = 0; i < plan->n_steps; i++) {
        const om_run_step *s = plan->steps[i];
        ws[i]                = s->ws_bytes ? new_block(p, s->ws_bytes, i, i) : OM_NO_VALUE;
        for (uint32_t k = 0; k < s->n_out; k++) {
            if (s->out[k] == OM_NO_VALUE) continue;
            om_home *h = &p->home[s->out[k]];
            if (h->io != OM_NO_VALUE) continue;
            for (uint32_t j = 0; k == 0 && j < s->n_in && j < 8; j++) {
                if (!(s->in_place >> j & 1) || s->in[j] == OM_NO_VALUE || !reusable(p, s, i, j))
                    continue;
                h->block                 = root_of(p, s->in[j])->block;
                p->blocks[h->block].last = h->last;
                break;
            }
            if (h->block == OM_NO_VALUE)
                h->block = new_block(p, bytes_of(p, s->out[k]), i, h->last);
        }
    }
}

/* The address of every value that has bytes. */
static void set_address(om_placer *p, uint32_t v) {
    om_plan *plan    = p->b->plan;
    const om_home *h = &p->home[v], *r = root_of(p, v);
    const om_pval *x = &p->b->values[h->root];
    if (r->kind == IN_CONST) {
        if (!x->known) return; // nobody computes it: not needed
        const char *at = (const char *)x->known + h->offset;
        memcpy(&plan->fixed[v], &at, sizeof at);
    } else if (r->io != OM_NO_VALUE)
        plan->patches[plan->n_patches++] = (om_patch){v, r->io, r->kind == IN_STEP, h->offset};
    else
        plan->places[plan->n_places++] =
            (om_place){v, p->blocks[r->block].offset + (size_t)h->offset};
}

static void note_largest(om_placer *p) {
    om_plan *plan = p->b->plan;
    plan->largest = OM_NO_VALUE;
    for (uint32_t i = 0; i < plan->n_steps; i++)
        for (uint32_t k = 0; k < plan->steps[i]->n_out; k++) {
            uint32_t v = plan->steps[i]->out[k];
            if (v == OM_NO_VALUE || bytes_of(p, v) <= plan->largest_bytes) continue;
            plan->largest       = v;
            plan->largest_bytes = bytes_of(p, v);
        }
}

om_status omi_place(om_builder *b) {
    om_plan *plan = b->plan;
    om_placer p   = {.b = b};
    size_t most   = plan->n_values + (size_t)plan->n_steps + 1;
    uint32_t *ws  = omi_arena_array(&b->scratch, plan->n_steps + 1u, sizeof *ws);
    p.home        = omi_arena_array(&b->scratch, plan->n_values + 1u, sizeof *p.home);
    p.blocks      = omi_arena_array(&b->scratch, most, sizeof *p.blocks);
    plan->patches = omi_arena_array(&plan->arena, plan->n_values + 1u, sizeof *plan->patches);
    plan->places  = omi_arena_array(&plan->arena, plan->n_values + 1u, sizeof *plan->places);
    if (!ws || !p.home || !p.blocks || !plan->patches || !plan->places) return om_pending();
    note_largest(&p);
    set_roots(&p);
    follow_steps(&p);
    OM_TRY(set_outputs(&p));
    set_blocks(&p, ws);
    OM_TRY(omi_layout(p.blocks, p.n_blocks, &plan->bytes));
    for (uint32_t i = 0; i < plan->n_steps; i++)
        if (ws[i] != OM_NO_VALUE) plan->steps[i]->ws_offset = p.blocks[ws[i]].offset;
    for (uint32_t v = 0; v < plan->n_values; v++)
        set_address(&p, v);
    return OM_OK;
}
