/*
 * test_faults.c -- the whole main job with everything that can fail made to fail in turn.
 *
 * The n-th allocation, then the n-th system call of each kind, then the n-th thread start, n = 1,
 * 2, ... until a run passes with none injected: over trace, save, load, plan, run and a training
 * step. Each time: an error, live blocks, tensors, descriptors and the pending error back to the
 * start, and the second try works.
 */
#include "harness.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/sys.h"
#include "base/thread.h"
#include "models/models.h"

static char folder[64], file_om[96], file_onnx[96];

static int count_fds(void) {
    DIR *d = opendir("/proc/self/fd");
    int n  = 0;
    if (!d) return 0;
    while (readdir(d))
        n++;
    closedir(d);
    return n;
}

/* Files in the test's folder, to see that nothing half-written stays. */
static int count_files(void) {
    DIR *d = opendir(folder);
    int n  = 0;
    assert_non_null(d);
    for (struct dirent *e; (e = readdir(d)) != NULL;)
        n += e->d_name[0] != '.' || strlen(e->d_name) > 2;
    closedir(d);
    return n;
}

/* ---- the jobs
 * --------------------------------------------------------------------------------------- */

typedef struct job {
    const char *name;
    om_status (*run)(void *which);
    int64_t floor; /* injected allocations at least */
} job;

static om_status job_trace(void *which) {
    test_model m;
    om_graph *g = NULL;
    if (test_model_new(*(int *)which, &m)) g = test_model_trace(&m);
    om_graph_release(g);
    test_model_free(&m);
    return om_pending();
}

static om_status job_save(void *which) {
    test_model m;
    om_graph *g = NULL;
    if (test_model_new(*(int *)which, &m)) g = test_model_trace(&m);
    if (g) om_graph_save(g, file_om);
    if (g) om_graph_save_onnx(g, file_onnx, NULL);
    om_graph_release(g);
    test_model_free(&m);
    return om_pending();
}

static om_status job_load(void *which) {
    (void)which;
    om_graph *g = om_graph_load(file_om, NULL), *h = om_graph_load(file_onnx, NULL);
    om_graph *c = om_graph_load(file_om, OM_OPTS(load, .copy = true));
    om_graph_release(g);
    om_graph_release(h);
    om_graph_release(c);
    return om_pending();
}

static om_status job_run(void *which) {
    (void)which;
    om_scope s    = om_scope_begin();
    om_session *e = om_session_load(file_om, NULL);
    om_session *f = om_session_load(file_onnx, OM_OPTS(session, .arith = OM_FAST));
    test_model m  = {0};
    if (test_model_new(*(int *)which, &m)) {
        om_session_call(e, test_model_input(&m, 0));
        om_session_call(f, test_model_input(&m, 1));
        om_shape shape = {.rank = m.rank};
        memcpy(shape.dims, m.sizes[1], sizeof m.sizes[1]);
        om_run *r     = om_session_prepare(e, 1, &shape);
        om_tensor *x  = test_model_input(&m, 1);
        const void *p = om_data(x);
        if (r && p) om_run_call(r, &p, NULL);
        om_run_free(r);
    }
    test_model_free(&m);
    om_session_free(e);
    om_session_free(f);
    return om_scope_end(s);
}

static om_status job_train(void *which) {
    om_scope s = om_scope_begin();
    test_model m;
    om_optim *o = NULL;
    if (test_model_new(*(int *)which, &m)) {
        om_nn_train(m.net, true);
        o               = om_adamw(m.net, 1e-3, NULL);
        om_tensor *y    = m.forward(&m, test_model_input(&m, 1));
        om_tensor *loss = om_mean_all(om_mul(y, y));
        om_zero_grad(o);
        om_backward(loss);
        om_clip_norm(o, 1, NULL);
        om_step(o);
    }
    om_optim_free(o);
    test_model_free(&m);
    return om_scope_end(s);
}

static const job jobs[] = {{"trace", job_trace, 150},
                           {"save", job_save, 180},
                           {"load", job_load, 20},
                           {"run", job_run, 100},
                           {"train", job_train, 200}};

/* ---- allocations
 * ------------------------------------------------------------------------------------- */

