/*
 * fuzz.h -- what the fuzzers share: a generator of numbers, extreme values, and the parent that
 * watches.
 *
 * A fuzzer is a function that does one thing from one seed and returns whether the outcome was
 * right. fuzz_main runs it over seeds in a child process, so that a crash, a hang or a bloated heap
 * ends with the seed that caused it, which `--one SEED` runs again alone. After a second the parent
 * raises the cancel flag of the child; the step must then end soon, whatever it does.
 *
 *     PROGRAM [--seconds N] [--seed N] [--one SEED]       OM_FUZZ_SECONDS, OM_FUZZ_SEED do the same
 *
 * Needs: POSIX, the public headers.  Used by: tests/fuzz.
 */
#ifndef OM_TESTS_FUZZ_FUZZ_H
#define OM_TESTS_FUZZ_FUZZ_H

#include <stdbool.h>
#include <stdint.h>

typedef struct fuzz_rng {
    uint64_t s;
} fuzz_rng;
uint64_t fuzz_bits(fuzz_rng *g);            /* splitmix64                        */
int64_t fuzz_below(fuzz_rng *g, int64_t n); /* 0 .. n-1                          */
bool fuzz_chance(fuzz_rng *g, int percent);
/* One of -1, 0, 1, 2, 3, 7, 2^15, 2^30, 2^31-1, 2^62, INT64_MIN, INT64_MAX; mostly the small ones.
 */
int64_t fuzz_extreme(fuzz_rng *g);
float fuzz_float(fuzz_rng *g); /* ordinary numbers, and NaN, infinities, denormals, huge ones */

typedef enum fuzz_outcome {
    FUZZ_WRONG,   /* a promise was broken: said on stderr      */
    FUZZ_REFUSED, /* ended with an error of a named kind       */
    FUZZ_RAN      /* computed something                        */
} fuzz_outcome;
typedef fuzz_outcome (*fuzz_step)(uint64_t seed);

/* least_ran: share of steps, in percent, that must end with FUZZ_RAN, so that the fuzzer reaches
 * what it is for. Prints the seed, the counts and "N passed, N failed". Returns the exit code. */
int fuzz_main(int argc, char **argv, const char *name, fuzz_step step, int least_ran);

#endif
