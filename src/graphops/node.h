/*
 * node.h (internal) -- what the graph plane knows of one form of an ONNX node type, and what it is
 * told of one node.
 *
 * opset.def has one row a form (CD-35): domain, type, the versions that have it, its operands with
 * their types, its attributes with their defaults, and its functions. A node is looked up and
 * parsed once: form.c checks it against the row, then `parse` reads its attributes into a form that
 * the program holds. `infer` and `select` read the form, the types and sizes of the inputs and the
 * contents of those that decide sizes, nothing else: c->node is NULL there. Versions that only
 * moved an attribute to an input share one form, in which a field (om_either) holds either.
 *
 * They report what is wrong with omi_problem, never by the pending error, because the session lists
 * every problem of a graph at once; only memory failures are raised.
 *
 * A step is immutable and shared by all runs of a plan. It refers to values by number; a run brings
 * a table of pointers, one per value. So nothing is allocated or patched while running.
 *
 * Needs: graph, compute.  Used by: graphops, passes, runtime.
 */
#ifndef OM_GRAPHOPS_NODE_H
#define OM_GRAPHOPS_NODE_H

#include "compute/move.h"
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
struct om_run_step;
struct om_fused;

/* What a run hands to a step. */
typedef struct om_exec {
    void *const *ptr; /* one per value                   */
    void *ws;         /* the step's workspace            */
    int workers;
    const om_graph *graph; /* for messages                  */
} om_exec;

typedef om_status (*om_step_fn)(const struct om_run_step *s, const om_exec *x);

typedef struct om_run_step {
    om_step_fn run; /* NULL: nothing to do at run time, the outputs are parts of input 0  */
    void *args;     /* in the plan's arena                                                 */
    uint32_t node;  /* index in the graph, for messages                                    */
    uint32_t n_in, n_out;
    uint32_t *in, *out; /* value numbers, OM_NO_VALUE where absent                        */
    size_t ws_bytes, ws_offset;
    int64_t *views;   /* run NULL: output k is input 0 from byte views[k] on               */
    uint8_t in_place; /* bit k: output 0 may have the bytes of input k                */
} om_run_step;

/* One node while it is checked, inferred or selected. */
typedef struct om_nctx {
    const om_graph *graph;
    const om_gnode *node; /* while it is parsed, else NULL           */
    uint32_t index;       /* of the node in the graph, for messages  */
    const struct om_node_def *def;
    const void *form; /* what parse made, NULL when it has none  */
    int64_t opset;    /* while it is parsed                      */
    uint32_t n_in, n_out;
    om_pval **in, **out; /* NULL: absent                            */
    size_t held, limit;  /* select: what the session holds, and may (0: no limit)       */
    bool creating;       /* the session is being made: wrong sizes are the file's fault */
    bool fast;           /* the program's arithmetic */
    struct om_fused
        *fused;      /* select: what follows the node (fuse.h); its operands are inputs from 3 on */
    om_arena *arena; /* for parse the program's, for select the plan's              */
    int workers;
    om_status status; /* first problem */
    char message[320];
} om_nctx;

/* ---- one row of opset.def -----------------------------------------------------------------------
 */

enum { OM_OPERAND_ONE = 1, OM_OPERAND_OPTIONAL, OM_OPERAND_MANY, OM_OPERAND_ANY };
/* An input or output of a form. Lists end with kind 0; MANY stands last and repeats at least once,
 * ANY stands last and may be missing. */
typedef struct om_operand {
    uint8_t kind;
    /* A letter: all operands of it have one type, and types are those with kernels here. 0: types
     * are those that ONNX allows. */
    char var;
    bool sizes;     /* its contents decide sizes, so they must be known when a plan is made */
    uint32_t types; /* bits 1 << om_dtype. Of an output without a letter: its type, 0: parse says */
} om_operand;