static void test_every_allocation(void **state) {
    (void)state;
    static const int models[] = {TEST_CNN, TEST_TRANSFORMER, TEST_EMBEDDING};
    om_set_threads(1);
    for (size_t w = 0; w < 3; w++) {
        int which = models[w];
        assert_int_equal(job_save(&which), OM_OK);
        for (size_t j = 0; j < sizeof jobs / sizeof *jobs; j++) {
            om_scope_drain();
            int fds = count_fds(), files = count_files();
            int64_t n = harness_fail_each(jobs[j].run, &which);
            print_message("%s, model %d: %lld allocations failed in turn\n", jobs[j].name, which,
                          (long long)n);
            assert_true(n >= jobs[j].floor);
            assert_int_equal(count_fds(), fds);
            assert_int_equal(count_files(), files);
        }
    }
    om_set_threads(0);
}

/* ---- system calls
 * ------------------------------------------------------------------------------------- */

enum {
    SYS_OPEN,
    SYS_READ,
    SYS_WRITE,
    SYS_FSYNC,
    SYS_RENAME,
    SYS_MMAP,
    SYS_FSTAT,
    SYS_CLOSE,
    SYS_KINDS
};

static struct {
    int kind, countdown, error;
    int injected;
    bool die;         /* leave the process at the call instead */
    bool half;        /* write: only half of the bytes, no error */
    bool interrupted; /* every call fails once with EINTR first */
    int parity;
} inject;

static bool hit(int kind) {
    if (inject.interrupted && (inject.parity ^= 1)) {
        errno = EINTR;
        return true;
    }
    if (inject.kind != kind || inject.countdown <= 0 || --inject.countdown) return false;
    inject.injected++;
    if (inject.die) _exit(42);
    errno = inject.error;
    return true;
}

static int sys_open(const char *p, int flags, int mode) {
    return hit(SYS_OPEN) ? -1 : omi_sys_real.open(p, flags, mode);
}
static ssize_t sys_read(int fd, void *p, size_t n) {
    return hit(SYS_READ) ? -1 : omi_sys_real.read(fd, p, inject.half && n > 1 ? n / 2 : n);
}
static ssize_t sys_write(int fd, const void *p, size_t n) {
    return hit(SYS_WRITE) ? -1 : omi_sys_real.write(fd, p, inject.half && n > 1 ? n / 2 : n);
}
static int sys_fsync(int fd) {
    return hit(SYS_FSYNC) ? -1 : omi_sys_real.fsync(fd);
}
static int sys_rename(const char *a, const char *b) {
    return hit(SYS_RENAME) ? -1 : omi_sys_real.rename(a, b);
}
static void *sys_mmap(size_t n, int fd) {
    return hit(SYS_MMAP) ? NULL : omi_sys_real.mmap(n, fd);
}
static int sys_fstat(int fd, struct stat *st) {
    return hit(SYS_FSTAT) ? -1 : omi_sys_real.fstat(fd, st);
}
/* A close that fails has closed the descriptor all the same. */
static int sys_close(int fd) {
    int r = omi_sys_real.close(fd);
    return hit(SYS_CLOSE) ? -1 : r;
}

static void install(void) {
    omi_sys        = omi_sys_real;
    omi_sys.open   = sys_open;
    omi_sys.read   = sys_read;
    omi_sys.write  = sys_write;
    omi_sys.fsync  = sys_fsync;
    omi_sys.rename = sys_rename;
    omi_sys.mmap   = sys_mmap;
    omi_sys.fstat  = sys_fstat;
    omi_sys.close  = sys_close;
    memset(&inject, 0, sizeof inject);
}

/* A file as it is, for comparison. */
typedef struct snapshot {
    char *v;
    size_t n;
} snapshot;
static snapshot take(const char *path) {
    snapshot s = {NULL, 0};
    FILE *f    = fopen(path, "rb");
    if (!f) return s;
    s.v = malloc(1 << 20);
    s.n = fread(s.v, 1, 1 << 20, f);
    fclose(f);
    return s;
}
static bool same(const char *path, snapshot want) {
    snapshot got = take(path);
    bool ok      = got.n == want.n && got.v && memcmp(got.v, want.v, want.n) == 0;
    free(got.v);
    return ok;
}

static om_graph *save_graph; /* what the save tests write */
static om_status save_om(void) {
    return om_graph_save(save_graph, file_om);
}
static om_status save_onnx(void) {
    return om_graph_save_onnx(save_graph, file_onnx, NULL);
}

static om_graph *traced(int which) {
    test_model m;
    assert_true(test_model_new(which, &m));
    om_graph *g = test_model_trace(&m);
    check_ok();
    test_model_free(&m);
    return g;
}

