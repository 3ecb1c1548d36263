/*
 * tracer.c -- the life of a tracer: begin, hooks, declarations, abort.
 *
 * A tracer installs its hooks on the thread and marks its serial live; a tensor is traced while the
 * serial it carries is live, so ending a trace clears one slot and turns every handle into an
 * ordinary tensor (CD-10). Every refusal leaves the tracer as it was, ready to abort.
 */
#include <stdio.h>
#include <string.h>

#include "base/thread.h"
#include "compute/move.h"
#include "onemodel/autograd.h"
#include "trace/lower.h"

static _Atomic uint32_t next_serial = 1;

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

static om_status hook_read(void *self, const om_tensor *t, om_read_kind k, const om_site *site) {
    static const char *const how[] = {
        [OM_READ_DATA]     = "the elements of",
        [OM_READ_ITEM]     = "an element of",
        [OM_READ_COPY_OUT] = "all elements of",
        [OM_READ_EXPORT]   = "the storage of",
    };
    (void)self;
    (void)site;
    return omi_fail_trace(OM_TRACE_DATA_DEPENDENT,
                          "%s %s would be read while tracing; what is decided from it would be "
                          "frozen into the graph: compute with operators (om_where), or read after "
                          "om_trace_finish",
                          how[k], OMI_T(t));
}

static om_status hook_write(void *self, const om_tensor *t, om_write_kind k, const om_site *site) {
    static const char *const how[] = {
        [OM_WRITE_DATA]       = "writable elements were asked for",
        [OM_WRITE_FILL]       = "it would be filled",
        [OM_WRITE_SET]        = "an element would be set",
        [OM_WRITE_COPY_IN]    = "another tensor would be copied into it",
        [OM_WRITE_INPLACE_OP] = "it would be changed in place",
    };
    (void)self;
    (void)site;
    return omi_fail_trace(
        OM_TRACE_IN_PLACE_MUTATION,
        "%s is traced and %s: a graph has no writes; compute a new tensor (om_where, "
        "om_concat)",
        OMI_T(t), how[k]);
}

static om_status hook_no_grad(void *self, const om_site *site) {
    (void)self;
    (void)site;
    return omi_fail_trace(
        OM_TRACE_NO_GRAD,
        "gradients would be turned off while a trace records, and what is computed "
        "then would be frozen as constants; turn them off after om_trace_finish");
}

static void hook_random(void *self, om_storage *s, const om_site *site) {
    om_tracer *tr = self;
    om_trandom r  = {.storage = s->id, .site = *site};
    atomic_store_explicit(&s->taint, tr->serial, memory_order_relaxed);
    if (!OMI_PUSH(&tr->randoms, r)) return; // raised: the caller sees it pending
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
    omi_atoms_free(&tr->atoms);
    omi_map_free(&tr->values);
    omi_map_free(&tr->consts);
    omi_strmap_free(&tr->literals);
    omi_strmap_free(&tr->names);
    OMI_VEC_FREE(&tr->inputs);
    OMI_VEC_FREE(&tr->symbols);
    OMI_VEC_FREE(&tr->outputs);
    OMI_VEC_FREE(&tr->params);
    OMI_VEC_FREE(&tr->nodes);
    OMI_VEC_FREE(&tr->randoms);
    OMI_VEC_FREE(&tr->selects);
    OMI_VEC_FREE(&tr->examples);
    OMI_VEC_FREE(&tr->notes);
    omi_arena_clear(&tr->arena);
    omi_free(tr, sizeof *tr);
}

/* The thread is as before begin. */
static void leave_thread(om_tracer *tr) {
    omi_seam = NULL;
    omi_grad_restore(tr->grad_off);
    omi_module_reset(tr->module_depth);
    atomic_store_explicit(&omi_live[tr->serial & 63], 0, memory_order_release);
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
    om_tracer *tr = omi_calloc(sizeof *tr);
    if (!tr) return NULL;
    bool has_name   = opts && opts->name && *opts->name;
    tr->atoms.arena = &tr->arena;
    tr->provenance  = opts && opts->provenance;
    tr->name =
        has_name ? omi_arena_strndup(&tr->arena, opts->name, strlen(opts->name)) : "onemodel";
    tr->grad_off     = omi_grad_off;
    tr->module_depth = omi_module_depth();
    if (tr->name) tr->serial = go_live();
    if (!tr->serial) return tracer_free(tr), NULL;
    tr->first_id = omi_next_id();
    tr->seam     = (om_seam){.self    = tr,
                             .serial  = tr->serial,
                             .record  = hook_record,
                             .read    = hook_read,
                             .write   = hook_write,
                             .no_grad = hook_no_grad,
                             .random  = hook_random,
                             .opaque  = hook_opaque};
    omi_seam     = &tr->seam;
    return tr;
}

