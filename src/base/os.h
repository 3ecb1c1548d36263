/*
 * os.h -- what the library asks of the operating system, beside files (sys.h) (CD-44).
 *
 * One file answers: os_posix.c. Another system is another os_*.c; nothing else in src/ includes a
 * system header for these.
 *
 * Needs: compiler.h.  Used by: base.
 */
#ifndef OM_BASE_OS_H
#define OM_BASE_OS_H

#include <signal.h>
#include <stdarg.h>

#include "base/compiler.h"

typedef sigset_t omi_signals;

/* 64 bits that no file can know beforehand: the seed of hash tables. Never fails. */
uint64_t omi_os_seed(void);

/* This process, for names that no other living process uses. */
long omi_os_process(void);

/* Processors this process may run on (its affinity), at least 1. */
int omi_os_processors(void);

/* Blocks every signal of this thread but those that its own instructions raise, so that a thread
 * created now never runs a handler of the host; and undoes it. */
omi_signals omi_os_block_signals(void);
void omi_os_restore_signals(const omi_signals *old);

/* vsnprintf as in the C locale, whatever the host has set for the process or this thread: a decimal
 * point is a point. */
int omi_os_vformat(char *out, size_t n, const char *fmt, va_list ap) OM_PRINTF(3, 0);

/* Calls each for every name in a directory, "." too; nothing when it cannot be read. */
void omi_os_each_name(const char *dir, void (*each)(void *ctx, const char *name), void *ctx);
/* Removes a regular file that no living process holds (omi_sys.hold); else does nothing. */
void omi_os_remove_abandoned(const char *path);

#endif
