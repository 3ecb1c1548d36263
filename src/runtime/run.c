/*
 * run.c -- running a plan, and prepared runs (CD-29).
 *
 * om_run_call sets the addresses of inputs and outputs, calls the steps, copies the outputs that
 * could not be written in place and makes their NaNs canonical (AR-1.4 b). All memory was taken by
 * om_session_prepare, so with one thread nothing here allocates, locks or enters the kernel.
 */
#include "runtime/run.h"

#include <stdio.h>
#include <string.h>

#include "base/hash.h"
#include "base/thread.h"
#include "base/utf8.h"
#include "compute/elementwise.h"

static size_t run_aligned(size_t n) {
    return (n + OM_ALIGN - 1) / OM_ALIGN * OM_ALIGN;
}

static size_t table_bytes(const om_plan *p) {
    return ((size_t)p->n_values + 2 * (size_t)p->n_out + 1) * sizeof(void *);
}

static size_t memory_bytes(const om_run *r) {
    return run_aligned(r->plan->bytes) + (r->owns_outputs ? r->plan->out_bytes : 0) + OM_ALIGN;
}

static void write_purpose(const void *plan, char *out, size_t n) {
    static const char what[] = ", for the values of one run";
    snprintf(out, n, "%s", what);
    omi_plan_largest(plan, out + sizeof what - 1, n - sizeof what + 1);
}

/* The memory of a run; a refusal says which value asks for it. */
static void *alloc_values(const om_run *r) {
    const omi_purpose purpose = {write_purpose, r->plan};
    omi_state()->purpose      = &purpose;
    void *p                   = omi_alloc_aligned(memory_bytes(r));
    omi_state()->purpose      = NULL;
    return p;
}

om_run *omi_run_new(om_plan *plan, bool own_outputs) {
    om_run *r = omi_calloc(sizeof *r);
    if (!r) return NULL;
    r->plan         = omi_plan_retain(plan);
    r->owns_outputs = own_outputs;
    r->ptr          = omi_calloc(table_bytes(plan));
    r->arena        = r->ptr ? alloc_values(r) : NULL;
    if (!r->arena) return om_run_free(r), NULL;
    r->own  = r->ptr + plan->n_values;
    r->last = r->own + plan->n_out;
    if (plan->n_values) memcpy(r->ptr, plan->fixed, plan->n_values * sizeof *r->ptr);
    // A value without elements may have no bytes; steps still add offsets to where it is.
    for (uint32_t i = 0; i < plan->n_values; i++)
        if (!r->ptr[i]) r->ptr[i] = r->arena;
    for (uint32_t i = 0; i < plan->n_places; i++)
        r->ptr[plan->places[i].value] = (char *)r->arena + plan->places[i].offset;
    size_t at = run_aligned(plan->bytes);
    for (uint32_t i = 0; own_outputs && i < plan->n_out; i++) {
        r->own[i] = (char *)r->arena + at;
        at += run_aligned(plan->out[i].bytes);
    }
    return r;
}

void om_run_free(om_run *r) {
    if (!r) return;
    omi_free_aligned(r->arena, r->arena ? memory_bytes(r) : 0);
    omi_free(r->ptr, table_bytes(r->plan));
    omi_plan_release(r->plan);
    omi_free(r, sizeof *r);
}

static void finish_outputs(om_run *r, void *const *dst) {
    const om_plan *p = r->plan;
    for (uint32_t i = 0; i < p->n_out; i++) {
        const om_port *o = &p->out[i];
        if (o->copy_from != OM_NO_VALUE && o->bytes) memcpy(dst[i], r->ptr[o->copy_from], o->bytes);
    }
    for (uint32_t i = 0; i < p->n_out; i++) {
        const om_port *o = &p->out[i];
        om_view v        = {.data = dst[i], .dtype = o->dtype, .rank = 1, .shape = {o->numel}};
        v.strides[0]     = 1;
        if (o->numel) omi_canonical_nan(&v);
    }
}

