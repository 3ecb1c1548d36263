/*
 * epilogue.c -- epilogue.h as an entry, for blocks of products and convolutions.
 */
#include "kernels/elementwise/epilogue.h"

void FN(epilogue_f32)(const om_epilogue_args *e) {
    OM_COUNT_CALL();
    om_epilogue_block(e, e->y, e->y_rs, 0, e->rows, 0, e->cols);
}
