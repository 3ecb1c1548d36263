/*
 * keep.c -- what a graph keeps of its trace (CD-38), filled in at finish: everything is copied into
 * the kept arena, because tracer, model and modules end.
 */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/str.h"

#include "trace/tracer.h"

static char *copy_text(om_tracer *tr, const char *s) {
    return omi_arena_strndup(&tr->kept->arena, s, strlen(s));
}

void omi_tr_note(om_tracer *tr, om_note_kind kind, const om_site *site, const char *fmt, ...) {
    char text[640], where[200] = "";
    va_list ap;
    va_start(ap, fmt);
    omi_vformat(text, sizeof text, fmt, ap);
    va_end(ap);
    if (site) snprintf(where, sizeof where, "%s", OMI_SITE(site));
    // Once each: a loop that runs over the same call says it once.
    char *key = omi_arena_printf(&tr->kept->arena, "%s: %s", where, text);
    if (!key || omi_strmap_get(&tr->note_texts, key, strlen(key))) return;
    om_note n = {
        .kind = kind, .site = site ? copy_text(tr, where) : NULL, .text = key + strlen(where) + 2};
    if (!omi_strmap_set(&tr->note_texts, key, strlen(key), key))
        return; // raised: the caller's check sees it
    if (OMI_PUSH(&tr->kept->notes, n)) return;
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

static bool keep_value(om_tracer *tr, om_traced_value *to, const char *name, const om_tvalue *v) {
    om_arena *a = &tr->kept->arena;
    *to         = (om_traced_value){.name    = copy_text(tr, name),
                                    .dtype   = v->dtype,
                                    .rank    = v->rank,
                                    .is_used = v->is_used != 0,
                                    .e       = omi_arena_array(a, v->rank ? v->rank : 1, sizeof *v->e)};
    if (!to->name || !to->e) return false;
    memcpy(to->e, v->e, v->rank * sizeof *v->e);
    return true;
}

static bool keep_values(om_tracer *tr) {
    om_traced *k = tr->kept;
    k->inputs    = omi_arena_array(&k->arena, tr->inputs.n + 1, sizeof *k->inputs);
    k->outputs   = omi_arena_array(&k->arena, tr->outputs.n + 1, sizeof *k->outputs);
    if (!k->inputs || !k->outputs) return false;
    for (; k->n_inputs < tr->inputs.n; k->n_inputs++) {
        const om_tvalue *v = tr->inputs.v[k->n_inputs];
        if (!keep_value(tr, &k->inputs[k->n_inputs], v->name, v)) return false;
    }
    for (; k->n_outputs < tr->outputs.n; k->n_outputs++) {
        const om_toutput *o = &tr->outputs.v[k->n_outputs];
        if (!keep_value(tr, &k->outputs[k->n_outputs], o->name, o->v)) return false;
    }
    // Declared names lie in the tracer's arena.
    for (size_t i = 0; i < tr->symbols.n; i++)
        if (!(tr->symbols.v[i]->name = copy_text(tr, tr->symbols.v[i]->name))) return false;
    return true;
}

static bool keep_consts(om_tracer *tr) {
    om_traced *k = tr->kept;
    k->consts    = omi_arena_array(&k->arena, tr->const_list.n + 1, sizeof *k->consts);
    if (!k->consts) return false;
    for (size_t i = 0; i < tr->const_list.n; i++) {
        const om_tconst *c = tr->const_list.v[i];
        if (!c->v.is_used) {
            k->n_not_needed++;
            continue;
        }
        om_traced_const *to = &k->consts[k->n_consts];
        *to       = (om_traced_const){.dtype = c->dtype, .rank = c->rank, .bytes = c->bytes};
        to->name  = copy_text(tr, c->name);
        to->first = copy_text(tr, OMI_SITE(&c->first));
        to->shape = omi_arena_array(&k->arena, c->rank + 1u, sizeof *to->shape);
        if (!to->name || !to->first || !to->shape) return false;
        memcpy(to->shape, c->shape, c->rank * sizeof *c->shape);
        k->n_consts++;
    }
    k->unused_params = omi_arena_array(&k->arena, tr->params.n + 1, sizeof *k->unused_params);
    for (size_t i = 0; k->unused_params && i < tr->params.n; i++)
        if (!tr->params.v[i]->is_used &&
            !(k->unused_params[k->n_unused_params++] = copy_text(tr, tr->params.v[i]->name)))
            return false;
    return k->unused_params != NULL;
}

static bool keep_pruned(om_tracer *tr) {
    om_traced *k = tr->kept;
    size_t n     = 0;
    for (size_t i = 0; i < tr->nodes.n; i++)
        n += tr->nodes.v[i]->state != 2;
    k->pruned = omi_arena_array(&k->arena, n + 1, sizeof *k->pruned);
    for (size_t i = 0; k->pruned && i < tr->nodes.n; i++) {
        const om_tnode *t = tr->nodes.v[i];
        if (t->state == 2) continue;
        om_traced_node *to = &k->pruned[k->n_pruned++];
        to->type           = t->type; // a literal
        to->site           = copy_text(tr, OMI_SITE(&t->site));
        if (!to->site) return false;
    }
    return k->pruned != NULL;
}

bool omi_tr_keep(om_tracer *tr, om_graph *g, size_t n, om_extent *const *extents) {
    om_traced *k = tr->kept;
    k->extents   = omi_arena_array(&k->arena, g->n_values + 1u, sizeof *k->extents);
    if (!k->extents || !keep_values(tr) || !keep_consts(tr) || !keep_pruned(tr)) return false;
    if (n) memcpy(k->extents, extents, n * sizeof *extents);
    k->n_values  = g->n_values;
    k->n_nodes   = g->n_nodes;
    k->n_aliases = tr->n_aliases;
    for (size_t i = 0; tr->holders && i < k->atoms.list.n; i++)
        OMI_VEC_FREE(&tr->holders[i]);
    tr->holders = NULL;
    g->traced   = k;
    tr->kept    = NULL;
    tr->atoms   = NULL;
    return true;
}
