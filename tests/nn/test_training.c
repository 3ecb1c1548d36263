/*
 * test_training.c -- batches, weight files, and checkpoints that resume to the same bits.
 */
#include <unistd.h>

#include "nn/fixture.h"

#include "base/file.h"
#include "format/container.h"
#include "harness.h"

/* ---- batches ------------------------------------------------------------------------------------
 */

static om_tensor *counting(int64_t n) {
    return om_reshape(om_arange(0, 2 * n, 1), OM_DIMS(n, 2));
}

/* Runs an epoch; marks[i] counts how often item i came. Returns the number of batches. */
static int run_epoch(om_loader *l, int64_t items, int *marks, int64_t *first) {
    om_tensor *out[2];
    int batches = 0;
    memset(marks, 0, (size_t)items * sizeof *marks);
    for (om_scope s = om_scope_begin(); om_loader_next(l, out); s = om_scope_begin()) {
        const int64_t *v = om_data(out[0]);
        for (int64_t i = 0; i < om_dim(out[0], 0); i++) {
            assert_int_equal(v[2 * i] % 2, 0);
            assert_int_equal(v[2 * i + 1], v[2 * i] + 1); /* rows stay whole */
            marks[v[2 * i] / 2]++;
        }
        if (batches++ == 0) *first = v[0] / 2;
        om_scope_end(s);
    }
    return batches;
}

static void loader_visits_everything(void **state) {
    (void)state;
    enum { ITEMS = 23 };
    int marks[ITEMS];
    int64_t first[3] = {0};
    om_seed(11);
    om_tensor *all = om_take(counting(ITEMS));
    om_loader *l   = om_loader_new(1, &all, 5, OM_OPTS(loader, .shuffle = true));
    om_release(all);
    assert_int_equal(om_loader_n_batches(l), 5);
    for (int e = 0; e < 3; e++) {
        assert_int_equal(om_loader_epoch(l), e);
        assert_int_equal(run_epoch(l, ITEMS, marks, &first[e]), 5);
        for (int i = 0; i < ITEMS; i++)
            assert_int_equal(marks[i], 1);
    }
    assert_false(first[0] == first[1] && first[1] == first[2]);
    om_loader_free(l);
    /* In order, the last batch left out; a strided view. */
    OM_SCOPE {
        om_tensor *view = om_slice(counting(2 * ITEMS), 0, 0, OM_END, 2);
        l               = om_loader_new(1, &view, 5, OM_OPTS(loader, .drop_last = true));
        om_tensor *out[1];
        assert_int_equal(om_loader_n_batches(l), 4);
        for (int b = 0; b < 4; b++) {
            assert_true(om_loader_next(l, out));
            assert_int_equal(om_dim(out[0], 0), 5);
            assert_int_equal(((const int64_t *)om_data(out[0]))[0], 20 * b);
        }
        assert_false(om_loader_next(l, out));
        assert_int_equal(om_loader_epoch(l), 1);
        assert_true(om_loader_next(l, out));
        om_loader_rewind(l);
        assert_int_equal(om_loader_epoch(l), 2);
        om_loader_free(l);
    }
    expect_ok();
}

typedef struct fill_state {
    int calls, fail_at;
    int64_t last;
} fill_state;
static int fill(void *ctx, int64_t count, const int64_t *index, int n, om_tensor **out) {
    fill_state *s = ctx;
    if (++s->calls == s->fail_at) return 42;
    assert_int_equal(n, 2);
    out[0]  = om_from(index, OM_I64, OM_DIMS(count));
    out[1]  = om_zeros(OM_F32, OM_DIMS(count, 3));
    s->last = index[count - 1];
    return 0;
}

