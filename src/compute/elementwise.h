/*
 * elementwise.h -- nodes that act on each element: unary, binary, comparison, logic, Where, Cast.
 *
 * Bits: AR-5 for the correctly rounded functions, AR-7.5 for each node, AR-9.1 for integers, AR-9.2
 * for casts, AR-1.5 for Max, Min and Relu. Inputs of two- and three-operand functions have the
 * output's shape (broadcast axes have stride 0). Types: float32 throughout; float64, int64, int32
 * and uint8 where AR-9 gives a meaning (see omi_unary_supports, omi_binary_supports). The kinds are
 * the rows of unary.def and binary.def.
 */
#ifndef OM_COMPUTE_ELEMENTWISE_H
#define OM_COMPUTE_ELEMENTWISE_H

#include "compute/view.h"

// clang-format off
typedef enum om_unary_kind {
#define OM_UNARY(name, ID, types, saves, loop, made, node, since, node_types, attrs, gradient) OM_U_##ID,
#include "compute/unary.def"
#undef OM_UNARY
    OM_U_COUNT
} om_unary_kind;

typedef enum om_binary_kind {
#define OM_BINARY(name, OP, ID, types, result, saves, backward, loop, kernel, made, node, since, node_types, gradient) OM_B_##ID,
#include "compute/binary.def"
#undef OM_BINARY
    OM_B_COUNT
} om_binary_kind;
// clang-format on

/* What a gradient reads, and so what a record saves. */
typedef enum om_unary_saves {
    OM_SAVES_NO_GRADIENT,
    OM_SAVES_NOTHING,
    OM_SAVES_IN,
    OM_SAVES_OUT
} om_unary_saves;

bool omi_unary_supports(om_unary_kind k, om_dtype t);
bool omi_binary_supports(om_binary_kind k, om_dtype t);

/* y = f(x). y contiguous; x any strides; y may be x. fast: the 1 to 2 ulp exp, tanh (and what is
 * built from them) of Fast mode; everything else has the same bits in both modes. */
void omi_unary(om_unary_kind k, const om_view *x, const om_view *y, bool fast);

/* y = a op b. Integer division by zero gives 0: callers scan with omi_any_zero first (AR-9.1).
 * y may be a or b when those are contiguous. */
void omi_binary(om_binary_kind k, const om_view *a, const om_view *b, const om_view *y);
/* True when an element of an integer view is zero. */
bool omi_any_zero(const om_view *x);

/* y = Min(Max(x, lo), hi); NULL for an absent bound. lo, hi point to one element of x's type. */
void omi_clip(const om_view *x, const void *lo, const void *hi, const om_view *y);

/* y = c ? a : b; any element type, by size. */
void omi_where(const om_view *c, const om_view *a, const om_view *b, const om_view *y);

/* y = x converted, AR-9.2. */
void omi_cast(const om_view *x, const om_view *y);

/* Gradients (AR-11.2). s is what the record saved, x or y; g the incoming gradient; dx contiguous,
 * and may be g itself.
 * The formula is that of docs/operators.md, rounded step by step, left to right. */
om_unary_saves omi_unary_saves_of(om_unary_kind k);
void omi_unary_grad(om_unary_kind k, const om_view *s, const om_view *g, const om_view *dx);
/* dx = lo <= x <= hi ? g : 0. */
void omi_clip_grad(const om_view *x, const void *lo, const void *hi, const om_view *g,
                   const om_view *dx);
/* Max/Min: da = (a wins) ? g : tie ? g * 0.5 : 0, where "wins" follows AR-1.5 for values (ties are
 * a == b); a NaN on one side takes the whole gradient. db likewise. Either may be NULL. */
void omi_maxmin_grad(bool max, const om_view *a, const om_view *b, const om_view *g,
                     const om_view *da, const om_view *db);

/* Dropout (AR-12.5): y[i] = keep(i) ? x[i] * scale : +0, keep from Philox (seed, stream, block) and
 * the row-major index. The gradient is the same call on g. */
void omi_dropout(const om_view *x, float p, uint64_t seed, uint64_t stream, uint64_t block,
                 const om_view *y);

/* NaN -> 0x7fc00000 in place (AR-1.4 b). Contiguous float32 or float64; others untouched. */
void omi_canonical_nan(const om_view *y);

#endif
