/*
 * test_faults.c -- what fails: memory at the n-th allocation, the system at the n-th call, the
 * process at the n-th call. Afterwards nothing is alive, no descriptor is open, the old file or the
 * new one is there whole, and the second try works.
 */
#include "graph/sample.h"

#include <errno.h>
#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/sys.h"

/* ---- memory ------------------------------------------------------------------------------------
 */

static int allocations, fail_at; /* fail_at 0: never */
static bool fail_on;             /* and every one after */

static void *failing(void *ctx, void *p, size_t old, size_t size, size_t align) {
    (void)ctx;
    if (size == 0) {
        free(p);
        return NULL;
    }
    allocations++;
    if (fail_at && (fail_on ? allocations >= fail_at : allocations == fail_at)) return NULL;
    void *q = NULL;
    if (posix_memalign(&q, align < 16 ? 16 : align, size)) return NULL;
    if (p) {
        memcpy(q, p, old < size ? old : size);
        free(p);
    }
    return q;
}

static void *input;
static size_t input_bytes;
static char dir[] = "/tmp/om-faults-XXXXXX";
static char path[64], path2[64];

/* One scenario: true when it worked. */
typedef bool (*scenario)(void);

static bool try_build(void) {
    om_graph *g = sample_all();
    om_graph_release(g);
    return g != NULL;
}

static bool try_load(void) {
    om_graph *g = om_graph_load_memory(input, input_bytes, NULL);
    om_graph_release(g);
    return g != NULL;
}

static bool try_load_file(void) {
    om_graph *g = om_graph_load(path, NULL);
    om_graph_release(g);
    return g != NULL;
}

static om_graph *subject;

static bool try_save_onnx(void) {
    void *p;
    size_t n;
    if (om_graph_save_onnx_memory(subject, NULL, &p, &n) != OM_OK) return false;
    om_bytes_free(p, n);
    return true;
}

static bool try_save_om(void) {
    void *p;
    size_t n;
    if (om_graph_save_memory(subject, &p, &n) != OM_OK) return false;
    om_bytes_free(p, n);
    return true;
}

static bool try_save_file(void) {
    return om_graph_save(subject, path2) == OM_OK;
}

static int starve(const char *what, scenario run) {
    int injected = 0;
    for (int on = 0; on < 2; on++) {
        fail_on = on;
        for (fail_at = 1;; fail_at++) {
            int64_t before = live_blocks();
            allocations    = 0;
            if (run()) break;
            injected++;
            expect_error(OM_ERR_NOMEM);
            assert_int_equal(live_blocks(), before);
            assert_true(fail_at < 5000);
        }
        fail_at = 0;
        assert_true(run());
    }
    print_message("%s: %d allocations failed\n", what, injected);
    return injected;
}

static void every_allocation_fails(void **state) {
    (void)state;
    om_trim();
    assert_int_equal(om_set_allocator(failing, NULL), OM_OK);
    assert_true(starve("build", try_build) > 40);
    for (int om = 0; om < 2; om++) {
        subject = sample_all();
        assert_int_equal(om ? om_graph_save_memory(subject, &input, &input_bytes)
                            : om_graph_save_onnx_memory(subject, NULL, &input, &input_bytes),
                         OM_OK);
        assert_int_equal(
            om ? om_graph_save(subject, path) : om_graph_save_onnx(subject, path, NULL), OM_OK);
        assert_true(starve(om ? "load .om" : "load .onnx", try_load) > 20);
        assert_true(starve("load file", try_load_file) > 20);
        om_bytes_free(input, input_bytes);
        om_graph_release(subject);
    }
    subject = sample_all();
    assert_true(starve("save .onnx", try_save_onnx) > 5);
    assert_true(starve("save .om", try_save_om) > 20);
    assert_true(starve("save file", try_save_file) > 20);
    om_graph_release(subject);
    assert_int_equal(om_set_allocator(NULL, NULL), OM_OK);
    unlink(path);
    unlink(path2);
}

/* ---- the system --------------------------------------------------------------------------------
 */

enum { FAULT_ERROR, FAULT_DIE, FAULT_ANNOY };
static int sys_calls, sys_fault_at, sys_mode, sys_error;

/* Counts a call; true: it should fail now. */
static bool fault(void) {
    if (++sys_calls != sys_fault_at || sys_mode == FAULT_ANNOY) return false;
    if (sys_mode == FAULT_DIE) _exit(7);
    errno = sys_error;
    return true;
}
/* Every other call is interrupted when annoying. */
static bool interrupted(void) {
    static int k;
    if (sys_mode != FAULT_ANNOY || k++ % 2) return false;
    errno = EINTR;
    return true;
}

