/*
 * op.h -- what every operator file uses: the ids and attribute structs of ops.def, and the checks
 * that begin an operator.
 *
 * An operator is: OMI_ENTER, checks, result tensor, one call into compute/, and omi_record as its
 * last act; its backward stands beside it. Same-shape reshape, contiguous of contiguous, full
 * slice, expand to the same shape and dropout in eval return the same handle by omi_file (CD-2),
 * without a record.
 *
 * Needs: autograd, compute.  Used by: ops, trace.
 */
#ifndef OM_OPS_OP_H
#define OM_OPS_OP_H

#include <string.h>

#include "autograd/record.h"
#include "base/alloc.h"
#include "base/dtype.h"
#include "onemodel/autograd.h"
#include "onemodel/ops.h"

enum om_op_id {
#define OM_OP(name, ID, in_min, in_max, out_min, out_max, raw, res) OM_OP_##ID,
#include "ops/ops.def"
#undef OM_OP
    OM_OP_COUNT
};

#define OM_I(x) int64_t x;
#define OM_F(x) float x;
#define OM_D(x) double x;
#define OM_L(x) om_list x;
#define OM_NONE uint8_t none_;
#define OM_OP(name, ID, in_min, in_max, out_min, out_max, raw, res)                                \
    typedef struct om_##name##_raw {                                                               \
        raw                                                                                        \
    } om_##name##_raw;                                                                             \
    typedef struct om_##name##_res {                                                               \
        res                                                                                        \
    } om_##name##_res;
#include "ops/ops.def"
#undef OM_OP
#undef OM_I
#undef OM_F
#undef OM_D
#undef OM_L
#undef OM_NONE

/* Views of an attribute struct for dumps and comparison: calls visit once per field. */
typedef enum om_field_kind {
    OM_FIELD_INT,
    OM_FIELD_FLOAT,
    OM_FIELD_DOUBLE,
    OM_FIELD_LIST
} om_field_kind;
typedef void (*om_field_fn)(void *ctx, const char *name, om_field_kind kind, int64_t count,
                            const void *values);
void omi_visit_raw(om_op op, const void *raw, om_field_fn visit, void *ctx);
const char *omi_op_name(om_op op); /* "relu" */
typedef struct om_op_arity {
    int in_min, in_max, out_min, out_max; /* 255: any */
} om_op_arity;
om_op_arity omi_op_arity(om_op op);

/* ---- checks: raise and return false (NULL) ----------------------------------------------------
 */

/* Every tensor argument: no pending error, not NULL, strided layout, on its own thread. */
bool omi_args1(om_tensor *x);
bool omi_args2(om_tensor *a, om_tensor *b);
bool omi_arg(om_tensor *t, const char *what); /* one argument, under the name it has in ops.h */
bool omi_need_dtype(om_tensor *x, uint32_t dtypes); /* bits by OMI_TYPE_* */
enum { /* sets of base/dtype.h, by the names that operators use */
       OMI_TYPE_F32   = OM_SET_F32,
       OMI_TYPE_F64   = OM_SET_F64,
       OMI_TYPE_I64   = OM_SET_I64,
       OMI_TYPE_I32   = OM_SET_I32,
       OMI_TYPE_U8    = OM_SET_U8,
       OMI_TYPE_BOOL  = OM_SET_BOOL,
       OMI_TYPE_FLOAT = OM_SET_FLOAT,
       OMI_TYPE_INT   = OM_SET_INTEGER,
       OMI_TYPE_NUM   = OM_SET_NUMBER,
       OMI_TYPE_ALL   = OM_SET_COMPUTED,
       OMI_TYPE_INDEX = OM_SET_I64 | OM_SET_I32
};
bool omi_same_dtype(om_tensor *a, om_tensor *b);
/* Broadcast shape of a and b; raises OM_ERR_SHAPE naming both. */
bool omi_broadcast_shape(om_tensor *a, om_tensor *b, int *rank, int64_t *shape);
/* Widens a shape by a third operand; raises OM_ERR_SHAPE. */
bool omi_broadcast_more(om_tensor *t, int *rank, int64_t *shape);
/* U(g): sums g over the axes that broadcasting added or stretched, back to the given shape. g
 * itself when nothing to sum. Scoped; no record. */
om_tensor *omi_unbroadcast(om_tensor *g, int rank, const int64_t *shape);
/* The same, to the shape of input i. */
om_tensor *omi_unbroadcast_to(om_tensor *g, const om_record *r, uint32_t i);

/* A contiguous tensor of n elements as one axis: what element-wise kernels are fastest on. */
OM_INLINE om_view omi_flat(const om_tensor *t, int64_t n) {
    om_view v;
    v.data       = omi_ptr(t);
    v.dtype      = (om_dtype)t->dtype;
    v.rank       = 1;
    v.shape[0]   = n;
    v.strides[0] = 1;
    return v;
}
/* One element read as if it filled rank axes of the given sizes. */
OM_INLINE om_view omi_scalar_view(const void *element, om_dtype t, const om_view *like) {
    om_view v = {.data = (void *)(uintptr_t)element, .dtype = t, .rank = like->rank};
    for (int i = 0; i < like->rank; i++)
        v.shape[i] = like->shape[i];
    return v;
}
/* A number as one element of type t, in *out (8 bytes). Integer types take whole numbers in range
 * only: raises OM_ERR_ARG. */
bool omi_scalar_bytes(double s, om_dtype t, void *out);

/* Some gradient may flow to t: decides what a record has to save. NULL is fine. */
OM_INLINE bool omi_wants(const om_tensor *t) {
    return t && (t->record || (t->flags & OM_T_GRAD));
}
/* Releases a packed copy early, so that it does not live as long as the caller's scope. */
OM_INLINE void omi_drop_packed(om_tensor *packed, const om_tensor *of) {
    if (packed && packed != of) om_drop(packed);
}

/* Workspace of one kernel call: on the stack when small. get raises when memory is out; put
 * always. */
typedef struct omi_work {
    void *data;
    size_t bytes;
    _Alignas(OM_ALIGN) char small[1024];
} omi_work;
bool omi_work_get(omi_work *w, size_t bytes);
void omi_work_put(omi_work *w);
/* Plans and runs a product with this thread's workers. False and raised: no memory, or too large.
 */
struct om_matmul_args;
bool omi_run_product(const struct om_matmul_args *m);

/* ---- views that operators and backward functions share; none of them records ------------------
 */

/* Zeroed, contiguous, new storage. */
om_tensor *omi_new_zero(om_dtype t, int rank, const int64_t *shape);
/* t with another shape of as many elements: a view when the strides allow, else a packed copy. */
om_tensor *omi_reshaped(om_tensor *t, int rank, const int64_t *shape);
/* Part of an axis: count elements from start, step apart. */
OM_INLINE om_view omi_narrow(om_view v, int axis, int64_t start, int64_t count, int64_t step) {
    if (count > 0)
        v.data = (char *)v.data + start * v.strides[axis] * (int64_t)om_dtype_size(v.dtype);
    v.shape[axis] = count;
    v.strides[axis] *= step;
    return v;
}
om_tensor *omi_narrowed(om_tensor *t, int axis, int64_t start, int64_t count, int64_t step);
/* x with an axis replaced by the elements that idx names (ONNX Gather), after the checks of idx. */
om_tensor *omi_gathered(om_tensor *x, om_tensor *idx, int axis);

#endif
