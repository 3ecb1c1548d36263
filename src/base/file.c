/*
 * file.c -- see file.h.
 */
#include "base/file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#include "base/os.h"
#include "base/sys.h"
#include "base/utf8.h"

#define HOLD 65536
/* Linux moves at most 0x7ffff000 bytes a call; less keeps a write interruptible. */
#define CHUNK ((size_t)1 << 28)

/* Raises OM_ERR_IO: "cannot open 'x.onnx': No such file or directory". */
static om_status io_fail(const char *what, const char *path, int err) {
    char name[160];
    omi_escape_buf(name, sizeof name, path, strlen(path));
    // strerror of glibc (since 2.32) and musl is safe in threads.
    return omi_fail(OM_ERR_IO, "cannot %s '%s': %s", what, name, strerror(err));
}

static int open_retry(const char *path, int flags, int mode) {
    int fd;
    do
        fd = omi_sys.open(path, flags, mode);
    while (fd < 0 && errno == EINTR);
    return fd;
}

/* Reads exactly n bytes, or fewer at the end of the file; -1: error, errno set. */
static ssize_t read_all(int fd, uint8_t *p, size_t n) {
    size_t got = 0;
    while (got < n) {
        ssize_t k = omi_sys.read(fd, p + got, n - got < CHUNK ? n - got : CHUNK);
        if (k < 0 && errno == EINTR) continue;
        if (k < 0) return -1;
        if (k == 0) break;
        got += (size_t)k;
    }
    return (ssize_t)got;
}

static void unmap_file(void *ctx, void *data) {
    om_buffer *b = ctx;
    omi_sys.munmap(data, b->bytes);
}

static om_buffer *map_file(const char *path, int fd, size_t n) {
    om_buffer *b = omi_buffer_wrap(NULL, 0, OM_BUF_MAPPED, NULL, NULL);
    if (!b) return NULL;
    void *p;
    do
        p = omi_sys.mmap(n, fd);
    while (!p && errno == EINTR);
    if (!p) {
        int err = errno;
        omi_buffer_release(b);
        io_fail("map", path, err);
        return NULL;
    }
    b->data    = p;
    b->bytes   = n;
    b->free_fn = unmap_file;
    b->ctx     = b;
    return b;
}

static om_buffer *copy_file(const char *path, int fd, size_t n) {
    om_buffer *b = omi_buffer_new(n);
    if (!b) return NULL;
    uint8_t more;
    ssize_t got = read_all(fd, b->data, n);
    ssize_t end = got < 0 ? -1 : read_all(fd, &more, 1);
    if (end < 0)
        io_fail("read", path, errno);
    else if ((size_t)got != n || end != 0) {
        // A size of 0 with bytes behind it is /proc, /sys and the like; else another process
        // writes.
        char name[160];
        omi_escape_buf(name, sizeof name, path, strlen(path));
        omi_fail(OM_ERR_IO, "cannot read '%s': %s", name,
                 n == 0 ? "it is not an ordinary file (its size is unknown)"
                        : "its size changed while it was read");
    } else
        return b;
    omi_buffer_release(b);
    return NULL;
}

om_buffer *omi_file_read(const char *path, bool copy) {
    // O_NONBLOCK: opening a FIFO must not wait for a writer.
    int fd = open_retry(path, O_RDONLY | O_NONBLOCK | O_NOCTTY, 0);
    if (fd < 0) {
        io_fail("open", path, errno);
        return NULL;
    }
    struct stat st;
    om_buffer *b = NULL;
    int bad;
    do
        bad = omi_sys.fstat(fd, &st);
    while (bad != 0 && errno == EINTR); // no system says so today, FUSE file systems may
    if (bad != 0)
        io_fail("read", path, errno);
    else if (!S_ISREG(st.st_mode)) {
        char name[160];
        omi_escape_buf(name, sizeof name, path, strlen(path));
        omi_fail(OM_ERR_IO, "cannot read '%s': it is not a regular file", name);
    } else if ((uint64_t)st.st_size > SIZE_MAX / 2)
        io_fail("read", path, EFBIG);
    else if (copy || st.st_size == 0)
        b = copy_file(path, fd, (size_t)st.st_size);
    else
        b = map_file(path, fd, (size_t)st.st_size);
    omi_sys.close(fd);
    return b;
}

/* ---- saving ------------------------------------------------------------------------------------
 */

static om_status write_all(om_save *s, const uint8_t *p, size_t n) {
    while (n) {
        ssize_t k = omi_sys.write(s->fd, p, n < CHUNK ? n : CHUNK);
        if (k < 0 && errno == EINTR) continue;
        if (k <= 0) return io_fail("write", s->path, k < 0 ? errno : ENOSPC);
        p += k;
        n -= (size_t)k;
    }
    return OM_OK;
}

static om_status flush_hold(om_save *s) {
    om_status st = write_all(s, s->hold, s->n_hold);
    s->n_hold    = 0;
    return st;
}

static om_status save_write(om_sink *sink, const void *p, size_t n) {
    om_save *s = (om_save *)sink;
    if (n > HOLD - s->n_hold) OM_TRY(flush_hold(s));
    if (n >= HOLD) return write_all(s, p, n);
    memcpy(s->hold + s->n_hold, p, n);
    s->n_hold += n;
    return OM_OK;
}

static void drop_save(om_save *s) {
    if (s->fd >= 0) omi_sys.close(s->fd);
    if (s->held >= 0) omi_sys.close(s->held);
    omi_free(s->temp, s->temp_size);
    omi_free(s->hold, HOLD);
    *s = (om_save){.fd = -1, .held = -1};
}

