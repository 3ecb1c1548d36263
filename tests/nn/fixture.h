/*
 * fixture.h -- what the tests of modules and training share: set-up that checks for leaks, and
 * readers of the stored references (tests/nn/data), which scripts in tools/ made with PyTorch.
 */
#ifndef OM_TESTS_NN_FIXTURE_H
#define OM_TESTS_NN_FIXTURE_H

#include <inttypes.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "onemodel/optim.h"
#include "tensor/tensor.h"

static int64_t fixture_live;

static int fixture_setup(void **state) {
    (void)state;
    om_catch(NULL);
    om_scope_drain();
    fixture_live = om_live_tensors();
    return 0;
}

/* Every test leaves no error pending and no tensor alive. */
static int fixture_teardown(void **state) {
    (void)state;
    om_error e;
    if (om_catch(&e) != OM_OK) print_error("left pending: %s: %s\n", e.where, e.message);
    om_scope_drain();
    if (om_live_tensors() != fixture_live)
        print_error("%lld tensors left alive\n", (long long)(om_live_tensors() - fixture_live));
    return e.status != OM_OK || om_live_tensors() != fixture_live;
}

#define FIXTURE_TEST(f) cmocka_unit_test_setup_teardown(f, fixture_setup, fixture_teardown)

/* The pending error must have this status and mention text; it is cleared. */
static inline void expect_error(om_status status, const char *text) {
    om_error e;
    om_catch(&e);
    if (e.status != status || !strstr(e.message, text))
        fail_msg("expected %s with '%s', got %s: %s: %s", om_status_name(status), text,
                 om_status_name(e.status), e.where, e.message);
}

static inline void expect_ok(void) {
    om_error e;
    if (om_catch(&e) != OM_OK) fail_msg("%s: %s", e.where, e.message);
}

/* Elements of a float32 .npy file in C order, as numpy.save writes them; free() them. */
static inline float *fixture_npy(const char *name, size_t *n) {
    char path[256];
    snprintf(path, sizeof path, "tests/nn/data/%s", name);
    FILE *f = fopen(path, "rb");
    assert_non_null(f);
    unsigned char head[10];
    assert_int_equal(fread(head, 1, 10, f), 10);
    assert_memory_equal(head, "\x93NUMPY\x01\x00", 8);
    long at = 10 + head[8] + 256L * head[9];
    fseek(f, 0, SEEK_END);
    *n = (size_t)(ftell(f) - at) / sizeof(float);
    fseek(f, at, SEEK_SET);
    float *v = malloc(*n * sizeof *v);
    assert_non_null(v);
    assert_int_equal(fread(v, sizeof *v, *n, f), *n);
    fclose(f);
    return v;
}

/* Largest |a - b| over the largest |b|. */
static inline double relative_error(const float *a, const float *b, size_t n) {
    double worst = 0.0, scale = 0.0;
    for (size_t i = 0; i < n; i++) {
        double d = fabs((double)a[i] - (double)b[i]);
        if (!(d <= worst)) worst = d;
        if (fabs((double)b[i]) > scale) scale = fabs((double)b[i]);
    }
    return scale > 0.0 ? worst / scale : worst;
}

#endif
