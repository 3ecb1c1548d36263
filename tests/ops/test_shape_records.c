/*
 * test_shape_records.c -- what shape and index operators leave behind: aliases (CD-2), shared
 * storage, raw attributes (TD-2), several outputs (CD-6), and the refusals of each.
 */
#include "harness.h"

#include <math.h>
#include <string.h>

#include "ops/op.h"

/* A leaf that needs a gradient: 0, 1, 2 ... of the given shape. */
static om_tensor *leaf(int rank, const int64_t *shape) {
    om_tensor *x = om_zeros(OM_F32, rank, shape);
    float *p     = om_data_mut(x);
    for (int64_t i = 0; i < om_numel(x); i++)
        p[i] = (float)i;
    om_set_requires_grad(x, true);
    return x;
}

static void assert_floats(om_tensor *t, const float *want) {
    assert_non_null(t);
    for (int64_t i = 0; i < om_numel(t); i++) {
        float got;
        assert_int_equal(
            om_copy_out(
                om_reshape(om_slice(om_reshape(om_detach(t), 1, (int64_t[]){-1}), 0, i, i + 1, 1),
                           0, NULL),
                &got, sizeof got),
            OM_OK);
        if (got != want[i])
            fail_msg("element %lld is %g, not %g", (long long)i, (double)got, (double)want[i]);
    }
}

static void assert_list(om_list l, int64_t n, const int64_t *want) {
    assert_int_equal(l.n, n);
    if (n) assert_memory_equal(l.v, want, (size_t)n * sizeof *want);
}

/* ---- aliases --------------------------------------------------------------------------------- */

static void aliases_return_the_same_handle(void **state) {
    (void)state;
    om_scope s   = om_scope_begin();
    om_tensor *x = leaf(OM_DIMS(2, 1, 3)), *t = om_transpose(x, 0, 2);
    uint32_t refs = atomic_load(&x->refs);
    assert_ptr_equal(om_reshape(x, OM_DIMS(2, 1, 3)), x);
    assert_ptr_equal(om_reshape(x, OM_DIMS(2, -1, 3)), x);
    assert_ptr_equal(om_reshape(t, OM_DIMS(3, 1, 2)), t); // strided: still itself
    assert_ptr_equal(om_flatten(x, 2), x);
    assert_ptr_equal(om_contiguous(x), x);
    assert_ptr_equal(om_slice(x, 0, 0, OM_END, 1), x);
    assert_ptr_equal(om_slice(x, 2, -3, 3, 1), x);
    assert_ptr_equal(om_expand(x, OM_DIMS(2, 1, 3)), x);
    assert_ptr_equal(om_expand(x, OM_DIMS(-1, -1, -1)), x);
    assert_ptr_equal(om_expand_as(x, om_zeros(OM_I64, OM_DIMS(2, 1, 3))), x);
    assert_ptr_equal(om_unsqueeze(x, 0, NULL), x);
    om_tensor *full = om_select(x, 1, 0);
    assert_ptr_equal(om_squeeze(full, 0, NULL), full);
    assert_null(x->record);
    // Each alias was filed again, so that its scope may end: one reference more each.
    assert_true(atomic_load(&x->refs) >= refs + 9);
    // These are not aliases.
    assert_ptr_not_equal(om_clone(x), x);
    assert_ptr_not_equal(om_contiguous(t), t);
    assert_ptr_not_equal(om_slice(x, 0, OM_END, OM_END, -1), x);
    om_tensor *d = om_detach(x);
    assert_ptr_not_equal(d, x);
    assert_ptr_equal(d->storage, x->storage);
    assert_false(om_requires_grad(d));
    assert_int_equal(om_pending(), OM_OK);
    om_scope_end(s);
}

static void an_alias_outlives_the_scope_of_its_source(void **state) {
    (void)state;
    int64_t live = om_live_tensors();
    om_scope s = om_scope_begin(), inner = om_scope_begin();
    om_tensor *x = leaf(OM_DIMS(2, 2));
    om_tensor *y = om_scope_return(inner, om_contiguous(x));
    assert_ptr_equal(x, y);
    assert_true(om_get(y, (int64_t[]){1, 1}) == 3.0);
    om_scope_end(s);
    assert_int_equal(om_live_tensors(), live);
}