/* Writes an old version of both files, returns it, and sets save_graph to another model. */
static void old_and_new(snapshot *om, snapshot *onnx) {
    omi_sys    = omi_sys_real;
    save_graph = traced(TEST_MLP);
    assert_int_equal(save_om(), OM_OK);
    assert_int_equal(save_onnx(), OM_OK);
    *om   = take(file_om);
    *onnx = take(file_onnx);
    om_graph_release(save_graph);
    save_graph = traced(TEST_EMBEDDING);
}

static void test_every_system_call_of_a_save(void **state) {
    (void)state;
    int total = 0;
    for (int onnx = 0; onnx < 2; onnx++)
        for (int kind = 0; kind < SYS_KINDS; kind++)
            for (int n = 1;; n++) {
                snapshot old[2];
                old_and_new(&old[0], &old[1]);
                const char *path = onnx ? file_onnx : file_om;
                int files = count_files(), fds = count_fds();
                install();
                inject.kind      = kind;
                inject.countdown = n;
                inject.error     = kind == SYS_WRITE || kind == SYS_FSYNC ? ENOSPC : EIO;
                om_status st     = onnx ? save_onnx() : save_om();
                int hits         = inject.injected;
                omi_sys          = omi_sys_real;
                assert_int_equal(count_fds(), fds);
                assert_int_equal(count_files(), files);
                if (hits && st != OM_OK) {
                    check_error(OM_ERR_IO, path);
                    // Old or, when only the directory could not be synced, the new one; never half.
                    if (!same(path, old[onnx])) {
                        om_graph *g = om_graph_load(path, NULL);
                        check_ok();
                        om_graph_release(g);
                    }
                    assert_int_equal(onnx ? save_onnx() : save_om(), OM_OK);
                }
                check_ok();
                om_graph_release(save_graph);
                free(old[0].v);
                free(old[1].v);
                if (!hits) break;
                total++;
            }
    print_message("%d system calls of savers failed in turn\n", total);
    assert_true(total >= 10);
}

static void test_every_system_call_of_a_load(void **state) {
    (void)state;
    int total = 0, which = TEST_MLP;
    assert_int_equal(job_save(&which), OM_OK);
    for (int kind = 0; kind < SYS_KINDS; kind++)
        for (int n = 1;; n++) {
            int fds = count_fds();
            install();
            inject.kind      = kind;
            inject.countdown = n;
            inject.error     = EIO;
            om_status st     = job_load(&which);
            int hits         = inject.injected;
            omi_sys          = omi_sys_real;
            assert_int_equal(count_fds(), fds);
            if (hits && st != OM_OK) check_error(OM_ERR_IO, folder);
            // A close that fails after the bytes were read loses nothing.
            if (hits && kind != SYS_CLOSE) assert_int_not_equal(st, OM_OK);
            om_catch(NULL);
            assert_int_equal(job_load(&which), OM_OK);
            if (!hits) break;
            total++;
        }
    print_message("%d system calls of loaders failed in turn\n", total);
    assert_true(total >= 8);
}

static void test_short_and_interrupted_calls(void **state) {
    (void)state;
    int which = TEST_CNN;
    assert_int_equal(job_save(&which), OM_OK);
    snapshot om = take(file_om), onnx = take(file_onnx);
    for (int mode = 0; mode < 2; mode++) {
        unlink(file_om);
        unlink(file_onnx);
        install();
        inject.half        = mode == 0;
        inject.interrupted = mode == 1;
        assert_int_equal(job_save(&which), OM_OK);
        assert_int_equal(job_load(&which), OM_OK);
        omi_sys = omi_sys_real;
        assert_true(same(file_om, om) && same(file_onnx, onnx));
    }
    free(om.v);
    free(onnx.v);
}

/* A saver that dies at any of its system calls leaves the old file or the whole new one. */
static void test_saver_dies(void **state) {
    (void)state;
    int total = 0;
    for (int onnx = 0; onnx < 2; onnx++)
        for (int kind = 0; kind < SYS_KINDS; kind++)
            for (int n = 1;; n++) {
                snapshot old[2];
                old_and_new(&old[0], &old[1]);
                const char *path = onnx ? file_onnx : file_om;
                pid_t child      = fork();
                if (child == 0) {
                    install();
                    inject.kind      = kind;
                    inject.countdown = n;
                    inject.die       = true;
                    _exit((onnx ? save_onnx() : save_om()) == OM_OK ? 0 : 1);
                }
                int status = 0;
                waitpid(child, &status, 0);
                assert_true(WIFEXITED(status));
                int code = WEXITSTATUS(status);
                if (!same(path, old[onnx])) {
                    om_graph *g = om_graph_load(path, NULL);
                    check_ok();
                    assert_int_equal(om_graph_n_nodes(g), om_graph_n_nodes(save_graph));
                    om_graph_release(g);
                }
                om_graph_release(save_graph);
                free(old[0].v);
                free(old[1].v);
                assert_true(code == 0 || code == 42);
                if (code == 0) break;
                total++;
            }
    print_message("a saver died at %d system calls\n", total);
    assert_true(total >= 10);
}

