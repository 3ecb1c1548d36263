/*
 * shape_rules.h (internal) -- integer rules for sizes that the eager plane and the nodes share:
 * axes, reduced shapes, cuts, counts.
 *
 * They are pure: no tensor, no message, no failure but a false. Each plane says what was wrong in
 * its own words. Rules with a window are in window.h.
 *
 * Needs: base.  Used by: compute, ops, graphops.
 */
#ifndef OM_COMPUTE_SHAPE_RULES_H
#define OM_COMPUTE_SHAPE_RULES_H

#include "base/checked.h"
#include "onemodel/tensor.h"

/* axis counted from either end as 0 .. rank-1; false when it is outside. */
OM_INLINE bool omi_rule_axis(int64_t axis, int rank, int *out) {
    if (axis < -rank || axis >= rank) return false;
    *out = (int)(axis < 0 ? axis + rank : axis);
    return true;
}

/* The size that two broadcast to; false when they do not. */
OM_INLINE bool omi_rule_broadcast(int64_t a, int64_t b, int64_t *out) {
    bool fits = a == b || a == 1 || b == 1;
    *out      = a == 1 ? b : a;
    return fits;
}

/* Sizes after the axes of mask are reduced, kept as 1 or dropped; returns the rank. out may be
 * shape. */
OM_INLINE int omi_reduced_shape(int rank, const int64_t *shape, uint32_t mask, bool keep,
                                int64_t *out) {
    int n = 0;
    for (int i = 0; i < rank; i++) {
        if (!(mask >> i & 1))
            out[n++] = shape[i];
        else if (keep)
            out[n++] = 1;
    }
    return n;
}

/* A part of an axis: count elements from start on, step apart. */
typedef struct omi_cut {
    int64_t start, count, step;
} omi_cut;

/* start, end and step (not 0) of an axis of n as ONNX clamps them: negative positions count from
 * the end; then start goes to 0 .. n (n-1 going down) and end to 0 .. n (-1 .. n-1 going down). */
OM_INLINE omi_cut omi_rule_cut(int64_t n, int64_t start, int64_t end, int64_t step) {
    bool up = step > 0;
    if (start < 0) start += n;
    if (end < 0) end = end < -n ? -1 : end + n;
    start        = omi_max64(0, omi_min64(start, up ? n : n - 1));
    end          = omi_max64(up ? 0 : -1, omi_min64(end, up ? n : n - 1));
    uint64_t mag = up ? (uint64_t)step : 0 - (uint64_t)step;
    int64_t room = n == 0 ? 0 : up ? end - start : start - end;
    omi_cut k    = {0, 0, 1};
    if (room <= 0) return k;
    k.start = start;
    k.count = (int64_t)(((uint64_t)room - 1) / mag) + 1;
    if (k.count > 1) k.step = step; // a step is below n when it is used
    return k;
}

/* Integers from start towards limit, step (not 0) apart; at most INT64_MAX. */
OM_INLINE int64_t omi_rule_count(int64_t start, int64_t limit, int64_t step) {
    bool up       = step > 0;
    uint64_t mag  = up ? (uint64_t)step : 0 - (uint64_t)step;
    uint64_t room = up ? (uint64_t)limit - (uint64_t)start : (uint64_t)start - (uint64_t)limit;
    if (up ? limit <= start : limit >= start) return 0;
    uint64_t n = room / mag + (room % mag != 0);
    return n > INT64_MAX ? INT64_MAX : (int64_t)n;
}

#endif
