/*
 * elementwise.c -- unary and binary nodes, Clip, Where: which inner loop serves which kind and
 * type.
 *
 * float32 goes to the kernel table; float64, integers and bool to plain loops here, whose
 * arithmetic is AR-9. Small contiguous operands skip all set-up: an eager call on a few elements
 * spends its time elsewhere.
 */
#include "compute/elementwise.h"

#include <string.h>

#include "base/dtype.h"
#include "compute/elementwise_f32.h"
#include "compute/elementwise_int.h"
#include "compute/map.h"
#include "kernels/table.h"

typedef void (*binary_f32_fn)(int64_t, const float *, int, const float *, int, float *);
typedef void (*compare_f32_fn)(int64_t, const float *, int, const float *, int, uint8_t *);

/* ---- unary --------------------------------------------------------------------------------- */

// clang-format off
/* The float32 loop of a row, and the one that Fast has. */
#define LOOP_SAME(name)  return t->name##_f32
#define LOOP_FAST(name)  return fast ? t->name##_fast_f32 : t->name##_f32
#define LOOP_PLAIN(name) return NULL
omi_unary_f32_fn omi_unary_f32(const om_kernels *t, om_unary_kind k, bool fast) {
    switch (k) {
#define OM_UNARY(name, ID, types, saves, loop, made, node, since, node_types, attrs, gradient) case OM_U_##ID: LOOP_##loop(name);
#include "compute/unary.def"
#undef OM_UNARY
    default: return NULL;
    }
}
// clang-format on

bool omi_unary_supports(om_unary_kind k, om_dtype t) {
    if (t == OM_F32) return omi_unary_f32(omi_kernels(), k, false) != NULL;
    return omi_unary_plain(k, t) != NULL;
}

typedef struct unary_fns {
    omi_unary_f32_fn f32;
    omi_unary_plain_fn plain;
} unary_fns;

static void unary_run(const omi_map *m, int64_t n, int64_t first, const void *const *in,
                      const int *step, void *const *out) {
    const unary_fns *f = m->fn;
    (void)first, (void)step;
    if (f->f32)
        f->f32(n, in[0], out[0]);
    else
        f->plain(n, in[0], out[0]);
}

void omi_unary(om_unary_kind k, const om_view *x, const om_view *y, bool fast) {
    unary_fns f = {0};
    if (x->dtype == OM_F32) {
        f.f32     = omi_unary_f32(omi_kernels(), k, fast);
        int64_t n = omi_view_numel(x);
        if (n <= OMI_SMALL && f.f32 && omi_view_contiguous(x)) {
            f.f32(n, x->data, y->data);
            return;
        }
    } else {
        f.plain = omi_unary_plain(k, x->dtype);
    }
    if (OM_UNLIKELY(!f.f32 && !f.plain)) {
        omi_no_type();
        return;
    }
    omi_map m = {.n_in       = 1,
                 .n_out      = 1,
                 .in         = {x},
                 .out        = {y},
                 .no_scalars = true,
                 .run        = unary_run,
                 .fn         = &f};
    omi_map_apply(&m);
}

/* ---- binary -------------------------------------------------------------------------------- */

// clang-format off
/* Greater is Less with the operands swapped; NotEqual is Equal inverted. */
typedef enum binary_loop { BINARY_NONE, BINARY_VALUE, BINARY_COMPARE, BINARY_SWAPPED, BINARY_INVERTED } binary_loop;
static binary_loop binary_loop_of(om_binary_kind k) {
    static const uint8_t loops[OM_B_COUNT] = {
#define OM_BINARY(name, OP, ID, types, result, saves, backward, loop, kernel, made, node, since, node_types, gradient) [OM_B_##ID] = BINARY_##loop,
#include "compute/binary.def"
#undef OM_BINARY
    };
    return (binary_loop)loops[k];
}

#define VALUE_NONE(kernel)     return NULL
#define VALUE_VALUE(kernel)    return t->kernel##_f32
#define VALUE_COMPARE(kernel)  return NULL
#define VALUE_SWAPPED(kernel)  return NULL
#define VALUE_INVERTED(kernel) return NULL
static binary_f32_fn binary_f32(const om_kernels *t, om_binary_kind k) {
    switch (k) {
#define OM_BINARY(name, OP, ID, types, result, saves, backward, loop, kernel, made, node, since, node_types, gradient) case OM_B_##ID: VALUE_##loop(kernel);
#include "compute/binary.def"
#undef OM_BINARY
    default: return NULL;
    }
}

#define BOOLS_NONE(kernel)     return NULL
#define BOOLS_VALUE(kernel)    return NULL
#define BOOLS_COMPARE(kernel)  return t->kernel##_f32
#define BOOLS_SWAPPED(kernel)  return t->kernel##_f32
#define BOOLS_INVERTED(kernel) return t->kernel##_f32
static compare_f32_fn compare_f32(const om_kernels *t, om_binary_kind k) {
    switch (k) {
#define OM_BINARY(name, OP, ID, types, result, saves, backward, loop, kernel, made, node, since, node_types, gradient) case OM_B_##ID: BOOLS_##loop(kernel);
#include "compute/binary.def"
#undef OM_BINARY
    default: return NULL;
    }
}
// clang-format on

bool omi_binary_supports(om_binary_kind k, om_dtype t) {
    if (t == OM_F32) return k < OM_B_COUNT && binary_loop_of(k) != BINARY_NONE;
    return omi_binary_plain(k, t) != NULL;
}

