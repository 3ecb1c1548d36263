/*
 * tensor.c -- storages and tensors: identity, life, sharing of bytes (CD-1).
 *
 * Releasing a tensor may release its record, which holds its inputs, and so on: a chain of a
 * million operators. The chain is unlinked with an explicit list, never by recursion (CD-9); the
 * record's part is done by autograd through omi_release_record.
 */
#include "tensor/tensor.h"

#include <stdio.h>
#include <string.h>

#include "base/checked.h"
#include "base/poison.h"
#include "base/str.h"
#include "base/thread.h"
#include "base/words.h"
#include "compute/move.h"
#include "tensor/scope.h"
#include "tensor/seam.h"

/* ---- ids: each thread takes a thousand at a time from the process-wide counter ----------------
 */

#define ID_BATCH 1024
static _Atomic uint64_t id_counter = 1;

uint64_t omi_next_id(void) {
    om_state *s = omi_state();
    if (OM_UNLIKELY(s->id_next == s->id_end)) {
        s->id_next = atomic_fetch_add_explicit(&id_counter, ID_BATCH, memory_order_relaxed);
        s->id_end  = s->id_next + ID_BATCH;
    }
    return s->id_next++;
}

static _Atomic int64_t live_tensors;
int64_t om_live_tensors(void) {
    return atomic_load(&live_tensors);
}

/* ---- names ----------------------------------------------------------------------------------- */

typedef struct name_text {
    _Atomic uint32_t refs;
    char text[];
} name_text;

static name_text *name_of(const char *name) {
    union {
        const char *from;
        char *to;
    } cast = {.from = name};
    return (name_text *)(void *)(cast.to - offsetof(name_text, text));
}

const char *omi_name_new(const char *text) {
    size_t n     = strlen(text) + 1;
    name_text *t = omi_alloc(sizeof *t + n);
    if (!t) return NULL;
    atomic_init(&t->refs, 1);
    return memcpy(t->text, text, n);
}

const char *omi_name_retain(const char *name) {
    if (name) atomic_fetch_add_explicit(&name_of(name)->refs, 1, memory_order_relaxed);
    return name;
}

void omi_name_release(const char *name) {
    if (!name || atomic_fetch_sub_explicit(&name_of(name)->refs, 1, memory_order_acq_rel) != 1)
        return;
    omi_free(name_of(name), sizeof(name_text) + strlen(name) + 1);
}

/* ---- storages ------------------------------------------------------------------------------- */

/* Takes the reference to b, also when it fails. */
static om_storage *storage_new(om_buffer *b) {
    if (!b) return NULL;
    om_storage *s = omi_alloc(sizeof *s);
    if (!s) {
        omi_buffer_release(b);
        return NULL;
    }
    atomic_init(&s->refs, 1);
    atomic_init(&s->taint, 0);
    atomic_init(&s->version, 0);
    s->id     = omi_next_id();
    s->writer = NULL;
    s->buf    = b;
    return s;
}

void omi_storage_release(om_storage *s) {
    if (!s || atomic_fetch_sub_explicit(&s->refs, 1, memory_order_acq_rel) != 1) return;
    omi_buffer_release(s->buf);
    omi_free(s, sizeof *s);
}

/* ---- making --------------------------------------------------------------------------------- */

void omi_strides(int rank, const int64_t *shape, int64_t *strides) {
    int64_t s = 1;
    for (int i = rank - 1; i >= 0; i--) {
        strides[i] = s;
        s *= shape[i] > 0 ? shape[i] : 1;
    }
}

/* A tensor that takes the reference to s, also when it fails. Not filed. */
static om_tensor *tensor_new(om_storage *s, om_dtype t, int rank, const int64_t *shape,
                             const int64_t *strides, int64_t offset) {
    if (!s) return NULL;
    om_tensor *x = omi_alloc(sizeof *x);
    if (!x) {
        omi_storage_release(s);
        return NULL;
    }
    memset(x, 0, offsetof(om_tensor, shape));
    atomic_init(&x->refs, 1);
    x->dtype   = (uint8_t)t;
    x->rank    = (uint8_t)rank;
    x->id      = omi_next_id();
    x->storage = s;
    x->offset  = offset;
    for (int i = 0; i < rank; i++)
        x->shape[i] = shape[i];
    if (strides)
        for (int i = 0; i < rank; i++)
            x->strides[i] = strides[i];
    else
        omi_strides(rank, shape, x->strides);
    x->grad   = NULL;
    x->name   = NULL;
    x->origin = omi_function();
    atomic_fetch_add_explicit(&live_tensors, 1, memory_order_relaxed);
    return x;
}

