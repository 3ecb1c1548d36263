/*
 * reshape.c -- which target of a Reshape takes which symbolic size (symbolic-axes 4, TD-15).
 *
 * Integers carry no origin, but the product of the output extents equals that of the input for all
 * sizes, so only the input's atoms can appear, each once. Both shapes are cut into the shortest
 * groups of equal product; inside a group every way to hand the atoms to the targets whose sizes
 * they divide is a reading. One reading: proven. Several: exact products first, then fewest divided
 * targets, then the order of the atoms, then the target the caller wrote as -1; a choice is a note
 * in the report, a tie is SymbolicShape.
 */
#include <stdio.h>
#include <string.h>

#include "trace/lower.h"

#define MAX_READINGS 4096
#define MAX_GROUP    (OM_MAX_ATOMS * OM_MAX_RANK)

/* One group: atoms in row-major order against targets. */
typedef struct om_group {
    int n_atoms, n_targets;
    om_atom *atoms[MAX_GROUP];
    const int64_t *target;
    int minus_one; /* index in this group, or -1 */
} om_group;

typedef struct om_reading {
    uint8_t to[MAX_GROUP]; /* target of each atom */
} om_reading;

typedef OM_VEC(om_reading) om_readings;

/* Readings that differ by swapping equal atoms are one: keep the form in which equal atoms go to
 * targets in ascending order. */
static bool is_normal(const om_group *g, const om_reading *r, int upto) {
    for (int i = 0; i < upto; i++)
        if (g->atoms[i] == g->atoms[upto] && r->to[i] > r->to[upto]) return false;
    return true;
}

/* False when raised. More than MAX_READINGS: sets *over and stops. */
static bool enumerate(const om_group *g, om_readings *out, bool *over) {
    om_reading r = {{0}};
    int64_t left[OM_MAX_RANK];
    int choice[MAX_GROUP], i = 0;
    int64_t steps = 0;
    for (int k = 0; k < g->n_targets; k++)
        left[k] = g->target[k];
    choice[0] = -1;
    while (i >= 0) { // depth first over the atoms, without recursion
        int64_t size = g->atoms[i]->example;
        if (choice[i] >= 0) left[choice[i]] *= size;
        int k = choice[i] + 1;
        while (k < g->n_targets &&
               (left[k] % size != 0 || (r.to[i] = (uint8_t)k, !is_normal(g, &r, i))))
            k++;
        if (k == g->n_targets) {
            i--;
            continue;
        }
        if (++steps > 64 * MAX_READINGS || out->n > MAX_READINGS) return *over = true, true;
        choice[i] = k;
        r.to[i]   = (uint8_t)k;
        left[k] /= size;
        if (i + 1 < g->n_atoms) {
            choice[++i] = -1;
            continue;
        }
        if (!OMI_PUSH(out, r)) return false;
    }
    return true;
}

/* Extents of the targets under a reading. */
static bool extents_of(const om_group *g, const om_reading *r, om_extent *out) {
    for (int k = 0; k < g->n_targets; k++) {
        om_extent e = omi_ext_static(1);
        for (int i = 0; i < g->n_atoms; i++) {
            om_extent a = omi_ext_atom(g->atoms[i]);
            if (r->to[i] == k && !omi_ext_mul(&e, &a, &e)) return false;
        }
        om_extent c = omi_ext_static(g->target[k] / e.size);
        if (!omi_ext_mul(&c, &e, &out[k])) return false;
    }
    return true;
}

/* Smaller is better, compared in order. */
static void rank_of(const om_group *g, const om_reading *r, int score[4]) {
    int64_t product[OM_MAX_RANK];
    bool has[OM_MAX_RANK] = {false};
    for (int k = 0; k < g->n_targets; k++)
        product[k] = 1;
    score[0] = score[1] = score[2] = score[3] = 0;
    for (int i = 0; i < g->n_atoms; i++) {
        product[r->to[i]] *= g->atoms[i]->example;
        has[r->to[i]] = true;
        for (int j = 0; j < i; j++)
            score[2] += r->to[j] > r->to[i];
        score[3] -= r->to[i] == g->minus_one;
    }
    for (int k = 0; k < g->n_targets; k++) {
        score[0] -= has[k] && product[k] == g->target[k];
        score[1] += has[k] && product[k] != g->target[k];
    }
}

static int compare(const int a[4], const int b[4]) {
    for (int i = 0; i < 4; i++)
        if (a[i] != b[i]) return a[i] < b[i] ? -1 : 1;
    return 0;
}

static void put_reading(char *s, size_t cap, const om_extent *e, int n) {
    size_t at = strlen(s);
    at += (size_t)snprintf(s + at, cap - at, "%s(", at ? " or " : "");
    for (int k = 0; k < n && at < cap; k++)
        at += (size_t)snprintf(s + at, cap - at, "%s%s", k ? "," : "", OMI_EXT(&e[k]));
    if (at < cap) snprintf(s + at, cap - at, ")");
}

