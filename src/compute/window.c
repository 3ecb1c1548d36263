/*
 * window.c -- the checked constructor of om_window.
 *
 * Every sum below stays under 2^63: an extent is below 2^61, two pads below 2^32, and a reach below
 * 2^62, because its factors are below 2^31.
 */
#include "compute/window.h"

static bool axis_allowed(const om_window *w, int i, bool same) {
    int64_t one[3] = {w->k[i], w->stride[i], w->dil[i]};
    for (int n = 0; n < 3; n++)
        if (one[n] < 1 || one[n] > OM_WINDOW_LIMIT) return false;
    if (w->in[i] < 0 || w->in[i] >= OM_WINDOW_IN) return false;
    return same || (w->before[i] >= 0 && w->before[i] <= OM_WINDOW_LIMIT && w->after[i] >= 0 &&
                    w->after[i] <= OM_WINDOW_LIMIT);
}

/* False when the pads that follow are beyond the limit. */
static bool same_pads(om_window *w, int i, bool lower) {
    w->out[i]     = omi_ceil_div(w->in[i], w->stride[i]);
    int64_t last  = w->out[i] ? (w->out[i] - 1) * w->stride[i] : 0;
    int64_t total = omi_max64(0, last + omi_window_reach(w, i) - w->in[i]);
    w->before[i]  = (total + (lower ? 1 : 0)) / 2;
    w->after[i]   = total - w->before[i];
    return omi_max64(w->before[i], w->after[i]) <= OM_WINDOW_LIMIT;
}

static int64_t rounded(const om_window *w, int i, bool up) {
    int64_t room = w->in[i] + w->before[i] + w->after[i] - omi_window_reach(w, i);
    if (up) room += w->stride[i] - 1;
    if (room < 0) return 0;
    int64_t out = room / w->stride[i] + 1;
    return up && (out - 1) * w->stride[i] >= w->in[i] + w->before[i] ? out - 1 : out;
}

bool omi_window_make(om_window *w, om_window_round round) {
    bool same = round == OM_WINDOW_SAME_UPPER || round == OM_WINDOW_SAME_LOWER;
    if (w->nd < 1 || w->nd > OM_WINDOW_AXES) return false;
    for (int i = 0; i < w->nd; i++) {
        if (!axis_allowed(w, i, same)) return false;
        if (!same)
            w->out[i] = rounded(w, i, round == OM_WINDOW_CEIL);
        else if (!same_pads(w, i, round == OM_WINDOW_SAME_LOWER))
            return false;
    }
    return true;
}

void omi_window_inside(const om_window *w, int axis, int64_t *lo, int64_t *hi) {
    int64_t room = w->in[axis] + w->before[axis] - omi_window_reach(w, axis);
    *lo          = omi_min64(omi_ceil_div(w->before[axis], w->stride[axis]), w->out[axis]);
    *hi          = room < 0 ? 0 : omi_min64(room / w->stride[axis] + 1, w->out[axis]);
    *hi          = omi_max64(*lo, *hi);
}
