/*
 * reduce.c -- ReduceSum, Mean, Max, Min, Prod and sums of squares over any axes (AR-4.1, AR-8).
 *
 * The reduced axes, row-major, are one index space; an element's place in it fixes its lane and
 * block, so the three ways through memory give the same bits: along a contiguous run, down columns
 * with the lanes in memory, and by gathering blocks. Work is split by outputs, or by blocks with
 * their totals in slots when there are too few outputs (AR-6).
 */
#include "compute/reduce.h"

#include <math.h>
#include <string.h>

#include "base/dtype.h"
#include "compute/elementwise_int.h"
#include "compute/lanes.h"
#include "compute/move.h"
#include "compute/walk.h"
#include "kernels/table.h"

#define PIECE        256                 /* elements gathered at once: 2 KiB of stack */
#define ASK          (64 * OM_SUM_BLOCK) /* elements between two looks at the cancel flag */
#define SLOTS        256                 /* block totals kept at once */
#define BLOCKS_AHEAD 16                  /* blocks in one chunk of a split sum */
#define BIG          (1 << 17) /* elements from which one output is worth several threads */

typedef struct red_job {
    om_reduce_kind kind;
    om_dtype dtype;
    const char *x;
    char *y;
    int64_t es, n;
    omi_walk kept, red;
} red_job;

/* ---- pieces of the reduced index space ------------------------------------------------------ */

/* The next n elements of the output at base (elements): in place when they are one run, else
 * gathered into buf. Moves p on. */
static const void *red_piece(const red_job *j, int64_t base, omi_pos *p, int64_t n, void *buf) {
    const omi_walk *w = &j->red;
    int64_t s         = w->stride[0][0];
    const char *x     = j->x + (base + p->off[0]) * j->es;
    if (s == 1 && omi_walk_run(w, p, n) == n) {
        omi_walk_advance(w, p, n);
        return x;
    }
    for (int64_t at = 0; at < n;) {
        int64_t run = omi_walk_run(w, p, n - at);
        x           = j->x + (base + p->off[0]) * j->es;
        omi_move_run((size_t)j->es, run, (char *)buf + at * j->es, 1, x, s);
        omi_walk_advance(w, p, run);
        at += run;
    }
    return buf;
}

static double extreme_f64(int64_t n, const double *x, bool max) {
    double m = x[0];
    for (int64_t i = 0; i < n; i++)
        m = max ? omi_max_f64(m, x[i]) : omi_min_f64(m, x[i]);
    return m;
}

/* Adds (for OM_R_PROD multiplies) a piece of a block into its lanes. */
static void red_lanes(const red_job *j, int64_t n, const void *x, int64_t lane, double *acc) {
    const om_kernels *k = omi_kernels();
    bool f64            = j->dtype == OM_F64;
    if (j->kind == OM_R_PROD)
        for (int64_t i = 0; i < n; i++)
            acc[(lane + i) % OM_SUM_LANES] *=
                f64 ? ((const double *)x)[i] : (double)((const float *)x)[i];
    else if (j->kind == OM_R_SUM_SQUARE)
        f64 ? k->lanes_sum_square_f64(n, x, lane, acc) : k->lanes_sum_square_f32(n, x, lane, acc);
    else
        f64 ? k->lanes_sum_f64(n, x, lane, acc) : k->lanes_sum_f32(n, x, lane, acc);
}
static double red_tree(const red_job *j, double *acc) {
    if (j->kind != OM_R_PROD) return omi_lanes_total(acc);
    for (int h = OM_SUM_LANES / 2; h; h /= 2)
        for (int l = 0; l < h; l++)
            acc[l] = acc[l] * acc[l + h];
    return acc[0];
}

/* The total of a run, of any length for sums; extremes need n > 0. */
static double red_run(const red_job *j, int64_t n, const void *x) {
    const om_kernels *k = omi_kernels();
    bool f64            = j->dtype == OM_F64;
    switch (j->kind) {
    case OM_R_SUM:
    case OM_R_MEAN:
        return f64 ? k->sum_f64(n, x) : k->sum_f32(n, x);
    case OM_R_SUM_SQUARE:
        return f64 ? k->sum_square_f64(n, x) : k->sum_square_f32(n, x);
    case OM_R_MAX:
        return f64 ? extreme_f64(n, x, true) : (double)k->row_max_f32(n, x);
    default:
        return f64 ? extreme_f64(n, x, false) : (double)k->row_min_f32(n, x);
    }
}
static double red_start(om_reduce_kind k) {
    return k == OM_R_MAX    ? (double)-INFINITY
           : k == OM_R_MIN  ? (double)INFINITY
           : k == OM_R_PROD ? 1.0
                            : 0.0;
}
static double red_join(om_reduce_kind k, double a, double b) {
    switch (k) {
    case OM_R_MAX:
        return omi_max_f64(a, b);
    case OM_R_MIN:
        return omi_min_f64(a, b);
    case OM_R_PROD:
        return a * b;
    default:
        return a + b;
    }
}
static void red_store(const red_job *j, int64_t i, double total) {
    if (j->kind == OM_R_MEAN) total = total / (double)j->n;
#define STORE(type) ((type *)(void *)j->y)[i] = (type)total
    OM_BY_FLOAT(j->dtype, STORE)
#undef STORE
}

