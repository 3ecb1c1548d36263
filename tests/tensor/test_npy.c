/*
 * test_npy.c -- .npy files: against bytes that NumPy wrote, and against bytes that nobody should
 * have written: every prefix, every flipped byte, and headers made to mislead.
 */
#include "harness.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "onemodel/graph.h"
#include "onemodel/tensor.h"
#include "tensor/npy_vectors.h"
#include "tensor/tensor.h"

static char folder[] = "/tmp/om-npy-XXXXXX";
static char path[64];

static int make_folder(void **state) {
    (void)state;
    if (!mkdtemp(folder)) return 1;
    snprintf(path, sizeof path, "%s/a.npy", folder);
    return 0;
}
static int drop_folder(void **state) {
    (void)state;
    unlink(path);
    return rmdir(folder); // fails when a temporary file was left behind
}

static void write_bytes(const void *p, size_t n) {
    FILE *f = fopen(path, "wb");
    assert_non_null(f);
    assert_int_equal(fwrite(p, 1, n, f), n);
    fclose(f);
}

static double vector_element(om_dtype t, int64_t k) {
    return t == OM_BOOL ? k % 3 == 1 : t == OM_U8 ? (double)(k % 3) : (double)(k % 3 - 1);
}

static void assert_vector(const om_tensor *t, const struct npy_vector *v) {
    assert_non_null(t);
    assert_int_equal(om_dtype_of(t), v->dtype);
    assert_int_equal(om_rank(t), v->rank);
    for (int i = 0; i < v->rank; i++)
        assert_int_equal(om_dim(t, i), v->shape[i]);
    assert_true(om_is_contiguous(t));
    for (int64_t k = 0; k < om_numel(t); k++) {
        int64_t at[OM_MAX_RANK];
        for (int i = v->rank - 1, r = (int)k; i >= 0; i--) {
            at[i] = r % v->shape[i];
            r /= (int)v->shape[i];
        }
        assert_true(om_get(t, at) == vector_element(v->dtype, k));
    }
}

static void reads_and_writes_what_numpy_does(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof npy_vectors / sizeof npy_vectors[0]; i++) {
        const struct npy_vector *v = &npy_vectors[i];
        om_scope s                 = om_scope_begin();
        om_tensor *t               = om_npy_load_memory(v->bytes, v->n);
        void *saved                = NULL;
        size_t n                   = 0;
        assert_vector(t, v);
        write_bytes(v->bytes, v->n);
        om_tensor *f = om_npy_load(path);
        assert_vector(f, v);
        assert_int_equal(om_npy_save_memory(t, &saved, &n), OM_OK);
        if (v->as_saved) {
            assert_int_equal(n, v->n);
            assert_memory_equal(saved, v->bytes, n);
        }
        om_tensor *again = om_npy_load_memory(saved, n);
        assert_vector(again, v);
        om_bytes_free(saved, n);
        // A file that was replaced while its tensor lives: the tensor keeps its bytes.
        assert_int_equal(om_npy_save(om_zeros(OM_F32, OM_DIMS(3)), path), OM_OK);
        assert_vector(f, v);
        assert_int_equal(om_npy_save(f, path), OM_OK);
        assert_vector(om_npy_load(path), v);
        assert_int_equal(om_scope_end(s), OM_OK);
    }
}

/* A loaded tensor may be written: its bytes are its own. */
static void loaded_tensors_can_be_changed(void **state) {
    (void)state;
    om_scope s = om_scope_begin();
    write_bytes(npy_vectors[0].bytes, npy_vectors[0].n);
    om_tensor *t = om_npy_load(path), *u = om_npy_load(path);
    assert_int_equal(om_fill_(t, 9), OM_OK);
    assert_vector(u, &npy_vectors[0]);
    assert_int_equal(om_scope_end(s), OM_OK);
}

static void strided_and_nan_are_saved_plain(void **state) {
    (void)state;
    om_scope s       = om_scope_begin();
    uint32_t odd_nan = 0xffc12345u, plain = 0x7fc00000u, got[4];
    float v[4] = {1, 0, 3, 4};
    memcpy(&v[1], &odd_nan, 4);
    om_tensor *x = om_from(v, OM_F32, OM_DIMS(2, 2));
    om_tensor *t = omi_view_of(x, 2, (int64_t[]){2, 2}, (int64_t[]){1, 2}, 0);
    void *p;
    size_t n;
    assert_int_equal(om_npy_save_memory(t, &p, &n), OM_OK);
    assert_int_equal(n, 128 + 16);
    memcpy(got, (char *)p + 128, 16);
    assert_memory_equal(&got[0], &v[0], 4);
    assert_memory_equal(&got[1], &v[2], 4);
    assert_memory_equal(&got[2], &plain, 4);
    om_bytes_free(p, n);
    om_scope_end(s);
}