/* What follows the name of a file in those of its temporaries: ".<pid>-<k>.tmp". */
static bool is_temp_suffix(const char *s) {
    static const char digits[] = "0123456789";
    size_t pid                 = *s == '.' ? strspn(s + 1, digits) : 0, k;
    if (!pid || pid > 20 || s[1 + pid] != '-') return false;
    s += 2 + pid;
    k = strspn(s, digits);
    return k && k <= 10 && strcmp(s + k, ".tmp") == 0;
}

static void remove_one_stale(void *ctx, const char *name) {
    om_save *s        = ctx;
    const char *slash = strrchr(s->path, '/'), *base = slash ? slash + 1 : s->path;
    size_t n = strlen(base);
    if (strncmp(name, base, n) != 0 || !is_temp_suffix(name + n)) return;
    snprintf(s->temp, s->temp_size, "%s%s", s->path, name + n);
    omi_os_remove_abandoned(s->temp);
}

/* Savers of this path that were killed left theirs behind. Nothing here is worth an error. */
static void remove_stale(om_save *s) {
    const char *slash = strrchr(s->path, '/');
    size_t n          = slash ? (size_t)(slash - s->path) + 1 : 0;
    memcpy(s->temp, s->path, n);
    memcpy(s->temp + n, ".", 2); // "folder/."
    omi_os_each_name(s->temp, remove_one_stale, s);
}

/* Opens "<path>.<pid>-<k>.tmp" for the first k that is free, and holds it. */
static om_status open_temp(om_save *s, int mode) {
    static _Atomic uint32_t serial;
    for (int tries = 0; tries < 100; tries++) {
        snprintf(s->temp, s->temp_size, "%s.%ld-%u.tmp", s->path, omi_os_process(),
                 (unsigned)atomic_fetch_add(&serial, 1));
        s->fd = open_retry(s->temp, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW, mode);
        if (s->fd >= 0 && omi_sys.hold(s->fd)) return OM_OK;
        if (s->fd < 0 && errno != EEXIST) break;
        if (s->fd >= 0) omi_sys.close(s->fd);
        s->fd = -1;
        errno = EEXIST;
    }
    return io_fail("create a file beside", s->path, errno);
}

om_status omi_save_begin(om_save *s, const char *path) {
    *s = (om_save){.sink = {.write = save_write}, .fd = -1, .held = -1, .path = path};
    struct stat st;
    bool there = omi_sys.stat(path, &st) == 0;
    if (!there && errno != ENOENT) return io_fail("save", path, errno);
    if (there && !S_ISREG(st.st_mode)) {
        char name[160];
        omi_escape_buf(name, sizeof name, path, strlen(path));
        return omi_fail(OM_ERR_IO, "cannot save '%s': it is not a regular file", name);
    }
    s->temp_size = strlen(path) + 48;
    s->temp      = omi_alloc(s->temp_size);
    s->hold      = s->temp ? omi_alloc(HOLD) : NULL;
    if (s->hold) remove_stale(s);
    om_status err = s->hold ? open_temp(s, 0666) : om_pending();
    // Keeps who may read the old file; a failure here is no reason not to save.
    if (err == OM_OK && there) (void)!omi_sys.fchmod(s->fd, st.st_mode & 0777);
    if (err != OM_OK) drop_save(s);
    return err;
}

void omi_save_abort(om_save *s) {
    if (s->fd < 0) return;
    omi_sys.close(s->fd);
    s->fd = -1;
    omi_sys.unlink(s->temp);
    drop_save(s);
}

static om_status sync_retry(int fd) {
    int r;
    do
        r = omi_sys.fsync(fd);
    while (r != 0 && errno == EINTR);
    return r == 0 ? OM_OK : OM_ERR_IO;
}

/* Makes the rename itself last. File systems that cannot sync a directory say EINVAL. */
static om_status sync_dir(om_save *s) {
    char *slash = strrchr(s->temp, '/');
    if (slash) slash[slash == s->temp] = 0; // keeps the root's own slash
    const char *dir = slash ? s->temp : ".";
    int fd          = open_retry(dir, O_RDONLY | O_DIRECTORY, 0);
    if (fd < 0 && errno == EACCES) return OM_OK; // a directory that may be written but not read
    if (fd < 0) return io_fail("sync the directory of", s->path, errno);
    om_status st = sync_retry(fd);
    if (st != OM_OK)
        st = errno == EINVAL || errno == EROFS ? OM_OK
                                               : io_fail("sync the directory of", s->path, errno);
    omi_sys.close(fd);
    return st;
}

om_status omi_save_commit(om_save *s) {
    om_status st = s->sink.status;
    if (st == OM_OK) st = flush_hold(s);
    if (st == OM_OK && sync_retry(s->fd) != OM_OK) st = io_fail("sync", s->path, errno);
    if (st != OM_OK) {
        omi_save_abort(s);
        return st;
    }
    s->held    = omi_sys.dup(s->fd);   // it stays ours until it is renamed
    int closed = omi_sys.close(s->fd); // NFS reports late write errors here
    s->fd      = -1;
    if (closed != 0 && errno != EINTR)
        st = io_fail("close", s->path, errno);
    else if (omi_sys.rename(s->temp, s->path) != 0)
        st = io_fail("rename a file to", s->path, errno);
    if (st != OM_OK)
        omi_sys.unlink(s->temp);
    else
        st = sync_dir(s);
    drop_save(s);
    return st;
}
