/*
 * sample_subset.c -- every sample with each subset of its inputs marked, and om_grad by each input.
 *
 * Marking fewer inputs changes neither outputs nor the gradients of those that are left, to the
 * bit; what is not marked gets no gradient, and asking for one is refused. om_grad gives the
 * gradients of backward and touches no leaf. With more than three float inputs the subsets are
 * those of the first three, and each of the others alone.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

#include "sample.h"

typedef struct marked {
    om_tensor *in[SAMPLE_IN], *out[SAMPLE_OUT], *grad[SAMPLE_IN], *root, *cotangent;
    int n_out;
} marked;

static int n_subsets, n_refused_grads;

static bool markable(const sample *s, int k, const ref *v) {
    return v[k].v && !s->in[k].no_grad && (v[k].dtype == OM_F32 || v[k].dtype == OM_F64);
}

static void works(const sample_op *op, const sample *s, bool ok, unsigned set, const char *what) {
    om_error e;
    if (ok && om_pending() == OM_OK) return;
    om_catch(&e);
    SAMPLE_FAIL(op, s, "inputs marked %x: %s: %s: %s", set, what, e.where, e.message);
}

/* One root for all outputs that have a record: the output itself with a cotangent, or a sum. */
static bool make_root(marked *m) {
    m->root = m->cotangent = NULL;
    for (int k = 0; k < m->n_out; k++) {
        om_tensor *y = m->out[k];
        if (!y->record) continue;
        om_tensor *g = sample_cotangent(y, k);
        if (!g) return false;
        if (m->n_out == 1) {
            m->root      = y;
            m->cotangent = g;
            return true;
        }
        om_tensor *part = om_sum_all(om_mul(y, g));
        m->root         = m->root ? om_add(m->root, part) : part;
        if (!m->root) return false;
    }
    return true;
}

static bool run_marked(const sample_op *op, const sample *s, const ref *v, unsigned set,
                       marked *m) {
    memset(m, 0, sizeof *m);
    if (!sample_inputs(op, s, v, VIEW_AS_ROW, false, m->in)) return false;
    for (int k = 0; k < op->n_in; k++)
        if (set >> k & 1 && om_set_requires_grad(m->in[k], true) != OM_OK) return false;
    m->n_out = op->call(s, m->in, m->out);
    return m->n_out > 0 && m->out[0] && make_root(m);
}

/* The gradient of root by input k alone, then by all that are marked: no leaf has any afterwards.
 */
static void check_om_grad(const sample_op *op, const sample *s, marked *m, unsigned set,
                          om_tensor *const *want) {
    for (int k = 0; k < op->n_in; k++) {
        if (!m->in[k]) continue;
        om_tensor *g   = NULL;
        om_status st   = om_grad(m->root, 1, &m->in[k], &g,
                                 &(om_backward_opts){.grad = m->cotangent, .retain_graph = true});
        bool is_marked = set >> k & 1;
        om_error e;
        if (!is_marked) {
            if (st != OM_ERR_STATE || g)
                SAMPLE_FAIL(op, s, "inputs marked %x: om_grad by input %d was not refused", set, k);
            om_catch(&e);
            n_refused_grads++;
            continue;
        }
        works(op, s, st == OM_OK, set, "om_grad");
        if (!sample_same_bits(g, want[k]))
            SAMPLE_FAIL(op, s, "inputs marked %x: om_grad by input %d has other bits", set, k);
        if (om_grad_of(m->in[k]))
            SAMPLE_FAIL(op, s, "inputs marked %x: om_grad left a gradient at input %d", set, k);
    }
}

static void check_subset(const sample_op *op, const sample *s, const ref *v, unsigned set,
                         const marked *all) {
    marked m;
    om_scope scope = om_scope_begin();
    works(op, s, run_marked(op, s, v, set, &m), set, "call");
    for (int k = 0; k < m.n_out; k++)
        if (!sample_same_bits(m.out[k], all->out[k]))
            SAMPLE_FAIL(op, s, "inputs marked %x: output %d has other bits", set, k);
    if (m.root) {
        check_om_grad(op, s, &m, set, all->grad);
        works(op, s, om_backward_with(m.root, &(om_backward_opts){.grad = m.cotangent}) == OM_OK,
              set, "backward");
    }
    for (int k = 0; k < op->n_in; k++) {
        om_tensor *g = m.in[k] ? om_grad_of(m.in[k]) : NULL;
        if (!sample_same_bits(g, set >> k & 1 ? all->grad[k] : NULL))
            SAMPLE_FAIL(op, s, "inputs marked %x: the gradient of input %d has other bits", set, k);
    }
    om_scope_end(scope);
    n_subsets++;
}

static void subsets_of_row(const sample_op *op, const sample *s) {
    ref v[SAMPLE_IN] = {{0}};
    marked all;
    unsigned every = 0, first = 0;
    int64_t live   = om_live_tensors();
    om_scope scope = om_scope_begin();
    for (int k = 0; k < op->n_in; k++) {
        sample_values(op, s, k, &v[k]);
        if (!markable(s, k, v)) continue;
        every |= 1u << k;
        if (__builtin_popcount(first) < 3) first |= 1u << k;
    }
    works(op, s, run_marked(op, s, v, every, &all), every, "call");
    if (all.root)
        works(op, s,
              om_backward_with(all.root, &(om_backward_opts){.grad = all.cotangent}) == OM_OK,
              every, "backward");
    for (int k = 0; k < op->n_in; k++)
        all.grad[k] = all.in[k] ? om_grad_of(all.in[k]) : NULL;
    for (unsigned set = 0; set <= every; set++)
        if ((set & ~first) == 0 || ((set & every) == set && __builtin_popcount(set) == 1))
            check_subset(op, s, v, set, &all);
    om_scope_end(scope);
    for (int k = 0; k < SAMPLE_IN; k++)
        ref_free(&v[k]);
    if (om_live_tensors() != live) SAMPLE_FAIL(op, s, "tensors stayed alive");
}

void sample_check_subsets(const sample_op *op) {
    for (int i = 0; i < op->n_samples; i++)
        if (op->samples[i].fails == OM_OK) subsets_of_row(op, &op->samples[i]);
}

/* The floor: a table that shrinks, or marks that are no longer set, show here. */
void sample_subsets_census(void) {
    print_message("%d subsets of marked inputs, %d gradients refused\n", n_subsets,
                  n_refused_grads);
    assert_true(n_subsets >= 2900 && n_refused_grads >= 1300);
}
