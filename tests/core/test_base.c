/*
 * test_base.c -- errors, allocation, buffers, arenas, maps, the thread pool, the control word.
 */
#include "harness.h"

#include <float.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <time.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/buffer.h"
#include "base/checked.h"
#include "base/map.h"
#include "base/str.h"
#include "base/thread.h"
#include "base/vec.h"
#include "base/words.h"

static om_status inner(void) {
    OMI_ENTER("om_inner");
    return omi_fail(OM_ERR_SHAPE, "sizes %d and %d", 2, 3);
}
static om_status outer(void) {
    OMI_ENTER("om_outer");
    return inner();
}

static void test_first_error_stays(void **state) {
    (void)state;
    assert_int_equal(outer(), OM_ERR_SHAPE);
    assert_int_equal(omi_fail(OM_ERR_ARG, "later"), OM_ERR_SHAPE);
    om_error e;
    assert_int_equal(om_catch(&e), OM_ERR_SHAPE);
    assert_string_equal(e.where, "om_outer (in om_inner)");
    assert_string_equal(e.message, "sizes 2 and 3");
    assert_non_null(strstr(e.site, "test_base+0x"));
    assert_int_equal(om_catch(&e), OM_OK);
    assert_int_equal(e.status, OM_OK);
}

static void test_module_path_and_line(void **state) {
    (void)state;
    assert_int_equal(omi_module_push("enc.3.attn"), OM_OK);
    OM_HERE;
    int line = __LINE__ - 1;
    outer();
    omi_module_pop();
    om_error e;
    om_catch(&e);
    char want[64];
    snprintf(want, sizeof want, "test_base.c:%d", line);
    assert_string_equal(e.where, "enc.3.attn: om_outer (in om_inner)");
    assert_non_null(strstr(e.site, want));
    for (int i = 0; i < 64; i++)
        assert_int_equal(omi_module_push("m"), OM_OK);
    assert_int_equal(omi_module_push("m"), OM_ERR_LIMIT);
    omi_module_reset(0);
    om_catch(NULL);
    om_here(NULL, 0);
}

static void count_errors(void *ctx, const om_error *e) {
    *(int *)ctx += e->status == OM_ERR_VALUE;
}
static void test_error_callback(void **state) {
    (void)state;
    int n = 0;
    om_on_error(count_errors, &n);
    omi_fail(OM_ERR_VALUE, "x");
    omi_fail(OM_ERR_VALUE, "not raised: one is pending");
    om_on_error(NULL, NULL);
    assert_int_equal(n, 1);
    om_catch(NULL);
}

static void *fail_in_thread(void *unused) {
    (void)unused;
    omi_fail(OM_ERR_IO, "mine");
    return NULL;
}
static void test_errors_are_per_thread(void **state) {
    (void)state;
    pthread_t t;
    pthread_create(&t, NULL, fail_in_thread, NULL);
    pthread_join(t, NULL);
    assert_int_equal(om_pending(), OM_OK);
}

static void test_alloc_counts_and_limit(void **state) {
    (void)state;
    om_memory_stats a, b;
    om_memory(&a);
    void *p = omi_alloc(100000);
    om_memory(&b);
    assert_int_equal(b.bytes - a.bytes, 100000);
    assert_int_equal(b.blocks - a.blocks, 1);
    om_set_memory_limit(b.bytes + 1000);
    assert_null(omi_alloc(100000));
    check_error(OM_ERR_NOMEM, "limit");
    om_set_memory_limit(0);
    omi_free(p, 100000);
    om_memory(&b);
    assert_int_equal(b.bytes, a.bytes);
    assert_null(omi_alloc(SIZE_MAX));
    check_error(OM_ERR_NOMEM, "out of memory");
    assert_int_equal(om_set_allocator(NULL, NULL), OM_OK);
    p = omi_alloc(10);
    assert_int_equal(om_set_allocator(NULL, NULL), OM_ERR_STATE);
    check_error(OM_ERR_STATE, "still allocated");
    p = omi_realloc(p, 10, 5000); // across the border of the cache
    assert_non_null(p);
    omi_free(p, 5000);
}

static void test_small_blocks_are_aligned(void **state) {
    (void)state;
    for (size_t n = 1; n < 5000; n += 37) {
        void *a = omi_alloc(n), *b = omi_alloc_aligned(n);
        assert_int_equal((uintptr_t)a % 16, 0);
        assert_int_equal((uintptr_t)b % 64, 0);
        memset(a, 1, n);
        memset(b, 1, n);
        omi_free(a, n);
        omi_free_aligned(b, n);
    }
}

