/*
 * ops.h -- the operators. Each returns new tensors (@scoped) or NULL on failure.
 *
 * Common rules. Arguments may be strided views; results are contiguous unless the operator is a
 * view (said so). Two-operand operators broadcast as NumPy does and take equal element types: there
 * is no silent promotion, use om_cast. Axes may be negative. Failures: OM_ERR_SHAPE, OM_ERR_DTYPE,
 * OM_ERR_ARG (axis, option), OM_ERR_LAYOUT (blocked tensor), OM_ERR_NOMEM, OM_ERR_TRACE while a
 * trace records; what else is said at the operator. Results have the same bits on every machine and
 * with any number of threads: docs/arithmetic.md. Gradients and ONNX forms: docs/operators.md.
 *
 * Needs: tensor.h.
 */
#ifndef ONEMODEL_OPS_H
#define ONEMODEL_OPS_H

#include <onemodel/tensor.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- creation from a shape: symbolic sizes survive a trace -------------------------------- */
OM_API om_tensor *om_full_like(om_tensor *x, double value, om_dtype t); /* OM_DTYPE_NONE: x's */
OM_API om_tensor *om_zeros_like(om_tensor *x);
OM_API om_tensor *om_ones_like(om_tensor *x);
/* int64 0 .. size-1 of an axis of x. */
OM_API om_tensor *om_arange_like(om_tensor *x, int axis);
/* [Lq, Lk] float32: 0 on and below the diagonal, -inf above; Lq, Lk are the second last axes. */
OM_API om_tensor *om_causal_mask(om_tensor *q, om_tensor *k);

/* ---- elementwise, one operand: float32 (float64: neg abs sqrt; integers: neg abs relu) ----- */
OM_API om_tensor *om_neg(om_tensor *x);
OM_API om_tensor *om_abs(om_tensor *x);
OM_API om_tensor *om_exp(om_tensor *x);
OM_API om_tensor *om_log(om_tensor *x);
OM_API om_tensor *om_sqrt(om_tensor *x);
OM_API om_tensor *om_tanh(om_tensor *x);
OM_API om_tensor *om_sigmoid(om_tensor *x);
OM_API om_tensor *om_erf(om_tensor *x);
OM_API om_tensor *om_relu(om_tensor *x);
OM_API om_tensor *om_gelu(om_tensor *x);      /* x * Phi(x), Hendrycks and Gimpel 2016 */
OM_API om_tensor *om_gelu_tanh(om_tensor *x); /* its tanh approximation               */
OM_API om_tensor *om_silu(om_tensor *x);      /* x * sigmoid(x)                       */
OM_API om_tensor *om_reciprocal(om_tensor *x);
OM_API om_tensor *om_sin(om_tensor *x); /* radians */
OM_API om_tensor *om_cos(om_tensor *x);
/* min(max(x, lo), hi). A NaN bound is absent. */
OM_API om_tensor *om_clamp(om_tensor *x, double lo, double hi);
OM_API om_tensor *om_add_scalar(om_tensor *x, double s);
OM_API om_tensor *om_sub_scalar(om_tensor *x, double s);
OM_API om_tensor *om_rsub_scalar(om_tensor *x, double s); /* s - x */
OM_API om_tensor *om_mul_scalar(om_tensor *x, double s);
OM_API om_tensor *om_scale(om_tensor *x, double s); /* = om_mul_scalar */
OM_API om_tensor *om_div_scalar(om_tensor *x, double s);
OM_API om_tensor *om_rdiv_scalar(om_tensor *x, double s); /* s / x */
/* Float to integer truncates and saturates, NaN gives 0; to bool: not equal 0. */
OM_API om_tensor *om_cast(om_tensor *x, om_dtype t);
OM_API om_tensor *om_not(om_tensor *x); /* bool */

/* ---- elementwise, two and three operands ------------------------------------------------- */
OM_API om_tensor *om_add(om_tensor *a, om_tensor *b);
OM_API om_tensor *om_sub(om_tensor *a, om_tensor *b);
OM_API om_tensor *om_mul(om_tensor *a, om_tensor *b);
OM_API om_tensor *om_div(om_tensor *a, om_tensor *b); /* integers truncate; zero: OM_ERR_VALUE */
OM_API om_tensor *om_maximum(om_tensor *a, om_tensor *b); /* NaN wins */
OM_API om_tensor *om_minimum(om_tensor *a, om_tensor *b);
OM_API om_tensor *om_equal(om_tensor *a, om_tensor *b); /* bool, as the next five */
OM_API om_tensor *om_not_equal(om_tensor *a, om_tensor *b);
OM_API om_tensor *om_less(om_tensor *a, om_tensor *b);
OM_API om_tensor *om_less_equal(om_tensor *a, om_tensor *b);
OM_API om_tensor *om_greater(om_tensor *a, om_tensor *b);
OM_API om_tensor *om_greater_equal(om_tensor *a, om_tensor *b);
OM_API om_tensor *om_and(om_tensor *a, om_tensor *b); /* bool */
OM_API om_tensor *om_or(om_tensor *a, om_tensor *b);
OM_API om_tensor *om_xor(om_tensor *a, om_tensor *b);
OM_API om_tensor *om_where(om_tensor *c, om_tensor *a, om_tensor *b); /* c bool: c ? a : b */

