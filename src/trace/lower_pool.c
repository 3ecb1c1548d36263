/*
 * lower_pool.c -- MaxPool2d, AvgPool2d, AdaptiveAvgPool2d (operators 1.8).
 */
#include "compute/adaptive.h"
#include "trace/lower.h"

/* Batch and channels carried, space a window of the given geometry. */
static bool pool_extents(om_lowering *lw, const om_tvalue *x, const int64_t *kernel,
                         const int64_t *stride, const int64_t *pads, const int64_t *dilation,
                         bool ceil, om_xshape *s) {
    const om_tensor *y = lw->call->out[0];
    *s                 = omi_lw_shape_of(x);
    for (int i = 0; i < 2; i++)
        if (!omi_ext_window(lw->tr->atoms, &x->e[2 + i], kernel[i], stride[i], pads[i], pads[2 + i],
                            dilation[i], ceil, y->shape[2 + i], &s->e[2 + i]))
            return false;
    return true;
}

static om_status lower_max_pool2d(om_lowering *lw, const om_call *call, om_tvalue *const *in,
                                  om_tvalue **out) {
    const om_max_pool2d_raw *raw = call->raw;
    om_xshape s;
    if (!pool_extents(lw, in[0], raw->kernel.v, raw->stride.v, raw->pads.v, raw->dilation.v,
                      raw->ceil_mode != 0, &s))
        return omi_lw_done();
    om_tnode *n = omi_lw_node(lw, "MaxPool", OMI_INS(in[0]), 1);
    omi_lw_ints(lw, n, "kernel_shape", 2, raw->kernel.v);
    omi_lw_ints(lw, n, "strides", 2, raw->stride.v);
    omi_lw_ints(lw, n, "pads", 4, raw->pads.v);
    omi_lw_ints(lw, n, "dilations", 2, raw->dilation.v);
    omi_lw_int(lw, n, "ceil_mode", raw->ceil_mode);
    out[0] = omi_lw_out(lw, n, 0, (om_dtype)call->out[0]->dtype, &s);
    return omi_lw_done();
}
const om_lower_rule omi_lower_max_pool2d = {.emit = lower_max_pool2d};

static om_tvalue *average_pool(om_lowering *lw, om_tvalue *x, const int64_t *kernel,
                               const int64_t *stride, const int64_t *pads, bool ceil,
                               bool include_pad) {
    om_xshape s;
    if (!pool_extents(lw, x, kernel, stride, pads, (int64_t[]){1, 1}, ceil, &s)) return NULL;
    om_tnode *n = omi_lw_node(lw, "AveragePool", OMI_INS(x), 1);
    omi_lw_ints(lw, n, "kernel_shape", 2, kernel);
    omi_lw_ints(lw, n, "strides", 2, stride);
    omi_lw_ints(lw, n, "pads", 4, pads);
    omi_lw_int(lw, n, "ceil_mode", ceil);
    omi_lw_int(lw, n, "count_include_pad", include_pad);
    return omi_lw_out(lw, n, 0, (om_dtype)lw->call->out[0]->dtype, &s);
}

static om_status lower_avg_pool2d(om_lowering *lw, const om_call *call, om_tvalue *const *in,
                                  om_tvalue **out) {
    const om_avg_pool2d_raw *raw = call->raw;
    out[0] = average_pool(lw, in[0], raw->kernel.v, raw->stride.v, raw->pads.v, raw->ceil_mode != 0,
                          raw->include_pad != 0);
    return omi_lw_done();
}
const om_lower_rule omi_lower_avg_pool2d = {.emit = lower_avg_pool2d};

/* A literal averaging matrix [cells, size], or its transpose. */
static om_tvalue *averaging(om_lowering *lw, int64_t size, int64_t cells, bool transposed) {
    size_t bytes = (size_t)size * (size_t)cells * sizeof(float);
    float *m     = omi_failed() ? NULL : omi_alloc(bytes);
    if (!m) return NULL;
    omi_adaptive_matrix(size, cells, transposed, m);
    int64_t dims[2] = {transposed ? size : cells, transposed ? cells : size};
    om_tvalue *v    = omi_tr_literal(lw->tr, OM_F32, 2, dims, m, bytes);
    omi_free(m, bytes);
    return v;
}

/* MatMul(Ph, MatMul(x, Pw^T)): cells that do not divide the image. */
static om_tvalue *by_matrices(om_lowering *lw, om_tvalue *x, const int64_t *cells) {
    om_xshape s   = omi_lw_shape_of(x);
    om_tvalue *pw = averaging(lw, x->e[3].size, cells[1], true);
    om_tvalue *ph = averaging(lw, x->e[2].size, cells[0], false);
    s.e[3]        = omi_ext_static(cells[1]);
    om_tvalue *t  = omi_lw_op(lw, "MatMul", OMI_INS(x, pw), OM_F32, &s);
    s.e[2]        = omi_ext_static(cells[0]);
    return omi_lw_op(lw, "MatMul", OMI_INS(ph, t), OM_F32, &s);
}

static om_status lower_adaptive_avg_pool2d(om_lowering *lw, const om_call *call,
                                           om_tvalue *const *in, om_tvalue **out) {
    const om_adaptive_avg_pool2d_raw *raw = call->raw;
    om_tvalue *x                          = in[0];
    const int64_t *cells                  = raw->out.v;
    if (cells[0] == 1 && cells[1] == 1) {
        om_xshape s = omi_lw_shape_of(x);
        s.e[2] = s.e[3] = omi_ext_static(1);
        out[0]          = omi_lw_op(lw, "GlobalAveragePool", OMI_INS(x), OM_F32, &s);
        return omi_lw_done();
    }
    for (int i = 0; i < 2; i++)
        if (!omi_lw_need_static(lw, 0, x, 2 + i, "is cut into a fixed number of cells"))
            return omi_lw_done();
    int64_t h = x->e[2].size, w = x->e[3].size, kernel[2] = {h / cells[0], w / cells[1]};
    if (h % cells[0] == 0 && w % cells[1] == 0)
        out[0] = average_pool(lw, x, kernel, kernel, (int64_t[]){0, 0, 0, 0}, false, false);
    else
        out[0] = by_matrices(lw, x, cells);
    return omi_lw_done();
}
const om_lower_rule omi_lower_adaptive_avg_pool2d = {.emit = lower_adaptive_avg_pool2d};