static void test_checked(void **state) {
    (void)state;
    int64_t p;
    assert_true(omi_product((int64_t[]){2, 3, 4}, 3, &p) && p == 24);
    assert_true(omi_product((int64_t[]){INT64_MAX, 0, INT64_MAX}, 3, &p) && p == 0);
    assert_false(omi_product((int64_t[]){INT64_MAX, 2}, 2, &p));
    assert_false(omi_product((int64_t[]){-1, 2}, 2, &p));
    assert_true(omi_product(NULL, 0, &p) && p == 1);
}

static void test_arena(void **state) {
    (void)state;
    om_arena a = {.cap = 1 << 16};
    for (int i = 0; i < 100; i++) {
        char *p = omi_arena_alloc(&a, 100);
        assert_int_equal((uintptr_t)p % 16, 0);
        for (int k = 0; k < 100; k++)
            assert_int_equal(p[k], 0);
        memset(p, 255, 100);
    }
    assert_null(omi_arena_alloc(&a, 1 << 16));
    check_error(OM_ERR_LIMIT, "limit");
    assert_string_equal(omi_arena_printf(&a, "%d-%s", 7, "x"), "7-x");
    assert_null(omi_arena_array(&a, SIZE_MAX / 2, 8));
    check_error(OM_ERR_NOMEM, "");
    omi_arena_clear(&a);
}

static void test_maps(void **state) {
    (void)state;
    om_map m    = {0};
    om_strmap s = {0};
    static int v[1000];
    char names[1000][8];
    for (int i = 0; i < 1000; i++) {
        snprintf(names[i], 8, "n%d", i);
        assert_true(omi_map_set(&m, (uint64_t)i * 64, &v[i]));
        assert_true(omi_strmap_set(&s, names[i], strlen(names[i]), &v[i]));
    }
    for (int i = 0; i < 1000; i++) {
        assert_ptr_equal(omi_map_get(&m, (uint64_t)i * 64), &v[i]);
        assert_ptr_equal(omi_strmap_get(&s, names[i], strlen(names[i])), &v[i]);
    }
    assert_null(omi_map_get(&m, 1));
    assert_null(omi_strmap_get(&s, "n1x", 3));
    assert_int_equal(m.n, 1000);
    omi_map_free(&m);
    omi_strmap_free(&s);
}

static void test_text_and_intern(void **state) {
    (void)state;
    om_str s = {0};
    for (int i = 0; i < 300; i++)
        omi_str_printf(&s, "%d,", i);
    assert_int_equal(s.n, 300 + 10 + 180 + 600);
    omi_str_free(&s);
    char copy[] = "enc.0.weight";
    assert_ptr_equal(omi_intern("enc.0.weight"), omi_intern(copy));
    char buf[64];
    assert_string_equal(omi_shape_text(buf, sizeof buf, 2, (int64_t[]){3, 4}), "[3,4]");
    assert_string_equal(omi_shape_text(buf, sizeof buf, 0, NULL), "[]");
}

/* The least time of several looks at a thousand words. */
static double seconds_of_1000_words(void) {
    double least = 1e9;
    for (int k = 0; k < 20; k++) {
        char word[32];
        clock_t start = clock();
        for (int i = 0; i < 1000; i++) {
            snprintf(word, sizeof word, "word.%d", i);
            assert_non_null(omi_intern(word));
        }
        double took = (double)(clock() - start) / CLOCKS_PER_SEC;
        if (took < least) least = took;
    }
    return least;
}

static void words_are_found_however_many_there_are(void **state) {
    (void)state;
    double few       = seconds_of_1000_words();
    const char *kept = omi_intern("word.7");
    char word[32];
    for (int i = 0; i < 400000; i++) {
        snprintf(word, sizeof word, "other.%d", i);
        assert_non_null(omi_intern(word));
    }
    assert_ptr_equal(omi_intern("word.7"), kept);
    assert_ptr_equal(omi_intern("other.399999"), omi_intern(word));
    double many = seconds_of_1000_words();
    print_message("1000 words: %.0f us among few, %.0f among 400,000\n", few * 1e6, many * 1e6);
    assert_true(many < 12 * few);
}