/* "(6,N) or (3*N,2)", the readings but one (skip, -1: none). */
static void list_readings(const om_group *g, const om_readings *rs, int skip, char *s, size_t cap) {
    om_extent e[OM_MAX_RANK];
    s[0] = 0;
    for (size_t i = 0; i < rs->n && i < 5; i++)
        if ((int)i != skip && extents_of(g, &rs->v[i], e)) put_reading(s, cap, e, g->n_targets);
}

static void atoms_text(const om_group *g, char *s, size_t cap) {
    s[0] = 0;
    for (int i = 0; i < g->n_atoms; i++) {
        om_extent a = omi_ext_atom(g->atoms[i]);
        size_t at   = strlen(s);
        snprintf(s + at, cap - at, "%s%s", i ? "*" : "", OMI_EXT(&a));
    }
}

static bool refuse_split(om_lowering *lw, const om_group *g) {
    char atoms[96], target[96];
    atoms_text(g, atoms, sizeof atoms);
    omi_shape_text(target, sizeof target, g->n_targets, g->target);
    int64_t size = 1;
    for (int i = 0; i < g->n_atoms; i++)
        size *= g->atoms[i]->example;
    omi_fail_trace(
        OM_TRACE_SYMBOLIC_SHAPE,
        "the symbolic size %s (%lld in the example) of %s cannot be kept whole in %s: its "
        "factors would be fixed; keep it as an axis of its own, or trace with a size that "
        "these sizes do not split",
        atoms, (long long)size, OMI_LT(lw, 0), target);
    return false;
}

/* The best reading of a group, written to out; notes a choice. */
static bool read_group(om_lowering *lw, const om_group *g, om_readings *rs, om_extent *out) {
    bool over = false;
    if (!enumerate(g, rs, &over)) return false;
    if (over) {
        omi_fail_trace(OM_TRACE_SYMBOLIC_SHAPE,
                       "the reshape of %s has more than %d readings; reshape in smaller steps",
                       OMI_LT(lw, 0), MAX_READINGS);
        return false;
    }
    if (!rs->n) return refuse_split(lw, g);
    int best = 0, ties = 1, top[4], score[4];
    rank_of(g, &rs->v[0], top);
    for (size_t i = 1; i < rs->n; i++) {
        rank_of(g, &rs->v[i], score);
        int c = compare(score, top);
        if (c < 0) {
            best = (int)i;
            memcpy(top, score, sizeof top);
        }
        ties = c < 0 ? 1 : ties + (c == 0);
    }
    char others[256];
    if (ties > 1) {
        list_readings(g, rs, -1, others, sizeof others);
        omi_fail_trace(
            OM_TRACE_SYMBOLIC_SHAPE,
            "the reshape of %s can be read as %s: trace with sizes that divide no other size "
            "(primes from 11 up)",
            OMI_LT(lw, 0), others);
        return false;
    }
    if (!extents_of(g, &rs->v[best], out)) return false;
    if (rs->n > 1) {
        char chosen[128] = "";
        put_reading(chosen, sizeof chosen, out, g->n_targets);
        list_readings(g, rs, best, others, sizeof others);
        omi_tr_note(lw->tr, OM_NOTE_RESHAPE, &lw->site, "reshape read as %s, not as %s", chosen,
                    others);
    }
    return true;
}

/* One group's extents: x axes [i, i2), targets [j, j2). */
static bool solve(om_lowering *lw, const om_tvalue *x, int i, int i2, int j, int j2,
                  const int64_t *target, int minus_one, om_extent *out) {
    om_group g      = {.target = target + j, .n_targets = j2 - j, .minus_one = minus_one - j};
    om_extent whole = omi_ext_static(1);
    for (int k = i; k < i2; k++)
        for (int a = 0; a < x->e[k].n; a++)
            g.atoms[g.n_atoms++] = x->e[k].a[a];
    if (g.n_atoms == 0) {
        for (int k = j; k < j2; k++)
            out[k] = omi_ext_static(target[k]);
        return true;
    }
    if (g.n_targets == 1) { // the whole group: proven
        for (int k = i; k < i2; k++)
            if (!omi_ext_mul(&whole, &x->e[k], &whole)) return false;
        out[j] = whole;
        return true;
    }
    if (minus_one < j || minus_one >= j2) g.minus_one = -1;
    om_readings rs = {0};
    bool ok        = read_group(lw, &g, &rs, out + j);
    OMI_VEC_FREE(&rs);
    return ok;
}

