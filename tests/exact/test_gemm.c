/*
 * test_gemm.c -- the matrix product, bit for bit against AR-2 in every column and thread count.
 */
#include "exact/exact.h"

#include "compute/matmul.h"

/* ---- AR-2.1 written down --------------------------------------------------------------------- */

typedef struct problem {
    int64_t m, n, k;
    const float *a, *b, *c;
    int64_t ars, acs, brs, bcs, crs, ccs;
    float alpha, beta;
} problem;

static float chain(const problem *p, int64_t i, int64_t j) {
    float total = 0.0f;
    for (int64_t g = 0; g < p->k; g += 4096) {
        float group = 0.0f;
        for (int64_t b = g; b < p->k && b < g + 4096; b += 256) {
            float s = 0.0f;
            for (int64_t k = b; k < p->k && k < b + 256; k++)
                s = fmaf(p->a[i * p->ars + k * p->acs], p->b[k * p->brs + j * p->bcs], s);
            group = b > g ? group + s : s;
        }
        total = g > 0 ? total + group : group;
    }
    return total;
}

static void reference(const problem *p, float *y) {
    for (int64_t i = 0; i < p->m; i++)
        for (int64_t j = 0; j < p->n; j++) {
            float v = chain(p, i, j);
            if (p->alpha != 1.0f) v = p->alpha * v;
            if (p->c) {
                float c = p->c[i * p->crs + j * p->ccs];
                v       = v + (p->beta == 1.0f ? c : p->beta * c);
            }
            y[i * p->n + j] = v;
        }
}

static om_view matrix(const void *data, om_dtype t, int64_t rows, int64_t cols, int64_t rs,
                      int64_t cs) {
    union {
        const void *c;
        void *p;
    } u = {data};
    return (om_view){
        .data = u.p, .dtype = t, .rank = 2, .shape = {rows, cols}, .strides = {rs, cs}};
}

static om_matmul_args args_of(const problem *p, float *y, const float *packed) {
    om_matmul_args m = {.a        = matrix(p->a, OM_F32, p->m, p->k, p->ars, p->acs),
                        .b        = matrix(p->b, OM_F32, p->k, p->n, p->brs, p->bcs),
                        .y        = matrix(y, OM_F32, p->m, p->n, p->n, 1),
                        .alpha    = p->alpha,
                        .beta     = p->beta,
                        .b_packed = packed};
    if (p->c) m.c = matrix(p->c, OM_F32, p->m, p->n, p->crs, p->ccs), m.has_c = true;
    return m;
}

static void run(const om_matmul_args *m, int workers) {
    om_matmul_plan plan;
    assert_true(omi_matmul_plan(m, workers, &plan));
    size_t bytes = plan.ws_bytes;
    char *ws     = test_alloc(bytes + 4);
    memset(ws + bytes, 0x5a, 4); /* nothing may be written behind what was asked for */
    om_matmul_ptrs x = {.a = m->a.data, .b = m->b.data, .c = m->c.data, .y = m->y.data};
    omi_matmul_run(&plan, &x, ws);
    assert_memory_equal(ws + bytes, "\x5a\x5a\x5a\x5a", 4);
    free(ws);
}

/* ---- the hash of docs/arithmetic.md ---------------------------------------------------------- */

static float spread(xs *g, int range, int low) {
    double m = xs_unit(g) * 2 - 1;
    int e    = (int)(xs_unit(g) * range) + low;
    return ldexpf((float)m, e);
}

static const int64_t hash_shapes[][3] = {
    {1, 1, 1},      {1, 17, 300},  {3, 33, 257},    {7, 100, 700}, {14, 32, 256}, {15, 48, 513},
    {29, 65, 1000}, {64, 64, 64},  {40, 100, 1111}, {2, 300, 512}, {5, 5, 0},     {1, 40, 9000},
    {3, 20, 4096},  {4, 33, 8192}, {17, 50, 13000}, {30, 16, 4097}};

