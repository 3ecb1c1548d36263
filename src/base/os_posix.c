/*
 * os_posix.c -- see os.h: Linux, the BSDs and macOS.
 */
#include "base/os.h"

#include <locale.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
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

long omi_os_process(void) {
    return (long)getpid();
}

int omi_os_processors(void) {
#if defined(__linux__)
    // The kernel may know more processors than a cpu_set_t holds: larger sets until one is taken.
    for (int n = 1024; n <= 1 << 18; n *= 4) {
        cpu_set_t *set = CPU_ALLOC(n);
        if (!set) break;
        size_t size = CPU_ALLOC_SIZE(n);
        int count   = sched_getaffinity(0, size, set) == 0 ? CPU_COUNT_S(size, set) : 0;
        CPU_FREE(set);
        if (count > 0) return count;
    }
#endif
    long online = sysconf(_SC_NPROCESSORS_ONLN);
    return online < 1 ? 1 : online > 1 << 20 ? 1 << 20 : (int)online;
}

omi_signals omi_os_block_signals(void) {
    static const int own[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGSYS, SIGABRT, SIGPROF};
    sigset_t block, old;
    sigfillset(&block);
    for (size_t i = 0; i < OM_COUNT(own); i++)
        sigdelset(&block, own[i]);
    pthread_sigmask(SIG_SETMASK, &block, &old);
    return old;
}
void omi_os_restore_signals(const omi_signals *old) {
    pthread_sigmask(SIG_SETMASK, old, NULL);
}

static locale_t plain_numbers;
static void make_plain_numbers(void) {
    plain_numbers = newlocale(LC_ALL_MASK, "C", (locale_t)0);
}

/* The C locale is a constant of glibc and of musl. A system that needs memory for it and has none
 * prints that message with the host's decimal point. */
int omi_os_vformat(char *out, size_t n, const char *fmt, va_list ap) {
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, make_plain_numbers);
    locale_t host = plain_numbers ? uselocale(plain_numbers) : (locale_t)0;
    int length    = vsnprintf(out, n, fmt, ap);
    if (host) uselocale(host);
    return length;
}
