/*
 * tensor.h -- tensors: creation, shape, access, scopes.
 *
 * Ownership: every om_tensor * a function returns belongs to the innermost open scope of the
 * calling thread (tag @scoped) and lives until that scope ends; nobody frees results. Arguments are
 * borrowed. Keep one with om_retain; hand one out of a scope with om_scope_return. A thread without
 * a scope files into its root scope, which om_scope_drain empties.
 *
 * A tensor is a strided view of a storage: rank 0 to 8, sizes int64, strides in elements. Element
 * types: float32, int64, int32, uint8, bool; float64 for creation, casts, movement, + - * / sqrt,
 * comparison, Sum, Mean, Max, Min and MatMul.
 *
 * Needs: base.h.
 */
#ifndef ONEMODEL_TENSOR_H
#define ONEMODEL_TENSOR_H

#include <onemodel/base.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct om_tensor om_tensor;

/* ---- scopes ------------------------------------------------------------------------------ */

/* A mark in the thread's stack of results. Ending an outer scope ends those left open inside it. */
typedef struct om_scope {
    uint32_t mark, serial;
} om_scope;

OM_API om_scope om_scope_begin(void);
/* Releases what was filed since begin. Returns the pending status and leaves it pending, so that
 * one check a step is enough. */
OM_API om_status om_scope_end(om_scope s);
/* Ends s and files t in the scope around it. t may be NULL or come from outside. Returns t. */
OM_API om_tensor *om_scope_return(om_scope s, om_tensor *t);
/* Empties the root scope of this thread (every scope of it). */
OM_API void om_scope_drain(void);
#ifndef __cplusplus
/* OM_SCOPE { ... }: a block with a scope of its own. `break` leaves it and ends it; `return` and
 * `goto` leave the scope to the one around it. */
#    define OM_SCOPE                                                                               \
        for (                                                                                      \
            struct {                                                                               \
                om_scope s;                                                                        \
                int on, in;                                                                        \
            } om_scope_                = {om_scope_begin(), 1, 0};                                 \
            om_scope_.on; om_scope_.on = 0, (void)om_scope_end(om_scope_.s))                       \
            for (om_scope_.in = 1; om_scope_.in; om_scope_.in = 0) /* what a break leaves */
#endif

/* Adds a reference that a scope does not own. Returns t. NULL is fine. */
OM_API om_tensor *om_retain(om_tensor *t);
OM_API void om_release(om_tensor *t); /* NULL is fine */
/* Moves t out of its scope: the caller has the reference and must om_release it. For bindings. */
OM_API om_tensor *om_take(om_tensor *t);
/* Releases t before its scope ends. */
OM_API void om_drop(om_tensor *t);
/* Number of tensors alive in the process. */
OM_API int64_t om_live_tensors(void);

/* ---- creation: @scoped, fail with OM_ERR_ARG, OM_ERR_SHAPE (negative size, rank over 8),
 * OM_ERR_NOMEM */

/* A copy of row-major elements. */
OM_API om_tensor *om_from(const void *data, om_dtype t, int rank, const int64_t *dims);
/* The caller's own elements without copy; free_fn(ctx, data) (may be NULL) when the last user is
 * gone. free_fn is not called when this fails. Bools must be 0 or 1 (OM_ERR_VALUE). */
OM_API om_tensor *om_from_buffer(void *data, om_dtype t, int rank, const int64_t *dims,
                                 void (*free_fn)(void *ctx, void *data), void *ctx);
/* The caller's own elements where they lie: data is the element with all indices 0, strides are in
 * elements, 0 or more (0 repeats one element along an axis); NULL: row-major. All bytes from the
 * first to the last element must be readable. With OM_OPTS(strided, .read_only = true) the memory
 * is never written: what would write to the tensor gives it a private copy first. A tensor whose
 * elements lie on each other can be read, but not written in place (OM_ERR_STATE).
 * Else as om_from_buffer. */
typedef struct om_strided_opts {
    uint32_t struct_size;
    bool read_only;
    void (*free_fn)(void *ctx, void *data); /* when the last user is gone; not when this fails */
    void *ctx;
} om_strided_opts;
OM_API om_tensor *om_from_strided(void *data, om_dtype t, int rank, const int64_t *dims,
                                  const int64_t *strides, const om_strided_opts *opts);