/* ---- integers ------------------------------------------------------------------------------- */

/* One case for each integer type of the list; INT_CASE says what it does. */
#define INT_FLOAT(ID, bits, type)
#define INT_BOOL(ID, bits, type)
#define INT_SIGNED(ID, bits, type)   INT_CASE(ID, bits, type, true)
#define INT_UNSIGNED(ID, bits, type) INT_CASE(ID, bits, type, false)
#define OM_DTYPE_STORED(number, ONNX, bits, group, class, field, entries)
#define OM_DTYPE(ID, number, ONNX, name, bits, class, type, npy, field) INT_##class(ID, bits, type)

OM_INLINE int64_t int_at(om_dtype t, const void *x, int64_t i) {
    switch (t) {
#define INT_CASE(ID, bits, type, sign)                                                             \
    case OM_##ID:                                                                                  \
        return (int64_t)((const type *)x)[i];
#include "base/dtype.def"
#undef INT_CASE
    default:
        return omi_no_type(), 0;
    }
}
/* The low bits as the type reads them. */
static int64_t int_wrap(om_dtype t, uint64_t v) {
    switch (t) {
#define INT_CASE(ID, bits, type, sign)                                                             \
    case OM_##ID:                                                                                  \
        return (int64_t)(type)v;
#include "base/dtype.def"
#undef INT_CASE
    default:
        return omi_no_type(), 0;
    }
}
static int64_t int_bound(om_dtype t, bool greatest) {
    switch (t) {
#define INT_CASE(ID, bits, type, sign)                                                             \
    case OM_##ID:                                                                                  \
        return (sign) ? (greatest ? (int64_t)INT##bits##_MAX : (int64_t)INT##bits##_MIN)           \
                      : (greatest ? (int64_t)UINT##bits##_MAX : 0);
#include "base/dtype.def"
#undef INT_CASE
    default:
        return omi_no_type(), 0;
    }
}
/* y[i] = v, which fits. */
static void int_store(om_dtype t, void *y, int64_t i, int64_t v) {
    switch (t) {
#define INT_CASE(ID, bits, type, sign)                                                             \
    case OM_##ID:                                                                                  \
        ((type *)y)[i] = (type)v;                                                                  \
        break;
#include "base/dtype.def"
#undef INT_CASE
    default:
        omi_no_type();
    }
}
#undef OM_DTYPE
#undef OM_DTYPE_STORED

static void int_output(const red_job *j, int64_t base, int64_t i) {
    uint64_t buf[PIECE], acc = j->kind == OM_R_PROD ? 1 : 0;
    int64_t best = int_bound(j->dtype, j->kind == OM_R_MIN), v;
    omi_pos p;
    if (j->n > 0) omi_walk_seek(&j->red, 0, &p);
    for (int64_t at = 0; at < j->n; at += PIECE) {
        int64_t n = omi_min64(PIECE, j->n - at);
        if (at % ASK == 0 && omi_cut_short()) break;
        const void *x = red_piece(j, base, &p, n, buf);
        for (int64_t k = 0; k < n; k++) {
            v    = int_at(j->dtype, x, k);
            best = j->kind == OM_R_MAX ? omi_max64(best, v) : omi_min64(best, v);
            acc  = j->kind == OM_R_PROD         ? acc * (uint64_t)v
                   : j->kind == OM_R_SUM_SQUARE ? acc + (uint64_t)v * (uint64_t)v
                                                : acc + (uint64_t)v;
        }
    }
    v = j->kind == OM_R_MAX || j->kind == OM_R_MIN ? best : int_wrap(j->dtype, acc);
    if (j->kind == OM_R_MEAN) v = j->n ? v / j->n : 0;
    int_store(j->dtype, j->y, i, v);
}

/* ---- one output at a time ------------------------------------------------------------------- */

static bool red_is_sum(const red_job *j) {
    return j->kind == OM_R_SUM || j->kind == OM_R_MEAN || j->kind == OM_R_SUM_SQUARE;
}

/* The total of n <= OM_SUM_BLOCK elements from p on, a piece at a time. Moves p on. */
static double red_block(const red_job *j, int64_t base, omi_pos *p, int64_t n) {
    double buf[PIECE], acc[OM_SUM_LANES];
    bool extreme = j->kind == OM_R_MAX || j->kind == OM_R_MIN;
    double best  = red_start(j->kind);
    for (int l = 0; l < OM_SUM_LANES; l++)
        acc[l] = j->kind == OM_R_PROD ? 1.0 : 0.0;
    if (red_is_sum(j) && j->red.stride[0][0] == 1 && omi_walk_run(&j->red, p, n) == n)
        return red_run(j, n, red_piece(j, base, p, n, buf));
    for (int64_t i = 0; i < n; i += PIECE) {
        int64_t m     = omi_min64(PIECE, n - i);
        const void *x = red_piece(j, base, p, m, buf);
        if (extreme)
            best = red_join(j->kind, best, red_run(j, m, x));
        else
            red_lanes(j, m, x, i, acc);
    }
    return extreme ? best : red_tree(j, acc);
}

static double red_output(const red_job *j, int64_t base) {
    double total = red_start(j->kind);
    omi_pos p;
    if (j->n == 0) return total;
    if (red_is_sum(j) && j->red.rank == 1 && j->red.stride[0][0] == 1)
        return red_run(j, j->n, j->x + base * j->es);
    omi_walk_seek(&j->red, 0, &p);
    for (int64_t i = 0; i < j->n; i += OM_SUM_BLOCK) {
        if (i % ASK == 0 && omi_cut_short()) break;
        total = red_join(j->kind, total, red_block(j, base, &p, omi_min64(OM_SUM_BLOCK, j->n - i)));
    }
    return total;
}

static void red_outputs(void *arg, int64_t begin, int64_t end, int worker) {
    (void)worker;
    const red_job *j = arg;
    omi_pos p;
    bool floats = omi_type_bit(j->dtype) & OM_SET_FLOAT;
    omi_walk_seek(&j->kept, begin, &p);
    for (int64_t i = begin; i < end; i++) {
        if (floats)
            red_store(j, i, red_output(j, p.off[0]));
        else
            int_output(j, p.off[0], i);
        omi_walk_advance(&j->kept, &p, 1);
    }
}

/* ---- one output, blocks shared -------------------------------------------------------------- */

typedef struct slot_job {
    const red_job *r;
    int64_t base, first; /* element offset; first block */
    double slot[SLOTS];
} slot_job;

static void slot_chunk(void *arg, int64_t begin, int64_t end, int worker) {
    (void)worker;
    slot_job *s = arg;
    omi_pos p;
    omi_walk_seek(&s->r->red, (s->first + begin) * OM_SUM_BLOCK, &p);
    for (int64_t b = begin; b < end; b++) {
        int64_t at = (s->first + b) * OM_SUM_BLOCK;
        s->slot[b] = red_block(s->r, s->base, &p, omi_min64(OM_SUM_BLOCK, s->r->n - at));
    }
}

static double red_split(const red_job *j, int64_t base) {
    slot_job s     = {.r = j, .base = base};
    double total   = red_start(j->kind);
    int64_t blocks = omi_ceil_div(j->n, OM_SUM_BLOCK);
    for (; s.first < blocks && !omi_cut_short(); s.first += SLOTS) {
        int64_t n = omi_min64(SLOTS, blocks - s.first);
        omi_split(n, BLOCKS_AHEAD, slot_chunk, &s);
        for (int64_t b = 0; b < n; b++)
            total = red_join(j->kind, total, s.slot[b]);
    }
    return total;
}

/* ---- down columns --------------------------------------------------------------------------- */

/* Units are tiles of OM_COL_TILE neighbours along the innermost kept axis, which has stride 1. */
static int64_t col_tiles(const red_job *j) {
    return omi_ceil_div(j->kept.shape[0], OM_COL_TILE);
}

static void col_sums(const red_job *j, const float *x, int64_t cols, double *total) {
    double acc[OM_SUM_LANES * OM_COL_TILE] = {0};
    const om_kernels *k                    = omi_kernels();
    omi_pos p;
    omi_walk_seek(&j->red, 0, &p);
    for (int64_t i = 0; i < j->n;) {
        int64_t in_block = i % OM_SUM_BLOCK;
        int64_t n        = omi_walk_run(&j->red, &p, omi_min64(OM_SUM_BLOCK - in_block, j->n - i));
        int64_t s        = j->red.stride[0][0];
        if (j->kind == OM_R_SUM_SQUARE)
            k->col_sum_square_f32(n, cols, x + p.off[0], s, in_block, acc);
        else
            k->col_sum_f32(n, cols, x + p.off[0], s, in_block, acc);
        omi_walk_advance(&j->red, &p, n);
        i += n;
        if (i % OM_SUM_BLOCK == 0 || i == j->n) omi_lanes_join(acc, total, cols);
        if (i % ASK == 0 && omi_cut_short()) break;
    }
}

static void col_extremes(const red_job *j, const float *x, int64_t cols, float *y) {
    const om_kernels *k = omi_kernels();
    omi_pos p;
    omi_walk_seek(&j->red, 0, &p);
    for (int64_t i = 0; i < j->n; i++) {
        const float *row = x + p.off[0];
        if (i % OM_SUM_BLOCK == 0 && omi_cut_short()) break;
        if (i == 0)
            memcpy(y, row, sizeof(float) * (size_t)cols);
        else if (j->kind == OM_R_MAX)
            k->max_f32(cols, y, 1, row, 1, y);
        else
            k->min_f32(cols, y, 1, row, 1, y);
        omi_walk_advance(&j->red, &p, 1);
    }
}

static void red_columns(void *arg, int64_t begin, int64_t end, int worker) {
    (void)worker;
    const red_job *j = arg;
    int64_t tiles = col_tiles(j), width = j->kept.shape[0];
    for (int64_t u = begin; u < end; u++) {
        omi_pos p;
        int64_t c0 = u % tiles * OM_COL_TILE, cols = omi_min64(OM_COL_TILE, width - c0);
        int64_t out = u / tiles * width + c0;
        omi_walk_seek(&j->kept, out, &p);
        const float *x = (const float *)(const void *)j->x + p.off[0];
        if (j->kind == OM_R_MAX || j->kind == OM_R_MIN) {
            col_extremes(j, x, cols, (float *)(void *)j->y + out);
            continue;
        }
        double total[OM_COL_TILE] = {0};
        col_sums(j, x, cols, total);
        for (int64_t c = 0; c < cols; c++)
            red_store(j, out + c, total[c]);
    }
}

/* ---- the choice ----------------------------------------------------------------------------- */

static void red_plan(red_job *j, const om_view *x, uint32_t axes) {
    om_view kept = *x, red = *x;
    const om_view *kv[1] = {&kept}, *rv[1] = {&red};
    kept.rank = red.rank = 0;
    for (int i = 0; i < x->rank; i++) {
        om_view *v          = axes >> i & 1 ? &red : &kept;
        v->shape[v->rank]   = x->shape[i];
        v->strides[v->rank] = x->strides[i];
        v->rank++;
    }
    omi_walk_init(&j->kept, 1, kv);
    omi_walk_init(&j->red, 1, rv);
    j->n     = j->red.numel;
    j->x     = x->data;
    j->dtype = x->dtype;
    j->es    = (int64_t)om_dtype_size(x->dtype);
}

void omi_reduce(om_reduce_kind k, const om_view *x, uint32_t axes, const om_view *y) {
    red_job j    = {.kind = k, .y = y->data};
    uint32_t all = ((uint32_t)1 << x->rank) - 1;
    int64_t n    = omi_view_numel(x);
    if ((axes & all) == all && n > 0 && n <= OM_SUM_BLOCK && x->dtype == OM_F32 && k != OM_R_PROD &&
        omi_view_contiguous(x)) {
        j.n     = n;
        j.dtype = OM_F32;
        red_store(&j, 0, red_run(&j, n, x->data));
        return;
    }
    red_plan(&j, x, axes);
    if (j.kept.numel == 0) return;
    bool columns = j.dtype == OM_F32 && j.n > 0 && k != OM_R_PROD && j.kept.stride[0][0] == 1 &&
                   j.kept.shape[0] >= 4 && !(j.red.stride[0][0] == 1 && j.red.shape[0] > 1);
    bool floats = omi_type_bit(j.dtype) & OM_SET_FLOAT;
    if (columns) {
        int64_t units = j.kept.numel / j.kept.shape[0] * col_tiles(&j);
        omi_split(units, omi_max64(1, OMI_GRAIN / (OM_COL_TILE * j.n)), red_columns, &j);
    } else if (floats && j.n >= BIG && j.kept.numel < 8) {
        omi_pos p;
        omi_walk_seek(&j.kept, 0, &p);
        for (int64_t i = 0; i < j.kept.numel; i++) {
            red_store(&j, i, red_split(&j, p.off[0]));
            omi_walk_advance(&j.kept, &p, 1);
        }
    } else {
        omi_split(j.kept.numel, omi_max64(1, OMI_GRAIN / omi_max64(1, j.n)), red_outputs, &j);
    }
}

double omi_sum64(const om_view *x, bool sum_square) {
    red_job j = {.kind = sum_square ? OM_R_SUM_SQUARE : OM_R_SUM};
    red_plan(&j, x, UINT32_MAX);
    return j.n >= BIG ? red_split(&j, 0) : red_output(&j, 0);
}