static void loader_by_callback(void **state) {
    (void)state;
    fill_state s = {.fail_at = 4};
    om_loader *l = om_loader_callback(10, 4, 2, fill, &s, NULL);
    om_tensor *out[2];
    OM_SCOPE {
        int batches = 0;
        while (om_loader_next(l, out))
            batches++;
        expect_ok();
        assert_int_equal(batches, 3);
        assert_int_equal(s.last, 9);
        assert_false(om_loader_next(l, out)); /* the fourth call fails */
        assert_null(out[0]);
        expect_error(OM_ERR_CANCELLED, "42");
        assert_true(om_loader_next(l, out)); /* and the batch can be asked for again */
        assert_int_equal(om_item_i64(om_select(out[0], 0, 0)), 0);
    }
    om_loader_free(l);
    assert_null(om_loader_callback(0, 4, 2, fill, &s, NULL));
    expect_error(OM_ERR_ARG, "0 items");
    OM_SCOPE {
        om_tensor *pair[2] = {om_zeros(OM_F32, OM_DIMS(3)), om_zeros(OM_F32, OM_DIMS(4))};
        assert_null(om_loader_new(2, pair, 2, NULL));
        expect_error(OM_ERR_SHAPE, "tensor 1");
        assert_null(om_loader_new(1, pair, 4, OM_OPTS(loader, .drop_last = true)));
        expect_error(OM_ERR_ARG, "no batch");
    }
}

/* ---- a small training run
 * ------------------------------------------------------------------------- */

typedef struct run {
    om_module *net;
    om_optim *opt;
    om_loader *loader;
} run;

enum { DATA = 37, BATCH = 8, IN = 5, HIDDEN = 12, CLASSES = 3 };

/* New objects from a seed, as a new process would make them. adam: else SGD with momentum. */
static run run_new(uint64_t seed, bool adam) {
    run r;
    om_seed(seed);
    r.net = om_nn_sequential();
    om_nn_append(r.net, om_nn_linear(IN, HIDDEN, NULL));
    om_nn_append(r.net, om_nn_layer_norm(OM_DIMS(HIDDEN), NULL));
    om_nn_append(r.net, om_nn_relu());
    om_nn_append(r.net, om_nn_dropout(0.3f));
    om_nn_append(r.net, om_nn_linear(HIDDEN, CLASSES, NULL));
    r.opt = adam ? om_adamw(r.net, 0.01, OM_OPTS(adam, .weight_decay = 0.1))
                 : om_sgd(r.net, 0.05, OM_OPTS(sgd, .momentum = 0.9));
    om_optim_group(r.opt, "*.bias", OM_OPTS(group, .no_decay = true, .lr = 0.02), NULL);
    if (adam) om_schedule_cosine(r.opt, 40, 3, 0.1);
    OM_SCOPE {
        om_rng mine        = om_rng_new(99, 3);
        om_tensor *both[2] = {om_randn(&mine, 0, 1, OM_DIMS(DATA, IN)),
                              om_randint(&mine, 0, CLASSES, OM_DIMS(DATA))};
        r.loader           = om_loader_new(2, both, BATCH, OM_OPTS(loader, .shuffle = true));
    }
    expect_ok();
    return r;
}

static void run_free(run *r) {
    om_loader_free(r->loader);
    om_optim_free(r->opt);
    om_nn_free(r->net);
}

static void run_steps(run *r, int n) {
    om_tensor *b[2];
    for (int i = 0; i < n; i++)
        OM_SCOPE {
            if (!om_loader_next(r->loader, b)) om_loader_next(r->loader, b);
            om_tensor *loss = om_cross_entropy(om_forward(r->net, b[0]), b[1]);
            om_zero_grad(r->opt);
            om_backward(loss);
            om_clip_norm(r->opt, 0.5, NULL);
            om_step(r->opt);
            expect_ok();
        }
}

static void expect_same_weights(run *a, run *b, bool same) {
    static const char *const names[] = {"0.weight", "0.bias",   "1.weight",
                                        "1.bias",   "4.weight", "4.bias"};
    bool all                         = true;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        all &= om_bit_equal(om_nn_get(a->net, names[i]), om_nn_get(b->net, names[i]));
    expect_ok();
    assert_int_equal(all, same);
}

static char scratch[64];
static const char *scratch_path(void) {
    snprintf(scratch, sizeof scratch, "/tmp/onemodel_nn_%d.om", (int)getpid());
    return scratch;
}

