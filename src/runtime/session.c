/*
 * session.c -- the public session: creation and its list of problems, runs on tensors, prepared
 * runs, memory.
 *
 * A session is a program (the checked graph with its passes) and a cache of plans. Prepared runs
 * hold what they need themselves, so they may outlive the session; om_session_run is counted, and
 * om_session_free waits for it.
 */
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#include "base/opts.h"
#include "base/thread.h"
#include "base/utf8.h"
#include "kernels/table.h"
#include "runtime/cache.h"
#include "runtime/stats.h"
#include "runtime/walk.h"
#include "tensor/seam.h"

#define PLAN_CACHE 8

struct om_session {
    om_program *program;
    om_cache cache;
    int threads;
    int64_t memory_limit;
};

/* ---- creation
 * -------------------------------------------------------------------------------- */

static om_status read_opts(const om_session_opts *o, om_session_opts *to) {
    if (!OMI_OPTS(to, o, memory_limit)) return om_pending();
    if (to->arith != OM_EXACT && to->arith != OM_FAST)
        return omi_fail(OM_ERR_ARG, "arith is %d; OM_EXACT and OM_FAST are defined",
                        (int)to->arith);
    if (to->threads < 0 || to->plan_cache < 0 || to->memory_limit < 0)
        return omi_fail(OM_ERR_ARG, "threads, plan_cache and memory_limit must not be negative");
    return OM_OK;
}

/* All problems in one message: as many as fit, and how many there are. */
static om_status raise_problems(const om_problems *p) {
    const char *brief = p->brief.v ? p->brief.v : "";
    if (p->n == 1) {
        const char *text = p->text.v ? p->text.v : "";
        return omi_fail(p->status, "%.*s", (int)strcspn(text, "\n"), text);
    }
    if (strlen(brief) < 300)
        return omi_fail(p->status, "%u nodes or values cannot be run: %s; om_graph_check says why",
                        p->n, brief);
    return omi_fail(p->status,
                    "%u nodes or values cannot be run: %.260s...; om_graph_check lists all", p->n,
                    brief);
}

static om_program *session_program(om_graph *g, om_arith arith, int64_t limit) {
    om_problems p = {0};
    om_program *r = omi_program_new(g, arith, (size_t)limit, &p);
    if (!r && p.n && !omi_failed()) raise_problems(&p);
    omi_problems_free(&p);
    return r;
}

/* A fault that stopped the making of a program is a problem of the graph like the others. */
static om_status list_raised(om_problems *p) {
    om_error e;
    if (!omi_failed()) return OM_OK;
    om_status s = om_pending();
    if (s == OM_ERR_NOMEM || s == OM_ERR_CANCELLED || s == OM_ERR_INTERNAL) return s;
    om_catch(&e);
    if (p->status == OM_OK) p->status = s;
    p->n++;
    omi_str_printf(&p->text, "%s\n", e.message);
    return OM_OK;
}

/* One line a call. */
static void write_lines(const om_str *text, om_write_fn write, void *ctx) {
    for (size_t at = 0; at < text->n;) {
        size_t n = strcspn(text->v + at, "\n") + 1;
        if (write(ctx, text->v + at, n) != 0) return;
        at += n;
    }
}

om_status om_graph_check(om_graph *g, om_arith arith, om_write_fn write, void *ctx) {
    OMI_ENTER("om_graph_check");
    if (omi_failed()) return om_pending();
    if (!g || !write) return omi_fail(OM_ERR_ARG, "the graph or the function is NULL");
    om_problems p = {0};
    om_program *r = omi_program_new(g, arith, 0, &p);
    om_status s   = r ? omi_program_check_sizes(r, &p) : list_raised(&p);
    if (p.text.failed) s = om_pending();
    if (s == OM_OK) {
        write_lines(&p.text, write, ctx);
        s = p.status;
    }
    omi_program_release(r);
    omi_problems_free(&p);
    return s;
}

