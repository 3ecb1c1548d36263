/*
 * mode.c -- grad mode, leaves and their gradients.
 */
#include "autograd/engine.h"
#include "base/thread.h"
#include "compute/move.h"

bool omi_no_grad(void) {
    bool was     = omi_grad_off;
    omi_grad_off = true;
    return was;
}
void omi_grad_restore(bool was) {
    omi_grad_off = was;
}

bool om_grad_enabled(void) {
    return !omi_grad_off;
}

bool om_no_grad_begin(void) {
    OMI_ENTER("om_no_grad_begin");
    bool was = omi_grad_off;
    if (omi_seam) {
        om_site site = omi_site();
        if (omi_seam->no_grad(omi_seam->self, &site) != OM_OK) return was;
    }
    omi_grad_off = true;
    return was;
}
void om_no_grad_end(bool before) {
    omi_grad_off = before;
}

bool omi_needs_grad(const om_tensor *t) {
    return !omi_grad_off && (t->record || (t->flags & OM_T_GRAD));
}

bool om_requires_grad(const om_tensor *t) {
    if (!t) return false;
    if (omi_seam && t->trace_serial == omi_seam->serial) return true;
    return t->record || (t->flags & OM_T_GRAD);
}

om_status om_set_requires_grad(om_tensor *t, bool on) {
    OMI_ENTER("om_set_requires_grad");
    OM_TRY(omi_check_arg(t, "the tensor"));
    if (t->record)
        return omi_fail(OM_ERR_STATE,
                        "%s was computed; only leaves can be marked (om_detach first)", OMI_T(t));
    if (omi_traced(t))
        return omi_fail_trace(OM_TRACE_INVALID_USAGE,
                              "%s is traced; tracing is for inference graphs", OMI_T(t));
    if (on && !(omi_type_bit((om_dtype)t->dtype) & OM_SET_FLOAT))
        return omi_fail(OM_ERR_DTYPE, "%s; gradients need float32 or float64 (om_cast)", OMI_T(t));
    if (on && !omi_grad_slot_of(t)) return omi_pending_status;
    t->flags = (uint8_t)(on ? t->flags | OM_T_GRAD : t->flags & ~OM_T_GRAD);
    return OM_OK;
}

om_tensor *om_grad_of(const om_tensor *leaf) {
    return leaf && leaf->grad ? leaf->grad->grad : NULL;
}

om_status om_set_grad(om_tensor *leaf, om_tensor *grad) {
    OMI_ENTER("om_set_grad");
    OM_TRY(omi_check_arg(leaf, "the leaf"));
    if (grad) {
        OM_TRY(omi_check_arg(grad, "the gradient"));
        OM_TRY(omi_seam_take(grad));
    }
    if (!(leaf->flags & OM_T_GRAD))
        return omi_fail(OM_ERR_STATE, "%s is no leaf that learns (om_set_requires_grad)",
                        OMI_T(leaf));
    if (!grad) return om_clear_grad(leaf), OM_OK;
    if (grad->dtype != leaf->dtype)
        return omi_fail(OM_ERR_DTYPE, "%s for %s; convert it with om_cast", OMI_T(grad),
                        OMI_T(leaf));
    if (!omi_same_shape(grad, leaf))
        return omi_fail(OM_ERR_SHAPE, "%s for %s; a gradient has the shape of its leaf",
                        OMI_T(grad), OMI_T(leaf));
    if (omi_needs_grad(grad))
        return omi_fail(
            OM_ERR_STATE,
            "%s has a gradient to give, which being one would cut; give om_detach of it",
            OMI_T(grad));
    om_scope s      = om_scope_begin();
    om_tensor *copy = omi_new_like(grad);
    if (copy) {
        om_view from = omi_view(grad), to = omi_view(copy);
        omi_copy(&from, &to);
        omi_spread_marks(copy, grad);
    }
    if (copy && omi_check_cancel() == OM_OK) {
        om_clear_grad(leaf);
        leaf->grad->grad = om_retain(copy);
    }
    return om_scope_end(s);
}

void om_clear_grad(om_tensor *leaf) {
    if (!leaf || !leaf->grad) return;
    om_release(leaf->grad->grad);
    leaf->grad->grad = NULL;
}
