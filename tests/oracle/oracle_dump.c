/*
 * oracle_dump.c -- writes the test models for another runtime to check: oracle_dump DIR.
 *
 * For each model NAME: NAME.onnx, and for each size set k NAME.k.x.npy (input) and NAME.k.y.npy
 * (what eager computed). tools/oracle.py compares with ONNX Runtime. And wide.onnx and wider.onnx
 * in the folder DIR/wide when there is one: y = Sum of 65 and of 50,000 inputs, for the command.
 */
#include <stdio.h>
#include <stdlib.h>

#include "graph/graph.h"
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

/* y = Sum of n inputs, as DIR/wide/NAME.onnx, for tests of the command; nothing without the folder.
 */
static void dump_wide(const char *dir, const char *name, uint32_t n) {
    char text[600];
    om_gdim two   = OM_DIM_FIXED(2);
    om_graph *g   = omi_graph_new("wide", 0);
    uint32_t *in  = calloc(n, sizeof *in);
    g->ir_version = 9;
    omi_graph_add_opset(g, "", 20);
    for (uint32_t i = 0; in && i < n; i++) {
        snprintf(text, sizeof text, "input.%05u", (unsigned)i);
        omi_graph_add_input(g, in[i] = omi_graph_add_value(g, text, OM_F32, 1, &two));
    }
    uint32_t out = omi_graph_add_value(g, "y", OM_F32, 1, &two);
    omi_graph_add_node(g, "Sum", "", "sum", n, in, 1, &out);
    omi_graph_add_output(g, out);
    omi_graph_seal(g);
    snprintf(text, sizeof text, "%s/wide/%s.onnx", dir, name);
    if (om_graph_save_onnx(g, text, NULL) != OM_OK) om_catch(NULL);
    om_graph_release(g);
    free(in);
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
    dump_wide(argv[1], "wide", 65);
    dump_wide(argv[1], "wider", 50000);
    om_scope_drain();
    return 0;
}
