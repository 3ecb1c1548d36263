/*
 * tensor.h (internal) -- the layout of storages and tensors (CD-1), and how operators make and read
 * them.
 *
 * Three objects because three owners exist: bytes (om_buffer, shared with graphs and mappings), a
 * storage (identity and version: what a write changes), a tensor (a strided view: what a value is).
 * Ids come from process-wide counters and are never reused (TD-7).
 *
 * Needs: base.  Used by: autograd, ops, nn, optim, runtime, trace.
 */
#ifndef OM_TENSOR_TENSOR_H
#define OM_TENSOR_TENSOR_H

#include <stdatomic.h>

#include "base/buffer.h"
#include "base/dtype.h"
#include "compute/view.h"
#include "onemodel/tensor.h"

typedef struct om_record om_record; /* autograd/record.h */

/* The gradient of a leaf; a slot of its own, so that most tensors pay a pointer. */
typedef struct om_grad_slot {
    _Atomic uint32_t refs; /* the leaf's, and one of each record that leads to it */
    om_tensor *grad;       /* strong, NULL when cleared                           */
} om_grad_slot;

typedef struct om_storage {
    _Atomic uint32_t refs;
    _Atomic uint32_t taint; /* 0, or the serial of a trace that keeps marks of it (seam.h) */
    uint64_t id;
    _Atomic uint64_t version; /* +1 per mutable access                                           */
    const char *writer;       /* function that wrote last, for messages                          */
    om_buffer *buf;
} om_storage;

enum { OM_T_GRAD = 1 };                                   /* om_tensor.flags: a leaf that learns */
enum { OM_STRIDED = 0, OM_NCHW16C = 1, OM_FREED = 0xfd }; /* om_tensor.layout */

struct om_tensor {
    _Atomic uint32_t refs;
    uint8_t dtype, rank, layout, flags;
    uint32_t trace_serial;  /* 0, or the serial of the trace it belongs to (CD-10) */
    uint32_t out_index;     /* which output of record                              */
    _Atomic uint32_t filed; /* scope.c: where in the stack of results, from 1; 0: nowhere */
    uint64_t id;
    om_record *record; /* who made it, strong; NULL                           */
    om_storage *storage;
    int64_t offset, shape[OM_MAX_RANK], strides[OM_MAX_RANK]; /* in elements     */
    om_grad_slot *grad; /* leaf gradient, NULL until needed                    */
    const char *name;   /* counted text of omi_name_new, shared by aliases; NULL */
    const char *origin; /* operator that made it, a literal, for messages      */
};

/* ---- making. All return a tensor filed in the current scope, or NULL and raised. ------------- */

/* Uninitialised, contiguous, new storage. */
om_tensor *omi_new(om_dtype t, int rank, const int64_t *shape);
om_tensor *omi_new_like(const om_tensor *x); /* same type and shape */
/* A view of t's storage. Does not record. */
om_tensor *omi_view_of(const om_tensor *t, int rank, const int64_t *shape, const int64_t *strides,
                       int64_t offset);
/* The same storage under a new identity: no record, no trace, no gradient. Not filed: +1. */
om_tensor *omi_detached(const om_tensor *t);
/* A tensor over a buffer (retained). Contiguous. */
om_tensor *omi_from_buffer(om_buffer *b, int64_t byte_offset, om_dtype t, int rank,
                           const int64_t *shape);
/* Files t (retaining it) in the current scope: how aliases return their own argument (CD-2). */
om_tensor *omi_file(om_tensor *t);
/* Files t without a further reference: the scope takes the caller's. */
om_tensor *omi_file_owned(om_tensor *t);

/* ---- reading, without the trace seam: kernels and operators only ------------------------------
 */

OM_INLINE void *omi_ptr(const om_tensor *t) {
    return (char *)t->storage->buf->data + t->offset * (int64_t)om_dtype_size((om_dtype)t->dtype);
}
OM_INLINE int64_t omi_numel(const om_tensor *t) {
    int64_t n = 1;
    for (int i = 0; i < t->rank; i++)
        n *= t->shape[i];
    return n;
}
OM_INLINE om_view omi_view(const om_tensor *t) {
    om_view v = {.data = omi_ptr(t), .dtype = (om_dtype)t->dtype, .rank = t->rank};
    for (int i = 0; i < t->rank; i++) {
        v.shape[i]   = t->shape[i];
        v.strides[i] = t->strides[i];
    }
    return v;
}
bool omi_contiguous(const om_tensor *t);
/* t itself, or a contiguous copy filed in the scope; records nothing. NULL and raised. */
om_tensor *omi_pack(om_tensor *t);
/* Row-major strides, with the canonical stride on size-1 axes. */
void omi_strides(int rank, const int64_t *shape, int64_t *strides);
bool omi_same_shape(const om_tensor *a, const om_tensor *b);
/* Checks a size list: rank 0..8, sizes >= 0, product fits. Raises OM_ERR_SHAPE. */
om_status omi_check_dims(int rank, const int64_t *dims, int64_t *numel);
/* Normalises a negative axis; raises OM_ERR_ARG. n is the number of axes counted. */
om_status omi_axis(int axis, int n, int *out);

/* ---- writing ------------------------------------------------------------------------------------
 */

/* Bytes for writing, without the seam: private copy if shared, version + 1, writer noted. NULL and
 * raised when memory is out. */
void *omi_ptr_mut(om_tensor *t, const char *writer);
/* What omi_ptr_mut does besides: the storage's bytes are its own, with the same contents; and the
 * storage counts as written. False: raised. */
bool omi_storage_own(om_storage *s);
void omi_storage_wrote(om_storage *s, const char *writer);

/* "float32 [2,3] 'net.w' (made by om_mean)" into a caller's buffer, for messages. */
typedef struct omi_text {
    char s[160];
} omi_text;
const char *omi_tensor_text(const om_tensor *t, omi_text *buf);
#define OMI_T(t) omi_tensor_text((t), &(omi_text){{0}})

/* Doubles hold every integer up to here. */
#define OMI_EXACT_INT ((int64_t)1 << 53)
/* v as a number for elements of type t: refused where a double is not exact (int64 beyond 2^53). */
om_status omi_check_number(double v, om_dtype t);

/* Raises when t was freed and waits under OM_DEBUG_POISON. NULL is alive. */
void omi_say_freed(const om_tensor *t) OM_COLD;
OM_INLINE bool omi_alive(const om_tensor *t) {
    if (OM_LIKELY(!t || t->layout != OM_FREED)) return true;
    omi_say_freed(t);
    return false;
}
/* First line of every operator on each tensor argument: NULL or blocked is an error. */
om_status omi_check_arg(const om_tensor *t, const char *what);

/* A counted copy of a name, with one reference; NULL and raised. */
const char *omi_name_new(const char *text);
const char *omi_name_retain(const char *name); /* NULL is fine in both */
void omi_name_release(const char *name);

uint64_t omi_next_id(void);
void omi_storage_release(om_storage *s);
/* The slot of a leaf, made at first need; NULL and raised. Its reference stays with the leaf. */
om_grad_slot *omi_grad_slot_of(om_tensor *t);
/* Random fill: tells the tracer (TD-9). */
void omi_random_filled(om_tensor *t);

#endif
