/*
 * declare.c -- what a model says of itself to a trace: inputs and their axes, parameters, outputs.
 *
 * Names reach files, so they are checked where they are given (TD-28): the error is at the call,
 * not at a save or, worse, at a load. Finding a name, a symbol or a parameter takes the same time
 * however many there are (TD-29).
 */
#include <stdio.h>
#include <string.h>

#include "base/thread.h"
#include "base/utf8.h"
#include "compute/move.h"
#include "trace/lower.h"

bool omi_tr_clean_name(const char *s, size_t n) {
    if (n >= OM_TRACE_NAME || !omi_utf8_valid(s, n)) return false;
    for (size_t i = 0; i < n; i++) {
        unsigned char c = (unsigned char)s[i];
        if (c < 0x20 || c == 0x7f) return false;
        if (c == 0xc2 && i + 1 < n && (unsigned char)s[i + 1] < 0xa0) return false; // C1
    }
    return true;
}

om_status omi_tr_check_name(const char *name, const char *what) {
    size_t n = name ? strlen(name) : 0;
    char text[80];
    if (!n) return omi_fail(OM_ERR_ARG, "the name of the %s is empty", what);
    if (omi_tr_clean_name(name, n)) return OM_OK;
    return omi_fail(
        OM_ERR_ARG,
        "the name of the %s, '%s', cannot stand in a file: names are UTF-8 without control characters, "
        "below 64 KiB",
        what, omi_escape_buf(text, sizeof text, name, n));
}

/* Reserves a name among inputs, outputs and parameters. what is "input". */
static const char *take_name(om_tracer *tr, const char *name, const char *what) {
    if (omi_tr_check_name(name, what) != OM_OK) return NULL;
    size_t n          = strlen(name);
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
    return omi_strmap_get(&tr->symbol_names, name, strlen(name));
}

/* The symbol with this example size, or NULL: sizes are distinct. */
static om_atom *symbol_of_size(om_tracer *tr, int64_t size) {
    return omi_map_get(&tr->symbol_sizes, (uint64_t)size);
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
    const om_atom *same = own ? NULL : symbol_of_size(tr, size);
    if (same)
        return omi_fail_trace(OM_TRACE_INVALID_USAGE,
                              "input '%s': axis %d ('%s') has the example size %lld of '%s'; give "
                              "every symbol a size of its own",
                              input, axis, name, (long long)size, same->name);
    for (int i = 0; i < axis; i++)
        if (axes[i] && (x->shape[i] == size) != !strcmp(axes[i], name))
            return omi_fail_trace(
                OM_TRACE_INVALID_USAGE,
                "input '%s': axes %d ('%s', %lld) and %d ('%s', %lld): equal names need "
                "equal example sizes, different names different ones",
                input, i, axes[i], (long long)x->shape[i], axis, name, (long long)size);
    return OM_OK;
}

static om_status check_declared(om_tracer *tr, const char *name, om_tensor *x, int n_axes,
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
        OM_TRY(omi_tr_check_name(axes[i], "axis"));
        OM_TRY(check_axis(tr, name, x, i, axes));
    }
    return OM_OK;
}

static om_atom *symbol(om_tracer *tr, const char *name, int64_t size) {
    om_atom *a = find_symbol(tr, name);
    if (a) return a;
    char *copy = omi_arena_strndup(&tr->arena, name, strlen(name));
    a          = copy ? omi_atom_symbol(tr->atoms, copy, size) : NULL;
    if (!a || !omi_strmap_set(&tr->symbol_names, copy, strlen(copy), a) ||
        !omi_map_set(&tr->symbol_sizes, (uint64_t)size, a) || !OMI_PUSH(&tr->symbols, a))
        return NULL;
    return a;
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
    return omi_failed() ? NULL : x;
}

om_tensor *om_trace_input(om_tracer *tr, const char *name, om_tensor *example, int n_axes,
                          const char *const *axes) {
    OMI_ENTER("om_trace_input");
    if (omi_tr_check_active(tr) != OM_OK) return NULL;
    if (omi_tr_check_name(name, "input") != OM_OK) return NULL;
    if (check_declared(tr, name, example, n_axes, axes) != OM_OK) return NULL;
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
    if (!OMI_PUSH(&tr->inputs, v) || !omi_tr_mark_example(tr, example, own) ||
        !omi_tr_bind(tr, x, v))
        return NULL;
    return x;
}

/* "from 5 upward", "from 2 to 9, a multiple of 2" */
static const char *range_text(int64_t lo, int64_t hi, int64_t multiple, char *s, size_t cap) {
    int n = hi ? snprintf(s, cap, "from %lld to %lld", (long long)lo, (long long)hi)
               : snprintf(s, cap, "from %lld upward", (long long)lo);
    if (multiple != 1)
        snprintf(s + n, cap - (size_t)n, ", a multiple of %lld", (long long)multiple);
    return s;
}

om_status om_trace_axis_range(om_tracer *tr, const char *axis, int64_t lo, int64_t hi,
                              int64_t multiple) {
    OMI_ENTER("om_trace_axis_range");
    OM_TRY(omi_tr_check_active(tr));
    om_atom *a = axis ? find_symbol(tr, axis) : NULL;
    if (!a)
        return omi_fail_trace(OM_TRACE_INVALID_USAGE,
                              "no input has an axis '%s'; declare it with om_trace_input first",
                              axis ? axis : "");
    char range[96];
    if (multiple == 0) multiple = 1;
    if (lo < 0 || (hi != 0 && hi < lo) || multiple < 1)
        return omi_fail(OM_ERR_ARG, "axis '%s': the range %s is empty or negative", axis,
                        range_text(lo, hi, multiple, range, sizeof range));
    if (a->example < lo || (hi && a->example > hi) || a->example % multiple)
        return omi_fail_trace(OM_TRACE_INVALID_USAGE,
                              "axis '%s' has the example size %lld, which its range excludes: %s",
                              axis, (long long)a->example,
                              range_text(lo, hi, multiple, range, sizeof range));
    a->lo       = lo;
    a->hi       = hi;
    a->multiple = multiple;
    return OM_OK;
}

om_status om_trace_parameter(om_tracer *tr, const char *name, om_tensor *t) {
    OMI_ENTER("om_trace_parameter");
    OM_TRY(omi_tr_check_active(tr));
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
    OM_TRY(omi_tr_check_name(name, "parameter"));
    om_tparam *first = omi_map_get(&tr->param_map, t->storage->id);
    for (om_tparam *q = first; q; q = q->next) {
        if (!omi_tr_same_view(q, t->offset, t->dtype, t->rank, t->shape, t->strides)) continue;
        if (strcmp(name, q->name))
            omi_tr_note(tr, OM_NOTE_TIED, NULL, "'%s' is the tensor already named '%s' (tied)",
                        name, q->name);
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
    // In the order they were declared: the first one names views of the storage.
    om_tparam *last = first;
    while (last && last->next)
        last = last->next;
    if (last)
        last->next = p;
    else if (!omi_map_set(&tr->param_map, p->storage, p))
        return om_pending();
    return OMI_PUSH(&tr->params, p) ? OM_OK : om_pending();
}

om_status om_trace_output(om_tracer *tr, const char *name, om_tensor *t) {
    OMI_ENTER("om_trace_output");
    OM_TRY(omi_tr_check_active(tr));
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
