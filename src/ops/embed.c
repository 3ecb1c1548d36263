/*
 * embed.c -- Embedding: rows of a table by index.
 *
 * The gradient adds into zeros in row-major order of the index (AR-11.2); the row padding_idx gets
 * none. Forward is ONNX Gather along axis 0, negative indices included.
 *
 * Needs: op.h, compute/move.
 */
#include "compute/move.h"
#include "ops/op.h"

static om_status embedding_backward(const om_record *r, om_tensor *const *dy, om_tensor **dx) {
    const om_embedding_raw *raw = r->raw;
    int rank;
    const int64_t *shape = omi_in_shape(r, 0, &rank);
    if (!omi_needs(r, 0)) return OM_OK;
    om_tensor *d = omi_new_zero((om_dtype)dy[0]->dtype, rank, shape);
    if (!d) return omi_pending_status;
    om_view to = omi_view(d), idx = omi_view(omi_saved_in(r, 1)), g = omi_view(dy[0]);
    omi_index_add(&to, &idx, 0, &g, raw->padding_idx);
    dx[0] = d;
    return OM_OK;
}

om_tensor *om_embedding(om_tensor *w, om_tensor *idx, int64_t padding_idx) {
    OMI_ENTER("om_embedding");
    if (!omi_arg(w, "w") || !omi_arg(idx, "idx")) return NULL;
    if (w->rank != 2) OM_FAIL_NULL(OM_ERR_SHAPE, "the table %s must be [rows, dim]", OMI_T(w));
    if (padding_idx >= w->shape[0])
        OM_FAIL_NULL(OM_ERR_ARG, "padding_idx %lld is no row of %s; it must be below %lld, or -1",
                     (long long)padding_idx, OMI_T(w), (long long)w->shape[0]);
    om_tensor *y = omi_gathered(w, idx, 0);
    if (!y) return NULL;
    om_tensor *in[2]     = {w, idx};
    om_embedding_raw raw = {.padding_idx = padding_idx < 0 ? -1 : padding_idx};
    return omi_record1(OM_OP_EMBEDDING, &raw, NULL, 2, in, y, embedding_backward, OM_SAVE_IN(1));
}