static void freed(void *ctx, void *data) {
    (void)data;
    ++*(int *)ctx;
}
static void test_buffer(void **state) {
    (void)state;
    int n = 0;
    char bytes[8];
    om_buffer *b = omi_buffer_wrap(bytes, 8, OM_BUF_USER, freed, &n);
    assert_true(omi_buffer_writable(b));
    omi_buffer_retain(b);
    assert_false(omi_buffer_writable(b));
    om_packed *p = omi_calloc(sizeof *p);
    p->key[0]    = 5;
    p->bytes     = 64;
    p->data      = omi_alloc_aligned(64);
    assert_ptr_equal(omi_buffer_packed_add(b, p), p);
    assert_ptr_equal(omi_buffer_packed_get(b, (uint64_t[4]){5, 0, 0, 0}), p);
    om_packed *q = omi_calloc(sizeof *q);
    q->key[0]    = 5;
    q->bytes     = 64;
    q->data      = omi_alloc_aligned(64);
    assert_ptr_equal(omi_buffer_packed_add(b, q), p); // the second of one key is dropped
    omi_buffer_release(b);
    assert_int_equal(n, 0);
    omi_buffer_release(b);
    assert_int_equal(n, 1);
}

/* ---- the pool
 * ------------------------------------------------------------------------------------- */

typedef struct job {
    _Atomic int seen[1000];
    _Atomic int inside[300];
    _Atomic int overlaps;
} job;

static void body(void *arg, int64_t chunk, int worker) {
    job *j = arg;
    if (atomic_fetch_add(&j->inside[worker], 1) != 0) atomic_fetch_add(&j->overlaps, 1);
    atomic_fetch_add(&j->seen[chunk], 1);
    for (volatile int i = 0; i < 200; i++) {
    }
    atomic_fetch_sub(&j->inside[worker], 1);
}

static void check_job(job *j, int64_t n) {
    for (int64_t i = 0; i < 1000; i++)
        assert_int_equal(j->seen[i], i < n);
    assert_int_equal(j->overlaps, 0);
}

static void test_pool_runs_each_chunk_once(void **state) {
    (void)state;
    static const int threads[] = {1, 2, 3, 8};
    for (size_t t = 0; t < 4; t++) {
        assert_int_equal(om_set_threads(threads[t]), OM_OK);
        for (int64_t n = 0; n <= 1000; n += 250) {
            job j = {0};
            omi_parallel(n, body, &j);
            check_job(&j, n);
        }
    }
    om_set_threads(0);
    assert_int_equal(om_set_threads(-1), OM_ERR_ARG);
    check_error(OM_ERR_ARG, "threads");
}

static void nested_body(void *arg, int64_t chunk, int worker) {
    (void)chunk;
    (void)worker;
    job j = {0};
    omi_parallel(100, body, &j); // inline: the pool is busy with the outer job
    for (int i = 0; i < 100; i++)
        if (j.seen[i] != 1) atomic_fetch_add((_Atomic int *)arg, 1);
}
static void test_nested_jobs_run_inline(void **state) {
    (void)state;
    om_set_threads(4);
    _Atomic int bad = 0;
    omi_parallel(20, nested_body, &bad);
    assert_int_equal(bad, 0);
    om_set_threads(0);
}

static void *own_job(void *unused) {
    (void)unused;
    for (int r = 0; r < 50; r++) {
        job j = {0};
        omi_parallel(200, body, &j);
        for (int i = 0; i < 200; i++)
            if (j.seen[i] != 1) return (void *)1;
    }
    return NULL;
}
static void test_two_callers_share_the_pool(void **state) {
    (void)state;
    om_set_threads(3);
    pthread_t t[3];
    for (int i = 0; i < 3; i++)
        pthread_create(&t[i], NULL, own_job, NULL);
    for (int i = 0; i < 3; i++) {
        void *bad;
        pthread_join(t[i], &bad);
        assert_null(bad);
    }
    om_set_threads(0);
}

static void test_fork_starts_its_own_threads(void **state) {
    (void)state;
#if defined(__SANITIZE_THREAD__)
    skip(); /* its runtime ends a process that starts threads after such a fork */
#endif
    om_set_threads(3);
    job j = {0};
    omi_parallel(100, body, &j);
    pid_t child = fork();
    if (child == 0) _exit(own_job(NULL) ? 1 : 0);
    int status = 1;
    waitpid(child, &status, 0);
    assert_int_equal(status, 0);
    om_set_threads(0);
}

static int refuse_thread(void *t, const void *a, void *(*fn)(void *), void *arg) {
    (void)t;
    (void)a;
    (void)fn;
    (void)arg;
    return 11;
}
static void test_no_thread_to_be_had(void **state) {
    (void)state;
    om_set_threads(4);
    int (*was)(void *, const void *, void *(*)(void *), void *) = omi_thread_create;
    omi_thread_create                                           = refuse_thread;
    job j                                                       = {0};
    omi_parallel(500, body, &j);
    check_job(&j, 500);
    omi_thread_create = was;
    om_set_threads(0);
}

