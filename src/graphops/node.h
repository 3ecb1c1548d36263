/*
 * node.h (internal) -- what the graph plane knows of one ONNX node type, and what it is told of one
 * node.
 *
 * opset.def has one row a type (CD-27): inference of types and sizes, whether it may be evaluated
 * while a plan is made, and the step that runs it in Exact and in Fast arithmetic. Its functions
 * see the node through om_nctx: input and output values with concrete sizes, some with known
 * contents. They report what is wrong with omi_problem, never by the pending error, because the
 * session lists every problem of a graph at once; only memory failures are raised.
 *
 * A step is immutable and shared by all runs of a plan. It refers to values by number; a run brings
 * a table of pointers, one per value. So nothing is allocated or patched while running.
 *
 * Needs: graph, compute.  Used by: graphops, passes, runtime.
 */
#ifndef OM_GRAPHOPS_NODE_H
#define OM_GRAPHOPS_NODE_H

#include "compute/view.h"
#include "graph/graph.h"

/* Largest contents evaluated while a plan is made (CD-28), and largest value a plan may hold. */
#define OM_FOLD_LIMIT  4096
#define OM_VALUE_LIMIT ((int64_t)1 << 40)

/* A value while a plan is made. */
typedef struct om_pval {
    const char *name;
    uint32_t index; /* in the program                                                    */
    int32_t dtype;  /* ONNX number, 0: not known yet                                     */
    int32_t rank;   /* -1: not known yet                                                 */
    int64_t shape[OM_MAX_RANK], numel;
    const void *known; /* contents when known now: aligned, contiguous                      */
    om_buffer *buf;    /* known is in it: what packed weights hang on; NULL for computed    */
    int64_t offset;    /* of known in buf, in bytes                                         */
} om_pval;

struct om_node_def;
struct om_step;

/* What a run hands to a step. */
typedef struct om_exec {
    void *const *ptr; /* one per value                   */
    void *ws;         /* the step's workspace            */
    int workers;
    const om_graph *graph; /* for messages                  */
} om_exec;

typedef om_status (*om_step_fn)(const struct om_step *s, const om_exec *x);

typedef struct om_step {
    om_step_fn run; /* NULL: nothing to do at run time, the outputs are parts of input 0  */
    void *args;     /* in the plan's arena                                                 */
    uint32_t node;  /* index in the graph, for messages                                    */
    uint32_t n_in, n_out;
    uint32_t *in, *out; /* value numbers, OM_NO_VALUE where absent                        */
    size_t ws_bytes, ws_offset;
    int64_t *views;   /* run NULL: output k is input 0 from byte views[k] on               */
    uint8_t in_place; /* bit k: output 0 may have the bytes of input k                */
} om_step;

/* One node while it is checked, inferred or selected. */
typedef struct om_nctx {
    const om_graph *graph;
    const om_gnode *node;
    uint32_t index;
    const struct om_node_def *def;
    int64_t opset;
    uint32_t n_in, n_out;
    om_pval **in, **out; /* NULL: absent                                     */
    bool types_only;     /* sizes are not known: stop after types and attributes */
    bool creating;       /* the session is being made: wrong sizes are the file's fault */
    om_arena *arena;     /* of the plan, for select                         */
    int workers;
    om_status status; /* first problem */
    char message[320];
} om_nctx;

typedef om_status (*om_infer_fn)(om_nctx *c);
typedef bool (*om_fold_fn)(const om_nctx *c); /* may be evaluated now */
typedef om_step *(*om_select_fn)(om_nctx *c); /* NULL: a problem, or raised */

typedef struct om_node_def {
    const char *type;
    int32_t since; /* first opset whose form this is */
    om_infer_fn infer;
    om_fold_fn fold; /* NULL: never */
    om_select_fn select_exact, select_fast;
    int32_t arg;       /* tells rows apart that share functions                          */
    uint32_t operands; /* bit k: the contents of input k decide sizes                    */
} om_node_def;

/* Opset of a graph that declares none, and the newest whose forms of our types are those of 20:
 * later versions widen types and change operators that have no row here. */
#define OM_OPSET_DEFAULT 20
#define OM_OPSET_MAX     28

/* NULL when there is no such type. */
const om_node_def *omi_node_def(const char *type, const char *domain);
/* A further row, for tests only; NULL removes it. */
void omi_node_def_for_test(const om_node_def *def);

/* ---- checking and inference: each reports its problem and returns its status -------------------
 */

om_status omi_problem(om_nctx *c, om_status s, const char *fmt, ...) OM_PRINTF(3, 4) OM_COLD;
/* At least in_min inputs, all present; at most in_max inputs and out_max outputs, output 0 present.
 */
