/*
 * matmul.c -- matrix products: NumPy's matmul and the linear layer (AR-2).
 *
 * compute/matmul takes free strides on the last two axes and stride 0 on batch axes, so transposes
 * in the gradients and broadcast batches cost no copy. A row of the result depends on its own row
 * only (AR-2.1), so leading axes of a left operand are folded into rows where its memory allows:
 * one large product instead of many small ones, with the same bits.
 *
 * Needs: op.h, compute/matmul, compute/reduce.
 */
#include "base/thread.h"
#include "compute/matmul.h"
#include "compute/move.h"
#include "compute/reduce.h"
#include "ops/op.h"

/* ---- views of matrices
 * ------------------------------------------------------------------------------ */

static om_view transposed(om_view v) {
    int i = v.rank - 2, j = v.rank - 1;
    int64_t n = v.shape[i], s = v.strides[i];
    v.shape[i]   = v.shape[j];
    v.strides[i] = v.strides[j];
    v.shape[j]   = n;
    v.strides[j] = s;
    return v;
}

/* A vector as one row (left) or one column (right); others as they are. */
static om_view as_matrix(const om_tensor *t, bool left) {
    om_view v = omi_view(t);
    if (v.rank != 1) return v;
    int keep = left ? 1 : 0, one = 1 - keep;
    v.rank          = 2;
    v.shape[keep]   = t->shape[0];
    v.strides[keep] = t->strides[0];
    v.shape[one]    = 1;
    v.strides[one]  = 1;
    return v;
}

/* Batch axes widened to those of y; the matrix axes stay. */
static om_view with_batch(const om_view *v, const om_view *y) {
    om_view r = *y;
    int d     = y->rank - v->rank;
    r.data    = v->data;
    r.dtype   = v->dtype;
    for (int i = 0; i < y->rank - 2; i++)
        r.strides[i] = i < d || v->shape[i - d] == 1 ? 0 : v->strides[i - d];
    for (int i = y->rank - 2; i < y->rank; i++) {
        r.shape[i]   = v->shape[i - d];
        r.strides[i] = v->strides[i - d];
    }
    return r;
}

/* v with all axes before the last as one axis of rows; false when its strides do not allow it
 * (never for contiguous or empty rows). */
static bool fold_rows(const om_view *v, om_view *out) {
    int last     = v->rank - 1;
    int64_t rows = 1, stride = 0;
    bool first = true;
    for (int i = 0; i < last; i++)
        rows *= v->shape[i];
    int64_t inner = 1;
    for (int i = last - 1; rows && i >= 0; i--) {
        if (v->shape[i] == 1) continue;
        if (first)
            stride = v->strides[i];
        else if (v->strides[i] != stride * inner)
            return false;
        first = false;
        inner *= v->shape[i];
    }
    *out = (om_view){.data    = v->data,
                     .dtype   = v->dtype,
                     .rank    = 2,
                     .shape   = {rows, v->shape[last]},
                     .strides = {first ? v->shape[last] : stride, v->strides[last]}};
    return true;
}

/* Most rows for which packing b is worth being kept, and the fewest elements. */
#define KEEP_ROWS 32
#define KEEP_SIZE 1024

bool omi_run_product(const om_matmul_args *m) {
    om_matmul_plan plan;
    omi_work w;
    if (!omi_matmul_plan(m, omi_workers(), &plan)) {
        omi_fail(OM_ERR_LIMIT,
                 "the product of [.., %lld, %lld] and [.., %lld, %lld] takes more than "
                 "2^53 multiplications; use smaller operands",
                 (long long)m->a.shape[m->a.rank - 2], (long long)m->a.shape[m->a.rank - 1],
                 (long long)m->b.shape[m->b.rank - 2], (long long)m->b.shape[m->b.rank - 1]);
        return false;
    }
    if (!omi_work_get(&w, plan.ws_bytes)) return false;
    om_matmul_ptrs x = {.a = m->a.data, .b = m->b.data, .c = m->c.data, .y = m->y.data};
    omi_matmul_run(&plan, &x, w.data);
    omi_work_put(&w);
    return true;
}

/* y = a b (+ c); a and b have y's rank, batch axes broadcast. kept: the tensor of b when its packed
 * form may stay with its buffer; NULL: it may not. Raises when workspace is out. */