/* Loads from memory and from a file, expecting the same end: a tensor, or a documented error. */
static om_status load_both(const void *p, size_t n) {
    om_error a, b;
    om_scope s   = om_scope_begin();
    void *own    = malloc(n ? n : 1); // exact size: a sanitizer sees a read behind it
    om_tensor *t = NULL;
    memcpy(own, p, n);
    t = om_npy_load_memory(own, n);
    free(own);
    om_catch(&a);
    assert_int_equal(t != NULL, a.status == OM_OK);
    write_bytes(p, n);
    t = om_npy_load(path);
    om_catch(&b);
    assert_int_equal(t != NULL, b.status == OM_OK);
    if (n > 0) assert_int_equal(a.status, b.status);
    om_scope_end(s);
    return a.status;
}

static void assert_refusal(om_status st) {
    assert_true(st == OM_ERR_MALFORMED || st == OM_ERR_DTYPE || st == OM_ERR_LIMIT ||
                st == OM_ERR_SHAPE);
}

static void every_prefix_is_refused(void **state) {
    (void)state;
    int64_t live = om_live_tensors();
    for (size_t i = 0; i < 12; i += 3)
        for (size_t n = 0; n < npy_vectors[i].n; n++)
            assert_int_equal(load_both(npy_vectors[i].bytes, n), OM_ERR_MALFORMED);
    assert_int_equal(om_live_tensors(), live);
}

static void every_flipped_byte_loads_or_is_refused(void **state) {
    (void)state;
    unsigned char b[512];
    int loaded = 0, refused = 0;
    for (size_t i = 0; i < 12; i += 4)
        for (size_t at = 0; at < npy_vectors[i].n; at++)
            for (int bit = 0; bit < 9; bit++) {
                memcpy(b, npy_vectors[i].bytes, npy_vectors[i].n);
                b[at]        = bit < 8 ? (unsigned char)(b[at] ^ 1 << bit) : (unsigned char)~b[at];
                om_status st = load_both(b, npy_vectors[i].n);
                if (st == OM_OK) {
                    loaded++;
                    continue;
                }
                refused++;
                assert_refusal(st);
            }
    assert_true(loaded > 100 && refused > 1000);
}

static void misleading_headers(void **state) {
    (void)state;
    static const struct {
        const char *header;
        size_t data;
        om_status want;
    } rows[] = {
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (2,), }", 8, OM_OK},
        {"{\"shape\":(2L,),'fortran_order':True,\t'descr':\"<f4\"}\n", 8, OM_OK},
        {"  {'descr': '<u1', 'fortran_order': False, 'shape': ()}   \n", 1, OM_OK},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (2,), }", 9, OM_ERR_MALFORMED},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (2,), }", 7, OM_ERR_MALFORMED},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (2), }", 8, OM_ERR_MALFORMED},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (-2,), }", 8, OM_ERR_MALFORMED},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': [2], }", 8, OM_ERR_MALFORMED},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (2,,), }", 8, OM_ERR_MALFORMED},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (,), }", 8, OM_ERR_MALFORMED},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (2 2), }", 16, OM_ERR_MALFORMED},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (2,", 8, OM_ERR_MALFORMED},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (2,)", 8, OM_ERR_MALFORMED},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (2,)} x", 8, OM_ERR_MALFORMED},
        {"{'descr': '<f4', 'fortran_order': 0, 'shape': (2,)}", 8, OM_ERR_MALFORMED},
        {"{'descr': '<f4', 'fortran_order': False}", 8, OM_ERR_MALFORMED},
        {"{'descr': '<f4', 'shape': (2,)}", 8, OM_ERR_MALFORMED},
        {"{'fortran_order': False, 'shape': (2,)}", 8, OM_ERR_MALFORMED},
        {"{'descr': '<f4', 'descr': '<f4', 'fortran_order': False, 'shape': (2,)}", 8,
         OM_ERR_MALFORMED},
        {"{'shape': (2,), 'descr': '<f4', 'fortran_order': False, 'shape': (2,)}", 8,
         OM_ERR_MALFORMED},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (2,), 'more': 1}", 8, OM_ERR_MALFORMED},
        {"{'descr' '<f4', 'fortran_order': False, 'shape': (2,)}", 8, OM_ERR_MALFORMED},
        {"{'des\\x63r': '<f4', 'fortran_order': False, 'shape': (2,)}", 8, OM_ERR_MALFORMED},
        {"{descr: '<f4', 'fortran_order': False, 'shape': (2,)}", 8, OM_ERR_MALFORMED},
        {"", 8, OM_ERR_MALFORMED},
        {"{}", 8, OM_ERR_MALFORMED},
        {"{'descr': '>f4', 'fortran_order': False, 'shape': (2,)}", 8, OM_ERR_DTYPE},
        {"{'descr': '<f2', 'fortran_order': False, 'shape': (2,)}", 4, OM_ERR_DTYPE},
        {"{'descr': '|O', 'fortran_order': False, 'shape': (2,)}", 8, OM_ERR_DTYPE},
        {"{'descr': '|f4', 'fortran_order': False, 'shape': (2,)}", 8, OM_ERR_DTYPE},
        {"{'descr': [('a', '<f4')], 'fortran_order': False, 'shape': (2,)}", 8, OM_ERR_DTYPE},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (1,1,1,1,1,1,1,1,1)}", 4, OM_ERR_LIMIT},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (99999999999999999999,)}", 4,
         OM_ERR_LIMIT},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (4611686018427387904, 4)}", 8,
         OM_ERR_SHAPE},
        {"{'descr': '<f8', 'fortran_order': False, 'shape': (99999999999, 999999)}", 8,
         OM_ERR_MALFORMED},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (0, 4611686018427387904, 4)}", 0,
         OM_ERR_SHAPE}, // as NumPy refuses it
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        for (int version = 1; version <= 3; version++) {
            unsigned char b[256] = {0x93, 'N', 'U', 'M', 'P', 'Y', (unsigned char)version};
            size_t at = version == 1 ? 10 : 12, n = strlen(rows[i].header);
            b[8] = (unsigned char)n;
            memcpy(b + at, rows[i].header, n);
            om_status st = load_both(b, at + n + rows[i].data);
            if (st != rows[i].want) fail_msg("%s: %s", rows[i].header, om_status_name(st));
        }
    unsigned char b[64] = {0x93, 'N', 'U', 'M', 'P', 'Y', 2, 0, 255, 255, 255, 255};
    assert_int_equal(load_both(b, sizeof b), OM_ERR_LIMIT); // the header's length
    b[6] = 4;
    assert_int_equal(load_both(b, sizeof b), OM_ERR_MALFORMED);
    b[6] = 1, b[7] = 1;
    assert_int_equal(load_both(b, sizeof b), OM_ERR_MALFORMED);
}