/* An attribute of a form. Lists end with a NULL name. */
typedef struct om_schema {
    const char *name;
    om_attr_type type;
    bool required, flag; /* flag: an integer that is 0 or 1 */
    int64_t i;           /* defaults */
    float f;
    const char *s;
} om_schema;

/* Reads and checks the attributes; sets c->form, and the types of outputs that the row leaves open.
 * Sizes are unknown: a rank may be (>= 0) known, contents only of constants. */
typedef om_status (*om_parse_fn)(om_nctx *c);
typedef om_status (*om_infer_fn)(om_nctx *c);     /* sizes of the outputs */
typedef bool (*om_fold_fn)(const om_nctx *c);     /* may be evaluated now */
typedef om_run_step *(*om_select_fn)(om_nctx *c); /* NULL: a problem, or raised */

typedef struct om_node_def {
    const char *domain, *type;
    int32_t since, until; /* opsets whose form this is; until 0: up to the newest */
    const om_operand *in, *out;
    const om_schema *attrs; /* NULL: none */
    om_parse_fn parse;
    om_infer_fn infer;
    om_fold_fn fold;     /* NULL: never */
    om_select_fn select; /* NULL: only Fast has a kernel */
    int32_t arg;         /* tells rows apart that share functions */
} om_node_def;

/* Opset of a graph that declares none, and the newest whose forms are known. */
#define OM_OPSET_DEFAULT 20
#define OM_OPSET_MAX     28

/* The form of this type at this opset, found by hash. NULL: there is none; *oldest is then the
 * first opset that has one, 0 when the type is not known at all. */
const om_node_def *omi_node_def(const char *type, const char *domain, int64_t opset,
                                int32_t *oldest);
/* The step of def in this arithmetic: Fast replaces those of fast.def. NULL: there is none. */
om_select_fn omi_node_select(const om_node_def *def, bool fast);
/* A further row and its Fast step (may be NULL), for tests only; NULL removes it. */
void omi_node_def_for_test(const om_node_def *def, om_select_fn fast);
/* Every row, for tests. */
const om_node_def *omi_node_rows(size_t *n);
/* Do the contents of input k decide sizes? */
bool omi_node_sizes(const om_node_def *def, uint32_t k);

/* Are the sizes of its outputs met only while it runs? Such a node has no step: the runtime does
 * what def->arg says, and what follows it is planned when it is reached (CD-37). */
bool omi_node_met(const om_node_def *def);
enum { OM_MET_IF = 1, OM_MET_LOOP, OM_MET_SCAN, OM_MET_NONZERO };

/* Checks a node against its row (operands, types, attributes), sets the types of its outputs, and
 * parses it. */
om_status omi_node_parse(om_nctx *c);

/* ---- checking and inference: each reports its problem and returns its status -------------------
 */

om_status omi_problem(om_nctx *c, om_status s, const char *fmt, ...) OM_PRINTF(3, 4) OM_COLD;
/* Type sets of base/dtype.h, by the names of opset.def. They list kernels, so a new row of
 * dtype.def is in none of them but ALL. */
enum {
    OM_TY_F32    = OM_SET_F32,
    OM_TY_F64    = OM_SET_F64,
    OM_TY_I64    = OM_SET_I64,
    OM_TY_I32    = OM_SET_I32,
    OM_TY_U8     = OM_SET_U8,
    OM_TY_BOOL   = OM_SET_BOOL,
    OM_TY_INT    = OM_TY_I64 | OM_TY_I32,
    OM_TY_FLT    = OM_TY_F32 | OM_TY_F64,
    OM_TY_SIGNED = OM_TY_FLT | OM_TY_INT,
    OM_TY_RANGE  = OM_TY_F32 | OM_TY_INT,
    OM_TY_NUM    = OM_TY_FLT | OM_TY_INT | OM_TY_U8,
    OM_TY_ALL    = OM_SET_COMPUTED
};
/* Sets the type of output k (may be absent). */
om_status omi_out_type(om_nctx *c, uint32_t k, int32_t dtype);
/* Elements of a value of this type; false when a size is negative or the value, with empty axes
 * counted as 1, is larger than OM_VALUE_LIMIT. So no product of some of its sizes can overflow. */