static void fill_hash_problem(xs *g, int mode, int64_t m, int64_t n, int64_t k, float *a,
                              float *b) {
    for (int64_t i = 0; i < m * k; i++)
        a[i] = mode == 0   ? (float)(xs_unit(g) * 2 - 1)
               : mode == 1 ? spread(g, 60, -30)
                           : spread(g, 100, -126); /* subnormals */
    for (int64_t i = 0; i < k * n; i++)
        b[i] = mode == 0 ? (float)xs_unit(g) : mode == 1 ? spread(g, 60, -30) : spread(g, 40, -20);
}

/* flip: problem and element of a whose lowest bit is turned; -1 for none. own: the reference loop.
 */
static uint64_t gemm_hash(bool own, int flip) {
    xs g       = XS_SEED;
    uint64_t h = 0;
    for (int mode = 0; mode < 3; mode++)
        for (size_t s = 0; s < OM_COUNT(hash_shapes); s++) {
            int64_t m = hash_shapes[s][0], n = hash_shapes[s][1], k = hash_shapes[s][2];
            float *a = test_alloc((size_t)(m * k) * 4), *b = test_alloc((size_t)(k * n) * 4);
            float *y = test_alloc((size_t)(m * n) * 4);
            fill_hash_problem(&g, mode, m, n, k, a, b);
            if (flip == mode * 100 + (int)s) ((uint32_t *)(void *)a)[m * k / 2] ^= 1u;
            problem p = {m, n, k, a, b, NULL, k, 1, n, 1, 0, 0, 1.0f, 1.0f};
            if (own) {
                reference(&p, y);
            } else {
                om_matmul_args args = args_of(&p, y, NULL);
                float *packed       = test_alloc(omi_panel16_bytes(k, n));
                run(&args, 1);
                uint64_t plain = fnv32(y, (size_t)(m * n));
                omi_panel16_pack(packed, b, n, 1, k, n, 1);
                args.b_packed = packed;
                memset(y, 0xff, (size_t)(m * n) * 4);
                run(&args, 1);
                assert_true(plain == fnv32(y, (size_t)(m * n)));
                free(packed);
            }
            h ^= fnv32(y, (size_t)(m * n)) + s;
            free(a), free(b), free(y);
        }
    return h;
}

#define GEMM_HASH 0xaf6090ad509bb7b9ull

static void check_hash(const om_kernels *k, void *ctx) {
    (void)ctx;
    uint64_t h = gemm_hash(false, -1);
    if (h != GEMM_HASH) fail_msg("column %s: hash %016llx", k->name, (unsigned long long)h);
}
static void test_hash(void **state) {
    (void)state;
    assert_true(gemm_hash(true, -1) == GEMM_HASH);
    each_column(check_hash, NULL);
    assert_true(gemm_hash(false, 3) != GEMM_HASH);
    assert_true(gemm_hash(false, 13) != GEMM_HASH);
}

/* ---- layouts, epilogues ---------------------------------------------------------------------- */