static int f_open(const char *p, int flags, int mode) {
    return interrupted() || fault() ? -1 : omi_sys_real.open(p, flags, mode);
}
static int f_close(int fd) {
    bool f = fault();
    int r  = omi_sys_real.close(fd); // the descriptor is gone even when close fails
    if (f) errno = sys_error;
    return f ? -1 : r;
}
static int f_fstat(int fd, struct stat *st) {
    return fault() ? -1 : omi_sys_real.fstat(fd, st);
}
static int f_stat(const char *p, struct stat *st) {
    return fault() ? -1 : omi_sys_real.stat(p, st);
}
static int f_fchmod(int fd, mode_t m) {
    return fault() ? -1 : omi_sys_real.fchmod(fd, m);
}
static ssize_t f_read(int fd, void *p, size_t n) {
    if (interrupted() || fault()) return -1;
    return omi_sys_real.read(fd, p, sys_mode == FAULT_ANNOY && n > 7 ? 7 : n);
}
static ssize_t f_write(int fd, const void *p, size_t n) {
    if (interrupted() || fault()) return -1;
    return omi_sys_real.write(fd, p, sys_mode == FAULT_ANNOY && n > 7 ? 7 : n);
}
static int f_fsync(int fd) {
    return interrupted() || fault() ? -1 : omi_sys_real.fsync(fd);
}
static int f_rename(const char *a, const char *b) {
    return fault() ? -1 : omi_sys_real.rename(a, b);
}
static int f_unlink(const char *p) {
    return fault() ? -1 : omi_sys_real.unlink(p);
}
static void *f_mmap(size_t n, int fd) {
    return fault() ? NULL : omi_sys_real.mmap(n, fd);
}

static int f_dup(int fd) {
    return fault() ? -1 : omi_sys_real.dup(fd);
}
/* A system without locks holds nothing and says that all is well. */
static bool f_hold(int fd) {
    return fault() ? true : omi_sys_real.hold(fd);
}

static void inject(int mode, int at, int error) {
    omi_sys      = (om_sys){.open   = f_open,
                            .close  = f_close,
                            .fstat  = f_fstat,
                            .stat   = f_stat,
                            .fchmod = f_fchmod,
                            .read   = f_read,
                            .write  = f_write,
                            .fsync  = f_fsync,
                            .rename = f_rename,
                            .unlink = f_unlink,
                            .mmap   = f_mmap,
                            .munmap = omi_sys_real.munmap,
                            .dup    = f_dup,
                            .hold   = f_hold};
    sys_mode     = mode;
    sys_fault_at = at;
    sys_error    = error;
    sys_calls    = 0;
}
static void end_inject(void) {
    omi_sys = omi_sys_real;
}

static int count_entries(const char *where) {
    DIR *d = opendir(where);
    int n  = 0;
    assert_non_null(d);
    while (readdir(d))
        n++;
    closedir(d);
    return n;
}
/* Files in the test's folder, without . and .. */
static int files_left(void) {
    return count_entries(dir) - 2;
}
static int descriptors(void) {
    return count_entries("/proc/self/fd");
}

/* 1: the old file (small), 2: the new one (all), 0: neither. */
static int which_file(void) {
    om_graph *g = om_graph_load(path, NULL);
    if (!g) return om_catch(NULL), 0;
    int which = om_graph_n_nodes(g) == 2 ? 1 : 2;
    om_graph_release(g);
    return which;
}

static om_graph *old_graph, *new_graph;

static om_status save_new(bool om) {
    return om ? om_graph_save(new_graph, path) : om_graph_save_onnx(new_graph, path, NULL);
}

static void put_old(void) {
    assert_int_equal(om_graph_save(old_graph, path), OM_OK);
    assert_int_equal(which_file(), 1);
}

static void every_call_of_a_save_fails(void **state) {
    (void)state;
    static const int errors[] = {EIO, ENOSPC, EDQUOT, EACCES, EINVAL};
    int injected = 0, fds = descriptors();
    for (size_t e = 0; e < 5; e++)
        for (int om = 0; om < 2; om++)
            for (int at = 1;; at++) {
                put_old();
                int64_t blocks = live_blocks();
                inject(FAULT_ERROR, at, errors[e]);
                om_status st = save_new(om);
                bool there   = sys_calls >= at;
                end_inject();
                if (st != OM_OK) expect_error(OM_ERR_IO);
                int which = which_file();
                assert_true(which == 2 || (st != OM_OK && which == 1));
                assert_int_equal(files_left(), 1);
                assert_int_equal(descriptors(), fds);
                assert_int_equal(live_blocks(), blocks);
                if (!there) break;
                injected++;
                assert_int_equal(save_new(om), OM_OK); // the second try works
            }
    print_message("%d system calls failed\n", injected);
    assert_true(injected > 80);
}

static void a_full_disk_keeps_the_old_file(void **state) {
    (void)state;
    // Every write of the first save fails, and unlink too: only then a temporary file may stay.
    put_old();
    inject(FAULT_ERROR, 5, ENOSPC); // stat, open, hold, fchmod, write
    assert_int_equal(save_new(true), OM_ERR_IO);
    end_inject();
    assert_non_null(strstr(expect_error(OM_ERR_IO), "No space left"));
    assert_int_equal(which_file(), 1);
    assert_int_equal(files_left(), 1);
}

