/*
 * nonzero.c -- which elements are not zero: -0 is, NaN is not. No 64-bit integer but 0 is 0 as a
 * double.
 */
#include "base/dtype.h"
#include "base/thread.h"
#include "compute/move.h"

#define ASK_EVERY 65536

int64_t omi_count_nonzero(const om_view *x) {
    int64_t n = omi_view_numel(x), count = 0;
    size_t item = omi_move_size(x->dtype);
    for (int64_t i = 0; i < n; i++) {
        if (i % ASK_EVERY == 0 && omi_cut_short()) return 0;
        count += omi_element_to_double((const char *)x->data + (size_t)i * item, x->dtype) != 0;
    }
    return count;
}

void omi_nonzero(const om_view *x, int64_t count, int64_t *y) {
    int64_t n = omi_view_numel(x), at = 0;
    size_t item = omi_move_size(x->dtype);
    for (int64_t i = 0; i < n && at < count; i++) {
        if (i % ASK_EVERY == 0 && omi_cut_short()) return;
        if (omi_element_to_double((const char *)x->data + (size_t)i * item, x->dtype) == 0)
            continue;
        int64_t rest = i;
        for (int k = x->rank - 1; k >= 0; k--) {
            y[k * count + at] = rest % x->shape[k];
            rest /= x->shape[k];
        }
        at++;
    }
}