/* Notes: another reading of the tensor as a whole, ignoring groups. */
static bool note_collisions(om_lowering *lw, const om_tvalue *x, const om_xshape *out,
                            const int64_t *target) {
    om_group g = {.target = target, .n_targets = out->rank, .minus_one = -1};
    for (int k = 0; k < x->rank; k++)
        for (int a = 0; a < x->e[k].n; a++)
            g.atoms[g.n_atoms++] = x->e[k].a[a];
    om_readings rs = {0};
    bool over = false, ok = enumerate(&g, &rs, &over);
    om_extent e[OM_MAX_RANK];
    char others[256] = "";
    for (size_t i = 0; ok && i < rs.n && i < 64; i++) {
        if (!(ok = extents_of(&g, &rs.v[i], e))) break;
        bool same = true;
        for (int k = 0; k < out->rank; k++)
            same &= omi_ext_equal(&e[k], &out->e[k]);
        if (!same && strlen(others) < 160) put_reading(others, sizeof others, e, out->rank);
    }
    OMI_VEC_FREE(&rs);
    if (ok && others[0]) {
        char chosen[160] = "";
        put_reading(chosen, sizeof chosen, out->e, out->rank);
        omi_tr_note(lw->tr, OM_NOTE_RESHAPE, &lw->site,
                    "reshape read as %s; the sizes alone would also allow %s", chosen, others);
    }
    return ok;
}

/* A fixed factor of the output that equals the size of a symbol this tensor does not have: perhaps
 * y.reshape(x.shape). */
static void note_lookalikes(om_lowering *lw, const om_tvalue *x, const om_xshape *out) {
    for (int k = 0; k < out->rank; k++) {
        if (!omi_ext_is_static(&out->e[k])) continue;
        const om_atom *sym = omi_map_get(&lw->tr->symbol_sizes, (uint64_t)out->e[k].size);
        bool has           = false;
        for (int i = 0; sym && i < x->rank; i++)
            has |= omi_ext_has(&x->e[i], sym);
        if (sym && !has)
            omi_tr_note(lw->tr, OM_NOTE_LOOKALIKE, &lw->site,
                        "the fixed size %lld of axis %d equals the example size of '%s'",
                        (long long)sym->example, k, sym->name);
    }
}

static bool check_examples(om_lowering *lw, const om_tvalue *x) {
    for (int i = 0; i < x->rank; i++) {
        if (x->e[i].size == 0) {
            omi_fail_trace(
                OM_TRACE_SYMBOLIC_SHAPE,
                "%s has no elements, so a reshape of its symbolic sizes cannot be read; trace "
                "with a non-empty example",
                OMI_LT(lw, 0));
            return false;
        }
        for (int a = 0; a < x->e[i].n; a++)
            if (x->e[i].a[a]->example < 2) {
                omi_fail_trace(OM_TRACE_SYMBOLIC_SHAPE,
                               "axis %d of %s is symbolic '%s' and has size 1 in the example, so a "
                               "reshape cannot be read; trace with a larger example",
                               i, OMI_LT(lw, 0), OMI_EXT(&x->e[i]));
                return false;
            }
    }
    return true;
}

/* Size by size the same in the example, axes of size 1 aside: that each axis is itself is only one
 * reading, and it has to be the best of all of the whole tensor (TD-20). */
static bool looks_the_same(const om_tvalue *x, int rank, const int64_t *target) {
    int i = 0, j = 0;
    for (;;) {
        while (i < x->rank && x->e[i].size == 1)
            i++;
        while (j < rank && target[j] == 1)
            j++;
        if (i == x->rank || j == rank) return i == x->rank && j == rank;
        if (x->e[i++].size != target[j++]) return false;
    }
}

bool omi_lw_reshape_extents(om_lowering *lw, const om_tvalue *x, int rank, const int64_t *target,
                            int minus_one, om_xshape *out) {
    if (omi_failed()) return false;
    *out = omi_lw_static(rank, target);
    if (omi_lw_is_static(x)) return true;
    if (!check_examples(lw, x)) return false;
    if (looks_the_same(x, rank, target))
        return solve(lw, x, 0, x->rank, 0, rank, target, minus_one, out->e);
    for (int i = 0, j = 0; i < x->rank || j < rank;) {
        if (i < x->rank && omi_ext_is_static(&x->e[i]) && x->e[i].size == 1) {
            i++;
            continue;
        }
        if (j < rank && target[j] == 1) {
            out->e[j++] = omi_ext_static(1);
            continue;
        }
        int i2 = i + 1, j2 = j + 1;
        int64_t ps = x->e[i].size, pt = target[j];
        while (ps != pt) {
            if (ps < pt)
                ps *= x->e[i2++].size;
            else
                pt *= target[j2++];
        }
        if (!solve(lw, x, i, i2, j, j2, target, minus_one, out->e)) return false;
        i = i2;
        j = j2;
    }
    if (!note_collisions(lw, x, out, target)) return false;
    note_lookalikes(lw, x, out);
    return true;
}

om_tvalue *omi_lw_reshape(om_lowering *lw, om_tvalue *x, om_dtype dtype, const om_xshape *out) {
    int64_t allowzero = 0;
    om_tnode *n       = omi_lw_node(lw, "Reshape", OMI_INS(x), 1);
    if (!omi_operand_reshape(lw, n, out, &allowzero)) return NULL;
    omi_lw_int(lw, n, "allowzero", allowzero);
    return omi_lw_out(lw, n, 0, dtype, out);
}
