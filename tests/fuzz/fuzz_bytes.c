/*
 * fuzz_bytes.c -- the readers of bytes.c without libFuzzer: every file of the kept corpus, then
 * mutations of its files (flipped bits, changed bytes and varints, cut, doubled and spliced pieces)
 * until the time is up.
 */
#include "fuzz/bytes.h"
#include "fuzz/fuzz.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_FILES = 256, MAX_BYTES = 1 << 16 };
static struct {
    uint8_t *v;
    size_t n;
} file[MAX_FILES];
static int n_files;

static void read_corpus(void) {
    char path[512];
    snprintf(path, sizeof path, "tests/fuzz/corpus/%s", fuzz_bytes_name);
    DIR *d = opendir(path);
    for (struct dirent *e; d && n_files < MAX_FILES && (e = readdir(d));) {
        char name[800];
        snprintf(name, sizeof name, "%s/%s", path, e->d_name);
        FILE *f = e->d_name[0] == '.' ? NULL : fopen(name, "rb");
        if (!f) continue;
        file[n_files].v = malloc(MAX_BYTES);
        if (file[n_files].v) file[n_files].n = fread(file[n_files].v, 1, MAX_BYTES, f), n_files++;
        fclose(f);
    }
    if (d) closedir(d);
}

static size_t mutate(fuzz_rng *g, uint8_t *p, size_t n) {
    static const uint8_t odd[] = {0, 1, 0x7f, 0x80, 0xff, 0x10, 0x40, 0xfe};
    size_t at = n ? (size_t)fuzz_below(g, (int64_t)n) : 0, k = 1 + (size_t)fuzz_below(g, 16);
    switch (fuzz_below(g, 6)) {
    case 0:
        if (n) p[at] ^= (uint8_t)(1 << fuzz_below(g, 8));
        return n;
    case 1:
        if (n) p[at] = odd[fuzz_below(g, 8)];
        return n;
    case 2:
        return at;
    case 3: // a piece again
        if (at + 2 * k > n || n + k > MAX_BYTES) return n;
        memmove(p + at + k, p + at, n - at);
        return n + k;
    case 4: // a piece away
        if (at + k > n) return n;
        memmove(p + at, p + at + k, n - at - k);
        return n - k;
    default:
        for (size_t i = at; i < n && i < at + k; i++)
            p[i] = (uint8_t)fuzz_bits(g);
        return n;
    }
}

static fuzz_outcome step(uint64_t seed) {
    static uint8_t work[MAX_BYTES];
    fuzz_rng g = {seed};
    int k = (int)fuzz_below(&g, n_files), other = (int)fuzz_below(&g, n_files);
    size_t n = file[k].n;
    memcpy(work, file[k].v, n);
    if (fuzz_chance(&g, 20)) { // the end of another file
        size_t cut = n ? (size_t)fuzz_below(&g, (int64_t)n) : 0;
        if (cut < file[other].n)
            memcpy(work + cut, file[other].v + cut, file[other].n - cut), n = file[other].n;
    }
    for (int64_t i = fuzz_below(&g, 4); i > 0; i--)
        n = mutate(&g, work, n);
    LLVMFuzzerTestOneInput(work, n);
    return FUZZ_RAN;
}

int main(int argc, char **argv) {
    char name[32];
    read_corpus();
    if (n_files == 0) {
        printf("FAIL: no corpus tests/fuzz/corpus/%s\n0 passed, 1 failed\n", fuzz_bytes_name);
        return 1;
    }
    for (int i = 0; i < n_files; i++)
        LLVMFuzzerTestOneInput(file[i].v, file[i].n);
    snprintf(name, sizeof name, "fuzz_%s", fuzz_bytes_name);
    return fuzz_main(argc, argv, name, step, 100);
}
