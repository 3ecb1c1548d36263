/*
 * state.c -- giving a module its tensors: from a list, with a report of what does not fit.
 *
 * Everything is compared before anything is written, and every destination is made writable before
 * the first byte is copied, so a refusal or a lack of memory leaves the module as it was.
 */
#include <stdio.h>
#include <string.h>

#include "autograd/record.h"
#include "base/map.h"
#include "base/opts.h"
#include "base/str.h"
#include "nn/module.h"

typedef struct difference {
    int64_t n;
    char first[96]; /* for the error message */
} difference;
typedef struct report {
    const om_state_opts *opts;
    difference of_kind[4]; /* by om_state_diff_kind */
} report;

typedef struct shape_text {
    char s[200];
} shape_text;
static const char *type_and_shape(const om_tensor *t, shape_text *b) {
    char dims[160];
    omi_shape_text(dims, sizeof dims, t->rank, t->shape);
    snprintf(b->s, sizeof b->s, "%s %s", om_dtype_name((om_dtype)t->dtype), dims);
    return b->s;
}

static const char *const kind_words[] = {"", "missing", "unexpected", "misshapen"};

/* One difference to the caller's functions, and the tally. */
static om_status note_difference(report *r, const om_state_diff *d) {
    difference *sum = &r->of_kind[d->kind];
    if (sum->n++ == 0) snprintf(sum->first, sizeof sum->first, "%.90s", d->name);
    int code = 0;
    if (r->opts->report) {
        om_str s = {0};
        shape_text a;
        omi_str_printf(&s, "%s %s %s", kind_words[d->kind], d->name,
                       type_and_shape(d->have ? d->have : d->given, &a));
        if (d->kind == OM_STATE_MISSHAPEN)
            omi_str_printf(&s, ", given %s", type_and_shape(d->given, &a));
        omi_str_puts(&s, "\n");
        code = s.failed ? 0 : r->opts->report(r->opts->ctx, s.v, s.n);
        omi_str_free(&s);
    }
    if (!code && !omi_failed() && r->opts->each) code = r->opts->each(r->opts->ctx, d);
    if (omi_failed()) return om_pending();
    return code ? omi_fail(OM_ERR_CANCELLED, "the report function stopped with %d", code) : OM_OK;
}

/* Fills match[i], the given tensor for entry i or NULL. */
static om_status compare_state(const om_state_list *have, int64_t n, const om_named_tensor *given,
                               report *r, om_strmap *by_name, om_tensor **match) {
    for (size_t i = 0; i < have->v.n; i++) {
        const om_state_entry *e  = &have->v.v[i];
        const om_named_tensor *g = omi_strmap_get(by_name, e->path, strlen(e->path));
        if (!g)
            OM_TRY(note_difference(r, &(om_state_diff){OM_STATE_MISSING, e->path, e->t, NULL}));
        else if (g->tensor->dtype != e->t->dtype || !omi_same_shape(g->tensor, e->t))
            OM_TRY(
                note_difference(r, &(om_state_diff){OM_STATE_MISSHAPEN, e->path, e->t, g->tensor}));
        else
            match[i] = g->tensor;
    }
    om_strmap mine = {0};
    om_status st   = OM_OK;
    for (size_t i = 0; i < have->v.n && st == OM_OK; i++)
        if (!omi_strmap_set(&mine, have->v.v[i].path, strlen(have->v.v[i].path), have->v.v[i].t))
            st = om_pending();
    for (int64_t k = 0; k < n && st == OM_OK; k++)
        if (!omi_strmap_get(&mine, given[k].name, strlen(given[k].name)))
            st = note_difference(
                r, &(om_state_diff){OM_STATE_UNEXPECTED, given[k].name, NULL, given[k].tensor});
    omi_strmap_free(&mine);
    return st;
}

static om_status judge(const report *r) {
    if (r->opts->partial) return OM_OK;
    char text[360];
    size_t at = 0;
    for (int i = OM_STATE_MISSING; i <= OM_STATE_MISSHAPEN; i++) {
        const difference *d = &r->of_kind[i];
        if (d->n && at < sizeof text)
            at += (size_t)snprintf(text + at, sizeof text - at, "%s%lld %s (first '%s')",
                                   at ? ", " : "", (long long)d->n, kind_words[i], d->first);
    }
    if (!at) return OM_OK;
    return omi_fail(OM_ERR_ARG, "the weights do not fit: %s; .partial takes those that do", text);
}

/* Copies match[i] over entry i; cannot fail half way for want of memory. */
static om_status commit_state(const om_state_list *have, om_tensor *const *match) {
    om_scope s = om_scope_begin();
    bool was   = omi_no_grad();
    for (size_t i = 0; i < have->v.n && !omi_failed(); i++)
        if (match[i]) omi_seam_write(have->v.v[i].t, OM_WRITE_COPY_IN);
    for (size_t i = 0; i < have->v.n && !omi_failed(); i++)
        if (match[i]) omi_ptr_mut(have->v.v[i].t, "loading of weights");
    for (size_t i = 0; i < have->v.n && !omi_failed(); i++)
        if (match[i] && match[i] != have->v.v[i].t) om_copy_(have->v.v[i].t, match[i]);
    omi_grad_restore(was);
    return om_scope_end(s);
}

om_status omi_state_assign(const om_state_list *have, int64_t n, const om_named_tensor *given,
                           const om_state_opts *opts) {
    om_state_opts o;
    if (!OMI_OPTS(&o, opts, ctx)) return om_pending();
    report r          = {.opts = &o};
    om_strmap by_name = {0};
    om_tensor **match = omi_calloc((have->v.n + 1) * sizeof *match);
    om_status st      = match ? OM_OK : om_pending();
    for (int64_t k = 0; k < n && st == OM_OK; k++) {
        const char *name = given[k].name;
        if (!name)
            st = omi_fail(OM_ERR_ARG, "entry %lld has no name", (long long)k);
        else if (omi_strmap_get(&by_name, name, strlen(name)))
            st = omi_fail(OM_ERR_ARG, "'%.80s' is given twice", name);
        else
            st = omi_check_arg(given[k].tensor, name);
        /* The map only hands the address back; nothing writes through it. */
        if (st == OM_OK &&
            !omi_strmap_set(&by_name, name, strlen(name), (void *)(uintptr_t)&given[k]))
            st = om_pending();
    }
    if (st == OM_OK) st = compare_state(have, n, given, &r, &by_name, match);
    if (st == OM_OK) st = judge(&r);
    if (st == OM_OK) st = commit_state(have, match);
    omi_free(match, (have->v.n + 1) * sizeof *match);
    omi_strmap_free(&by_name);
    return st;
}

om_status om_nn_load_list(om_module *m, int n, const om_named_tensor *list,
                          const om_state_opts *opts) {
    OMI_ENTER("om_nn_load_list");
    if (omi_failed()) return om_pending();
    if (!m || n < 0 || (n && !list))
        return omi_fail(OM_ERR_ARG, "%s",
                        m ? "the list is NULL or its length negative" : "the module is NULL");
    om_state_list have;
    OM_TRY(omi_state_list(m, &have));
    om_status st = omi_state_assign(&have, n, list, opts);
    omi_state_list_free(&have);
    return st;
}
