/*
 * loader.h (internal) -- the state of a batch loader, which checkpoints save.
 */
#ifndef OM_OPTIM_LOADER_H
#define OM_OPTIM_LOADER_H

#include "onemodel/optim.h"
#include "tensor/tensor.h"

struct om_loader {
    int64_t items, batch;
    bool shuffle, drop_last;
    int n;
    om_tensor **tensors; /* n, strong; NULL when fill makes the batches */
    om_fill_fn fill;
    void *ctx;
    int64_t epoch, position; /* epochs ended; items of this one handed out */
    bool running;            /* an epoch is under way                      */
    om_rng start;            /* the generator as this epoch found it       */
    uint32_t drawn;          /* serial of the trace in which the order was drawn, or 0 */
    int64_t *order;          /* items entries: this epoch's order          */
};

/* Draws the order of an epoch from *rng (or the identity). */
om_status omi_loader_order(om_loader *l, om_rng *rng);

#endif
