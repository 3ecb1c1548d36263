/*
 * report.c -- what a trace did, as text for people (TD-16), printed from what the graph kept of it
 * (CD-38).
 *
 * Not saved, so it may name files and lines and follow the order of calls.
 */
#include <stdatomic.h>
#include <string.h>

#include "base/str.h"
#include "graph/traced.h"
#include "trace/tracer.h"

static void put_shape(om_str *s, int rank, const om_extent *e) {
    omi_str_puts(s, "[");
    for (int i = 0; i < rank; i++)
        omi_str_printf(s, "%s%s", i ? "," : "", OMI_EXT(&e[i]));
    omi_str_puts(s, "]");
}

static void put_values(om_str *s, uint32_t n, const om_traced_value *v, bool inputs) {
    for (uint32_t i = 0; i < n; i++) {
        omi_str_printf(s, "  %s %s ", v[i].name, om_dtype_name((om_dtype)v[i].dtype));
        put_shape(s, v[i].rank, v[i].e);
        omi_str_puts(s, inputs && !v[i].is_used ? " unused\n" : "\n");
    }
}

static void put_axes(om_str *s, const om_traced *t) {
    for (size_t i = 0; i < t->atoms.list.n; i++) {
        const om_atom *a = t->atoms.list.v[i];
        if (a->kind != OM_ATOM_SYMBOL) continue;
        omi_str_printf(s, "  axis %s: %lld in the example", a->name, (long long)a->example);
        if (a->lo != 1 || a->hi || a->multiple != 1) {
            omi_str_printf(s, ", allowed from %lld", (long long)a->lo);
            if (a->hi)
                omi_str_printf(s, " to %lld", (long long)a->hi);
            else
                omi_str_puts(s, " upward");
            if (a->multiple != 1) omi_str_printf(s, ", multiples of %lld", (long long)a->multiple);
        }
        omi_str_puts(s, "\n");
    }
}

static void put_derived(om_str *s, const om_traced *t) {
    bool head = false;
    for (size_t i = 0; i < t->atoms.list.n; i++) {
        om_atom *a = t->atoms.list.v[i];
        if (a->kind == OM_ATOM_SYMBOL) continue;
        if (!head) omi_str_puts(s, "derived sizes:\n");
        head        = true;
        om_extent e = omi_ext_atom(a);
        omi_str_printf(s, "  %s = %lld, by %s%s%s%s\n", OMI_EXT(&e), (long long)a->example,
                       a->op ? a->op : "a call", a->module && *a->module ? " in " : "",
                       a->module ? a->module : "",
                       a->kind == OM_ATOM_EQUAL ? " (equal at the example sizes only)" : "");
    }
}

static void put_constants(om_str *s, const om_traced *t) {
    char shape[96];
    omi_str_puts(s, "constants:\n");
    for (size_t i = 0; i < t->n_consts; i++) {
        const om_traced_const *c = &t->consts[i];
        omi_str_printf(s, "  %s %s%s, %zu bytes, first used by %s\n", c->name,
                       om_dtype_name((om_dtype)c->dtype),
                       omi_shape_text(shape, sizeof shape, c->rank, c->shape), c->bytes, c->first);
    }
    if (t->n_not_needed) omi_str_printf(s, "  %zu captured but not needed\n", t->n_not_needed);
    for (size_t i = 0; i < t->n_unused_params; i++)
        omi_str_printf(s, "%s%s", i ? ", " : "unused parameters: ", t->unused_params[i]);
    if (t->n_unused_params) omi_str_puts(s, "\n");
}

static void put_notes(om_str *s, const om_traced *t) {
    omi_str_printf(s, "nodes: %u, pruned %zu, aliases %u\n", (unsigned)t->n_nodes, t->n_pruned,
                   (unsigned)t->n_aliases);
    for (size_t i = 0; i < t->n_pruned; i++)
        omi_str_printf(s, "  pruned %s of %s\n", t->pruned[i].type, t->pruned[i].site);
    if (t->notes.n) omi_str_puts(s, "notes:\n");
    for (size_t i = 0; i < t->notes.n; i++) {
        const om_note *n = &t->notes.v[i];
        omi_str_printf(s, "  %s%s%s\n", n->site ? n->site : "", n->site ? ": " : "", n->text);
    }
}

const char *om_trace_report(const om_graph *g) {
    om_traced *t = g ? g->traced : NULL;
    if (!t) return "";
    char *text = atomic_load_explicit(&t->report, memory_order_acquire), *none = NULL;
    if (text) return text;
    if (omi_failed()) return "";
    om_str s = {0};
    omi_str_puts(&s, "inputs:\n");
    put_values(&s, t->n_inputs, t->inputs, true);
    put_axes(&s, t);
    omi_str_puts(&s, "outputs:\n");
    put_values(&s, t->n_outputs, t->outputs, false);
    put_derived(&s, t);
    put_constants(&s, t);
    put_notes(&s, t);
    // Two threads may print it at once: equal texts, and the first one stays.
    if (!s.failed && atomic_compare_exchange_strong(&t->report, &none, s.v)) {
        t->report_bytes = s.cap;
        return s.v;
    }
    omi_str_free(&s);
    return none ? none : "";
}
