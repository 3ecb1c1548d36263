/*
 * test_saves.c -- what savers leave beside a file, and in which order they reach the disk.
 */
#include "graph/sample.h"

#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/file.h"
#include "base/sys.h"

static char dir[] = "/tmp/om-saves-XXXXXX", path[64];

static int make_dir(void **state) {
    (void)state;
    if (!mkdtemp(dir)) return 1;
    snprintf(path, sizeof path, "%s/model.om", dir);
    return 0;
}
static int drop_dir(void **state) {
    (void)state;
    unlink(path);
    return rmdir(dir);
}

static int temporaries(void) {
    DIR *d = opendir(dir);
    int n  = 0;
    assert_non_null(d);
    for (struct dirent *e; (e = readdir(d)) != NULL;)
        n += strstr(e->d_name, ".tmp") != NULL;
    closedir(d);
    return n;
}

static om_status save_small(void) {
    om_graph *g  = sample_small();
    om_status st = om_graph_save(g, path);
    om_graph_release(g);
    return st;
}

/* ---- savers that were killed, and others that live ---------------------------------------------
 */

static int die_at; /* which of the calls below kills the process */
static void die(int call) {
    if (call == die_at) raise(SIGKILL);
}
static ssize_t deadly_write(int fd, const void *p, size_t n) {
    die(0);
    return omi_sys_real.write(fd, p, n);
}
static int deadly_fsync(int fd) {
    die(1);
    return omi_sys_real.fsync(fd);
}
static int deadly_rename(const char *from, const char *to) {
    die(2);
    return omi_sys_real.rename(from, to);
}

static void what_a_killed_saver_left_is_removed(void **state) {
    (void)state;
    for (int i = 0; i < 20; i++) {
        pid_t child = fork();
        assert_true(child >= 0);
        if (child == 0) {
            die_at         = i % 3;
            omi_sys.write  = deadly_write;
            omi_sys.fsync  = deadly_fsync;
            omi_sys.rename = deadly_rename;
            _exit(save_small() == OM_OK ? 0 : 1);
        }
        int status;
        assert_int_equal(waitpid(child, &status, 0), child);
        assert_true(WIFSIGNALED(status));
        assert_int_equal(temporaries(), 1); // and not those of the savers before
    }
    assert_int_equal(save_small(), OM_OK);
    assert_int_equal(temporaries(), 0);
    om_graph *g = om_graph_load(path, NULL);
    assert_non_null(g);
    om_graph_release(g);
}

static int here[2], go_on[2];
/* Says that all is written, and waits before the rename. */
static int slow_rename(const char *from, const char *to) {
    char c = 'x';
    if (write(here[1], &c, 1) != 1 || read(go_on[0], &c, 1) != 1) _exit(9);
    return omi_sys_real.rename(from, to);
}

static void what_a_living_saver_writes_stays(void **state) {
    (void)state;
    assert_int_equal(pipe(here) | pipe(go_on), 0);
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        close(go_on[1]); // when the parent fails and ends, the wait does too
        omi_sys.rename = slow_rename;
        _exit(save_small() == OM_OK ? 0 : 1);
    }
    char c;
    assert_int_equal(read(here[0], &c, 1), 1);
    assert_int_equal(temporaries(), 1);
    assert_int_equal(save_small(), OM_OK);
    assert_int_equal(temporaries(), 1);
    assert_int_equal(write(go_on[1], &c, 1), 1);
    int status;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    assert_int_equal(temporaries(), 0);
    for (int i = 0; i < 2; i++) {
        close(here[i]);
        close(go_on[i]);
    }
}

static void two_savers_of_one_process(void **state) {
    (void)state;
    om_save a, b;
    assert_int_equal(omi_save_begin(&a, path), OM_OK);
    assert_int_equal(omi_save_begin(&b, path), OM_OK);
    assert_int_equal(temporaries(), 2);
    assert_int_equal(save_small(), OM_OK);
    assert_int_equal(temporaries(), 2);
    assert_int_equal(a.sink.write(&a.sink, "a", 1), OM_OK);
    assert_int_equal(omi_save_commit(&a), OM_OK);
    omi_save_abort(&b);
    assert_int_equal(temporaries(), 0);
}

static void files_of_others_stay(void **state) {
    (void)state;
    static const char *const names[] = {
        "model.om.tmp",        "model.om.12-3.tmp.txt", "model.om.12.tmp",  "model.om.x-1.tmp",
        "model.om.99999-.tmp", "model.omx.99999-1.tmp", "other.99999-1.tmp"};
    char name[128];
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        snprintf(name, sizeof name, "%s/%s", dir, names[i]);
        close(open(name, O_CREAT | O_WRONLY, 0600));
    }
    char folder[128], link[128];
    snprintf(folder, sizeof folder, "%s/model.om.99999-1.tmp", dir);
    snprintf(link, sizeof link, "%s/model.om.99999-2.tmp", dir);
    assert_int_equal(mkdir(folder, 0700), 0);
    assert_int_equal(symlink("model.om", link), 0);
    assert_int_equal(save_small(), OM_OK);
    assert_int_equal(temporaries(), 9);
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        snprintf(name, sizeof name, "%s/%s", dir, names[i]);
        assert_int_equal(unlink(name), 0);
    }
    assert_int_equal(rmdir(folder), 0);
    assert_int_equal(unlink(link), 0);
}

/* ---- the order of calls ------------------------------------------------------------------------
 */

static char calls[64]; /* w: write, s: fsync of the file, r: rename, d: fsync of a directory */
static void note(char c) {
    size_t n = strlen(calls);
    if (n + 1 < sizeof calls && (n == 0 || calls[n - 1] != c)) calls[n] = c;
}
static ssize_t noted_write(int fd, const void *p, size_t n) {
    note('w');
    return omi_sys_real.write(fd, p, n);
}
static int noted_fsync(int fd) {
    struct stat st;
    note(fstat(fd, &st) == 0 && S_ISDIR(st.st_mode) ? 'd' : 's');
    return omi_sys_real.fsync(fd);
}
static int noted_rename(const char *from, const char *to) {
    note('r');
    return omi_sys_real.rename(from, to);
}

/* Else a power cut leaves a name without bytes where a whole file was. */
static void bytes_are_on_the_disk_before_the_rename(void **state) {
    (void)state;
    memset(calls, 0, sizeof calls);
    omi_sys.write  = noted_write;
    omi_sys.fsync  = noted_fsync;
    omi_sys.rename = noted_rename;
    om_status st   = save_small();
    omi_sys        = omi_sys_real;
    assert_int_equal(st, OM_OK);
    assert_string_equal(calls, "wsrd");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_a_killed_saver_left_is_removed),
        cmocka_unit_test(what_a_living_saver_writes_stays),
        cmocka_unit_test(two_savers_of_one_process),
        cmocka_unit_test(files_of_others_stay),
        cmocka_unit_test(bytes_are_on_the_disk_before_the_rename),
    };
    return cmocka_run_group_tests(tests, make_dir, drop_dir);
}
