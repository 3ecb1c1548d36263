/*
 * names.c -- every generated name: nodes, values, constants, dimensions.
 *
 * Called in the order of the walk from the outputs, so equal models get equal names from any
 * compiler (TD-12). State-dict paths may appear; files, lines and addresses never (CD-16).
 */
#include <stdio.h>
#include <string.h>

#include "trace/tracer.h"

void omi_namer_free(om_namer *n) {
    omi_strmap_free(&n->counters);
    omi_strmap_free(&n->symbols);
    OMI_VEC_FREE(&n->dims);
    omi_map_free(&n->by_extent);
}

/* 1 for the first use of key, then 2, ... 0 when raised. */
static uint32_t count(om_namer *n, const char *key) {
    size_t len  = strlen(key);
    uintptr_t k = (uintptr_t)omi_strmap_get(&n->counters, key, len) + 1;
    return omi_strmap_set(&n->counters, key, len, (void *)k) ? (uint32_t)k : 0;
}

/* wanted, or wanted_2, _3, ... when an input, output, parameter or other value has that name. */
static const char *unique(om_namer *n, const char *wanted) {
    const char *name = wanted;
    for (int k = 2; name && omi_strmap_get(&n->tr->names, name, strlen(name)); k++)
        name = omi_arena_printf(&n->tr->arena, "%s_%d", wanted, k);
    static char generated[] = "generated value";
    if (!name || !omi_strmap_set(&n->tr->names, name, strlen(name), generated)) return NULL;
    return name;
}

const char *omi_name_node(om_namer *n, const char *module, const char *type) {
    // A module's name that no file can hold is left out: its parameters were refused where
    // declared.
    bool scoped = module && *module && omi_tr_clean_name(module, strlen(module));
    char *key =
        omi_arena_printf(&n->tr->arena, "%s%s%s", scoped ? module : "", scoped ? "/" : "", type);
    uint32_t k = key ? count(n, key) : 0;
    return k ? omi_arena_printf(&n->tr->arena, "%s_%u", key, (unsigned)k) : NULL;
}

const char *omi_name_out(om_namer *n, const char *node, uint32_t i, uint32_t n_out) {
    char *s = n_out == 1 ? omi_arena_printf(&n->tr->arena, "%s_out", node)
                         : omi_arena_printf(&n->tr->arena, "%s_out%u", node, (unsigned)i);
    return s ? unique(n, s) : NULL;
}

bool omi_tr_same_view(const om_tparam *p, int64_t offset, int dtype, int rank, const int64_t *shape,
                      const int64_t *strides) {
    size_t bytes = (size_t)rank * sizeof *shape;
    return p->offset == offset && p->rank == rank && p->dtype == dtype &&
           !memcmp(p->shape, shape, bytes) && !memcmp(p->strides, strides, bytes);
}

om_tparam *omi_tr_param_of(om_tracer *tr, const om_tconst *c, bool *exact) {
    om_tparam *found = omi_map_get(&tr->param_map, c->storage->id);
    *exact           = false;
    for (om_tparam *p = found; p; p = p->next)
        if (omi_tr_same_view(p, c->offset, c->dtype, c->rank, c->shape, c->strides))
            return *exact = true, p;
    return found;
}

const char *omi_name_literal(om_namer *n) {
    char *s = omi_arena_printf(&n->tr->arena, "const_%u", (unsigned)++n->n_consts);
    return s ? unique(n, s) : NULL;
}

const char *omi_name_const(om_namer *n, om_tconst *c) {
    bool exact;
    om_tparam *p = omi_tr_param_of(n->tr, c, &exact);
    if (!p) return c->name = omi_name_literal(n);
    p->is_used = true;
    if (exact) return c->name = p->name; // taken when it was declared
    char *s        = omi_arena_printf(&n->tr->arena, "%s.view_%u", p->name, (unsigned)++p->views);
    return c->name = s ? unique(n, s) : NULL;
}

/* ---- dimensions -------------------------------------------------------------------------------
 */

/* The text of one atom: its declared name, or node and axis of the first value that holds it. */
static const char *atom_name(om_namer *n, const om_atom *a) {
    if (a->kind == OM_ATOM_SYMBOL) return a->name;
    const om_holders *all = &n->tr->holders[a->index];
    const om_holder *h    = all->n ? &all->v[0] : NULL;
    if (!h || !h->v->node || !h->v->node->name) return "size";
    return omi_arena_printf(&n->tr->arena, "%s_dim%d", h->v->node->name, h->axis);
}

static const char *extent_name(om_namer *n, const om_extent *e) {
    om_arena *arena = &n->tr->arena;
    const char *s   = e->coef == 1 ? "" : omi_arena_printf(arena, "%lld*", (long long)e->coef);
    for (int i = 0; s && i < e->n; i++) {
        const char *a = atom_name(n, e->a[i]);
        if (!a) return NULL;
        s = omi_arena_printf(arena, "%s%s%s", s, a, i + 1 < e->n ? "*" : "");
    }
    return s;
}

/* Equal extents get one name, and only those. */
bool omi_name_dim(om_namer *n, const om_extent *e, om_gdim *out) {
    om_dim_name d = {.e = *e};
    if (omi_ext_is_static(e)) return *out = OM_DIM_FIXED(e->size), true;
    uint64_t hash  = omi_ext_hash(e);
    uint32_t first = (uint32_t)(uintptr_t)omi_map_get(&n->by_extent, hash);
    for (uint32_t i = first; i; i = n->dims.v[i - 1].next)
        if (omi_ext_equal(&n->dims.v[i - 1].e, e)) {
            d = n->dims.v[i - 1];
            goto found;
        }
    d.next = first;
    omi_ext_sort(&d.e);
    const char *wanted = extent_name(n, &d.e), *name = wanted;
    for (int k = 2; name && omi_strmap_get(&n->symbols, name, strlen(name)); k++)
        name = omi_arena_printf(&n->tr->arena, "%s_%d", wanted, k);
    static char taken[] = "symbol";
    if (!name || !omi_strmap_set(&n->symbols, name, strlen(name), taken)) return false;
    d.sym = omi_graph_symbol(n->g, name);
    if (d.sym < 0 || !OMI_PUSH(&n->dims, d) ||
        !omi_map_set(&n->by_extent, hash, (void *)(uintptr_t)n->dims.n))
        return false;
found:
    *out = OM_DIM_SYM(d.sym);
    if (d.e.n > 1 || d.e.coef != 1 || d.e.a[0]->kind != OM_ATOM_SYMBOL) out->expr = d.sym;
    return true;
}
