/*
 * zoo.h -- small models that between them use every operator a trace can record, each with symbolic
 * axes and three size sets. test_zoo.c traces them (equal bytes, eager equals Exact, census);
 * trace_dump writes them for ONNX Runtime (tools/trace_oracle.py).
 *
 * A model reads its sizes from the shapes it gets, as user code does; constants come from
 * zoo_filled, never from the library's generators.
 */
#ifndef OM_TESTS_ZOO_H
#define OM_TESTS_ZOO_H

#include "trace_test.h"

#define ZOO_INPUTS  3
#define ZOO_OUTPUTS 20

typedef struct zoo_input {
    const char *name;
    om_dtype dtype; /* OM_I64: values below 5 */
    int rank;
    const char *axes[4];
    int64_t dims[3][4]; /* the first is traced; one of the others has batch 1 */
} zoo_input;

/* Fills out, returns how many. */
typedef int (*zoo_fn)(om_tensor **in, om_tensor **out);
typedef struct zoo_model {
    const char *name;
    zoo_fn run;
    int n_in;
    zoo_input in[ZOO_INPUTS];
} zoo_model;

extern const zoo_model zoo[];
extern const int zoo_count;

/* Turns the order in which OM_PAIR of the models evaluates its operands. */
void zoo_swap_args(void);
/* Input i of size set k. */
om_tensor *zoo_example(const zoo_model *m, int i, int k);
/* Traced at size set 0, outputs named y0, y1, ... */
om_graph *zoo_trace(const zoo_model *m);

#endif
