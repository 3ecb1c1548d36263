/*
 * forms.h (internal) -- the forms that passes and the runtime read, too.
 *
 * Needs: node.h.  Used by: graphops, passes, runtime.
 */
#ifndef OM_GRAPHOPS_FORMS_H
#define OM_GRAPHOPS_FORMS_H

#include "graphops/node.h"

/* BatchNormalization for inference. */
typedef struct om_batch_norm_form {
    float eps;
} om_batch_norm_form;

/* Scan: the first inputs are states, the last n_scan are cut along axes. */
typedef struct om_scan_form {
    uint32_t n_scan, n_state;
    const int64_t *in_axes, *in_back;   /* n_scan each, NULL: zeros         */
    const int64_t *out_axes, *out_back; /* of each scan output, NULL: zeros */
    size_t n_out_axes, n_out_back;
} om_scan_form;

#endif