static void check_layouts(const om_kernels *k, void *ctx) {
    (void)ctx;
    xs g      = {12345};
    int count = k->width == 1 || k->name[0] == 'w' ? 60 : 150;
    for (int t = 0; t < count; t++) {
        int64_t m = xs_int(&g, 1, t % 3 ? 40 : 9), n = xs_int(&g, 1, 70), kk = xs_int(&g, 0, 600);
        if (t == 7) kk = 4300;
        if (t == 8) n = 600, kk = 4100, m = 9;
        problem p   = {.m = m, .n = n, .k = kk, .alpha = 1.0f, .beta = 1.0f};
        int64_t pad = xs_int(&g, 0, 5);
        if (t & 1)
            p.ars = kk + pad, p.acs = 1;
        else
            p.ars = 1, p.acs = m + pad;
        if (t & 2)
            p.brs = n + pad, p.bcs = 1;
        else
            p.brs = 1, p.bcs = kk + pad;
        if (t % 11 == 10) p.ars = 3, p.acs = 3 * m + 1, p.brs = 2, p.bcs = 2 * kk + 3;
        int64_t an = (m + 1) * (kk + 1) * 3 + (m + kk) * 6 + 64, bn = (n + 2) * (kk + 6) * 2 + 64;
        float *a = test_alloc((size_t)an * 4), *b = test_alloc((size_t)bn * 4);
        float *c = test_alloc((size_t)(m * n + 8) * 4);
        float *y = test_alloc((size_t)(m * n) * 4), *r = test_alloc((size_t)(m * n) * 4);
        for (int64_t i = 0; i < an; i++)
            a[i] = (float)(xs_unit(&g) - 0.5);
        for (int64_t i = 0; i < bn; i++)
            b[i] = (float)(xs_unit(&g) - 0.5);
        for (int64_t i = 0; i < m * n; i++)
            c[i] = (float)(xs_unit(&g) - 0.5);
        p.a = a, p.b = b;
        if (t % 4 == 1) p.alpha = 0.3f;
        if (t % 5 == 2) p.beta = -1.7f;
        if (t % 5 == 4) p.beta = 0.0f;
        if (t % 3) p.c = c;
        switch (t % 5) { /* full, row vector, column vector, transposed, one number */
        case 0:
            p.crs = n, p.ccs = 1;
            break;
        case 1:
            p.crs = 0, p.ccs = 1;
            break;
        case 2:
            p.crs = 1, p.ccs = 0;
            break;
        case 3:
            p.crs = 1, p.ccs = m;
            break;
        default:
            p.crs = 0, p.ccs = 0;
        }
        reference(&p, r);
        om_matmul_args args = args_of(&p, y, NULL);
        run(&args, 1);
        assert_same_f32(y, r, m * n, k->name);
        free(a), free(b), free(c), free(y), free(r);
    }
}
static void test_layouts(void **state) {
    (void)state;
    each_column(check_layouts, NULL);
}

/* Few rows, and one column, with b as it lies: neighbours in rows, in columns, neither, repeated.
 */
static void check_in_place(const om_kernels *k, void *ctx) {
    (void)ctx;
    static const int64_t ks[] = {0, 1, 7, 16, 33, 256, 300, 4099, 9000};
    static const int64_t ns[] = {1, 2, 5, 8, 15, 16, 17, 33, 70, 140};
    enum { M = 5, N = 140, K = 9000 };
    float *a = test_alloc((size_t)M * K * 4), *b = test_alloc((size_t)N * K * 2 * 4);
    float y[M * N], r[M * N], c[M * N];
    xs g = {77};
    for (int64_t i = 0; i < M * K; i++)
        a[i] = (float)(xs_unit(&g) - 0.4);
    for (int64_t i = 0; i < N * K * 2; i++)
        b[i] = (float)(xs_unit(&g) - 0.5);
    for (int64_t i = 0; i < M * N; i++)
        c[i] = (float)xs_unit(&g);
    for (int64_t m = 1; m <= M; m++)
        for (size_t t = 0; t < OM_COUNT(ns) * OM_COUNT(ks) * 4; t++) {
            int64_t n = ns[t / 4 % OM_COUNT(ns)], kk = ks[t / 4 / OM_COUNT(ns)];
            int64_t rs[4] = {n, 1, 2 * n, 0}, cs[4] = {1, kk, 2, 1};
            if (kk > 1000 && (m + n) % 3) continue; /* the reference is slow */
            problem p = {m, n,         kk,        a, b, t % 3 ? c : NULL,    kk,
                         1, rs[t % 4], cs[t % 4], n, 1, t % 5 ? 1.0f : 0.3f, t % 7 ? 1.0f : 2.0f};
            if (t % 2) p.ars = 1, p.acs = M; /* a transposed */
            om_matmul_args args = args_of(&p, y, NULL);
            om_matmul_plan plan;
            assert_true(omi_matmul_plan(&args, 1, &plan));
            if (m == 1 || n == 1) assert_int_equal(plan.ws_bytes, 0);
            memset(y, 0xff, sizeof y);
            reference(&p, r);
            run(&args, t % 2 ? 1 : 3);
            assert_same_f32(y, r, m * n, k->name);
        }
    free(a), free(b);
}
static void few_rows_or_one_column_read_b_in_place(void **state) {
    (void)state;
    each_column(check_in_place, NULL);
}

