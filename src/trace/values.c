/*
 * values.c -- the value map of a recording and the making of provisional nodes.
 *
 * A traced tensor is found by its id, which is never reused (CD-1). Literals are shared by type,
 * shape and bytes from the start; captured tensors are consts.c.
 */
#include <string.h>

#include "compute/move.h"
#include "trace/lower.h"

om_tvalue *omi_tr_new_value(om_tracer *tr, om_tv_kind kind, om_dtype dtype, int rank) {
    om_tvalue *v = omi_arena_alloc(&tr->arena, sizeof *v);
    if (!v) return NULL;
    v->kind  = (uint8_t)kind;
    v->dtype = (uint8_t)dtype;
    v->rank  = (uint8_t)rank;
    v->e     = omi_arena_array(&tr->arena, rank ? (size_t)rank : 1, sizeof *v->e);
    return v->e ? v : NULL;
}

om_tvalue *omi_tr_value_of(om_tracer *tr, const om_tensor *t) {
    om_tvalue *v = omi_map_get(&tr->values, t->id);
    if (!v)
        omi_fail_trace(OM_TRACE_UNSUPPORTED_OPERATION,
                       "%s depends on an input but was made by a call that the trace did not see",
                       OMI_T(t));
    return v;
}

bool omi_tr_bind(om_tracer *tr, om_tensor *t, om_tvalue *v) {
    if (!omi_map_set(&tr->values, t->id, v)) return false;
    t->trace_serial = tr->serial;
    return true;
}

om_tvalue *omi_tr_shape_only(om_tracer *tr, const om_tensor *t) {
    om_tvalue *v = omi_tr_new_value(tr, OM_TV_SHAPE, (om_dtype)t->dtype, t->rank);
    for (int i = 0; v && i < t->rank; i++)
        v->e[i] = omi_ext_static(t->shape[i]);
    return v;
}

om_tvalue *omi_tr_literal(om_tracer *tr, om_dtype dtype, int rank, const int64_t *dims,
                          const void *data, size_t bytes) {
    int64_t head[2 + OM_MAX_RANK] = {dtype, rank};
    for (int i = 0; i < rank; i++)
        head[2 + i] = dims[i];
    size_t n_head = (2 + (size_t)rank) * sizeof *head, n = n_head + bytes;
    char *key = omi_arena_alloc(&tr->arena, n);
    if (!key) return NULL;
    memcpy(key, head, n_head);
    if (bytes) memcpy(key + n_head, data, bytes);
    om_tvalue *v = omi_strmap_get(&tr->literals, key, n);
    if (v) return v;
    v = omi_tr_new_value(tr, OM_TV_LITERAL, dtype, rank);
    if (!v || !omi_strmap_set(&tr->literals, key, n, v)) return NULL;
    for (int i = 0; i < rank; i++)
        v->e[i] = omi_ext_static(dims[i]);
    v->data  = key + n_head;
    v->bytes = bytes;
    return v;
}

om_tnode *omi_tr_node(om_tracer *tr, const char *type, const char *op, const om_site *site,
                      uint32_t n_in, om_tvalue *const *in, uint32_t n_out) {
    while (n_in && !in[n_in - 1])
        n_in--;
    om_tnode *n = omi_arena_alloc(&tr->arena, sizeof *n);
    if (!n) return NULL;
    n->type  = type;
    n->op    = op;
    n->site  = *site;
    n->n_in  = n_in;
    n->n_out = n_out;
    n->in    = omi_arena_array(&tr->arena, n_in ? n_in : 1, sizeof *n->in);
    n->out   = omi_arena_array(&tr->arena, n_out ? n_out : 1, sizeof *n->out);
    if (!n->in || !n->out || !OMI_PUSH(&tr->nodes, n)) return NULL;
    for (uint32_t i = 0; i < n_in; i++)
        n->in[i] = in[i];
    return n;
}

/* ---- for rules ------------------------------------------------------------------------------ */

om_tnode *omi_lw_node(om_lowering *lw, const char *type, uint32_t n_in, om_tvalue *const *in,
                      uint32_t n_out) {
    if (omi_failed()) return NULL;
    return omi_tr_node(lw->tr, type, lw->call->name, &lw->site, n_in, in, n_out);
}

