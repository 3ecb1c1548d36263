/*
 * load.c -- a session straight from a file.
 */
#include "base/error.h"
#include "onemodel/session.h"

om_session *om_session_load(const char *path, const om_session_opts *opts) {
    OMI_ENTER("om_session_load");
    om_graph *g   = om_graph_load(path, NULL);
    om_session *s = g ? om_session_new(g, opts) : NULL;
    om_graph_release(g);
    return s;
}
