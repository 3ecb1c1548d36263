/*
 * tracer.c -- the life of a tracer: begin, hooks, finish, abort. What a model declares is
 * declare.c.
 *
 * A tracer installs its hooks on the thread and marks its serial live; a tensor is traced while the
 * serial it carries is live, so ending a trace clears one slot and turns every handle into an
 * ordinary tensor (CD-10). Every refusal leaves the tracer as it was, ready to abort.
 */
#include <stdio.h>
#include <string.h>

#include "base/opts.h"
#include "base/words.h"
#include "onemodel/autograd.h"
#include "trace/lower.h"

static _Atomic uint32_t next_serial = 1;
static _Atomic(const om_tracer *) tracers[64]; /* alive, by the slot of their serial */

/* ---- hooks ---------------------------------------------------------------------------------- */

static bool fetch_inputs(om_tracer *tr, const om_call *call, const om_lower_rule *rule,
                         om_tvalue **in) {
    for (uint32_t i = 0; i < call->n_in; i++) {
        om_tensor *t = call->in[i];
        if (!t) continue;
        if (omi_traced(t))
            in[i] = omi_tr_value_of(tr, t);
        else if (i < 8 && rule->shape_only >> i & 1)
            in[i] = omi_tr_shape_only(tr, t);
        else
            in[i] = omi_tr_const(tr, t, call->name);
        if (!in[i]) return false;
    }
    return true;
}

/* Where a traced result was made, for messages: "om_mean in net.gate" (CD-15). */
static void set_origin(om_tensor *t, const om_call *call, const om_site *site) {
    char text[192];
    if (!call->name) return;
    t->origin = call->name;
    if (!site->module || !*site->module) return;
    snprintf(text, sizeof text, "%s in %s", call->name, site->module);
    const char *s = omi_intern(text);
    if (s) t->origin = s;
}

static om_status lower_call(om_lowering *lw, const om_lower_rule *rule, om_tvalue **in,
                            om_tvalue **out) {
    const om_call *call = lw->call;
    om_tracer *tr       = lw->tr;
    if (rule->refusal)
        return omi_fail_trace(OM_TRACE_UNSUPPORTED_OPERATION, "%s of %s cannot be traced: %s",
                              call->name ? call->name : omi_op_name(call->op), OMI_LT(lw, 0),
                              rule->refusal);
    if (!fetch_inputs(tr, call, rule, in)) return om_pending();
    if (rule->alias) {
        out[0] = in[0];
        tr->n_aliases++;
    } else
        OM_TRY(rule->emit(lw, call, in, out));
    for (uint32_t i = 0; i < call->n_out; i++) {
        if (!out[i] && !rule->may_fold) // TD-1
            return omi_fail_trace(OM_TRACE_UNSUPPORTED_OPERATION, "%s has no mapping of output %u",
                                  call->name, (unsigned)i);
        if (out[i] && !omi_tr_bind(tr, call->out[i], out[i])) return om_pending();
        set_origin(call->out[i], call, &lw->site);
    }
    return OM_OK;
}

static om_status hook_record(void *self, const om_call *call, om_tensor **out) {
    om_tracer *tr             = self;
    const om_lower_rule *rule = omi_lower_rule(call->op);
    om_lowering lw            = {.tr = tr, .call = call, .site = omi_site()};
    om_tvalue **vals = omi_arena_array(&tr->arena, (size_t)call->n_in + call->n_out, sizeof *vals);
    (void)out;
    if (!vals) return om_pending();
    if (!rule)
        return omi_fail_trace(OM_TRACE_UNSUPPORTED_OPERATION, "%s has no mapping", call->name);
    return lower_call(&lw, rule, vals, vals + call->n_in);
}

/* A refused read, write or change of grad mode left the model a value that it may decide from, so
 * no graph comes of this trace, even when the error is taken (TD-27). The first one is told. */
static om_status refused(om_tracer *tr, const om_tensor *t, const char *what, const om_site *site) {
    if (!tr->refused[0])
        snprintf(tr->refused, sizeof tr->refused, "%s%s%s, a %s,", OMI_SITE(site), t ? " of " : "",
                 t ? OMI_T(t) : "", what);
    return om_pending();
}

