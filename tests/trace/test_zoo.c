/*
 * test_zoo.c -- over all models of the zoo: equal bytes for equal models, whatever the order of
 * argument evaluation (TD-12, CD-18, case F6); eager equals the exact session bit for bit at three
 * size sets (TD-19); every operator is traced by some model (the census).
 */
#include "autograd/engine.h"
#include "onemodel/session.h"
#include "ops/op.h"
#include "zoo.h"

typedef struct bytes {
    void *v;
    size_t n;
} bytes;

static bytes saved(const zoo_model *m) {
    bytes b;
    om_scope s  = om_scope_begin();
    om_graph *g = zoo_trace(m);
    if (!g) print_error("model %s:\n", m->name);
    check_ok();
    assert_int_equal(om_graph_save_onnx_memory(g, NULL, &b.v, &b.n), OM_OK);
    om_graph_release(g);
    om_scope_end(s);
    return b;
}

static void test_equal_bytes(void **state) {
    (void)state;
    for (int i = 0; i < zoo_count; i++) {
        bytes a = saved(&zoo[i]), b = saved(&zoo[i]);
        zoo_swap_args();
        bytes c = saved(&zoo[i]);
        zoo_swap_args();
        if (a.n != b.n || memcmp(a.v, b.v, a.n)) fail_msg("%s traced twice differs", zoo[i].name);
        if (a.n != c.n || memcmp(a.v, c.v, a.n))
            fail_msg("%s with swapped operands differs", zoo[i].name);
        om_bytes_free(a.v, a.n);
        om_bytes_free(b.v, b.n);
        om_bytes_free(c.v, c.n);
    }
}

static void compare(const zoo_model *m, om_session *s, int k) {
    om_tensor *in[ZOO_INPUTS], *want[ZOO_OUTPUTS] = {NULL}, *got[ZOO_OUTPUTS] = {NULL};
    om_binding bind[ZOO_INPUTS];
    for (int i = 0; i < m->n_in; i++) {
        in[i]   = zoo_example(m, i, k);
        bind[i] = (om_binding){m->in[i].name, in[i]};
    }
    int n = m->run(in, want);
    om_session_run(s, m->n_in, bind, n, got);
    if (om_pending()) print_error("%s, size set %d:\n", m->name, k);
    check_ok();
    for (int i = 0; i < n; i++)
        if (!om_bit_equal(want[i], got[i])) fail_msg("%s, size set %d: y%d differs", m->name, k, i);
}

static void test_eager_equals_exact(void **state) {
    (void)state;
    for (int i = 0; i < zoo_count; i++) {
        om_graph *g = zoo_trace(&zoo[i]);
        check_ok();
        om_session *s = om_session_new(g, NULL);
        if (!s) print_error("%s:\n", zoo[i].name);
        check_ok();
        for (int k = 0; k < 3; k++) {
            om_scope q = om_scope_begin();
            compare(&zoo[i], s, k);
            om_scope_end(q);
        }
        om_session_free(s);
        om_graph_release(g);
    }
}

static bool seen[OM_OP_COUNT];
static om_status watch(const om_call *c) {
    seen[c->op] = true;
    return OM_OK;
}
/* What a trace never sees: refused, or its own argument. */
static bool exempt(int op) {
    return op == OM_OP_NLL_LOSS || op == OM_OP_DROPOUT || op == OM_OP_CUSTOM ||
           op == OM_OP_CONTIGUOUS;
}
static void test_census(void **state) {
    (void)state;
    omi_record_watch = watch;
    for (int i = 0; i < zoo_count; i++) {
        om_tensor *in[ZOO_INPUTS], *out[ZOO_OUTPUTS];
        for (int k = 0; k < zoo[i].n_in; k++)
            in[k] = zoo_example(&zoo[i], k, 0);
        memset(out, 0, sizeof out);
        zoo[i].run(in, out);
        om_scope_drain();
    }
    omi_record_watch = NULL;
    check_ok();
    for (int op = 0; op < OM_OP_COUNT; op++)
        if (!seen[op] && !exempt(op)) fail_msg("no model traces %s", omi_op_name(op));
}

int main(void) {
    const struct CMUnitTest tests[] = {OM_TEST(test_equal_bytes), OM_TEST(test_eager_equals_exact),
                                       OM_TEST(test_census)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
