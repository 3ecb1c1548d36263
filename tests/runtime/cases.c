/*
 * cases.c -- runs a folder of models in ONNX's backend-test layout through the session.
 *
 *     cases FOLDER [PREFIX]
 *
 * Each sub-folder holds model.onnx and test_data_set_N/{input,output}_K.pb. A model is passed when
 * all outputs agree, refused when loading or creation says OM_ERR_UNSUPPORTED (with the reason),
 * else failed. FOLDER/index.json, where there is one, says what must come out of each ("expect",
 * "tol"). Without the folder the program says so and exits with 77, which ctest counts as skipped.
 */
#include <dirent.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "onemodel/session.h"

#define MAX_IO 64

/* ---- files ----------------------------------------------------------------------------------- */

static unsigned char *read_all(const char *path, size_t *n) {
    FILE *f = fopen(path, "rb");
    if (!f) return NULL;
    fseek(f, 0, SEEK_END);
    *n               = (size_t)ftell(f);
    unsigned char *p = malloc(*n + 1);
    rewind(f);
    *n    = fread(p, 1, *n, f);
    p[*n] = 0;
    fclose(f);
    return p;
}

static uint64_t varint(const unsigned char **p, const unsigned char *end) {
    uint64_t v = 0;
    for (int shift = 0; *p < end && shift < 64; shift += 7) {
        unsigned char b = *(*p)++;
        v |= (uint64_t)(b & 127) << shift;
        if (b < 128) break;
    }
    return v;
}

typedef struct proto {
    char name[256];
    int dtype, rank;
    int64_t dims[OM_MAX_RANK];
    const unsigned char *raw;
    size_t raw_bytes;
    int64_t n, n_typed;
    char *data;  /* elements as om_dtype; NULL for types without kernels */
    char *typed; /* from typed fields */
} proto;

static void add_typed(proto *t, double f, int64_t i, bool is_float) {
    size_t size = om_dtype_size((om_dtype)t->dtype);
    if (!size) return;
    t->typed  = realloc(t->typed, (size_t)(t->n_typed + 1) * size);
    char *to  = t->typed + (size_t)t->n_typed++ * size;
    float f32 = (float)f;
    if (is_float)
        memcpy(to, t->dtype == OM_F64 ? (void *)&f : (void *)&f32, size);
    else
        memcpy(to, &i, size); // little-endian
}

static void typed_field(proto *t, int field, int wire, const unsigned char *p,
                        const unsigned char *end) {
    while (p < end) {
        if (field == 4) {
            float f;
            memcpy(&f, p, 4);
            p += 4;
            add_typed(t, f, 0, true);
        } else if (field == 10) {
            double d;
            memcpy(&d, p, 8);
            p += 8;
            add_typed(t, d, 0, true);
        } else
            add_typed(t, 0, (int64_t)varint(&p, end), false);
    }
    (void)wire;
}

/* TensorProto, two passes: the type may follow the elements. */
static bool read_proto(const char *path, proto *t, unsigned char **keep) {
    size_t n;
    unsigned char *file = read_all(path, &n);
    *keep               = file;
    memset(t, 0, sizeof *t);
    if (!file) return false;
    for (int pass = 0; pass < 2; pass++) {
        const unsigned char *p = file, *end = file + n;
        while (p < end) {
            uint64_t tag = varint(&p, end);
            int field = (int)(tag >> 3), wire = (int)(tag & 7);
            if (wire == 0) {
                uint64_t v = varint(&p, end);
                if (field == 1 && pass == 0 && t->rank < OM_MAX_RANK)
                    t->dims[t->rank++] = (int64_t)v;
                if (field == 2) t->dtype = (int)v;
                if ((field == 5 || field == 7) && pass == 1) add_typed(t, 0, (int64_t)v, false);
            } else if (wire == 2) {
                uint64_t k               = varint(&p, end);
                const unsigned char *sub = p;
                p += k;
                if (p > end) return false;
                if (field == 1 && pass == 0)
                    while (sub < p && t->rank < OM_MAX_RANK)
                        t->dims[t->rank++] = (int64_t)varint(&sub, p);
                if (field == 8)
                    snprintf(t->name, sizeof t->name, "%.*s", (int)k, (const char *)sub);
                if (field == 9) t->raw = sub, t->raw_bytes = k;
                if (pass == 1 && (field == 4 || field == 5 || field == 7 || field == 10))
                    typed_field(t, field, wire, sub, p);
            } else if (wire == 5) {
                if (field == 4 && pass == 1) typed_field(t, 4, wire, p, p + 4);
                p += 4;
            } else if (wire == 1) {
                if (field == 10 && pass == 1) typed_field(t, 10, wire, p, p + 8);
                p += 8;
            } else
                return false;
        }
    }
    t->n = 1;
    for (int i = 0; i < t->rank; i++)
        t->n *= t->dims[i];
    size_t bytes = (size_t)t->n * om_dtype_size((om_dtype)t->dtype);
    t->data      = calloc(bytes + 1, 1);
    if (t->raw && t->raw_bytes == bytes)
        memcpy(t->data, t->raw, bytes);
    else if (t->n_typed == t->n && bytes)
        memcpy(t->data, t->typed, bytes);
    else if (bytes || !om_dtype_size((om_dtype)t->dtype))
        return false;
    return true;
}