static void views_share_storage(void **state) {
    (void)state;
    om_scope s      = om_scope_begin();
    om_tensor *x    = om_zeros(OM_F32, OM_DIMS(4, 6));
    om_tensor *v[9] = {om_reshape(x, OM_DIMS(3, 8)),
                       om_permute(x, OM_DIMS(1, 0)),
                       om_transpose(x, 0, 1),
                       om_unsqueeze(x, OM_DIMS(0)),
                       om_slice(x, 1, 1, 5, 3),
                       om_select(x, 0, -1),
                       om_expand(x, OM_DIMS(2, 4, 6)),
                       om_squeeze(om_slice(x, 0, 1, 2, 1), 0, NULL),
                       om_reshape(om_slice(x, 0, 1, 3, 1), OM_DIMS(12))};
    for (int i = 0; i < 9; i++)
        assert_ptr_equal(v[i]->storage, x->storage);
    // No strides can show these, so they are copies.
    assert_ptr_not_equal(om_reshape(v[1], OM_DIMS(24))->storage, x->storage);
    assert_ptr_not_equal(om_reshape(om_slice(x, 1, 0, 3, 1), OM_DIMS(12))->storage, x->storage);
    // A joined axis that lies behind itself in memory can be split again without a copy.
    assert_ptr_equal(om_reshape(om_slice(x, 1, 0, 4, 1), OM_DIMS(2, 2, 2, 2))->storage, x->storage);
    assert_int_equal(om_pending(), OM_OK);
    om_scope_end(s);
}

/* ---- raw attributes -------------------------------------------------------------------------- */

#define RAW(y, op) ((const om_##op##_raw *)(y)->record->raw)
#define RES(y, op) ((const om_##op##_res *)(y)->record->res)

static void records_keep_what_the_caller_wrote(void **state) {
    (void)state;
    om_scope s   = om_scope_begin();
    om_tensor *x = leaf(OM_DIMS(2, 3, 4)), *y;

    y = om_reshape(x, OM_DIMS(6, -1));
    assert_int_equal(y->record->op, OM_OP_RESHAPE);
    assert_list(RAW(y, reshape)->target, 2, (int64_t[]){6, -1});
    y = om_flatten(x, 1);
    assert_int_equal(y->record->op, OM_OP_RESHAPE);
    assert_list(RAW(y, reshape)->target, 2, (int64_t[]){2, -1});
    y = om_permute(x, OM_DIMS(-1, 0, 1));
    assert_list(RAW(y, permute)->perm, 3, (int64_t[]){-1, 0, 1});
    assert_list(RES(y, permute)->perm, 3, (int64_t[]){2, 0, 1});
    y = om_transpose(x, -1, -2);
    assert_int_equal(y->record->op, OM_OP_PERMUTE);
    assert_list(RAW(y, permute)->perm, 3, (int64_t[]){0, 2, 1});
    y = om_unsqueeze(x, OM_DIMS(-1, 0));
    assert_list(RAW(y, unsqueeze)->axes, 2, (int64_t[]){-1, 0});
    y = om_squeeze(y, 0, NULL);
    assert_list(RAW(y, squeeze)->axes, 0, NULL); // none was named (TD-22)
    y = om_slice(x, -1, -3, OM_END, 1);
    assert_int_equal(RAW(y, slice)->axis, -1);
    assert_int_equal(RAW(y, slice)->start, -3);
    assert_int_equal(RAW(y, slice)->end, OM_END);
    assert_int_equal(RES(y, slice)->axis, 2);
    assert_int_equal(RES(y, slice)->start, 1);
    assert_int_equal(RES(y, slice)->count, 3);
    y = om_select(x, -2, -1);
    assert_int_equal(RAW(y, select)->index, -1);
    assert_int_equal(RES(y, select)->index, 2);
    y = om_index_select(x, -3, om_from((int64_t[]){1}, OM_I64, OM_DIMS(1)));
    assert_int_equal(RAW(y, index_select)->axis, -3);
    y = om_concat(2, (om_tensor *[]){x, x}, -1);
    assert_int_equal(RAW(y, concat)->axis, -1);
    assert_int_equal(RES(y, concat)->axis, 2);
    y = om_expand(x, OM_DIMS(5, -1, 3, -1));
    assert_list(RAW(y, expand)->target, 4, (int64_t[]){5, -1, 3, -1});
    y = om_pad(x, 3, (int64_t[]){1, 0, 0}, (int64_t[]){0, 0, 2}, -INFINITY);
    assert_list(RAW(y, pad)->before, 3, (int64_t[]){1, 0, 0});
    assert_list(RAW(y, pad)->after, 3, (int64_t[]){0, 0, 2});
    assert_true(RAW(y, pad)->value == -INFINITY);
    y = om_embedding(om_select(x, 0, 0), om_from((int64_t[]){1}, OM_I64, OM_DIMS(1)), -7);
    assert_int_equal(RAW(y, embedding)->padding_idx, -1);
    assert_int_equal(om_pending(), OM_OK);

    // Nothing is kept where no gradient is wanted.
    bool before = om_no_grad_begin();
    assert_null(om_reshape(x, OM_DIMS(24))->record);
    om_no_grad_end(before);
    assert_null(om_reshape(om_detach(x), OM_DIMS(24))->record);
    om_scope_end(s);
}

