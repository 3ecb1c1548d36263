/*
 * epilogue.c -- the steps of an epilogue on one block: in one pass of the column where all of them
 * are plain operations, else row by row, one step after the other.
 */
#include "compute/epilogue.h"

#include <math.h>

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

/* The step as an operation of epilogue_f32 on a block at (i0, j0); false: it has none. */
static bool ep_plain(const om_ep_step *s, int64_t i0, int64_t j0, om_ep_op *o) {
    static const om_ep_op_kind kinds[] = {[OM_EP_ADD]         = OM_EP_OP_ADD,
                                          [OM_EP_MUL]         = OM_EP_OP_MUL,
                                          [OM_EP_SCALE_SHIFT] = OM_EP_OP_SCALE_SHIFT,
                                          [OM_EP_CLIP]        = OM_EP_OP_LIMIT};
    if (s->kind == OM_EP_UNARY)
        return *o = (om_ep_op){.kind = OM_EP_OP_RELU}, s->unary == OM_U_RELU;
    *o = (om_ep_op){.kind = kinds[s->kind], .cs = s->cs == 1, .a = s->a, .b = s->b, .rs = s->rs};
    if (s->kind == OM_EP_CLIP) {
        o->lo = s->a ? *s->a : -INFINITY;
        o->hi = s->b ? *s->b : INFINITY;
        return !isnan(o->lo) && !isnan(o->hi) && !(o->hi == 0 && signbit(o->hi));
    }
    o->a += i0 * s->rs + j0 * s->cs;
    if (s->b) o->b += i0 * s->rs + j0 * s->cs;
    return s->cs == 0 || s->cs == 1;
}

bool omi_epilogue_plain(const om_epilogue *e, int64_t i0, int64_t j0, om_epilogue_args *a) {
    a->n = e->n;
    for (int s = 0; s < e->n; s++)
        if (!ep_plain(&e->step[s], i0, j0, &a->op[s])) return false;
    return true;
}

/* y as its transpose: one column is one row. */
static om_epilogue ep_transposed(const om_epilogue *e) {
    om_epilogue t = *e;
    for (int i = 0; i < t.n; i++) {
        t.step[i].rs = e->step[i].cs;
        t.step[i].cs = e->step[i].rs;
    }
    return t;
}

void omi_epilogue_apply(const om_kernels *k, const om_epilogue *e, int64_t i0, int64_t rows,
                        int64_t j0, int64_t cols, float *y, int64_t y_rs) {
    if (cols == 1 && rows > 1 && y_rs == 1) {
        om_epilogue t = ep_transposed(e);
        omi_epilogue_apply(k, &t, j0, 1, i0, rows, y, rows);
        return;
    }
    om_epilogue_args a = {.rows = rows, .cols = cols, .y = y, .y_rs = y_rs};
    if (omi_epilogue_plain(e, i0, j0, &a)) {
        k->epilogue_f32(&a);
        return;
    }
    for (int64_t i = 0; i < rows; i++)
        for (int64_t j = 0; j < cols; j += PART) {
            int64_t n = omi_min64(PART, cols - j);
            for (int s = 0; s < e->n; s++)
                ep_row(k, &e->step[s], i0 + i, j0 + j, n, y + i * y_rs + j);
        }
}
