/*
 * lower.h -- what a lowering rule sees: the call, its operands as graph values, and the means to
 * write nodes and to propagate extents.
 *
 * A rule writes the nodes of docs/operators.md for one call and binds each output of the call to a
 * value. Node outputs take type and example shape from the call's results; their extents come from
 * the rule. Helpers return NULL or false only with an error pending, and accept being called then
 * (they do nothing), so a rule needs one check at its end.
 *
 * Needs: tracer.h, ops/op.h.  Used by: lower_<family>.c.
 */
#ifndef OM_TRACE_LOWER_H
#define OM_TRACE_LOWER_H

#include "ops/op.h"
#include "trace/tracer.h"

typedef struct om_lowering {
    om_tracer *tr;
    const om_call *call;
    om_site site;
} om_lowering;

typedef struct om_lower_rule {
    /* in[i] is NULL where the call has none. Sets out[i] for every output of the call; an out[i]
     * left NULL says: a plain constant, it does not depend on any element of an input. */
    om_status (*emit)(om_lowering *lw, const om_call *call, om_tvalue *const *in, om_tvalue **out);
    const char *refusal; /* why there is no mapping */
    uint8_t alias;       /* no node: the output is input 0 */
    uint8_t shape_only;  /* bit i: of input i only the shape is read */
    uint8_t may_fold;    /* out[i] may stay NULL                     */
} om_lower_rule;

/* Extents under construction. */
typedef struct om_xshape {
    int rank;
    om_extent e[OM_MAX_RANK];
} om_xshape;

/* ---- writing (values.c) ------------------------------------------------------------------------
 */

#define OMI_INS(...)                                                                               \
    (uint32_t)(sizeof((om_tvalue *[]){__VA_ARGS__}) / sizeof(om_tvalue *)), (om_tvalue *[]) {      \
        __VA_ARGS__                                                                                \
    }
/* A node; trailing NULL inputs are dropped. */
om_tnode *omi_lw_node(om_lowering *lw, const char *type, uint32_t n_in, om_tvalue *const *in,
                      uint32_t n_out);
void omi_lw_int(om_lowering *lw, om_tnode *n, const char *name, int64_t v);
void omi_lw_float(om_lowering *lw, om_tnode *n, const char *name, float v);
void omi_lw_string(om_lowering *lw, om_tnode *n, const char *name, const char *literal);
void omi_lw_ints(om_lowering *lw, om_tnode *n, const char *name, int64_t count, const int64_t *v);
/* A one-element tensor attribute of a value converted to dtype. */
void omi_lw_tensor(om_lowering *lw, om_tnode *n, const char *name, om_dtype dtype, double v);
/* Output i of n; s NULL: rank 0. */
om_tvalue *omi_lw_out(om_lowering *lw, om_tnode *n, uint32_t i, om_dtype dtype, const om_xshape *s);
/* One node with one output and no attributes. */
om_tvalue *omi_lw_op(om_lowering *lw, const char *type, uint32_t n_in, om_tvalue *const *in,
                     om_dtype dtype, const om_xshape *s);
/* Rank-0 literal of dtype; int64 list of rank 1; float32 filled tensor. */
om_tvalue *omi_lw_scalar(om_lowering *lw, om_dtype dtype, double v);
om_tvalue *omi_lw_list(om_lowering *lw, int64_t n, const int64_t *v);
om_tvalue *omi_lw_filled(om_lowering *lw, om_dtype dtype, int rank, const int64_t *dims, double v);
/* The status that a rule returns. */
OM_INLINE om_status omi_lw_done(void) {
    return om_pending();
}

/* ---- extents (propagate.c) ----------------------------------------------------------------------
 */

om_xshape omi_lw_shape_of(const om_tvalue *v);
/* All static. */
om_xshape omi_lw_static(int rank, const int64_t *dims);
bool omi_lw_is_static(const om_tvalue *v);
/* Text of operand i of the call, for messages: OMI_T of the tensor. */
const char *omi_lw_text(const om_lowering *lw, uint32_t i, omi_text *buf);
#define OMI_LT(lw, i) omi_lw_text((lw), (i), &(omi_text){{0}})

/* Extents of axis ax of operand a and bx of operand b meet; broadcast: a static 1 stretches. Static
 * >= 2 against symbolic is SymbolicShape (TD-3). */
bool omi_lw_unify(om_lowering *lw, uint32_t a, const om_extent *ea, int ax, uint32_t b,
                  const om_extent *eb, int bx, bool broadcast, om_extent *out);
/* NumPy broadcasting of two operands of the call, or of an already joined shape with operand b. */
bool omi_lw_broadcast(om_lowering *lw, uint32_t a, const om_xshape *sa, uint32_t b,
                      const om_tvalue *vb, om_xshape *out);
/* The same extents on the same axes: nothing happens, at any size (TD-20). */
bool omi_lw_same_extents(const om_tvalue *x, const om_xshape *s);
/* The output is x itself. */
om_tvalue *omi_lw_alias(om_lowering *lw, om_tvalue *x);
/* Constant indices of operand i along a symbolic axis of operand 0: those that stand for its size
 * are refused, others noted (TD-21). */
bool omi_lw_check_indices(om_lowering *lw, uint32_t i, const om_tvalue *idx, const om_extent *e,
                          int axis);
/* Raises SymbolicShape unless the axis of operand i is static. what says why: "is split". */
bool omi_lw_need_static(om_lowering *lw, uint32_t i, const om_tvalue *v, int axis,
                        const char *what);

/* ---- Reshape and Expand (reshape.c)
 * -------------------------------------------------------------- */

/* Output extents of a reshape of x to target (no -1); minus_one: the axis the caller wrote as -1,
 * or -1. */
bool omi_lw_reshape_extents(om_lowering *lw, const om_tvalue *x, int rank, const int64_t *target,
                            int minus_one, om_xshape *out);
/* The Reshape node to those extents. */
om_tvalue *omi_lw_reshape(om_lowering *lw, om_tvalue *x, om_dtype dtype, const om_xshape *out);

/* ---- operands (operand.c)
 * ------------------------------------------------------------------------ */

/* Appends the size operand to a Reshape or Expand node whose other inputs are in place: a constant,
 * or extents that finish turns into Shape nodes. Reshape: sets *allowzero. hint may be NULL. */
bool omi_operand_reshape(om_lowering *lw, om_tnode *n, const om_xshape *s, int64_t *allowzero);
bool omi_operand_expand(om_lowering *lw, om_tnode *n, const om_xshape *s, om_tvalue *hint);

/* Every rule, by op id (the census). */
const om_lower_rule *omi_lower_rule(om_op op);

#endif
