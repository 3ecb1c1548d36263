/*
 * fuzz_models.c -- valid models with extreme attributes: each one runs, or is refused by a named
 * error, within its memory limit and soon after a cancel; and what runs gives the same bits with
 * one thread, with three, and after it was saved and loaded.
 */
#include "fuzz/models.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "onemodel/ops.h"
#include "onemodel/session.h"

enum { LIMIT = 64 << 20, MAX_OUT = 32 };

static bool allowed(om_status s, const char *what, uint64_t seed) {
    om_error e;
    om_catch(&e);
    if (s != OM_ERR_INTERNAL && s != OM_OK) return true;
    fprintf(stderr, "%llu: %s ended with %s: %s\n", (unsigned long long)seed, what,
            om_status_name(s), e.message);
    return false;
}

/* Tensors for every input; axes that are open take a small size. NULL: too large to make, or
 * refused. */
static bool make_inputs(fuzz_rng *g, om_session *s, om_binding *in) {
    int64_t open[2] = {1 + fuzz_below(g, 4), 1 + fuzz_below(g, 4)};
    for (int i = 0; i < om_session_n_inputs(s); i++) {
        om_value_info v;
        int64_t dims[OM_MAX_RANK] = {0}, n = 1;
        if (om_session_input(s, i, &v) != OM_OK || v.rank < 0) return false;
        for (int k = 0; k < v.rank; k++) {
            dims[k] = v.axes[k].size >= 0 ? v.axes[k].size
                                          : open[v.axes[k].symbol && v.axes[k].symbol[0] == 'T'];
            if (dims[k] > 1 << 16) return false;
            n *= dims[k];
            if (n > 1 << 16) return false;
        }
        om_rng r     = om_rng_new(fuzz_bits(g), 3);
        in[i].name   = v.name;
        om_tensor *t = v.dtype == OM_F32
                           ? om_rand(&r, -2, 2, v.rank, dims)
                           : om_cast(om_randint(&r, 0, 3, v.rank, dims), (om_dtype)v.dtype);
        if (!t) return false;
        in[i].tensor = t;
    }
    return true;
}

/* Runs g with these threads; hex receives a hash of all outputs. */
static om_status run_once(uint64_t seed, om_graph *g, int threads, char hex[65]) {
    om_session_opts o = {.struct_size = sizeof o, .threads = threads, .memory_limit = LIMIT};
    om_binding in[8];
    om_tensor *out[MAX_OUT]    = {0};
    char all[MAX_OUT * 64 + 1] = "";
    fuzz_rng inputs            = {seed};
    om_session *s              = om_session_new(g, &o);
    if (!s) return om_pending();
    om_scope scope = om_scope_begin();
    om_status st   = OM_ERR_UNSUPPORTED;
    int n_out      = om_session_n_outputs(s);
    if (make_inputs(&inputs, s, in) && n_out <= MAX_OUT)
        st = om_session_run(s, om_session_n_inputs(s), in, n_out, out);
    for (int k = 0; k < n_out && st == OM_OK; k++)
        st = om_hash(out[k], all + 64 * k);
    om_scope_end(scope);
    om_session_free(s);
    om_sha256_of(all, strlen(all), hex);
    return st;
}

static om_graph *saved_and_loaded(om_graph *g) {
    void *data;
    size_t n;
    if (om_graph_save_memory(g, &data, &n) != OM_OK) return NULL;
    om_graph *again = om_graph_load_memory(data, n, NULL);
    om_bytes_free(data, n);
    return again;
}

static fuzz_outcome try_graph(uint64_t seed, om_graph *g) {
    char hex[3][65];
    om_status st = run_once(seed, g, 1, hex[0]);
    if (st != OM_OK)
        return allowed(om_pending() ? om_pending() : st, "the session", seed) ? FUZZ_REFUSED
                                                                              : FUZZ_WRONG;
    if (run_once(seed, g, 3, hex[1]) != OM_OK)
        return allowed(OM_OK, "three threads", seed), FUZZ_WRONG;
    om_graph *again = saved_and_loaded(g);
    if (!again || run_once(seed, again, 1, hex[2]) != OM_OK) {
        om_error e;
        if (om_catch(&e) == OM_ERR_CANCELLED) return om_graph_release(again), FUZZ_REFUSED;
        fprintf(stderr, "%llu: not after saving: %s\n", (unsigned long long)seed, e.message);
        return om_graph_release(again), FUZZ_WRONG;
    }
    om_graph_release(again);
    if (strcmp(hex[0], hex[1]) == 0 && strcmp(hex[0], hex[2]) == 0) return FUZZ_RAN;
    fprintf(stderr, "%llu: other bits with three threads or after saving\n",
            (unsigned long long)seed);
    return FUZZ_WRONG;
}

static fuzz_outcome step(uint64_t seed) {
    fuzz_rng g = {seed};
    pb file    = fuzz_model(&g);
    om_memory_stats before, after;
    om_memory(&before);
    om_load_opts o = {.struct_size = sizeof o, .memory_limit = LIMIT};
    om_graph *m    = om_graph_load_memory(file.v, file.n, &o);
    if (getenv("OM_FUZZ_WRITE")) {
        FILE *f = fopen(getenv("OM_FUZZ_WRITE"), "wb");
        if (f) fwrite(file.v, 1, file.n, f), fclose(f);
    }
    pb_clear(&file);
    if (!m) return allowed(om_pending(), "the load", seed) ? FUZZ_REFUSED : FUZZ_WRONG;
    fuzz_outcome out = try_graph(seed, m);
    om_graph_release(m);
    om_scope_drain();
    om_trim();
    om_memory(&after);
    if (out == FUZZ_WRONG || after.blocks <= before.blocks + 64) return out;
    fprintf(stderr, "%llu: %lld blocks leaked\n", (unsigned long long)seed,
            (long long)(after.blocks - before.blocks));
    return FUZZ_WRONG;
}

int main(int argc, char **argv) {
    return fuzz_main(argc, argv, "fuzz_models", step, 5);
}
