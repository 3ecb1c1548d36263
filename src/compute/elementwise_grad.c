/*
 * elementwise_grad.c -- gradients of one-input functions, Clip, Max and Min (AR-11.2). float32 by
 * the kernel table; float64, which has few functions (AR-9.4), by plain loops here.
 */
#include "compute/elementwise.h"

#include "base/dtype.h"
#include "compute/map.h"
#include "kernels/table.h"

typedef void (*unary_grad_fn)(int64_t, const float *, const float *, float *);

// clang-format off
om_unary_saves omi_unary_saves_of(om_unary_kind k) {
    static const uint8_t saves_of[OM_U_COUNT] = {
#define OM_UNARY(name, ID, types, saves, loop, made, node, since, node_types, attrs, gradient) [OM_U_##ID] = OM_SAVES_##saves,
#include "compute/unary.def"
#undef OM_UNARY
    };
    return (om_unary_saves)saves_of[k];
}

#define GRAD_NO_GRADIENT(name) return NULL
#define GRAD_NOTHING(name)     return t->name##_grad_f32
#define GRAD_IN(name)          return t->name##_grad_f32
#define GRAD_OUT(name)         return t->name##_grad_f32
static unary_grad_fn unary_grad(const om_kernels *t, om_unary_kind k) {
    switch (k) {
#define OM_UNARY(name, ID, types, saves, loop, made, node, since, node_types, attrs, gradient) case OM_U_##ID: GRAD_##saves(name);
#include "compute/unary.def"
#undef OM_UNARY
    default: return NULL;
    }
}
// clang-format on

/* The same sequences in float64: Neg, Abs and Sqrt are all there is. */
static void unary_grad_f64(om_unary_kind k, int64_t n, const double *s, const double *g,
                           double *dx) {
    if (k != OM_U_NEG && k != OM_U_ABS && k != OM_U_SQRT) {
        omi_no_type();
        return;
    }
    for (int64_t i = 0; i < n; i++)
        if (k == OM_U_NEG)
            dx[i] = -g[i];
        else if (k == OM_U_ABS)
            dx[i] = g[i] * (s[i] > 0 ? 1.0 : s[i] < 0 ? -1.0 : s[i] == 0 ? 0.0 : s[i]);
        else
            dx[i] = g[i] / (2.0 * s[i]);
}

typedef struct grad_arg {
    unary_grad_fn fn;
    om_unary_kind kind;
    const void *lo, *hi;
    bool max;
} grad_arg;

static void unary_grad_run(const omi_map *m, int64_t n, int64_t first, const void *const *in,
                           const int *step, void *const *out) {
    const grad_arg *a = m->arg;
    (void)first, (void)step;
    if (m->in[0]->dtype == OM_F64)
        unary_grad_f64(a->kind, n, in[0], in[1], out[0]);
    else
        a->fn(n, in[0], in[1], out[0]);
}

void omi_unary_grad(om_unary_kind k, const om_view *s, const om_view *g, const om_view *dx) {
    grad_arg a = {.fn = unary_grad(omi_kernels(), k), .kind = k};
    if (!a.fn) {
        omi_no_type();
        return;
    }
    int64_t n = omi_view_numel(s);
    if (n <= OMI_SMALL && s->dtype == OM_F32 && omi_view_contiguous(s) && omi_view_contiguous(g)) {
        a.fn(n, s->data, g->data, dx->data);
        return;
    }
    omi_map m = {.n_in       = 2,
                 .n_out      = 1,
                 .in         = {s, g},
                 .out        = {dx},
                 .no_scalars = true,
                 .run        = unary_grad_run,
                 .arg        = &a};
    omi_map_apply(&m);
}

static void clip_grad_run(const omi_map *m, int64_t n, int64_t first, const void *const *in,
                          const int *step, void *const *out) {
    const grad_arg *a = m->arg;
    (void)first, (void)step;
    omi_kernels()->clip_grad_f32(n, in[0], a->lo, a->hi, in[1], out[0]);
}

void omi_clip_grad(const om_view *x, const void *lo, const void *hi, const om_view *g,
                   const om_view *dx) {
    grad_arg a = {.lo = lo, .hi = hi};
    omi_map m  = {.n_in       = 2,
                  .n_out      = 1,
                  .in         = {x, g},
                  .out        = {dx},
                  .no_scalars = true,
                  .run        = clip_grad_run,
                  .arg        = &a};
    omi_map_apply(&m);
}

static void maxmin_f64(int64_t n, bool max, const double *a, const double *b, const double *g,
                       double *da, double *db) {
    for (int64_t i = 0; i < n; i++) {
        bool na = a[i] != a[i], nb = b[i] != b[i];
        bool wa   = (max ? a[i] > b[i] : a[i] < b[i]) || (na && !nb);
        bool wb   = (max ? b[i] > a[i] : b[i] < a[i]) || (nb && !na);
        double gi = g[i], half = gi * 0.5; // read before written: da or db may be g
        if (da) da[i] = wa ? gi : wb ? 0 : half;
        if (db) db[i] = wb ? gi : wa ? 0 : half;
    }
}

static void maxmin_run(const omi_map *m, int64_t n, int64_t first, const void *const *in,
                       const int *step, void *const *out) {
    const grad_arg *a = m->arg;
    (void)first, (void)step;
    if (m->in[0]->dtype == OM_F64)
        maxmin_f64(n, a->max, in[0], in[1], in[2], out[0], out[1]);
    else
        omi_kernels()->extreme_grad_f32(n, a->max, in[0], in[1], in[2], out[0], out[1]);
}

void omi_maxmin_grad(bool max, const om_view *a, const om_view *b, const om_view *g,
                     const om_view *da, const om_view *db) {
    grad_arg arg = {.max = max};
    omi_map m    = {.n_in       = 3,
                    .n_out      = 2,
                    .in         = {a, b, g},
                    .out        = {da, db},
                    .no_scalars = true,
                    .run        = maxmin_run,
                    .arg        = &arg};
    omi_map_apply(&m);
}