static void short_writes_and_interrupts(void **state) {
    (void)state;
    for (int om = 0; om < 2; om++) {
        put_old();
        inject(FAULT_ANNOY, 0, 0);
        om_status st      = save_new(om);
        om_load_opts opts = {.struct_size = sizeof opts, .copy = true};
        om_graph *back    = om_graph_load(path, &opts);
        end_inject();
        assert_int_equal(st, OM_OK);
        assert_non_null(back);
        om_graph_release(back);
        assert_int_equal(which_file(), 2);
    }
}

static void every_call_of_a_load_fails(void **state) {
    (void)state;
    int injected = 0, fds = descriptors();
    put_old();
    for (int copy = 0; copy < 2; copy++)
        for (int at = 1;; at++) {
            om_load_opts opts = {.struct_size = sizeof opts, .copy = copy};
            int64_t blocks    = live_blocks();
            inject(FAULT_ERROR, at, EIO);
            om_graph *g = om_graph_load(path, &opts);
            bool there  = sys_calls >= at;
            end_inject();
            if (!g) expect_error(OM_ERR_IO);
            om_graph_release(g);
            assert_int_equal(descriptors(), fds);
            assert_int_equal(live_blocks(), blocks);
            if (!there) break;
            injected++;
        }
    assert_true(injected >= 7);
}

/* A saver that dies at any of its calls leaves the old file or the new one. */
static void a_dying_saver_leaves_a_whole_file(void **state) {
    (void)state;
    int died = 0, old_left = 0, new_left = 0;
    for (int om = 0; om < 2; om++)
        for (int at = 1;; at++) {
            put_old();
            pid_t child = fork();
            assert_true(child >= 0);
            if (child == 0) {
                inject(FAULT_DIE, at, 0);
                _exit(save_new(om) == OM_OK ? 0 : 1);
            }
            int status = 0;
            assert_int_equal(waitpid(child, &status, 0), child);
            assert_true(WIFEXITED(status));
            int which = which_file();
            assert_int_not_equal(which, 0);
            if (WEXITSTATUS(status) == 0) {
                assert_int_equal(which, 2);
                break;
            }
            assert_int_equal(WEXITSTATUS(status), 7);
            died++;
            old_left += which == 1;
            new_left += which == 2;
            DIR *d = opendir(dir); // the temporary file of the dead one
            for (struct dirent *f; (f = readdir(d));)
                if (strstr(f->d_name, ".tmp")) unlinkat(dirfd(d), f->d_name, 0);
            closedir(d);
        }
    print_message("%d deaths: %d left the old file, %d the new one\n", died, old_left, new_left);
    assert_true(died >= 16 && old_left > 0 && new_left > 0);
}

/* 18: in copy mode a file that changes its size is noticed. */
static off_t wrong_size;
static int lying_fstat(int fd, struct stat *st) {
    int r = omi_sys_real.fstat(fd, st);
    st->st_size += wrong_size;
    return r;
}

static void a_file_that_grows_or_shrinks(void **state) {
    (void)state;
    put_old();
    for (wrong_size = -1; wrong_size <= 1; wrong_size += 2) {
        om_load_opts opts = {.struct_size = sizeof opts, .copy = true};
        omi_sys.fstat     = lying_fstat;
        om_graph *g       = om_graph_load(path, &opts);
        end_inject();
        assert_null(g);
        assert_non_null(strstr(expect_error(OM_ERR_IO), "size changed"));
    }
}

static int make_dir(void **state) {
    (void)state;
    if (!mkdtemp(dir)) return 1;
    snprintf(path, sizeof path, "%s/model", dir);
    snprintf(path2, sizeof path2, "%s/other", dir);
    return 0;
}

static int make_graphs(void **state) {
    (void)state;
    old_graph = sample_small();
    new_graph = sample_all();
    return old_graph && new_graph ? 0 : 1;
}

static int drop_graphs(void **state) {
    (void)state;
    om_graph_release(old_graph);
    om_graph_release(new_graph);
    end_inject();
    return 0;
}

static int drop_dir(void **state) {
    (void)state;
    unlink(path);
    unlink(path2);
    return rmdir(dir);
}

#define SYS_TEST(fn) cmocka_unit_test_setup_teardown(fn, make_graphs, drop_graphs)

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_allocation_fails), SYS_TEST(every_call_of_a_save_fails),
        SYS_TEST(a_full_disk_keeps_the_old_file), SYS_TEST(short_writes_and_interrupts),
        SYS_TEST(every_call_of_a_load_fails),     SYS_TEST(a_dying_saver_leaves_a_whole_file),
        SYS_TEST(a_file_that_grows_or_shrinks),
    };
    return cmocka_run_group_tests(tests, make_dir, drop_dir);
}