/* tr is the active tracer of this thread. */
static om_status check_tracer(const om_tracer *tr) {
    if (omi_failed()) return om_pending();
    if (!tr) return omi_fail(OM_ERR_ARG, "the tracer is NULL");
    if (omi_seam != &tr->seam)
        return omi_fail_trace(
            OM_TRACE_INVALID_USAGE,
            "the tracer belongs to another thread; use it on the thread that began it");
    return OM_OK;
}

void om_trace_abort(om_tracer *tr) {
    OMI_ENTER("om_trace_abort");
    if (!tr) return;
    if (omi_seam != &tr->seam) { // its thread has the hooks: only it can take them away
        omi_fail_trace(
            OM_TRACE_INVALID_USAGE,
            "the tracer belongs to another thread; abort it on the thread that began it");
        return;
    }
    leave_thread(tr);
    tracer_free(tr);
}

om_graph *om_trace_finish(om_tracer *tr) {
    OMI_ENTER("om_trace_finish");
    if (!tr) return omi_failed() ? NULL : (omi_fail(OM_ERR_ARG, "the tracer is NULL"), NULL);
    if (omi_seam != &tr->seam) return (void)check_tracer(tr), NULL;
    om_graph *g = omi_failed() ? NULL : omi_tr_finish(tr);
    leave_thread(tr);
    tracer_free(tr);
    return g;
}

/* ---- declarations -----------------------------------------------------------------------------
 */

/* Reserves a name among inputs, outputs and parameters. what is "input". */
static const char *take_name(om_tracer *tr, const char *name, const char *what) {
    size_t n = name ? strlen(name) : 0;
    if (!n) return omi_fail(OM_ERR_ARG, "the name of the %s is empty", what), NULL;
    const char *other = omi_strmap_get(&tr->names, name, n);
    if (other)
        return omi_fail_trace(
                   OM_TRACE_INVALID_USAGE,
                   "the name '%s' is already used by an %s; names of inputs, outputs and "
                   "parameters must differ",
                   name, other),
               NULL;
    char *copy = omi_arena_strndup(&tr->arena, name, n);
    if (!copy || !omi_strmap_set(&tr->names, copy, n, (void *)(uintptr_t)what)) return NULL;
    return copy;
}

static om_atom *find_symbol(om_tracer *tr, const char *name) {
    for (size_t i = 0; i < tr->symbols.n; i++)
        if (!strcmp(tr->symbols.v[i]->name, name)) return tr->symbols.v[i];
    return NULL;
}

/* One named axis against the symbols known, and against the axes of this input before it. */
static om_status check_axis(om_tracer *tr, const char *input, const om_tensor *x, int axis,
                            const char *const *axes) {
    const char *name = axes[axis];
    int64_t size     = x->shape[axis];
    if (size < 2)
        return omi_fail_trace(
            OM_TRACE_INVALID_USAGE,
            "input '%s': axis %d ('%s') has size %lld in the example; a symbolic axis "
            "needs at least 2, for a size of 1 looks like a fixed one",
            input, axis, name, (long long)size);
    const om_atom *own = find_symbol(tr, name);
    if (own && own->example != size)
        return omi_fail_trace(
            OM_TRACE_INVALID_USAGE,
            "input '%s': axis %d is '%s' with size %lld, but '%s' has size %lld on "
            "another axis; one name is one size",
            input, axis, name, (long long)size, name, (long long)own->example);
    for (size_t i = 0; !own && i < tr->symbols.n; i++)
        if (tr->symbols.v[i]->example == size)
            return omi_fail_trace(
                OM_TRACE_INVALID_USAGE,
                "input '%s': axis %d ('%s') has the example size %lld of '%s'; give "
                "every symbol a size of its own",
                input, axis, name, (long long)size, tr->symbols.v[i]->name);
    for (int i = 0; i < axis; i++)
        if (axes[i] && (x->shape[i] == size) != !strcmp(axes[i], name))
            return omi_fail_trace(
                OM_TRACE_INVALID_USAGE,
                "input '%s': axes %d ('%s', %lld) and %d ('%s', %lld): equal names need "
                "equal example sizes, different names different ones",
                input, i, axes[i], (long long)x->shape[i], axis, name, (long long)size);
    return OM_OK;
}