OM_API om_tensor *om_empty(om_dtype t, int rank, const int64_t *dims); /* zeroed */
OM_API om_tensor *om_zeros(om_dtype t, int rank, const int64_t *dims);
OM_API om_tensor *om_ones(om_dtype t, int rank, const int64_t *dims);
OM_API om_tensor *om_full(double value, om_dtype t, int rank, const int64_t *dims);
OM_API om_tensor *om_scalar_f32(float v); /* rank 0 */
OM_API om_tensor *om_scalar_i64(int64_t v);
OM_API om_tensor *om_eye(int64_t n, om_dtype t);
/* start, start + step, ... below (above, for a negative step) end; int64. */
OM_API om_tensor *om_arange(int64_t start, int64_t end, int64_t step);
OM_API om_tensor *om_linspace(float start, float end, int64_t n);

/* ---- random numbers: Philox4x32-10, the same values on every machine -------------------- */

typedef struct om_rng {
    uint64_t seed, stream, block; /* the whole state; copy it to save it */
} om_rng;
/* Streams: 0 initialisation, 1 shuffling, 2 dropout, 3 yours. NULL below is the thread's own
 * generator, stream 3, seed 0 until om_seed. */
OM_API om_rng om_rng_new(uint64_t seed, uint64_t stream);
/* Seeds the thread's generators of all streams. */
OM_API void om_seed(uint64_t seed);
OM_API om_rng *om_thread_rng(int stream); /* 0 to 3; this thread's, lives as long as the thread */
OM_API om_tensor *om_rand(om_rng *g, float lo, float hi, int rank, const int64_t *dims);
OM_API om_tensor *om_randn(om_rng *g, float mean, float std, int rank, const int64_t *dims);
OM_API om_tensor *om_randint(om_rng *g, int64_t lo, int64_t hi, int rank, const int64_t *dims);
OM_API om_tensor *om_permutation(om_rng *g, int64_t n); /* int64 */

/* ---- shape. Inert for NULL: rank 0, dim 1, numel 0 --------------------------------------- */

OM_API int om_rank(const om_tensor *t);
OM_API int64_t om_dim(const om_tensor *t, int axis);   /* negative counts from the end */
OM_API const int64_t *om_shape_of(const om_tensor *t); /* om_rank entries; NULL for NULL */
/* om_rank entries, in elements; an axis of size 1 has the stride that a row-major tensor would
 * have. NULL for NULL and for a blocked tensor. Valid while t lives. */
OM_API const int64_t *om_strides_of(const om_tensor *t);
OM_API int64_t om_numel(const om_tensor *t);
OM_API om_dtype om_dtype_of(const om_tensor *t);
OM_API bool om_is_contiguous(const om_tensor *t);
OM_API uint64_t om_id(const om_tensor *t); /* never reused; 0 for NULL */
/* The name messages and traces use: a copy, counted in om_memory and released with the tensor. NULL
 * takes it away. OM_ERR_NOMEM leaves the one before. */
OM_API void om_set_name(om_tensor *t, const char *name);
/* NULL when unnamed. Valid until the tensor ends or is named anew. */
OM_API const char *om_name(const om_tensor *t);

/* ---- access ------------------------------------------------------------------------------ */

/* First element of a contiguous tensor, for reading. NULL when t is NULL or strided (OM_ERR_STATE:
 * use om_contiguous), blocked (OM_ERR_LAYOUT), or traced (OM_ERR_TRACE DataDependent). Valid while
 * t lives and nobody writes to it. */
OM_API const void *om_data(const om_tensor *t);
/* The same for writing; counts as a write of the storage and gives it a private copy when its bytes
 * are shared. Valid until the next library call on this storage. */
