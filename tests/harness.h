/*
 * harness.h -- what every C test shares on top of cmocka.
 *
 * OM_TEST(f) runs f between two looks at the world: no error pending, as many live tensors and
 * allocated blocks after as before. check_error asserts the status of the pending error and clears
 * it. The failing allocator makes the n-th allocation of a run fail.
 */
#ifndef OM_TESTS_HARNESS_H
#define OM_TESTS_HARNESS_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include "onemodel/base.h"
#include "onemodel/tensor.h"

/* What a limit on time is multiplied by: sanitizers make everything several times as long. */
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#    define HARNESS_SLOWER 10
#elif defined(__has_feature)
#    if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer) ||                     \
        __has_feature(undefined_behavior_sanitizer)
#        define HARNESS_SLOWER 10
#    endif
#endif
#ifndef HARNESS_SLOWER
#    define HARNESS_SLOWER 1
#endif

static inline int64_t harness_blocks(void) {
    om_memory_stats m;
    om_trim();
    om_memory(&m);
    return m.blocks;
}

typedef struct harness_state {
    int64_t tensors, blocks;
} harness_state;

static inline int harness_setup(void **state) {
    harness_state *h = malloc(sizeof *h);
    om_scope_drain();
    h->tensors = om_live_tensors();
    h->blocks  = harness_blocks();
    *state     = h;
    return om_pending() != OM_OK;
}

static inline int harness_teardown(void **state) {
    harness_state *h = *state;
    om_error e;
    int bad = 0;
    if (om_catch(&e) != OM_OK) {
        print_error("left pending: %s: %s\n", e.where, e.message);
        bad = 1;
    }
    om_scope_drain();
    if (om_live_tensors() != h->tensors) {
        print_error("%lld tensors leaked\n", (long long)(om_live_tensors() - h->tensors));
        bad = 1;
    }
    int64_t blocks = harness_blocks();
    if (blocks != h->blocks) {
        print_error("%lld blocks leaked\n", (long long)(blocks - h->blocks));
        bad = 1;
    }
    free(h);
    return bad;
}
#define OM_TEST(f) cmocka_unit_test_setup_teardown(f, harness_setup, harness_teardown)

/* The pending error has this status; its message holds every word given. Clears it. */
#define check_error(status, ...)                                                                   \
    harness_check_error((status), (const char *[]){__VA_ARGS__, NULL}, __FILE__, __LINE__)
static inline void harness_check_error(om_status want, const char *const *words, const char *file,
                                       int line) {
    om_error e;
    om_status got = om_catch(&e);
    if (got != want) {
        print_error("%s:%d: %s expected, got %s: %s: %s\n", file, line, om_status_name(want),
                    om_status_name(got), e.where, e.message);
        _fail(file, line);
    }
    for (; *words; words++)
        if (**words && !strstr(e.message, *words) && !strstr(e.where, *words)) {
            print_error("%s:%d: '%s' is not in: %s: %s\n", file, line, *words, e.where, e.message);
            _fail(file, line);
        }
}
#define check_ok()                                                                                 \
    do {                                                                                           \
        om_error e_;                                                                               \
        if (om_catch(&e_) != OM_OK) {                                                              \
            print_error("%s:%d: %s: %s\n", __FILE__, __LINE__, e_.where, e_.message);              \
            _fail(__FILE__, __LINE__);                                                             \
        }                                                                                          \
    } while (0)

/* ---- the failing allocator
 * ------------------------------------------------------------------------ */

typedef struct harness_failing {
    int64_t countdown; /* fails when it reaches 0; negative: never */
    int64_t injected;
} harness_failing;

static inline void *harness_alloc(void *ctx, void *p, size_t old, size_t size, size_t align) {
    harness_failing *f = ctx;
    if (size == 0) {
        free(p);
        return NULL;
    }
    if (f->countdown > 0 && --f->countdown == 0) {
        f->injected++;
        return NULL;
    }
    void *q = NULL;
    if (posix_memalign(&q, align < sizeof(void *) ? sizeof(void *) : align, size)) return NULL;
    if (p) {
        memcpy(q, p, old < size ? old : size);
        free(p);
    }
    return q;
}

/* Runs body(ctx) with the n-th allocation failing, n = 1, 2, ... until a run passes with none
 * injected. Each failed run must leave OM_ERR_NOMEM pending and no block behind, and a second run
 * without injection must pass. Returns how many were injected. Nothing of the library may be alive.
 */
static inline int64_t harness_fail_each(om_status (*body)(void *), void *ctx) {
    harness_failing f = {0};
    assert_int_equal(om_set_allocator(harness_alloc, &f), OM_OK);
    int64_t total = 0;
    for (int64_t n = 1;; n++) {
        int64_t before = harness_blocks();
        f              = (harness_failing){.countdown = n};
        om_status st   = body(ctx);
        om_scope_drain();
        f.countdown = 0;
        if (!f.injected) {
            check_ok();
            assert_int_equal(st, OM_OK);
            break;
        }
        total++;
        if (st == OM_OK && om_pending() == OM_OK)
            fail_msg("allocation %lld failed and nobody said so", (long long)n);
        om_error e;
        om_catch(&e);
        assert_int_equal(e.status, OM_ERR_NOMEM);
        if (harness_blocks() != before)
            fail_msg("allocation %lld failed and left %lld blocks", (long long)n,
                     (long long)(harness_blocks() - before));
        if (body(ctx) != OM_OK)
            fail_msg("the second try after allocation %lld failed", (long long)n);
        check_ok();
        om_scope_drain();
    }
    assert_int_equal(om_set_allocator(NULL, NULL), OM_OK);
    return total;
}

#endif
