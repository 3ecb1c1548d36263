/*
 * custom.c -- samples of a caller's operator: two outputs, y = x*w and z = x + w, with a gradient.
 */
#include "sample.h"

/* i[0]: 0 works, 1 forward returns 3, 2 an output is left unset, 3 an input is returned, 4 no name
 */
static int forward(void *ctx, int n_in, om_tensor *const *in, int n_out, om_tensor **out) {
    const sample *s = ctx;
    (void)n_in, (void)n_out;
    if (s->i[0] == 1) return 3;
    out[0] = s->i[0] == 3 ? in[0] : om_mul(in[0], in[1]);
    if (s->i[0] != 2) out[1] = om_add(in[0], in[1]);
    return 0;
}

/* dx = dy w + dz, dw = dy x + dz; a NULL dy is zero. */
static int backward(void *ctx, int n_in, om_tensor *const *in, int n_out, om_tensor *const *out,
                    om_tensor *const *dy, om_tensor **dx) {
    (void)ctx, (void)n_out, (void)out;
    for (int k = 0; k < n_in; k++) {
        om_tensor *part = dy[0] ? om_mul(dy[0], in[1 - k]) : NULL;
        dx[k]           = part && dy[1] ? om_add(part, dy[1]) : part ? part : dy[1];
    }
    return om_pending() != OM_OK;
}

static int call_custom(const sample *s, om_tensor *const *in, om_tensor **out) {
    union { // the callback only reads it
        const void *c;
        void *p;
    } ctx           = {.c = s};
    om_custom_op op = {.name     = s->i[0] == 4 ? NULL : "test.pair",
                       .forward  = forward,
                       .backward = backward,
                       .lowering = forward,
                       .ctx      = ctx.p};
    if (om_custom(&op, 2, in, 2, out) == OM_OK) return 2;
    out[0] = NULL;
    return 0;
}
static void ref_custom(const sample *s, const ref *in, ref *out) {
    (void)s;
    ref_like(&out[0], in);
    ref_like(&out[1], in);
    for (int64_t k = 0; k < in->n; k++) {
        out[0].v[k] = in[0].v[k] * in[1].v[k];
        out[1].v[k] = in[0].v[k] + in[1].v[k];
    }
}

// clang-format off
static const sample custom_samples[] = {
    {"pair", {{2, {3, 4}}, {2, {3, 4}}}}, {"scalars", {{0}, {0}}}, {"empty", {{2, {0, 4}}, {2, {0, 4}}}},
    {"views", {{2, {3, 4}, .view = VIEW_TRANSPOSED}, {2, {3, 4}, .view = VIEW_SLICED}}},
    {.name = "code", .in = {{1, {2}}, {1, {2}}}, .i = {1}, .fails = OM_ERR_VALUE, .says = "returned 3"},
    {.name = "unset", .in = {{1, {2}}, {1, {2}}}, .i = {2}, .fails = OM_ERR_ARG, .says = "output 1 unset"},
    {.name = "input", .in = {{1, {2}}, {1, {2}}}, .i = {3}, .fails = OM_ERR_ARG, .says = "om_clone"},
    {.name = "nameless", .in = {{1, {2}}, {1, {2}}}, .i = {4}, .fails = OM_ERR_ARG, .says = "no name"}};
const sample_op sample_custom[] = {
    {"custom", OM_OP_CUSTOM, 2, call_custom, ref_custom, custom_samples, (int)OM_COUNT(custom_samples), false}, {0}};
// clang-format on
