/*
 * seam.c -- the thread's hooks, and the checks at every place where user code meets elements.
 */
#include "tensor/seam.h"

#include "base/lock.h"

_Atomic uint32_t omi_live[64];

static void live_in_child(void *unused) {
    (void)unused;
    for (int i = 0; i < 64; i++)
        if (!omi_seam || omi_seam->serial != atomic_load(&omi_live[i]))
            atomic_store(&omi_live[i], 0);
}
static om_lock live_lock = OM_LOCK(OM_RANK_TRACE, live_in_child, NULL); // only for its function
void omi_live_forks(void) {
    if (!atomic_load(&live_lock.listed)) omi_lock_list(&live_lock);
}
bool (*omi_needs_grad_hook)(const om_tensor *t);

om_status omi_check_thread(const om_tensor *t) {
    if (!omi_traced(t)) return OM_OK;
    if (omi_seam && omi_seam->serial == t->trace_serial) return OM_OK;
    return omi_fail_trace(
        OM_TRACE_INVALID_USAGE,
        "%s belongs to a trace of another thread; use it on the thread that began "
        "the trace, or finish the trace first",
        OMI_T(t));
}

static bool is_marked(const om_tensor *t) {
    return atomic_load_explicit(&t->storage->taint, memory_order_relaxed) != 0;
}

/* Calls the hook when t is traced. Every refusal must leave an error pending. */
om_status omi_seam_read(const om_tensor *t, om_read_kind k) {
    if (OM_LIKELY(!omi_traced(t) && (!omi_seam || !is_marked(t)))) return OM_OK;
    OM_TRY(omi_check_thread(t));
    om_site site = omi_site();
    return omi_seam->read(omi_seam->self, t, k, &site);
}

om_status omi_seam_take(const om_tensor *t) {
    return OM_LIKELY(!omi_traced(t)) ? OM_OK : omi_seam_read(t, OM_READ_COPY_OUT);
}

om_status omi_seam_write(const om_tensor *t, om_write_kind k) {
    if (OM_LIKELY(!omi_traced(t))) return OM_OK;
    OM_TRY(omi_check_thread(t));
    om_site site = omi_site();
    return omi_seam->write(omi_seam->self, t, k, &site);
}

om_status omi_seam_opaque(const om_tensor *t, const char *what) {
    if (OM_LIKELY(!omi_traced(t))) return OM_OK;
    OM_TRY(omi_check_thread(t));
    om_site site = omi_site();
    return omi_seam->opaque(omi_seam->self, what, &site);
}

void omi_spread_marks(om_tensor *to, const om_tensor *from) {
    uint32_t taint = atomic_load_explicit(&from->storage->taint, memory_order_relaxed);
    if (OM_LIKELY(!taint) || to->storage == from->storage) return;
    // Without hooks here the word alone travels: a trace of another thread refuses what it meets.
    atomic_store_explicit(&to->storage->taint, taint, memory_order_relaxed);
    if (omi_seam) omi_seam->join(omi_seam->self, from, to);
}

void omi_seam_wrote(om_storage *s) {
    om_site site = omi_site();
    omi_seam->wrote(omi_seam->self, s, &site);
}

void omi_random_filled(om_tensor *t) {
    if (OM_LIKELY(!omi_seam)) return;
    om_site site = omi_site();
    omi_seam->random(omi_seam->self, t->storage, &site);
}
