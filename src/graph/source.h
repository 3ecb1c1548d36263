/*
 * source.h -- what the readers of model files share: options, messages that name file and byte, and
 * being stopped.
 *
 * Needs: error.h.  Used by: onnx, format.
 */
#ifndef OM_GRAPH_SOURCE_H
#define OM_GRAPH_SOURCE_H

#include "base/error.h"

typedef struct om_source {
    const char *label;       /* file name, safe to print; may be ""                     */
    const char *hint;        /* what the bytes look like when they are no model, or NULL */
    size_t arena_cap;        /* bytes the graph may take; 0: no cap                     */
    const om_cancel *cancel; /* or NULL: the thread's own                               */
    bool skip_checksum;      /* of the weights                                          */
} om_source;

/* Raises "file.om: byte 123: ...; the bytes look like ..." and returns the pending status. */
om_status omi_source_fail(const om_source *o, om_status s, uint64_t at, const char *fmt, ...)
    OM_PRINTF(4, 5);
/* OM_ERR_CANCELLED (raised) when the load should stop. */
om_status omi_source_check(const om_source *o);

#endif