static om_status hook_read(void *self, const om_tensor *t, om_read_kind k, const om_site *site) {
    static const char *const how[] = {
        [OM_READ_DATA]     = "the elements of",
        [OM_READ_ITEM]     = "an element of",
        [OM_READ_COPY_OUT] = "all elements of",
        [OM_READ_EXPORT]   = "the storage of",
    };
    if (!omi_traced(t)) {
        om_status st = omi_tr_check_read(self, t, how[k]);
        return st == OM_OK ? st : refused(self, t, "read", site);
    }
    omi_fail_trace(OM_TRACE_DATA_DEPENDENT,
                   "%s %s would be read while tracing; what is decided from it would be "
                   "frozen into the graph: compute with operators (om_where), or read after "
                   "om_trace_finish",
                   how[k], OMI_T(t));
    return refused(self, t, "read", site);
}

static om_status hook_write(void *self, const om_tensor *t, om_write_kind k, const om_site *site) {
    static const char *const how[] = {
        [OM_WRITE_DATA]       = "writable elements were asked for",
        [OM_WRITE_FILL]       = "it would be filled",
        [OM_WRITE_SET]        = "an element would be set",
        [OM_WRITE_COPY_IN]    = "another tensor would be copied into it",
        [OM_WRITE_INPLACE_OP] = "it would be changed in place",
    };
    omi_fail_trace(OM_TRACE_IN_PLACE_MUTATION,
                   "%s is traced and %s: a graph has no writes; compute a new tensor (om_where, "
                   "om_concat)",
                   OMI_T(t), how[k]);
    return refused(self, t, "write", site);
}

static om_status hook_no_grad(void *self, const om_site *site) {
    omi_fail_trace(OM_TRACE_NO_GRAD,
                   "gradients would be turned off while a trace records, and what is computed "
                   "then would be frozen as constants; turn them off after om_trace_finish");
    return refused(self, NULL, "change of grad mode", site);
}

static void hook_random(void *self, om_storage *s, const om_site *site) {
    omi_tr_mark(self, s, OM_MARK_RANDOM, site);
}

static void hook_join(void *self, const om_tensor *from, om_tensor *to) {
    omi_tr_join(self, from, to);
}

static void hook_wrote(void *self, om_storage *s, const om_site *site) {
    om_tracer *tr = self;
    if (s->id < tr->first_id) omi_tr_mark(tr, s, OM_MARK_UPDATED, site);
}

static om_status hook_opaque(void *self, const char *what, const om_site *site) {
    (void)self;
    (void)site;
    return omi_fail_trace(OM_TRACE_UNSUPPORTED_OPERATION,
                          "%s takes a traced tensor, which a graph cannot record; do it after "
                          "om_trace_finish",
                          what);
}

/* ---- begin and end ----------------------------------------------------------------------------
 */

/* Takes a serial whose slot of omi_live is free. 0 and raised when 64 traces are live. */
static uint32_t go_live(void) {
    for (int tries = 0; tries < 4 * 64; tries++) {
        uint32_t s = atomic_fetch_add_explicit(&next_serial, 1, memory_order_relaxed), none = 0;
        if (s && atomic_compare_exchange_strong(&omi_live[s & 63], &none, s)) return s;
    }
    omi_fail(OM_ERR_LIMIT, "64 traces are active in this process; finish or abort one");
    return 0;
}

static void tracer_free(om_tracer *tr) {
    omi_tr_free_consts(tr);
    for (size_t i = 0; tr->holders && i < tr->kept->atoms.list.n; i++)
        OMI_VEC_FREE(&tr->holders[i]);
    omi_traced_free(tr->kept);
    omi_map_free(&tr->values);
    omi_map_free(&tr->marks);
    omi_map_free(&tr->consts);
    omi_strmap_free(&tr->literals);
    omi_strmap_free(&tr->names);
    omi_strmap_free(&tr->symbol_names);
    omi_map_free(&tr->symbol_sizes);
    omi_map_free(&tr->param_map);
    OMI_VEC_FREE(&tr->inputs);
    OMI_VEC_FREE(&tr->symbols);
    OMI_VEC_FREE(&tr->outputs);
    OMI_VEC_FREE(&tr->params);
    OMI_VEC_FREE(&tr->nodes);
    OMI_VEC_FREE(&tr->selects);
    omi_strmap_free(&tr->note_texts);
    omi_arena_clear(&tr->arena);
    omi_free(tr, sizeof *tr);
}

/* The thread is as before begin. */
static void leave_thread(om_tracer *tr) {
    omi_seam = NULL;
    omi_grad_restore(tr->grad_off);
    omi_module_reset(tr->module_depth);
    atomic_store_explicit(&tracers[tr->serial & 63], NULL, memory_order_release);
    atomic_store_explicit(&omi_live[tr->serial & 63], 0, memory_order_release);
}

