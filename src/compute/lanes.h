/*
 * lanes.h -- joining lane sums that were kept in memory (AR-4.1): acc[OM_SUM_LANES][OM_COL_TILE]
 * down columns, acc[OM_SUM_LANES] of a block that comes in pieces.
 */
#ifndef OM_COMPUTE_LANES_H
#define OM_COMPUTE_LANES_H

#include <string.h>

#include "kernels/args.h"

/* The end of a block: halving tree per column, totals added, lanes back to +0. */
OM_INLINE void omi_lanes_join(double *acc, double *total, int64_t cols) {
    for (int h = OM_SUM_LANES / 2; h; h /= 2)
        for (int l = 0; l < h; l++)
            for (int c = 0; c < OM_COL_TILE; c++)
                acc[l * OM_COL_TILE + c] += acc[(l + h) * OM_COL_TILE + c];
    for (int64_t c = 0; c < cols; c++)
        total[c] += acc[c];
    memset(acc, 0, sizeof(double) * OM_SUM_LANES * OM_COL_TILE);
}

/* The same for one sum: the end of a block. Lanes back to +0. */
OM_INLINE double omi_lanes_total(double *acc) {
    for (int h = OM_SUM_LANES / 2; h; h /= 2)
        for (int l = 0; l < h; l++)
            acc[l] = acc[l] + acc[l + h];
    double total = acc[0];
    memset(acc, 0, sizeof(double) * OM_SUM_LANES);
    return total;
}

#endif
