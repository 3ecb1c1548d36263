/*
 * models.h -- five networks that the oracle, exact and fault tests share, each with symbolic axes.
 *
 * Weights and batch-norm statistics are random (not the defaults, which would hide swapped
 * operands), from Philox, so they are the same on every machine.
 */
#ifndef OM_TESTS_MODELS_H
#define OM_TESTS_MODELS_H

#include <onemodel.h>

typedef struct test_model test_model;
typedef om_tensor *(*test_forward)(test_model *m, om_tensor *x);

struct test_model {
    const char *name;
    om_module *net;
    test_forward forward;
    om_dtype dtype; /* of the input */
    int rank;
    const char *axes[4];
    int64_t sizes[3][4]; /* traced first; then two other size sets, one with batch 1 */
    int64_t classes;     /* int64 inputs are below this */
};

enum { TEST_MLP, TEST_CNN, TEST_RESIDUAL, TEST_TRANSFORMER, TEST_EMBEDDING, TEST_MODELS };

/* Made anew; false after a failure. Free with test_model_free. */
bool test_model_new(int which, test_model *m);
void test_model_free(test_model *m);
/* Random input of size set k. */
om_tensor *test_model_input(const test_model *m, int k);
/* Traced at size set 0, evaluation mode. */
om_graph *test_model_trace(test_model *m);

#endif
