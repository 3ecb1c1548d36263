/*
 * state.c -- giving a module its tensors: from a list, with a report of what does not fit.
 *
 * Everything is compared before anything is written, and every destination is made writable before
 * the first byte is copied, so a refusal or a lack of memory leaves the module as it was.
 */
#include <stdarg.h>
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
    difference missing, unexpected, misshapen;
} report;

/* One line to the caller's report, and the tally. */
static om_status note(report *r, difference *d, const char *name, const char *fmt, ...)
    OM_PRINTF(4, 5);
static om_status note(report *r, difference *d, const char *name, const char *fmt, ...) {
    if (d->n++ == 0) snprintf(d->first, sizeof d->first, "%.90s", name);
    if (!r->opts->report) return OM_OK;
    om_str s = {0};
    va_list ap;
    char text[400];
    va_start(ap, fmt);
    omi_vformat(text, sizeof text, fmt, ap);
    va_end(ap);
    omi_str_printf(&s, "%s\n", text);
    int code = s.failed ? 0 : r->opts->report(r->opts->ctx, s.v, s.n);
    omi_str_free(&s);
    if (omi_failed()) return om_pending();
    return code ? omi_fail(OM_ERR_CANCELLED, "the report function stopped with %d", code) : OM_OK;
}

typedef struct shape_text {
    char s[200];
} shape_text;
static const char *type_and_shape(const om_tensor *t, shape_text *b) {
    char dims[160];
    omi_shape_text(dims, sizeof dims, t->rank, t->shape);
    snprintf(b->s, sizeof b->s, "%s %s", om_dtype_name((om_dtype)t->dtype), dims);
    return b->s;
}

/* Fills match[i], the given tensor for entry i or NULL. */
static om_status compare(const om_state_list *have, int64_t n, const om_named_tensor *given,
                         report *r, om_strmap *by_name, om_tensor **match) {
    for (size_t i = 0; i < have->v.n; i++) {
        const om_state_entry *e  = &have->v.v[i];
        const om_named_tensor *g = omi_strmap_get(by_name, e->path, strlen(e->path));
        shape_text a, b;
        if (!g)
            OM_TRY(
                note(r, &r->missing, e->path, "missing %s %s", e->path, type_and_shape(e->t, &a)));
        else if (g->tensor->dtype != e->t->dtype || !omi_same_shape(g->tensor, e->t))
            OM_TRY(note(r, &r->misshapen, e->path, "misshapen %s %s, given %s", e->path,
                        type_and_shape(e->t, &a), type_and_shape(g->tensor, &b)));
        else
            match[i] = g->tensor;
    }
    om_strmap mine = {0};
    om_status st   = OM_OK;
    for (size_t i = 0; i < have->v.n && st == OM_OK; i++)
        if (!omi_strmap_set(&mine, have->v.v[i].path, strlen(have->v.v[i].path), have->v.v[i].t))
            st = om_pending();
    for (int64_t k = 0; k < n && st == OM_OK; k++) {
        shape_text a;
        if (!omi_strmap_get(&mine, given[k].name, strlen(given[k].name)))
            st = note(r, &r->unexpected, given[k].name, "unexpected %s %s", given[k].name,
                      type_and_shape(given[k].tensor, &a));
    }
    omi_strmap_free(&mine);
    return st;
}

static om_status judge(const report *r) {
    if (r->opts->partial) return OM_OK;
    if (!r->missing.n && !r->unexpected.n && !r->misshapen.n) return OM_OK;
    char text[360];
    size_t at                     = 0;
    const difference *const d[3]  = {&r->missing, &r->unexpected, &r->misshapen};
    static const char *const w[3] = {"missing", "unexpected", "misshapen"};
    for (int i = 0; i < 3; i++)
        if (d[i]->n && at < sizeof text)
            at += (size_t)snprintf(text + at, sizeof text - at, "%s%lld %s (first '%s')",
                                   at ? ", " : "", (long long)d[i]->n, w[i], d[i]->first);
    return omi_fail(OM_ERR_ARG, "the weights do not fit: %s; .partial takes those that do", text);
}

/* Copies match[i] over entry i; cannot fail half way for want of memory. */
static om_status commit(const om_state_list *have, om_tensor *const *match) {
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
    if (st == OM_OK) st = compare(have, n, given, &r, &by_name, match);
    if (st == OM_OK) st = judge(&r);
    if (st == OM_OK) st = commit(have, match);
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
