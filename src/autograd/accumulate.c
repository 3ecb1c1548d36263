/*
 * accumulate.c -- one step over S shards: their gradients joined by a fixed tree (CD-43, AR-11.4).
 *
 * A node of the tree stands for the shards of a range; the leaves are single shards, and a node on
 * level l with number i covers i * 2^l .. (i + 1) * 2^l - 1, as far as there are shards. Two
 * brothers join as left + right as soon as both are there, so shards in order leave at most log2 S
 * + 1 nodes, and the order in which they come changes no bit.
 */
#include <string.h>

#include "autograd/engine.h"
#include "base/map.h"
#include "base/thread.h"
#include "tensor/scope.h"

enum { MOST_SHARDS = 1 << 20 };

typedef struct node {
    int level;
    int64_t number;
    omi_leaf_grads grads;
} node;

typedef struct omi_accumulation {
    int64_t shards;
    OM_VEC(node) nodes;
    OM_VEC(uint8_t) seen; /* per shard */
    int64_t n_seen;
} omi_accumulation;

static void drop_accumulation(void) {
    om_state *s         = omi_state();
    omi_accumulation *a = s->accumulation;
    if (!a) return;
    s->accumulation = NULL;
    for (size_t i = 0; i < a->nodes.n; i++)
        omi_leaf_grads_free(&a->nodes.v[i].grads);
    OMI_VEC_FREE(&a->nodes);
    OMI_VEC_FREE(&a->seen);
    omi_free(a, sizeof *a);
}

om_status om_accumulate_begin(int64_t shards) {
    OMI_ENTER("om_accumulate_begin");
    om_state *s = omi_state();
    if (omi_failed()) return om_pending();
    if (shards < 1 || shards > MOST_SHARDS)
        return omi_fail(OM_ERR_ARG, "%lld shards; 1 to %d are taken", (long long)shards,
                        MOST_SHARDS);
    if (s->accumulation)
        return omi_fail(OM_ERR_STATE, "an accumulation is open already; om_accumulate_end it");
    if (!omi_state_at_exit(drop_accumulation)) return omi_fail_nomem(sizeof *s);
    if (!(s->accumulation = omi_calloc(sizeof *s->accumulation))) return om_pending();
    s->accumulation->shards = shards;
    for (int64_t i = 0; i < shards; i++)
        if (!OMI_PUSH(&s->accumulation->seen, 0)) return drop_accumulation(), om_pending();
    return OM_OK;
}

/* left += right, leaf by leaf; right is emptied. A leaf that one side lacks is the other's. */
static om_status join(omi_leaf_grads *left, omi_leaf_grads *right) {
    om_map at    = {0}; // slot -> its place in left, from 1
    om_status st = OM_OK;
    for (size_t i = 0; i < left->n && st == OM_OK; i++)
        if (!omi_map_set(&at, (uint64_t)(uintptr_t)left->v[i].slot, (void *)(uintptr_t)(i + 1)))
            st = om_pending();
    for (size_t i = 0; i < right->n && st == OM_OK; i++) {
        omi_leaf_grad *r = &right->v[i];
        uintptr_t place  = (uintptr_t)omi_map_get(&at, (uint64_t)(uintptr_t)r->slot);
        if (!place) {
            st = OMI_PUSH(left, *r) ? OM_OK : om_pending();
            if (st == OM_OK) *r = (omi_leaf_grad){NULL, NULL}; // moved
        } else if (r->grad)
            st = omi_add_term(&left->v[place - 1].grad, r->grad);
    }
    omi_map_free(&at);
    omi_leaf_grads_free(right);
    return st;
}

/* Brothers join until the newest has none. A last node without a brother rises alone. */
static om_status settle(omi_accumulation *a) {
    for (;;) {
        node *n     = &a->nodes.v[a->nodes.n - 1];
        int64_t all = (a->shards - 1) >> n->level; // the last number of this level
        if (all == 0) return OM_OK;                // the root
        if (n->number == all && n->number % 2 == 0) {
            n->level++;
            n->number /= 2;
            continue;
        }
        size_t k = 0;
        while (k + 1 < a->nodes.n &&
               (a->nodes.v[k].level != n->level || a->nodes.v[k].number != (n->number ^ 1)))
            k++;
        if (k + 1 == a->nodes.n) return OM_OK;
        node other = a->nodes.v[k], mine = *n, *left = n->number % 2 ? &other : &mine;
        node *right   = left == &mine ? &other : &mine;
        a->nodes.v[k] = a->nodes.v[a->nodes.n - 2]; // both are here
        a->nodes.n -= 1;
        om_status st               = join(&left->grads, &right->grads);
        a->nodes.v[a->nodes.n - 1] = (node){left->level + 1, left->number / 2, left->grads};
        if (st != OM_OK) return st;
    }
}