/* ---- several outputs ------------------------------------------------------------------------- */

static void split_with_unused_outputs(void **state) {
    (void)state;
    om_scope s      = om_scope_begin();
    om_tensor *x    = leaf(OM_DIMS(2, 5)), *out[5];
    int64_t sizes[] = {1, 1, 0, 2, 1};
    assert_int_equal(om_split(x, -1, 5, sizes, out), OM_OK);
    for (int i = 0; i < 5; i++) {
        assert_ptr_equal(out[i]->record, out[0]->record);
        assert_int_equal(out[i]->out_index, i);
        assert_int_equal(om_dim(out[i], 1), sizes[i]);
        assert_ptr_equal(out[i]->storage, x->storage);
    }
    assert_int_equal(RAW(out[0], split)->axis, -1);
    assert_list(RAW(out[0], split)->sizes, 5, sizes);
    // Pieces 1 and 3 are used, 3 twice; 0, 2 and 4 have no gradient.
    om_tensor *root = om_concat(3, (om_tensor *[]){out[3], out[1], out[3]}, 1);
    om_tensor *g    = om_from((float[]){1, 2, 3, 4, 5, 10, 20, 30, 40, 50}, OM_F32, OM_DIMS(2, 5));
    assert_int_equal(om_backward_with(root, OM_OPTS(backward, .grad = g)), OM_OK);
    assert_floats(om_grad_of(x), (float[]){0, 3, 5, 7, 0, 0, 30, 50, 70, 0});
    om_scope_end(s);
}

static void a_piece_that_nobody_uses(void **state) {
    (void)state;
    om_scope s   = om_scope_begin();
    om_tensor *x = leaf(OM_DIMS(5)), *out[5];
    assert_int_equal(om_split(x, 0, 5, (int64_t[]){1, 1, 1, 1, 1}, out), OM_OK);
    om_tensor *last = om_take(out[4]);
    om_retain(x);
    om_scope_end(s); // the other pieces are gone
    s            = om_scope_begin();
    om_tensor *d = NULL;
    assert_int_equal(om_grad(last, 1, &x, &d, NULL), OM_OK);
    assert_floats(d, (float[]){0, 0, 0, 0, 1});
    om_release(last);
    om_release(x);
    om_scope_end(s);
}