static bool product(const om_view *a, const om_view *b, const om_view *c, const om_view *y,
                    om_tensor *kept) {
    om_matmul_args m = {.a = *a, .b = *b, .y = *y, .alpha = 1, .beta = 1};
    if (c) m.c = *c, m.has_c = true;
    if (kept && y->dtype == OM_F32) {
        bool failed;
        int i = b->rank - 2;
        m.b_packed =
            omi_panel16_at_second_use(kept->storage->buf, kept->offset, b->strides[i],
                                      b->strides[i + 1], b->shape[i], b->shape[i + 1], &failed);
        if (failed) return false;
    }
    return omi_run_product(&m);
}

/* The same for a matrix b without batch axes: rows of a are folded when they can be. */
static bool product_rows(const om_view *a, const om_view *b, const om_view *c, const om_view *y,
                         om_tensor *kept) {
    om_view af, yf;
    if (b->rank > 2) kept = NULL;
    if (b->rank == 2 && a->rank > 2 && fold_rows(a, &af) && fold_rows(y, &yf))
        return product(&af, b, c, &yf, kept);
    om_view aw = with_batch(a, y), bw = with_batch(b, y);
    return product(&aw, &bw, c, y, kept);
}

/* A right operand that looks like a weight: nobody computed it, it is not trained now, every
 * element has its own bytes, and one call is worth less than its packing. */
static om_tensor *weight_to_keep(om_tensor *b, int64_t rows) {
    int64_t n = omi_numel(b);
    if (rows > KEEP_ROWS || n < KEEP_SIZE || b->record || omi_traced(b)) return NULL;
    if (!omi_grad_off && om_requires_grad(b)) return NULL;
    return (size_t)n <= b->storage->buf->bytes / sizeof(float) ? b : NULL;
}

/* ---- matmul
 * -------------------------------------------------------------------------------------------- */

/* Shape of the product with vectors as matrices: batch axes, rows, columns. */
static bool matmul_shape(om_tensor *a, om_tensor *b, const om_view *av, const om_view *bv,
                         int *rank, int64_t *shape) {
    if (av->shape[av->rank - 1] != bv->shape[bv->rank - 2]) {
        omi_fail(OM_ERR_SHAPE, "inner sizes differ: %s x %s", OMI_T(a), OMI_T(b));
        return false;
    }
    int r = av->rank > bv->rank ? av->rank : bv->rank;
    for (int i = 0; i < r - 2; i++) {
        int ia = i - (r - av->rank), ib = i - (r - bv->rank);
        int64_t na = ia < 0 ? 1 : av->shape[ia], nb = ib < 0 ? 1 : bv->shape[ib];
        if (na != nb && na != 1 && nb != 1) {
            omi_fail(OM_ERR_SHAPE,
                     "batch axes do not broadcast: %s x %s have sizes %lld and %lld on axis %d",
                     OMI_T(a), OMI_T(b), (long long)na, (long long)nb, i - r);
            return false;
        }
        shape[i] = na == 1 ? nb : na;
    }
    shape[r - 2] = av->shape[av->rank - 2];
    shape[r - 1] = bv->shape[bv->rank - 1];
    *rank        = r;
    return true;
}

/* The view of a contiguous y of full shape; y itself lacks the axes that vectors do not give. */
static om_view full_view(const om_tensor *y, int rank, const int64_t *shape) {
    om_view v = {.data = omi_ptr(y), .dtype = (om_dtype)y->dtype, .rank = rank};
    for (int i = 0; i < rank; i++)
        v.shape[i] = shape[i];
    omi_view_pack_strides(&v);
    return v;
}

/* g (any strides) with the axes of vectors put back. */
static om_view full_gradient(const om_tensor *g, bool a_vector, bool b_vector) {
    om_view v = {.data = omi_ptr(g), .dtype = (om_dtype)g->dtype};
    int n = g->rank + a_vector + b_vector, from = 0;
    v.rank = n;
    for (int i = 0; i < n; i++) {
        bool added   = (a_vector && i == n - 2) || (b_vector && i == n - 1);
        v.shape[i]   = added ? 1 : g->shape[from];
        v.strides[i] = added ? 1 : g->strides[from];
        from += !added;
    }
    return v;
}

/* dx of one operand: the product per batch item, then the sum over broadcast batch axes (AR-11.2).
 * The two matrix axes are those of the operand as a matrix. */