/* ---- threads, levels of the rule ------------------------------------------------------------- */

static const int64_t thread_shapes[][3] = {{3, 20, 20000}, {1, 1, 70000},  {200, 40, 300},
                                           {5, 700, 260},  {61, 97, 5000}, {300, 300, 64}};

static void check_threads(const om_kernels *k, void *ctx) {
    (void)ctx;
    for (size_t s = 0; s < OM_COUNT(thread_shapes); s++) {
        int64_t m = thread_shapes[s][0], n = thread_shapes[s][1], kk = thread_shapes[s][2];
        xs g     = {99 + s};
        float *a = test_alloc((size_t)(m * kk) * 4), *b = test_alloc((size_t)(kk * n) * 4);
        float *y = test_alloc((size_t)(m * n) * 4), *r = test_alloc((size_t)(m * n) * 4);
        for (int64_t i = 0; i < m * kk; i++)
            a[i] = (float)(xs_unit(&g) - 0.3);
        for (int64_t i = 0; i < kk * n; i++)
            b[i] = (float)(xs_unit(&g) - 0.5);
        float bias = 0.25f;
        problem p  = {m, n, kk, a, b, &bias, kk, 1, n, 1, 0, 0, 0.5f, 1.0f};
        reference(&p, r);
        static const int counts[] = {1, 2, 3, 8};
        for (size_t t = 0; t < OM_COUNT(counts); t++) {
            assert_int_equal(om_set_threads(counts[t]), OM_OK);
            memset(y, 0xff, (size_t)(m * n) * 4);
            om_matmul_args args = args_of(&p, y, NULL);
            uint64_t before     = omi_kernel_calls(OM_COL_SCALAR);
            run(&args, counts[t]);
            assert_same_f32(y, r, m * n, k->name);
            if (OM_COUNTS_CALLS && s == 0 && counts[t] > 1 && k == omi_kernels_of(OM_COL_SCALAR))
                /* five groups with b in place, one combination */
                assert_int_equal((int)(omi_kernel_calls(OM_COL_SCALAR) - before), 5 + 1);
        }
        free(a), free(b), free(y), free(r);
    }
    assert_int_equal(om_set_threads(0), OM_OK);
}
static void test_threads(void **state) {
    (void)state;
    each_column(check_threads, NULL);
}

/* ---- bands ----------------------------------------------------------------------------------- */

/* Three items share a b too wide to be packed at once; c has columns and, a row apart, other rows.
 */