/* 20 steps at once against 10, a checkpoint, new objects of another seed, and 10 more. The pause
 * falls into the middle of an epoch (five batches each). */
static void resume_gives_the_same_bits(void **state) {
    (void)state;
    for (int adam = 0; adam < 2; adam++)
        for (int pause = 10; pause <= 12; pause += 2) {
            run straight = run_new(5, adam);
            run_steps(&straight, 20);
            om_rng dropout = *om_thread_rng(2);
            run first      = run_new(5, adam);
            run_steps(&first, pause);
            om_checkpoint c = {
                .module = first.net, .optim = first.opt, .loader = first.loader, .step = pause};
            assert_int_equal(om_checkpoint_save(scratch_path(), &c), OM_OK);
            run_free(&first);
            run second = run_new(1234, adam);
            run_steps(&second, 3); /* in any state */
            expect_same_weights(&straight, &second, false);
            om_checkpoint d = {.module = second.net, .optim = second.opt, .loader = second.loader};
            assert_int_equal(om_checkpoint_load(scratch, &d), OM_OK);
            assert_int_equal(d.step, pause);
            assert_int_equal(om_optim_steps(second.opt), pause);
            run_steps(&second, 20 - pause);
            expect_same_weights(&straight, &second, true);
            assert_int_equal(om_loader_epoch(straight.loader), om_loader_epoch(second.loader));
            assert_true(om_lr(straight.opt, 1) == om_lr(second.opt, 1));
            assert_memory_equal(om_thread_rng(2), &dropout, sizeof dropout);
            run_free(&straight);
            run_free(&second);
        }
    unlink(scratch);
}

/* The items of the next n batches in their order; begins the next epoch when one is over. */
static int64_t take_items(om_loader *l, int n, int64_t *items) {
    int64_t got = 0;
    om_tensor *b[1];
    for (int i = 0; i < n; i++)
        OM_SCOPE {
            if (!om_loader_next(l, b)) assert_true(om_loader_next(l, b));
            memcpy(items + got, om_data(b[0]), (size_t)om_numel(b[0]) * sizeof *items);
            got += om_numel(b[0]);
        }
    expect_ok();
    return got;
}

/* A checkpoint of a resumed run is resumed itself, within the same epoch (five batches) and twice:
 * what the epoch began with must come through each of them. */
static void a_second_resume_in_one_epoch(void **state) {
    (void)state;
    om_scope s     = om_scope_begin();
    om_tensor *all = om_arange(0, DATA, 1);
    om_module *net = om_nn_linear(2, 2, NULL);
    int64_t straight[4 * DATA], parts[4 * DATA];
    om_loader_opts o = *OM_OPTS(loader, .shuffle = true);
    for (int before = 0; before < 3; before++) {
        /* First saved at the end of an epoch, or within one. */
        om_seed(77);
        om_loader *l = om_loader_new(1, &all, BATCH, &o);
        int64_t n    = take_items(l, 5 + 14, straight), at;
        om_loader_free(l);
        om_seed(77);
        l  = om_loader_new(1, &all, BATCH, &o);
        at = take_items(l, 5 + before, parts);
        for (int pause = 0; pause < 3; pause++) {
            om_checkpoint c = {.module = net, .loader = l, .step = pause};
            assert_int_equal(om_checkpoint_save(scratch_path(), &c), OM_OK);
            om_loader_free(l);
            om_seed(1000 + (uint64_t)pause); /* as a new process: other generators, in any state */
            l = om_loader_new(1, &all, BATCH, &o);
            int64_t other[DATA];
            take_items(l, pause, other);
            c.loader = l;
            assert_int_equal(om_checkpoint_load(scratch, &c), OM_OK);
            at += take_items(l, pause < 2 ? 1 : 12 - before, parts + at);
        }
        assert_int_equal(at, n);
        assert_int_equal(om_loader_epoch(l), 3);
        assert_memory_equal(parts, straight, (size_t)n * sizeof *parts);
        om_loader_free(l);
    }
    om_nn_free(net);
    om_scope_end(s);
    unlink(scratch);
}

