/*
 * sample_axes.c -- every axis of every sample as a symbolic axis: traced at sizes that differ from
 * all others, run at two other size sets (one of them 1), against eager, bit for bit.
 *
 * Which axes change together is found by asking eager: an axis alone, else all axes of one size.
 * What eager takes at two other sizes is an axis of the operator, and it has to trace, or to be
 * refused as the table below says, by kind. Then all axes of a row at once. Sizes that eager
 * refuses (a kernel larger than the image) are skipped; so are axes that no other size suits, and
 * both are counted: the number of pairs that were really compared has a floor.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "onemodel/session.h"
#include "onemodel/trace.h"
#include "sample.h"
#include "trace/lower.h"

enum { BITS = 8 * SAMPLE_IN, MAX_SETS = 16 };

typedef uint64_t axes; /* bit 8*k + i: axis i of input k */

static int n_compared, n_refused, n_fixed, n_bad;

#define COMPLAIN(op, s, ...)                                                                       \
    do {                                                                                           \
        print_error("%s/%s: ", (op)->name, (s)->name);                                             \
        print_error(__VA_ARGS__);                                                                  \
        print_error("\n");                                                                         \
        n_bad++;                                                                                   \
    } while (0)

#define AXIS(k, i) ((axes)1 << (8 * (k) + (i)))

/* What must be refused, operator by operator: why an axis of it cannot be symbolic in one trace. */
static bool is_plain_slice(const sample *s) {
    return s->i[3] == 1 ? s->i[1] == 0 && s->i[2] == OM_END
                        : s->i[3] == -1 && s->i[1] == -1 && s->i[2] == OM_END;
}
static int axis_of(const sample *s) {
    return (int)(s->i[0] < 0 ? s->i[0] + s->in[0].rank : s->i[0]);
}
static om_trace_kind wanted_refusal(const sample_op *op, const sample *s, axes a) {
    const om_trace_kind shape = OM_TRACE_SYMBOLIC_SHAPE, usage = OM_TRACE_INVALID_USAGE;
    axes read = 0;
    switch (op->id) {
    case OM_OP_SLICE: // only the whole axis means the same at every size (TD-20)
        return a & AXIS(0, axis_of(s)) && !is_plain_slice(s) ? shape : OM_TRACE_NONE;
    case OM_OP_SQUEEZE: // the axes are not named (TD-22)
        return s->i[0] == 0 ? shape : OM_TRACE_NONE;
    case OM_OP_CONV2D: // channels and kernel are the weight's
        return a & (AXIS(0, 1) | AXIS(1, 2) | AXIS(1, 3)) ? shape : OM_TRACE_NONE;
    case OM_OP_ADAPTIVE_AVG_POOL2D: // cells of a fixed number have no fixed size
        return a & (AXIS(0, 2) | AXIS(0, 3)) && !(s->i[0] == 1 && s->i[1] == 1) ? shape
                                                                                : OM_TRACE_NONE;
    case OM_OP_LAYER_NORM: // without a weight the node needs ones of this size
        for (int i = 0; s->in[1].rank < 0 && i < s->i[0]; i++)
            read |= AXIS(0, s->in[0].rank - 1 - i);
        return a & read ? shape : OM_TRACE_NONE;
    case OM_OP_BATCH_NORM2D: // nor without scale and shift
        return a & AXIS(0, 1) && (s->in[1].rank < 0 || s->in[2].rank < 0) ? shape : OM_TRACE_NONE;
    case OM_OP_RESHAPE: // an example without elements says nothing of its sizes
        for (int i = 0; i < s->in[0].rank && strcmp(op->name, "flatten"); i++)
            if (s->in[0].shape[i] == 0) return shape;
        return OM_TRACE_NONE;
    case OM_OP_ARANGE_LIKE: // of other axes nothing is read: a constant, which is no output
        return a & AXIS(0, axis_of(s)) ? OM_TRACE_NONE : usage;
    case OM_OP_CAUSAL_MASK:
        return a & (AXIS(0, s->in[0].rank - 2) | AXIS(1, s->in[1].rank - 2)) ? OM_TRACE_NONE
                                                                             : usage;
    default:
        return OM_TRACE_NONE;
    }
}

/* s with the axes of set j having the size sizes[j]. */
static sample resized(const sample *s, int n, const axes *sets, const int64_t *sizes) {
    sample r = *s;
    for (int j = 0; j < n; j++)
        for (int b = 0; b < BITS; b++)
            if (sets[j] >> b & 1) r.in[b / 8].shape[b % 8] = sizes[j];
    return r;
}

