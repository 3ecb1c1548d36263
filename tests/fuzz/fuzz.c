/*
 * fuzz.c -- seeds, extreme values and the watching parent (fuzz.h).
 */
#include "fuzz/fuzz.h"

#include <math.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "onemodel/base.h"

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#    define SLOW 4
#elif defined(__has_feature)
#    if __has_feature(address_sanitizer)
#        define SLOW 4
#    endif
#endif
#ifndef SLOW
#    define SLOW 1
#endif

enum {
    CANCEL_AFTER_MS = 1000,
    HANG_AFTER_MS   = 8000 * SLOW,
    RSS_LIMIT_MB    = 512 + 1024 * (SLOW > 1)
};

uint64_t fuzz_bits(fuzz_rng *g) {
    uint64_t z = g->s += 0x9e3779b97f4a7c15u;
    z          = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    z          = (z ^ z >> 27) * 0x94d049bb133111ebu;
    return z ^ z >> 31;
}

int64_t fuzz_below(fuzz_rng *g, int64_t n) {
    return (int64_t)(fuzz_bits(g) % (uint64_t)n);
}

bool fuzz_chance(fuzz_rng *g, int percent) {
    return fuzz_below(g, 100) < percent;
}

int64_t fuzz_extreme(fuzz_rng *g) {
    static const int64_t small[] = {-1, 0, 1, 1, 2, 2, 3, 7},
                         large[] = {1 << 15,          1 << 30,   INT32_MAX,
                                    (int64_t)1 << 62, INT64_MIN, INT64_MAX};
    return fuzz_chance(g, 85) ? small[fuzz_below(g, 8)] : large[fuzz_below(g, 6)];
}

float fuzz_float(fuzz_rng *g) {
    static const float odd[] = {NAN, INFINITY, -INFINITY, 0.0f, -0.0f, 1e-40f, 3e38f, -3e38f};
    if (fuzz_chance(g, 10)) return odd[fuzz_below(g, 8)];
    return (float)((double)fuzz_below(g, 1 << 20) / (1 << 18) - 2.0);
}

/* What child and parent both see. */
typedef struct shared {
    _Atomic uint64_t steps, seed;
    _Atomic uint64_t ran, refused, wrong;
    om_cancel cancel;
} shared;

static uint64_t seed_of(uint64_t first, uint64_t i) {
    fuzz_rng g = {first + i * 0x2545f4914f6cdd1du};
    return fuzz_bits(&g);
}

static double now_ms(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e3 + (double)t.tv_nsec / 1e6;
}

static void child(shared *s, fuzz_step step, uint64_t first, uint64_t from, double until) {
    om_set_memory_limit(256 << 20);
    for (uint64_t i = from; now_ms() < until; i++) {
        atomic_store(&s->seed, seed_of(first, i));
        s->cancel.raised = 0;
        om_set_cancel(&s->cancel);
        fuzz_outcome o = step(seed_of(first, i));
        om_set_cancel(NULL);
        atomic_fetch_add(o == FUZZ_RAN ? &s->ran : o == FUZZ_REFUSED ? &s->refused : &s->wrong, 1);
        atomic_fetch_add(&s->steps, 1);
        if (o == FUZZ_WRONG) _exit(3);
    }
    _exit(0);
}

/* Waits for the child; kills it when one step takes too long. */
static const char *watch(shared *s, pid_t pid, int *status, struct rusage *use) {
    uint64_t last = atomic_load(&s->steps);
    double since  = now_ms();
    while (wait4(pid, status, WNOHANG, use) == 0) {
        uint64_t n = atomic_load(&s->steps);
        double t   = now_ms();
        if (n != last) last = n, since = t;
        if (t - since > CANCEL_AFTER_MS) s->cancel.raised = 1;
        if (t - since > HANG_AFTER_MS) {
            kill(pid, SIGKILL);
            wait4(pid, status, 0, use);
            return "did not end after its cancel flag was raised";
        }
        nanosleep(&(struct timespec){.tv_nsec = 20000000}, NULL);
    }
    if (WIFSIGNALED(*status)) return "was killed by a signal";
    if (WEXITSTATUS(*status)) return "ended wrongly";
    if (use->ru_maxrss / 1024 > RSS_LIMIT_MB) return "held more memory than its limit allows";
    return NULL;
}

int fuzz_main(int argc, char **argv, const char *name, fuzz_step step, int least_ran) {
    const char *e = getenv("OM_FUZZ_SECONDS"), *f = getenv("OM_FUZZ_SEED");
    double seconds = e ? atof(e) : 3;
    uint64_t first = f ? strtoull(f, NULL, 0) : (uint64_t)time(NULL) ^ (uint64_t)getpid() << 32;
    for (int i = 1; i + 1 < argc; i += 2) {
        if (strcmp(argv[i], "--one") == 0)
            return step(strtoull(argv[i + 1], NULL, 0)) == FUZZ_WRONG;
        if (strcmp(argv[i], "--seconds") == 0) seconds = atof(argv[i + 1]);
        if (strcmp(argv[i], "--seed") == 0) first = strtoull(argv[i + 1], NULL, 0);
    }
    shared *s = mmap(NULL, sizeof *s, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (s == MAP_FAILED) return 2;
    printf("%s: seed %llu, %.0f s\n", name, (unsigned long long)first, seconds);
    fflush(stdout);
    int failed = 0, status;
    pid_t pid  = fork();
    if (pid == 0) child(s, step, first, 0, now_ms() + seconds * 1e3);
    struct rusage use;
    const char *bad = watch(s, pid, &status, &use);
    if (bad) {
        printf("FAIL %s --one %llu: %s (status %#x, %ld MB)\n", name, (unsigned long long)s->seed,
               bad, status, use.ru_maxrss / 1024);
        failed++;
    }
    unsigned long long n = s->steps, ran = s->ran;
    printf("%s: %llu steps, %llu ran, %llu refused; peak %ld MB\n", name, n, ran,
           (unsigned long long)s->refused, use.ru_maxrss / 1024);
    if (!failed && (n == 0 || ran * 100 < n * (unsigned)least_ran)) {
        printf(
            "FAIL %s: fewer than %d in a hundred ran: the fuzzer does not reach what it is for\n",
            name, least_ran);
        failed++;
    }
    printf("%d passed, %d failed\n", 1 - failed, failed);
    return failed;
}
