/*
 * walk.c -- axis merging, positions, and splitting by index.
 */
#include "compute/walk.h"

void omi_walk_init(omi_walk *w, int n_ops, const om_view *const *v) {
    int r    = 0;
    w->n_ops = n_ops;
    w->numel = 1;
    for (int i = v[0]->rank - 1; i >= 0; i--) {
        int64_t n = v[0]->shape[i];
        w->numel *= n;
        if (n == 1) continue;
        bool merge = r > 0;
        for (int k = 0; merge && k < n_ops; k++)
            merge = v[k]->strides[i] == w->stride[k][r - 1] * w->shape[r - 1];
        if (merge) {
            w->shape[r - 1] *= n;
            continue;
        }
        w->shape[r] = n;
        for (int k = 0; k < n_ops; k++)
            w->stride[k][r] = v[k]->strides[i];
        r++;
    }
    if (r == 0) { /* one element: as good as contiguous */
        w->shape[0] = 1;
        for (int k = 0; k < n_ops; k++)
            w->stride[k][0] = 1;
        r = 1;
    }
    w->rank = r;
}

void omi_walk_seek(const omi_walk *w, int64_t index, omi_pos *p) {
    for (int k = 0; k < w->n_ops; k++)
        p->off[k] = 0;
    for (int i = 0; i < w->rank; i++) {
        int64_t c = index % w->shape[i];
        index /= w->shape[i];
        p->coord[i] = c;
        for (int k = 0; k < w->n_ops; k++)
            p->off[k] += c * w->stride[k][i];
    }
}

void omi_walk_carry(const omi_walk *w, omi_pos *p) {
    for (int i = 0; i < w->rank && p->coord[i] == w->shape[i]; i++) {
        p->coord[i] = 0;
        for (int k = 0; k < w->n_ops; k++)
            p->off[k] -= w->shape[i] * w->stride[k][i];
        if (i + 1 == w->rank) return;
        p->coord[i + 1]++;
        for (int k = 0; k < w->n_ops; k++)
            p->off[k] += w->stride[k][i + 1];
    }
}

typedef struct split_job {
    int64_t n, grain;
    omi_range_body body;
    void *arg;
} split_job;

static void split_chunk(void *arg, int64_t chunk, int worker) {
    const split_job *j = arg;
    int64_t begin      = chunk * j->grain;
    j->body(j->arg, begin, omi_min64(begin + j->grain, j->n), worker);
}

void omi_split(int64_t n, int64_t grain, omi_range_body body, void *arg) {
    if (n <= 0) return;
    if (n <= 2 * grain) {
        body(arg, 0, n, 0);
        return;
    }
    split_job j = {n, grain, body, arg};
    omi_parallel(omi_ceil_div(n, grain), split_chunk, &j);
}