OM_API void *om_data_mut(om_tensor *t);
/* A pin: while it lasts the bytes of t keep their address and can be read there, also when t has
 * ended; what the library writes into t appears there. For hosts that show tensors as arrays of
 * their own: element [i, j ...] is at om_pin_data plus i, j ... times om_strides_of. t need not be
 * contiguous. Bytes that are shared (with a graph or a file, or that are read-only) are first
 * copied for t alone, which counts as a write to threads that use t; else a pin costs nothing.
 *
 * With writable the holder may write too, at any time, without a word. So, while it lasts, nothing
 * packed from the bytes is kept, a trace that would take them as a constant is refused
 * (OM_ERR_TRACE InvalidUsage), and so is om_backward through an operator that saved them
 * (OM_ERR_STATE); values saved before count as changed. It ends with om_pin_free, from any thread,
 * not while t is in use. Fails: OM_ERR_ARG, OM_ERR_LAYOUT (blocked), OM_ERR_TRACE (traced),
 * OM_ERR_NOMEM. */
typedef struct om_pin om_pin;
OM_API om_pin *om_pin_new(om_tensor *t, bool writable);
OM_API void *om_pin_data(const om_pin *p); /* NULL for NULL */
OM_API void om_pin_free(om_pin *p);        /* NULL is fine */
/* The one element of a tensor of one element. NaN, 0 for NULL or failure. */
OM_API float om_item_f32(const om_tensor *t);
OM_API double om_item_f64(const om_tensor *t);  /* any type, converted */
OM_API int64_t om_item_i64(const om_tensor *t); /* integer types and bool */
/* Copies all elements, row-major, to dst of om_numel elements. */
OM_API om_status om_copy_out(const om_tensor *t, void *dst, size_t bytes);
/* t[index...] as double, and the write. index has om_rank entries, negative counts from the end.
 * int64 beyond 2^53 is OM_ERR_VALUE in both, as in om_full and om_fill_: a double does not hold
 * every integer there. */
OM_API double om_get(const om_tensor *t, const int64_t *index);
OM_API om_status om_set(om_tensor *t, const int64_t *index, double v);
/* In place, only on tensors that do not need gradients (OM_ERR_STATE). */
OM_API om_status om_fill_(om_tensor *t, double v);
OM_API om_status om_copy_(om_tensor *t, om_tensor *from); /* broadcasts, same type */
OM_API om_status om_add_(om_tensor *t, om_tensor *other);
OM_API om_status om_mul_scalar_(om_tensor *t, float s);

/* ---- comparison and text ----------------------------------------------------------------- */

/* |a - b| <= atol + rtol * |b| everywhere, NaN equal to NaN; false for other shapes or types, or
 * when an error is pending. */
OM_API bool om_allclose(const om_tensor *a, const om_tensor *b, double rtol, double atol);
/* The same bits, every NaN counted as the same. */
OM_API bool om_bit_equal(const om_tensor *a, const om_tensor *b);
/* SHA-256 of dtype, rank, dims and elements (NaNs canonical, little-endian). hex is 65 bytes. */
OM_API om_status om_hash(const om_tensor *t, char *hex);
/* Text like "float32 [2,3]\n[[1, 2, 3],\n [4, 5, 6]]", long axes abbreviated. Free with
 * om_bytes_free(text, strlen(text) + 1). */
OM_API char *om_text_of(const om_tensor *t);

/* ---- .npy files (NumPy format 1.0 to 3.0, little-endian, C or Fortran order) -------------- */

/* Fails: OM_ERR_IO, OM_ERR_MALFORMED, OM_ERR_DTYPE, OM_ERR_LIMIT.      @scoped */
OM_API om_tensor *om_npy_load(const char *path);
OM_API om_tensor *om_npy_load_memory(const void *data, size_t bytes);
OM_API om_status om_npy_save(const om_tensor *t, const char *path); /* atomic */
/* Free with om_bytes_free(data, bytes). */
OM_API om_status om_npy_save_memory(const om_tensor *t, void **data, size_t *bytes);

/* ---- blocked layout ---------------------------------------------------------------------- */

/* [N,C,H,W] float32 to the layout NCHW16c and back. A blocked tensor is accepted by
 * om_from_nchw16c, shape queries, retain and release only; everything else is OM_ERR_LAYOUT. */
OM_API om_tensor *om_to_nchw16c(om_tensor *t);
OM_API om_tensor *om_from_nchw16c(om_tensor *t);

#ifdef __cplusplus
}
#endif
#endif
