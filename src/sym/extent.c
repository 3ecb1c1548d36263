/*
 * extent.c -- arithmetic and interning of extents (symbolic-axes 2).
 *
 * Rule of thumb: when unsure, mint an atom; never invent an expression.
 */
#include "sym/sym.h"

#include <string.h>

#include "base/checked.h"

void omi_atoms_free(om_atoms *t) {
    omi_map_free(&t->by_hash);
    omi_map_free(&t->by_size);
    omi_strmap_free(&t->words);
    OMI_VEC_FREE(&t->list);
}

om_extent omi_ext_static(int64_t size) {
    return (om_extent){.size = size, .coef = size};
}

om_extent omi_ext_atom(om_atom *a) {
    return (om_extent){.size = a->example, .coef = 1, .n = 1, .a = {a}};
}

/* A copy of s, the same for equal ones; NULL for NULL, or raised. */
static const char *word(om_atoms *t, const char *s) {
    size_t n = s ? strlen(s) : 0;
    if (!s) return NULL;
    const char *have = omi_strmap_get(&t->words, s, n);
    if (have) return have;
    char *copy = omi_arena_strndup(t->arena, s, n);
    return copy && omi_strmap_set(&t->words, copy, n, copy) ? copy : NULL;
}

static om_atom *atom_new(om_atoms *t, om_atom_kind kind, int64_t example) {
    om_atom *a = omi_arena_alloc(t->arena, sizeof *a);
    if (!a || t->list.n >= UINT32_MAX - 1) return NULL;
    om_site site = omi_site();
    a->kind      = kind;
    a->example   = example;
    a->lo        = 1;
    a->multiple  = 1;
    a->op        = site.op;
    a->module    = word(t, site.module);
    a->index     = (uint32_t)t->list.n;
    a->n_made    = 1;
    a->next_size = omi_map_get(&t->by_size, (uint64_t)example);
    if (omi_failed() || !omi_map_set(&t->by_size, (uint64_t)example, a)) return NULL;
    return OMI_PUSH(&t->list, a) ? a : NULL;
}

om_atom *omi_atoms_of_size(const om_atoms *t, int64_t size) {
    return omi_map_get(&t->by_size, (uint64_t)size);
}

om_atom *omi_atom_symbol(om_atoms *t, const char *name, int64_t example) {
    om_atom *a = atom_new(t, OM_ATOM_SYMBOL, example);
    if (a) a->name = name;
    return a;
}

/* Multiset equality of atom lists of equal length. */
static bool same_atoms(const om_extent *a, const om_extent *b) {
    bool used[OM_MAX_ATOMS] = {false};
    for (int i = 0; i < a->n; i++) {
        int j = 0;
        while (j < b->n && (used[j] || b->a[j] != a->a[i]))
            j++;
        if (j == b->n) return false;
        used[j] = true;
    }
    return true;
}

bool omi_ext_equal(const om_extent *a, const om_extent *b) {
    return a->coef == b->coef && a->n == b->n && same_atoms(a, b);
}

bool omi_ext_has(const om_extent *e, const om_atom *a) {
    for (int i = 0; i < e->n; i++)
        if (e->a[i] == a) return true;
    return false;
}

bool omi_ext_mul(const om_extent *a, const om_extent *b, om_extent *out) {
    om_extent r = *a;
    if (a->n + b->n > OM_MAX_ATOMS)
        return omi_fail_trace(
                   OM_TRACE_SYMBOLIC_SHAPE,
                   "one axis would be a product of more than %d symbolic sizes (%s times %s)",
                   OM_MAX_ATOMS, OMI_EXT(a), OMI_EXT(b)),
               false;
    if (!omi_mul_i64(a->coef, b->coef, &r.coef) || !omi_mul_i64(a->size, b->size, &r.size))
        return omi_fail_trace(OM_TRACE_SYMBOLIC_SHAPE, "the size %s times %s is too large",
                              OMI_EXT(a), OMI_EXT(b)),
               false;
    for (int i = 0; i < b->n; i++)
        r.a[r.n++] = b->a[i];
    if (r.coef == 0) r.n = 0; /* zero elements whatever the symbols are */
    *out = r;
    return true;
}

/* SUM and EQUAL do not care for the order of their sources. */
static bool same_sources(const om_atom *a, uint32_t n, const om_extent *src) {
    bool used[64] = {false};
    if (n > OM_COUNT(used)) return false;
    for (uint32_t i = 0; i < n; i++) {
        uint32_t j = 0;
        while (j < n && (used[j] || !omi_ext_equal(&a->src[j], &src[i])))
            j++;
        if (j == n) return false;
        used[j] = true;
    }
    return true;
}

static uint64_t mix_extent(uint64_t h) {
    h ^= h >> 31;
    h *= 0x9e3779b97f4a7c15u;
    return h ^ h >> 29;
}

uint64_t omi_ext_hash(const om_extent *e) {
    uint64_t atoms = 0; // a sum: whatever the order
    for (int i = 0; i < e->n; i++)
        atoms += mix_extent(e->a[i]->index + 1u);
    return mix_extent((uint64_t)e->coef + mix_extent(atoms));
}