static void checkpoints_must_fit(void **state) {
    (void)state;
    run a = run_new(1, true);
    run_steps(&a, 2);
    om_checkpoint c = {.module = a.net, .optim = a.opt, .step = 2};
    om_checkpoint_save(scratch_path(), &c);
    expect_ok();
    run b = run_new(2, false), keep = run_new(2, false);
    om_checkpoint d = {.module = b.net, .optim = b.opt};
    assert_int_equal(om_checkpoint_load(scratch, &d), OM_ERR_ARG);
    expect_error(OM_ERR_ARG, "another kind of optimizer");
    d.optim  = NULL;
    d.loader = b.loader;
    assert_int_equal(om_checkpoint_load(scratch, &d), OM_ERR_ARG);
    expect_error(OM_ERR_ARG, "no loader");
    expect_same_weights(&b, &keep, true); /* nothing was changed */
    om_module *other = om_nn_linear(2, 2, NULL);
    d                = (om_checkpoint){.module = other};
    assert_int_equal(om_checkpoint_load(scratch, &d), OM_ERR_ARG);
    expect_error(OM_ERR_ARG, "do not fit");
    /* The weights alone. */
    assert_int_equal(om_nn_load(b.net, scratch, NULL), OM_OK);
    expect_same_weights(&a, &b, true);
    om_nn_save(keep.net, scratch);
    om_nn_load(b.net, scratch, NULL);
    expect_same_weights(&keep, &b, true);
    d = (om_checkpoint){.module = b.net};
    assert_int_equal(om_checkpoint_load(scratch, &d), OM_ERR_ARG);
    expect_error(OM_ERR_ARG, "no generators");
    assert_int_equal(om_nn_load(b.net, "/nonexistent/x.om", NULL), OM_ERR_IO);
    om_catch(NULL);
    assert_int_equal(om_nn_save(b.net, "/nonexistent/x.om"), OM_ERR_IO);
    om_catch(NULL);
    om_nn_free(other);
    run_free(&a);
    run_free(&b);
    run_free(&keep);
    unlink(scratch);
}

/* ---- broken files
 * --------------------------------------------------------------------------------- */

static void write_file(const unsigned char *v, size_t n) {
    FILE *f = fopen(scratch, "wb");
    assert_non_null(f);
    assert_int_equal(fwrite(v, 1, n, f), n);
    fclose(f);
}

/* Every prefix and every flipped byte of a checkpoint is refused or loads, and never leaves a
 * trace. */
static void broken_checkpoints(void **state) {
    (void)state;
    static unsigned char v[65536];
    run a = run_new(1, true);
    run_steps(&a, 1);
    om_checkpoint c = {.module = a.net, .optim = a.opt, .loader = a.loader, .step = 1};
    om_checkpoint_save(scratch_path(), &c);
    FILE *f = fopen(scratch, "rb");
    assert_non_null(f);
    size_t n = fread(v, 1, sizeof v, f), refused = 0, tried = 0;
    fclose(f);
    assert_true(n > 1000 && n < sizeof v);
    run keep = run_new(1, true);
    run_steps(&keep, 1);
    for (size_t i = 0; i < 2 * n; i += i < 300 || (i > n && i < n + 2000) ? 1 : 37) {
        bool flip = i >= n;
        size_t at = flip ? i - n : i;
        if (flip) v[at] ^= 0x41;
        write_file(v, flip ? n : at);
        tried++;
        if (om_checkpoint_load(scratch, &c) != OM_OK) {
            refused++;
            om_catch(NULL);
            expect_same_weights(&a, &keep, true);
        }
        if (flip) v[at] ^= 0x41;
    }
    print_message("%zu of %zu broken files refused\n", refused, tried);
    assert_true(refused > tried * 9 / 10);
    run_free(&a);
    run_free(&keep);
    unlink(scratch);
}

