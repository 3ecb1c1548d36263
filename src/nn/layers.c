/*
 * layers.c -- layers with parameters, dropout among them: Linear, Conv2d, BatchNorm2d, LayerNorm,
 * Embedding.
 *
 * A constructor checks its sizes, makes the module with a copy of its settings, and registers
 * tensors in PyTorch's order, drawing from stream 0 of the thread's generator. Bounds of the
 * initialisers are computed in double and rounded once; sqrt is the only function used, exact in
 * IEEE (AR-12.6, CD-22).
 */
#include <math.h>
#include <string.h>

#include "base/checked.h"
#include "base/opts.h"
#include "nn/module.h"

struct om_layer_config {
    bool has_bias, has_weight;
    int64_t padding_idx;
    int norm_axes;
    float eps, momentum, p;
    om_conv2d_opts conv;
};
typedef struct om_layer_config layer;

static void layer_free(void *ctx) {
    omi_free(ctx, sizeof(layer));
}

static om_module *layer_new(const char *kind, om_forward_fn forward, const layer *config) {
    layer *c = omi_failed() ? NULL : omi_alloc(sizeof *c);
    if (!c) return NULL;
    *c = *config;
    return omi_module_new(kind, forward, c, layer_free);
}

/* Registers a fresh tensor; the scope lets it go to the module. False and raised. */
static bool add_uniform(om_module *m, const char *name, double bound, int rank,
                        const int64_t *dims) {
    if (!m || omi_failed()) return false;
    om_scope s = om_scope_begin();
    float b    = (float)bound;
    om_nn_parameter(m, name, om_rand(om_thread_rng(0), -b, b, rank, dims));
    return om_scope_end(s) == OM_OK;
}

static bool add_full(om_module *m, const char *name, double v, bool buffer, int rank,
                     const int64_t *dims) {
    if (!m || omi_failed()) return false;
    om_scope s   = om_scope_begin();
    om_tensor *t = om_full(v, OM_F32, rank, dims);
    if (buffer)
        om_nn_buffer(m, name, t);
    else
        om_nn_parameter(m, name, t);
    return om_scope_end(s) == OM_OK;
}

/* What a constructor returns: the module, or nothing when a step failed. */
static om_module *finished(om_module *m) {
    if (!omi_failed()) return m;
    omi_module_free(m);
    return NULL;
}

/* The bounds of PyTorch's reset_parameters: kaiming_uniform with a = sqrt(5), which comes to
 * sqrt(3) * sqrt(2 / (1 + a*a)) / sqrt(fan_in), in this order of operations, for the weight; 1 /
 * sqrt(fan_in) for the bias. */
static double weight_bound(int64_t fan_in) {
    double a    = sqrt(5.0);
    double gain = sqrt(2.0 / (1.0 + a * a));
    double std  = gain / sqrt((double)fan_in);
    return sqrt(3.0) * std;
}
static double bias_bound(int64_t fan_in) {
    return 1.0 / sqrt((double)fan_in);
}

static bool positive(int64_t v, const char *what) {
    if (v >= 1) return true;
    omi_fail(OM_ERR_ARG, "%s is %lld; it must be at least 1", what, (long long)v);
    return false;
}

/* ---- Linear -------------------------------------------------------------------------------- */

static om_tensor *linear_forward(void *ctx, om_module *m, om_tensor *x) {
    const layer *c = ctx;
    return om_linear(x, m->params.v[0].t, c->has_bias ? m->params.v[1].t : NULL);
}

om_module *om_nn_linear(int64_t in, int64_t out, const om_linear_opts *opts) {
    OMI_ENTER("om_nn_linear");
    if (omi_failed() || !positive(in, "in") || !positive(out, "out")) return NULL;
    om_linear_opts o;
    if (!OMI_OPTS(&o, opts, no_bias)) return NULL;
    layer c      = {.has_bias = !o.no_bias};
    om_module *m = layer_new("linear", linear_forward, &c);
    add_uniform(m, "weight", weight_bound(in), OM_DIMS(out, in));
    if (c.has_bias) add_uniform(m, "bias", bias_bound(in), OM_DIMS(out));
    return finished(m);
}

