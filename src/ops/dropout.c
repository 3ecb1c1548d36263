/*
 * dropout.c -- dropout: a selection by Philox bits (AR-12.5).
 *
 * The record holds (seed, stream, block), never a mask: the gradient draws the same bits again. The
 * generator moves on only when the call succeeded, so a retry after a failure draws the same.
 *
 * Needs: op.h, compute/elementwise.
 */
#include "compute/elementwise.h"
#include "ops/op.h"

static void dropout_apply(const om_tensor *x, const om_dropout_raw *a, om_tensor *y) {
    om_view xv = omi_view(x), yv = omi_view(y);
    omi_dropout(&xv, a->p, (uint64_t)a->seed, (uint64_t)a->stream, (uint64_t)a->block, &yv);
}

static om_status dropout_backward(const om_record *r, om_tensor *const *dy, om_tensor **dx) {
    if (!dy[0] || !omi_needs(r, 0)) return OM_OK;
    om_tensor *d = omi_new_like(dy[0]);
    if (!d) return omi_pending_status;
    dropout_apply(dy[0], r->raw, d);
    dx[0] = d;
    return OM_OK;
}

om_tensor *om_dropout(om_tensor *x, float p, bool training, om_rng *g) {
    OMI_ENTER("om_dropout");
    if (!omi_args1(x) || !omi_need_dtype(x, OMI_TYPE_F32)) return NULL;
    if (!(p >= 0 && p <= 1))
        OM_FAIL_NULL(OM_ERR_ARG, "p is %g; a probability from 0 to 1 is needed", (double)p);
    if (!training) return omi_file(x);
    if (!g) g = om_thread_rng(2);
    om_tensor *y = omi_new_like(x);
    if (!y) return NULL;
    om_dropout_raw a = {
        .p = p, .seed = (int64_t)g->seed, .stream = (int64_t)g->stream, .block = (int64_t)g->block};
    dropout_apply(x, &a, y);
    uint64_t blocks = ((uint64_t)omi_numel(x) + 3) / 4;
    y               = omi_record1(OM_OP_DROPOUT, &a, NULL, 1, &x, y, dropout_backward, 0);
    if (!y) return NULL;
    g->block += blocks;
    omi_random_filled(y); // after the record: a live trace may not freeze these values (TD-9)
    return y;
}
