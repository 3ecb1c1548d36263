/*
 * seam.h -- the hooks a tracer installs on its thread (CD-10 to CD-12): all that tracing needs from
 * below.
 *
 * Nothing in tensor, autograd or ops knows what a trace does. They report records, reads, writes,
 * changes of grad mode and random fills; the hook may refuse by raising. A storage's `taint` is not
 * a mark but says that some trace keeps marks of it: look there. A tensor is traced while
 * the serial it carries is live, so ending a trace clears one slot and walks nothing.
 *
 * Needs: tensor.h.  Used by: tensor, autograd, ops, trace.
 */
#ifndef OM_TENSOR_SEAM_H
#define OM_TENSOR_SEAM_H

#include "tensor/tensor.h"

typedef enum om_read_kind {
    OM_READ_DATA,
    OM_READ_ITEM,
    OM_READ_COPY_OUT,
    OM_READ_EXPORT
} om_read_kind;
typedef enum om_write_kind {
    OM_WRITE_DATA,
    OM_WRITE_FILL,
    OM_WRITE_SET,
    OM_WRITE_COPY_IN,
    OM_WRITE_INPLACE_OP
} om_write_kind;

struct om_call;
typedef struct om_seam {
    void *self;
    uint32_t serial;
    om_status (*record)(void *self, const struct om_call *call, om_tensor **out);
    om_status (*read)(void *self, const om_tensor *t, om_read_kind k, const om_site *site);
    om_status (*write)(void *self, const om_tensor *t, om_write_kind k, const om_site *site);
    om_status (*no_grad)(void *self, const om_site *site);
    void (*random)(void *self, om_storage *s, const om_site *site);
    /* to's elements were computed from those of from, which some trace marked (TD-24). */
    void (*join)(void *self, const om_tensor *from, om_tensor *to);
    /* The elements of s are about to change (TD-25). */
    void (*wrote)(void *self, om_storage *s, const om_site *site);
    om_status (*opaque)(void *self, const char *what, const om_site *site);
    om_status (*shape_read)(void *self, const om_tensor *t, int axis); /* NULL in 1.0 */
} om_seam;

/* The hooks of this thread, NULL without a trace. */
#define omi_seam (omi_state()->seam)
/* A forked child forgets the traces of threads that it does not have; asked for by each trace. */
void omi_live_forks(void);
extern _Atomic uint32_t omi_live[64]; /* live trace serials, slot = serial & 63 */

/* Set by autograd: t needs gradients and recording is on, so it may not change in place (CD-3). */
extern bool (*omi_needs_grad_hook)(const om_tensor *t);

/* Some live trace owns t. */
OM_INLINE bool omi_traced(const om_tensor *t) {
    return OM_UNLIKELY(t->trace_serial != 0) &&
           atomic_load_explicit(&omi_live[t->trace_serial & 63], memory_order_acquire) ==
               t->trace_serial;
}
/* t may be used here: untraced, or traced by this thread's tracer. Else InvalidUsage (TD-10). */
om_status omi_check_thread(const om_tensor *t);
/* Before user code reads or writes elements. Reading is refused on marked tensors too (TD-24). */
om_status omi_seam_read(const om_tensor *t, om_read_kind k);
om_status omi_seam_write(const om_tensor *t, om_write_kind k);
/* Before the library copies elements on into a tensor that no record tells a trace about. */
om_status omi_seam_take(const om_tensor *t);
/* to's elements come from from's: what a trace knows of those stays known (TD-9, TD-23 to TD-25).
 */
void omi_spread_marks(om_tensor *to, const om_tensor *from);
/* s is written while this thread's trace records (TD-25); call it when omi_seam is set. */
void omi_seam_wrote(om_storage *s);
/* Session runs, file writers, custom operators: refused on traced tensors unless they can be
 * recorded. */
om_status omi_seam_opaque(const om_tensor *t, const char *what);

#endif
