/*
 * scatter.c -- ScatterElements with addition, the gradient of TopK.
 *
 * The lines along the axis are independent, so the work is split by line; inside one the adds run
 * in the order of the index. A line's elements may be strided in all three arrays.
 */
#include "compute/scatter.h"

#include "base/dtype.h"
#include "base/thread.h"

enum { CHUNK_ELEMENTS = 16384 };

typedef struct scatter_job {
    const om_view *dst, *idx, *src;
    int axis;
    int64_t lines, step; /* step: lines of a chunk */
} scatter_job;

/* Offset of line number `line` in v: the axes other than `axis`, row-major. */
static int64_t scatter_line(const om_view *v, int axis, int64_t line) {
    int64_t off = 0;
    for (int i = v->rank - 1; i >= 0; i--) {
        if (i == axis) continue;
        off += line % v->shape[i] * v->strides[i];
        line /= v->shape[i];
    }
    return off;
}

#define SCATTER_LINE(type)                                                                         \
    do {                                                                                           \
        type *to         = (type *)j->dst->data + d;                                               \
        const type *from = (const type *)j->src->data + s;                                         \
        for (int64_t k = 0; k < n; k++)                                                            \
            to[at[k * ik] * dk] += from[k * sk];                                                   \
    } while (0)

static void scatter_chunk(void *arg, int64_t chunk, int worker) {
    (void)worker;
    const scatter_job *j = arg;
    int64_t n            = j->idx->shape[j->axis];
    int64_t dk = j->dst->strides[j->axis], ik = j->idx->strides[j->axis],
            sk  = j->src->strides[j->axis];
    int64_t end = omi_min64((chunk + 1) * j->step, j->lines);
    for (int64_t line = chunk * j->step; line < end; line++) {
        int64_t d = scatter_line(j->dst, j->axis, line), s = scatter_line(j->src, j->axis, line);
        const int64_t *at = (const int64_t *)j->idx->data + scatter_line(j->idx, j->axis, line);
        OM_BY_FLOAT(j->dst->dtype, SCATTER_LINE)
    }
}

void omi_scatter_add(const om_view *dst, const om_view *idx, int axis, const om_view *src) {
    int64_t n = idx->shape[axis], total = omi_view_numel(idx);
    if (total == 0) return;
    scatter_job j = {dst, idx, src, axis, total / n, omi_max64(1, CHUNK_ELEMENTS / n)};
    omi_parallel(omi_ceil_div(j.lines, j.step), scatter_chunk, &j);
}