om_status omi_arity(om_nctx *c, uint32_t in_min, uint32_t in_max, uint32_t out_max);
/* Type sets. */
enum {
    OM_TY_F32  = 1u << OM_F32,
    OM_TY_F64  = 1u << OM_F64,
    OM_TY_I64  = 1u << OM_I64,
    OM_TY_I32  = 1u << OM_I32,
    OM_TY_U8   = 1u << OM_U8,
    OM_TY_BOOL = 1u << OM_BOOL,
    OM_TY_INT  = OM_TY_I64 | OM_TY_I32,
    OM_TY_ALL  = OM_TY_F32 | OM_TY_F64 | OM_TY_INT | OM_TY_U8 | OM_TY_BOOL
};
/* Input i (may be absent) has one of these types; a type not known yet passes. */
om_status omi_type(om_nctx *c, uint32_t i, uint32_t types);
om_status omi_same_type(om_nctx *c, uint32_t i, uint32_t j);
/* Sets the type of output k (may be absent). */
om_status omi_out_type(om_nctx *c, uint32_t k, int32_t dtype);
/* Elements of a value of this type; false when a size is negative or the value, with empty axes
 * counted as 1, is larger than OM_VALUE_LIMIT. So no product of some of its sizes can overflow. */
bool omi_numel_of(int32_t dtype, int rank, const int64_t *shape, int64_t *numel);
/* Sets the sizes of output k; checks rank, sign, product and OM_VALUE_LIMIT. */
om_status omi_out_shape(om_nctx *c, uint32_t k, int rank, const int64_t *shape);
om_status omi_out_like(om_nctx *c, uint32_t k, const om_pval *v);
/* The type of output 0 is that of input 0, which may be any. */
om_status omi_out_as_input(om_nctx *c);
/* Numpy broadcasting of n values to shape. */
om_status omi_broadcast(om_nctx *c, uint32_t n, om_pval *const *v, int *rank, int64_t *shape);
/* Output 0 has the sizes that all inputs broadcast to. */
om_status omi_out_broadcast(om_nctx *c);
om_status omi_norm_axis(om_nctx *c, int64_t axis, int rank, int *out);

om_status omi_get_int(om_nctx *c, const char *name, int64_t otherwise, int64_t *out);
om_status omi_get_flag(om_nctx *c, const char *name, bool otherwise, bool *out); /* 0 or 1 */
om_status omi_get_float(om_nctx *c, const char *name, float otherwise, float *out);
/* Exactly n integers, or fill in every place when the attribute is absent. */
om_status omi_get_ints(om_nctx *c, const char *name, size_t n, int64_t fill, int64_t *out);
/* One of the n texts, as its index; 0 when absent. */
om_status omi_get_choice(om_nctx *c, const char *name, int n, const char *const *texts, int *out);

#define OM_LIST_MAX 64
typedef struct om_ints {
    int n;
    bool given;
    int64_t v[OM_LIST_MAX];
} om_ints;
/* A list of integers from the known contents of input i or, in files before opset `until`, from the
 * attribute. Absent: given is false. Contents that are not known are a problem. */
om_status omi_operand(om_nctx *c, uint32_t i, const char *attr, int until, om_ints *out);

/* ---- fold ---------------------------------------------------------------------------------------
 */

bool omi_fold_known(const om_nctx *c);  /* every present input is known */
bool omi_fold_always(const om_nctx *c); /* sizes are enough             */

/* ---- select and run -----------------------------------------------------------------------------
 */

/* A step with args_size zeroed bytes of arguments. */
om_step *omi_step(om_nctx *c, om_step_fn run, size_t args_size);
/* Output 0 is input 0 from byte offset on: no work at run time. More outputs: set views[k]. */
om_step *omi_step_view(om_nctx *c, int64_t offset);
om_status omi_step_fail(const om_step *s, const om_exec *x, om_status st, const char *fmt, ...)
    OM_PRINTF(4, 5) OM_COLD;

/* A value as an operand of a step: v.data is filled in by omi_bind. */
typedef struct om_ref {
    uint32_t value;
    om_view v;
} om_ref;
om_ref omi_ref(const om_pval *v);                                    /* contiguous           */
om_ref omi_ref_as(const om_pval *v, int rank, const int64_t *shape); /* broadcast to a shape */

OM_INLINE om_view omi_bind(const om_exec *x, const om_ref *r) {
    om_view v = r->v;
    v.data    = x->ptr[r->value];
    return v;
}

OM_INLINE size_t omi_pval_bytes(const om_pval *v) {
    return (size_t)v->numel * om_dtype_size((om_dtype)v->dtype);
}
/* "float32" for types this library computes with, else ONNX's name. */
const char *omi_elem_name(int32_t dtype);

#endif
