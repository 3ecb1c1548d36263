/*
 * move.c -- copies, fills, ranges, triangles, padding, and accumulation.
 *
 * Everything but range and accumulate moves elements by size and never looks at them, so NaN
 * payloads and the sign of zero survive (AR-7.5). A transposing copy runs in square tiles: a plain
 * row walk would touch one cache line per element on one of the two sides.
 */
#include "compute/move.h"

#include <string.h>

#include "base/dtype.h"
#include "compute/walk.h"

/* ---- copy ---------------------------------------------------------------------------------- */

typedef struct copy_job {
    omi_walk w; /* operand 0: y, 1: x */
    char *y;
    const char *x;
    size_t es;
} copy_job;

#define MOVE_RUN(type)                                                                             \
    do {                                                                                           \
        type *d       = (type *)y;                                                                 \
        const type *s = (const type *)x;                                                           \
        if (sy == 1)                                                                               \
            for (int64_t i = 0; i < n; i++)                                                        \
                d[i] = s[i * sx];                                                                  \
        else                                                                                       \
            for (int64_t i = 0; i < n; i++)                                                        \
                d[i * sy] = s[i * sx];                                                             \
    } while (0)

void omi_move_run(size_t size, int64_t n, void *y, int64_t sy, const void *x, int64_t sx) {
    if (sy == 1 && sx == 1 && size)
        memcpy(y, x, (size_t)n * size);
    else
        OM_BY_SIZE(size, MOVE_RUN)
}

static void copy_range(void *arg, int64_t begin, int64_t end, int worker) {
    (void)worker;
    const copy_job *j = arg;
    omi_pos p;
    int64_t es = (int64_t)j->es;
    omi_walk_seek(&j->w, begin, &p);
    while (begin < end) {
        int64_t n = omi_walk_run(&j->w, &p, end - begin);
        omi_move_run(j->es, n, j->y + p.off[0] * es, j->w.stride[0][0], j->x + p.off[1] * es,
                     j->w.stride[1][0]);
        omi_walk_advance(&j->w, &p, n);
        begin += n;
    }
}

#define TILE 16

#define COPY_TILE(type)                                                                            \
    do {                                                                                           \
        type *d       = (type *)y;                                                                 \
        const type *s = (const type *)x;                                                           \
        for (int64_t i = 0; i < ni; i++)                                                           \
            for (int64_t k = 0; k < nk; k++)                                                       \
                d[i * syi + k * syk] = s[i * sxi + k * sxk];                                       \
    } while (0)

/* The common case with constants, so that both sides move in vectors. */
static void copy_tile_u32(int64_t ni, void *yv, int64_t syi, const void *xv, int64_t sxk) {
    uint32_t *y       = yv, t[TILE][TILE];
    const uint32_t *x = xv;
    if (ni == TILE) {
        for (int k = 0; k < TILE; k++)
            memcpy(t[k], x + k * sxk, sizeof t[k]);
        for (int i = 0; i < TILE; i++)
            for (int k = 0; k < TILE; k++)
                y[i * syi + k] = t[k][i];
    } else {
        for (int64_t i = 0; i < ni; i++)
            for (int k = 0; k < TILE; k++)
                y[i * syi + k] = x[i + k * sxk];
    }
}

static void copy_tile(size_t es, int64_t ni, int64_t nk, void *y, int64_t syi, int64_t syk,
                      const void *x, int64_t sxi, int64_t sxk) {
    if (es == 4 && nk == TILE && syk == 1 && sxi == 1)
        copy_tile_u32(ni, y, syi, x, sxk);
    else
        OM_BY_SIZE(es, COPY_TILE)
}

/* y's unit axis is 0, x's is axis 1 of this walk: [outer..., n1, n0]. One unit of work is TILE rows
 * of axis 1 for one outer position. */
