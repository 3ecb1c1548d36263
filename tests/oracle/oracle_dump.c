/*
 * oracle_dump.c -- writes the test models for another runtime to check: oracle_dump DIR.
 *
 * For each model NAME: NAME.onnx, and for each size set k NAME.k.x.npy (input) and NAME.k.y.npy
 * (what eager computed). tools/oracle.py compares with ONNX Runtime.
 */
#include <stdio.h>

#include "models/models.h"

static om_status dump(int which, const char *dir) {
    test_model m;
    char path[512];
    if (!test_model_new(which, &m)) return om_pending();
    om_graph *g = test_model_trace(&m);
    snprintf(path, sizeof path, "%s/%s.onnx", dir, m.name);
    if (g) om_graph_save_onnx(g, path, NULL);
    om_graph_release(g);
    for (int k = 0; k < 3 && om_pending() == OM_OK; k++) {
        om_scope s   = om_scope_begin();
        om_tensor *x = test_model_input(&m, k);
        snprintf(path, sizeof path, "%s/%s.%d.x.npy", dir, m.name, k);
        om_npy_save(x, path);
        snprintf(path, sizeof path, "%s/%s.%d.y.npy", dir, m.name, k);
        om_npy_save(m.forward(&m, x), path);
        om_scope_end(s);
    }
    test_model_free(&m);
    return om_pending();
}

int main(int argc, char **argv) {
    if (argc != 2) return fprintf(stderr, "oracle_dump DIR\n"), 2;
    for (int i = 0; i < TEST_MODELS; i++)
        if (dump(i, argv[1]) != OM_OK) {
            om_error e;
            om_catch(&e);
            fprintf(stderr, "model %d: %s: %s\n", i, e.where, e.message);
            return 1;
        }
    om_scope_drain();
    return 0;
}
