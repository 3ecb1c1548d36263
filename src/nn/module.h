/*
 * module.h (internal) -- the node of the module tree, and the list of its tensors by path.
 *
 * A module knows its parent, so its path from the root can be named in errors (CD-15); the path is
 * interned when first needed and forgotten in a whole subtree when that is filed under a parent.
 * Layers find their own tensors by position: a constructor registers them first, in PyTorch's
 * order.
 *
 * Needs: ops, autograd, base.  Used by: nn, optim.
 */
#ifndef OM_NN_MODULE_H
#define OM_NN_MODULE_H

#include "base/arena.h"
#include "base/map.h"
#include "base/str.h"
#include "base/vec.h"
#include "onemodel/nn.h"
#include "tensor/tensor.h"

/* A tree deeper than the stack of running modules could not run. */
#define OM_MODULE_DEPTH 64

typedef struct om_slot {
    const char *name; /* interned */
    om_tensor *t;     /* strong   */
} om_slot;

typedef struct om_layer_config om_layer_config; /* layers.c */

struct om_module {
    om_module *parent;
    const char *name; /* interned; NULL for a root         */
    const char *path; /* interned; NULL until it is needed */
    const char *kind; /* "linear", a literal, for messages */
    om_forward_fn forward;
    void *ctx;
    void (*free_fn)(void *ctx);
    bool training;
    bool freed; /* waits under OM_DEBUG_POISON */
    OM_VEC(om_slot) params;
    OM_VEC(om_slot) buffers;
    OM_VEC(om_module *) children;
    om_strmap names; /* name -> place in one of the three; empty while they are few */
};

/* om_nn_custom without its frame: free_fn(ctx) runs on failure too. */
om_module *omi_module_new(const char *kind, om_forward_fn forward, void *ctx,
                          void (*free_fn)(void *ctx));
/* Frees m without asking whether it has a parent. */
void omi_module_free(om_module *m);
/* Path of m from its root, computed if need be. NULL and raised. */
const char *omi_module_path_of(om_module *m);

/* Every tensor below a module, in state-dict order. Paths live in the arena. */
typedef struct om_state_entry {
    const char *path;
    om_tensor *t; /* borrowed from the module */
    bool is_buffer;
    bool tied; /* t came before under another path */
} om_state_entry;
typedef struct om_state_list {
    om_arena arena;
    OM_VEC(om_state_entry) v;
} om_state_list;
om_status omi_state_list(om_module *m, om_state_list *out); /* frees itself on failure */
void omi_state_list_free(om_state_list *l);

/* path is prefix, or begins with prefix and a dot; "" matches all. */
bool omi_path_matches(const char *path, const char *prefix);

/* Copies given tensors over those of the list. given[i] NULL: absent. extra_missing is what a
 * reader knows besides. Strictness, report and messages of om_nn_load_list. */
om_status omi_state_assign(const om_state_list *have, int64_t n, const om_named_tensor *given,
                           const om_state_opts *opts);

#endif