/* ---- threads
 * ------------------------------------------------------------------------------------------- */

static int start_countdown, starts_refused;
static int (*real_create)(void *, const void *, void *(*)(void *), void *);
static int counted_create(void *t, const void *a, void *(*fn)(void *), void *arg) {
    if (start_countdown > 0 && --start_countdown == 0) {
        starts_refused++;
        return EAGAIN;
    }
    return real_create(t, a, fn, arg);
}

/* A thread that cannot be started costs speed, not the result. */
static void test_every_thread_start(void **state) {
    (void)state;
    test_model m;
    assert_true(test_model_new(TEST_RESIDUAL, &m));
    om_scope s   = om_scope_begin();
    om_tensor *x = test_model_input(&m, 2), *want = m.forward(&m, x);
    real_create       = omi_thread_create;
    omi_thread_create = counted_create;
    int total         = 0;
    for (int n = 1;; n++) {
        om_set_threads(1);
        om_set_threads(4);
        start_countdown = n;
        starts_refused  = 0;
        assert_true(om_bit_equal(m.forward(&m, x), want));
        if (!starts_refused) break;
        total++;
    }
    omi_thread_create = real_create;
    om_set_threads(0);
    om_scope_end(s);
    test_model_free(&m);
    print_message("%d thread starts failed in turn\n", total);
    assert_true(total >= 3);
}

/* ---- limits and cancelling
 * ------------------------------------------------------------------------------- */

static void test_memory_limit(void **state) {
    (void)state;
    int which = TEST_CNN;
    om_memory_stats m;
    om_memory(&m);
    om_set_memory_limit(m.bytes + 20000);
    assert_int_not_equal(job_trace(&which), OM_OK);
    om_set_memory_limit(0);
    check_error(OM_ERR_NOMEM, "limit");
    om_scope_drain();
    assert_int_equal(job_trace(&which), OM_OK);
}

static void test_cancel(void **state) {
    (void)state;
    int which   = TEST_CNN;
    om_cancel c = {.raised = 1};
    assert_int_equal(job_save(&which), OM_OK);
    om_set_cancel(&c);
    assert_int_equal(job_load(&which), OM_ERR_CANCELLED);
    om_catch(NULL);
    assert_int_equal(job_train(&which), OM_ERR_CANCELLED);
    om_set_cancel(NULL);
    om_catch(NULL);
    om_scope_drain();
    assert_int_equal(job_train(&which), OM_OK);
    om_session *e = om_session_load(file_om, NULL);
    test_model t;
    assert_true(test_model_new(which, &t));
    om_set_cancel(&c);
    om_tensor *x = NULL;
    om_set_cancel(NULL);
    x = test_model_input(&t, 0);
    om_set_cancel(&c);
    assert_null(om_session_call(e, x));
    om_set_cancel(NULL);
    check_error(OM_ERR_CANCELLED, "cancel");
    assert_non_null(om_session_call(e, x));
    om_session_free(e);
    test_model_free(&t);
}

static int make_folder(void **state) {
    (void)state;
    strcpy(folder, "/tmp/onemodel-faults-XXXXXX");
    if (!mkdtemp(folder)) return 1;
    snprintf(file_om, sizeof file_om, "%s/m.om", folder);
    snprintf(file_onnx, sizeof file_onnx, "%s/m.onnx", folder);
    return 0;
}
static int remove_folder(void **state) {
    (void)state;
    DIR *d = opendir(folder); // a saver that died leaves its private file
    for (struct dirent *e; d && (e = readdir(d)) != NULL;) {
        char path[400];
        snprintf(path, sizeof path, "%s/%s", folder, e->d_name);
        if (e->d_type == DT_REG) unlink(path);
    }
    if (d) closedir(d);
    return rmdir(folder);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        OM_TEST(test_every_allocation),
        OM_TEST(test_every_system_call_of_a_save),
        OM_TEST(test_every_system_call_of_a_load),
        OM_TEST(test_short_and_interrupted_calls),
        OM_TEST(test_saver_dies),
        OM_TEST(test_every_thread_start),
        OM_TEST(test_memory_limit),
        OM_TEST(test_cancel),
    };
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