om_status omi_check_dims(int rank, const int64_t *dims, int64_t *numel) {
    if (rank < 0 || rank > OM_MAX_RANK)
        return omi_fail(OM_ERR_SHAPE, "rank %d; tensors have 0 to %d axes", rank, OM_MAX_RANK);
    if (rank && !dims) return omi_fail(OM_ERR_ARG, "the size list is NULL");
    for (int i = 0; i < rank; i++)
        if (dims[i] < 0)
            return omi_fail(OM_ERR_SHAPE, "axis %d has size %lld; sizes are 0 or more", i,
                            (long long)dims[i]);
    // Sizes beside a 0 are bounded too: strides and loops multiply them before they meet it.
    int64_t sizes = 1;
    bool fits     = omi_product(dims, rank, numel);
    for (int i = 0; i < rank; i++)
        fits &= omi_mul_i64(sizes, dims[i] ? dims[i] : 1, &sizes);
    if (!fits || sizes > INT64_MAX / 16) {
        char text[160];
        return omi_fail(OM_ERR_SHAPE, "the shape %s has more elements than can be addressed",
                        omi_shape_text(text, sizeof text, rank, dims));
    }
    return OM_OK;
}

om_tensor *omi_new(om_dtype t, int rank, const int64_t *shape) {
    int64_t n;
    if (omi_check_dims(rank, shape, &n) != OM_OK) return NULL;
    om_buffer *b = omi_buffer_new((size_t)n * om_dtype_size(t));
    return omi_file_owned(tensor_new(storage_new(b), t, rank, shape, NULL, 0));
}

om_tensor *omi_new_like(const om_tensor *x) {
    return omi_new((om_dtype)x->dtype, x->rank, x->shape);
}

om_tensor *omi_view_of(const om_tensor *t, int rank, const int64_t *shape, const int64_t *strides,
                       int64_t offset) {
    atomic_fetch_add_explicit(&t->storage->refs, 1, memory_order_relaxed);
    om_tensor *v = tensor_new(t->storage, (om_dtype)t->dtype, rank, shape, strides, offset);
    if (v) { // a size-1 axis has the canonical stride, so that equal views have equal strides
        int64_t s = 1;
        for (int i = rank - 1; i >= 0; i--) {
            if (shape[i] == 1) v->strides[i] = s;
            s = v->strides[i] * (shape[i] > 0 ? shape[i] : 1);
        }
    }
    return omi_file_owned(v);
}

om_tensor *omi_detached(const om_tensor *t) {
    atomic_fetch_add_explicit(&t->storage->refs, 1, memory_order_relaxed);
    om_tensor *v =
        tensor_new(t->storage, (om_dtype)t->dtype, t->rank, t->shape, t->strides, t->offset);
    if (!v) return NULL;
    v->layout = t->layout;
    v->origin = t->origin;
    v->name   = omi_name_retain(t->name);
    return v;
}

om_tensor *omi_from_buffer(om_buffer *b, int64_t byte_offset, om_dtype t, int rank,
                           const int64_t *shape) {
    int64_t n;
    if (omi_check_dims(rank, shape, &n) != OM_OK) return NULL;
    om_storage *s = storage_new(omi_buffer_retain(b));
    return omi_file_owned(
        tensor_new(s, t, rank, shape, NULL, byte_offset / (int64_t)om_dtype_size(t)));
}

/* ---- life ----------------------------------------------------------------------------------- */

void (*omi_release_record)(om_record *r, om_tensor **dead);

om_grad_slot *omi_grad_slot_of(om_tensor *t) {
    if (t->grad || !(t->grad = omi_calloc(sizeof *t->grad))) return t->grad;
    atomic_init(&t->grad->refs, 1);
    return t->grad;
}

void omi_grad_slot_release(om_grad_slot *s, om_tensor **dead) {
    if (!s || atomic_fetch_sub_explicit(&s->refs, 1, memory_order_acq_rel) != 1) return;
    om_tensor *g = s->grad;
    if (g && atomic_fetch_sub_explicit(&g->refs, 1, memory_order_acq_rel) == 1)
        omi_push_dead(dead, g);
    omi_free(s, sizeof *s);
}

/* What a tensor that waits poisoned says of itself; its name is where its id was. */
static void leave_head(om_tensor *t) {
    union {
        uint64_t id;
        const char *name;
    } kept          = {.id = t->id};
    t->layout       = OM_FREED;
    t->name         = kept.name;
    t->record       = NULL;
    t->storage      = NULL;
    t->grad         = NULL;
    t->flags        = 0;
    t->trace_serial = 0;
}

void omi_say_freed(const om_tensor *t) {
    omi_fail(
        OM_ERR_STATE,
        "%s was released: its scope has ended, or its last reference is gone; hand it out with "
        "om_scope_return or keep it with om_retain",
        OMI_T(t));
}

/* Frees t and pushes what died with it on *dead, linked through the storage pointer's place. */
static void tensor_free(om_tensor *t, om_tensor **dead) {
    if (t->record) omi_release_record(t->record, dead);
    omi_grad_slot_release(t->grad, dead);
    omi_storage_release(t->storage);
    if (omi_poison_on()) leave_head(t);
    omi_free_standing(t, sizeof *t);
    atomic_fetch_sub_explicit(&live_tensors, 1, memory_order_relaxed);
}

