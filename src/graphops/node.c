/*
 * node.c -- what the rows of opset.def share: reporting, sizes, and the making of steps.
 *
 * Everything here reads files nobody vouches for: every size goes through omi_out_shape.
 */
#include "graphops/node.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/checked.h"
#include "base/str.h"
#include "base/utf8.h"
#include "compute/shape_rules.h"

/* ---- reporting ---------------------------------------------------------------------------------
 */

bool omi_hold(om_nctx *c, size_t bytes) {
    if (c->limit && (c->held > c->limit || bytes > c->limit - c->held)) {
        omi_problem(c, OM_ERR_LIMIT,
                    "its packed weights need %zu bytes more than memory_limit, %zu, has left",
                    bytes - (c->limit - (c->held > c->limit ? c->limit : c->held)), c->limit);
        return false;
    }
    c->held += bytes;
    return true;
}

om_status omi_problem(om_nctx *c, om_status s, const char *fmt, ...) {
    if (c->status != OM_OK) return c->status;
    c->status = s;
    char text[300]; // names in it come from files: escaped as a whole
    va_list ap;
    va_start(ap, fmt);
    omi_vformat(text, sizeof text, fmt, ap);
    va_end(ap);
    omi_escape_buf(c->message, sizeof c->message, text, strlen(text));
    return s;
}

const char *omi_elem_name(int32_t t) {
    return omi_dtype_computed(t) ? om_dtype_name((om_dtype)t) : omi_onnx_type_name(t);
}

/* ---- types and sizes ----------------------------------------------------------------------------
 */

om_status omi_parse_none(om_nctx *c) {
    (void)c;
    return OM_OK;
}

om_status omi_out_type(om_nctx *c, uint32_t k, int32_t dtype) {
    if (k < c->n_out && c->out[k]) c->out[k]->dtype = dtype;
    return OM_OK;
}

bool omi_numel_of(int32_t dtype, int rank, const int64_t *shape, int64_t *numel) {
    int64_t bytes = dtype > 0 ? (int64_t)omi_onnx_elem_size(dtype) : 1, n = 1;
    if (bytes < 1) bytes = 1;
    for (int i = 0; i < rank; i++) {
        if (shape[i] < 0 || !omi_mul_i64(bytes, shape[i] ? shape[i] : 1, &bytes) ||
            bytes > OM_VALUE_LIMIT)
            return false;
        n *= shape[i];
    }
    return *numel = n, true;
}

om_status omi_out_shape(om_nctx *c, uint32_t k, int rank, const int64_t *shape) {
    if (k >= c->n_out || !c->out[k]) return OM_OK;
    om_pval *v = c->out[k];
    char text[128];
    if (rank < 0 || rank > OM_MAX_RANK)
        return omi_problem(c, OM_ERR_UNSUPPORTED,
                           "output '%.60s' has rank %d; up to %d are computed", v->name, rank,
                           OM_MAX_RANK);
    for (int i = 0; i < rank; i++)
        if (shape[i] < 0)
            return omi_problem(c, OM_ERR_SHAPE, "output '%.60s' would have sizes %s", v->name,
                               omi_shape_text(text, sizeof text, rank, shape));
    if (!omi_numel_of(v->dtype, rank, shape, &v->numel))
        return omi_problem(c, OM_ERR_LIMIT, "output '%.60s' of sizes %s is larger than 1 TiB",
                           v->name, omi_shape_text(text, sizeof text, rank, shape));
    v->rank = rank;
    for (int i = 0; i < rank; i++)
        v->shape[i] = shape[i];
    return OM_OK;
}

om_status omi_out_like(om_nctx *c, uint32_t k, const om_pval *v) {
    return omi_out_shape(c, k, v->rank, v->shape);
}

static om_status broadcast_problem(om_nctx *c, const om_pval *a, const om_pval *b) {
    char sa[128], sb[128];
    return omi_problem(c, OM_ERR_SHAPE, "'%.60s' %s and '%.60s' %s cannot be broadcast together",
                       a->name, omi_shape_text(sa, sizeof sa, a->rank, a->shape), b->name,
                       omi_shape_text(sb, sizeof sb, b->rank, b->shape));
}