static void files_and_arguments_are_refused(void **state) {
    (void)state;
    om_scope s = om_scope_begin();
    om_error e;
    void *p = &e;
    size_t n;
    char missing[80];
    snprintf(missing, sizeof missing, "%s/none/b.npy", folder);
    assert_null(om_npy_load(missing));
    assert_int_equal(om_catch(&e), OM_ERR_IO);
    assert_non_null(strstr(e.message, "none/b.npy"));
    assert_int_equal(om_npy_save(om_scalar_f32(1), missing), OM_ERR_IO);
    om_catch(NULL);
    assert_null(om_npy_load(folder));
    assert_int_equal(om_catch(&e), OM_ERR_IO);
    assert_null(om_npy_load(NULL));
    assert_int_equal(om_catch(&e), OM_ERR_ARG);
    assert_null(om_npy_load_memory(NULL, 4));
    assert_int_equal(om_catch(&e), OM_ERR_ARG);
    assert_int_equal(om_npy_save(NULL, path), OM_ERR_ARG);
    om_catch(NULL);
    assert_int_equal(om_npy_save(om_scalar_f32(1), NULL), OM_ERR_ARG);
    om_catch(NULL);
    assert_int_equal(om_npy_save_memory(NULL, &p, &n), OM_ERR_ARG);
    assert_null(p);
    om_catch(NULL);
    assert_int_equal(om_npy_save_memory(om_scalar_f32(1), NULL, &n), OM_ERR_ARG);
    // Pending: nothing is read or written.
    write_bytes("old", 3);
    assert_null(om_npy_load(path));
    assert_int_equal(om_npy_save(om_scalar_f32(1), path), OM_ERR_ARG);
    struct stat st;
    assert_int_equal(stat(path, &st), 0);
    assert_int_equal(st.st_size, 3);
    om_catch(&e);
    assert_int_equal(e.status, OM_ERR_ARG);
    om_scope_end(s);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        OM_TEST(reads_and_writes_what_numpy_does),       OM_TEST(loaded_tensors_can_be_changed),
        OM_TEST(strided_and_nan_are_saved_plain),        OM_TEST(every_prefix_is_refused),
        OM_TEST(every_flipped_byte_loads_or_is_refused), OM_TEST(misleading_headers),
        OM_TEST(files_and_arguments_are_refused),
    };
    return cmocka_run_group_tests(tests, make_folder, drop_folder);
}
