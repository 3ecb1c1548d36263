/*
 * sys.h -- the system calls that touch files, behind one small table.
 *
 * Everything the library does to a file goes through omi_sys, so that a test can make the n-th call
 * fail, write short, or stop the process there, and then look at what is left on the disk. The
 * table is only ever changed by tests, before any thread runs.
 *
 * Needs: nothing.  Used by: file.c, os_posix_file.c, tests.
 */
#ifndef OM_BASE_SYS_H
#define OM_BASE_SYS_H

#include <sys/stat.h>
#include <sys/types.h>

#include "base/compiler.h"

typedef struct om_sys {
    int (*open)(const char *path, int flags, int mode);
    int (*close)(int fd);
    int (*fstat)(int fd, struct stat *st);
    int (*stat)(const char *path, struct stat *st); /* follows links */
    int (*fchmod)(int fd, mode_t mode);
    ssize_t (*read)(int fd, void *p, size_t n);
    ssize_t (*write)(int fd, const void *p, size_t n);
    int (*fsync)(int fd);
    int (*rename)(const char *from, const char *to);
    int (*unlink)(const char *path);
    void *(*mmap)(size_t n, int fd); /* private, read only, from offset 0; NULL: errno */
    int (*munmap)(void *p, size_t n);
    int (*dup)(int fd);
    bool (*hold)(int fd); /* marks a new file as being written; false: it was taken, try another */
} om_sys;

extern om_sys omi_sys;
extern const om_sys omi_sys_real; /* what omi_sys starts as */

#endif
