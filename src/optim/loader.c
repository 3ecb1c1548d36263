/*
 * loader.c -- batches over tensors in memory, or made by a callback.
 *
 * The order of an epoch is one permutation drawn when the epoch begins; with the generator as it
 * was then and the position, a resumed loader goes on with the same items (AR-12.6: stream 1 is for
 * shuffling, so dropout and initialisation never move it).
 */
#include "optim/loader.h"

#include <string.h>

#include "base/opts.h"
#include "base/thread.h"
#include "compute/move.h"
#include "tensor/seam.h"

static om_loader *loader_new(int64_t items, int64_t batch, int n, const om_loader_opts *opts) {
    om_loader_opts o;
    if (!OMI_OPTS(&o, opts, drop_last)) return NULL;
    if (items < 1 || batch < 1 || n < 1)
        OM_FAIL_NULL(OM_ERR_ARG, "%lld items, batch %lld, %d tensors; each must be at least 1",
                     (long long)items, (long long)batch, n);
    if (o.drop_last && batch > items)
        OM_FAIL_NULL(OM_ERR_ARG, "drop_last leaves no batch: %lld items, batch %lld",
                     (long long)items, (long long)batch);
    om_loader *l = omi_calloc(sizeof *l);
    if (!l) return NULL;
    l->items     = items;
    l->batch     = batch;
    l->n         = n;
    l->shuffle   = o.shuffle;
    l->drop_last = o.drop_last;
    l->order     = omi_alloc((size_t)items * sizeof *l->order);
    if (l->order) return l;
    om_loader_free(l);
    return NULL;
}

om_loader *om_loader_new(int n, om_tensor *const *tensors, int64_t batch,
                         const om_loader_opts *opts) {
    OMI_ENTER("om_loader_new");
    if (omi_failed()) return NULL;
    if (n < 1 || !tensors) OM_FAIL_NULL(OM_ERR_ARG, "no tensors");
    for (int i = 0; i < n; i++) {
        if (omi_check_arg(tensors[i], "a tensor") != OM_OK) return NULL;
        if (tensors[i]->rank < 1 || tensors[i]->shape[0] != tensors[0]->shape[0])
            OM_FAIL_NULL(OM_ERR_SHAPE,
                         "tensor %d is %s; the first axis must be that of the first, %s", i,
                         OMI_T(tensors[i]), OMI_T(tensors[0]));
    }
    om_loader *l = loader_new(tensors[0]->shape[0], batch, n, opts);
    if (!l) return NULL;
    l->tensors = omi_calloc((size_t)n * sizeof *l->tensors);
    if (!l->tensors) {
        om_loader_free(l);
        return NULL;
    }
    for (int i = 0; i < n; i++)
        l->tensors[i] = om_retain(tensors[i]);
    return l;
}

om_loader *om_loader_callback(int64_t items, int64_t batch, int n, om_fill_fn fill, void *ctx,
                              const om_loader_opts *opts) {
    OMI_ENTER("om_loader_callback");
    if (omi_failed()) return NULL;
    if (!fill) OM_FAIL_NULL(OM_ERR_ARG, "fill is NULL");
    om_loader *l = loader_new(items, batch, n, opts);
    if (!l) return NULL;
    l->fill = fill;
    l->ctx  = ctx;
    return l;
}

void om_loader_free(om_loader *l) {
    if (!l) return;
    for (int i = 0; l->tensors && i < l->n; i++)
        om_release(l->tensors[i]);
    omi_free(l->tensors, l->tensors ? (size_t)l->n * sizeof *l->tensors : 0);
    omi_free(l->order, l->order ? (size_t)l->items * sizeof *l->order : 0);
    omi_free(l, sizeof *l);
}

om_status omi_loader_order(om_loader *l, om_rng *rng) {
    if (!l->shuffle) {
        for (int64_t i = 0; i < l->items; i++)
            l->order[i] = i;
        return OM_OK;
    }
    om_scope s   = om_scope_begin();
    om_tensor *p = om_permutation(rng, l->items);
    if (p) memcpy(l->order, omi_ptr(p), (size_t)l->items * sizeof *l->order);
    l->drawn = omi_seam ? omi_seam->serial : 0;
    return om_scope_end(s);
}