static void check_bands(const om_kernels *k, void *ctx) {
    (void)ctx;
    static const int64_t shapes[][3] = {
        {9, 1037, 520}, {50, 513, 300}, {5, 300, 2000}, {26, 801, 700}};
    enum { ITEMS = 3 };
    for (size_t s = 0; s < OM_COUNT(shapes); s++)
        for (int turned = 0; turned < 2; turned++) {
            int64_t m = shapes[s][0], n = shapes[s][1], kk = shapes[s][2];
            xs g     = {7 + s};
            float *a = test_alloc((size_t)(ITEMS * m * kk) * 4),
                  *b = test_alloc((size_t)(kk * n) * 4), *c = test_alloc((size_t)(m * (n + 1)) * 4),
                  *r = test_alloc((size_t)(ITEMS * m * n) * 4),
                  *y = test_alloc((size_t)(ITEMS * m * n) * 4);
            for (int64_t i = 0; i < ITEMS * m * kk; i++)
                a[i] = (float)(xs_unit(&g) - 0.3);
            for (int64_t i = 0; i < kk * n; i++)
                b[i] = (float)(xs_unit(&g) - 0.5);
            for (int64_t i = 0; i < m * (n + 1); i++)
                c[i] = (float)xs_unit(&g);
            int64_t brs = turned ? 1 : n, bcs = turned ? kk : 1;
            om_matmul_args args = {.alpha = 0.5f, .beta = 2.0f, .has_c = true};
            args.a              = (om_view){
                             a, OM_F32, 3, {ITEMS, m, kk}, {kk, ITEMS * kk, 1}}; // rows of items in turn
            args.b = (om_view){b, OM_F32, 3, {ITEMS, kk, n}, {0, brs, bcs}};
            args.y = (om_view){y, OM_F32, 3, {ITEMS, m, n}, {m * n, n, 1}};
            args.c = (om_view){c, OM_F32, 3, {ITEMS, m, n}, {0, n + 1, 1}};
            for (int64_t i = 0; i < ITEMS; i++) {
                problem p = {m, n,   kk,  a + i * kk, b, c,    ITEMS * kk,
                             1, brs, bcs, n + 1,      1, 0.5f, 2.0f};
                reference(&p, r + i * m * n);
            }
            for (int workers = 1; workers <= 8; workers += workers == 1 ? 1 : 3) {
                om_matmul_plan plan;
                assert_true(omi_matmul_plan(&args, workers, &plan));
                assert_int_equal(plan.b_form, OM_MM_B_SHARED);
                assert_true(plan.band < n && plan.band % 32 == 0);
                assert_true(plan.shared * 4 <= 256 * (size_t)kk * 4 || plan.shared <= 128 * 1024);
                assert_int_equal(om_set_threads(workers), OM_OK);
                memset(y, 0xff, (size_t)(ITEMS * m * n) * 4);
                run(&args, workers);
                assert_same_f32(y, r, ITEMS * m * n, k->name);
            }
            free(a), free(b), free(c), free(r), free(y);
        }
    assert_int_equal(om_set_threads(0), OM_OK);
}
static void a_wide_b_is_packed_in_bands(void **state) {
    (void)state;
    each_column(check_bands, NULL);
}

/* ---- batches --------------------------------------------------------------------------------- */

static void check_batches(const om_kernels *k, void *ctx) {
    (void)ctx;
    enum { X = 2, Y = 3, M = 5, N = 18, K = 37 };
    static float a[X * Y * M * K], b[X * Y * K * N], c[N], y[X * Y * M * N], r[M * N];
    xs g = {5};
    for (size_t i = 0; i < OM_COUNT(a); i++)
        a[i] = (float)(xs_unit(&g) - 0.5);
    for (size_t i = 0; i < OM_COUNT(b); i++)
        b[i] = (float)(xs_unit(&g) - 0.5);
    for (int i = 0; i < N; i++)
        c[i] = (float)xs_unit(&g);
    for (int way = 0; way < 5; way++) /* both; one b; b per x; a per y; a transposed and one b */
        for (int workers = 1; workers <= 3; workers += 2) {
            om_matmul_args m = {.alpha = 1.0f, .beta = 1.0f};
            m.a              = (om_view){a, OM_F32, 4, {X, Y, M, K}, {Y * M * K, M * K, K, 1}};
            m.b              = (om_view){b, OM_F32, 4, {X, Y, K, N}, {Y * K * N, K * N, N, 1}};
            m.y              = (om_view){y, OM_F32, 4, {X, Y, M, N}, {Y * M * N, M * N, N, 1}};
            m.c              = (om_view){c, OM_F32, 4, {X, Y, M, N}, {0, 0, 0, 1}};
            m.has_c          = true;
            if (way == 1 || way == 4) m.b.strides[0] = m.b.strides[1] = 0;
            if (way == 2) m.b.strides[1] = 0;
            if (way == 3) m.a.strides[0] = 0;
            if (way == 4) m.a.strides[2] = 1, m.a.strides[3] = M;
            memset(y, 0xff, sizeof y);
            run(&m, workers);
            for (int x = 0; x < X; x++)
                for (int q = 0; q < Y; q++) {
                    problem p = {M,
                                 N,
                                 K,
                                 a + x * m.a.strides[0] + q * m.a.strides[1],
                                 b + x * m.b.strides[0] + q * m.b.strides[1],
                                 c,
                                 m.a.strides[2],
                                 m.a.strides[3],
                                 N,
                                 1,
                                 0,
                                 1,
                                 1.0f,
                                 1.0f};
                    reference(&p, r);
                    assert_same_f32(y + (x * Y + q) * M * N, r, M * N, k->name);
                }
        }
}
static void test_batches(void **state) {
    (void)state;
    each_column(check_batches, NULL);
}

