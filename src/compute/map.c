/*
 * map.c -- the three ways through operands: whole, by rows, by gathered blocks.
 */
#include "compute/map.h"

#include "base/dtype.h"
#include "compute/move.h"

#define BLOCK   1024 /* bytes of an operand that are gathered at once */
#define MIN_ROW 32   /* shorter rows are cheaper to gather than to call for */

typedef struct map_job {
    const omi_map *m;
    omi_walk w; /* the inputs */
    int64_t es[OMI_MAP_IN], out_es[2];
    bool direct; /* every inner run has steps 0 and 1 and is worth a call */
} map_job;

static void run_at(const map_job *j, int64_t n, int64_t first, const void *const *in,
                   const int *step) {
    void *out[2] = {0};
    for (int k = 0; k < j->m->n_out; k++)
        if (j->m->out[k]) out[k] = (char *)j->m->out[k]->data + first * j->out_es[k];
    j->m->run(j->m, n, first, in, step, out);
}

static void map_rows(const map_job *j, int64_t begin, int64_t end) {
    const omi_walk *w = &j->w;
    omi_pos p;
    int step[OMI_MAP_IN];
    const void *in[OMI_MAP_IN];
    for (int k = 0; k < w->n_ops; k++)
        step[k] = (int)w->stride[k][0];
    omi_walk_seek(w, begin, &p);
    while (begin < end) {
        int64_t n = omi_walk_run(w, &p, end - begin);
        for (int k = 0; k < w->n_ops; k++)
            in[k] = (const char *)j->m->in[k]->data + p.off[k] * j->es[k];
        run_at(j, n, begin, in, step);
        omi_walk_advance(w, &p, n);
        begin += n;
    }
}

static void map_blocks(const map_job *j, int64_t begin, int64_t end) {
    const omi_walk *w = &j->w;
    uint64_t buf[OMI_MAP_IN][BLOCK / 8];
    int64_t most = BLOCK;
    const void *in[OMI_MAP_IN];
    int step[OMI_MAP_IN];
    omi_pos p;
    for (int k = 0; k < w->n_ops; k++) {
        in[k]   = buf[k];
        step[k] = 1;
        most    = omi_min64(most, BLOCK / j->es[k]);
    }
    omi_walk_seek(w, begin, &p);
    while (begin < end) {
        int64_t n = omi_min64(most, end - begin);
        for (int64_t at = 0; at < n;) {
            int64_t run = omi_walk_run(w, &p, n - at);
            for (int k = 0; k < w->n_ops; k++)
                omi_move_run((size_t)j->es[k], run, (char *)buf[k] + at * j->es[k], 1,
                             (const char *)j->m->in[k]->data + p.off[k] * j->es[k],
                             w->stride[k][0]);
            omi_walk_advance(w, &p, run);
            at += run;
        }
        run_at(j, n, begin, in, step);
        begin += n;
    }
}

static void map_range(void *arg, int64_t begin, int64_t end, int worker) {
    (void)worker;
    const map_job *j = arg;
    if (j->direct)
        map_rows(j, begin, end);
    else
        map_blocks(j, begin, end);
}

void omi_map_apply(const omi_map *m) {
    map_job j = {.m = m};
    omi_walk_init(&j.w, m->n_in, m->in);
    if (j.w.numel == 0) return;
    j.direct = j.w.rank == 1 || j.w.shape[0] >= MIN_ROW;
    for (int k = 0; k < m->n_in; k++) {
        int64_t s = j.w.stride[k][0];
        j.es[k]   = (int64_t)omi_move_size(m->in[k]->dtype);
        if (s != 1 && (s != 0 || m->no_scalars)) j.direct = false;
        if (OM_UNLIKELY(!j.es[k])) return;
    }
    for (int k = 0; k < m->n_out; k++)
        if (m->out[k]) j.out_es[k] = (int64_t)om_dtype_size(m->out[k]->dtype);
    omi_split(j.w.numel, m->grain ? m->grain : OMI_GRAIN, map_range, &j);
}