static om_status begin_epoch(om_loader *l) {
    om_rng *rng = om_thread_rng(1);
    l->start    = *rng;
    OM_TRY(omi_loader_order(l, rng));
    l->position = 0;
    l->running  = true;
    return OM_OK;
}

/* Rows index[0 .. count-1] of t. */
static om_tensor *loader_rows(om_tensor *t, int64_t count, const int64_t *index) {
    int64_t shape[OM_MAX_RANK];
    memcpy(shape, t->shape, sizeof shape);
    shape[0]     = count;
    om_tensor *y = omi_new((om_dtype)t->dtype, t->rank, shape);
    if (!y) return NULL;
    /* A view is read only here. */
    om_view idx = {.data    = (void *)(uintptr_t)index,
                   .dtype   = OM_I64,
                   .rank    = 1,
                   .shape   = {count},
                   .strides = {1}};
    om_view x = omi_view(t), to = omi_view(y);
    omi_gather(&x, &idx, 0, &to);
    return omi_check_cancel() == OM_OK ? y : NULL;
}

static om_status make_batch(om_loader *l, int64_t count, om_tensor **out) {
    const int64_t *index = l->order + l->position;
    if (l->fill) {
        int code = l->fill(l->ctx, count, index, l->n, out);
        if (omi_failed()) return om_pending();
        if (code) return omi_fail(OM_ERR_CANCELLED, "fill stopped with %d", code);
        for (int i = 0; i < l->n; i++)
            if (!out[i]) return omi_fail(OM_ERR_STATE, "fill left tensor %d of the batch NULL", i);
        return OM_OK;
    }
    for (int i = 0; i < l->n; i++) {
        OM_TRY(
            omi_seam_take(l->tensors[i])); // a batch of traced rows would leave the trace's sight
        if (!(out[i] = loader_rows(l->tensors[i], count, index))) return om_pending();
        omi_spread_marks(out[i], l->tensors[i]);
        if (l->drawn && omi_seam && l->drawn == omi_seam->serial) omi_random_filled(out[i]);
    }
    return om_pending();
}

bool om_loader_next(om_loader *l, om_tensor **out) {
    OMI_ENTER("om_loader_next");
    if (omi_failed()) return false;
    if (!l || !out) {
        omi_fail(OM_ERR_ARG, "%s is NULL", l ? "out" : "the loader");
        return false;
    }
    for (int i = 0; i < l->n; i++)
        out[i] = NULL;
    if (!l->running && begin_epoch(l) != OM_OK) return false;
    int64_t left = l->items - l->position, count = omi_min64(left, l->batch);
    if (count == 0 || (l->drop_last && count < l->batch)) {
        om_loader_rewind(l);
        return false;
    }
    if (make_batch(l, count, out) != OM_OK) {
        for (int i = 0; i < l->n; i++)
            out[i] = NULL;
        return false;
    }
    l->position += count;
    return true;
}

bool om_batches_next(om_batches *b) {
    if (!b) return false;
    bool over = b->open && (om_scope_end(b->scope) != OM_OK || b->body);
    b->open   = 0;
    if (over || om_pending() != OM_OK) return false;
    b->scope = om_scope_begin();
    if (om_loader_next(b->loader, b->out)) {
        b->open = 1;
        return true;
    }
    (void)om_scope_end(b->scope);
    return false;
}

void om_loader_rewind(om_loader *l) {
    if (!l || !l->running) return;
    l->running  = false;
    l->position = 0;
    l->epoch++;
}

int64_t om_loader_epoch(const om_loader *l) {
    return l ? l->epoch : 0;
}

int64_t om_loader_n_batches(const om_loader *l) {
    if (!l) return 0;
    return l->drop_last ? l->items / l->batch : omi_ceil_div(l->items, l->batch);
}
