/*
 * nn.h -- modules: layers, trees of layers, their parameters by name.
 *
 * A module is a node of a tree. It owns its children and holds parameters (learned) and buffers
 * (saved, not learned). The state-dict path of a tensor is the names from the module asked down to
 * it, joined by dots: "enc.3.attn.weight". Names, shapes and order are PyTorch's, so its weights
 * load as they are.
 *
 *     om_module *net = om_nn_module();    // names and owns; has no forward of its own
 *     om_module *fc1 = om_nn_add(net, "fc1", om_nn_linear(784, 128, NULL));
 *     om_module *fc2 = om_nn_add(net, "fc2", om_nn_linear(128, 10, NULL));
 *     ...
 *     om_tensor *y = om_forward(fc2, om_relu(om_forward(fc1, x)));
 *     ...
 *     om_nn_free(net);                    // frees the children too
 *
 * Lifetime: a constructor gives the caller a module to free with om_nn_free or to hand to
 * om_nn_add, which takes it in every case: when the tree cannot take it, it is freed. A root is
 * freed by its owner. Register children in statements of their own, never inside one braced
 * initialiser: C does not fix the order there, and with it the order of random initialisation and
 * of the state dict.
 *
 * Constructors draw initial values from stream 0 of the thread's generator (om_seed), with
 * PyTorch's default distributions. Threads: one thread uses a module at a time.
 *
 * Errors: constructors return NULL on OM_ERR_ARG (a size below 1), OM_ERR_SHAPE, OM_ERR_NOMEM.
 * While a module runs, every error names it: "enc.3.attn: om_matmul".
 *
 * Needs: ops.h, autograd.h.
 */
#ifndef ONEMODEL_NN_H
#define ONEMODEL_NN_H

#include <onemodel/autograd.h>
#include <onemodel/ops.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct om_module om_module;

/* ---- the tree ---------------------------------------------------------------------------- */

/* A module without a forward function: a name space for a network whose forward is a C function. */
OM_API om_module *om_nn_module(void);
/* A module with one: om_forward(m, x) calls forward(ctx, m, x) and hands on what it returns. x is
 * borrowed; the result is @scoped; NULL only after a failure. free_fn(ctx) (may be NULL) runs when
 * the module is freed, and when this call fails. */
typedef om_tensor *(*om_forward_fn)(void *ctx, om_module *m, om_tensor *x);
OM_API om_module *om_nn_custom(om_forward_fn forward, void *ctx, void (*free_fn)(void *ctx));
/* Frees m, its children, and its references to tensors. NULL is fine. A module that has a parent is
 * freed with it: OM_ERR_STATE. */
OM_API void om_nn_free(om_module *m);

/* Files child under parent and returns child (borrowed, lives as long as the root). Takes child
 * even on failure, then frees it: NULL parent or child, a name that is empty, used, or holds a dot
 * or control character (OM_ERR_ARG). A child that has a parent, or is an ancestor of parent, stays
 * where it is (OM_ERR_STATE). */
OM_API om_module *om_nn_add(om_module *parent, const char *name, om_module *child);
/* Registers t and returns it. The module keeps a reference, the caller need not. A parameter must
 * be a float32 leaf (OM_ERR_DTYPE, OM_ERR_STATE) and from here on needs gradients; a buffer is of
 * any type. One tensor may be registered at several places: weights are then tied. */
OM_API om_tensor *om_nn_parameter(om_module *m, const char *name, om_tensor *t);
OM_API om_tensor *om_nn_buffer(om_module *m, const char *name, om_tensor *t);

/* Runs m on x: a scope of its own around it, so that only the result stays.      @scoped
 * Fails: OM_ERR_ARG (NULL, or a module without a forward), and as the operators inside. */
OM_API om_tensor *om_forward(om_module *m, om_tensor *x);
/* For networks that are plain C functions: between enter and leave, errors and traces name m. Calls
 * nest; leave in the order of entry, also after a failure. */
