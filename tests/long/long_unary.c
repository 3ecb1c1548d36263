/*
 * long_unary.c -- the correctly rounded functions over all 2^32 float32 inputs (AR-5.1).
 *
 *     long_unary [-c column] [-s state-file] [function...]
 *
 * Prints one hash per function and column, and fails when it is not the one of
 * docs/arithmetic.md 5.1, which was found with every result checked against quadruple precision.
 * The hash runs over canonical result bits in input order, so it is sequential; with -s the state
 * is saved after each of 256 chunks and a later call goes on from there.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/table.h"

#define CHUNKS 256
#define PIECE  65536

static const struct {
    const char *name;
    uint64_t hash;
} functions[] = {{"exp", 0x492172d89d1dbde8u},  {"log", 0x2caa78b72001ae0bu},
                 {"tanh", 0xa7ed7c37b9acc397u}, {"sigmoid", 0xc7d5dff7072fbb56u},
                 {"erf", 0xe108bd38442fdf1fu},  {"gelu", 0xadb6945359054506u},
                 {"sin", 0x94b0bfbf4e167a23u},  {"cos", 0x5af2b1c5ebc01a7fu}};

typedef void (*map_fn)(int64_t, const float *, float *);

static map_fn entry(const om_kernels *k, size_t f) {
    const map_fn fns[] = {k->exp_f32, k->log_f32,  k->tanh_f32, k->sigmoid_f32,
                          k->erf_f32, k->gelu_f32, k->sin_f32,  k->cos_f32};
    return fns[f];
}

static uint64_t run_chunk(map_fn fn, int chunk, uint64_t h) {
    static float x[PIECE], y[PIECE];
    uint64_t per = ((uint64_t)1 << 32) / CHUNKS, begin = per * (uint64_t)chunk;
    for (uint64_t b = begin; b < begin + per; b += PIECE) {
        for (uint32_t i = 0; i < PIECE; i++) {
            uint32_t u = (uint32_t)b + i;
            memcpy(&x[i], &u, 4);
        }
        fn(PIECE, x, y);
        for (int i = 0; i < PIECE; i++) {
            uint32_t u;
            memcpy(&u, &y[i], 4);
            if ((u & 0x7fffffffu) > 0x7f800000u) u = 0x7fc00000u;
            h = (h ^ u) * 1099511628211u;
        }
    }
    return h;
}

static void load_state(const char *path, const char *key, int *chunk, uint64_t *h) {
    char name[64];
    int c;
    unsigned long long v;
    FILE *f = path ? fopen(path, "r") : NULL;
    if (!f) return;
    while (fscanf(f, "%63s %d %llx", name, &c, &v) == 3)
        if (strcmp(name, key) == 0) *chunk = c, *h = v;
    fclose(f);
}
static void save_state(const char *path, const char *key, int chunk, uint64_t h) {
    FILE *f = path ? fopen(path, "a") : NULL;
    if (!f) return;
    fprintf(f, "%s %d %llx\n", key, chunk, (unsigned long long)h);
    fclose(f);
}

static int run_function(const om_kernels *k, size_t f, const char *path) {
    char key[64];
    int chunk  = 0;
    uint64_t h = 1469598103934665603u;
    snprintf(key, sizeof key, "%s/%s", functions[f].name, k->name);
    load_state(path, key, &chunk, &h);
    for (; chunk < CHUNKS; chunk++) {
        h = run_chunk(entry(k, f), chunk, h);
        save_state(path, key, chunk + 1, h);
    }
    bool good = h == functions[f].hash;
    printf("%-16s %016llx %s\n", key, (unsigned long long)h, good ? "ok" : "WRONG");
    fflush(stdout);
    return good ? 0 : 1;
}

int main(int argc, char **argv) {
    const char *path = NULL, *column = NULL;
    int bad = 0, i = 1;
    for (; i + 1 < argc && argv[i][0] == '-'; i += 2) {
        if (strcmp(argv[i], "-s") == 0) path = argv[i + 1];
        if (strcmp(argv[i], "-c") == 0) column = argv[i + 1];
    }
    for (int c = 0; c < OM_COL_COUNT; c++) {
        const om_kernels *k = omi_kernels_of((om_column)c);
        if (!k || (column ? strcmp(column, k->name) != 0 : k != omi_kernels())) continue;
        for (size_t f = 0; f < sizeof functions / sizeof *functions; f++) {
            bool wanted = i == argc;
            for (int a = i; a < argc; a++)
                wanted = wanted || strcmp(argv[a], functions[f].name) == 0;
            if (wanted) bad |= run_function(k, f, path);
        }
    }
    return bad;
}