typedef struct binary_fns {
    binary_loop loop;
    binary_f32_fn f32;
    compare_f32_fn compare;
    omi_binary_plain_fn plain;
} binary_fns;

static void binary_call(const binary_fns *f, int64_t n, const void *a, int sa, const void *b,
                        int sb, void *y) {
    if (f->f32) {
        f->f32(n, a, sa, b, sb, y);
    } else if (f->compare) {
        if (f->loop == BINARY_SWAPPED)
            f->compare(n, b, sb, a, sa, y);
        else
            f->compare(n, a, sa, b, sb, y);
        if (f->loop == BINARY_INVERTED)
            for (int64_t i = 0; i < n; i++)
                ((uint8_t *)y)[i] ^= 1;
    } else {
        f->plain(n, a, sa, b, sb, y);
    }
}

static void binary_run(const omi_map *m, int64_t n, int64_t first, const void *const *in,
                       const int *step, void *const *out) {
    (void)first;
    binary_call(m->fn, n, in[0], step[0], in[1], step[1], out[0]);
}

/* 1: contiguous, 0: one element for all, -1: neither. */
static int simple_step(const om_view *v) {
    bool one = true;
    for (int i = 0; i < v->rank && one; i++)
        one = v->strides[i] == 0 || v->shape[i] == 1;
    if (one && v->rank > 0) return 0;
    return omi_view_contiguous(v) ? 1 : -1;
}

void omi_binary(om_binary_kind k, const om_view *a, const om_view *b, const om_view *y) {
    binary_fns f = {.loop = binary_loop_of(k)};
    if (a->dtype == OM_F32) {
        if (f.loop == BINARY_VALUE)
            f.f32 = binary_f32(omi_kernels(), k);
        else
            f.compare = compare_f32(omi_kernels(), k);
    } else {
        f.plain = omi_binary_plain(k, a->dtype);
    }
    if (OM_UNLIKELY(!f.f32 && !f.compare && !f.plain)) {
        omi_no_type();
        return;
    }
    int64_t n = omi_view_numel(y);
    if (n <= OMI_SMALL) {
        int sa = simple_step(a), sb = simple_step(b);
        if (sa >= 0 && sb >= 0) {
            if (n) binary_call(&f, n, a->data, sa, b->data, sb, y->data);
            return;
        }
    }
    omi_map m = {.n_in = 2, .n_out = 1, .in = {a, b}, .out = {y}, .run = binary_run, .fn = &f};
    omi_map_apply(&m);
}

/* ---- clip ---------------------------------------------------------------------------------- */

typedef struct clip_arg {
    const void *lo, *hi;
    om_dtype dtype;
} clip_arg;

static void clip_run(const omi_map *m, int64_t n, int64_t first, const void *const *in,
                     const int *step, void *const *out) {
    const clip_arg *c = m->arg;
    (void)first, (void)step;
    if (c->dtype == OM_F32)
        omi_kernels()->clip_f32(n, in[0], c->lo, c->hi, out[0]);
    else
        omi_clip_plain(c->dtype, n, in[0], c->lo, c->hi, out[0]);
}

void omi_clip(const om_view *x, const void *lo, const void *hi, const om_view *y) {
    clip_arg c = {lo, hi, x->dtype};
    omi_map m  = {.n_in       = 1,
                  .n_out      = 1,
                  .in         = {x},
                  .out        = {y},
                  .no_scalars = true,
                  .run        = clip_run,
                  .arg        = &c};
    omi_map_apply(&m);
}

/* ---- where --------------------------------------------------------------------------------- */

#define SELECT(type)                                                                               \
    do {                                                                                           \
        const type *a = in[1], *b = in[2];                                                         \
        type *y = out[0];                                                                          \
        for (int64_t i = 0; i < n; i++)                                                            \
            y[i] = c[step[0] ? i : 0] ? a[step[1] ? i : 0] : b[step[2] ? i : 0];                   \
    } while (0)

static void where_run(const omi_map *m, int64_t n, int64_t first, const void *const *in,
                      const int *step, void *const *out) {
    const uint8_t *c = in[0];
    (void)first;
    size_t size = om_dtype_size(m->in[1]->dtype);
    if (size == 4)
        omi_kernels()->select_u32(n, c, step[0], in[1], step[1], in[2], step[2], out[0]);
    else
        OM_BY_SIZE(size, SELECT)
}

void omi_where(const om_view *c, const om_view *a, const om_view *b, const om_view *y) {
    omi_map m = {.n_in = 3, .n_out = 1, .in = {c, a, b}, .out = {y}, .run = where_run};
    omi_map_apply(&m);
}

/* ---- zero divisors ------------------------------------------------------------------------- */

bool omi_any_zero(const om_view *x) {
    omi_walk w;
    omi_pos p;
    const om_view *v[1] = {x};
    size_t es           = omi_move_size(x->dtype);
    omi_walk_init(&w, 1, v);
    if (w.numel == 0 || !es) return false;
    omi_walk_seek(&w, 0, &p);
    for (int64_t i = 0; i < w.numel;) {
        int64_t run = omi_walk_run(&w, &p, w.numel - i);
        for (int64_t k = 0; k < run; k++) {
            static const char zero[8];
            int64_t off = p.off[0] + k * w.stride[0][0];
            if (memcmp((const char *)x->data + off * (int64_t)es, zero, es) == 0) return true;
        }
        omi_walk_advance(&w, &p, run);
        i += run;
    }
    return false;
}
