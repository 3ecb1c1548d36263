/*
 * session.h -- running a graph.
 *
 * A session plans once per input-shape signature: shapes are inferred, shape arithmetic is folded,
 * kernels chosen and memory laid out; plans are cached. om_session_run may be called from many
 * threads at once. Exact arithmetic gives the same bits on every machine with any number of
 * threads, equal to the eager model's; a node without an exact kernel makes creation fail, listing
 * all of them.
 *
 * An input whose contents decide sizes (a Reshape target that is a graph input) belongs to the
 * signature with its contents; such a graph is run by om_session_run, not by prepared runs.
 *
 * If, Loop, Scan and NonZero have outputs whose sizes are met only while they run. A graph with one
 * of them is planned in parts, each when it is reached and once for the sizes met; om_session_run
 * runs it, allocating as it goes. Loops look at the cancel flag in every iteration, make at most
 * 2^26 iterations in one run, and all that they make counts against memory_limit.
 *
 * For real-time callers: om_session_prepare once, then om_run_call makes no allocation, lock or
 * system call (with one thread).
 *
 * Needs: graph.h, tensor.h.
 */
#ifndef ONEMODEL_SESSION_H
#define ONEMODEL_SESSION_H

#include <onemodel/graph.h>
#include <onemodel/tensor.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct om_session om_session;
typedef struct om_run om_run;

typedef enum om_arith {
    OM_EXACT = 0, /* docs/arithmetic.md, to the bit                                        */
    OM_FAST  = 1  /* may fold batch norm into convolutions and use 1 to 2 ulp exp and tanh */
} om_arith;

typedef struct om_session_opts {
    uint32_t struct_size;
    om_arith arith;
    int32_t threads;    /* workers a run may use; 0: om_threads()                          */
    int32_t plan_cache; /* plans kept, of each part of a graph that is planned in parts; 0: 8.
                         * Never evicts one that is running                                 */
    /* Bytes that the session may hold: constants made from the file, packed weights, the largest
     * plan and what one run of it needs. The graph itself is not counted: om_load_opts has its own
     * limit. 0: no limit. */
    int64_t memory_limit;
} om_session_opts;

/* Fails: OM_ERR_UNSUPPORTED, message listing every node that cannot be run with its name;
 * OM_ERR_MALFORMED (shapes that contradict each other); OM_ERR_NOMEM. Retains g. */
OM_API om_session *om_session_new(om_graph *g, const om_session_opts *opts);
OM_API om_session *om_session_load(const char *path, const om_session_opts *opts);
/* Waits for runs in other threads to end. NULL is fine. */
OM_API void om_session_free(om_session *s);
/* Everything that keeps g from running, in full: write is called once a line. Nodes without a
 * kernel, attributes and types that a node does not define, and, where all inputs declare their
 * sizes, sizes that contradict each other. OM_OK and no text when there is nothing;
 * OM_ERR_UNSUPPORTED when something listed has no kernel here; OM_ERR_MALFORMED (or _VALUE, _LIMIT)
 * when the graph itself is wrong. None of these stays pending: they were listed. The command
 * `onemodel inspect` uses it. */
OM_API om_status om_graph_check(om_graph *g, om_arith arith, om_write_fn write, void *ctx);

/* In how many parts a graph is planned: 1 when one plan serves it, so that om_session_prepare and
 * om_session_memory do; one more for each node, those of subgraphs too, whose sizes are met only
 * while it runs (If, Loop, Scan, NonZero). Makes no plan. Fails as om_session_new does for a graph
 * that cannot be run. */
OM_API om_status om_graph_parts(om_graph *g, om_arith arith, int *parts);

OM_API int om_session_n_inputs(const om_session *s);
OM_API int om_session_n_outputs(const om_session *s);
OM_API om_status om_session_input(const om_session *s, int i, om_value_info *out);
OM_API om_status om_session_output(const om_session *s, int i, om_value_info *out);

/* An input by name. Tensors of any strides are taken; contiguous ones without copy. */
typedef struct om_binding {
    const char *name;
    om_tensor *tensor;
} om_binding;
/* Runs once. out[i] receives output i of the graph (all of them when n_out is the number of
 * outputs; fewer: the first n_out).        @scoped outputs Fails: OM_ERR_ARG (missing or unknown
 * input), OM_ERR_SHAPE (two axes of one symbol differ, fixed size or range broken), OM_ERR_DTYPE,
 * OM_ERR_VALUE (index out of range, integer division by zero), OM_ERR_CANCELLED, OM_ERR_LIMIT,
 * OM_ERR_NOMEM. */
OM_API om_status om_session_run(om_session *s, int n_in, const om_binding *in, int n_out,
                                om_tensor **out);
/* A session with one input and one output.        @scoped */
OM_API om_tensor *om_session_call(om_session *s, om_tensor *x);

typedef struct om_shape {
    int32_t rank;
    int64_t dims[OM_MAX_RANK];
} om_shape;
/* Bytes that a run of these input shapes (graph order) will hold: arena and outputs, weights not
 * counted. Allocates nothing for the run itself. OM_ERR_UNSUPPORTED, naming the node, for a graph
 * that is planned in parts. */
OM_API om_status om_session_memory(om_session *s, int n_in, const om_shape *shapes, int64_t *bytes);

/* A run ready to go: its plan is pinned, its memory allocated. One thread at a time. NULL and
 * OM_ERR_UNSUPPORTED, naming the node, for a graph that is planned in parts. */
OM_API om_run *om_session_prepare(om_session *s, int n_in, const om_shape *shapes);
/* in[i] points to the contiguous elements of input i. out[i] NULL: the result stays in the run's
 * own buffer (om_run_output); else it is written there. out itself may be NULL. Outputs must not
 * overlap inputs or each other. NaNs in outputs are 0x7fc00000. A run may outlive its session. */
OM_API om_status om_run_call(om_run *r, const void *const *in, void *const *out);
OM_API om_status om_run_output_shape(const om_run *r, int i, om_shape *out);
/* Where the last call wrote output i; NULL when it failed. The run's own is valid until the next
 * call. */
OM_API const void *om_run_output(const om_run *r, int i);
OM_API void om_run_free(om_run *r);

/* SHA-256 of all outputs of the last call, in graph order: of each what om_hash takes of a tensor
 * (dtype and rank as 32-bit, dims as 64-bit numbers, elements; little-endian). hex is 65 bytes. */
OM_API om_status om_run_hash(const om_run *r, char *hex);

#ifdef __cplusplus
}
#endif
#endif