static void copy_tiles(void *arg, int64_t begin, int64_t end, int worker) {
    (void)worker;
    const copy_job *j = arg;
    const omi_walk *w = &j->w;
    int64_t bands = omi_ceil_div(w->shape[1], TILE), es = (int64_t)j->es;
    for (int64_t u = begin; u < end; u++) {
        omi_pos p;
        int64_t k0 = u % bands * TILE, nk = omi_min64(TILE, w->shape[1] - k0);
        omi_walk_seek(w, u / bands * w->shape[0] * w->shape[1], &p);
        char *y       = j->y + (p.off[0] + k0 * w->stride[0][1]) * es;
        const char *x = j->x + (p.off[1] + k0 * w->stride[1][1]) * es;
        for (int64_t i = 0; i < w->shape[0]; i += TILE)
            copy_tile(j->es, nk, omi_min64(TILE, w->shape[0] - i), y + i * w->stride[0][0] * es,
                      w->stride[0][1], w->stride[0][0], x + i * w->stride[1][0] * es,
                      w->stride[1][1], w->stride[1][0]);
    }
}

/* Brings the axis along which x is contiguous next to the innermost one; false when there is none.
 */
static bool make_transpose(omi_walk *w) {
    if (w->rank < 2 || w->stride[0][0] != 1 || w->stride[1][0] == 1 || w->shape[0] < 4)
        return false;
    for (int i = 1; i < w->rank; i++) {
        if (w->stride[1][i] != 1 || w->shape[i] < 4) continue;
        int64_t n = w->shape[i], a = w->stride[0][i], b = w->stride[1][i];
        for (int k = i; k > 1; k--) {
            w->shape[k]     = w->shape[k - 1];
            w->stride[0][k] = w->stride[0][k - 1];
            w->stride[1][k] = w->stride[1][k - 1];
        }
        w->shape[1]     = n;
        w->stride[0][1] = a;
        w->stride[1][1] = b;
        return true;
    }
    return false;
}

void omi_copy(const om_view *x, const om_view *y) {
    copy_job j          = {.y = y->data, .x = x->data, .es = omi_move_size(y->dtype)};
    const om_view *v[2] = {y, x};
    int64_t small       = omi_view_numel(x);
    if (OM_UNLIKELY(!j.es)) return;
    if (small <= OMI_SMALL && omi_view_contiguous(x) && omi_view_contiguous(y)) {
        if (small) memcpy(j.y, j.x, (size_t)small * j.es);
        return;
    }
    omi_walk_init(&j.w, 2, v);
    if (j.w.numel == 0) return;
    if (make_transpose(&j.w)) {
        int64_t units = j.w.numel / (j.w.shape[0] * j.w.shape[1]);
        units *= omi_ceil_div(j.w.shape[1], TILE);
        int64_t grain = omi_max64(1, OMI_GRAIN / (TILE * j.w.shape[0]));
        omi_split(units, grain, copy_tiles, &j);
    } else {
        omi_split(j.w.numel, 4 * OMI_GRAIN, copy_range, &j);
    }
}

/* ---- fill, range --------------------------------------------------------------------------- */

typedef struct fill_job {
    omi_walk w;
    char *y;
    uint64_t value; /* in the low bytes of its size */
    size_t es;
} fill_job;

#define FILL_RUN(type)                                                                             \
    do {                                                                                           \
        type *d = (type *)y, value = (type)j->value;                                               \
        for (int64_t i = 0; i < n; i++)                                                            \
            d[i * s] = value;                                                                      \
    } while (0)

static void fill_range(void *arg, int64_t begin, int64_t end, int worker) {
    (void)worker;
    const fill_job *j = arg;
    omi_pos p;
    omi_walk_seek(&j->w, begin, &p);
    while (begin < end) {
        int64_t n = omi_walk_run(&j->w, &p, end - begin), s = j->w.stride[0][0];
        void *y = j->y + p.off[0] * (int64_t)j->es;
        if (s == 1 && (j->value == 0 || j->es == 1))
            memset(y, (int)j->value, (size_t)n * j->es);
        else
            OM_BY_SIZE(j->es, FILL_RUN)
        omi_walk_advance(&j->w, &p, n);
        begin += n;
    }
}

#define LOAD_BITS(type)                                                                            \
    do {                                                                                           \
        type w;                                                                                    \
        memcpy(&w, p, sizeof w);                                                                   \
        bits = w;                                                                                  \
    } while (0)

/* One element of es bytes as the low bytes of a word. */
static uint64_t load_bits(const void *p, size_t es) {
    uint64_t bits = 0;
    OM_BY_SIZE(es, LOAD_BITS)
    return bits;
}