/* ---- Conv2d -------------------------------------------------------------------------------- */

static om_tensor *conv2d_forward(void *ctx, om_module *m, om_tensor *x) {
    const layer *c = ctx;
    return om_conv2d(x, m->params.v[0].t, c->has_bias ? m->params.v[1].t : NULL, &c->conv);
}

om_module *om_nn_conv2d(int64_t in, int64_t out, int64_t kh, int64_t kw,
                        const om_conv2d_opts *opts) {
    OMI_ENTER("om_nn_conv2d");
    if (omi_failed() || !positive(in, "in") || !positive(out, "out") || !positive(kh, "kh") ||
        !positive(kw, "kw"))
        return NULL;
    layer c = {0};
    if (!OMI_OPTS(&c.conv, opts, no_bias)) return NULL;
    c.has_bias     = !c.conv.no_bias;
    int64_t groups = c.conv.groups ? c.conv.groups : 1, fan_in;
    if (groups < 1 || in % groups || out % groups)
        OM_FAIL_NULL(OM_ERR_ARG, "groups is %lld; it must divide in (%lld) and out (%lld)",
                     (long long)groups, (long long)in, (long long)out);
    if (!omi_product((const int64_t[]){in / groups, kh, kw}, 3, &fan_in))
        OM_FAIL_NULL(OM_ERR_SHAPE, "a kernel of [%lld,%lld,%lld] is too large",
                     (long long)(in / groups), (long long)kh, (long long)kw);
    om_module *m = layer_new("conv2d", conv2d_forward, &c);
    add_uniform(m, "weight", weight_bound(fan_in), OM_DIMS(out, in / groups, kh, kw));
    if (c.has_bias) add_uniform(m, "bias", bias_bound(fan_in), OM_DIMS(out));
    return finished(m);
}

/* ---- norms --------------------------------------------------------------------------------- */

static bool norm_config(const om_norm_opts *opts, layer *c) {
    om_norm_opts o;
    if (!OMI_OPTS(&o, opts, no_bias)) return false;
    c->eps        = o.eps != 0.0f ? o.eps : 1e-5f;
    c->momentum   = o.momentum != 0.0f ? o.momentum : 0.1f;
    c->has_weight = !o.no_affine;
    c->has_bias   = c->has_weight && !o.no_bias;
    if (c->eps > 0.0f && c->momentum > 0.0f && c->momentum <= 1.0f) return true;
    omi_fail(OM_ERR_ARG, "eps is %g and momentum %g; eps must be above 0, momentum in (0, 1]",
             (double)c->eps, (double)c->momentum);
    return false;
}

static om_tensor *batch_norm2d_forward(void *ctx, om_module *m, om_tensor *x) {
    const layer *c       = ctx;
    const om_slot *b     = m->buffers.v;
    bool affine          = c->has_weight;
    om_batch_norm_opts o = {
        .struct_size = sizeof o, .training = m->training, .eps = c->eps, .momentum = c->momentum};
    om_tensor *y = om_batch_norm2d(x, affine ? m->params.v[0].t : NULL,
                                   affine ? m->params.v[1].t : NULL, b[0].t, b[1].t, &o);
    if (y && m->training) {
        int64_t *count = omi_ptr_mut(b[2].t, "om_batch_norm2d");
        if (!count) return NULL;
        *count += 1;
    }
    return y;
}

