/*
 * test_call.c -- what a prepared run may do: nothing but compute (CD-29).
 *
 * With one thread om_run_call makes no allocation, takes no lock and enters no kernel, from the
 * very first call of the process. Allocations are counted in the library's allocator and in malloc
 * itself, locks in pthread_mutex_lock, both by being defined here; system calls by a child process
 * in strict seccomp mode, which the kernel kills at the first one.
 */
#include "runtime/build.h"

#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <sys/wait.h>
#include <unistd.h>
#if defined(__linux__)
#    include <linux/seccomp.h>
#    include <sys/prctl.h>
#    include <sys/syscall.h>
#endif

#include "base/fpenv.h"
#include "kernels/table.h"

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#    define SANITIZED 1
#elif defined(__has_feature)
#    if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#        define SANITIZED 1
#    endif
#endif

static _Atomic long mallocs, locks;

#if defined(__GLIBC__) && !defined(SANITIZED)
#    define COUNTS_LIBC 1
void *__libc_malloc(size_t n);
void *__libc_calloc(size_t n, size_t m);
void *__libc_realloc(void *p, size_t n);
void *__libc_memalign(size_t align, size_t n);

void *malloc(size_t n) {
    mallocs++;
    return __libc_malloc(n);
}
void *calloc(size_t n, size_t m) {
    mallocs++;
    return __libc_calloc(n, m);
}
void *realloc(void *p, size_t n) {
    mallocs++;
    return __libc_realloc(p, n);
}
int posix_memalign(void **p, size_t align, size_t n) {
    mallocs++;
    *p = __libc_memalign(align, n);
    return *p ? 0 : ENOMEM;
}

int pthread_mutex_lock(pthread_mutex_t *m) {
    static int (*_Atomic real)(pthread_mutex_t *);
    if (!real) {
        void *f = dlsym(RTLD_NEXT, "pthread_mutex_lock");
        int (*fn)(pthread_mutex_t *);
        memcpy(&fn, &f, sizeof fn);
        real = fn;
    }
    locks++;
    return real(m);
}
#endif

static long library_allocs;

static void *counting(void *ctx, void *p, size_t old, size_t size, size_t align) {
    library_allocs++;
    return harness_alloc(ctx, p, old, size, align);
}

static float noise(uint32_t *s) {
    *s = *s * 1664525u + 1013904223u;
    return (float)(*s >> 8) * 0x1p-23f - 1;
}

static void weight(om_graph *g, const char *name, int rank, const int64_t *dims) {
    int64_t n  = 1;
    uint32_t s = 7;
    for (int i = 0; i < rank; i++)
        n *= dims[i];
    float *v = malloc((size_t)n * sizeof *v);
    for (int64_t i = 0; i < n; i++)
        v[i] = noise(&s);
    constant(g, name, OM_F32, rank, dims, v);
    free(v);
}

/* One of nearly everything. */
static om_graph *everything(void) {
    om_graph *g = begin(20);
    in(g, "x", OM_F32, "batch,3,16,16");
    in(g, "ids", OM_I64, "batch,5");
    weight(g, "k1", AXES(8, 3, 3, 3));
    weight(g, "k2", AXES(8, 1, 3, 3));
    weight(g, "kb", AXES(8));
    int32_t c = node(g, "Conv", "x k1 kb", "c1");
    set_ints(g, c, "pads", 4, (int64_t[]){1, 1, 1, 1});
    floats(g, "bs", 1, 2, 3, 4, 5, 6, 7, 8);
    node(g, "BatchNormalization", "c1 bs kb kb bs", "b1");
    node(g, "Relu", "b1", "r1");
    int32_t d = node(g, "Conv", "r1 k2", "c2");
    set_int(g, d, "group", 8);
    set_ints(g, d, "strides", 2, (int64_t[]){2, 2});
    int32_t m = node(g, "MaxPool", "r1", "m1");
    set_ints(g, m, "kernel_shape", 2, (int64_t[]){2, 2});
    set_ints(g, m, "strides", 2, (int64_t[]){2, 2});
    int32_t a = node(g, "AveragePool", "m1", "a1");
    set_ints(g, a, "kernel_shape", 2, (int64_t[]){2, 2});
    node(g, "GlobalAveragePool", "c2", "g1");
    ints(g, "flat", 0, -1);
    node(g, "Reshape", "a1 flat", "f1");
    node(g, "Flatten", "g1", "f2");
    set_int(g, node(g, "Concat", "f1 f2", "f"), "axis", 1);
    weight(g, "w", AXES(400, 24));
    weight(g, "w2", AXES(12, 24));
    weight(g, "wb", AXES(24));
    weight(g, "wb2", AXES(12));
    node(g, "MatMul", "f w", "h");
    node(g, "Add", "h wb", "h2");
    set_text(g, node(g, "Gelu", "h2", "h3"), "approximate", "tanh");
    node(g, "LayerNormalization", "h3 wb wb", "h4");
    set_int(g, node(g, "Gemm", "h4 w2 wb2", "h5"), "transB", 1);
    node(g, "Tanh", "h5", "h6");
    node(g, "Softmax", "h6", "s");
    node(g, "LogSoftmax", "h6", "ls");
    ints(g, "three", 3);
    node(g, "TopK", "s three", "top at");
    ints(g, "one", 1);
    node(g, "ReduceSum", "s one", "sum");
    node(g, "ReduceMax", "ls one", "max");
    set_int(g, node(g, "ArgMax", "s", "best"), "axis", 1);
    weight(g, "table", AXES(10, 4));
    node(g, "Gather", "table ids", "emb");
    set_ints(g, node(g, "Transpose", "emb", "embt"), "perm", 3, (int64_t[]){0, 2, 1});
    node(g, "MatMul", "emb embt", "gram");
    node(g, "Exp", "gram", "e");
    node(g, "Sigmoid", "gram", "sg");
    node(g, "Greater", "e sg", "gt");
    node(g, "Where", "gt e sg", "wh");
    node(g, "Trilu", "wh", "tri");
    ints(g, "pads", 0, 1, 0, 0, 0, 1);
    node(g, "Pad", "tri pads", "padded");
    set_int(g, node(g, "Cast", "padded", "cast"), "to", OM_I32);
    int32_t sp = node(g, "Split", "emb", "p1 p2");
    set_int(g, sp, "axis", 2);
    set_int(g, sp, "num_outputs", 2);
    node(g, "Div", "p1 p2", "div");
    ints(g, "from", 4);
    ints(g, "to", 0);
    ints(g, "ax", 1);
    ints(g, "by", -2);
    node(g, "Slice", "div from to ax by", "cut");
    ints(g, "bigger", 2, 1, 1, 1);
    node(g, "Expand", "cut bigger", "exp");
    const char *outs[] = {"top", "at", "sum", "max", "best", "cast", "exp", "ls"};
    for (size_t i = 0; i < OM_COUNT(outs); i++)
        out(g, outs[i]);
    return done(g);
}

