/*
 * bind.c -- do the sizes a caller brings fit what the graph declares? (CD-28)
 *
 * Symbols are bound at their first use; a second axis of the same name must agree, and the message
 * names both. Derived extents such as "4*batch" carry a name like any other.
 */
#include <string.h>

#include "base/utf8.h"
#include "runtime/plan.h"

#define SAFE(buf, s) omi_escape_buf(buf, sizeof buf, s, strlen(s))

typedef struct bound {
    int64_t size;
    uint32_t input;
    int32_t axis; /* -1: not bound */
} bound;

static om_status check_symbol(const om_graph *g, uint32_t input, int axis, int64_t n, bound *b) {
    const om_gvalue *v = &g->values[g->inputs[input]];
    int32_t s          = v->dims[axis].sym;
    const om_symbol *y = &g->symbols[s];
    char t1[64], t2[64], t3[48];
    if (b[s].axis >= 0 && b[s].size != n) {
        const om_gvalue *w = &g->values[g->inputs[b[s].input]];
        return omi_fail(
            OM_ERR_SHAPE,
            "axis %d of input '%s' is %lld and axis %d of input '%s' is %lld; both are '%s' "
            "and must be equal",
            axis, SAFE(t1, v->name), (long long)n, b[s].axis, SAFE(t2, w->name),
            (long long)b[s].size, SAFE(t3, y->name));
    }
    b[s] = (bound){n, input, axis};
    if ((n < y->lo && y->lo > 1) || (y->hi > 0 && n > y->hi) ||
        (y->multiple > 1 && n % y->multiple))
        return omi_fail(
            OM_ERR_SHAPE,
            "axis %d of input '%s' is %lld; '%s' must be from %lld to %lld (0: no bound) and "
            "a multiple of %lld",
            axis, SAFE(t1, v->name), (long long)n, SAFE(t3, y->name), (long long)y->lo,
            (long long)y->hi, (long long)y->multiple);
    return OM_OK;
}

static om_status check_input(const om_graph *g, uint32_t i, const om_feed *f, bound *b) {
    const om_gvalue *v = &g->values[g->inputs[i]];
    char t[64];
    int64_t n;
    if (v->rank >= 0 && v->rank != f->rank)
        return omi_fail(OM_ERR_SHAPE, "input '%s' has rank %d; the graph declares rank %d",
                        SAFE(t, v->name), f->rank, v->rank);
    if (!omi_numel_of(v->dtype, f->rank, f->shape, &n))
        return omi_fail(OM_ERR_SHAPE, "the sizes of input '%s' are negative, or larger than 1 TiB",
                        SAFE(t, v->name));
    for (int k = 0; v->rank >= 0 && k < f->rank; k++) {
        const om_gdim *d = &v->dims[k];
        if (d->value >= 0 && d->value != f->shape[k])
            return omi_fail(OM_ERR_SHAPE, "axis %d of input '%s' is %lld; the graph declares %lld",
                            k, SAFE(t, v->name), (long long)f->shape[k], (long long)d->value);
        if (d->value < 0 && d->sym >= 0) OM_TRY(check_symbol(g, i, k, f->shape[k], b));
    }
    return OM_OK;
}

om_status omi_bind_inputs(const om_graph *g, const om_feed *feeds) {
    size_t bytes = (g->n_symbols + 1u) * sizeof(bound);
    bound *b     = omi_alloc(bytes);
    if (!b) return OM_ERR_NOMEM;
    for (uint32_t i = 0; i < g->n_symbols; i++)
        b[i].axis = -1;
    om_status s = OM_OK;
    for (uint32_t i = 0; s == OM_OK && i < g->n_inputs; i++)
        s = check_input(g, i, &feeds[i], b);
    omi_free(b, bytes);
    return s;
}