om_module *om_nn_batch_norm2d(int64_t channels, const om_norm_opts *opts) {
    OMI_ENTER("om_nn_batch_norm2d");
    layer c = {0};
    if (omi_failed() || !positive(channels, "channels") || !norm_config(opts, &c)) return NULL;
    om_module *m = layer_new("batch_norm2d", batch_norm2d_forward, &c);
    if (c.has_weight) {
        add_full(m, "weight", 1, false, OM_DIMS(channels));
        add_full(m, "bias", 0, false, OM_DIMS(channels));
    }
    add_full(m, "running_mean", 0, true, OM_DIMS(channels));
    add_full(m, "running_var", 1, true, OM_DIMS(channels));
    if (m && !omi_failed()) {
        om_scope s = om_scope_begin();
        om_nn_buffer(m, "num_batches_tracked", om_scalar_i64(0));
        (void)om_scope_end(s);
    }
    return finished(m);
}

static om_tensor *layer_norm_forward(void *ctx, om_module *m, om_tensor *x) {
    const layer *c = ctx;
    om_tensor *w   = c->has_weight ? m->params.v[0].t : NULL;
    return om_layer_norm(x, c->norm_axes, w, c->has_bias ? m->params.v[1].t : NULL, c->eps);
}

om_module *om_nn_layer_norm(int rank, const int64_t *dims, const om_norm_opts *opts) {
    OMI_ENTER("om_nn_layer_norm");
    layer c = {.norm_axes = rank};
    if (omi_failed() || !norm_config(opts, &c)) return NULL;
    if (rank < 1 || rank > OM_MAX_RANK || !dims)
        OM_FAIL_NULL(OM_ERR_ARG, "rank is %d; layer norm goes over 1 to %d axes", rank,
                     OM_MAX_RANK);
    for (int i = 0; i < rank; i++)
        if (!positive(dims[i], "a size")) return NULL;
    om_module *m = layer_new("layer_norm", layer_norm_forward, &c);
    if (c.has_weight) add_full(m, "weight", 1, false, rank, dims);
    if (c.has_bias) add_full(m, "bias", 0, false, rank, dims);
    return finished(m);
}

/* ---- Embedding ----------------------------------------------------------------------------- */

static om_tensor *embedding_forward(void *ctx, om_module *m, om_tensor *x) {
    const layer *c = ctx;
    return om_embedding(m->params.v[0].t, x, c->padding_idx);
}

om_module *om_nn_embedding(int64_t rows, int64_t dim, const om_embedding_opts *opts) {
    OMI_ENTER("om_nn_embedding");
    om_embedding_opts o;
    if (omi_failed() || !OMI_OPTS(&o, opts, padding_idx)) return NULL;
    layer c = {.padding_idx = o.has_padding ? o.padding_idx : -1};
    if (!positive(rows, "rows") || !positive(dim, "dim")) return NULL;
    if (o.has_padding && (c.padding_idx < 0 || c.padding_idx >= rows))
        OM_FAIL_NULL(OM_ERR_ARG, "padding_idx is %lld; it must be a row, 0 to %lld",
                     (long long)c.padding_idx, (long long)(rows - 1));
    om_module *m = layer_new("embedding", embedding_forward, &c);
    if (!m) return NULL;
    om_scope s   = om_scope_begin();
    om_tensor *w = om_randn(om_thread_rng(0), 0.0f, 1.0f, OM_DIMS(rows, dim));
    if (w && c.padding_idx >= 0) {
        float *p = omi_ptr_mut(w, "om_nn_embedding");
        if (p) memset(p + c.padding_idx * dim, 0, (size_t)dim * sizeof *p);
    }
    om_nn_parameter(m, "weight", w);
    (void)om_scope_end(s);
    return finished(m);
}

/* ---- Dropout ------------------------------------------------------------------------------- */

static om_tensor *dropout_forward(void *ctx, om_module *m, om_tensor *x) {
    const layer *c = ctx;
    return om_dropout(x, c->p, m->training, NULL);
}

om_module *om_nn_dropout(float p) {
    OMI_ENTER("om_nn_dropout");
    if (omi_failed()) return NULL;
    if (!(p >= 0.0f && p <= 1.0f))
        OM_FAIL_NULL(OM_ERR_ARG, "p is %g; a probability is 0 to 1", (double)p);
    layer c = {.p = p};
    return finished(layer_new("dropout", dropout_forward, &c));
}