/* ---- matrix products --------------------------------------------------------------------- */
/* NumPy's matmul: 1-D operands are a row or a column, leading axes broadcast. */
OM_API om_tensor *om_matmul(om_tensor *a, om_tensor *b);
/* x [.., in], w [out, in], b [out] or NULL: x w^T + b, [.., out]. */
OM_API om_tensor *om_linear(om_tensor *x, om_tensor *w, om_tensor *b);

/* ---- reductions: axes (n, list), n = 0: all. keepdims keeps reduced axes as size 1 --------- */
OM_API om_tensor *om_sum(om_tensor *x, int n, const int64_t *axes, bool keepdims); /* bool: int64 */
OM_API om_tensor *om_mean(om_tensor *x, int n, const int64_t *axes, bool keepdims);
OM_API om_tensor *om_max(om_tensor *x, int n, const int64_t *axes, bool keepdims);
OM_API om_tensor *om_min(om_tensor *x, int n, const int64_t *axes, bool keepdims);
OM_API om_tensor *om_sum_all(om_tensor *x); /* rank 0 */
OM_API om_tensor *om_mean_all(om_tensor *x);
/* int64; first of equals; NaN counts as the greatest. */
OM_API om_tensor *om_argmax(om_tensor *x, int axis, bool keepdims);
OM_API om_tensor *om_argmin(om_tensor *x, int axis, bool keepdims);
OM_API om_tensor *om_softmax(om_tensor *x, int axis); /* rows of -inf only give NaN */
OM_API om_tensor *om_log_softmax(om_tensor *x, int axis);

/* ---- normalisation ------------------------------------------------------------------------ */
/* Over the last n_axes axes (Ba, Kiros, Hinton 2016); w, b have their shape or are NULL. */
OM_API om_tensor *om_layer_norm(om_tensor *x, int n_axes, om_tensor *w, om_tensor *b, float eps);
/* x [N,C,..]; w, b [C] or NULL; running mean and var [C] (Ioffe and Szegedy 2015). training: batch
 * statistics are used, and the running ones updated as (1-momentum)*old + momentum*new in place. */
typedef struct om_batch_norm_opts {
    uint32_t struct_size;
    bool training;
    float eps;      /* 0: 1e-5 */
    float momentum; /* 0: 0.1  */
} om_batch_norm_opts;
OM_API om_tensor *om_batch_norm2d(om_tensor *x, om_tensor *w, om_tensor *b, om_tensor *mean,
                                  om_tensor *var, const om_batch_norm_opts *opts);

/* ---- shape: views share the storage of their input ---------------------------------------- */
/* One size may be -1. A view when the strides allow, else a copy. */
OM_API om_tensor *om_reshape(om_tensor *x, int rank, const int64_t *dims);
OM_API om_tensor *om_flatten(om_tensor *x, int from_axis); /* joins axes from_axis .. last */
OM_API om_tensor *om_permute(om_tensor *x, int rank, const int64_t *perm); /* view */
OM_API om_tensor *om_transpose(om_tensor *x, int axis_a, int axis_b);      /* view */
/* Drops axes of size 1; n = 0: every axis of size 1. */
OM_API om_tensor *om_squeeze(om_tensor *x, int n, const int64_t *axes);   /* view */
OM_API om_tensor *om_unsqueeze(om_tensor *x, int n, const int64_t *axes); /* view */
/* x[start:end:step] along one axis, NumPy's rules; OM_END is the open end. A view for step > 0. */
#define OM_END INT64_MAX
OM_API om_tensor *om_slice(om_tensor *x, int axis, int64_t start, int64_t end, int64_t step);
OM_API om_tensor *om_select(om_tensor *x, int axis, int64_t index); /* view */
/* idx int64 or int32; out of range: OM_ERR_VALUE. */
OM_API om_tensor *om_index_select(om_tensor *x, int axis, om_tensor *idx);
OM_API om_tensor *om_concat(int n, om_tensor *const *xs, int axis);
OM_API om_tensor *om_stack(int n, om_tensor *const *xs, int axis);
/* Pieces of the given sizes, which sum to the axis; out has n slots. Views. */
OM_API om_status om_split(om_tensor *x, int axis, int n, const int64_t *sizes, om_tensor **out);
/* Sizes -1 keep; a view. */
OM_API om_tensor *om_expand(om_tensor *x, int rank, const int64_t *dims);
OM_API om_tensor *om_expand_as(om_tensor *x, om_tensor *like);
/* Adds before[i] and after[i] (>= 0) cells of value on each of rank axes. */
OM_API om_tensor *om_pad(om_tensor *x, int rank, const int64_t *before, const int64_t *after,
                         double value);