om_status omi_run_steps(om_run *r, const void *const *in, void *const *out) {
    const om_plan *p = r->plan;
    void **dst       = r->last;
    r->done          = false;
    for (uint32_t i = 0; i < p->n_out; i++)
        dst[i] = out && out[i] ? out[i] : r->own[i];
    for (uint32_t i = 0; i < p->n_patches; i++) {
        const om_patch *t = &p->patches[i];
        const char *from  = t->output ? dst[t->io] : in[t->io];
        from              = from ? from + t->offset : r->arena;
        memcpy(&r->ptr[t->value], &from, sizeof from);
    }
    om_exec e   = {.ptr = r->ptr, .workers = p->workers, .graph = p->program->graph};
    int cap     = omi_set_worker_cap(p->workers);
    om_status s = OM_OK;
    for (uint32_t i = 0; s == OM_OK && i < p->n_steps; i++) {
        const om_run_step *step = p->steps[i];
        e.ws                    = step->ws_bytes ? (char *)r->arena + step->ws_offset : NULL;
        s                       = omi_check_cancel();
        if (s == OM_OK) s = step->run(step, &e);
    }
    if (s == OM_OK) finish_outputs(r, dst);
    if (s == OM_OK) s = omi_check_cancel();
    r->done = s == OM_OK;
    omi_set_worker_cap(cap);
    return s;
}

/* ---- public ---------------------------------------------------------------------------------- */

static om_status check_pointer(const om_run *r, const void *p, const om_port *port,
                               const char *what, uint32_t i) {
    (void)r;
    if (!p && port->bytes)
        return omi_fail(OM_ERR_ARG, "%s %u is NULL; it must point to %zu bytes", what, i,
                        port->bytes);
    if ((uintptr_t)p % om_dtype_size(port->dtype))
        return omi_fail(OM_ERR_ARG, "%s %u is not aligned to its elements of %zu bytes", what, i,
                        om_dtype_size(port->dtype));
    return OM_OK;
}

om_status om_run_call(om_run *r, const void *const *in, void *const *out) {
    OMI_ENTER("om_run_call");
    if (omi_failed()) return om_pending();
    if (!r || (!in && r->plan->n_in)) return omi_fail(OM_ERR_ARG, "the run or its inputs are NULL");
    for (uint32_t i = 0; i < r->plan->n_in; i++)
        OM_TRY(check_pointer(r, in[i], &r->plan->in[i], "input", i));
    for (uint32_t i = 0; out && i < r->plan->n_out; i++)
        if (out[i]) OM_TRY(check_pointer(r, out[i], &r->plan->out[i], "output", i));
    return omi_run_steps(r, in, out);
}

om_status om_run_output_shape(const om_run *r, int i, om_shape *out) {
    OMI_ENTER("om_run_output_shape");
    if (omi_failed()) return om_pending();
    if (!r || !out || i < 0 || (uint32_t)i >= r->plan->n_out)
        return omi_fail(OM_ERR_ARG, "there is no output %d", i);
    out->rank = r->plan->out[i].rank;
    memcpy(out->dims, r->plan->out[i].shape, sizeof out->dims);
    return OM_OK;
}

const void *om_run_output(const om_run *r, int i) {
    return r && r->done && i >= 0 && (uint32_t)i < r->plan->n_out ? r->last[i] : NULL;
}

/* ---- hash ------------------------------------------------------------------------------------ */

/* Bytes in little-endian order whatever the machine's. */
static void hash_elements(om_sha256 *h, const void *data, size_t n, size_t item) {
#if defined(__BYTE_ORDER__) && __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
    for (size_t i = 0; i < n; i++)
        for (size_t k = item; k-- > 0;)
            omi_sha256_add(h, (const char *)data + i * item + k, 1);
#else
    omi_sha256_add(h, data, n * item);
#endif
}

om_status om_run_hash(const om_run *r, char *hex) {
    OMI_ENTER("om_run_hash");
    if (omi_failed()) return om_pending();
    if (!r || !hex) return omi_fail(OM_ERR_ARG, "the run or the text is NULL");
    if (!r->done)
        return omi_fail(OM_ERR_STATE, "no call has succeeded yet; call om_run_call first");
    om_sha256 h;
    uint8_t digest[32];
    omi_sha256_init(&h);
    for (uint32_t i = 0; i < r->plan->n_out; i++) {
        const om_port *o = &r->plan->out[i];
        uint32_t head[2] = {(uint32_t)o->dtype, (uint32_t)o->rank};
        hash_elements(&h, head, 2, sizeof head[0]);
        hash_elements(&h, o->shape, (size_t)o->rank, sizeof o->shape[0]);
        hash_elements(&h, r->last[i], (size_t)o->numel, om_dtype_size(o->dtype));
    }
    omi_sha256_end(&h, digest);
    omi_hex(digest, sizeof digest, hex);
    return OM_OK;
}
