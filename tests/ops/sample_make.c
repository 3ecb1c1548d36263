/*
 * sample_make.c -- the material of samples: reference tensors, values, strided tensors, the failing
 * allocator. Everything is a function of the names in the tables, so a failure repeats.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "compute/move.h"
#include "sample.h"

/* ---- references ---------------------------------------------------------------------------------
 */

void ref_set(ref *r, om_dtype t, int rank, const int64_t *shape) {
    r->dtype = t;
    r->rank  = rank;
    r->n     = 1;
    for (int i = 0; i < rank; i++)
        r->n *= r->shape[i] = shape[i];
    r->v = calloc((size_t)r->n + 1, sizeof *r->v);
    if (!r->v) abort();
}
void ref_like(ref *r, const ref *x) {
    ref_set(r, x->dtype, x->rank, x->shape);
}
void ref_free(ref *r) {
    free(r->v);
    r->v = NULL;
}

int64_t ref_at(const ref *r, int rank, const int64_t *at) {
    int64_t flat = 0;
    int d        = rank - r->rank;
    for (int i = 0; i < r->rank; i++)
        flat = flat * r->shape[i] + (r->shape[i] == 1 ? 0 : at[i + d]);
    return flat;
}

bool ref_next(int rank, const int64_t *shape, int64_t *at) {
    for (int i = rank - 1; i >= 0; i--) {
        if (++at[i] < shape[i]) return true;
        at[i] = 0;
    }
    return false;
}

int ref_broadcast(const ref *a, const ref *b, int64_t *shape) {
    int r = a->rank > b->rank ? a->rank : b->rank;
    for (int i = 0; i < r; i++) {
        int ia = i - (r - a->rank), ib = i - (r - b->rank);
        int64_t na = ia < 0 ? 1 : a->shape[ia], nb = ib < 0 ? 1 : b->shape[ib];
        shape[i] = na == 1 ? nb : na;
    }
    return r;
}

int64_t ref_span(const ref *r, int from, int to) {
    int64_t n = 1;
    for (int i = from; i < to; i++)
        n *= r->shape[i];
    return n;
}

/* ---- values -------------------------------------------------------------------------------------
 */

static uint64_t mix(uint64_t *state) {
    uint64_t z = (*state += 0x9E3779B97F4A7C15u);
    z          = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
    z          = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
    return z ^ (z >> 31);
}
static double unit(uint64_t *state) {
    return (double)(mix(state) >> 40) * 0x1p-24;
}

static uint64_t seed_of(const char *op, const char *row, int k) {
    uint64_t h = 1469598103934665603u + (uint64_t)k;
    for (const char *p = op; *p; p++)
        h = (h ^ (uint8_t)*p) * 1099511628211u;
    for (const char *p = row; *p; p++)
        h = (h ^ (uint8_t)*p) * 1099511628211u;
    return h;
}

static bool coprime(int64_t a, int64_t b) {
    while (b) {
        int64_t r = a % b;
        a         = b;
        b         = r;
    }
    return a == 1;
}

static double value_of(const sample_in *d, om_dtype t, int64_t i, int64_t n, uint64_t *state) {
    static const double special[] = {NAN,      INFINITY,  -INFINITY, 0.0,   -0.0, 1.0, -1.0,
                                     0x1p-149, -0x1p-140, 3e38,      -3e38, 88.9, 0.5, -103.0};
    static const double few[]     = {-1, 0, 0.5, 2};
    bool whole                    = t == OM_I64 || t == OM_I32 || t == OM_U8;
    double u                      = unit(state);
    if (t == OM_BOOL) return u < 0.5;
    switch (d->fill) {
    case FILL_POSITIVE:
        return whole ? 1 + floor(u * 5) : 0.25 + 2.75 * u;
    case FILL_DISTINCT: { // a fixed permutation of evenly spaced values
        int64_t step = 7;
        while (!coprime(n, step))
            step++;
        return ((double)((i * step + 3) % n) - (double)n / 2 + 0.3) * (whole ? 1 : 0.13) -
               (whole ? 0.3 : 0);
    }
    case FILL_TIES:
        return whole ? floor(u * 3) : few[(int)(u * 4)];
    case FILL_INDEX:
        return d->lo + floor(u * (d->hi - d->lo));
    case FILL_SPECIAL:
        return special[i % (int64_t)OM_COUNT(special)];
    case FILL_NONZERO:
        u = 4 * u - 2;
        return whole ? (u < 0 ? -1 : 1) * (1 + floor(fabs(u) * 2)) : u + (u < 0 ? -0.3 : 0.3);
    case FILL_LOGP:
        return -0.1 - 3.9 * u;
    default:
        return whole ? (t == OM_U8 ? floor(u * 7) : floor(u * 7) - 3) : 4 * u - 2;
    }
}