/* The k largest (or smallest) along axis, sorted; ties to the lower index, NaN greatest. */
OM_API om_status om_top_k(om_tensor *x, int64_t k, int axis, bool smallest, om_tensor **values,
                          om_tensor **indices);
OM_API om_tensor *om_contiguous(om_tensor *x); /* x itself when it is */
OM_API om_tensor *om_clone(om_tensor *x);      /* new storage          */
OM_API om_tensor *om_detach(om_tensor *x);     /* same storage, no gradient */

/* ---- convolution and pooling, [N,C,H,W] ---------------------------------------------------- */
typedef struct om_conv2d_opts {
    uint32_t struct_size;
    int64_t stride[2], dilation[2]; /* 0: 1 */
    int64_t padding[2];             /* both sides of height, width */
    int64_t padding_end[2]; /* added at the bottom and right beyond padding, for even kernels */
    int64_t groups;         /* 0: 1 */
    bool no_bias;           /* modules only */
} om_conv2d_opts;
/* w [O, C/groups, kh, kw], b [O] or NULL. Padding cells are +0 and take part. */
OM_API om_tensor *om_conv2d(om_tensor *x, om_tensor *w, om_tensor *b, const om_conv2d_opts *opts);
typedef struct om_pool2d_opts {
    uint32_t struct_size;
    int64_t stride[2];   /* 0: the kernel */
    int64_t padding[2];  /* at most half of the kernel */
    int64_t dilation[2]; /* max only; 0: 1 */
    bool ceil_mode;
    bool exclude_pad; /* average: divide by the cells that exist */
} om_pool2d_opts;
OM_API om_tensor *om_max_pool2d(om_tensor *x, int64_t kh, int64_t kw, const om_pool2d_opts *opts);
OM_API om_tensor *om_avg_pool2d(om_tensor *x, int64_t kh, int64_t kw, const om_pool2d_opts *opts);
/* Average over oh x ow cells; sizes need not divide. */
OM_API om_tensor *om_adaptive_avg_pool2d(om_tensor *x, int64_t oh, int64_t ow);

/* ---- embedding, losses, dropout ------------------------------------------------------------ */
/* w [rows, dim], idx int64 or int32. Indices from -rows to rows - 1, negative ones from the end as
 * NumPy counts them (so -1 is the last row, no padding); others: OM_ERR_VALUE. padding_idx: the row
 * that gets no gradient, however it is named; < 0: none. */
OM_API om_tensor *om_embedding(om_tensor *w, om_tensor *idx, int64_t padding_idx);
OM_API om_tensor *om_mse_loss(om_tensor *a, om_tensor *target); /* mean of squares */
typedef struct om_nll_opts {
    uint32_t struct_size;
    om_tensor *weight;    /* [C] or NULL                                     */
    int64_t ignore_index; /* target with this value is skipped; 0: -100      */
    bool ignore_zero;     /* ignore_index 0 is meant literally               */
    bool sum;             /* sum instead of (weighted) mean                  */
} om_nll_opts;
/* logp [N, C] or [N, C, ..], target int64 [N, ..]. */
OM_API om_tensor *om_nll_loss(om_tensor *logp, om_tensor *target, const om_nll_opts *opts);
OM_API om_tensor *om_cross_entropy(om_tensor *logits, om_tensor *target);
OM_API om_tensor *om_cross_entropy_with(om_tensor *logits, om_tensor *target,
                                        const om_nll_opts *opts);
/* training false: x itself. Draws from g (NULL: the thread's generator of stream 2). */
OM_API om_tensor *om_dropout(om_tensor *x, float p, bool training, om_rng *g);

#ifdef __cplusplus
}
#endif
#endif
