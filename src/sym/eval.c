/*
 * eval.c -- extents at other sizes of the symbols. Sources lie before what is made of them, so one
 * pass in the order of the list is enough, however deep definitions are.
 */
#include "base/checked.h"
#include "sym/sym.h"

bool omi_ext_eval(const om_extent *e, const int64_t *values, int64_t *out) {
    int64_t v = e->coef;
    for (int i = 0; i < e->n; i++)
        if (!omi_mul_i64(v, values[e->a[i]->index], &v)) return false;
    *out = v;
    return true;
}

/* floor or ceil of (n + a) / s, plus 1; a ceil window may not begin behind n + begin. */
static bool eval_window(const om_atom *a, int64_t n, int64_t *out) {
    int64_t room, stride = a->p[1], count;
    if (stride < 1 || !omi_add_i64(n, a->p[0], &room)) return false;
    if (a->kind == OM_ATOM_CEIL && !omi_add_i64(room, stride - 1, &room)) return false;
    if (room < 0) return false; // the kernel does not fit
    count = room / stride + 1;
    if (a->kind == OM_ATOM_CEIL && (count - 1) * stride >= n + a->p[2]) count--;
    *out = count;
    return true;
}

static bool eval_atom(const om_atom *a, const int64_t *values, int64_t *out) {
    int64_t sum = a->p[0], v = 0;
    switch (a->kind) {
    case OM_ATOM_SYMBOL:
        return true;
    case OM_ATOM_ADD:
    case OM_ATOM_SUM:
        for (uint32_t i = 0; i < a->n_src; i++)
            if (!omi_ext_eval(&a->src[i], values, &v) || !omi_add_i64(sum, v, &sum)) return false;
        *out = sum;
        return sum >= 0;
    case OM_ATOM_EQUAL:
        if (!omi_ext_eval(&a->src[0], values, out) || !omi_ext_eval(&a->src[1], values, &v))
            return false;
        return *out == v;
    default:
        return omi_ext_eval(&a->src[0], values, &v) && eval_window(a, v, out);
    }
}

bool omi_atoms_eval(const om_atoms *t, int64_t *values) {
    for (size_t i = 0; i < t->list.n; i++)
        if (!eval_atom(t->list.v[i], values, &values[i])) return false;
    return true;
}