OM_API om_status om_nn_enter(om_module *m);
OM_API void om_nn_leave(om_module *m);

/* Training mode, the default, or evaluation: batch norm and dropout behave accordingly. For m and
 * all below. */
OM_API om_status om_nn_train(om_module *m, bool training);
OM_API bool om_nn_training(const om_module *m); /* false for NULL */

/* ---- names ------------------------------------------------------------------------------- */

/* Tensor at a path below m ("enc.0.weight"), borrowed. OM_ERR_ARG names the part that does not
 * exist. */
OM_API om_tensor *om_nn_get(om_module *m, const char *path);
/* Module at a path below m ("enc.0"); "" is m itself. */
OM_API om_module *om_nn_child(om_module *m, const char *path);
/* Path of m from its root; "" for a root. Owned by the library, never freed. NULL for NULL. */
OM_API const char *om_nn_path(om_module *m);
/* Calls visit for every tensor below m, in the order of the state dict: a module's own parameters,
 * its buffers, then its children, each in order of registration. path is relative to m and valid
 * during the call. Tied tensors come once per path. Non-zero stops the walk with OM_ERR_CANCELLED
 * (or with the error that visit raised). The tree must not change meanwhile. */
typedef int (*om_nn_visit_fn)(void *ctx, const char *path, om_tensor *t, bool is_buffer);
OM_API om_status om_nn_visit(om_module *m, om_nn_visit_fn visit, void *ctx);
/* Elements of all parameters, tied ones once. */
OM_API int64_t om_nn_n_parameters(om_module *m);

/* Stops (or resumes) learning of the parameters whose path is prefix or begins with prefix and a
 * dot;
 * "": all. Frozen ones need no gradient and optimizers skip them. OM_ERR_ARG when nothing matches.
 */
OM_API om_status om_nn_freeze(om_module *m, const char *prefix, bool frozen);

/* ---- state dict: files and lists --------------------------------------------------------- */

typedef struct om_named_tensor {
    const char *name;
    om_tensor *tensor;
} om_named_tensor;
/* One thing that does not fit. Valid during the call that gets it. */
typedef enum om_state_diff_kind {
    OM_STATE_MISSING    = 1, /* the module has it, the list does not */
    OM_STATE_UNEXPECTED = 2, /* the list has it, the module does not */
    OM_STATE_MISSHAPEN  = 3  /* type or shape differ                 */
} om_state_diff_kind;
typedef struct om_state_diff {
    om_state_diff_kind kind;
    const char *name;
    const om_tensor *have;  /* the module's; NULL when unexpected */
    const om_tensor *given; /* the list's; NULL when missing      */
} om_state_diff;
typedef struct om_state_opts {
    uint32_t struct_size;
    /* Take what fits and leave the rest. false: any difference is OM_ERR_ARG and nothing is
     * changed. */
    bool partial;
    /* Gets one line per difference: "missing fc1.bias float32 [128]", "unexpected head.weight
     * float32 [10,128]", "misshapen fc1.weight float32 [128,784], given float32 [784,128]". NULL:
     * no report. A non-zero return stops (OM_ERR_CANCELLED). */
    om_write_fn report;
    void *ctx; /* of both functions */
    /* Gets every difference as a value, in the order of the report: what a binding makes its list
     * of. NULL: nobody. A non-zero return stops (OM_ERR_CANCELLED, or what it raised). */
    int (*each)(void *ctx, const om_state_diff *d);
} om_state_opts;
/* Copies the elements of list into the tensors of m with those names. The error counts the
 * differences and names the first of each kind. */
OM_API om_status om_nn_load_list(om_module *m, int n, const om_named_tensor *list,
                                 const om_state_opts *opts);
/* Weights and buffers of m as a file (docs/format.md, a checkpoint without training state),
 * atomically: it appears whole or not at all. Fails: OM_ERR_IO, OM_ERR_NOMEM. */