void sample_values(const sample_op *op, const sample *s, int k, ref *out) {
    const sample_in *d = &s->in[k];
    memset(out, 0, sizeof *out);
    if (d->rank < 0 || d->null) return;
    om_dtype t = d->dtype == OM_DTYPE_NONE ? OM_F32 : d->dtype;
    ref_set(out, t, d->rank, d->shape);
    uint64_t state = seed_of(op->name, s->name, k);
    int64_t first =
        d->view == VIEW_BROADCAST && d->rank && d->shape[0] ? out->n / d->shape[0] : out->n;
    for (int64_t i = 0; i < out->n; i++) {
        if (i >= first) {
            out->v[i] = out->v[i - first];
            continue;
        }
        double v  = d->values ? d->values[i] : value_of(d, t, i, out->n, &state);
        out->v[i] = t == OM_F32 ? (double)(float)v : v;
    }
}

/* ---- tensors ------------------------------------------------------------------------------------
 */

static void put(void *base, om_dtype t, int64_t at, double v) {
    omi_element_from_double(v, t, (char *)base + at * (int64_t)om_dtype_size(t));
}

double sample_element(const om_tensor *t, int64_t i) {
    int64_t off = 0;
    for (int k = t->rank - 1; k >= 0; k--) {
        off += i % t->shape[k] * t->strides[k];
        i /= t->shape[k];
    }
    return omi_element_to_double((const char *)omi_ptr(t) +
                                     off * (int64_t)om_dtype_size((om_dtype)t->dtype),
                                 (om_dtype)t->dtype);
}

om_tensor *sample_tensor(const ref *v, sample_view view) {
    int rank = v->rank;
    int64_t strides[OM_MAX_RANK], offset = 0, size = v->n;
    omi_strides(rank, v->shape, strides);
    bool swap = view == VIEW_TRANSPOSED && rank >= 2;
    if (swap) {
        int64_t like[OM_MAX_RANK];
        memcpy(like, v->shape, sizeof like);
        like[rank - 1] = v->shape[rank - 2];
        like[rank - 2] = v->shape[rank - 1];
        omi_strides(rank, like, strides);
        int64_t s         = strides[rank - 1];
        strides[rank - 1] = strides[rank - 2];
        strides[rank - 2] = s;
    } else if (view == VIEW_BROADCAST && rank) {
        strides[0] = 0;
        size       = v->shape[0] ? v->n / v->shape[0] : 0;
    } else if (view != VIEW_PLAIN) {
        offset = 1;
        size   = 2 * v->n + 2;
        for (int i = 0; i < rank; i++)
            strides[i] *= 2;
    }
    om_tensor *base = omi_new(v->dtype, 1, &size);
    if (!base) return NULL;
    for (int64_t i = 0; i < size; i++) // poison: 77 where no element of the view lies
        put(omi_ptr(base), v->dtype, i, v->dtype == OM_BOOL ? 1 : 77);
    int64_t at[OM_MAX_RANK] = {0};
    for (int64_t i = 0; i < v->n; i++) {
        int64_t o = offset;
        for (int k = 0; k < rank; k++)
            o += at[k] * strides[k];
        put(omi_ptr(base), v->dtype, o, v->v[i]);
        ref_next(rank, v->shape, at);
    }
    return omi_view_of(base, rank, v->shape, strides, offset);
}

bool sample_inputs(const sample_op *op, const sample *s, const ref *values, sample_view view,
                   bool grads, om_tensor **in) {
    for (int k = 0; k < op->n_in; k++) {
        const sample_in *d = &s->in[k];
        in[k]              = NULL;
        if (!values[k].v) continue;
        in[k] = sample_tensor(&values[k], d->dense              ? VIEW_PLAIN
                                          : view == VIEW_AS_ROW ? d->view
                                                                : view);
        if (!in[k]) return false;
        if (d->blocked) in[k]->layout = OM_NCHW16C; // only the refusal is tested here
        bool f = values[k].dtype == OM_F32 || values[k].dtype == OM_F64;
        if (grads && f && !d->no_grad && om_set_requires_grad(in[k], true) != OM_OK) return false;
    }
    return true;
}

om_tensor *sample_cotangent(const om_tensor *t, int which) {
    ref v = {0};
    ref_set(&v, (om_dtype)t->dtype, t->rank, t->shape);
    uint64_t state = seed_of("cotangent", "", which);
    for (int64_t i = 0; i < v.n; i++)
        v.v[i] = (double)(float)(3 * unit(&state) - 1.5);
    om_tensor *g = sample_tensor(&v, VIEW_PLAIN);
    ref_free(&v);
    return g;
}

/* ---- the failing allocator
 * ------------------------------------------------------------------------ */

static int64_t alloc_count, alloc_fail_at;

static void *failing_alloc(void *ctx, void *p, size_t old, size_t size, size_t align) {
    (void)ctx;
    if (size == 0) {
        free(p);
        return NULL;
    }
    alloc_count++;
    if (alloc_count == alloc_fail_at) return NULL;
    void *q = NULL;
    if (posix_memalign(&q, align < sizeof(void *) ? sizeof(void *) : align, size)) return NULL;
    memset(q, 0xA5, size); // uninitialised bytes show
    if (p) {
        memcpy(q, p, old < size ? old : size);
        free(p);
    }
    return q;
}

void sample_alloc_install(void) {
    if (om_set_allocator(failing_alloc, NULL) != OM_OK) abort();
}

int64_t sample_alloc_fail(int64_t n) {
    int64_t was   = alloc_count;
    alloc_count   = 0;
    alloc_fail_at = n;
    return was;
}
