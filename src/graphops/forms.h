/*
 * forms.h (internal) -- the forms that passes read, too.
 *
 * Needs: node.h.  Used by: graphops, passes.
 */
#ifndef OM_GRAPHOPS_FORMS_H
#define OM_GRAPHOPS_FORMS_H

/* BatchNormalization for inference. */
typedef struct om_batch_norm_form {
    float eps;
} om_batch_norm_form;

#endif