/* A row of a batch computed alone has the bits it has in the batch. */
static void check_row_alone(const om_kernels *k, void *ctx) {
    (void)ctx;
    enum { M = 37, N = 50, K = 300 };
    static float a[M * K], b[K * N], y[M * N], one[N];
    xs g = {8};
    for (size_t i = 0; i < OM_COUNT(a); i++)
        a[i] = (float)(xs_unit(&g) - 0.5);
    for (size_t i = 0; i < OM_COUNT(b); i++)
        b[i] = (float)(xs_unit(&g) - 0.5);
    problem p          = {M, N, K, a, b, NULL, K, 1, N, 1, 0, 0, 1.0f, 1.0f};
    om_matmul_args all = args_of(&p, y, NULL);
    run(&all, 1);
    for (int i = 0; i < M; i++) {
        problem q          = {1, N, K, a + i * K, b, NULL, K, 1, N, 1, 0, 0, 1.0f, 1.0f};
        om_matmul_args row = args_of(&q, one, NULL);
        run(&row, 1);
        assert_same_f32(one, y + i * N, N, k->name);
    }
}
static void test_row_alone(void **state) {
    (void)state;
    each_column(check_row_alone, NULL);
}

/* ---- other types ----------------------------------------------------------------------------- */

static void check_types(const om_kernels *k, void *ctx) {
    (void)ctx;
    enum { M = 7, N = 21, K = 4500 };
    static double a[M * K], b[K * N], y[M * N];
    static int64_t ia[M * K], ib[K * N], iy[M * N];
    static int32_t ja[M * K], jb[K * N], jy[M * N];
    xs g = {77};
    for (size_t i = 0; i < OM_COUNT(a); i++) {
        a[i]  = xs_unit(&g) - 0.5;
        ia[i] = (int64_t)(g.s * 3);
        ja[i] = (int32_t)(uint32_t)(g.s >> 20);
    }
    for (size_t i = 0; i < OM_COUNT(b); i++) {
        b[i]  = xs_unit(&g) - 0.5;
        ib[i] = (int64_t)(g.s * 5);
        jb[i] = (int32_t)(uint32_t)(g.s >> 11);
    }
    for (int workers = 1; workers <= 3; workers += 2) {
        om_matmul_args m = {.alpha = 1.0f, .beta = 1.0f};
        m.a = matrix(a, OM_F64, M, K, K, 1), m.b = matrix(b, OM_F64, K, N, N, 1);
        m.y = matrix(y, OM_F64, M, N, N, 1);
        run(&m, workers);
        m.a = matrix(ia, OM_I64, M, K, K, 1), m.b = matrix(ib, OM_I64, K, N, 1, K);
        m.y = matrix(iy, OM_I64, M, N, N, 1);
        run(&m, workers);
        m.a = matrix(ja, OM_I32, M, K, 1, M), m.b = matrix(jb, OM_I32, K, N, N, 1);
        m.y = matrix(jy, OM_I32, M, N, N, 1);
        run(&m, workers);
        for (int i = 0; i < M; i++)
            for (int j = 0; j < N; j++) {
                double total = 0, group = 0;
                uint64_t is = 0;
                uint32_t js = 0;
                for (int q = 0; q < K; q += 256) {
                    volatile double s = 0; /* volatile: a product and a sum, never one fma */
                    for (int x = q; x < K && x < q + 256; x++) {
                        volatile double t = a[i * K + x] * b[x * N + j];
                        s                 = s + t;
                        is += (uint64_t)ia[i * K + x] * (uint64_t)ib[j * K + x];
                        js += (uint32_t)ja[x * M + i] * (uint32_t)jb[x * N + j];
                    }
                    group = q % 4096 ? group + s : s;
                    if (q % 4096 == 3840) total = q < 4096 ? group : total + group;
                }
                total = total + group;
                assert_memory_equal(&y[i * N + j], &total, 8);
                assert_true((uint64_t)iy[i * N + j] == is);
                assert_true((uint32_t)jy[i * N + j] == js);
            }
    }
    (void)k;
}
static void test_types(void **state) {
    (void)state;
    assert_true(omi_matmul_supports(OM_F64) && omi_matmul_supports(OM_I64));
    assert_false(omi_matmul_supports(OM_BOOL));
    each_column(check_types, NULL);
}

