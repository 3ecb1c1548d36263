/*
 * scope.h (internal) -- the thread's stack of results, and the work list of dying tensors.
 */
#ifndef OM_TENSOR_SCOPE_H
#define OM_TENSOR_SCOPE_H

#include "tensor/tensor.h"

/* Work list of om_release: tensors whose count fell to zero, linked through their names. */
void omi_push_dead(om_tensor **dead, om_tensor *t);
void omi_release_list(om_tensor *dead);
/* Gives back one reference to a slot (NULL is fine); what died with it goes on *dead. */
void omi_grad_slot_release(om_grad_slot *s, om_tensor **dead);
/* Set by autograd when it is linked in: drops a reference to a record and pushes the tensors that
 * died with it. */
extern void (*omi_release_record)(om_record *r, om_tensor **dead);

#endif