static void top_k_through_record_and_backward(void **state) {
    (void)state;
    om_scope s   = om_scope_begin();
    om_tensor *x = om_from((float[]){3, 1, NAN, 3, 0, -0.0f, 5, -1}, OM_F32, OM_DIMS(2, 4));
    om_tensor *v, *i;
    om_set_requires_grad(x, true);
    assert_int_equal(om_top_k(x, 3, -1, false, &v, &i), OM_OK);
    assert_true(isnan(om_get(v, (int64_t[]){0, 0})));
    const int64_t want[] = {2, 0, 3, 2, 0, 1}; // NaN first, ties and both zeros by place
    assert_memory_equal(om_data(i), want, sizeof want);
    assert_int_equal(v->record->n_out, 2);
    assert_int_equal(RAW(v, top_k)->axis, -1);
    assert_int_equal(RAW(v, top_k)->k, 3);
    assert_false(om_requires_grad(i));
    om_tensor *g = om_from((float[]){1, 2, 3, 4, 5, 6}, OM_F32, OM_DIMS(2, 3));
    assert_int_equal(om_backward_with(v, OM_OPTS(backward, .grad = g)), OM_OK);
    assert_floats(om_grad_of(x), (float[]){2, 0, 1, 3, 5, 6, 4, 0});

    om_clear_grad(x);
    assert_int_equal(om_top_k(x, 2, 0, true, &v, NULL), OM_OK);
    assert_floats(om_select(v, 0, 0), (float[]){0, -0.0f, 5, -1});
    g = om_from((float[]){1, 2, 3, 4, 5, 6, 7, 8}, OM_F32, OM_DIMS(2, 4));
    assert_int_equal(om_backward_with(om_permute(v, OM_DIMS(1, 0)),
                                      OM_OPTS(backward, .grad = om_permute(g, OM_DIMS(1, 0)))),
                     OM_OK);
    assert_floats(om_grad_of(x), (float[]){5, 6, 7, 8, 1, 2, 3, 4});

    // An index alone carries no gradient.
    assert_int_equal(om_top_k(x, 0, 1, false, NULL, &i), OM_OK);
    assert_int_equal(om_dim(i, 1), 0);
    assert_int_equal(om_pending(), OM_OK);
    om_scope_end(s);
}

static void padding_rows_get_no_gradient(void **state) {
    (void)state;
    om_scope s     = om_scope_begin();
    om_tensor *w   = leaf(OM_DIMS(3, 2));
    om_tensor *idx = om_from((int64_t[]){2, 1, 2, 0, -2}, OM_I64, OM_DIMS(5));
    om_tensor *y   = om_embedding(w, idx, 1);
    om_tensor *g   = om_full(1, OM_F32, OM_DIMS(5, 2));
    assert_int_equal(om_backward_with(y, OM_OPTS(backward, .grad = g)), OM_OK);
    assert_floats(om_grad_of(w), (float[]){1, 1, 0, 0, 2, 2}); // -2 is row 1, the padding row
    om_scope_end(s);
}

/* The gradient of a leaf must not be the caller's own tensor, however the graph passes it on. */
static void a_leaf_owns_its_gradient(void **state) {
    (void)state;
    om_scope s   = om_scope_begin();
    om_tensor *x = leaf(OM_DIMS(2, 2)), *g = om_full(1, OM_F32, OM_DIMS(4));
    assert_int_equal(om_backward_with(om_reshape(x, OM_DIMS(4)), OM_OPTS(backward, .grad = g)),
                     OM_OK);
    om_fill_(g, 7);
    assert_floats(om_grad_of(x), (float[]){1, 1, 1, 1});
    om_clear_grad(x);
    g = om_full(2, OM_F32, OM_DIMS(2, 2));
    assert_int_equal(om_backward_with(om_clone(x), OM_OPTS(backward, .grad = g)), OM_OK);
    om_fill_(g, 7);
    assert_floats(om_grad_of(x), (float[]){2, 2, 2, 2});
    assert_int_equal(om_pending(), OM_OK);
    om_scope_end(s);
}

/* ---- refusals -------------------------------------------------------------------------------- */

