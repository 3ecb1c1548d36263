/*
 * conv.h -- Conv (2-D; 1-D with h = 1) by AR-3, its gradients by AR-8 and AR-11.2, and pooling.
 * All arrays contiguous float32: x [n,c,h,w], weight [oc,c/groups,kh,kw], bias [oc], y
 * [n,oc,oh,ow].
 */
#ifndef OM_COMPUTE_CONV_H
#define OM_COMPUTE_CONV_H

#include "base/buffer.h"
#include "compute/view.h"

typedef struct om_conv2d_geom {
    int64_t n, c, h, w, oc, kh, kw, oh, ow;
    int64_t stride[2], dilation[2];
    int64_t pad[4]; /* top, left, bottom, right */
    int64_t groups;
} om_conv2d_geom;

/* Output extent of a window; 0 when the kernel does not fit. */
OM_INLINE int64_t omi_window_out(int64_t in, int64_t k, int64_t stride, int64_t dilation,
                                 int64_t before, int64_t after) {
    int64_t room = in + before + after - dilation * (k - 1) - 1;
    return room < 0 ? 0 : room / stride + 1;
}

/* Whether every size that a plan of this convolution or of its gradients multiplies fits (CD-30):
 * weights, images, outputs and the padded image, whose extents go to rows and columns. Nothing
 * below is called for one that does not. */
bool omi_conv2d_fits(const om_conv2d_geom *g, int64_t *rows, int64_t *columns);

typedef struct om_conv2d_args {
    om_conv2d_geom g;
    const float *x, *weight, *bias; /* bias may be NULL */
    const float *w_packed;          /* from omi_conv2d_pack, or NULL */
    float *y;
} om_conv2d_args;
size_t omi_conv2d_workspace(const om_conv2d_geom *g, bool packed, int workers);
void omi_conv2d(const om_conv2d_args *a, void *ws, int workers);
size_t omi_conv2d_pack_bytes(const om_conv2d_geom *g);
void omi_conv2d_pack(const om_conv2d_geom *g, const float *weight, float *dst);
/* Packed form of the weights at data + offset (elements), kept with the buffer (CD-25). */
const float *omi_conv2d_packed_cached(om_buffer *buf, int64_t offset, const om_conv2d_geom *g);

/* dx: transposed convolution by AR-8 (existing taps only, input positions ascending). */
size_t omi_conv2d_grad_x_workspace(const om_conv2d_geom *g, int workers);
void omi_conv2d_grad_x(const om_conv2d_geom *g, const float *dy, const float *weight, float *dx,
                       void *ws, int workers);
/* dw: AR-2.1 with k = (n, oh, ow), taps outside x are +0. */
size_t omi_conv2d_grad_w_workspace(const om_conv2d_geom *g, int workers);
void omi_conv2d_grad_w(const om_conv2d_geom *g, const float *dy, const float *x, float *dw,
                       void *ws, int workers);

typedef struct om_pool2d_geom {
    int64_t planes, h, w, kh, kw, oh, ow; /* planes = n*c */
    int64_t stride[2], dilation[2], pad[4];
    bool include_pad; /* AveragePool: the divisor counts padded cells (never a ceil overhang) */
} om_pool2d_geom;
/* Output extent with ceil_mode: the last window must start inside the input or the left pad. */
int64_t omi_pool_out(int64_t in, int64_t k, int64_t stride, int64_t dilation, int64_t before,
                     int64_t after, bool ceil_mode);
/* MaxPool by AR-1.5 over existing taps; a window without a tap gives -inf. */
void omi_maxpool2d(const om_pool2d_geom *g, const float *x, float *y);
/* g to the first tap equal to the maximum, or the first NaN; adds in output order (AR-11.2). */
void omi_maxpool2d_grad(const om_pool2d_geom *g, const float *x, const float *dy, float *dx);
void omi_avgpool2d(const om_pool2d_geom *g, const float *x, float *y);
void omi_avgpool2d_grad(const om_pool2d_geom *g, const float *dy, float *dx);

/* Layout NCHW16c: [n, ceil(c/16), h, w, 16], missing channels zero. */
void omi_to_nchw16c(int64_t n, int64_t c, int64_t hw, const float *x, float *y);
void omi_from_nchw16c(int64_t n, int64_t c, int64_t hw, const float *x, float *y);

#endif