static uint64_t definition(om_atom_kind kind, const int64_t p[3], uint32_t n_src,
                           const om_extent *src) {
    uint64_t h = mix_extent((uint64_t)kind + 1), sources = 0;
    for (int i = 0; i < 3; i++)
        h = mix_extent(h + (uint64_t)p[i]);
    for (uint32_t i = 0; i < n_src; i++)
        sources += omi_ext_hash(&src[i]);
    return mix_extent(h + sources);
}

static bool intern_atom(om_atoms *t, om_atom_kind kind, int64_t example, const int64_t p[3],
                        uint32_t n_src, const om_extent *src, om_extent *out) {
    uint64_t h     = definition(kind, p, n_src, src);
    om_atom *first = omi_map_get(&t->by_hash, h);
    for (om_atom *a = first; a; a = a->next_hash)
        if (a->kind == kind && a->n_src == n_src && a->example == example &&
            !memcmp(a->p, p, sizeof a->p) && same_sources(a, n_src, src))
            return a->n_made++, *out = omi_ext_atom(a), true;
    om_atom *a = atom_new(t, kind, example);
    if (!a) return false;
    a->src = omi_arena_array(t->arena, n_src, sizeof *src);
    if (!a->src) return false;
    memcpy(a->src, src, n_src * sizeof *src);
    memcpy(a->p, p, sizeof a->p);
    a->n_src     = n_src;
    a->next_hash = first;
    *out         = omi_ext_atom(a);
    return omi_map_set(&t->by_hash, h, a);
}

bool omi_ext_add(om_atoms *t, const om_extent *e, int64_t c, om_extent *out) {
    int64_t size;
    if (!omi_add_i64(e->size, c, &size))
        return omi_fail_trace(OM_TRACE_SYMBOLIC_SHAPE, "the size %s + %lld is too large",
                              OMI_EXT(e), (long long)c),
               false;
    if (c == 0) return *out = *e, true;
    if (omi_ext_is_static(e)) return *out = omi_ext_static(size), true;
    if (e->n == 1 && e->coef == 1 && e->a[0]->kind == OM_ATOM_ADD &&
        omi_add_i64(e->a[0]->p[0], c, &c))
        return omi_ext_add(t, &e->a[0]->src[0], c, out);
    return intern_atom(t, OM_ATOM_ADD, size, (int64_t[3]){c, 0, 0}, 1, e, out);
}

bool omi_ext_window(om_atoms *t, const om_extent *e, int64_t kernel, int64_t stride, int64_t begin,
                    int64_t end, int64_t dilation, bool ceil, int64_t size, om_extent *out) {
    if (omi_ext_is_static(e)) return *out = omi_ext_static(size), true;
    int64_t a = begin + end - dilation * (kernel - 1) - 1;
    if (stride == 1) return omi_ext_add(t, e, a + 1, out);
    int64_t p[3] = {a, stride, ceil ? begin : 0};
    return intern_atom(t, ceil ? OM_ATOM_CEIL : OM_ATOM_WINDOW, size, p, 1, e, out);
}

enum { SUM_TERMS = 64 };

bool omi_ext_sum(om_atoms *t, int n, const om_extent *const *parts, om_extent *out) {
    om_extent *terms =
        omi_arena_array(t->arena, n > SUM_TERMS ? SUM_TERMS : (uint32_t)n, sizeof *terms);
    if (!terms) return false;
    uint32_t k = 0;
    int64_t c = 0, size = 0;
    for (int i = 0; i < n; i++) {
        const om_extent *e = parts[i];
        size += e->size; /* the eager result has this size */
        if (omi_ext_is_static(e)) {
            c += e->size;
            continue;
        }
        uint32_t j = 0;
        while (j < k && !(terms[j].n == e->n && same_atoms(&terms[j], e)))
            j++;
        if (j < k) {
            terms[j].coef += e->coef;
            terms[j].size += e->size;
        } else if (k < SUM_TERMS)
            terms[k++] = *e;
        else
            return omi_fail_trace(
                       OM_TRACE_SYMBOLIC_SHAPE,
                       "one axis would be a sum of more than %d different symbolic sizes",
                       SUM_TERMS),
                   false;
    }
    if (k == 0) return *out = omi_ext_static(size), true;
    if (k == 1) return omi_ext_add(t, &terms[0], c, out);
    return intern_atom(t, OM_ATOM_SUM, size, (int64_t[3]){c, 0, 0}, k, terms, out);
}

bool omi_ext_either(om_atoms *t, const om_extent *a, const om_extent *b, om_extent *out) {
    om_extent src[2] = {*a, *b};
    return intern_atom(t, OM_ATOM_EQUAL, a->size, (int64_t[3]){0, 0, 0}, 2, src, out);
}

void omi_ext_sort(om_extent *e) {
    for (int i = 1; i < e->n; i++)
        for (int k = i; k > 0 && e->a[k - 1]->rank > e->a[k]->rank; k--) {
            om_atom *t  = e->a[k];
            e->a[k]     = e->a[k - 1];
            e->a[k - 1] = t;
        }
}