static float image[2 * 3 * 16 * 16];
static int64_t ids[10] = {0, 9, -1, 3, 4, 5, 6, 7, 8, -10};

static om_run *prepare(om_session **s, int threads) {
    *s = open_session(everything(), OM_EXACT, threads);
    check_ok();
    om_shape shapes[2] = {{4, {2, 3, 16, 16}}, {2, {2, 5}}};
    om_run *r          = om_session_prepare(*s, 2, shapes);
    check_ok();
    uint32_t seed = 3;
    for (size_t i = 0; i < OM_COUNT(image); i++)
        image[i] = noise(&seed);
    return r;
}

/* First in this process: everything is cold. */
static void test_no_system_call(void **state) {
    (void)state;
#if defined(__linux__) && !defined(SANITIZED)
    om_session *s;
    om_run *r          = prepare(&s, 1);
    const void *in2[2] = {image, ids};
    int control        = 0; // a child that does make a system call must die
    for (control = 0; control < 2; control++) {
        pid_t child = fork();
        assert_true(child >= 0);
        if (child == 0) {
            if (prctl(PR_SET_SECCOMP, SECCOMP_MODE_STRICT) != 0) _exit(77);
            if (control == 0) getppid();
            om_status st = om_run_call(r, in2, NULL);
            syscall(SYS_exit, st == OM_OK ? 0 : 1);
        }
        int how = 0;
        waitpid(child, &how, 0);
        if (WIFEXITED(how) && WEXITSTATUS(how) == 77) {
            print_message("strict seccomp is not allowed here\n");
            om_run_free(r);
            om_session_free(s);
            skip();
        }
        if (control == 0)
            assert_true(WIFSIGNALED(how) && WTERMSIG(how) == SIGKILL);
        else
            assert_true(WIFEXITED(how) && WEXITSTATUS(how) == 0);
    }
    om_run_free(r);
    om_session_free(s);
#else
    skip();
#endif
}

static void test_no_allocation(void **state) {
    (void)state;
    harness_failing f = {0};
    om_scope_drain();
    om_trim();
    assert_int_equal(om_set_allocator(counting, &f), OM_OK);
    om_session *s;
    om_run *r          = prepare(&s, 1);
    const void *in2[2] = {image, ids};
    assert_true(library_allocs > 0);
    char first[65], again[65];
    for (int k = 0; k < 3; k++) {
        long a = library_allocs, m = mallocs, l = locks;
        om_status st = om_run_call(r, in2, NULL);
        assert_int_equal(library_allocs - a, 0);
        assert_int_equal(mallocs - m, 0);
        assert_int_equal(locks - l, 0);
        assert_int_equal(st, OM_OK);
        om_run_hash(r, k ? again : first);
        if (k) assert_string_equal(first, again);
    }
#ifdef COUNTS_LIBC
    om_session *other;
    long m = mallocs, l = locks; // the counters do count
    om_run *r2 = prepare(&other, 2);
    assert_true(mallocs > m && locks > l);
    om_run_free(r2);
    om_session_free(other);
#endif
    om_run_free(r);
    om_session_free(s);
    om_trim();
    assert_int_equal(om_set_allocator(NULL, NULL), OM_OK);
}