static void reversed(void *ctx, int64_t n, void (*chunk)(void *, int64_t), void *arg) {
    ++*(int *)ctx;
    for (int64_t i = n; i-- > 0;)
        chunk(arg, i);
}
/* A caller with four threads of its own, more than the library has worker numbers. */
typedef struct share {
    int64_t from, to;
    void (*chunk)(void *, int64_t);
    void *arg;
} share;
static void *run_share(void *arg) {
    share *s = arg;
    for (int64_t i = s->from; i < s->to; i++)
        s->chunk(s->arg, i);
    return NULL;
}
static void four_threads(void *ctx, int64_t n, void (*chunk)(void *, int64_t), void *arg) {
    pthread_t t[4];
    share s[4];
    ++*(int *)ctx;
    for (int i = 0; i < 4; i++) {
        s[i] = (share){n * i / 4, n * (i + 1) / 4, chunk, arg};
        pthread_create(&t[i], NULL, run_share, &s[i]);
    }
    for (int i = 0; i < 4; i++)
        pthread_join(t[i], NULL);
}
static void test_callers_threads(void **state) {
    (void)state;
    int calls = 0;
    om_set_threads(2);
    om_set_parallel_for(four_threads, &calls);
    job j = {0};
    omi_parallel(900, body, &j);
    om_set_parallel_for(NULL, NULL);
    om_set_threads(0);
    check_job(&j, 900);
    assert_int_equal(calls, 1);
    assert_int_equal(j.inside[2], 0);
}

static void test_callers_parallel_for(void **state) {
    (void)state;
    int calls = 0;
    om_set_parallel_for(reversed, &calls);
    job j = {0};
    omi_parallel(700, body, &j);
    om_set_parallel_for(NULL, NULL);
    check_job(&j, 700);
    assert_int_equal(calls, 1);
}

static void test_cancel_flag(void **state) {
    (void)state;
    om_cancel c = {0};
    om_set_cancel(&c);
    assert_int_equal(omi_check_cancel(), OM_OK);
    c.raised = 1;
    assert_int_equal(omi_check_cancel(), OM_ERR_CANCELLED);
    om_set_cancel(NULL);
    check_error(OM_ERR_CANCELLED, "cancel");
}

#if defined(__x86_64__)
static uint32_t seen_word;
static om_status look(void) {
    OMI_ENTER("om_look");
    seen_word = _mm_getcsr() & 0xffc0u;
    return OM_OK;
}
static void look_in_pool(void *arg, int64_t i, int worker) {
    (void)i;
    (void)worker;
    if ((_mm_getcsr() & 0xffc0u) != 0x1f80u) atomic_fetch_add((_Atomic int *)arg, 1);
}
/* AR-1.3: a host that flushes denormals does not change results, and gets its word back. */
static void test_control_word(void **state) {
    (void)state;
    uint32_t mine = _mm_getcsr();
    _mm_setcsr(0x9fc0u | 0x6000u); // flush to zero, denormals are zero, round toward zero
    look();
    assert_int_equal(seen_word, 0x1f80u);
    assert_int_equal(_mm_getcsr() & 0xffc0u, 0xffc0u & (0x9fc0u | 0x6000u));
    _mm_setcsr(mine);
    _Atomic int bad = 0;
    om_set_threads(3);
    omi_parallel(100, look_in_pool, &bad);
    om_set_threads(0);
    assert_int_equal(bad, 0);
}
#endif

int main(void) {
    const struct CMUnitTest tests[] = {
        OM_TEST(test_first_error_stays),
        OM_TEST(test_module_path_and_line),
        OM_TEST(test_error_callback),
        OM_TEST(test_errors_are_per_thread),
        OM_TEST(test_alloc_counts_and_limit),
        OM_TEST(test_small_blocks_are_aligned),
        OM_TEST(test_checked),
        OM_TEST(test_arena),
        OM_TEST(test_maps),
        OM_TEST(test_text_and_intern),
        OM_TEST(words_are_found_however_many_there_are),
        OM_TEST(test_buffer),
        OM_TEST(test_pool_runs_each_chunk_once),
        OM_TEST(test_nested_jobs_run_inline),
        OM_TEST(test_two_callers_share_the_pool),
        OM_TEST(test_fork_starts_its_own_threads),
        OM_TEST(test_no_thread_to_be_had),
        OM_TEST(test_callers_parallel_for),
        OM_TEST(test_callers_threads),
        OM_TEST(test_cancel_flag),
#if defined(__x86_64__)
        OM_TEST(test_control_word),
#endif
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