om_status om_accumulate_backward(om_tensor *loss, int64_t shard) {
    OMI_ENTER("om_accumulate_backward");
    omi_accumulation *a = omi_state()->accumulation;
    if (omi_failed()) return om_pending();
    if (loss && omi_traced(loss)) return omi_backward_apart(loss, NULL); // refused by name
    if (!a) return omi_fail(OM_ERR_STATE, "no accumulation is open; call om_accumulate_begin");
    if (shard < 0 || shard >= a->shards)
        return omi_fail(OM_ERR_ARG, "shard is %lld; there are 0 to %lld", (long long)shard,
                        (long long)a->shards - 1);
    if (a->seen.v[shard])
        return omi_fail(OM_ERR_STATE, "shard %lld was given before", (long long)shard);
    if (a->shards == 1) { // the bits of om_backward
        om_status st = omi_backward_apart(loss, NULL);
        a->n_seen = a->seen.v[0] = st == OM_OK;
        return st;
    }
    if (!OMI_PUSH(&a->nodes, ((node){.number = shard}))) return om_pending();
    om_status st = omi_backward_apart(loss, &a->nodes.v[a->nodes.n - 1].grads);
    if (st != OM_OK) return a->nodes.n--, st;
    om_scope s = om_scope_begin();
    bool off   = omi_no_grad();
    bool held  = omi_hold_cancel(true);
    st         = settle(a);
    omi_hold_cancel(held);
    omi_grad_restore(off);
    om_scope_end(s);
    if (st != OM_OK) return drop_accumulation(), st; // half a join cannot be taken up again
    a->seen.v[shard] = 1;
    a->n_seen++;
    return OM_OK;
}

om_status om_accumulate_end(void) {
    OMI_ENTER("om_accumulate_end");
    omi_accumulation *a = omi_state()->accumulation;
    if (omi_failed()) return drop_accumulation(), om_pending();
    if (!a) return omi_fail(OM_ERR_STATE, "no accumulation is open; call om_accumulate_begin");
    int64_t missing = 0;
    while (missing < a->shards && a->seen.v[missing])
        missing++;
    if (missing < a->shards) {
        int64_t n = a->shards - a->n_seen;
        drop_accumulation();
        return omi_fail(
            OM_ERR_STATE,
            "%lld of the shards were not given, the first is %lld; the leaves are as before",
            (long long)n, (long long)missing);
    }
    if (!a->nodes.n) return drop_accumulation(), OM_OK; // one shard, whose leaves have it
    omi_leaf_grads *root = &a->nodes.v[0].grads;
    om_scope s           = om_scope_begin();
    bool off = omi_no_grad(), held = omi_hold_cancel(true);
    om_status st = OM_OK;
    for (size_t i = 0; i < root->n && st == OM_OK; i++) { // what was there before comes first
        om_tensor *sum = NULL, *old = root->v[i].slot->grad;
        if (!old || !root->v[i].grad) continue;
        st = omi_add_term(&sum, old);
        if (st == OM_OK) st = omi_add_term(&sum, root->v[i].grad);
        om_release(st == OM_OK ? root->v[i].grad : sum);
        if (st == OM_OK) root->v[i].grad = sum;
    }
    for (size_t i = 0; i < root->n && st == OM_OK; i++) {
        if (!root->v[i].grad) continue;
        om_tensor *old        = root->v[i].slot->grad;
        root->v[i].slot->grad = root->v[i].grad;
        root->v[i].grad       = old;
    }
    omi_hold_cancel(held);
    omi_grad_restore(off);
    drop_accumulation();
    om_scope_end(s);
    return st;
}