/* A thread that ends inside a trace takes it along, or its slot would never come back. */
static void trace_thread_ends(void) {
    om_tracer *tr = omi_seam ? omi_seam->self : NULL;
    if (!tr) return;
    leave_thread(tr);
    tracer_free(tr);
}
static bool watch_thread(void) {
    omi_live_forks();
    if (omi_state_at_exit(trace_thread_ends)) return true;
    omi_fail(OM_ERR_NOMEM, "no memory to watch the thread that begins a trace");
    return false;
}

om_tracer *om_trace_begin(const om_trace_opts *opts) {
    OMI_ENTER("om_trace_begin");
    if (omi_failed()) return NULL;
    if (omi_seam)
        return omi_fail_trace(OM_TRACE_INVALID_USAGE,
                              "a tracer is active on this thread; finish or abort it first"),
               NULL;
    if (omi_grad_off)
        return omi_fail_trace(
                   OM_TRACE_NO_GRAD,
                   "gradients are off, so nothing would be recorded; call om_no_grad_end "
                   "before om_trace_begin"),
               NULL;
    om_trace_opts own;
    if (!OMI_OPTS(&own, opts, name)) return NULL;
    opts          = &own;
    bool has_name = opts->name && *opts->name;
    if (has_name && omi_tr_check_name(opts->name, "graph") != OM_OK) return NULL;
    om_tracer *tr = omi_calloc(sizeof *tr);
    if (!tr) return NULL;
    tr->kept       = omi_traced_new();
    tr->provenance = opts->provenance;
    tr->name =
        has_name ? omi_arena_strndup(&tr->arena, opts->name, strlen(opts->name)) : "onemodel";
    tr->grad_off     = omi_grad_off;
    tr->module_depth = omi_module_depth();
    if (!tr->kept || !tr->name || !watch_thread()) return tracer_free(tr), NULL;
    tr->atoms  = &tr->kept->atoms;
    tr->serial = go_live();
    if (!tr->serial) return tracer_free(tr), NULL;
    atomic_store_explicit(&tracers[tr->serial & 63], tr, memory_order_release);
    tr->first_id = omi_next_id();
    tr->seam     = (om_seam){.self    = tr,
                             .serial  = tr->serial,
                             .record  = hook_record,
                             .read    = hook_read,
                             .write   = hook_write,
                             .no_grad = hook_no_grad,
                             .random  = hook_random,
                             .join    = hook_join,
                             .wrote   = hook_wrote,
                             .opaque  = hook_opaque};
    omi_seam     = &tr->seam;
    return tr;
}

/* tr is not this thread's active tracer: says which of the two mistakes that is. Reads nothing of
 * tr, which may be gone. */
static om_status not_active(const om_tracer *tr) {
    bool alive = false;
    for (int i = 0; i < 64; i++)
        alive |= atomic_load_explicit(&tracers[i], memory_order_acquire) == tr;
    return omi_fail_trace(
        OM_TRACE_INVALID_USAGE, "%s",
        alive ? "the tracer belongs to another thread; use it, finish it or abort it on the thread "
                "that began it"
              : "the tracer was finished or aborted before; begin another with om_trace_begin");
}

om_status omi_tr_check_active(const om_tracer *tr) {
    if (omi_failed()) return om_pending();
    if (!tr) return omi_fail(OM_ERR_ARG, "the tracer is NULL");
    return omi_seam == &tr->seam ? OM_OK : not_active(tr);
}

void om_trace_abort(om_tracer *tr) {
    OMI_ENTER("om_trace_abort");
    if (!tr) return;
    if (omi_seam != &tr->seam) { // its thread has the hooks: only it can take them away
        not_active(tr);
        return;
    }
    leave_thread(tr);
    tracer_free(tr);
}

om_graph *om_trace_finish(om_tracer *tr) {
    OMI_ENTER("om_trace_finish");
    if (!tr) return omi_failed() ? NULL : (omi_fail(OM_ERR_ARG, "the tracer is NULL"), NULL);
    if (omi_seam != &tr->seam) return (void)omi_tr_check_active(tr), NULL;
    if (!omi_failed() && tr->refused[0])
        omi_fail_trace(
            OM_TRACE_INVALID_USAGE,
            "%s was refused, and what the model decided after that is not known: no graph comes of this "
            "trace, even if the error was taken; do not make that call",
            tr->refused);
    om_graph *g = omi_failed() ? NULL : omi_tr_finish(tr);
    leave_thread(tr);
    tracer_free(tr);
    return g;
}
