/*
 * test_saved.c -- weight files with one lie and right checksums: an array that crosses the end of
 * DATA, one that is not aligned, bools that are neither 0 nor 1; and one that
 * is right, of two parameters in one storage.
 */
#include "nn/fixture.h"

#include <unistd.h>

#include "graph/repair.h"

static char path_of_file[] = "/tmp/om-test-saved-XXXXXX";

/* A module with a buffer of three bools and a parameter of four floats: one array each in DATA. */
static om_module *small_module(void) {
    static const uint8_t mask[] = {1, 0, 1};
    om_module *m                = om_nn_module();
    OM_SCOPE {
        om_nn_parameter(m, "weight", om_full(2.5, OM_F32, OM_DIMS(4)));
        om_nn_buffer(m, "mask", om_from(mask, OM_BOOL, OM_DIMS(3)));
    }
    expect_ok();
    return m;
}

typedef struct weights {
    uint8_t v[16384];
    size_t n, data, data_bytes, tail[2]; /* tail: where the offset of each tensor stands */
} weights;

/* The saved module; the file ends each tensor's description with its offset and its bytes. */
static weights save_weights(om_module *m) {
    static const uint64_t bytes[2] = {16, 3};
    weights w;
    assert_int_equal(om_nn_save(m, path_of_file), OM_OK);
    FILE *f = fopen(path_of_file, "rb");
    assert_non_null(f);
    w.n = fread(w.v, 1, sizeof w.v, f);
    fclose(f);
    assert_true(w.n < sizeof w.v);
    size_t stat_bytes = 0, stat = section_at(w.v, "STAT", &stat_bytes), found = 0;
    w.data = section_at(w.v, "DATA", &w.data_bytes);
    for (size_t at = stat; at + 16 <= stat + stat_bytes && found < 2; at++)
        if (omi_load_u64(w.v + at) % 64 == 0 && omi_load_u64(w.v + at) < w.data_bytes &&
            omi_load_u64(w.v + at + 8) == bytes[found])
            w.tail[found++] = at;
    assert_int_equal(found, 2);
    return w;
}

static void gives_saved(om_module *m, weights *w, om_status want, const char *text) {
    repair(w->v, w->n);
    FILE *f = fopen(path_of_file, "wb");
    assert_non_null(f);
    assert_int_equal(fwrite(w->v, 1, w->n, f), w->n);
    fclose(f);
    assert_int_equal(om_nn_load(m, path_of_file, NULL), want);
    if (want == OM_OK)
        expect_ok();
    else
        expect_error(want, text);
}

static void an_array_stays_inside_its_data(void **state) {
    (void)state;
    om_module *m = small_module();
    weights w    = save_weights(m);
    gives_saved(m, &w, OM_OK, "");
    assert_int_equal(w.data_bytes, 128);
    static const uint64_t wrong[] = {128, 128 + 64, (uint64_t)1 << 32, UINT64_MAX - 63, 32, 1};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
        for (int t = 0; t < 2; t++) {
            weights bad = w;
            omi_store_u64(bad.v + bad.tail[t], wrong[i]);
            gives_saved(m, &bad, OM_ERR_MALFORMED, "outside of DATA");
        }
    om_nn_free(m);
}

static void bools_are_0_or_1(void **state) {
    (void)state;
    om_module *m  = small_module();
    weights w     = save_weights(m);
    uint8_t *mask = w.v + w.data + omi_load_u64(w.v + w.tail[1]);
    assert_true(mask[0] == 1 && mask[1] == 0 && mask[2] == 1);
    for (int i = 0; i < 3; i++)
        for (int value = 2; value < 256; value += value == 2 ? 126 : 127) {
            uint8_t was = mask[i];
            mask[i]     = (uint8_t)value;
            gives_saved(m, &w, OM_ERR_MALFORMED, "bools other than 0 and 1");
            mask[i] = was;
        }
    mask[1] = 1; // and one that is right arrives
    gives_saved(m, &w, OM_OK, "");
    OM_SCOPE assert_int_equal(((const uint8_t *)om_data(om_nn_get(m, "mask")))[1], 1);
    om_nn_free(m);
}

/* Two parameters at one place of one storage, of other shape: each has its entry and its shape, and
 * what is loaded is seen through both. */
static void tied_parameters_of_other_shape(void **state) {
    (void)state;
    om_module *m[2];
    for (int i = 0; i < 2; i++)
        OM_SCOPE {
            m[i]         = om_nn_module();
            om_tensor *w = om_full(0.5 + i, OM_F32, OM_DIMS(8)), *v = om_reshape(w, OM_DIMS(2, 4));
            om_copy_(om_slice(w, 0, 5, 6, 1), om_full(7 + i, OM_F32, OM_DIMS(1)));
            om_nn_parameter(m[i], "w", w);
            om_nn_parameter(m[i], "v", v);
            expect_ok();
        }
    assert_int_equal(om_nn_save(m[0], path_of_file), OM_OK);
    assert_int_equal(om_nn_load(m[1], path_of_file, NULL), OM_OK);
    om_tensor *w = om_nn_get(m[1], "w"), *v = om_nn_get(m[1], "v");
    expect_ok();
    assert_int_equal(w->rank, 1);
    assert_int_equal(v->rank, 2);
    assert_int_equal(v->shape[1], 4);
    for (int i = 0; i < 8; i++) {
        assert_true(((const float *)om_data(w))[i] == (i == 5 ? 7.0f : 0.5f));
        assert_true(((const float *)om_data(v))[i] == (i == 5 ? 7.0f : 0.5f));
    }
    assert_ptr_equal(om_data(w), om_data(v)); /* still one storage */
    for (int i = 0; i < 2; i++)
        om_nn_free(m[i]);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        FIXTURE_TEST(an_array_stays_inside_its_data),
        FIXTURE_TEST(bools_are_0_or_1),
        FIXTURE_TEST(tied_parameters_of_other_shape),
    };
    int fd = mkstemp(path_of_file);
    if (fd < 0) return 1;
    close(fd);
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    unlink(path_of_file);
    return failed;
}