bool omi_numel_of(int32_t dtype, int rank, const int64_t *shape, int64_t *numel);
/* Sets the sizes of output k; checks rank, sign, product and OM_VALUE_LIMIT. */
om_status omi_out_shape(om_nctx *c, uint32_t k, int rank, const int64_t *shape);
om_status omi_out_like(om_nctx *c, uint32_t k, const om_pval *v);
/* Numpy broadcasting of n values to shape. */
om_status omi_broadcast(om_nctx *c, uint32_t n, om_pval *const *v, int *rank, int64_t *shape);
/* Output 0 has the sizes that all inputs broadcast to. */
om_status omi_out_broadcast(om_nctx *c);
om_status omi_norm_axis(om_nctx *c, int64_t axis, int rank, int *out);

/* Is axis possible for a value of this rank? A rank that is not known yet (-1) can be any up to
 * OM_MAX_RANK. */
om_status omi_axis_possible(om_nctx *c, int64_t axis, const om_pval *v);
/* Input i, NULL when absent. */
OM_INLINE om_pval *omi_in(const om_nctx *c, uint32_t i) {
    return i < c->n_in ? c->in[i] : NULL;
}

/* ---- parse: attributes by name, after form.c has compared them with the row ---------------------
 */

/* NULL when the node does not have it. */
const om_attr *omi_given(const om_nctx *c, const char *name);
/* Value or default; 0 when this version has no such attribute. */
int64_t omi_int(const om_nctx *c, const char *name);
bool omi_flag(const om_nctx *c, const char *name);
float omi_float(const om_nctx *c, const char *name);
/* One of the n texts, as its index. */
om_status omi_choice(om_nctx *c, const char *name, int n, const char *const *texts, int *out);
/* For rows without attributes that matter. */
om_status omi_parse_none(om_nctx *c);
/* Makes c->form: size zeroed bytes. NULL and raised. */
void *omi_form(om_nctx *c, size_t size);

/* Integers that one version of a node has as an attribute and another as an input. */
typedef struct om_either {
    bool given;
    uint32_t input; /* OM_NO_VALUE: n and v hold an attribute */
    int n;
    const int64_t *v;
} om_either;
om_status omi_either(om_nctx *c, const char *attr, uint32_t input, om_either *out);

#define OM_LIST_MAX 64
typedef struct om_ints {
    int n;
    bool given;
    int64_t v[OM_LIST_MAX];
} om_ints;
/* The list: known contents of the input, or the attribute. Contents that are not known are a
 * problem. */
om_status omi_either_ints(om_nctx *c, const om_either *e, om_ints *out);
/* The same while parsing: *known is false where the list is not known yet, or not given. */
om_status omi_either_early(om_nctx *c, const om_either *e, om_ints *out, bool *known);
/* Known contents of input i, which is there, as a list. */
om_status omi_input_ints(om_nctx *c, uint32_t i, om_ints *out);

/* ---- fold ---------------------------------------------------------------------------------------
 */

bool omi_fold_known(const om_nctx *c);  /* every present input is known */
bool omi_fold_always(const om_nctx *c); /* sizes are enough             */

/* ---- select and run -----------------------------------------------------------------------------
 */

/* A step with args_size zeroed bytes of arguments. */
om_run_step *omi_step(om_nctx *c, om_step_fn run, size_t args_size);
/* Counts bytes that a step keeps beyond its plan, before they are made: packed weights. False and a
 * problem where they are more than the session's limit allows. */
bool omi_hold(om_nctx *c, size_t bytes);
/* Output 0 is input 0 from byte offset on: no work at run time. More outputs: set views[k]. */
om_run_step *omi_step_view(om_nctx *c, int64_t offset);
om_status omi_step_fail(const om_run_step *s, const om_exec *x, om_status st, const char *fmt, ...)
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
