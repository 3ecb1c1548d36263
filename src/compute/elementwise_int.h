/*
 * elementwise_int.h -- element-wise inner loops outside the kernel table: float64, integers, bool.
 * Used by elementwise.c only.
 */
#ifndef OM_COMPUTE_ELEMENTWISE_INT_H
#define OM_COMPUTE_ELEMENTWISE_INT_H

#include "compute/elementwise.h"

typedef void (*omi_unary_plain_fn)(int64_t n, const void *x, void *y);
typedef void (*omi_binary_plain_fn)(int64_t n, const void *a, int sa, const void *b, int sb,
                                    void *y);
/* NULL where AR-9 gives the pair no meaning here. */
omi_unary_plain_fn omi_unary_plain(om_unary_kind k, om_dtype t);
omi_binary_plain_fn omi_binary_plain(om_binary_kind k, om_dtype t);
void omi_clip_plain(om_dtype t, int64_t n, const void *x, const void *lo, const void *hi, void *y);

/* Max and Min of AR-1.5 in float64. */
double omi_max_f64(double a, double b);
double omi_min_f64(double a, double b);

#endif
