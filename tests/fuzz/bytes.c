/*
 * bytes.c -- one reader of the library on any bytes (bytes.h), compiled once for each: ONNX and .om
 * files are loaded, checked, made into a session and run on small inputs; checkpoints and .npy
 * files are read.
 *
 * Whatever the bytes are: no crash, no leak, no OM_ERR_INTERNAL, and within the memory limit.
 */
#ifndef _GNU_SOURCE
#    define _GNU_SOURCE
#endif
#include "fuzz/bytes.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/bytes.h"
#include "base/hash.h"
#include "onemodel.h"

#if defined(OM_FUZZ_ONNX)
const char *const fuzz_bytes_name = "onnx";
#elif defined(OM_FUZZ_OM)
const char *const fuzz_bytes_name = "om";
#elif defined(OM_FUZZ_CHECKPOINT)
const char *const fuzz_bytes_name = "checkpoint";
#elif defined(OM_FUZZ_NPY)
const char *const fuzz_bytes_name = "npy";
#else
#    error "say which reader"
#endif

static void promise(bool kept, const char *what) {
    if (kept) return;
    fprintf(stderr, "broken promise: %s\n", what);
    abort();
}

static void end_of_errors(void) {
    om_error e;
    if (om_catch(&e) == OM_ERR_INTERNAL) promise(false, e.message);
}

#if defined(OM_FUZZ_ONNX) || defined(OM_FUZZ_OM)
static void run_graph(om_graph *g) {
    om_session_opts o = {.struct_size = sizeof o, .threads = 1, .memory_limit = 32 << 20};
    om_session *s     = om_session_new(g, &o);
    om_binding in[8]  = {{0}};
    om_tensor *out[8] = {0};
    bool ok           = s && om_session_n_inputs(s) <= 8 && om_session_n_outputs(s) <= 8;
    for (int i = 0; ok && i < om_session_n_inputs(s); i++) {
        om_value_info v;
        int64_t dims[OM_MAX_RANK], n = 1;
        ok = om_session_input(s, i, &v) == OM_OK && v.rank >= 0;
        for (int k = 0; ok && k < v.rank; k++) {
            dims[k] = v.axes[k].size < 0 ? 2 : v.axes[k].size;
            ok      = dims[k] <= 4096 && (n *= dims[k]) <= 1 << 16;
        }
        if (!ok) break;
        in[i].name   = v.name;
        in[i].tensor = om_zeros((om_dtype)v.dtype, v.rank, dims);
        ok           = in[i].tensor != NULL;
    }
    if (ok) om_session_run(s, om_session_n_inputs(s), in, om_session_n_outputs(s), out);
    end_of_errors();
    om_session_free(s);
}

static void read_one(const uint8_t *data, size_t n) {
    om_load_opts o = {.struct_size = sizeof o, .memory_limit = 32 << 20, .borrow = true};
    om_graph *g    = om_graph_load_memory(data, n, &o);
    end_of_errors();
    if (g) run_graph(g);
    om_graph_release(g);
}
#endif

#if defined(OM_FUZZ_OM) || defined(OM_FUZZ_CHECKPOINT)
/* Makes the checksums of a container right again, so that the bytes behind them are reached. */
static void repair(uint8_t *p, size_t n) {
    if (n < 64) return;
    uint32_t sections = omi_load_u32(p + 24);
    if (sections > (n - 64) / 32) return;
    for (uint32_t i = 0; i < sections; i++) {
        uint8_t *row = p + 64 + 32 * i;
        uint64_t at = omi_load_u64(row + 8), m = omi_load_u64(row + 16);
        if (at <= n && m <= n - at) omi_store_u64(row + 24, omi_xxh64(p + at, (size_t)m, 0));
    }
    omi_store_u64(p + 16, n);
    omi_store_u64(p + 32, omi_xxh64(p + 64, 32 * (size_t)sections, 0));
    omi_store_u64(p + 56, omi_xxh64(p, 56, 0));
}
#endif

#ifdef OM_FUZZ_CHECKPOINT
static void read_one(const uint8_t *data, size_t n) {
    char path[64];
    int fd = memfd_create("checkpoint", 0);
    if (fd < 0 || write(fd, data, n) != (ssize_t)n) abort();
    snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    om_seed(1);
    om_module *m    = om_nn_linear(3, 2, NULL);
    om_optim *o     = om_adam(m, 0.1, NULL);
    om_tensor *t[1] = {om_zeros(OM_F32, OM_DIMS(4, 3))};
    om_loader *l    = om_loader_new(1, t, 2, NULL);
    om_checkpoint c = {.struct_size = sizeof c, .module = m, .optim = o, .loader = l};
    om_checkpoint_load(path, &c);
    end_of_errors();
    om_loader_free(l);
    om_optim_free(o);
    om_nn_free(m);
    close(fd);
}
#endif

#ifdef OM_FUZZ_NPY
static void read_one(const uint8_t *data, size_t n) {
    char hex[65];
    om_tensor *t = om_npy_load_memory(data, n);
    if (t) promise(om_hash(t, hex) == OM_OK, "an array that was read has a hash");
    end_of_errors();
}
#endif

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n) {
    om_memory_stats before, after;
    om_trim();
    om_memory(&before);
    om_scope scope = om_scope_begin();
    uint8_t *own   = malloc(n + 1); // its own block, so that reading on is seen
    if (!own) return 0;
    if (n) memcpy(own, data, n);
#if defined(OM_FUZZ_OM) || defined(OM_FUZZ_CHECKPOINT)
    if (n % 2 == 0) repair(own, n);
#endif
    read_one(own, n);
    om_scope_end(scope);
    om_scope_drain();
    free(own);
    om_trim();
    om_memory(&after);
    promise(after.blocks <= before.blocks + 8, "nothing leaks");
    return 0;
}