static om_tattr *attr_new(om_lowering *lw, om_tnode *n, const char *name, om_attr_type type) {
    if (omi_failed() || !n) return NULL;
    om_tattr *a = omi_arena_alloc(&lw->tr->arena, sizeof *a);
    if (!a) return NULL;
    a->name = name;
    a->type = type;
    if (n->last_attr)
        n->last_attr->next = a;
    else
        n->attrs = a;
    n->last_attr = a;
    return a;
}

void omi_lw_int(om_lowering *lw, om_tnode *n, const char *name, int64_t v) {
    om_tattr *a = attr_new(lw, n, name, OM_ATTR_INT);
    if (a) a->i = v;
}

void omi_lw_float(om_lowering *lw, om_tnode *n, const char *name, float v) {
    om_tattr *a = attr_new(lw, n, name, OM_ATTR_FLOAT);
    if (a) a->f = v;
}

void omi_lw_string(om_lowering *lw, om_tnode *n, const char *name, const char *literal) {
    om_tattr *a = attr_new(lw, n, name, OM_ATTR_STRING);
    if (a) a->s = literal;
}

void omi_lw_ints(om_lowering *lw, om_tnode *n, const char *name, int64_t count, const int64_t *v) {
    om_tattr *a = attr_new(lw, n, name, OM_ATTR_INTS);
    if (!a) return;
    a->ints = omi_arena_array(&lw->tr->arena, count ? (size_t)count : 1, sizeof *v);
    if (!a->ints) return;
    for (int64_t i = 0; i < count; i++)
        a->ints[i] = v[i];
    a->n = (size_t)count;
}

/* One element of a type, as the operators convert their scalar arguments. */
static size_t elem_of(om_dtype t, double v, uint8_t *out) {
    omi_element_from_double(v, t, out);
    return om_dtype_size(t);
}

void omi_lw_tensor(om_lowering *lw, om_tnode *n, const char *name, om_dtype dtype, double v) {
    om_tattr *a = attr_new(lw, n, name, OM_ATTR_TENSOR);
    if (!a) return;
    a->dtype = (uint8_t)dtype;
    a->n     = elem_of(dtype, v, a->elem);
}

om_tvalue *omi_lw_out(om_lowering *lw, om_tnode *n, uint32_t i, om_dtype dtype,
                      const om_xshape *s) {
    if (omi_failed() || !n) return NULL;
    om_tvalue *v = omi_tr_new_value(lw->tr, OM_TV_NODE, dtype, s ? s->rank : 0);
    if (!v) return NULL;
    for (int k = 0; s && k < s->rank; k++)
        v->e[k] = s->e[k];
    v->node      = n;
    v->out_index = i;
    n->out[i]    = v;
    return v;
}

om_tvalue *omi_lw_op(om_lowering *lw, const char *type, uint32_t n_in, om_tvalue *const *in,
                     om_dtype dtype, const om_xshape *s) {
    return omi_lw_out(lw, omi_lw_node(lw, type, n_in, in, 1), 0, dtype, s);
}

om_tvalue *omi_lw_scalar(om_lowering *lw, om_dtype dtype, double v) {
    uint8_t e[8];
    if (omi_failed()) return NULL;
    size_t n = elem_of(dtype, v, e);
    return omi_tr_literal(lw->tr, dtype, 0, NULL, e, n);
}

om_tvalue *omi_lw_list(om_lowering *lw, int64_t n, const int64_t *v) {
    if (omi_failed()) return NULL;
    return omi_tr_literal(lw->tr, OM_I64, 1, &n, v, (size_t)n * sizeof *v);
}

om_tvalue *omi_lw_filled(om_lowering *lw, om_dtype dtype, int rank, const int64_t *dims, double v) {
    uint8_t e[8];
    size_t size = elem_of(dtype, v, e), n = 1;
    if (omi_failed()) return NULL;
    for (int i = 0; i < rank; i++)
        n *= (size_t)dims[i];
    size_t room = n > 0 ? n * size : 1;
    char *bytes = omi_alloc(room);
    if (!bytes) return NULL;
    for (size_t i = 0; i < n; i++)
        memcpy(bytes + i * size, e, size);
    om_tvalue *r = omi_tr_literal(lw->tr, dtype, rank, dims, bytes, n * size);
    omi_free(bytes, room);
    return r;
}
