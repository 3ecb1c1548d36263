/*
 * os_posix_file.c -- see sys.h and os.h: files of Linux, the BSDs and macOS.
 *
 * A file that is being written is held by a lock of the system (flock), which ends with the process
 * whatever ends it. So a process that finds another's temporary file knows whether its writer still
 * lives, also from another container or, where the file system passes locks on, another machine.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/os.h"
#include "base/sys.h"

static int real_open(const char *path, int flags, int mode) {
    return open(path, flags | O_CLOEXEC, mode);
}
static int real_stat(const char *path, struct stat *st) {
    return stat(path, st);
}
static int real_fstat(int fd, struct stat *st) {
    return fstat(fd, st);
}
static void *real_mmap(size_t n, int fd) {
    void *p = mmap(NULL, n, PROT_READ, MAP_PRIVATE, fd, 0);
    return p == MAP_FAILED ? NULL : p;
}
static int real_dup(int fd) {
    return fcntl(fd, F_DUPFD_CLOEXEC, 0);
}

/* Between its creation and the lock somebody else may have taken the file for an abandoned one: he
 * has the lock, or has removed the file already. A file system without locks holds nothing, and
 * then nobody removes anything either. */
static bool real_hold(int fd) {
    struct stat st;
    if (flock(fd, LOCK_EX | LOCK_NB) != 0) return errno != EWOULDBLOCK;
    return fstat(fd, &st) != 0 || st.st_nlink > 0;
}

#define REAL_SYS                                                                                   \
    {                                                                                              \
        .open = real_open, .close = close, .fstat = real_fstat, .stat = real_stat,                 \
        .fchmod = fchmod, .read = read, .write = write, .fsync = fsync, .rename = rename,          \
        .unlink = unlink, .mmap = real_mmap, .munmap = munmap, .dup = real_dup, .hold = real_hold  \
    }
const om_sys omi_sys_real = REAL_SYS;
om_sys omi_sys            = REAL_SYS;

void omi_os_each_name(const char *dir, void (*each)(void *ctx, const char *name), void *ctx) {
    DIR *d = opendir(dir);
    if (!d) return;
    for (struct dirent *e; (e = readdir(d)) != NULL;)
        each(ctx, e->d_name);
    closedir(d);
}

void omi_os_remove_abandoned(const char *path) {
    struct stat st;
    int fd = open(path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    if (fd < 0) return;
    // While the lock is held nobody else removes it, so the path is this file if it has one.
    if (fstat(fd, &st) == 0 && S_ISREG(st.st_mode) && flock(fd, LOCK_EX | LOCK_NB) == 0 &&
        fstat(fd, &st) == 0 && st.st_nlink > 0)
        unlink(path);
    close(fd);
}
