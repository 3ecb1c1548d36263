/*
 * trace_dump.c -- writes the models of the zoo to a directory for ONNX Runtime: NAME.onnx, and for
 * each of three size sets NAME.K.in.INPUT.npy and NAME.K.out.OUTPUT.npy, computed eagerly.
 *
 * usage: trace_dump DIR          then: trace_oracle.py DIR
 */
#include "zoo.h"

static om_status dump_set(const char *dir, const zoo_model *m, int k) {
    char path[512];
    om_tensor *in[ZOO_INPUTS], *out[ZOO_OUTPUTS] = {NULL};
    om_scope s = om_scope_begin();
    for (int i = 0; i < m->n_in; i++) {
        in[i] = zoo_example(m, i, k);
        snprintf(path, sizeof path, "%s/%s.%d.in.%s.npy", dir, m->name, k, m->in[i].name);
        om_npy_save(in[i], path);
    }
    int n = m->run(in, out);
    for (int i = 0; i < n; i++) {
        snprintf(path, sizeof path, "%s/%s.%d.out.y%d.npy", dir, m->name, k, i);
        om_npy_save(out[i], path);
    }
    return om_scope_end(s);
}

static om_status dump(const char *dir, const zoo_model *m) {
    char path[512];
    om_graph *g = zoo_trace(m);
    snprintf(path, sizeof path, "%s/%s.onnx", dir, m->name);
    om_graph_save_onnx(g, path, NULL);
    for (int k = 0; k < 3; k++)
        dump_set(dir, m, k);
    om_graph_release(g);
    return om_pending();
}

int main(int argc, char **argv) {
    if (argc != 2) {
        fprintf(stderr, "usage: trace_dump DIR\n");
        return 2;
    }
    for (int i = 0; i < zoo_count; i++) {
        om_error e;
        dump(argv[1], &zoo[i]);
        om_scope_drain();
        if (om_catch(&e) == OM_OK) continue;
        fprintf(stderr, "%s: %s: %s\n", zoo[i].name, e.where, e.message);
        return 1;
    }
    return 0;
}