om_status om_graph_parts(om_graph *g, om_arith arith, int *parts) {
    OMI_ENTER("om_graph_parts");
    if (omi_failed()) return om_pending();
    if (!g || !parts) return omi_fail(OM_ERR_ARG, "the graph or the result is NULL");
    om_program *p = session_program(g, arith, 0);
    if (!p) return om_pending();
    *parts = (int)omi_min64((int64_t)p->n_met + 1, INT32_MAX);
    omi_program_release(p);
    return OM_OK;
}

static int workers_of(const om_session *s) {
    int all = om_threads();
    return s->threads && s->threads < all ? s->threads : all;
}

/* Sizes are all declared: the plan can be made now, and what contradicts is known before any
 * run.
 */
static om_status plan_fixed(om_session *s) {
    const om_graph *g = s->program->graph;
    om_status st      = OM_OK;
    om_feed *f        = omi_calloc((g->n_inputs + 1u) * sizeof *f);
    bool fixed        = f != NULL;
    for (uint32_t i = 0; fixed && i < g->n_inputs; i++) {
        const om_gvalue *v = &g->values[g->inputs[i]];
        fixed              = v->rank >= 0 && v->rank <= OM_MAX_RANK && !s->program->by_value[i];
        f[i].rank          = v->rank;
        for (int k = 0; fixed && k < v->rank; k++) {
            fixed         = v->dims[k].value >= 0;
            f[i].shape[k] = v->dims[k].value;
        }
    }
    if (fixed) {
        om_plan *p = omi_cache_plan(&s->cache, s->program, f, workers_of(s), s->memory_limit);
        st         = p ? OM_OK : om_pending();
        omi_plan_release(p);
    } else if (!f)
        st = OM_ERR_NOMEM;
    omi_free(f, (g->n_inputs + 1u) * sizeof *f);
    return st;
}

om_session *om_session_new(om_graph *g, const om_session_opts *opts) {
    OMI_ENTER("om_session_new");
    om_session_opts o;
    if (omi_failed()) return NULL;
    if (!g) OM_FAIL_NULL(OM_ERR_ARG, "the graph is NULL");
    if (read_opts(opts, &o) != OM_OK) return NULL;
    om_session *s = omi_calloc(sizeof *s);
    if (!s) return NULL;
    if (omi_cache_init(&s->cache, o.plan_cache ? (uint32_t)o.plan_cache : PLAN_CACHE) != OM_OK)
        return omi_free(s, sizeof *s), NULL;
    s->threads      = o.threads;
    s->memory_limit = o.memory_limit;
    s->program      = session_program(g, o.arith, o.memory_limit);
    if (!s->program || (!s->program->staged && plan_fixed(s) != OM_OK))
        return om_session_free(s), NULL;
    omi_program_ready(s->program);
    if (s->program->staged) omi_cache_widen(&s->cache, s->program->n_parts);
    return s;
}

static void enter(om_session *s) {
    omi_lock(&s->cache.lock);
    s->cache.running++;
    omi_unlock(&s->cache.lock);
}

static void leave_session(om_session *s) {
    omi_lock(&s->cache.lock);
    if (--s->cache.running == 0) pthread_cond_broadcast(&s->cache.changed);
    omi_unlock(&s->cache.lock);
}

void om_session_free(om_session *s) {
    if (!s) return;
    omi_lock(&s->cache.lock);
    while (s->cache.running)
        pthread_cond_wait(&s->cache.changed, &s->cache.lock.mutex);
    omi_unlock(&s->cache.lock);
    omi_cache_clear(&s->cache);
    omi_program_release(s->program);
    omi_free(s, sizeof *s);
}

int om_session_n_inputs(const om_session *s) {
    return s ? (int)s->program->graph->n_inputs : 0;
}
int om_session_n_outputs(const om_session *s) {
    return s ? (int)s->program->graph->n_outputs : 0;
}

