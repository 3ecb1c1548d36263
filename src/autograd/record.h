/*
 * record.h -- what an operator leaves behind (CD-5 to CD-9), and the one exit of every operator.
 *
 * omi_record is always called, last. It gives the call to the tracer when an input is traced, else
 * keeps a record when an input needs a gradient, else does nothing. `raw` is what the caller wrote
 * (-1 in a reshape, an open slice end): lowering reads it; `res` is what the kernel used: backward
 * reads it. Both are structs declared in ops/ops.def. What a record saves and where it leads are
 * two lists.
 *
 * Needs: tensor.  Used by: autograd, ops, trace.
 */
#ifndef OM_AUTOGRAD_RECORD_H
#define OM_AUTOGRAD_RECORD_H

#include "tensor/seam.h"

typedef int32_t om_op; /* OM_OP_RELU ...: autograd does not know the list, see ops/op.h */

/* Saved values: a bit per input, and a bit per output, that backward reads. */
#define OM_SAVE_IN(i)  (1u << (i))
#define OM_SAVE_OUT(i) (1u << (16 + (i)))
#define OM_SAVE_ALL_IN 0x8000u /* every input, for operators with many */

/* A list of integers inside raw or res; copied behind the record. */
typedef struct om_list {
    int64_t n;
    const int64_t *v;
} om_list;

/* Gradients of the inputs. dy[i] is NULL for an unused output (= zeros). dx[i] starts NULL; set it
 * (scoped) where omi_needs(r, i), or leave NULL for no contribution. */
typedef om_status (*om_backward_fn)(const om_record *r, om_tensor *const *dy, om_tensor **dx);

/* Where the gradient of an input goes (CD-31): to the record that made it, or to a leaf's slot. No
 * values: what backward reads is saved beside, and released right after. */
typedef struct om_edge {
    om_record *record;  /* strong; NULL: a leaf, or nothing is wanted  */
    om_grad_slot *leaf; /* strong; NULL: no marked leaf                */
    uint32_t out_index; /* of record                                   */
    bool there;         /* false: the input was absent                 */
    uint8_t dtype, rank;
    int64_t shape[OM_MAX_RANK];
} om_edge;
typedef struct om_out {
    uint64_t id;
    uint8_t dtype, rank;
    int64_t shape[OM_MAX_RANK];
} om_out;
typedef struct om_saved {
    om_tensor *t; /* detached alias of an input or output, strong; NULL: not saved */
    uint64_t version;
} om_saved;

struct om_record {
    _Atomic uint32_t refs;
    int32_t op;
    uint8_t used; /* backward ran and freed what was saved */
    uint32_t n_out, n_in, save_mask;
    size_t bytes; /* of the allocation */
    om_backward_fn backward;
    om_site site;
    om_edge *in;
    om_out *out;
    om_saved *saved_in, *saved_out; /* n_in and n_out entries */
    const void *raw, *res;
    void *extra; /* state of custom operators, freed by extra_free */
    void (*extra_free)(void *extra);
};

/* The arguments of omi_record, as the tracer sees them. */
typedef struct om_call {
    om_op op;
    const char *name; /* "om_relu": the operator, for messages */
    const void *raw, *res;
    uint32_t n_in, n_out, save_mask;
    om_tensor *const *in;
    om_tensor **out;
    om_backward_fn backward;
    void *extra;
    void (*extra_free)(void *extra);
} om_call;

/* The exit. On success out[] is as given or (while tracing an alias) replaced. On failure
 * everything is left to the scope. Returns OM_OK or the pending status. */
om_status omi_record(const om_call *call);
/* For one output: y, or NULL when raised. */
om_tensor *omi_record1(om_op op, const void *raw, const void *res, uint32_t n_in,
                       om_tensor *const *in, om_tensor *y, om_backward_fn backward,
                       uint32_t save_mask);

/* For backward functions. */
bool omi_needs(const om_record *r, uint32_t i); /* input i wants a gradient            */
/* Versions are checked by the engine already. NULL and raised, in every build, for what was not
 * saved. */
om_tensor *omi_saved_in(const om_record *r, uint32_t i);
om_tensor *omi_saved_out(const om_record *r, uint32_t i);
bool omi_in_there(const om_record *r, uint32_t i); /* input i was given */
const int64_t *omi_in_shape(const om_record *r, uint32_t i, int *rank);
/* For an elementwise backward: dy itself, to be written over, when nobody else can see its bytes;
 * else a new tensor like it. NULL and raised. */
om_tensor *omi_grad_like(om_tensor *dy);
om_tensor *omi_new_like_in(const om_record *r, uint32_t i); /* of the type and shape of input i */
void omi_record_release(om_record *r);                      /* iterative */

/* Registered by ops: size of raw and res and their lists for an op, so records can deep-copy them.
 */
typedef struct om_op_layout {
    const char *name;
    size_t raw_bytes, res_bytes;
    uint16_t raw_lists[4], res_lists[4]; /* offsets of om_list members + 1; 0 ends */
} om_op_layout;
const om_op_layout *omi_op_layout(om_op op); /* defined by ops/op.c */

/* Grad mode without the seam (CD-12): optimizers, initialisers, backward. */
bool omi_no_grad(void); /* turns recording off, returns the mode before */
void omi_grad_restore(bool was);
#define omi_grad_off (omi_state()->grad_off)

#endif
