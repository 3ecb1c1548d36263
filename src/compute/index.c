/*
 * index.c -- Gather along an axis and the adds that undo it.
 *
 * index_add is the gradient of Embedding, IndexSelect and Gather: destinations may repeat, so the
 * adds go in row-major order of the index (AR-11.2) and work is split by destination only, here by
 * the columns behind the indexed axis or the rows before it, never by index.
 */
#include <string.h>

#include "base/dtype.h"
#include "compute/move.h"
#include "compute/walk.h"

OM_INLINE int64_t index_at(const om_view *idx, int64_t off) {
    if (OM_LIKELY(idx->dtype == OM_I64)) return ((const int64_t *)idx->data)[off];
    if (idx->dtype == OM_I32) return ((const int32_t *)idx->data)[off];
    return omi_no_type(), 0;
}

bool omi_index_bad(const om_view *idx, int64_t n, int64_t *value) {
    omi_walk w;
    omi_pos p;
    const om_view *v[1] = {idx};
    omi_walk_init(&w, 1, v);
    if (w.numel == 0) return false;
    omi_walk_seek(&w, 0, &p);
    for (int64_t i = 0; i < w.numel;) {
        int64_t run = omi_walk_run(&w, &p, w.numel - i);
        for (int64_t k = 0; k < run; k++) {
            int64_t q = index_at(idx, p.off[0] + k * w.stride[0][0]);
            if (q < -n || q >= n) return *value = q, true;
        }
        omi_walk_advance(&w, &p, run);
        i += run;
    }
    return false;
}

/* ---- gather -------------------------------------------------------------------------------- */

typedef struct gather_job {
    const om_view *x, *idx;
    om_view part; /* the axes of x behind the indexed one */
    omi_walk idx_walk, lead_walk;
    int64_t n_idx, axis_n, axis_stride, part_n;
    bool part_contiguous;
    char *y;
    size_t es;
} gather_job;

/* Units are (leading position, index) pairs in y's order. */
static void gather_range(void *arg, int64_t begin, int64_t end, int worker) {
    (void)worker;
    const gather_job *j = arg;
    const int64_t es    = (int64_t)j->es;
    omi_pos lead, ip;
    omi_walk_seek(&j->lead_walk, begin / j->n_idx, &lead);
    omi_walk_seek(&j->idx_walk, begin % j->n_idx, &ip);
    int64_t left = j->n_idx - begin % j->n_idx;
    for (int64_t u = begin; u < end; u++) {
        int64_t q = index_at(j->idx, ip.off[0]);
        if (q < 0) q += j->axis_n;
        const char *src = (const char *)j->x->data + (lead.off[0] + q * j->axis_stride) * es;
        char *dst       = j->y + u * j->part_n * es;
        if (j->part_contiguous) {
            if (j->part_n == 1 && es == 4)
                memcpy(dst, src, 4);
            else
                memcpy(dst, src, (size_t)(j->part_n * es));
        } else {
            om_view s = j->part, d = j->part;
            s.data = (char *)j->x->data + (src - (const char *)j->x->data);
            d.data = dst;
            omi_view_pack_strides(&d);
            omi_copy(&s, &d);
        }
        omi_walk_advance(&j->idx_walk, &ip, 1);
        if (--left == 0) {
            left = j->n_idx;
            omi_walk_seek(&j->idx_walk, 0, &ip);
            omi_walk_advance(&j->lead_walk, &lead, 1);
        }
    }
}

/* Splits a view at an axis: the axes before it and those behind it. */
static void split_axis(const om_view *x, int axis, om_view *lead, om_view *part) {
    *lead = *part = *x;
    lead->rank    = axis;
    part->rank    = x->rank - axis - 1;
    for (int i = 0; i < part->rank; i++) {
        part->shape[i]   = x->shape[axis + 1 + i];
        part->strides[i] = x->strides[axis + 1 + i];
    }
}

void omi_gather(const om_view *x, const om_view *idx, int axis, const om_view *y) {
    om_view lead;
    gather_job j = {.x           = x,
                    .idx         = idx,
                    .axis_n      = x->shape[axis],
                    .axis_stride = x->strides[axis],
                    .n_idx       = omi_view_numel(idx),
                    .y           = y->data,
                    .es          = omi_move_size(x->dtype)};
    split_axis(x, axis, &lead, &j.part);
    j.part_n          = omi_view_numel(&j.part);
    j.part_contiguous = omi_view_contiguous(&j.part);
    int64_t units     = omi_view_numel(&lead) * j.n_idx;
    if (units * j.part_n == 0 || !j.es) return;
    const om_view *li[1] = {&lead}, *ii[1] = {idx};
    omi_walk_init(&j.lead_walk, 1, li);
    omi_walk_init(&j.idx_walk, 1, ii);
    omi_split(units, omi_max64(1, OMI_GRAIN / j.part_n), gather_range, &j);
}

