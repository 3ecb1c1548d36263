/*
 * sample.h -- operator samples: inputs and options written once, every check generated from them.
 *
 * A family file (tests/ops/<family>.c) lists its operators; each names the eager call, the same
 * function in double precision, and rows of samples. For every row the driver checks: values
 * against the double reference; gradients against its central differences; strided inputs give the
 * bits of contiguous ones; every kernel column gives the same bits; every allocation may fail, and
 * the call works afterwards; with an error pending nothing happens; nothing stays alive. Rows with
 * `fails` must fail with that status. sample_trace.c adds trace -> session. A row is data: adding
 * one adds all of this.
 *
 * To add a family: a line in families.def, a file with `const sample_op sample_<family>[]` that
 * ends with a row without a name, and the file in CMakeLists.txt.
 */
#ifndef OM_TESTS_OPS_SAMPLE_H
#define OM_TESTS_OPS_SAMPLE_H

#include "ops/op.h"

enum { SAMPLE_IN = 6, SAMPLE_OUT = 8, SAMPLE_INTS = 24 };

/* A dense row-major tensor of the double reference. Integers and bools are held as doubles. */
typedef struct ref {
    om_dtype dtype;
    int rank;
    int64_t shape[OM_MAX_RANK], n;
    double *v; /* NULL: absent */
} ref;

typedef enum sample_view {
    VIEW_PLAIN,
    VIEW_TRANSPOSED, /* last two axes lie swapped in memory; stride 2 at rank 1 */
    VIEW_SLICED,     /* every second element from offset 1, poison between       */
    VIEW_BROADCAST,  /* stride 0 on the first axis                               */
    VIEW_AS_ROW      /* for sample_inputs: each input as its row says            */
} sample_view;

typedef enum sample_fill {
    FILL_ANY,      /* float: in [-2, 2]; integer: -3 .. 3; bool: either  */
    FILL_POSITIVE, /* 0.25 .. 3; integer 1 .. 5                          */
    FILL_DISTINCT, /* no two closer than 0.1: no ties                    */
    FILL_TIES,     /* few different values                               */
    FILL_INDEX,    /* integers in [lo, hi)                               */
    FILL_SPECIAL,  /* NaN, infinities, zeros, subnormals, huge           */
    FILL_NONZERO,  /* away from zero by 0.3                              */
    FILL_LOGP      /* negative, -4 .. -0.1                               */
} sample_fill;

typedef struct sample_in {
    int rank; /* -1: the optional input is absent */
    int64_t shape[OM_MAX_RANK];
    sample_fill fill;
    sample_view view;
    om_dtype dtype; /* OM_DTYPE_NONE: float32            */
    double lo, hi;
    const double *values; /* instead of fill                   */
    bool no_grad;
    bool dense;   /* contiguous in every check */
    bool null;    /* NULL where a tensor is needed     */
    bool blocked; /* in the layout NCHW16c             */
} sample_in;

typedef struct sample {
    const char *name;
    sample_in in[SAMPLE_IN];
    int64_t i[SAMPLE_INTS]; /* options; the meaning is the operator's */
    double f[4];
    bool no_grad;         /* gradients are not compared (kinks, NaN)       */
    om_status fails;      /* the call must fail so                         */
    const char *says;     /* the message contains this                     */
    double tol, grad_tol; /* 0: 2e-6 and 2e-5 (1e-12 and 1e-7 for float64) */
} sample;

typedef struct sample_op {
    const char *name; /* "relu"; the message of a failure names om_<name> */
    om_op id;
    int n_in;
    /* Calls the operator; returns the number of outputs, out[0] NULL on failure. */
    int (*call)(const sample *s, om_tensor *const *in, om_tensor **out);
    /* The same function in double: sets every out by ref_set and fills it. */
    void (*reference)(const sample *s, const ref *in, ref *out);
    const sample *samples;
    int n_samples;
    bool composite; /* no record of its own: the id is one of those it calls */
} sample_op;

/* Shape and type of an output, elements zeroed. */
void ref_set(ref *r, om_dtype t, int rank, const int64_t *shape);
void ref_like(ref *r, const ref *x);
void ref_free(ref *r);
/* Flat index of multi-index at[] broadcast down to r (numpy rules). */
int64_t ref_at(const ref *r, int rank, const int64_t *at);
/* Steps a multi-index through shape in row-major order; false past the end. */
bool ref_next(int rank, const int64_t *shape, int64_t *at);
/* The broadcast shape of two references. */
int ref_broadcast(const ref *a, const ref *b, int64_t *shape);
/* Product of shape[from .. to-1]. */
int64_t ref_span(const ref *r, int from, int to);

/* Elements of input k of a sample, and the tensor that holds them in the given way. @scoped */
void sample_values(const sample_op *op, const sample *s, int k, ref *out);
om_tensor *sample_tensor(const ref *values, sample_view view);
/* All inputs of a sample; those that may have gradients are marked when grads. False: raised. */
bool sample_inputs(const sample_op *op, const sample *s, const ref *values, sample_view view,
                   bool grads, om_tensor **in);
/* The element of t at flat row-major index i, as double. */
double sample_element(const om_tensor *t, int64_t i);
/* The same bits, every NaN counted as the same; NULL only equals NULL. */
bool sample_same_bits(const om_tensor *a, const om_tensor *b);
/* A fixed pseudo-random gradient of the shape and type of t. @scoped */
om_tensor *sample_cotangent(const om_tensor *t, int which);

/* All checks of one operator; cmocka assertions. */
void sample_check_unit(const sample_op *op);
/* The bit checks: views, kernel columns, trace -> session. */
void sample_check_exact(const sample_op *op);
/* sample_axes.c: every axis of every row, symbolic; then how many there were, against the floor. */
void sample_check_axes(const sample_op *op);
void sample_axes_census(void);
/* sample_subset.c: each subset of the inputs marked, om_grad by each; then the census. */
void sample_check_subsets(const sample_op *op);
void sample_subsets_census(void);
/* sample_trace.c: one row through trace, session, save and load. */
void sample_trace_check(const sample_op *op, const sample *s);

/* sample_dump.c: the rows of one operator as JSON lines on stdout. False: one failed. */
bool sample_dump(const sample_op *op);

/* The failing allocator: the n-th allocation from now fails (0: none does). Returns how many were
 * asked for since the last call. */
void sample_alloc_install(void);
int64_t sample_alloc_fail(int64_t n);

/* Prints to the log of the test which row is at work. */
#define SAMPLE_FAIL(op, s, ...)                                                                    \
    do {                                                                                           \
        print_error("%s/%s: ", (op)->name, (s)->name);                                             \
        print_error(__VA_ARGS__);                                                                  \
        print_error("\n");                                                                         \
        fail();                                                                                    \
    } while (0)

#endif