static om_tensor *matmul_gradient(const om_view *l, const om_view *r, const om_view *g,
                                  const om_record *rec, uint32_t i) {
    int rank = g->rank;
    int64_t shape[OM_MAX_RANK];
    for (int k = 0; k < rank - 2; k++)
        shape[k] = g->shape[k];
    shape[rank - 2] = l->shape[l->rank - 2];
    shape[rank - 1] = r->shape[r->rank - 1];
    int in_rank;
    const int64_t *in_shape = omi_in_shape(rec, i, &in_rank);
    om_tensor *t            = omi_new(g->dtype, rank, shape);
    if (!t) return NULL;
    om_view y  = omi_view(t);
    om_view lw = with_batch(l, &y), rw = with_batch(r, &y);
    if (!product(&lw, &rw, NULL, &y, NULL)) return NULL;
    // The operand as a matrix has the trailing axes of t; a vector is one row or one column.
    int64_t matrix[OM_MAX_RANK];
    int m_rank = in_rank == 1 ? 2 : in_rank;
    for (int k = 0; k < in_rank; k++)
        matrix[k] = in_shape[k];
    if (in_rank == 1) {
        matrix[0] = shape[rank - 2];
        matrix[1] = shape[rank - 1];
    }
    om_tensor *u = omi_unbroadcast(t, m_rank, matrix);
    if (!u) return NULL;
    if (u != t) omi_drop_packed(t, NULL);
    if (in_rank != 1) return u;
    const int64_t one = 1;
    return omi_view_of(u, 1, in_shape, &one, u->offset);
}

static om_status matmul_backward(const om_record *r, om_tensor *const *dy, om_tensor **dx) {
    if (!dy[0]) return OM_OK;
    int rank_a, rank_b;
    omi_in_shape(r, 0, &rank_a);
    omi_in_shape(r, 1, &rank_b);
    om_view g = full_gradient(dy[0], rank_a == 1, rank_b == 1);
    if (omi_needs(r, 0)) {
        om_view bt = transposed(as_matrix(omi_saved_in(r, 1), false));
        if (!(dx[0] = matmul_gradient(&g, &bt, &g, r, 0))) return omi_pending_status;
    }
    if (omi_needs(r, 1)) {
        om_view at = transposed(as_matrix(omi_saved_in(r, 0), true));
        if (!(dx[1] = matmul_gradient(&at, &g, &g, r, 1))) return omi_pending_status;
    }
    return OM_OK;
}

om_tensor *om_matmul(om_tensor *a, om_tensor *b) {
    OMI_ENTER("om_matmul");
    const uint32_t types = OMI_TYPE_FLOAT | OMI_TYPE_I64 | OMI_TYPE_I32;
    if (!omi_args2(a, b) || !omi_need_dtype(a, types) || !omi_same_dtype(a, b)) return NULL;
    if (a->rank == 0 || b->rank == 0)
        OM_FAIL_NULL(OM_ERR_SHAPE, "%s x %s: a scalar is no matrix; use om_mul", OMI_T(a),
                     OMI_T(b));
    om_view av = as_matrix(a, true), bv = as_matrix(b, false);
    int rank, n                         = 0;
    int64_t full[OM_MAX_RANK], shape[OM_MAX_RANK];
    if (!matmul_shape(a, b, &av, &bv, &rank, full)) return NULL;
    for (int i = 0; i < rank; i++)
        if (!(a->rank == 1 && i == rank - 2) && !(b->rank == 1 && i == rank - 1))
            shape[n++] = full[i];
    om_tensor *y = omi_new((om_dtype)a->dtype, n, shape);
    if (!y) return NULL;
    om_view yv   = full_view(y, rank, full);
    int64_t rows = omi_numel(y) / omi_max64(full[rank - 1], 1);
    if (!product_rows(&av, &bv, NULL, &yv, weight_to_keep(b, rows))) return NULL;
    uint32_t save = (omi_wants(a) ? OM_SAVE_IN(1) : 0) | (omi_wants(b) ? OM_SAVE_IN(0) : 0);
    return omi_record1(OM_OP_MATMUL, NULL, NULL, 2, (om_tensor *[]){a, b}, y, matmul_backward,
                       save);
}

/* ---- linear
 * ---------------------------------------------------------------------------------------------- */

/* Rows of g or x as one matrix, copied when the strides do not allow a view; *own is to be dropped.
 */
static bool matrix_rows_of(om_tensor *t, om_view *rows, om_tensor **own) {
    *own      = NULL;
    om_view v = as_matrix(t, true);
    if (fold_rows(&v, rows)) return true;
    om_tensor *p = omi_pack(t);
    if (!p) return false;
    *own = p == t ? NULL : p;
    v    = as_matrix(p, true);
    return fold_rows(&v, rows);
}

