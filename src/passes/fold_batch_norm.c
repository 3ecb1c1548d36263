/*
 * fold_batch_norm.c -- a BatchNormalization of constants goes into the weights of the convolution
 * before it.
 *
 * Bits: the weights round anew, so this is Fast only.
 */
#include <math.h>
#include <string.h>

#include "base/alloc.h"
#include "graphops/forms.h"
#include "passes/program.h"

static bool is_type(const om_pnode *n, const char *type) {
    return n->def && strcmp(n->def->type, type) == 0;
}

static bool constant_floats(const om_program *p, uint32_t v, int64_t n) {
    if (v == OM_NO_VALUE) return false;
    const om_pval *x = &p->values[v];
    return x->known && x->dtype == OM_F32 && x->numel == n;
}

/* w' = w * s, b' = (b - mean) * s + beta with s = gamma / sqrt(var + eps), in float64, rounded
 * once. */
static om_status scale_weights(om_program *p, const om_pnode *conv, const om_pnode *bn, float eps,
                               uint32_t *w_new, uint32_t *b_new) {
    const om_pval *w = &p->values[conv->in[1]];
    const float *b =
        conv->n_in > 2 && conv->in[2] != OM_NO_VALUE ? p->values[conv->in[2]].known : NULL;
    const float *gamma = p->values[bn->in[1]].known, *beta = p->values[bn->in[2]].known,
                *mean = p->values[bn->in[3]].known, *var = p->values[bn->in[4]].known;
    const float *from = w->known;
    int64_t oc = w->shape[0], each = w->numel / oc;
    om_buffer *wb = omi_buffer_new(omi_pval_bytes(w)),
              *bb = omi_buffer_new((size_t)oc * sizeof(float));
    if (!wb || !bb) return omi_buffer_release(wb), omi_buffer_release(bb), OM_ERR_NOMEM;
    float *wo = wb->data, *bo = bb->data;
    for (int64_t o = 0; o < oc; o++) {
        double s = (double)gamma[o] / sqrt((double)var[o] + (double)eps);
        for (int64_t i = 0; i < each; i++)
            wo[o * each + i] = (float)(from[o * each + i] * s);
        bo[o] = (float)(((b ? (double)b[o] : 0.0) - mean[o]) * s + beta[o]);
    }
    *w_new = omi_program_add_const(p, w->name, OM_F32, w->rank, w->shape, wb);
    if (*w_new == OM_NO_VALUE) return omi_buffer_release(bb), om_pending();
    *b_new = omi_program_add_const(p, p->values[bn->in[2]].name, OM_F32, 1, &oc, bb);
    return *b_new == OM_NO_VALUE ? om_pending() : OM_OK;
}

static om_status fold_pair(om_program *p, om_pnode *conv, om_pnode *bn) {
    const om_pval *w = &p->values[conv->in[1]];
    float eps        = ((const om_batch_norm_form *)bn->form)->eps;
    if (!w->known || w->dtype != OM_F32 || w->rank < 3 || w->numel == 0) return OM_OK;
    int64_t oc = w->shape[0];
    for (int i = 1; i < 5; i++)
        if (!constant_floats(p, bn->in[i], oc)) return OM_OK;
    if (conv->n_in > 2 && conv->in[2] != OM_NO_VALUE && !constant_floats(p, conv->in[2], oc))
        return OM_OK;
    uint32_t w_new, b_new;
    uint32_t *in = omi_arena_array(&p->arena, 3, sizeof *in);
    if (!in) return OM_ERR_NOMEM;
    OM_TRY(scale_weights(p, conv, bn, eps, &w_new, &b_new));
    in[0]        = conv->in[0];
    in[1]        = w_new;
    in[2]        = b_new;
    conv->in     = in;
    conv->n_in   = 3;
    conv->out[0] = bn->out[0];
    bn->def      = NULL;
    if (p->max_io < 4) p->max_io = 4;
    return OM_OK;
}

om_status omi_pass_fold_batch_norm(om_program *p) {
    size_t bytes   = (p->n_values + 1u) * 2 * sizeof(uint32_t);
    uint32_t *uses = omi_calloc(bytes), *producer = uses ? uses + p->n_values : NULL;
    om_status s       = uses ? OM_OK : OM_ERR_NOMEM;
    uint32_t n_values = p->n_values;
    for (uint32_t i = 0; s == OM_OK && i < p->n_nodes; i++) {
        const om_pnode *n = &p->nodes[i];
        for (uint32_t k = 0; n->def && k < n->n_in; k++)
            if (n->in[k] != OM_NO_VALUE) uses[n->in[k]]++;
        for (uint32_t k = 0; n->def && k < n->n_out; k++)
            if (n->out[k] != OM_NO_VALUE) producer[n->out[k]] = i + 1;
    }
    for (uint32_t i = 0; s == OM_OK && i < p->n_outputs; i++)
        uses[p->outputs[i]]++;
    for (uint32_t i = 0; s == OM_OK && i < p->n_nodes; i++) {
        om_pnode *bn = &p->nodes[i];
        if (!is_type(bn, "BatchNormalization") || bn->in[0] >= n_values || uses[bn->in[0]] != 1)
            continue;
        uint32_t at = producer[bn->in[0]];
        if (at && is_type(&p->nodes[at - 1], "Conv")) s = fold_pair(p, &p->nodes[at - 1], bn);
    }
    omi_free(uses, bytes);
    return s;
}
