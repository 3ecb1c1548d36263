/*
 * eager.c -- nanoseconds of one untraced operator call on 4 elements, and of one row through a
 * layer: eager [NAME...].
 *
 * Prints "name ns" lines: the median over rounds of calls in a scope of their own each, as user
 * code has them. bench/run.py sets them beside libtorch's (eager_torch.cpp), in turn in one run.
 */
#include <onemodel.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

enum { ROUNDS = 41, CALLS = 20000 };

static double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

static om_tensor *a, *b, *m, *w, *row, *layer, *bias;
static void call_add(void) {
    om_add(a, b);
}
static void call_relu(void) {
    om_relu(a);
}
static void call_matmul(void) {
    om_matmul(m, w);
}
static void call_reshape(void) {
    om_reshape(a, OM_DIMS(2, 2));
}
static void call_sum(void) {
    om_sum_all(a);
}

static void call_linear(void) {
    om_linear(row, layer, bias);
}

static const struct {
    const char *name;
    void (*call)(void);
} rows[] = {{"add", call_add},         {"relu", call_relu}, {"matmul", call_matmul},
            {"reshape", call_reshape}, {"sum", call_sum},   {"linear_1x784x256", call_linear}};

static int by_value(const void *x, const void *y) {
    double d = *(const double *)x - *(const double *)y;
    return d < 0 ? -1 : d > 0;
}

int main(void) {
    const float v[4] = {1, -2, 3, -4};
    om_set_threads(1);
    om_exit_on_error(true);
    a     = om_from(v, OM_F32, OM_DIMS(4));
    b     = om_from(v, OM_F32, OM_DIMS(4));
    m     = om_from(v, OM_F32, OM_DIMS(2, 2));
    w     = om_from(v, OM_F32, OM_DIMS(2, 2));
    row   = om_rand(NULL, -1, 1, OM_DIMS(1, 784));
    layer = om_rand(NULL, -1, 1, OM_DIMS(256, 784));
    bias  = om_rand(NULL, -1, 1, OM_DIMS(256));
    for (size_t r = 0; r < sizeof rows / sizeof *rows; r++) {
        double ns[ROUNDS];
        int calls = rows[r].call == call_linear ? CALLS / 100 : CALLS;
        for (int k = 0; k < ROUNDS; k++) {
            double t = now();
            for (int i = 0; i < calls; i++) {
                om_scope s = om_scope_begin();
                rows[r].call();
                om_scope_end(s);
            }
            ns[k] = (now() - t) / calls;
        }
        qsort(ns, ROUNDS, sizeof *ns, by_value);
        printf("%s %.1f\n", rows[r].name, ns[ROUNDS / 2]);
    }
    return 0;
}
