/*
 * epilogue.c -- the steps of an epilogue on one block, row by row with the inner loops of the
 * column.
 */
#include "compute/epilogue.h"

#include "compute/elementwise_f32.h"

#define PART 512 /* columns at once: operands with a stride are gathered into this many floats */

/* Columns [0, n) of an operand: as they lie with *step 0 or 1, else gathered. */
static const float *ep_operand(const float *a, int64_t cs, int64_t n, float *buf, int *step) {
    *step = cs != 0;
    if (cs == 0 || cs == 1) return a;
    for (int64_t i = 0; i < n; i++)
        buf[i] = a[i * cs];
    return buf;
}

static void ep_row(const om_kernels *k, const om_ep_step *s, int64_t i, int64_t j, int64_t n,
                   float *y) {
    float buf[PART];
    int step       = 0;
    int64_t at     = i * s->rs + j * s->cs;
    const float *a = NULL;
    if (s->kind != OM_EP_UNARY && s->kind != OM_EP_CLIP)
        a = ep_operand(s->a + at, s->cs, n, buf, &step);
    switch (s->kind) {
    case OM_EP_ADD:
        k->add_f32(n, y, 1, a, step, y);
        break;
    case OM_EP_MUL:
        k->mul_f32(n, y, 1, a, step, y);
        break;
    case OM_EP_SCALE_SHIFT: // scale_shift_f32 takes both operands with one step
        k->mul_f32(n, y, 1, a, step, y);
        a = ep_operand(s->b + at, s->cs, n, buf, &step);
        k->add_f32(n, y, 1, a, step, y);
        break;
    case OM_EP_UNARY:
        omi_unary_f32(k, s->unary, s->fast)(n, y, y);
        break;
    case OM_EP_CLIP:
        k->clip_f32(n, y, s->a, s->b, y);
        break;
    }
}

void omi_epilogue_apply(const om_kernels *k, const om_epilogue *e, int64_t i0, int64_t rows,
                        int64_t j0, int64_t cols, float *y, int64_t y_rs) {
    for (int64_t i = 0; i < rows; i++)
        for (int64_t j = 0; j < cols; j += PART) {
            int64_t n = omi_min64(PART, cols - j);
            for (int s = 0; s < e->n; s++)
                ep_row(k, &e->step[s], i0 + i, j0 + j, n, y + i * y_rs + j);
        }
}
