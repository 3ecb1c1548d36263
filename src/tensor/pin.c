/*
 * pin.c -- pins: a host outside the library holds the address of a storage's bytes (CD-45).
 *
 * A pin holds the storage, so the bytes outlive the tensor. They stay where they are because only a
 * shared buffer is ever left for a private copy: a pin makes the bytes private first, and what
 * would share them afterwards, the capture of a trace, copies pinned ones. Under a writable pin the
 * bytes are the caller's: nothing packed from them is kept, and who saved them is refused.
 *
 * Needs: seam.h.
 */
#include "tensor/seam.h"

struct om_pin {
    om_storage *storage; /* strong */
    om_buffer *buf;      /* its buffer, which it keeps while it is pinned */
    void *data;
    bool writable;
};

om_pin *om_pin_new(om_tensor *t, bool writable) {
    OMI_ENTER("om_pin_new");
    if (omi_check_arg(t, "the tensor") != OM_OK) return NULL;
    if (writable && omi_seam_write(t, OM_WRITE_DATA) != OM_OK) return NULL;
    if (omi_seam_read(t, OM_READ_DATA) != OM_OK) return NULL;
    om_pin *p     = omi_alloc(sizeof *p);
    om_storage *s = t->storage;
    if (!p) return NULL;
    if (!omi_storage_own(s)) {
        omi_free(p, sizeof *p);
        return NULL;
    }
    if (writable) {
        omi_storage_wrote(s, "om_pin_new");
        atomic_fetch_add_explicit(&s->buf->writers, 1, memory_order_acq_rel);
    }
    atomic_fetch_add_explicit(&s->buf->pins, 1, memory_order_acq_rel);
    atomic_fetch_add_explicit(&s->refs, 1, memory_order_relaxed);
    *p = (om_pin){.storage = s, .buf = s->buf, .data = omi_ptr(t), .writable = writable};
    return p;
}

void *om_pin_data(const om_pin *p) {
    return p ? p->data : NULL;
}

void om_pin_free(om_pin *p) {
    if (!p) return;
    if (p->writable) {
        omi_storage_wrote(p->storage, "the holder of a pin");
        atomic_fetch_sub_explicit(&p->buf->writers, 1, memory_order_acq_rel);
    }
    atomic_fetch_sub_explicit(&p->buf->pins, 1, memory_order_acq_rel);
    omi_storage_release(p->storage);
    omi_free(p, sizeof *p);
}