om_status om_session_input(const om_session *s, int i, om_value_info *out) {
    OMI_ENTER("om_session_input");
    if (!s) return omi_fail(OM_ERR_ARG, "the session is NULL");
    return om_graph_input(s->program->graph, i, out);
}
om_status om_session_output(const om_session *s, int i, om_value_info *out) {
    OMI_ENTER("om_session_output");
    if (!s) return omi_fail(OM_ERR_ARG, "the session is NULL");
    return om_graph_output(s->program->graph, i, out);
}

void omi_session_stats(om_session *s, om_cache_stats *out) {
    omi_lock(&s->cache.lock);
    *out = (om_cache_stats){s->cache.n, s->cache.builds, s->cache.evictions};
    omi_unlock(&s->cache.lock);
}

/* ---- runs on tensors
 * ------------------------------------------------------------------------- */

/* What one om_session_run needs, in one block. */
typedef struct call {
    om_tensor **t; /* per input */
    om_feed *feed;
    const void **in;
    void **out;
    size_t bytes;
} call;

static om_status call_new(const om_graph *g, call *c) {
    size_t in = g->n_inputs + 1u, out = g->n_outputs + 1u;
    c->bytes = in * (sizeof *c->feed + sizeof *c->t + sizeof *c->in) + out * sizeof *c->out;
    c->feed  = omi_calloc(c->bytes);
    if (!c->feed) return OM_ERR_NOMEM;
    c->t   = (om_tensor **)(c->feed + in);
    c->out = (void **)(c->t + in);
    c->in  = (const void **)(c->feed + in) + in + out;
    return OM_OK;
}

static int input_index(const om_program *p, const char *name) {
    uint32_t v = omi_graph_find(p->graph, name, strlen(name));
    return v == OM_NO_VALUE ? -1 : p->input_of[v];
}

static om_status check_tensor(const om_graph *g, uint32_t i, const om_tensor *t) {
    const om_gvalue *v = &g->values[g->inputs[i]];
    char name[80], what[100];
    omi_escape_buf(name, sizeof name, v->name, strlen(v->name));
    snprintf(what, sizeof what, "input '%s'", name);
    OM_TRY(omi_check_arg(t, what));
    OM_TRY(omi_seam_opaque(t, "om_session_run"));
    if (t->dtype != v->dtype)
        return omi_fail(OM_ERR_DTYPE, "%s is %s; the graph takes %s: convert it with om_cast", what,
                        OMI_T(t), omi_elem_name(v->dtype));
    return OM_OK;
}

static om_status bind_tensors(const om_program *p, int n_in, const om_binding *in, call *c) {
    const om_graph *g = p->graph;
    char name[80];
    for (int k = 0; k < n_in; k++) {
        if (!in[k].name) return omi_fail(OM_ERR_ARG, "binding %d has no name", k);
        if (k % 1024 == 1023) OM_TRY(omi_check_cancel());
        int i = input_index(p, in[k].name);
        if (i >= 0 && !c->t[i]) {
            OM_TRY(check_tensor(g, (uint32_t)i, in[k].tensor));
            c->t[i] = in[k].tensor;
            continue;
        }
        omi_escape_buf(name, sizeof name, in[k].name, strlen(in[k].name));
        if (i < 0) return omi_fail(OM_ERR_ARG, "the graph has no input '%s'", name);
        return omi_fail(OM_ERR_ARG, "input '%s' is given twice", name);
    }
    for (uint32_t i = 0; i < g->n_inputs; i++) {
        const char *n = g->values[g->inputs[i]].name;
        if (!c->t[i])
            return omi_fail(OM_ERR_ARG, "input '%s' is missing",
                            omi_escape_buf(name, sizeof name, n, strlen(n)));
        c->feed[i].rank = c->t[i]->rank;
        memcpy(c->feed[i].shape, c->t[i]->shape, sizeof c->feed[i].shape);
    }
    return OM_OK;
}