static bool make_inputs(const sample_op *op, const sample *s, om_tensor **in) {
    ref v[SAMPLE_IN];
    for (int k = 0; k < op->n_in; k++)
        sample_values(op, s, k, &v[k]);
    bool ok = sample_inputs(op, s, v, VIEW_AS_ROW, false, in);
    for (int k = 0; k < op->n_in; k++)
        ref_free(&v[k]);
    return ok;
}

/* Eager on s: the outputs, or 0 with nothing pending. */
static int eager(const sample_op *op, const sample *s, om_tensor **in, om_tensor **out) {
    om_error e;
    for (int k = 0; k < SAMPLE_OUT; k++)
        out[k] = NULL;
    int n = make_inputs(op, s, in) ? op->call(s, in, out) : 0;
    if (om_catch(&e) != OM_OK || !out[0]) return 0;
    return n;
}

static bool works(const sample_op *op, const sample *s, int n, const axes *sets, int64_t first) {
    om_tensor *in[SAMPLE_IN] = {NULL}, *out[SAMPLE_OUT];
    int64_t sizes[MAX_SETS];
    for (int j = 0; j < n; j++)
        sizes[j] = first + 2 * j;
    om_scope scope = om_scope_begin();
    sample r       = resized(s, n, sets, sizes);
    bool ok        = eager(op, &r, in, out) > 0;
    om_scope_end(scope);
    return ok;
}

/* Sizes that no sample has: 11, 13, 17, ... */
static const int64_t primes[MAX_SETS] = {11, 13, 17, 19, 23, 29, 31, 37,
                                         41, 43, 47, 53, 59, 61, 67, 71};

/* The graph of s with those symbols, or NULL with the error in *e. */
static om_graph *trace_of(const sample_op *op, const sample *s, int n, const axes *sets, int *n_out,
                          om_error *e) {
    om_tensor *in[SAMPLE_IN] = {NULL}, *ti[SAMPLE_IN] = {NULL}, *to[SAMPLE_OUT] = {NULL};
    static const char *const names[MAX_SETS] = {"a", "b", "c", "d", "e", "f", "g", "h",
                                                "i", "j", "k", "l", "m", "n", "o", "p"};
    make_inputs(op, s, in);
    om_tracer *tr = om_trace_begin(NULL);
    for (int k = 0; k < op->n_in; k++) {
        const char *ax[OM_MAX_RANK] = {NULL};
        char name[16];
        if (!in[k]) continue;
        for (int j = 0; j < n; j++)
            for (int i = 0; i < OM_MAX_RANK; i++)
                if (sets[j] >> (8 * k + i) & 1) ax[i] = names[j];
        snprintf(name, sizeof name, "x%d", k);
        ti[k] = om_trace_input(tr, name, in[k], om_rank(in[k]), ax);
    }
    *n_out = op->call(s, ti, to);
    for (int k = 0; k < *n_out && !om_pending(); k++) {
        char name[16];
        snprintf(name, sizeof name, "y%d", k);
        om_trace_output(tr, name, to[k]);
    }
    om_graph *g = om_trace_finish(tr);
    om_catch(e);
    return g;
}

static bool compare_at(const sample_op *op, const sample *s, om_session *session, int n_out,
                       const char *what) {
    om_tensor *in[SAMPLE_IN] = {NULL}, *out[SAMPLE_OUT], *got[SAMPLE_OUT] = {NULL};
    om_binding b[SAMPLE_IN];
    om_error e;
    if (eager(op, s, in, out) != n_out) return false; // not a size for this operator
    int n = om_session_n_inputs(session);
    for (int i = 0; i < n; i++) {
        om_value_info v;
        om_session_input(session, i, &v);
        b[i] = (om_binding){v.name, in[v.name[1] - '0']};
    }
    om_session_run(session, n, b, n_out, got);
    if (om_catch(&e) != OM_OK)
        COMPLAIN(op, s, "%s: eager runs, the session does not: %s", what, e.message);
    for (int k = 0; k < n_out; k++) {
        if (om_bit_equal(out[k], got[k])) continue;
        om_catch(&e);
        COMPLAIN(op, s, "%s: output %d is %s, eager gave %s, or other bits", what, k, OMI_T(got[k]),
                 OMI_T(out[k]));
    }
    return true;
}