static void free_proto(proto *t, unsigned char *file) {
    free(t->data);
    free(t->typed);
    free(file);
}

/* ---- what must come out ---------------------------------------------------------------------- */

typedef struct expectation {
    char what[32];
    double tol;
} expectation;

static expectation expected(const char *index, const char *name) {
    expectation e = {"output", 1e-5};
    char key[300];
    snprintf(key, sizeof key, "\"name\": \"%s\"", name);
    const char *at = index ? strstr(index, key) : NULL;
    if (!at) return e;
    const char *x = strstr(at, "\"expect\": \""), *t = strstr(at, "\"tol\": ");
    if (x) sscanf(x + 11, "%31[a-z_]", e.what);
    if (t) e.tol = strtod(t + 7, NULL) + 1e-6;
    return e;
}

static double element(const void *p, int dtype, int64_t i) {
    switch (dtype) {
    case OM_F32:
        return ((const float *)p)[i];
    case OM_F64:
        return ((const double *)p)[i];
    case OM_I64:
        return (double)((const int64_t *)p)[i];
    case OM_I32:
        return ((const int32_t *)p)[i];
    default:
        return ((const uint8_t *)p)[i];
    }
}

static bool agree(const proto *want, const om_tensor *got, double tol, char *why, size_t n_why) {
    if ((int)om_dtype_of(got) != want->dtype || om_rank(got) != want->rank) {
        snprintf(why, n_why, "type %d rank %d, expected %d and %d", (int)om_dtype_of(got),
                 om_rank(got), want->dtype, want->rank);
        return false;
    }
    for (int k = 0; k < want->rank; k++)
        if (om_dim(got, k) != want->dims[k]) {
            snprintf(why, n_why, "axis %d is %lld, expected %lld", k, (long long)om_dim(got, k),
                     (long long)want->dims[k]);
            return false;
        }
    const void *d = om_data(got);
    for (int64_t i = 0; i < want->n; i++) {
        double a = element(d, want->dtype, i), b = element(want->data, want->dtype, i);
        bool real = want->dtype == OM_F32 || want->dtype == OM_F64;
        if (a == b || (isnan(a) && isnan(b))) continue;
        if (real && fabs(a - b) <= tol + tol * fabs(b)) continue;
        snprintf(why, n_why, "element %lld is %.9g, expected %.9g", (long long)i, a, b);
        return false;
    }
    return true;
}

/* ---- one model ------------------------------------------------------------------------------- */

enum { PASSED, REFUSED, REJECTED, REJECTED_RUN, FAILED };

static int from_error(int otherwise, char *why, size_t n) {
    om_error e;
    om_catch(&e);
    snprintf(why, n, "%s: %s", om_status_name(e.status), e.message);
    return e.status == OM_ERR_UNSUPPORTED ? REFUSED : otherwise;
}

