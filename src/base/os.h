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

#include "base/compiler.h"

/* 64 bits that no file can know beforehand: the seed of hash tables. Never fails. */
uint64_t omi_os_seed(void);

#endif