/* dx = g w; dw = g' x over flattened rows; db = column sums of g (AR-11.2). */
static om_status linear_backward(const om_record *r, om_tensor *const *dy, om_tensor **dx) {
    om_tensor *gt = dy[0], *own_g = NULL, *own_x = NULL;
    if (!gt) return OM_OK;
    om_view g;
    if (!matrix_rows_of(gt, &g, &own_g)) return omi_pending_status;
    if (omi_needs(r, 0)) {
        int rank;
        const int64_t *shape = omi_in_shape(r, 0, &rank);
        om_tensor *d         = omi_new(OM_F32, rank, shape);
        if (!d) return omi_pending_status;
        om_view w = omi_view(omi_saved_in(r, 1)), v = as_matrix(d, true), y;
        if (!fold_rows(&v, &y) || !product(&g, &w, NULL, &y, NULL)) return omi_pending_status;
        dx[0] = d;
    }
    if (omi_needs(r, 1)) {
        om_tensor *d = omi_new_like_in(r, 1);
        om_view x;
        if (!d || !matrix_rows_of(omi_saved_in(r, 0), &x, &own_x)) return omi_pending_status;
        om_view gtr = transposed(g), y = omi_view(d);
        if (!product(&gtr, &x, NULL, &y, NULL)) return omi_pending_status;
        dx[1] = d;
        omi_drop_packed(own_x, NULL);
    }
    if (r->n_in > 2 && omi_needs(r, 2)) {
        om_tensor *d = omi_new(OM_F32, 1, &g.shape[1]);
        if (!d) return omi_pending_status;
        om_view y = omi_view(d);
        omi_reduce(OM_R_SUM, &g, 1, &y);
        dx[2] = d;
    }
    omi_drop_packed(own_g, NULL);
    return OM_OK;
}

static bool linear_args(om_tensor *x, om_tensor *w, om_tensor *b) {
    if (!omi_args1(x) || !omi_arg(w, "w") || (b && !omi_arg(b, "b"))) return false;
    if (!omi_need_dtype(x, OMI_TYPE_F32) || !omi_need_dtype(w, OMI_TYPE_F32) ||
        (b && !omi_need_dtype(b, OMI_TYPE_F32)))
        return false;
    if (w->rank != 2 || x->rank < 1 || x->shape[x->rank - 1] != w->shape[1])
        omi_fail(OM_ERR_SHAPE, "x %s does not fit w %s; x [.., in] and w [out, in] are needed",
                 OMI_T(x), OMI_T(w));
    else if (b && (b->rank != 1 || b->shape[0] != w->shape[0]))
        omi_fail(OM_ERR_SHAPE, "b %s does not fit w %s; b [out] is needed", OMI_T(b), OMI_T(w));
    return !omi_failed();
}

om_tensor *om_linear(om_tensor *x, om_tensor *w, om_tensor *b) {
    OMI_ENTER("om_linear");
    if (!linear_args(x, w, b)) return NULL;
    int64_t shape[OM_MAX_RANK];
    for (int i = 0; i < x->rank - 1; i++)
        shape[i] = x->shape[i];
    shape[x->rank - 1] = w->shape[0];
    om_tensor *y       = omi_new(OM_F32, x->rank, shape), *own;
    om_view rows, yv, wt = transposed(omi_view(w));
    if (!y || !matrix_rows_of(x, &rows, &own)) return NULL;
    om_view v = as_matrix(y, true);
    if (!fold_rows(&v, &yv)) return NULL;
    om_view c;
    if (b) {
        c = omi_view(b);
        c = omi_view_broadcast(&c, 2, yv.shape);
    }
    // Gemm and MatMul followed by Add are the same bits (AR-2.2), so the rank does not matter here.
    if (!product(&rows, &wt, b ? &c : NULL, &yv, weight_to_keep(w, rows.shape[0]))) return NULL;
    omi_drop_packed(own, NULL);
    uint32_t save = (omi_wants(x) ? OM_SAVE_IN(1) : 0) | (omi_wants(w) ? OM_SAVE_IN(0) : 0);
    return omi_record1(OM_OP_LINEAR, NULL, NULL, 3, (om_tensor *[]){x, w, b}, y, linear_backward,
                       save);
}