static int run_set(om_session *s, const char *dir, double tol, char *why, size_t n_why) {
    int n_in = om_session_n_inputs(s), n_out = om_session_n_outputs(s), r = PASSED;
    om_binding in[MAX_IO];
    om_tensor *out[MAX_IO] = {0};
    proto t[MAX_IO], want;
    unsigned char *file[MAX_IO] = {0}, *wfile;
    char path[1200];
    if (n_in > MAX_IO || n_out > MAX_IO) return snprintf(why, n_why, "too many ports"), FAILED;
    om_scope scope = om_scope_begin();
    int n          = 0;
    for (; n < n_in; n++) {
        om_value_info v;
        snprintf(path, sizeof path, "%s/input_%d.pb", dir, n);
        if (!read_proto(path, &t[n], &file[n])) {
            snprintf(why, n_why, "input_%d.pb has no elements of a type with kernels", n);
            free_proto(&t[n], file[n]);
            r = REFUSED;
            break;
        }
        om_session_input(s, n, &v);
        in[n] =
            (om_binding){v.name, om_from(t[n].data, (om_dtype)t[n].dtype, t[n].rank, t[n].dims)};
    }
    if (r == PASSED && om_session_run(s, n_in, in, n_out, out) != OM_OK)
        r = from_error(REJECTED_RUN, why, n_why);
    for (int i = 0; r == PASSED && i < n_out; i++) {
        snprintf(path, sizeof path, "%s/output_%d.pb", dir, i);
        if (!read_proto(path, &want, &wfile) || !agree(&want, out[i], tol, why, n_why)) r = FAILED;
        free_proto(&want, wfile);
    }
    for (int i = 0; i < n; i++)
        free_proto(&t[i], file[i]);
    om_scope_end(scope);
    om_catch(NULL);
    return r;
}

static int run_model(const char *dir, double tol, char *why, size_t n_why) {
    char path[1100];
    struct stat st;
    snprintf(path, sizeof path, "%s/model.onnx", dir);
    om_graph *g   = om_graph_load(path, NULL);
    om_session *s = g ? om_session_new(g, NULL) : NULL;
    int r         = s ? PASSED : from_error(REJECTED, why, n_why);
    om_graph_release(g);
    for (int k = 0; s && r == PASSED; k++) {
        snprintf(path, sizeof path, "%s/test_data_set_%d", dir, k);
        if (stat(path, &st) != 0) break;
        r = run_set(s, path, tol, why, n_why);
    }
    om_session_free(s);
    return r;
}

static int by_name(const void *a, const void *b) {
    return strcmp(*(char *const *)a, *(char *const *)b);
}

static bool as_expected(const char *what, int r) {
    bool said_no = r == REFUSED || r == REJECTED;
    if (strcmp(what, "output") == 0) return r == PASSED || r == REFUSED;
    // Sizes that only a run brings can contradict each other only then.
    if (strcmp(what, "reject") == 0) return said_no || r == REJECTED_RUN;
    if (strcmp(what, "reject_run") == 0) return said_no || r == REJECTED_RUN;
    if (strcmp(what, "output_or_reject") == 0) return r == PASSED || said_no;
    return true; // no_crash
}

int main(int argc, char **argv) {
    static const char *const words[] = {"passed", "refused", "rejected", "rejected in the run",
                                        "failed"};
    const char *folder               = argc > 1 ? argv[1] : "../shared/cases/onnx",
               *prefix               = argc > 2 ? argv[2] : "";
    DIR *d                           = opendir(folder);
    if (!d) {
        printf("skipped: there is no folder %s\n", folder);
        return 77;
    }
    char *names[4096], path[1024];
    int n = 0, count[5] = {0}, bad = 0;
    for (struct dirent *e; (e = readdir(d)) && n < 4096;)
        if (e->d_name[0] != '.' && strncmp(e->d_name, prefix, strlen(prefix)) == 0)
            names[n++] = strdup(e->d_name);
    closedir(d);
    qsort(names, (size_t)n, sizeof *names, by_name);
    size_t bytes;
    snprintf(path, sizeof path, "%s/index.json", folder);
    char *index = (char *)read_all(path, &bytes);
    for (int i = 0; i < n; i++) {
        char why[700] = "";
        struct stat st;
        snprintf(path, sizeof path, "%s/%s/model.onnx", folder, names[i]);
        if (stat(path, &st) == 0) {
            expectation e = expected(index, names[i]);
            snprintf(path, sizeof path, "%s/%s", folder, names[i]);
            int r   = run_model(path, e.tol, why, sizeof why);
            bool ok = as_expected(e.what, r);
            count[r]++;
            bad += !ok;
            printf("%s %s: %s%s%s\n", ok ? "ok  " : "FAIL", names[i], words[r], *why ? ": " : "",
                   why);
        }
        free(names[i]);
    }
    free(index);
    om_scope_drain();
    printf(
        "%d passed, %d refused, %d rejected, %d rejected in the run, %d failed; %d not as expected\n",
        count[PASSED], count[REFUSED], count[REJECTED], count[REJECTED_RUN], count[FAILED], bad);
    return bad != 0;
}