OM_API om_status om_nn_save(om_module *m, const char *path);
/* Fails as om_nn_load_list, and OM_ERR_IO, OM_ERR_MALFORMED. Reads checkpoints too. */
OM_API om_status om_nn_load(om_module *m, const char *path, const om_state_opts *opts);

/* ---- layers: parameters in brackets are in state-dict order -------------------------------- */

typedef struct om_linear_opts {
    uint32_t struct_size;
    bool no_bias;
} om_linear_opts;
/* x [.., in] to [.., out]. {weight [out,in], bias [out]}; uniform within 1/sqrt(in). */
OM_API om_module *om_nn_linear(int64_t in, int64_t out, const om_linear_opts *opts);

/* x [N,in,H,W] to [N,out,H',W'] with opts of om_conv2d (ops.h). {weight [out,in/groups,kh,kw],
 * bias [out]}; uniform within 1/sqrt(in/groups*kh*kw). */
OM_API om_module *om_nn_conv2d(int64_t in, int64_t out, int64_t kh, int64_t kw,
                               const om_conv2d_opts *opts);

typedef struct om_norm_opts {
    uint32_t struct_size;
    float eps;      /* 0: 1e-5                                 */
    float momentum; /* batch norm only; 0: 0.1                 */
    bool no_affine; /* neither weight nor bias                 */
    bool no_bias;   /* layer norm only: weight alone           */
} om_norm_opts;
/* x [N,channels,H,W]. {weight, bias, running_mean, running_var [channels], num_batches_tracked
 * int64 []}. In training mode it normalises by the batch and moves the running statistics; else
 * uses them. */
OM_API om_module *om_nn_batch_norm2d(int64_t channels, const om_norm_opts *opts);
/* Over the last rank axes, which have these sizes: om_nn_layer_norm(OM_DIMS(64), NULL).
 * {weight, bias [dims]}. */
OM_API om_module *om_nn_layer_norm(int rank, const int64_t *dims, const om_norm_opts *opts);

typedef struct om_embedding_opts {
    uint32_t struct_size;
    bool has_padding;
    int64_t padding_idx; /* row that starts as zeros and never learns; used when has_padding */
} om_embedding_opts;
/* Indices of any shape (int64 or int32) to [.., dim]. {weight [rows,dim]}; standard normal. */
OM_API om_module *om_nn_embedding(int64_t rows, int64_t dim, const om_embedding_opts *opts);

/* Zeroes each element with probability p (0 <= p <= 1) in training mode, from stream 2 of the
 * thread's generator. */
OM_API om_module *om_nn_dropout(float p);

/* Without parameters: the operators of ops.h as modules, for om_nn_sequential. */
OM_API om_module *om_nn_identity(void);
OM_API om_module *om_nn_relu(void);
OM_API om_module *om_nn_gelu(void);
OM_API om_module *om_nn_gelu_tanh(void);
OM_API om_module *om_nn_silu(void);
OM_API om_module *om_nn_tanh(void);
OM_API om_module *om_nn_sigmoid(void);
OM_API om_module *om_nn_softmax(int axis);
OM_API om_module *om_nn_log_softmax(int axis);
OM_API om_module *om_nn_flatten(int from_axis);
OM_API om_module *om_nn_max_pool2d(int64_t kh, int64_t kw, const om_pool2d_opts *opts);
OM_API om_module *om_nn_avg_pool2d(int64_t kh, int64_t kw, const om_pool2d_opts *opts);
OM_API om_module *om_nn_adaptive_avg_pool2d(int64_t oh, int64_t ow);

/* Runs its children one after the other. om_nn_append files them as "0", "1", ...; it takes the
 * child as om_nn_add does, and returns it. om_nn_add with names of your own works too. */
OM_API om_module *om_nn_sequential(void);
OM_API om_module *om_nn_append(om_module *sequential, om_module *child);

#ifdef __cplusplus
}
#endif
#endif