void omi_fill(const om_view *y, const void *value) {
    fill_job j          = {.y = y->data, .es = om_dtype_size(y->dtype)};
    j.value             = load_bits(value, j.es);
    const om_view *v[1] = {y};
    omi_walk_init(&j.w, 1, v);
    omi_split(j.w.numel, 4 * OMI_GRAIN, fill_range, &j);
}

void omi_range(const om_view *y, const void *start, const void *step) {
    int64_t n = omi_view_numel(y);
    if (y->dtype == OM_I64) {
        int64_t *d = y->data;
        uint64_t a = load_bits(start, 8), s = load_bits(step, 8);
        for (int64_t i = 0; i < n; i++)
            d[i] = (int64_t)(a + (uint64_t)i * s);
    } else if (y->dtype == OM_I32) {
        int32_t *d = y->data;
        uint32_t a = (uint32_t)load_bits(start, 4), s = (uint32_t)load_bits(step, 4);
        for (int64_t i = 0; i < n; i++)
            d[i] = (int32_t)(a + (uint32_t)i * s);
    } else if (y->dtype == OM_F32) {
        float *d = y->data, a, s;
        memcpy(&a, start, 4);
        memcpy(&s, step, 4);
        for (int64_t i = 0; i < n; i++)
            d[i] = a + (float)i * s;
    } else {
        omi_no_type();
    }
}

/* ---- triangles, padding -------------------------------------------------------------------- */

void omi_trilu(const om_view *x, bool upper, int64_t k, const om_view *y) {
    omi_copy(x, y);
    int64_t rows = y->shape[y->rank - 2], cols = y->shape[y->rank - 1], n = omi_view_numel(y);
    size_t es = om_dtype_size(y->dtype);
    if (n == 0) return;
    for (int64_t r = 0; r < n / cols; r++) {
        int64_t i = r % rows;
        /* the diagonal k of row i is column i + k; upper keeps it and what is right of it */
        int64_t cut = i + k + (upper ? 0 : 1);
        cut         = cut < 0 ? 0 : cut > cols ? cols : cut;
        char *row   = (char *)y->data + (size_t)(r * cols) * es;
        if (upper)
            memset(row, 0, (size_t)cut * es);
        else
            memset(row + (size_t)cut * es, 0, (size_t)(cols - cut) * es);
    }
}

void omi_pad_constant(const om_view *x, const int64_t *before, const void *value,
                      const om_view *y) {
    om_view in = *y;
    char *d    = y->data;
    omi_fill(y, value);
    for (int i = 0; i < y->rank; i++) {
        in.shape[i] = x->shape[i];
        d += before[i] * y->strides[i] * (int64_t)om_dtype_size(y->dtype);
    }
    in.data = d;
    omi_copy(x, &in);
}

/* ---- accumulate ---------------------------------------------------------------------------- */

typedef struct acc_job {
    omi_walk w; /* 0: y, 1: x */
    void *y, *x;
    om_dtype t;
} acc_job;

#define ACC_RUN(type)                                                                              \
    do {                                                                                           \
        type *d       = (type *)j->y + p.off[0];                                                   \
        const type *s = (const type *)j->x + p.off[1];                                             \
        if (sy == 1 && sx == 1)                                                                    \
            for (int64_t i = 0; i < n; i++)                                                        \
                d[i] += s[i];                                                                      \
        else                                                                                       \
            for (int64_t i = 0; i < n; i++)                                                        \
                d[i * sy] += s[i * sx];                                                            \
    } while (0)

static void acc_range(void *arg, int64_t begin, int64_t end, int worker) {
    (void)worker;
    const acc_job *j = arg;
    omi_pos p;
    omi_walk_seek(&j->w, begin, &p);
    while (begin < end) {
        int64_t n  = omi_walk_run(&j->w, &p, end - begin);
        int64_t sy = j->w.stride[0][0], sx = j->w.stride[1][0];
        OM_BY_FLOAT(j->t, ACC_RUN)
        omi_walk_advance(&j->w, &p, n);
        begin += n;
    }
}

void omi_accumulate(const om_view *x, const om_view *y) {
    acc_job j           = {.y = y->data, .x = x->data, .t = y->dtype};
    const om_view *v[2] = {y, x};
    omi_walk_init(&j.w, 2, v);
    omi_split(j.w.numel, OMI_GRAIN, acc_range, &j);
}
