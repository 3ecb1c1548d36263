/*
 * simple.c -- modules without parameters: activations, pools, shape, and the sequence of children.
 *
 * Each holds its few numbers in one small struct and calls the operator of ops.h; what is checked
 * there is not checked here.
 */
#include "base/opts.h"
#include "nn/module.h"
#include "tensor/scope.h"

typedef struct unary {
    om_tensor *(*op)(om_tensor *x); /* activations                 */
    om_tensor *(*op_axis)(om_tensor *x, int axis);
    om_tensor *(*op_pool)(om_tensor *x, int64_t kh, int64_t kw, const om_pool2d_opts *opts);
    int axis;
    int64_t h, w;
    om_pool2d_opts pool;
} unary;

static void unary_free(void *ctx) {
    omi_free(ctx, sizeof(unary));
}

static om_tensor *unary_forward(void *ctx, om_module *m, om_tensor *x) {
    (void)m;
    const unary *u = ctx;
    if (u->op) return u->op(x);
    if (u->op_axis) return u->op_axis(x, u->axis);
    return u->op_pool(x, u->h, u->w, &u->pool);
}

static om_module *unary_new(const char *kind, unary u) {
    unary *c = omi_failed() ? NULL : omi_alloc(sizeof *c);
    if (!c) return NULL;
    *c = u;
    return omi_module_new(kind, unary_forward, c, unary_free);
}

#define ACTIVATION(name)                                                                           \
    om_module *om_nn_##name(void) {                                                                \
        OMI_ENTER("om_nn_" #name);                                                                 \
        return unary_new(#name, (unary){.op = om_##name});                                         \
    }
ACTIVATION(relu)
ACTIVATION(gelu)
ACTIVATION(gelu_tanh)
ACTIVATION(silu)
ACTIVATION(tanh)
ACTIVATION(sigmoid)

#define OF_AXIS(name)                                                                              \
    om_module *om_nn_##name(int axis) {                                                            \
        OMI_ENTER("om_nn_" #name);                                                                 \
        return unary_new(#name, (unary){.op_axis = om_##name, .axis = axis});                      \
    }
OF_AXIS(softmax)
OF_AXIS(log_softmax)
OF_AXIS(flatten)

#define POOL(name)                                                                                 \
    om_module *om_nn_##name(int64_t kh, int64_t kw, const om_pool2d_opts *opts) {                  \
        OMI_ENTER("om_nn_" #name);                                                                 \
        unary u = {.op_pool = om_##name, .h = kh, .w = kw};                                        \
        if (omi_failed() || !OMI_OPTS(&u.pool, opts, exclude_pad)) return NULL;                    \
        return unary_new(#name, u);                                                                \
    }
POOL(max_pool2d)
POOL(avg_pool2d)

static om_tensor *adaptive_pool(om_tensor *x, int64_t oh, int64_t ow, const om_pool2d_opts *opts) {
    (void)opts;
    return om_adaptive_avg_pool2d(x, oh, ow);
}

om_module *om_nn_adaptive_avg_pool2d(int64_t oh, int64_t ow) {
    OMI_ENTER("om_nn_adaptive_avg_pool2d");
    return unary_new("adaptive_avg_pool2d", (unary){.op_pool = adaptive_pool, .h = oh, .w = ow});
}

static om_tensor *identity_forward(void *ctx, om_module *m, om_tensor *x) {
    (void)ctx;
    (void)m;
    return x;
}

om_module *om_nn_identity(void) {
    OMI_ENTER("om_nn_identity");
    return omi_module_new("identity", identity_forward, NULL, NULL);
}

static om_tensor *sequential_forward(void *ctx, om_module *m, om_tensor *x) {
    (void)ctx;
    om_tensor *held = NULL; // +1: the result of the step before, let go once the next has read it
    for (size_t i = 0; i < m->children.n && x; i++) {
        om_scope s = om_scope_begin();
        x          = om_forward(m->children.v[i], x);
        if (x) om_retain(x);
        om_scope_end(s);
        om_release(held);
        held = x;
    }
    return held ? omi_file_owned(held) : x;
}

om_module *om_nn_sequential(void) {
    OMI_ENTER("om_nn_sequential");
    return omi_module_new("sequential", sequential_forward, NULL, NULL);
}