/* The same hash from every kernel column of this machine. */
static void test_columns(void **state) {
    (void)state;
    char want[65] = "", got[65];
    int ran       = 0;
    for (int c = 0; c < OM_COL_COUNT; c++) {
        if (!omi_kernels_of((om_column)c)) continue;
        assert_int_equal(omi_kernels_force(c), OM_OK);
        uint64_t before = omi_kernel_calls((om_column)c);
        om_session *s;
        om_run *r = prepare(&s, 1);
        assert_int_equal(om_run_call(r, (const void *[]){image, ids}, NULL), OM_OK);
        om_run_hash(r, ran++ ? got : want);
        if (ran > 1) assert_string_equal(want, got);
        assert_true(omi_kernel_calls((om_column)c) > before);
        om_run_free(r);
        om_session_free(s);
    }
    assert_int_equal(omi_kernels_force(-1), OM_OK);
    print_message("%d columns: %s\n", ran, want);
    assert_true(ran >= 2);
}

/* The same hash with 1, 2, 3 and 8 workers, and through om_session_run. */
static void test_workers(void **state) {
    (void)state;
    char want[65], got[65];
    const void *in2[2] = {image, ids};
    om_set_threads(8);
    for (int k = 0; k < 4; k++) {
        om_session *s;
        om_run *r = prepare(&s, (int[]){1, 2, 3, 8}[k]);
        assert_int_equal(om_run_call(r, in2, NULL), OM_OK);
        om_run_hash(r, k ? got : want);
        if (k) assert_string_equal(want, got);
        om_shape shape;
        OM_SCOPE {
            om_tensor *y[8] = {0};
            om_tensor *x    = om_from(image, OM_F32, OM_DIMS(2, 3, 16, 16));
            om_tensor *i    = om_from(ids, OM_I64, OM_DIMS(2, 5));
            om_session_run(s, 2, (om_binding[]){{"x", x}, {"ids", i}}, 8, y);
            check_ok();
            for (int o = 0; o < 8; o++) {
                om_run_output_shape(r, o, &shape);
                assert_int_equal(om_rank(y[o]), shape.rank);
                size_t bytes = (size_t)om_numel(y[o]) * om_dtype_size(om_dtype_of(y[o]));
                assert_memory_equal(om_data(y[o]), om_run_output(r, o), bytes);
            }
        }
        om_run_free(r);
        om_session_free(s);
    }
    om_set_threads(0);
}

/* A flush-to-zero control word left by somebody else changes nothing (AR-1.3). */
static void test_control_word(void **state) {
    (void)state;
#if defined(__SSE__)
    om_graph *g = begin(20);
    in(g, "x", OM_F32, "2");
    node(g, "Mul", "x x", "y");
    out(g, "y");
    om_session *s = session(g);
    om_run *r     = om_session_prepare(s, 1, &(om_shape){1, {2}});
    float x[2]    = {1e-20f, 3e-21f};
    unsigned old  = _mm_getcsr();
    _mm_setcsr(old | 0x8040);
    om_status st  = om_run_call(r, (const void *[]){x}, NULL);
    unsigned left = _mm_getcsr();
    _mm_setcsr(old);
    assert_int_equal(st, OM_OK);
    assert_int_equal(left & ~0x3fu, (old | 0x8040) & ~0x3fu);
    const float *y = om_run_output(r, 0);
    assert_true(y[0] == x[0] * x[0] && y[0] > 0 && y[1] > 0);
    om_run_free(r);
    om_session_free(s);
#else
    skip();
#endif
}

/* ---- every allocation of making and running fails once --------------------------------------- */

static om_status make_and_run(void *ctx) {
    (void)ctx;
    om_graph *g        = everything();
    om_session *s      = open_session(g, OM_EXACT, 1);
    om_run *r          = NULL;
    om_shape shapes[2] = {{4, {2, 3, 16, 16}}, {2, {2, 5}}};
    if (s) r = om_session_prepare(s, 2, shapes);
    if (r) om_run_call(r, (const void *[]){image, ids}, NULL);
    om_run_free(r);
    if (s) {
        om_scope q      = om_scope_begin();
        om_tensor *y[8] = {0};
        om_tensor *x    = om_from(image, OM_F32, OM_DIMS(2, 3, 16, 16));
        om_tensor *i    = om_from(ids, OM_I64, OM_DIMS(2, 5));
        om_session_run(s, 2, (om_binding[]){{"x", x}, {"ids", i}}, 8, y);
        om_scope_end(q);
    }
    om_session_free(s);
    return om_pending();
}

static void test_out_of_memory(void **state) {
    (void)state;
    om_scope_drain();
    om_trim();
    int64_t n = harness_fail_each(make_and_run, NULL);
    print_message("%lld allocations made to fail\n", (long long)n);
    assert_true(n > 100);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        OM_TEST(test_no_system_call), OM_TEST(test_no_allocation), OM_TEST(test_columns),
        OM_TEST(test_workers),        OM_TEST(test_control_word),  OM_TEST(test_out_of_memory),
    };
    return cmocka_run_group_tests_name("run", tests, NULL, NULL);
}
