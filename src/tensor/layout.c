/*
 * layout.c -- to the blocked layout NCHW16c and back (CD-4).
 *
 * A blocked tensor keeps its logical shape; its strides mean nothing, and every entry point but the
 * two conversions, shape queries, retain and release refuses it. The conversions are not operators:
 * they do not record, so a tensor that needs a gradient or is traced is refused here rather than
 * cut off silently.
 *
 * Needs: tensor.h, compute/nchw16c.
 */
#include <string.h>

#include "compute/nchw16c.h"
#include "tensor/seam.h"

static bool layout_arg(const om_tensor *t, uint8_t layout) {
    if (omi_failed()) return false;
    if (!t) {
        omi_fail(OM_ERR_ARG, "the tensor is NULL");
    } else if (t->layout != layout) {
        omi_fail(OM_ERR_LAYOUT, "%s is %s blocked", OMI_T(t),
                 layout == OM_STRIDED ? "already" : "not");
    } else if (t->dtype != OM_F32) {
        omi_fail(OM_ERR_DTYPE, "%s; only float32 has a blocked layout", OMI_T(t));
    } else if (t->rank != 4) {
        omi_fail(OM_ERR_SHAPE, "%s must be [N,C,H,W]", OMI_T(t));
    } else if (omi_seam_opaque(t, "a blocked layout") == OM_OK) {
        if (!omi_needs_grad_hook || !omi_needs_grad_hook(t)) return true;
        omi_fail(OM_ERR_STATE,
                 "%s needs a gradient, which a blocked copy cannot carry; om_detach it", OMI_T(t));
    }
    return false;
}

om_tensor *om_to_nchw16c(om_tensor *t) {
    OMI_ENTER("om_to_nchw16c");
    if (!layout_arg(t, OM_STRIDED)) return NULL;
    const int64_t *s = t->shape;
    om_tensor *y = omi_new(OM_F32, 5, (int64_t[]){s[0], omi_ceil_div(s[1], 16), s[2], s[3], 16});
    om_tensor *plain = y ? omi_pack(t) : NULL;
    if (!plain) return NULL;
    omi_to_nchw16c(s[0], s[1], s[2] * s[3], omi_ptr(plain), omi_ptr(y));
    y->layout = OM_NCHW16C;
    y->rank   = 4;
    memcpy(y->shape, s, 4 * sizeof *s);
    memset(y->strides, 0, sizeof y->strides);
    omi_spread_marks(y, t); // what a trace knows of the elements (TD-9)
    return y;
}

om_tensor *om_from_nchw16c(om_tensor *t) {
    OMI_ENTER("om_from_nchw16c");
    if (!layout_arg(t, OM_NCHW16C)) return NULL;
    const int64_t *s = t->shape;
    om_tensor *y     = omi_new(OM_F32, 4, s);
    if (!y) return NULL;
    omi_from_nchw16c(s[0], s[1], s[2] * s[3], omi_ptr(t), omi_ptr(y));
    omi_spread_marks(y, t);
    return y;
}
