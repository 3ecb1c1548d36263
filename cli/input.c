/*
 * input.c -- tensors from --input NAME=@FILE.npy | random | zeros | ones | range, with shapes
 * completed from the model and --symbol.
 */
#include "cli/cli.h"

#include <stdlib.h>
#include <string.h>

static int complain(const char *spec, const char *why) {
    fputs("onemodel: --input ", stderr);
    cli_text(stderr, spec);
    fprintf(stderr, ": %s\n", why);
    return EXIT_USAGE;
}

/* Value of a symbol: --symbol, else the smallest allowed size. */
static int64_t symbol_size(const cli_inputs *in, const om_axis_info *a) {
    for (int i = 0; i < in->n_symbols; i++) {
        const char *eq = strchr(in->symbol[i], '=');
        int64_t v;
        if (eq && a->symbol && strlen(a->symbol) == (size_t)(eq - in->symbol[i]) &&
            memcmp(a->symbol, in->symbol[i], (size_t)(eq - in->symbol[i])) == 0 &&
            cli_int(eq + 1, 0, INT64_MAX, &v))
            return v;
    }
    int64_t lo = a->lo > 1 ? a->lo : 1;
    return a->multiple > 1 ? (lo + a->multiple - 1) / a->multiple * a->multiple : lo;
}

/* "1x3x224x224" -> dims; false when it is not that. "" is rank 0. */
static bool parse_shape(const char *s, size_t n, int *rank, int64_t *dims) {
    *rank = 0;
    for (const char *end = s + n; s < end;) {
        char *q;
        long long v = strtoll(s, &q, 10);
        if (q == s || v < 0 || *rank == OM_MAX_RANK) return false;
        dims[(*rank)++] = v;
        if (q < end && *q != 'x') return false;
        s = q + 1;
    }
    return true;
}

typedef struct filler {
    const char *kind;
    int64_t seed;
    int rank;
    int64_t dims[OM_MAX_RANK];
} filler;

/* "random:seed=1,shape=2x3" */
static int parse_filler(const char *spec, const char *text, filler *f) {
    static const char *const kinds[] = {"random", "zeros", "ones", "range"};
    size_t n                         = strcspn(text, ":");
    f->kind                          = NULL;
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
        if (strlen(kinds[i]) == n && memcmp(kinds[i], text, n) == 0) f->kind = kinds[i];
    if (!f->kind) return complain(spec, "write NAME=@FILE.npy, random, zeros, ones or range");
    for (text += n; *text;) {
        text++;
        size_t len = strcspn(text, ",");
        char number[32];
        if (strncmp(text, "seed=", 5) == 0 && len - 5 < sizeof number) {
            memcpy(number, text + 5, len - 5);
            number[len - 5] = 0;
            if (!cli_int(number, 0, INT64_MAX, &f->seed)) return complain(spec, "seed is a number");
        } else if (strncmp(text, "shape=", 6) == 0) {
            if (!parse_shape(text + 6, len - 6, &f->rank, f->dims))
                return complain(spec, "shape is written as 1x3x224x224");
        } else
            return complain(spec, "known are seed=N and shape=AxBxC");
        text += len;
    }
    return 0;
}

static om_tensor *fill(const filler *f, om_dtype t) {
    int64_t n = 1;
    bool fits = true;
    for (int i = 0; i < f->rank; i++)
        fits = fits && !__builtin_mul_overflow(n, f->dims[i], &n);
    // Sizes whose product does not fit are named by the library's own refusal.
    if (!fits || strcmp(f->kind, "zeros") == 0) return om_zeros(t, f->rank, f->dims);
    if (strcmp(f->kind, "ones") == 0) return om_ones(t, f->rank, f->dims);
    if (strcmp(f->kind, "range") == 0)
        return om_cast(om_reshape(om_arange(0, n, 1), f->rank, f->dims), t);
    om_rng g = om_rng_new((uint64_t)f->seed, 3);
    if (t == OM_F32) return om_randn(&g, 0, 1, f->rank, f->dims);
    // Small non-negative numbers: valid as indices of most tables and as any other integer.
    return om_cast(om_randint(&g, 0, 2, f->rank, f->dims), t);
}

/* The file has the last word on shapes; sessions check it. */
static int load(const char *path, om_tensor **out) {
    *out = om_npy_load(path);
    return *out ? 0 : cli_failed(path);
}

static const char *spec_of(const cli_inputs *in, const char *name, const char **value) {
    size_t n = strlen(name);
    for (int i = 0; i < in->n_specs; i++)
        if (strncmp(in->spec[i], name, n) == 0 && in->spec[i][n] == '=') {
            *value = in->spec[i] + n + 1;
            return in->spec[i];
        }
    return NULL;
}

static int check_names(const cli_inputs *in, om_session *s) {
    for (int i = 0; i < in->n_specs; i++) {
        bool found = false;
        for (int k = 0; k < om_session_n_inputs(s); k++) {
            om_value_info v;
            if (om_session_input(s, k, &v) != OM_OK) return cli_failed(NULL);
            size_t n = strlen(v.name);
            found |= strncmp(in->spec[i], v.name, n) == 0 && in->spec[i][n] == '=';
        }
        if (!found)
            return complain(in->spec[i], "the model has no such input; see onemodel inspect");
    }
    for (int i = 0; i < in->n_symbols; i++)
        if (!strchr(in->symbol[i], '='))
            return complain(in->symbol[i], "--symbol is written NAME=SIZE");
    return 0;
}

int cli_make_inputs(const cli_inputs *in, om_session *s, om_binding *out) {
    int code = check_names(in, s);
    for (int k = 0; !code && k < om_session_n_inputs(s); k++) {
        om_value_info v;
        if (om_session_input(s, k, &v) != OM_OK) return cli_failed(NULL);
        filler f = {.kind = "random", .seed = k + 1, .rank = v.rank < 0 ? 0 : v.rank};
        for (int i = 0; i < f.rank; i++)
            f.dims[i] = v.axes[i].size >= 0 ? v.axes[i].size : symbol_size(in, &v.axes[i]);
        const char *value = NULL, *spec = spec_of(in, v.name, &value);
        out[k].name   = v.name;
        out[k].tensor = NULL;
        if (spec && value[0] == '@')
            code = load(value + 1, &out[k].tensor);
        else {
            if (spec) code = parse_filler(spec, value, &f);
            if (!code && !(out[k].tensor = fill(&f, (om_dtype)v.dtype))) code = cli_failed(v.name);
        }
    }
    return code;
}