om_status omi_broadcast(om_nctx *c, uint32_t n, om_pval *const *v, int *rank, int64_t *shape) {
    int r = 0;
    for (uint32_t i = 0; i < n; i++)
        if (v[i] && v[i]->rank > r) r = v[i]->rank;
    const om_pval *from[OM_MAX_RANK] = {0};
    for (int k = 0; k < r; k++)
        shape[k] = 1;
    for (uint32_t i = 0; i < n; i++) {
        if (!v[i]) continue;
        for (int k = 0; k < v[i]->rank; k++) {
            int to    = r - v[i]->rank + k;
            int64_t s = v[i]->shape[k];
            if (s == 1) continue;
            if (!omi_rule_broadcast(shape[to], s, &shape[to]))
                return broadcast_problem(c, from[to], v[i]);
            from[to] = v[i];
        }
    }
    *rank = r;
    return OM_OK;
}

om_status omi_out_broadcast(om_nctx *c) {
    int rank = 0;
    int64_t shape[OM_MAX_RANK];
    OM_TRY(omi_broadcast(c, c->n_in, c->in, &rank, shape));
    return omi_out_shape(c, 0, rank, shape);
}

om_status omi_norm_axis(om_nctx *c, int64_t axis, int rank, int *out) {
    if (omi_rule_axis(axis, rank, out)) return OM_OK;
    return omi_problem(c, OM_ERR_SHAPE, "axis %lld is outside rank %d", (long long)axis, rank);
}

/* ---- fold ---------------------------------------------------------------------------------------
 */

bool omi_fold_known(const om_nctx *c) {
    for (uint32_t i = 0; i < c->n_in; i++)
        if (c->in[i] && !c->in[i]->known && c->in[i]->numel) return false;
    return true;
}

bool omi_fold_always(const om_nctx *c) {
    (void)c;
    return true;
}

/* ---- steps ----------------------------------------------------------------------------------- */

om_run_step *omi_step(om_nctx *c, om_step_fn run, size_t args_size) {
    om_run_step *s = omi_arena_alloc(c->arena, sizeof *s);
    if (!s) return NULL;
    s->run  = run;
    s->node = c->index;
    if (args_size && !(s->args = omi_arena_alloc(c->arena, args_size))) return NULL;
    s->n_in  = c->n_in;
    s->n_out = c->n_out;
    s->in    = omi_arena_array(c->arena, c->n_in + c->n_out, sizeof *s->in);
    if (!s->in) return NULL;
    s->out = s->in + c->n_in;
    for (uint32_t i = 0; i < c->n_in; i++)
        s->in[i] = c->in[i] ? c->in[i]->index : OM_NO_VALUE;
    for (uint32_t i = 0; i < c->n_out; i++)
        s->out[i] = c->out[i] ? c->out[i]->index : OM_NO_VALUE;
    return s;
}

om_run_step *omi_step_view(om_nctx *c, int64_t offset) {
    om_run_step *s = omi_step(c, NULL, 0);
    if (!s || !(s->views = omi_arena_array(c->arena, c->n_out, sizeof *s->views))) return NULL;
    s->views[0] = offset;
    return s;
}

om_status omi_step_fail(const om_run_step *s, const om_exec *x, om_status st, const char *fmt,
                        ...) {
    char text[200], node[160];
    va_list ap;
    va_start(ap, fmt);
    omi_vformat(text, sizeof text, fmt, ap);
    va_end(ap);
    return omi_fail(st, "%s: %s", omi_node_text(x->graph, s->node, node, sizeof node), text);
}

om_ref omi_ref(const om_pval *v) {
    om_ref r = {.value = v->index, .v = {.dtype = (om_dtype)v->dtype, .rank = v->rank}};
    for (int i = 0; i < v->rank; i++)
        r.v.shape[i] = v->shape[i];
    omi_view_pack_strides(&r.v);
    return r;
}

om_ref omi_ref_as(const om_pval *v, int rank, const int64_t *shape) {
    om_ref r = omi_ref(v);
    r.v      = omi_view_broadcast(&r.v, rank, shape);
    return r;
}