/* ---- special values, accuracy ---------------------------------------------------------------- */

static void check_special(const om_kernels *k, void *ctx) {
    (void)ctx;
    enum { M = 15, N = 33, K = 40 };
    static const float values[] = {0.0f, -0.0f,     INFINITY,         -INFINITY,
                                   NAN,  0x1p-149f, -0x1p-149f,       0x1p-126f,
                                   1.0f, -1.0f,     0x1.fffffep+127f, 0x1p-75f};
    static float a[M * K], b[K * N], y[M * N], r[M * N];
    for (int round = 0; round < 40; round++) {
        xs g     = {1000 + (uint64_t)round};
        int skip = round % 2 ? 5 : 0; /* odd rounds: finite values only, where zeros' signs show */
        for (size_t i = 0; i < OM_COUNT(a); i++)
            a[i] = values[xs_int(&g, skip, 11)];
        for (size_t i = 0; i < OM_COUNT(b); i++)
            b[i] = skip && xs_unit(&g) < 0.7 ? -0.0f : values[xs_int(&g, skip, 11)];
        problem p           = {M, N, K, a, b, NULL, K, 1, N, 1, 0, 0, 1.0f, 1.0f};
        om_matmul_args args = args_of(&p, y, NULL);
        reference(&p, r);
        run(&args, 1);
        assert_same_f32(y, r, M * N, k->name);
    }
}
static void test_special(void **state) {
    (void)state;
    each_column(check_special, NULL);
}

static void test_accuracy(void **state) {
    (void)state;
    enum { M = 8, N = 32, K = 16384 };
    float *a = test_alloc(M * K * 4), *b = test_alloc((size_t)K * N * 4);
    static float y[M * N];
    xs g = {4242};
    for (int i = 0; i < M * K; i++)
        a[i] = (float)xs_unit(&g);
    for (int i = 0; i < K * N; i++)
        b[i] = (float)xs_unit(&g);
    problem p           = {M, N, K, a, b, NULL, K, 1, N, 1, 0, 0, 1.0f, 1.0f};
    om_matmul_args args = args_of(&p, y, NULL);
    run(&args, 2);
    for (int i = 0; i < M; i++)
        for (int j = 0; j < N; j++) {
            double s = 0;
            for (int k = 0; k < K; k++)
                s += (double)a[i * K + k] * (double)b[k * N + j];
            /* all terms positive: docs/arithmetic.md measured at most 2.5 units of 2^-24 * s */
            assert_true(fabs((double)y[i * N + j] - s) <= 4 * 0x1p-24 * s);
        }
    free(a), free(b);
}

