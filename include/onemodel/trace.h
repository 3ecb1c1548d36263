/*
 * trace.h -- one recorded eager run becomes an ONNX graph (docs/trace.md).
 *
 *     om_tracer *tr = om_trace_begin(NULL);
 *     om_trace_params(tr, net.m);
 *     om_tensor *x = om_trace_input(tr, "x", example, OM_AXES("batch", NULL));
 *     om_trace_output(tr, "y", mlp_forward(&net, x));
 *     om_graph *g = om_trace_finish(tr);
 *
 * The model runs once on the example, computing real values. Reads, writes, random numbers, the
 * example itself and fixed sizes that would be frozen into the graph fail at the call that did it,
 * with OM_ERR_TRACE and a kind; what the tracer had to guess is a note in the report. One run does
 * not see a number or a branch that host code made from a size (sum / n, if (n > 4)): compare the
 * graph with the model at other sizes (docs/guide-tracing.md). A tracer belongs to the thread that
 * began it, and ends with it.
 *
 * Needs: tensor.h, graph.h.
 */
#ifndef ONEMODEL_TRACE_H
#define ONEMODEL_TRACE_H

#include <onemodel/graph.h>
#include <onemodel/nn.h>
#include <onemodel/tensor.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct om_tracer om_tracer;

typedef struct om_trace_opts {
    uint32_t struct_size;
    bool provenance;  /* keep call sites so that om_graph_save_onnx may write them */
    const char *name; /* graph name; NULL: "onemodel"                              */
} om_trace_opts;

/* Starts recording on this thread. Fails: OM_ERR_TRACE InvalidUsage (a tracer is active here),
 * NoGradInTrace (gradients are off). */
OM_API om_tracer *om_trace_begin(const om_trace_opts *opts);

/* OM_AXES("batch", NULL, "width"): one name or NULL per axis, as the two arguments (n, names).
 * Trailing NULLs may be left out. */
#ifndef __cplusplus
#    define OM_AXES(...)                                                                           \
        (int)(sizeof((const char *[]){__VA_ARGS__}) / sizeof(const char *)), (const char *[]) {    \
            __VA_ARGS__                                                                            \
        }
#endif
/* Declares a graph input and returns the tensor to give to the model: a new one, with a copy of the
 * example. Using the example itself, or what was computed from it while the trace records, is
 * refused, and so is reading it. Named axes are symbolic; their example sizes must be at least 2,
 * and distinct per name; the same name on two inputs is one symbol. Best are primes from 11 up that
 * divide no fixed size.    @scoped
 * Fails: OM_ERR_TRACE InvalidUsage; OM_ERR_ARG for a name that no file can hold: names (of inputs,
 * outputs, parameters, axes, the graph) are UTF-8 without control characters, below 64 KiB. */
OM_API om_tensor *om_trace_input(om_tracer *tr, const char *name, om_tensor *example, int n_axes,
                                 const char *const *axes);
/* Declares the allowed sizes of a symbol: lo <= size <= hi (hi 0: no bound), a multiple of
 * multiple. */
OM_API om_status om_trace_axis_range(om_tracer *tr, const char *axis, int64_t lo, int64_t hi,
                                     int64_t multiple);
/* Names a weight; without it a captured constant gets a generated name. */
OM_API om_status om_trace_parameter(om_tracer *tr, const char *name, om_tensor *t);
/* Names every parameter and buffer of a module by its state-dict path. */
OM_API om_status om_trace_params(om_tracer *tr, om_module *m);
/* Declares a graph output. Fails: InvalidUsage when t does not depend on an input. */
OM_API om_status om_trace_output(om_tracer *tr, const char *name, om_tensor *t);
/* Ends the tracer, in any case, and returns the graph; NULL on failure. After a refused read, write
 * or change of grad mode there is none, even if om_catch took that error: InvalidUsage names the
 * first. A refused operator left no result, so the trace could go on.      @retained */
OM_API om_graph *om_trace_finish(om_tracer *tr);
/* Ends the tracer and drops what it recorded; the thread is as before begin. NULL is fine. */
OM_API void om_trace_abort(om_tracer *tr);
/* What the trace did, as text: inputs and axes, derived sizes, constants, inputs and parameters
 * that nothing used, pruned nodes, notes. Printed from a record that the graph keeps in memory
 * only: "" for a loaded or imported graph. Owned by the graph. */
OM_API const char *om_trace_report(const om_graph *g);

/* Traces om_forward(m, .) on one input "x" to one output "y", parameters named, module in its
 * current mode.      @retained */
OM_API om_graph *om_nn_trace(om_module *m, om_tensor *example, int n_axes, const char *const *axes);

#ifdef __cplusplus
}
#endif
#endif
