/*
 * module.c -- tracing a module: the only file here that knows of nn, by its public visitor.
 */
#include "onemodel/nn.h"
#include "trace/tracer.h"

static int name_one(void *ctx, const char *path, om_tensor *t, bool is_buffer) {
    (void)is_buffer;
    return om_trace_parameter(ctx, path, t) != OM_OK;
}

om_status om_trace_params(om_tracer *tr, om_module *m) {
    OMI_ENTER("om_trace_params");
    if (omi_failed()) return om_pending();
    if (!tr) return omi_fail(OM_ERR_ARG, "the tracer is NULL");
    return om_nn_visit(m, name_one, tr);
}

om_graph *om_nn_trace(om_module *m, om_tensor *example, int n_axes, const char *const *axes) {
    OMI_ENTER("om_nn_trace");
    om_tracer *tr = om_trace_begin(NULL);
    if (!tr) return NULL;
    om_scope s = om_scope_begin();
    om_trace_params(tr, m);
    om_tensor *x = om_trace_input(tr, "x", example, n_axes, axes);
    om_trace_output(tr, "y", om_forward(m, x));
    om_graph *g = om_trace_finish(tr);
    om_scope_end(s);
    return g;
}