/* ---- the table ------------------------------------------------------------------------------- */

static void test_force(void **state) {
    (void)state;
    if (omi_kernels_of(OM_COL_WIDE16)) {
        assert_int_equal(omi_kernels_force(OM_COL_WIDE16), OM_OK);
        assert_string_equal(omi_kernels()->name, "wide16");
        assert_int_equal(omi_kernels()->width, 16);
    }
    assert_int_equal(omi_kernels_force(OM_COL_SCALAR), OM_OK);
    assert_string_equal(omi_kernels()->name, "scalar");
    assert_int_equal(omi_kernels_force(OM_COL_COUNT), OM_ERR_UNSUPPORTED);
    assert_int_equal(om_catch(NULL), OM_ERR_UNSUPPORTED);
    if (!omi_kernels_of(OM_COL_AVX512)) {
        assert_int_equal(omi_kernels_force(OM_COL_AVX512), OM_ERR_UNSUPPORTED);
        om_catch(NULL);
    }
    assert_string_equal(omi_kernels()->name, "scalar");
    assert_int_equal(omi_kernels_force(-1), OM_OK);
    assert_string_equal(omi_kernels()->name, om_isa_name(om_get_isa()));
    uint64_t before[OM_COL_COUNT];
    for (int c = 0; c < OM_COL_COUNT; c++)
        before[c] = omi_kernel_calls((om_column)c);
    float a = 2, b = 3, y;
    problem p        = {1, 1, 1, &a, &b, NULL, 1, 1, 1, 1, 0, 0, 1.0f, 1.0f};
    om_matmul_args m = args_of(&p, &y, NULL);
    run(&m, 1);
    assert_true(y == 6.0f);
    for (int c = 0; c < OM_COL_COUNT; c++) /* the column of the machine, and no other */
        assert_int_equal((int)(omi_kernel_calls((om_column)c) - before[c]),
                         OM_COUNTS_CALLS && c == (int)om_get_isa() ? 1 : 0);
}

static void test_cached(void **state) {
    (void)state;
    enum { K = 30, N = 20 };
    om_buffer *buf = omi_buffer_new((K * N + 4) * 4);
    assert_non_null(buf);
    float *d = buf->data;
    for (int i = 0; i < K * N + 4; i++)
        d[i] = (float)i;
    const float *p = omi_panel16_cached(buf, 4, N, 1, K, N);
    assert_non_null(p);
    assert_true(((uintptr_t)p & 63) == 0);
    assert_ptr_equal(p, omi_panel16_cached(buf, 4, N, 1, K, N));
    const float *t = omi_panel16_cached(buf, 4, 1, K, K, N);
    assert_ptr_not_equal(p, t);
    for (int k = 0; k < K; k++)
        for (int j = 0; j < 32; j++) {
            int64_t at = (j / 16 * K + k) * 16 + j % 16;
            assert_true(p[at] == (j < N ? (float)(4 + k * N + j) : 0.0f));
            assert_true(t[at] == (j < N ? (float)(4 + k + j * K) : 0.0f));
        }
    omi_buffer_packed_drop(buf);
    assert_non_null(omi_panel16_cached(buf, 0, N, 1, K, N));
    omi_buffer_release(buf);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_hash),
        cmocka_unit_test(test_layouts),
        cmocka_unit_test(few_rows_or_one_column_read_b_in_place),
        cmocka_unit_test(test_threads),
        cmocka_unit_test(a_wide_b_is_packed_in_bands),
        cmocka_unit_test(test_batches),
        cmocka_unit_test(test_row_alone),
        cmocka_unit_test(test_types),
        cmocka_unit_test(test_special),
        cmocka_unit_test(test_accuracy),
        cmocka_unit_test(test_force),
        cmocka_unit_test(test_cached),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
