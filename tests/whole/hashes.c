/*
 * hashes.c -- the golden hashes without a test framework, for machines that have none (an emulator,
 * a cross build): eager and exact session on the five models. Ends with "N passed, N failed".
 */
#include <stdio.h>
#include <string.h>

#include "whole/golden.h"

static int check(const char *what, const test_model *m, int k, om_tensor *y, const char *want) {
    char hex[65] = "";
    om_hash(y, hex);
    int ok = strcmp(hex, want) == 0;
    printf("%s %s %d %s%s\n", m->name, what, k, hex, ok ? "" : "  DIFFERS");
    return ok;
}

int main(void) {
    int passed = 0, failed = 0;
    for (int i = 0; i < TEST_MODELS; i++) {
        test_model m;
        test_model_new(i, &m);
        om_graph *g   = test_model_trace(&m);
        om_session *s = om_session_new(g, NULL);
        for (int k = 0; k < 3; k++) {
            om_tensor *x = test_model_input(&m, k);
            int ok       = check("eager", &m, k, m.forward(&m, x), golden_hashes[i][k]) +
                     check("exact", &m, k, om_session_call(s, x), golden_hashes[i][k]);
            passed += ok;
            failed += 2 - ok;
            om_scope_drain();
        }
        om_session_free(s);
        om_graph_release(g);
        test_model_free(&m);
    }
    om_error e;
    if (om_catch(&e) != OM_OK) {
        printf("%s: %s\n", e.where, e.message);
        failed++;
    }
    printf("%d passed, %d failed\n", passed, failed);
    return failed != 0;
}