/* Contiguous elements of every input; copies are filed in the current scope. */
static om_status pack_tensors(const om_program *p, call *c) {
    for (uint32_t i = 0; i < p->graph->n_inputs; i++) {
        om_tensor *t = omi_pack(c->t[i]);
        if (!t) return om_pending();
        c->in[i] = omi_ptr(t);
        if (p->by_value[i]) c->feed[i].data = c->in[i];
    }
    return OM_OK;
}

/* What a trace marked stays marked through a session (TD-9, TD-24). */
static void spread_run_marks(const om_graph *g, const call *c, om_tensor *y) {
    for (uint32_t i = 0; i < g->n_inputs; i++)
        omi_spread_marks(y, c->t[i]);
}

static om_status make_outputs(const om_plan *p, const call *c, const om_graph *g, om_tensor **made,
                              void **data) {
    for (uint32_t i = 0; i < p->n_out; i++) {
        made[i] = omi_new(p->out[i].dtype, p->out[i].rank, p->out[i].shape);
        if (!made[i]) return om_pending();
        data[i] = omi_ptr(made[i]);
        if (i == 0)
            spread_run_marks(g, c, made[0]);
        else
            omi_spread_marks(made[i], made[0]); // which has those of all inputs
    }
    return OM_OK;
}

/* In its own scope: returns with the outputs in it. */
static om_status run_call(om_session *s, call *c, om_tensor **made) {
    const om_program *p = s->program;
    OM_TRY(pack_tensors(p, c));
    if (p->staged) {
        OM_TRY(
            omi_walk_session(&s->cache, p, workers_of(s), s->memory_limit, c->feed, c->in, made));
        for (uint32_t i = 0; i < p->n_outputs; i++)
            spread_run_marks(p->graph, c, made[i]);
        return OM_OK;
    }
    om_plan *plan = omi_cache_plan(&s->cache, s->program, c->feed, workers_of(s), s->memory_limit);
    if (!plan) return om_pending();
    om_run *r    = omi_cache_take_run(&s->cache, plan);
    om_status st = r ? make_outputs(plan, c, p->graph, made, c->out) : om_pending();
    if (st == OM_OK) st = omi_run_steps(r, c->in, c->out);
    if (r) omi_cache_give_run(&s->cache, r);
    omi_plan_release(plan);
    return st;
}

static om_status session_run(om_session *s, int n_in, const om_binding *in, int n_out,
                             om_tensor **out) {
    const om_graph *g = s->program->graph;
    call c            = {0};
    size_t mbytes     = (g->n_outputs + 1u) * sizeof(om_tensor *);
    om_tensor **made  = omi_calloc(mbytes);
    om_status st      = made ? call_new(g, &c) : OM_ERR_NOMEM;
    om_scope scope    = om_scope_begin();
    if (st == OM_OK) st = bind_tensors(s->program, n_in, in, &c);
    if (st == OM_OK) st = run_call(s, &c, made);
    for (int i = 0; st == OM_OK && i < n_out; i++)
        out[i] = om_retain(made[i]);
    om_scope_end(scope);
    for (int i = 0; st == OM_OK && i < n_out; i++) // from the inner scope to the caller's
        if (!omi_file_owned(out[i])) st = om_pending();
    for (int i = 0; st != OM_OK && i < n_out; i++)
        out[i] = NULL;
    if (c.feed) omi_free(c.feed, c.bytes);
    omi_free(made, mbytes);
    return st;
}

om_status om_session_run(om_session *s, int n_in, const om_binding *in, int n_out,
                         om_tensor **out) {
    OMI_ENTER("om_session_run");
    if (omi_failed()) return om_pending();
    if (!s || n_in < 0 || (n_in && !in) || (n_out && !out))
        return omi_fail(OM_ERR_ARG, "the session, its inputs or its outputs are NULL");
    if (n_out < 0 || (uint32_t)n_out > s->program->graph->n_outputs)
        return omi_fail(OM_ERR_ARG, "%d outputs are asked for; the graph has %u", n_out,
                        s->program->graph->n_outputs);
    enter(s);
    om_status st = session_run(s, n_in, in, n_out, out);
    leave_session(s);
    return st;
}

