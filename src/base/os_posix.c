/*
 * os_posix.c -- see os.h: Linux, the BSDs and macOS.
 */
#include "base/os.h"

#include <time.h>
#include <unistd.h>

uint64_t omi_os_seed(void) {
    uint64_t seed = 0;
    if (getentropy(&seed, sizeof seed) == 0) return seed;
    // Without the system's generator: where this process was loaded, when, and which it is.
    struct timespec t = {0, 0};
    clock_gettime(CLOCK_MONOTONIC, &t);
    seed = (uint64_t)(uintptr_t)&seed ^ (uint64_t)(uintptr_t)&omi_os_seed << 16;
    return seed ^ (uint64_t)t.tv_nsec << 32 ^ (uint64_t)t.tv_sec ^ (uint64_t)getpid() << 48;
}