/* The call failed with st, and the message says part. */
#define REFUSED(call, st, part)                                                                    \
    do {                                                                                           \
        om_error e_;                                                                               \
        assert_true(!(call));                                                                      \
        om_catch(&e_);                                                                             \
        if (e_.status != (st) || !strstr(e_.message, (part)))                                      \
            fail_msg("%s: %s: %s", #call, om_status_name(e_.status), e_.message);                  \
    } while (0)
#define REFUSED_STATUS(call, st, part) REFUSED((call) == OM_OK, st, part)

static void shapes_are_refused(void **state) {
    (void)state;
    om_scope s   = om_scope_begin();
    om_tensor *x = om_zeros(OM_F32, OM_DIMS(2, 3)), *r0 = om_scalar_f32(1);
    om_tensor *r7 = om_zeros(OM_F32, OM_DIMS(1, 1, 1, 1, 1, 1, 1));
    om_set_name(x, "net.x");
    REFUSED(om_reshape(x, OM_DIMS(4, 2)), OM_ERR_SHAPE, "float32 [2,3] 'net.x'");
    REFUSED(om_reshape(x, OM_DIMS(4, 2)), OM_ERR_SHAPE, "[4,2]");
    REFUSED(om_reshape(x, OM_DIMS(-1, -1)), OM_ERR_SHAPE, "one at most may be -1");
    REFUSED(om_reshape(x, OM_DIMS(-2, 3)), OM_ERR_SHAPE, ">= 0");
    REFUSED(om_reshape(x, OM_DIMS(-1, 4)), OM_ERR_SHAPE, "6 elements");
    REFUSED(om_reshape(om_zeros(OM_F32, OM_DIMS(0, 2)), OM_DIMS(-1, 0)), OM_ERR_SHAPE,
            "write the size");
    REFUSED(om_reshape(x, 9, (int64_t[]){6, 1, 1, 1, 1, 1, 1, 1, 1}), OM_ERR_SHAPE, "rank");
    REFUSED(om_reshape(x, 2, NULL), OM_ERR_ARG, "NULL");
    REFUSED(om_reshape(x, OM_DIMS(INT64_MAX, INT64_MAX)), OM_ERR_SHAPE, "more elements");
    REFUSED(om_reshape(NULL, OM_DIMS(1)), OM_ERR_ARG, "NULL");
    REFUSED(om_flatten(x, 2), OM_ERR_ARG, "axis 2");
    REFUSED(om_permute(x, OM_DIMS(0)), OM_ERR_ARG, "each of its 2 axes");
    REFUSED(om_permute(x, OM_DIMS(0, -2)), OM_ERR_ARG, "each axis once");
    REFUSED(om_permute(x, OM_DIMS(0, 2)), OM_ERR_ARG, "entry 1");
    REFUSED(om_transpose(x, 0, -3), OM_ERR_ARG, "axis -3");
    REFUSED(om_transpose(r0, 0, 0), OM_ERR_ARG, "axis 0");
    REFUSED(om_squeeze(x, OM_DIMS(0)), OM_ERR_SHAPE, "size 2");
    REFUSED(om_squeeze(om_unsqueeze(x, OM_DIMS(0)), OM_DIMS(0, -3)), OM_ERR_ARG, "twice");
    REFUSED(om_squeeze(x, -1, NULL), OM_ERR_ARG, "-1 axes");
    REFUSED(om_unsqueeze(x, OM_DIMS(3)), OM_ERR_ARG, "axis 3");
    REFUSED(om_unsqueeze(r7, OM_DIMS(0, 1)), OM_ERR_SHAPE, "within 8");
    REFUSED(om_expand(x, OM_DIMS(2, 4)), OM_ERR_SHAPE, "only sizes 1");
    REFUSED(om_expand(x, OM_DIMS(3)), OM_ERR_SHAPE, "2 to 8");
    REFUSED(om_expand(x, OM_DIMS(-1, 2, 3)), OM_ERR_SHAPE, "an axis that exists");
    REFUSED(om_expand(r0, OM_DIMS(INT64_MAX, 2)), OM_ERR_SHAPE, "more elements");
    REFUSED(om_expand_as(x, om_zeros(OM_F32, OM_DIMS(3))), OM_ERR_SHAPE, "cannot drop axes");
    REFUSED(om_expand_as(x, om_zeros(OM_F32, OM_DIMS(2, 2))), OM_ERR_SHAPE, "float32 [2,3]");
    REFUSED(om_expand_as(x, NULL), OM_ERR_ARG, "like is NULL");
    REFUSED(om_contiguous(NULL), OM_ERR_ARG, "NULL");
    REFUSED(om_clone(NULL), OM_ERR_ARG, "NULL");
    REFUSED(om_detach(NULL), OM_ERR_ARG, "NULL");
    om_scope_end(s);
}

static void parts_are_refused(void **state) {
    (void)state;
    om_scope s   = om_scope_begin();
    om_tensor *x = om_zeros(OM_F32, OM_DIMS(2, 3)), *r0 = om_scalar_f32(1), *out[3];
    om_tensor *i4 = om_from((int64_t[]){0, 2, -3, 1}, OM_I64, OM_DIMS(4));
    REFUSED(om_slice(x, 2, 0, 1, 1), OM_ERR_ARG, "axis 2");
    REFUSED(om_slice(r0, 0, 0, 1, 1), OM_ERR_ARG, "axis 0");
    REFUSED(om_slice(x, 0, 0, 1, 0), OM_ERR_ARG, "step is 0");
    REFUSED(om_select(x, 1, 3), OM_ERR_ARG, "-3 to 2");
    REFUSED(om_select(x, 1, -4), OM_ERR_ARG, "index -4");
    REFUSED(om_select(om_zeros(OM_F32, OM_DIMS(0)), 0, 0), OM_ERR_ARG, "index 0");
    REFUSED(om_index_select(x, 0, i4), OM_ERR_VALUE, "holds index 2");
    REFUSED(om_index_select(x, 1, om_full(-4, OM_I32, OM_DIMS(1))), OM_ERR_VALUE, "index -4");
    REFUSED(om_index_select(x, 1, x), OM_ERR_DTYPE, "om_cast");
    REFUSED(om_index_select(x, 1, NULL), OM_ERR_ARG, "idx is NULL");
    REFUSED(om_index_select(r0, 0, i4), OM_ERR_ARG, "axis 0");
    REFUSED(om_index_select(x, 1, om_zeros(OM_I64, OM_DIMS(1, 1, 1, 1, 1, 1, 1, 1))), OM_ERR_SHAPE,
            "more than 8 axes");
    REFUSED(om_embedding(r0, i4, -1), OM_ERR_SHAPE, "[rows, dim]");
    REFUSED(om_embedding(x, i4, -1), OM_ERR_VALUE, "index 2");
    REFUSED(om_embedding(x, i4, 2), OM_ERR_ARG, "padding_idx 2");
    REFUSED(om_embedding(NULL, i4, -1), OM_ERR_ARG, "w is NULL");
    out[0] = x;
    REFUSED_STATUS(om_split(x, 1, 2, (int64_t[]){1, 1}, out), OM_ERR_SHAPE, "[1,1] sum to 2");
    assert_null(out[0]);
    REFUSED_STATUS(om_split(x, 1, 2, (int64_t[]){4, -1}, out), OM_ERR_ARG, "size -1");
    REFUSED_STATUS(om_split(x, 1, 2, (int64_t[]){INT64_MAX, INT64_MAX}, out), OM_ERR_ARG,
                   "piece 1");
    REFUSED_STATUS(om_split(x, 1, 0, (int64_t[]){0}, out), OM_ERR_ARG, "one or more");
    REFUSED_STATUS(om_split(x, 2, 1, (int64_t[]){3}, out), OM_ERR_ARG, "axis 2");
    REFUSED_STATUS(om_split(NULL, 0, 1, (int64_t[]){3}, out), OM_ERR_ARG, "NULL");
    REFUSED_STATUS(om_top_k(x, 4, 1, false, out, NULL), OM_ERR_ARG, "k is 4");
    REFUSED_STATUS(om_top_k(x, -1, 1, false, out, NULL), OM_ERR_ARG, "k is -1");
    REFUSED_STATUS(om_top_k(r0, 1, 0, false, out, NULL), OM_ERR_ARG, "axis 0");
    REFUSED_STATUS(om_top_k(om_zeros(OM_BOOL, OM_DIMS(2)), 1, 0, false, out, NULL), OM_ERR_DTYPE,
                   "om_cast");
    om_scope_end(s);
}

static void joins_are_refused(void **state) {
    (void)state;
    om_scope s   = om_scope_begin();
    om_tensor *x = om_zeros(OM_F32, OM_DIMS(2, 3)), *y = om_zeros(OM_F32, OM_DIMS(2, 4));
    om_tensor *i = om_zeros(OM_I64, OM_DIMS(2, 3)), *r0 = om_scalar_f32(1);
    om_tensor *wide = om_expand(r0, OM_DIMS(INT64_MAX / 32));
    REFUSED(om_concat(2, (om_tensor *[]){x, y}, 0), OM_ERR_SHAPE, "float32 [2,4]");
    REFUSED(om_concat(2, (om_tensor *[]){x, i}, 0), OM_ERR_DTYPE, "om_cast");
    REFUSED(om_concat(2, (om_tensor *[]){x, r0}, 0), OM_ERR_SHAPE, "number 2");
    REFUSED(om_concat(2, (om_tensor *[]){x, NULL}, 0), OM_ERR_ARG, "NULL");
    REFUSED(om_concat(0, NULL, 0), OM_ERR_ARG, "one or more");
    REFUSED(om_concat(1, (om_tensor *[]){r0}, 0), OM_ERR_SHAPE, "om_stack");
    REFUSED(om_concat(1, (om_tensor *[]){x}, 2), OM_ERR_ARG, "axis 2");
    REFUSED(om_concat(3, (om_tensor *[]){wide, wide, wide}, 0), OM_ERR_SHAPE, "more elements");
    REFUSED(om_stack(2, (om_tensor *[]){x, y}, 0), OM_ERR_SHAPE, "do not stack");
    REFUSED(om_stack(2, (om_tensor *[]){x, i}, 0), OM_ERR_DTYPE, "types differ");
    REFUSED(om_stack(2, (om_tensor *[]){x, x}, 3), OM_ERR_ARG, "axis 3");
    REFUSED(om_stack(0, NULL, 0), OM_ERR_ARG, "one or more");
    REFUSED(om_pad(x, 1, (int64_t[]){1}, (int64_t[]){1}, 0), OM_ERR_ARG, "all 2");
    REFUSED(om_pad(x, 2, (int64_t[]){0, -1}, (int64_t[]){0, 0}, 0), OM_ERR_ARG, "om_slice");
    REFUSED(om_pad(x, 2, (int64_t[]){0, 1}, NULL, 0), OM_ERR_ARG, "both lists");
    REFUSED(om_pad(x, 2, (int64_t[]){0, INT64_MAX}, (int64_t[]){0, 0}, 0), OM_ERR_SHAPE,
            "overflow");
    REFUSED(om_pad(x, 2, (int64_t[]){0, INT64_MAX / 8}, (int64_t[]){0, 0}, 0), OM_ERR_SHAPE,
            "more elements");
    om_scope_end(s);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        OM_TEST(aliases_return_the_same_handle),
        OM_TEST(an_alias_outlives_the_scope_of_its_source),
        OM_TEST(views_share_storage),
        OM_TEST(records_keep_what_the_caller_wrote),
        OM_TEST(split_with_unused_outputs),
        OM_TEST(a_piece_that_nobody_uses),
        OM_TEST(top_k_through_record_and_backward),
        OM_TEST(padding_rows_get_no_gradient),
        OM_TEST(a_leaf_owns_its_gradient),
        OM_TEST(shapes_are_refused),
        OM_TEST(parts_are_refused),
        OM_TEST(joins_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