om_tensor *om_session_call(om_session *s, om_tensor *x) {
    OMI_ENTER("om_session_call");
    if (omi_failed()) return NULL;
    if (!s) OM_FAIL_NULL(OM_ERR_ARG, "the session is NULL");
    const om_graph *g = s->program->graph;
    if (g->n_inputs != 1 || g->n_outputs != 1)
        OM_FAIL_NULL(OM_ERR_ARG, "the graph has %u inputs and %u outputs; use om_session_run",
                     g->n_inputs, g->n_outputs);
    om_tensor *y = NULL;
    om_session_run(s, 1, &(om_binding){g->values[g->inputs[0]].name, x}, 1, &y);
    return y;
}

/* ---- prepared runs, memory
 * ------------------------------------------------------------------- */

static om_plan *plan_of_shapes(om_session *s, int n_in, const om_shape *shapes) {
    const om_graph *g = s->program->graph;
    char text[160];
    if (s->program->staged)
        OM_FAIL_NULL(OM_ERR_UNSUPPORTED,
                     "output sizes of %s are met only while it runs, so this model cannot be "
                     "planned ahead; use om_session_run",
                     omi_node_text(g, s->program->first_met, text, sizeof text));
    if (n_in < 0 || (uint32_t)n_in != g->n_inputs || (n_in && !shapes))
        OM_FAIL_NULL(OM_ERR_ARG, "%d shapes are given; the graph has %u inputs", n_in, g->n_inputs);
    size_t bytes = (g->n_inputs + 1u) * sizeof(om_feed);
    om_feed *f   = omi_calloc(bytes);
    if (!f) return NULL;
    om_plan *p = NULL;
    bool ok    = true;
    for (uint32_t i = 0; ok && i < g->n_inputs; i++) {
        f[i].rank = shapes[i].rank;
        ok        = f[i].rank >= 0 && f[i].rank <= OM_MAX_RANK;
        if (!ok)
            omi_fail(OM_ERR_SHAPE, "shape %u has rank %d; 0 to %d is possible", i, f[i].rank,
                     OM_MAX_RANK);
        if (ok) memcpy(f[i].shape, shapes[i].dims, sizeof f[i].shape);
    }
    if (ok) p = omi_cache_plan(&s->cache, s->program, f, workers_of(s), s->memory_limit);
    omi_free(f, bytes);
    return p;
}

om_status om_session_memory(om_session *s, int n_in, const om_shape *shapes, int64_t *bytes) {
    OMI_ENTER("om_session_memory");
    if (omi_failed()) return om_pending();
    if (!s || !bytes) return omi_fail(OM_ERR_ARG, "the session or the result is NULL");
    enter(s);
    om_plan *p = plan_of_shapes(s, n_in, shapes);
    if (p) *bytes = (int64_t)(p->bytes + p->out_bytes);
    omi_plan_release(p);
    leave_session(s);
    return p ? OM_OK : om_pending();
}

om_run *om_session_prepare(om_session *s, int n_in, const om_shape *shapes) {
    OMI_ENTER("om_session_prepare");
    if (omi_failed()) return NULL;
    if (!s) OM_FAIL_NULL(OM_ERR_ARG, "the session is NULL");
    enter(s);
    om_plan *p = plan_of_shapes(s, n_in, shapes);
    om_run *r  = p ? omi_run_new(p, true) : NULL;
    omi_plan_release(p);
    leave_session(s);
    // What is decided at first use must not be decided in a real-time call.
    (void)omi_kernels();
    (void)omi_workers();
    return r;
}