static om_status check_input(om_tracer *tr, const char *name, om_tensor *x, int n_axes,
                             const char *const *axes) {
    OM_TRY(omi_check_arg(x, "the example"));
    if (omi_traced(x))
        return omi_fail_trace(OM_TRACE_INVALID_USAGE,
                              "input '%s': %s is already traced; give a tensor that no trace made",
                              name, OMI_T(x));
    if (n_axes < 0 || (n_axes > 0 && !axes))
        return omi_fail(OM_ERR_ARG, "input '%s': %d axis names without a list", name, n_axes);
    for (int i = 0; i < n_axes; i++) {
        if (!axes[i]) continue;
        if (i >= x->rank)
            return omi_fail_trace(OM_TRACE_INVALID_USAGE,
                                  "input '%s': axis %d ('%s') does not exist in %s", name, i,
                                  axes[i], OMI_T(x));
        if (!*axes[i])
            return omi_fail(OM_ERR_ARG,
                            "input '%s': the name of axis %d is empty; NULL means fixed", name, i);
        OM_TRY(check_axis(tr, name, x, i, axes));
    }
    return OM_OK;
}

static om_atom *symbol(om_tracer *tr, const char *name, int64_t size) {
    om_atom *a = find_symbol(tr, name);
    if (a) return a;
    char *copy = omi_arena_strndup(&tr->arena, name, strlen(name));
    a          = copy ? omi_atom_symbol(&tr->atoms, copy, size) : NULL;
    return a && OMI_PUSH(&tr->symbols, a) ? a : NULL;
}

/* A copy of the example, which the model gets (CD-11). */
static om_tensor *copy_example(om_tensor *example, const char *name) {
    om_tensor *x = omi_new_like(example);
    if (!x) return NULL;
    om_view from = omi_view(example), to = omi_view(x);
    if (omi_numel(x)) omi_copy(&from, &to);
    if (omi_check_cancel() != OM_OK) return NULL;
    om_set_name(x, name);
    x->origin = "om_trace_input";
    return x;
}

om_tensor *om_trace_input(om_tracer *tr, const char *name, om_tensor *example, int n_axes,
                          const char *const *axes) {
    OMI_ENTER("om_trace_input");
    if (check_tracer(tr) != OM_OK) return NULL;
    if (!name || !*name) OM_FAIL_NULL(OM_ERR_ARG, "the name of the input is empty");
    if (check_input(tr, name, example, n_axes, axes) != OM_OK) return NULL;
    const char *own = take_name(tr, name, "input");
    om_tvalue *v =
        own ? omi_tr_new_value(tr, OM_TV_INPUT, (om_dtype)example->dtype, example->rank) : NULL;
    om_tensor *x = v ? copy_example(example, name) : NULL;
    if (!x) return NULL;
    v->name = own;
    for (int i = 0; i < x->rank; i++) {
        v->e[i] = omi_ext_static(x->shape[i]);
        if (i >= n_axes || !axes[i]) continue;
        om_atom *a = symbol(tr, axes[i], x->shape[i]);
        if (!a) return NULL;
        v->e[i] = omi_ext_atom(a);
    }
    om_texample e = {.storage = example->storage->id, .input = own};
    if (!OMI_PUSH(&tr->inputs, v) || !OMI_PUSH(&tr->examples, e) || !omi_tr_bind(tr, x, v))
        return NULL;
    return x;
}

