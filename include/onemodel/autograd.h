/*
 * autograd.h -- gradients.
 *
 * An operator whose input needs a gradient records itself; om_backward walks the records from the
 * root, inputs left to right (so the bits do not depend on a compiler's order of argument
 * evaluation), and adds into the leaves' gradients. Double backward is refused.
 *
 * Needs: tensor.h.
 */
#ifndef ONEMODEL_AUTOGRAD_H
#define ONEMODEL_AUTOGRAD_H

#include <onemodel/tensor.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Marks a leaf (a float tensor no operator made). Fails: OM_ERR_STATE, OM_ERR_DTYPE. */
OM_API om_status om_set_requires_grad(om_tensor *t, bool on);
OM_API bool om_requires_grad(const om_tensor *t);

/* Gradients of a one-element root with respect to every leaf, added to om_grad_of. Records free
 * what they saved. Fails: OM_ERR_STATE (root needs no gradient, graph already used, a saved tensor
 * was changed: names who saved and who wrote), OM_ERR_SHAPE (root has several elements: use
 * om_backward_with), OM_ERR_TRACE, OM_ERR_NOMEM, OM_ERR_CANCELLED. */
OM_API om_status om_backward(om_tensor *root);
typedef struct om_backward_opts {
    uint32_t struct_size;
    om_tensor *grad;   /* gradient of the root, its shape; NULL: one, for a one-element root */
    bool retain_graph; /* allow a second backward                                            */
} om_backward_opts;
OM_API om_status om_backward_with(om_tensor *root, const om_backward_opts *opts);
/* Gradients of root with respect to n tensors, without touching any leaf's gradient. Each is a
 * marked leaf or the result of a recorded operator, else OM_ERR_STATE. out[i] is NULL where root
 * does not depend on inputs[i].      @scoped */
OM_API om_status om_grad(om_tensor *root, int n, om_tensor *const *inputs, om_tensor **out,
                         const om_backward_opts *opts);
/* The accumulated gradient of a leaf, NULL when none. Borrowed: valid until the next backward or
 * om_clear_grad. */
OM_API om_tensor *om_grad_of(const om_tensor *leaf);
OM_API void om_clear_grad(om_tensor *leaf);
/* Makes a copy of grad, which has the type and shape of leaf, its gradient, as if a backward had
 * left it; NULL clears. For gradients that come from elsewhere. Fails, changing nothing:
 * OM_ERR_STATE (leaf is not marked; grad needs a gradient itself: om_detach it), OM_ERR_DTYPE,
 * OM_ERR_SHAPE, OM_ERR_TRACE, OM_ERR_NOMEM, OM_ERR_CANCELLED. */
OM_API om_status om_set_grad(om_tensor *leaf, om_tensor *grad);

/* A step over several shards: micro-batches, or parts that other processes compute. Their gradients
 * are joined by a fixed binary tree over the shard numbers (docs/arithmetic.md R11.4), so the bits
 * do not depend on the order in which the shards come. Shards in order hold at most log2(shards) +
 * 1 partial gradients at a time.
 *
 *     om_accumulate_begin(4);
 *     for (int s = 0; s < 4; s++) om_accumulate_backward(loss_of(s), s);
 *     om_accumulate_end();              // now the leaves have their gradients
 *
 * Each shard once, in any order; losses are weighted by the caller (for a mean over N samples the
 * loss of a shard of n is multiplied by n / N). Until the end the leaves' gradients are undefined
 * and om_backward is refused; the end adds to the gradients that were there at the beginning. One
 * at a time per thread, 1 to 2^20 shards. A backward that fails may be repeated, unless memory ran
 * out while shards were joined; then, and when the end fails, all is dropped and the leaves are as
 * before. Fails: OM_ERR_STATE (none or one already open, a shard twice, one missing at the end),
 * OM_ERR_ARG, and as om_backward. */
OM_API om_status om_accumulate_begin(int64_t shards);
OM_API om_status om_accumulate_backward(om_tensor *loss, int64_t shard);
OM_API om_status om_accumulate_end(void);

/* Gradient mode of this thread. om_no_grad_begin returns the mode before; give it to
 * om_no_grad_end. While a trace records it is OM_ERR_TRACE NoGradInTrace. */
OM_API bool om_grad_enabled(void);
OM_API bool om_no_grad_begin(void);
OM_API void om_no_grad_end(bool before);

/* ---- custom operators -------------------------------------------------------------------- */

/* forward computes out from in (both borrowed; out holds n_out tensors it must set, @scoped).
 * backward gets the gradients of the outputs (NULL = zero) and sets dx[i] (@scoped, or NULL) for
 * each input. Return non-zero to fail with that code in the message. */
typedef struct om_custom_op {
    uint32_t struct_size;
    const char *name; /* interned */
    int (*forward)(void *ctx, int n_in, om_tensor *const *in, int n_out, om_tensor **out);
    int (*backward)(void *ctx, int n_in, om_tensor *const *in, int n_out, om_tensor *const *out,
                    om_tensor *const *dy, om_tensor **dx); /* NULL: not differentiable */
    /* The same computation with library operators, used instead of forward while a trace records;
     * NULL: tracing is refused by name. */
    int (*lowering)(void *ctx, int n_in, om_tensor *const *in, int n_out, om_tensor **out);
    void *ctx;
} om_custom_op;
OM_API om_status om_custom(const om_custom_op *op, int n_in, om_tensor *const *in, int n_out,
                           om_tensor **out);

/* ---- finding the first NaN ----------------------------------------------------------------- */

/* While on, on this thread, an operator that makes a NaN or an infinity out of finite inputs,
 * forward or backward, fails with OM_ERR_VALUE: the error names operator, module and element.
 * Values that are infinite by request (om_full_like, om_causal_mask, om_pad) pass. It reads every
 * element, so it is for looking, not for training. Returns the setting before. */
OM_API bool om_nan_check(bool on);

#ifdef __cplusplus
}
#endif
#endif