/* The list of dead tensors runs through their names, which no one reads any more. */
void omi_push_dead(om_tensor **dead, om_tensor *t) {
    if (omi_poison_on()) {
        union {
            uint64_t id;
            const char *name;
        } kept = {.id = 0};
        if (t->name) kept.name = omi_intern_quiet(t->name);
        t->id = kept.id;
    }
    omi_name_release(t->name);
    t->name = (const char *)*dead;
    *dead   = t;
}

static om_tensor *pop_dead(om_tensor **dead) {
    om_tensor *t = *dead;
    union {
        const char *name;
        om_tensor *next;
    } link = {.name = t->name};
    *dead  = link.next;
    return t;
}

void omi_release_list(om_tensor *dead) {
    while (dead)
        tensor_free(pop_dead(&dead), &dead);
}

void om_release(om_tensor *t) {
    if (!omi_alive(t)) return;
    if (!t || atomic_fetch_sub_explicit(&t->refs, 1, memory_order_acq_rel) != 1) return;
    om_tensor *dead = NULL;
    omi_push_dead(&dead, t);
    omi_release_list(dead);
}

om_tensor *om_retain(om_tensor *t) {
    if (!omi_alive(t)) return NULL;
    if (t) atomic_fetch_add_explicit(&t->refs, 1, memory_order_relaxed);
    return t;
}

/* ---- bytes ---------------------------------------------------------------------------------- */

bool omi_contiguous(const om_tensor *t) {
    int64_t s = 1;
    for (int i = t->rank - 1; i >= 0; i--) {
        if (t->shape[i] != 1 && t->strides[i] != s) return omi_numel(t) == 0;
        s *= t->shape[i];
    }
    return true;
}

om_tensor *omi_pack(om_tensor *t) {
    if (omi_contiguous(t)) return t;
    om_tensor *y = omi_new_like(t);
    if (!y) return NULL;
    om_view from = omi_view(t), to = omi_view(y);
    omi_copy(&from, &to);
    return omi_check_cancel() == OM_OK ? y : NULL;
}

bool omi_storage_own(om_storage *s) {
    if (omi_buffer_writable(s->buf)) return true;
    om_buffer *own = omi_buffer_new(s->buf->bytes);
    if (!own) return false;
    if (own->bytes) memcpy(own->data, s->buf->data, s->buf->bytes);
    omi_buffer_release(s->buf);
    s->buf = own;
    return true;
}

void omi_storage_wrote(om_storage *s, const char *writer) {
    omi_buffer_packed_drop(s->buf);
    atomic_fetch_add_explicit(&s->version, 1, memory_order_release);
    s->writer = writer;
    if (OM_UNLIKELY(omi_seam != NULL)) omi_seam_wrote(s);
}

void *omi_ptr_mut(om_tensor *t, const char *writer) {
    if (!omi_storage_own(t->storage)) return NULL;
    omi_storage_wrote(t->storage, writer);
    return omi_ptr(t);
}

bool omi_same_shape(const om_tensor *a, const om_tensor *b) {
    return a->rank == b->rank && memcmp(a->shape, b->shape, sizeof(int64_t) * a->rank) == 0;
}

om_status omi_axis(int axis, int n, int *out) {
    int a = axis < 0 ? axis + n : axis;
    if (a < 0 || a >= n)
        return omi_fail(OM_ERR_ARG, "axis %d; there are %d axes (%d to %d)", axis, n, -n, n - 1);
    *out = a;
    return OM_OK;
}

const char *omi_tensor_text(const om_tensor *t, omi_text *buf) {
    if (!t) return "NULL";
    char shape[100];
    size_t n = sizeof buf->s;
    int k    = snprintf(buf->s, n, "%s %s", om_dtype_name((om_dtype)t->dtype),
                        omi_shape_text(shape, sizeof shape, t->rank, t->shape));
    if (t->name && k > 0 && (size_t)k < n)
        k += snprintf(buf->s + k, n - (size_t)k, " '%s'", t->name);
    if (t->origin && k > 0 && (size_t)k < n)
        snprintf(buf->s + k, n - (size_t)k, " (made by %s)", t->origin);
    return buf->s;
}

om_status omi_check_arg(const om_tensor *t, const char *what) {
    if (omi_failed()) return omi_pending_status;
    if (OM_UNLIKELY(!t))
        return omi_fail(OM_ERR_ARG,
                        "%s is NULL; a call before this one failed, or nothing was given", what);
    if (OM_UNLIKELY(t->layout != OM_STRIDED)) {
        if (!omi_alive(t)) return omi_pending_status;
        if (omi_seam) // TR-2: while a trace records, a blocked tensor is what it cannot hold
            return omi_fail_trace(OM_TRACE_UNSUPPORTED_OPERATION,
                                  "%s is %s in the blocked layout NCHW16c, which a graph cannot "
                                  "hold; convert it with om_from_nchw16c",
                                  what, OMI_T(t));
        return omi_fail(OM_ERR_LAYOUT,
                        "%s is %s in the blocked layout NCHW16c; convert it with om_from_nchw16c",
                        what, OMI_T(t));
    }
    if (OM_UNLIKELY(t->trace_serial)) return omi_check_thread(t);
    return OM_OK;
}
