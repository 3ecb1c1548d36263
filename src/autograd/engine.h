/*
 * engine.h (internal) -- what record.c, engine.c and mode.c share.
 */
#ifndef OM_AUTOGRAD_ENGINE_H
#define OM_AUTOGRAD_ENGINE_H

#include "autograd/record.h"
#include "base/vec.h"
#include "onemodel/autograd.h"

/* t is a leaf or result that a gradient flows to, and recording is on. */
bool omi_needs_grad(const om_tensor *t);
/* Drops what a record whose backward has run saved and where it leads. */
void omi_record_done(om_record *r);
/* Looks at every untraced call before it is recorded; the NaN finder installs it. NULL: nothing. */
#define omi_record_watch (omi_state()->record_watch)
/* The same for what a backward function made, before it is handed on. */
#define omi_backward_watch (omi_state()->backward_watch)

/* Gradients of leaves that have not been handed over. */
typedef struct omi_leaf_grad {
    om_grad_slot *slot; /* +1 */
    om_tensor *grad;    /* +1 */
} omi_leaf_grad;
typedef OM_VEC(omi_leaf_grad) omi_leaf_grads;
void omi_leaf_grads_free(omi_leaf_grads *l);
/* om_backward, but the gradients go to *out (empty before) and no leaf is touched; NULL: to the
 * leaves.
 */
om_status omi_backward_apart(om_tensor *root, omi_leaf_grads *out);
/* *slot = *slot + g, or g itself when there was none. Needs a scope, and recording off. */
om_status omi_add_term(om_tensor **slot, om_tensor *g);

#endif