/* The same with checksums made right again, so that the readers of the sections see the damage. */
static void hostile_checkpoints(void **state) {
    (void)state;
    static const char tags[] = "STATDATATRAIOPTMRNGS";
    run a                    = run_new(1, true);
    run_steps(&a, 1);
    om_checkpoint c = {.module = a.net, .optim = a.opt, .loader = a.loader, .step = 1};
    om_checkpoint_save(scratch_path(), &c);
    om_buffer *file  = omi_file_read(scratch, true);
    om_source source = {.label = "test"};
    om_container whole;
    assert_int_equal(omi_container_open(&whole, file, &source, tags), OM_OK);
    size_t refused = 0, tried = 0;
    for (int k = 0; k < whole.n; k++) {
        om_section *s = &whole.sections[k];
        unsigned char copy[4096];
        if (strcmp(s->tag, "DATA") == 0) continue;
        assert_true(s->bytes < sizeof copy);
        memcpy(copy, s->data, s->bytes);
        const void *before = s->data;
        uint64_t bytes     = s->bytes;
        s->data            = copy;
        for (uint64_t i = 0; i < 2 * bytes; i++) {
            /* A byte changed, or the section cut. */
            if (i < bytes)
                copy[i] ^= i % 3 == 0 ? 0xff : i % 3 == 1 ? 0x80 : 0x01;
            else
                s->bytes = i - bytes;
            om_status st = omi_container_save(scratch, whole.sections, whole.n);
            assert_int_equal(st, OM_OK);
            tried++;
            if (om_checkpoint_load(scratch, &c) != OM_OK) {
                om_error e;
                om_catch(&e);
                refused++;
                assert_true(e.status == OM_ERR_MALFORMED || e.status == OM_ERR_ARG);
            }
            assert_true(i < bytes || om_pending() == OM_OK);
            if (i < bytes) memcpy(copy, before, bytes);
            s->bytes = bytes;
        }
        s->data = before;
    }
    omi_buffer_release(file);
    print_message("%zu of %zu hostile files refused\n", refused, tried);
    assert_true(refused > tried / 2);
    run_free(&a);
    unlink(scratch);
}

/* ---- memory that runs out
 * ------------------------------------------------------------------------- */

/* A step of training, a checkpoint, and its load into new objects. */
static om_status job_checkpoint(void *ctx) {
    (void)ctx;
    om_scope s     = om_scope_begin();
    om_module *net = om_nn_sequential();
    om_nn_append(net, om_nn_linear(3, 2, NULL));
    om_nn_append(net, om_nn_dropout(0.2f));
    om_optim *opt   = om_adam(net, 0.01, NULL);
    om_tensor *x    = om_ones(OM_F32, OM_DIMS(6, 3));
    om_loader *l    = om_loader_new(1, &x, 2, OM_OPTS(loader, .shuffle = true));
    om_tensor *b[1] = {NULL};
    if (om_loader_next(l, b)) om_backward(om_mean_all(om_forward(net, b[0])));
    om_step(opt);
    om_checkpoint c = {.module = net, .optim = opt, .loader = l, .step = 1};
    om_checkpoint_save(scratch_path(), &c);
    om_checkpoint_load(scratch, &c);
    om_loader_free(l);
    om_optim_free(opt);
    om_nn_free(net);
    return om_scope_end(s);
}

static void memory_runs_out(void **state) {
    (void)state;
    assert_int_equal(job_checkpoint(NULL), OM_OK); /* names are interned once and stay */
    om_scope_drain();
    om_trim();
    int64_t n = harness_fail_each(job_checkpoint, NULL);
    print_message("%lld allocations made to fail\n", (long long)n);
    assert_true(n > 60);
    unlink(scratch);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        FIXTURE_TEST(loader_visits_everything),   FIXTURE_TEST(loader_by_callback),
        FIXTURE_TEST(resume_gives_the_same_bits), FIXTURE_TEST(a_second_resume_in_one_epoch),
        FIXTURE_TEST(checkpoints_must_fit),       FIXTURE_TEST(broken_checkpoints),
        FIXTURE_TEST(hostile_checkpoints),        FIXTURE_TEST(memory_runs_out),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