/* Whether a graph came, or did not, as it should. */
static bool as_wanted(const sample_op *op, const sample *s, axes a, const om_graph *g,
                      const om_error *e) {
    om_trace_kind wants = wanted_refusal(op, s, a);
    if (g && wants != OM_TRACE_NONE)
        COMPLAIN(op, s, "axes %llx: not refused", (unsigned long long)a);
    else if (!g && (e->status != OM_ERR_TRACE || wants != e->trace_kind))
        COMPLAIN(op, s, "axes %llx: refused %s: %s", (unsigned long long)a,
                 om_trace_kind_name(e->trace_kind), e->message);
    else
        return true;
    return false;
}

static void check_sets(const sample_op *op, const sample *s, int n, const axes *sets) {
    om_error e;
    axes all = 0;
    int n_out, n_ran = 0;
    int64_t others[2][MAX_SETS];
    for (int j = 0; j < n; j++) {
        all |= sets[j];
        others[0][j] = 1;
        others[1][j] = primes[n - 1 - j] + 1 + j; // in another order
    }
    om_scope scope = om_scope_begin();
    sample at      = resized(s, n, sets, primes);
    om_graph *g    = trace_of(op, &at, n, sets, &n_out, &e);
    if (as_wanted(op, s, all, g, &e) && !g) n_refused++;
    om_session *session = g ? om_session_new(g, NULL) : NULL;
    if (session) compare_at(op, &at, session, n_out, "as traced");
    for (int k = 0; session && k < 2; k++) {
        sample r = resized(s, n, sets, others[k]);
        n_ran += compare_at(op, &r, session, n_out, k ? "other sizes" : "size 1");
    }
    n_compared += n_ran > 0;
    om_session_free(session);
    om_graph_release(g);
    om_scope_end(scope);
}

/* All axes of the row that have the size of bit b. */
static axes same_size(const sample_op *op, const sample *s, int b) {
    axes a       = 0;
    int64_t size = s->in[b / 8].shape[b % 8];
    for (int k = 0; k < op->n_in; k++)
        for (int i = 0; i < s->in[k].rank; i++)
            if (s->in[k].shape[i] == size && !s->in[k].values) a |= (axes)1 << (8 * k + i);
    return a;
}

static bool varies(const sample_op *op, const sample *s, axes a) {
    return works(op, s, 1, &a, 11) && works(op, s, 1, &a, 12) && works(op, s, 1, &a, 17);
}

static bool no_graph(const sample_op *op, const sample *s) {
    if (op->id == OM_OP_BATCH_NORM2D) return s->i[0] != 0;
    return op->id == OM_OP_CUSTOM || omi_lower_rule(op->id)->refusal;
}

static void check_row(const sample_op *op, const sample *s) {
    axes sets[MAX_SETS], apart[MAX_SETS], seen = 0;
    int n = 0, n_apart = 0;
    if (no_graph(op, s)) return;
    for (int b = 0; b < 8 * op->n_in && n < MAX_SETS; b++) {
        const sample_in *d = &s->in[b / 8];
        if (b % 8 >= d->rank || d->shape[b % 8] < 2 || d->values || d->null || d->blocked) continue;
        axes alone = (axes)1 << b, all = same_size(op, s, b);
        axes a   = varies(op, s, alone) ? alone : all != alone && varies(op, s, all) ? all : 0;
        bool had = false;
        for (int j = 0; j < n; j++)
            had |= sets[j] == a;
        if (!a)
            n_fixed++;
        else if (!had)
            sets[n++] = a;
    }
    for (int j = 0; j < n; j++)
        check_sets(op, s, 1, &sets[j]);
    for (int j = 0; j < n; j++)
        if (!(seen & sets[j]) && wanted_refusal(op, s, sets[j]) == OM_TRACE_NONE) {
            apart[n_apart++] = sets[j];
            seen |= sets[j];
        }
    if (n_apart > 1 && works(op, s, n_apart, apart, 11)) check_sets(op, s, n_apart, apart);
}

void sample_check_axes(const sample_op *op) {
    n_bad = 0;
    for (int i = 0; i < op->n_samples; i++)
        if (op->samples[i].fails == OM_OK) check_row(op, &op->samples[i]);
    om_scope_drain();
    assert_int_equal(n_bad, 0);
}

void sample_axes_census(void) {
    print_message(
        "%d (sample, axes) pairs compared at other sizes, %d refused as they must be, %d axes have one size\n",
        n_compared, n_refused, n_fixed);
    assert_true(n_compared >= 2000); // a floor: rows are added, not lost;
}
