/*
 * report.c -- what a trace did, as text for people (TD-16); and the notes it is made of.
 *
 * Not saved, so it may name files and lines and follow the order of calls.
 */
#include <dlfcn.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "trace/tracer.h"

void omi_tr_note(om_tracer *tr, const char *fmt, ...) {
    char text[640];
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(text, sizeof text, fmt, ap);
    va_end(ap);
    for (size_t i = 0; i < tr->notes.n; i++)
        if (!strcmp(tr->notes.v[i], text)) return;
    char *copy = omi_arena_strndup(&tr->arena, text, strlen(text));
    if (copy && OMI_PUSH(&tr->notes, copy)) return; // else raised: the caller's check sees it
}

const char *omi_site_text(const om_site *s, omi_site_buf *buf) {
    char place[96];
    omi_site_place(s, place, sizeof place);
    bool scoped = s->module && *s->module;
    snprintf(buf->s, sizeof buf->s, "%s%s%s%s%s%s", s->function ? s->function : "a call",
             scoped ? " in " : "", scoped ? s->module : "", place[0] ? " (" : "", place,
             place[0] ? ")" : "");
    return buf->s;
}

static void put_shape(om_str *s, int rank, const om_extent *e) {
    omi_str_puts(s, "[");
    for (int i = 0; i < rank; i++)
        omi_str_printf(s, "%s%s", i ? "," : "", OMI_EXT(&e[i]));
    omi_str_puts(s, "]");
}

static void put_inputs(om_str *s, const om_tracer *tr) {
    omi_str_puts(s, "inputs:\n");
    for (size_t i = 0; i < tr->inputs.n; i++) {
        const om_tvalue *v = tr->inputs.v[i];
        omi_str_printf(s, "  %s %s ", v->name, om_dtype_name((om_dtype)v->dtype));
        put_shape(s, v->rank, v->e);
        omi_str_puts(s, v->is_used ? "\n" : " unused\n");
    }
    for (size_t i = 0; i < tr->symbols.n; i++) {
        const om_atom *a = tr->symbols.v[i];
        omi_str_printf(s, "  axis %s: %lld in the example", a->name, (long long)a->example);
        if (a->lo != 1 || a->hi || a->multiple != 1) {
            omi_str_printf(s, ", allowed from %lld", (long long)a->lo);
            if (a->hi) omi_str_printf(s, " to %lld", (long long)a->hi);
            if (a->multiple != 1) omi_str_printf(s, ", multiples of %lld", (long long)a->multiple);
        }
        omi_str_puts(s, "\n");
    }
    omi_str_puts(s, "outputs:\n");
    for (size_t i = 0; i < tr->outputs.n; i++) {
        const om_tvalue *v = tr->outputs.v[i].v;
        omi_str_printf(s, "  %s %s ", tr->outputs.v[i].name, om_dtype_name((om_dtype)v->dtype));
        put_shape(s, v->rank, v->e);
        omi_str_puts(s, "\n");
    }
}

static void put_extents(om_str *s, const om_tracer *tr) {
    bool head = false;
    for (size_t i = 0; i < tr->atoms.list.n; i++) {
        om_atom *a = tr->atoms.list.v[i];
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

static void put_constants(om_str *s, const om_tracer *tr) {
    size_t unused = 0;
    omi_str_puts(s, "constants:\n");
    for (size_t i = 0; i < tr->const_list.n; i++) {
        const om_tconst *c = tr->const_list.v[i];
        if (!c->v.is_used) {
            unused++;
            continue;
        }
        char shape[96];
        omi_str_printf(s, "  %s %s%s, %zu bytes, first used by %s\n", c->name,
                       om_dtype_name((om_dtype)c->dtype),
                       omi_shape_text(shape, sizeof shape, c->rank, c->shape), c->bytes,
                       OMI_SITE(&c->first));
    }
    if (unused) omi_str_printf(s, "  %zu captured but not needed\n", unused);
}

static void put_unused(om_str *s, const om_tracer *tr) {
    bool head = false;
    for (size_t i = 0; i < tr->params.n; i++) {
        if (tr->params.v[i]->is_used) continue;
        omi_str_puts(s, head ? ", " : "unused parameters: ");
        omi_str_puts(s, tr->params.v[i]->name);
        head = true;
    }
    if (head) omi_str_puts(s, "\n");
}

bool omi_tr_report(om_tracer *tr, om_graph *g) {
    om_str s      = {0};
    size_t pruned = 0;
    put_inputs(&s, tr);
    put_extents(&s, tr);
    put_constants(&s, tr);
    put_unused(&s, tr);
    for (size_t i = 0; i < tr->nodes.n; i++)
        pruned += tr->nodes.v[i]->state != 2;
    omi_str_printf(&s, "nodes: %u, pruned %zu, aliases %u\n", (unsigned)g->n_nodes, pruned,
                   (unsigned)tr->n_aliases);
    for (size_t i = 0; i < tr->nodes.n; i++)
        if (tr->nodes.v[i]->state != 2)
            omi_str_printf(&s, "  pruned %s of %s\n", tr->nodes.v[i]->type,
                           OMI_SITE(&tr->nodes.v[i]->site));
    if (tr->notes.n) omi_str_puts(&s, "notes:\n");
    for (size_t i = 0; i < tr->notes.n; i++)
        omi_str_printf(&s, "  %s\n", tr->notes.v[i]);
    if (!s.failed) g->report = omi_arena_strndup(g->arena, s.v, s.n);
    omi_str_free(&s);
    return g->report != NULL;
}

const char *om_trace_report(const om_graph *g) {
    return g && g->report ? g->report : "";
}