om_status om_trace_axis_range(om_tracer *tr, const char *axis, int64_t lo, int64_t hi,
                              int64_t multiple) {
    OMI_ENTER("om_trace_axis_range");
    OM_TRY(check_tracer(tr));
    om_atom *a = axis ? find_symbol(tr, axis) : NULL;
    if (!a)
        return omi_fail_trace(OM_TRACE_INVALID_USAGE,
                              "no input has an axis '%s'; declare it with om_trace_input first",
                              axis ? axis : "");
    if (multiple == 0) multiple = 1;
    if (lo < 0 || (hi != 0 && hi < lo) || multiple < 1)
        return omi_fail(OM_ERR_ARG,
                        "axis '%s': the range %lld to %lld, multiple of %lld, is empty or negative",
                        axis, (long long)lo, (long long)hi, (long long)multiple);
    if (a->example < lo || (hi && a->example > hi) || a->example % multiple)
        return omi_fail_trace(
            OM_TRACE_INVALID_USAGE,
            "axis '%s' has the example size %lld, outside of its range %lld to %lld, "
            "multiple of %lld",
            axis, (long long)a->example, (long long)lo, (long long)hi, (long long)multiple);
    a->lo       = lo;
    a->hi       = hi;
    a->multiple = multiple;
    return OM_OK;
}

static bool same_view(const om_tparam *p, const om_tensor *t) {
    return p->storage == t->storage->id && p->offset == t->offset && p->rank == t->rank &&
           p->dtype == t->dtype && !memcmp(p->shape, t->shape, t->rank * sizeof *t->shape) &&
           !memcmp(p->strides, t->strides, t->rank * sizeof *t->strides);
}

om_status om_trace_parameter(om_tracer *tr, const char *name, om_tensor *t) {
    OMI_ENTER("om_trace_parameter");
    OM_TRY(check_tracer(tr));
    if (t && t->layout != OM_STRIDED)
        return omi_fail_trace(OM_TRACE_UNSUPPORTED_OPERATION,
                              "parameter '%s': %s has a blocked layout, which a graph cannot hold: "
                              "convert it with om_from_nchw16c",
                              name ? name : "", OMI_T(t));
    OM_TRY(omi_check_arg(t, "the parameter"));
    if (omi_traced(t))
        return omi_fail_trace(OM_TRACE_INVALID_USAGE,
                              "parameter '%s': %s depends on an input, so it is no constant",
                              name ? name : "", OMI_T(t));
    for (size_t i = 0; i < tr->params.n; i++) {
        if (!same_view(tr->params.v[i], t)) continue;
        if (name && strcmp(name, tr->params.v[i]->name))
            omi_tr_note(tr, "'%s' is the tensor already named '%s' (tied)", name,
                        tr->params.v[i]->name);
        return OM_OK; // tied weights: the first name holds
    }
    om_tparam *p = omi_arena_alloc(&tr->arena, sizeof *p);
    if (!p || !(p->name = take_name(tr, name, "parameter"))) return om_pending();
    p->storage = t->storage->id;
    p->offset  = t->offset;
    p->dtype   = t->dtype;
    p->rank    = t->rank;
    memcpy(p->shape, t->shape, sizeof p->shape);
    memcpy(p->strides, t->strides, sizeof p->strides);
    return OMI_PUSH(&tr->params, p) ? OM_OK : om_pending();
}

om_status om_trace_output(om_tracer *tr, const char *name, om_tensor *t) {
    OMI_ENTER("om_trace_output");
    OM_TRY(check_tracer(tr));
    if (!t) return omi_fail(OM_ERR_ARG, "output '%s' is NULL", name ? name : "");
    if (!omi_traced(t))
        return omi_fail_trace(
            OM_TRACE_INVALID_USAGE,
            "output '%s': %s does not depend on an input of this trace; give a value "
            "computed from what om_trace_input returned",
            name ? name : "", OMI_T(t));
    OM_TRY(omi_check_thread(t));
    om_toutput o = {.v = omi_tr_value_of(tr, t)};
    if (!o.v || !(o.name = take_name(tr, name, "output"))) return om_pending();
    return OMI_PUSH(&tr->outputs, o) ? OM_OK : om_pending();
}