/* ---- index_add ----------------------------------------------------------------------------- */

typedef struct add_job {
    const om_view *idx, *dst, *src;
    omi_walk idx_walk, part_walk, lead_walk; /* of src: part and lead */
    int64_t n_idx, axis_n, part_n, skip, piece, pieces;
    int64_t idx_strides[OM_MAX_RANK]; /* src's strides over the index axes */
} add_job;

#define ADD_PART(type)                                                                             \
    do {                                                                                           \
        type *d       = (type *)j->dst->data + dst_off;                                            \
        const type *s = (const type *)j->src->data + src_off;                                      \
        omi_walk_seek(&j->part_walk, c0, &pp);                                                     \
        for (int64_t c = c0; c < c1;) {                                                            \
            int64_t run      = omi_walk_run(&j->part_walk, &pp, c1 - c),                           \
                    st       = j->part_walk.stride[0][0];                                          \
            const type *from = s + pp.off[0];                                                      \
            if (st == 1)                                                                           \
                for (int64_t k = 0; k < run; k++)                                                  \
                    d[c + k] += from[k];                                                           \
            else                                                                                   \
                for (int64_t k = 0; k < run; k++)                                                  \
                    d[c + k] += from[k * st];                                                      \
            omi_walk_advance(&j->part_walk, &pp, run);                                             \
            c += run;                                                                              \
        }                                                                                          \
    } while (0)

/* Units: (leading position, piece of the columns); each owns its destinations. */
static void add_range(void *arg, int64_t begin, int64_t end, int worker) {
    (void)worker;
    const add_job *j = arg;
    for (int64_t u = begin; u < end; u++) {
        int64_t a = u / j->pieces, c0 = u % j->pieces * j->piece;
        int64_t c1 = omi_min64(c0 + j->piece, j->part_n);
        omi_pos lead, ip, pp;
        omi_walk_seek(&j->lead_walk, a, &lead);
        omi_walk_seek(&j->idx_walk, 0, &ip);
        for (int64_t i = 0; i < j->n_idx; i++) {
            int64_t q       = index_at(j->idx, ip.off[0]);
            int64_t src_off = lead.off[0] + ip.off[1];
            omi_walk_advance(&j->idx_walk, &ip, 1);
            if (q < 0) q += j->axis_n;
            if (j->skip >= 0 && q == j->skip) continue;
            int64_t dst_off = (a * j->axis_n + q) * j->part_n;
            OM_BY_FLOAT(j->dst->dtype, ADD_PART)
        }
    }
}

void omi_index_add(const om_view *dst, const om_view *idx, int axis, const om_view *src,
                   int64_t skip) {
    add_job j = {.idx = idx, .dst = dst, .src = src, .skip = skip, .axis_n = dst->shape[axis]};
    om_view lead, part, over = *src; /* src = lead axes, index axes, part axes */
    split_axis(src, axis, &lead, &part);
    part.rank = dst->rank - axis - 1;
    for (int i = 0; i < part.rank; i++) {
        part.shape[i]   = src->shape[axis + idx->rank + i];
        part.strides[i] = src->strides[axis + idx->rank + i];
    }
    over.rank = idx->rank;
    for (int i = 0; i < idx->rank; i++) {
        over.shape[i]   = src->shape[axis + i];
        over.strides[i] = src->strides[axis + i];
    }
    j.n_idx       = omi_view_numel(idx);
    j.part_n      = omi_view_numel(&part);
    int64_t leads = omi_view_numel(&lead);
    if (leads * j.n_idx * j.part_n == 0) return;
    const om_view *li[1] = {&lead}, *pi[1] = {&part}, *ii[2] = {idx, &over};
    omi_walk_init(&j.lead_walk, 1, li);
    omi_walk_init(&j.part_walk, 1, pi);
    omi_walk_init(&j.idx_walk, 2, ii);
    j.piece       = omi_min64(j.part_n, 64);
    j.pieces      = omi_ceil_div(j.part_n, j.piece);
    int64_t grain = omi_max64(1, OMI_GRAIN / (j.n_idx * j.piece));
    omi_split(leads * j.pieces, grain, add_range, &j);
}
