/*
 * conv.h -- Conv (2-D; 1-D with height 1) by AR-3 and its gradients by AR-8 and AR-11.2.
 *
 * Each is planned once and run as often as one likes (CD-30). A plan holds the geometry, the column
 * of kernels, every size and offset and the workspace's size, and no pointer to data, so a
 * session's step keeps it. Making one fails when a product of sizes does not fit; omi_conv_fits
 * says why, and after it no size below can overflow. Cost follows the data: what is copied and
 * looped over is bounded by outputs times stored weights, never by a stride, dilation or pad.
 *
 * All arrays contiguous float32: x [n,c,h,w], weight [oc,c/groups,kh,kw], bias [oc], y
 * [n,oc,oh,ow].
 */
#ifndef OM_COMPUTE_CONV_H
#define OM_COMPUTE_CONV_H

#include "base/buffer.h"
#include "compute/epilogue.h"
#include "compute/window.h"

typedef struct om_conv_geom {
    int64_t n, c, oc, groups; /* groups divide c and oc */
    om_window win;            /* of two axes            */
} om_conv_geom;

/* Multiply-adds above which a convolution is refused: days of work. */
#define OM_CONV_WORK ((int64_t)1 << 53)
/* Longest padded input along an axis. */
#define OM_CONV_EXTENT INT32_MAX

/* True when a convolution of this geometry and its gradients can be planned; else why[n] says what
 * is too large: "the padded extent 2147483649 is above 2147483647". */
bool omi_conv_fits(const om_conv_geom *g, char *why, size_t n);

/* A copy of input cells in the order that convolution kernels read: conv_pad.h. */
typedef struct om_padded {
    int64_t blocks, block_step, rows,
        row_step;                          /* block b, row r: input row b*block_step+r*row_step */
    int64_t parts, part_step, width, step; /* part p, cell i: column p*part_step + i*step       */
    int64_t row, plane;                    /* floats of a row, of a channel                     */
    int64_t out_step;                      /* floats from one row of outputs to the next        */
} om_padded;

/* ---- forward --------------------------------------------------------------------------------- */

typedef enum om_conv_way {
    OM_CONV_NOTHING,     /* no outputs                                         */
    OM_CONV_NO_CHANNELS, /* sums over nothing: the bias                        */
    OM_CONV_DEPTHWISE,   /* one input channel a group                          */
    OM_CONV_IN_PLACE,    /* 1x1, stride 1, no pads: x is read where it lies    */
    OM_CONV_COPIED       /* a chunk copies the input rows that it needs        */
} om_conv_way;

typedef struct om_conv_plan {
    om_conv_geom g;
    const om_kernels *kern;
    om_conv_way way;
    bool packed;                /* the run brings packed weights             */
    int64_t icg, ocg, taps, cb; /* channels of a group; in one chain         */
    int64_t pixels;             /* of an output image                        */
    om_padded pad;              /* of a chunk                                */
    int64_t part, parts;        /* output rows (in place: pixels) of a chunk */
    int64_t copied;             /* depthwise: channels copied at once */
    int64_t tiles, tile_part, tile_parts;
    int64_t own, packed_floats; /* floats per worker; of packed weights      */
    int workers;                /* 1 where the work is not worth more        */
    size_t ws_bytes;            /* of workspace, any alignment               */
} om_conv_plan;

/* What a run brings; bias, packed weights and epilogue may be NULL. The epilogue's rows are output
 * channels and its columns pixels; operands move by their `is` from image to image. */
typedef struct om_conv_ptrs {
    const float *x, *weight, *bias;
    const float *w_packed; /* from omi_conv_pack with the plan's column, iff plan.packed */
    float *y;
    const om_epilogue *ep;
} om_conv_ptrs;

bool omi_conv_plan(const om_conv_geom *g, bool packed, int workers, om_conv_plan *p);
void omi_conv_run(const om_conv_plan *p, const om_conv_ptrs *x, void *ws);

size_t omi_conv_pack_bytes(const om_conv_geom *g);
void omi_conv_pack(const om_conv_geom *g, const float *weight, float *dst);
/* Packed form of the weights at data + offset (elements), kept with the buffer (CD-25). */
const float *omi_conv_packed_cached(om_buffer *buf, int64_t offset, const om_conv_geom *g);

/* ---- by x: transposed convolution by AR-8 (existing taps only, input positions ascending) ---- */

/* Along an axis dx falls into phases, positions modulo the stride; a phase has its own taps. */
typedef struct om_gx_axis {
    int64_t phases, taps, most; /* phases with pixels; their taps in all; most of a phase */
    int64_t before, cells;      /* of dy with its padding                                 */
    int64_t lists;              /* int64 numbers of the lists                             */
} om_gx_axis;

typedef struct om_conv_gx_plan {
    om_conv_geom g;
    const om_kernels *kern;
    int64_t icg, ocg, area, cb;
    om_gx_axis axis[2];
    om_padded pad; /* of dy */
    int64_t tiles, tile_part, tile_parts;
    bool dense;                                            /* one phase: dx is written in place */
    int64_t lists, packed, masks, scratch, taps_area, own; /* floats */
    int workers;
    size_t ws_bytes;
} om_conv_gx_plan;

bool omi_conv_gx_plan(const om_conv_geom *g, int workers, om_conv_gx_plan *p);
void omi_conv_gx_run(const om_conv_gx_plan *p, const float *dy, const float *weight, float *dx,
                     void *ws);

/* ---- by the weights: AR-2.1 with k = (n, oh, ow), taps outside x are +0 -----------------------
 */

typedef struct om_conv_gw_plan {
    om_conv_geom g;
    const om_kernels *kern;
    int64_t icg, ocg, area, cols, panels, pixels, k, groups_k;
    om_padded pad;
    int64_t part, parts; /* panels of a chunk                    */
    int64_t slots;       /* > 0: groups of k into slots          */
    int64_t chans;       /* most channels of x in a chunk        */
    int64_t cols_area, pad_area, b_area, a_area, sum_area, own, slot_area; /* floats */
    int workers;
    size_t ws_bytes;
} om_conv_gw_plan;

bool omi_conv_gw_plan(const om_conv_geom *g, int workers, om_conv_gw_plan *p);
void omi_conv_gw_run(const om_conv_gw_plan *p, const float *dy, const float *x, float *dw,
                     void *ws);

#endif
