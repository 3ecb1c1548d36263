/*
 * engine.h (internal) -- what record.c, engine.c and mode.c share.
 */
#ifndef OM_AUTOGRAD_ENGINE_H
#define OM_AUTOGRAD_ENGINE_H

#include "autograd/record.h"
#include "onemodel/autograd.h"

/* t is a leaf or result that a gradient flows to, and recording is on. */
bool omi_needs_grad(const om_tensor *t);
/* Drops what a record whose backward has run saved and where it leads. */
void omi_record_done(om_record *r);
/* Looks at every untraced call before it is recorded; the NaN finder installs it. NULL: nothing. */
#define omi_record_watch (omi_state()->record_watch)
/* The same for what a backward function made, before it is handed on. */
#define omi_backward_watch (omi_state()->backward_watch)

#endif
