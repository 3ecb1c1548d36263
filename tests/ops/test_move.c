/*
 * test_move.c -- operators that move elements, one table for all of them.
 *
 * Every case states where each output element comes from, in a few lines that share nothing with
 * the library. The table then runs the operator on all element types, on contiguous, permuted and
 * stepped inputs, and checks the gradient: dx is the sum of g over the outputs that read a cell.
 */
#include "harness.h"

#include <string.h>

#include "compute/move.h"
#include "ops/op.h"

/* first, first + 1, ... as elements of type t. */
static om_tensor *counting(int64_t first, om_dtype t, int rank, const int64_t *shape) {
    om_tensor *x = om_zeros(t, rank, shape);
    char *p      = om_data_mut(x);
    for (int64_t i = 0; i < om_numel(x); i++)
        omi_element_from_double((double)(first + i), t, p + (size_t)i * om_dtype_size(t));
    return x;
}

typedef struct move_arg {
    int n;
    int64_t v[OM_MAX_RANK], w[OM_MAX_RANK];
} move_arg;

/* Fills from (coordinates in x) for output coordinates at; false: the element is a pad. */
typedef bool (*source_fn)(const move_arg *a, const om_tensor *x, const om_tensor *y,
                          const int64_t *at, int64_t *from);
typedef om_tensor *(*run_fn)(const move_arg *a, om_tensor *x);

typedef struct move_case {
    const char *name;
    run_fn run;
    source_fn source;
    int rank;
    int64_t shape[OM_MAX_RANK];
    move_arg arg;
} move_case;

/* ---- the operators and where their elements come from ------------------------------------------
 */

static int64_t flat_index(const int64_t *at, int rank, const int64_t *shape) {
    int64_t k = 0;
    for (int i = 0; i < rank; i++)
        k = k * shape[i] + at[i];
    return k;
}
static void unflatten(int64_t k, int rank, const int64_t *shape, int64_t *at) {
    for (int i = rank - 1; i >= 0; i--) {
        at[i] = k % shape[i];
        k /= shape[i];
    }
}

static om_tensor *run_reshape(const move_arg *a, om_tensor *x) {
    return om_reshape(x, a->n, a->v);
}
static om_tensor *run_flatten(const move_arg *a, om_tensor *x) {
    return om_flatten(x, (int)a->v[0]);
}
static om_tensor *run_squeeze(const move_arg *a, om_tensor *x) {
    return om_squeeze(x, a->n, a->v);
}
static om_tensor *run_unsqueeze(const move_arg *a, om_tensor *x) {
    return om_unsqueeze(x, a->n, a->v);
}
static om_tensor *run_clone(const move_arg *a, om_tensor *x) {
    return a ? om_clone(x) : NULL;
}
static om_tensor *run_contiguous(const move_arg *a, om_tensor *x) {
    return a ? om_contiguous(x) : NULL;
}
static bool same_order(const move_arg *a, const om_tensor *x, const om_tensor *y, const int64_t *at,
                       int64_t *from) {
    (void)a;
    unflatten(flat_index(at, y->rank, y->shape), x->rank, x->shape, from);
    return true;
}

static om_tensor *run_permute(const move_arg *a, om_tensor *x) {
    return om_permute(x, a->n, a->v);
}
static bool from_permute(const move_arg *a, const om_tensor *x, const om_tensor *y,
                         const int64_t *at, int64_t *from) {
    (void)y;
    for (int i = 0; i < x->rank; i++)
        from[a->v[i] < 0 ? a->v[i] + x->rank : a->v[i]] = at[i];
    return true;
}
static om_tensor *run_transpose(const move_arg *a, om_tensor *x) {
    return om_transpose(x, (int)a->v[0], (int)a->v[1]);
}
static bool from_transpose(const move_arg *a, const om_tensor *x, const om_tensor *y,
                           const int64_t *at, int64_t *from) {
    (void)y;
    int64_t p = a->v[0] < 0 ? a->v[0] + x->rank : a->v[0],
            q = a->v[1] < 0 ? a->v[1] + x->rank : a->v[1];
    memcpy(from, at, sizeof(int64_t) * (size_t)x->rank);
    from[p] = at[q];
    from[q] = at[p];
    return true;
}

static om_tensor *run_expand(const move_arg *a, om_tensor *x) {
    return om_expand(x, a->n, a->v);
}
static om_tensor *run_expand_as(const move_arg *a, om_tensor *x) {
    return om_expand_as(x, om_zeros(OM_BOOL, a->n, a->v));
}
static bool from_expand(const move_arg *a, const om_tensor *x, const om_tensor *y,
                        const int64_t *at, int64_t *from) {
    (void)a;
    for (int i = 0; i < x->rank; i++)
        from[i] = x->shape[i] == 1 ? 0 : at[y->rank - x->rank + i];
    return true;
}

/* arg: axis, start, end, step; w: the indices that NumPy picks. */
static om_tensor *run_slice(const move_arg *a, om_tensor *x) {
    return om_slice(x, (int)a->v[0], a->v[1], a->v[2], a->v[3]);
}
static bool from_slice(const move_arg *a, const om_tensor *x, const om_tensor *y, const int64_t *at,
                       int64_t *from) {
    int axis = (int)(a->v[0] < 0 ? a->v[0] + x->rank : a->v[0]);
    assert_int_equal(y->shape[axis], a->n);
    memcpy(from, at, sizeof(int64_t) * (size_t)x->rank);
    from[axis] = a->w[at[axis]];
    return true;
}
static om_tensor *run_select(const move_arg *a, om_tensor *x) {
    return om_select(x, (int)a->v[0], a->v[1]);
}
/* w[0]: the axis, w[1]: the index, both counted from the start. */
static bool from_select(const move_arg *a, const om_tensor *x, const om_tensor *y,
                        const int64_t *at, int64_t *from) {
    (void)y;
    for (int i = 0, k = 0; i < x->rank; i++)
        from[i] = i == a->w[0] ? a->w[1] : at[k++];
    return true;
}
/* v: axis; n indices in w, as a row or, for even n, as [2, n/2] with a stride. */
static om_tensor *index_of(const move_arg *a, bool square) {
    int32_t small[OM_MAX_RANK];
    for (int i = 0; i < a->n; i++)
        small[i] = (int32_t)a->w[i];
    om_tensor *idx    = om_from(a->w, OM_I64, 1, (int64_t[]){a->n});
    om_tensor *narrow = om_from(small, OM_I32, 1, (int64_t[]){a->n});
    return square ? om_reshape(idx, 2, (int64_t[]){2, a->n / 2}) : narrow;
}
static om_tensor *run_index_select(const move_arg *a, om_tensor *x) {
    return om_index_select(x, (int)a->v[0], index_of(a, false));
}
static om_tensor *run_index_select2(const move_arg *a, om_tensor *x) {
    return om_index_select(x, (int)a->v[0], index_of(a, true));
}
static bool from_index(const move_arg *a, const om_tensor *x, const om_tensor *y, const int64_t *at,
                       int64_t *from) {
    int axis = (int)(a->v[0] < 0 ? a->v[0] + x->rank : a->v[0]), extra = y->rank - x->rank;
    int64_t k = extra ? at[axis] * (a->n / 2) + at[axis + 1] : at[axis];
    for (int i = 0; i < x->rank; i++)
        from[i] = i < axis ? at[i] : at[i + extra];
    from[axis] = a->w[k] < 0 ? a->w[k] + x->shape[axis] : a->w[k];
    return true;
}
static om_tensor *run_embedding(const move_arg *a, om_tensor *x) {
    return om_embedding(x, index_of(a, true), -1);
}

/* Pieces of sizes w along axis v[0], joined again in the order of v[1..]. */
static om_tensor *run_split(const move_arg *a, om_tensor *x) {
    om_tensor *piece[OM_MAX_RANK], *joined[OM_MAX_RANK];
    if (om_split(x, (int)a->v[0], a->n, a->w, piece) != OM_OK) return NULL;
    for (int i = 0; i < a->n; i++)
        joined[i] = piece[a->v[1 + i]];
    return om_concat(a->n, joined, (int)a->v[0]);
}
static bool from_split(const move_arg *a, const om_tensor *x, const om_tensor *y, const int64_t *at,
                       int64_t *from) {
    (void)y;
    int axis  = (int)a->v[0];
    int64_t k = at[axis], piece = 0, start = 0;
    while (k >= a->w[a->v[1 + piece]])
        k -= a->w[a->v[1 + piece++]];
    for (int64_t i = 0; i < a->v[1 + piece]; i++)
        start += a->w[i];
    memcpy(from, at, sizeof(int64_t) * (size_t)x->rank);
    from[axis] = start + k;
    return true;
}
static om_tensor *run_stack(const move_arg *a, om_tensor *x) {
    return om_stack(3, (om_tensor *[]){x, x, x}, (int)a->v[0]);
}
static bool from_stack(const move_arg *a, const om_tensor *x, const om_tensor *y, const int64_t *at,
                       int64_t *from) {
    int axis = (int)(a->v[0] < 0 ? a->v[0] + y->rank : a->v[0]);
    for (int i = 0; i < x->rank; i++)
        from[i] = at[i < axis ? i : i + 1];
    return true;
}
static om_tensor *run_pad(const move_arg *a, om_tensor *x) {
    return om_pad(x, a->n, a->v, a->w, 1);
}
static bool from_pad(const move_arg *a, const om_tensor *x, const om_tensor *y, const int64_t *at,
                     int64_t *from) {
    (void)y;
    for (int i = 0; i < x->rank; i++) {
        from[i] = at[i] - a->v[i];
        if (from[i] < 0 || from[i] >= x->shape[i]) return false;
    }
    return true;
}

// clang-format off
static const move_case cases[] = {
    {"reshape 24", run_reshape, same_order, 3, {2, 3, 4}, {1, {24}, {0}}},
    {"reshape -1", run_reshape, same_order, 3, {2, 3, 4}, {2, {-1, 6}, {0}}},
    {"reshape split", run_reshape, same_order, 2, {6, 4}, {4, {2, 3, 1, 4}, {0}}},
    {"reshape across", run_reshape, same_order, 3, {2, 3, 4}, {2, {4, 6}, {0}}},
    {"reshape rank 8", run_reshape, same_order, 1, {24}, {8, {1, 2, 1, 3, 1, 2, -1, 1}, {0}}},
    {"reshape to scalar", run_reshape, same_order, 2, {1, 1}, {0, {0}, {0}}},
    {"reshape from scalar", run_reshape, same_order, 0, {0}, {2, {1, -1}, {0}}},
    {"reshape empty", run_reshape, same_order, 3, {2, 0, 4}, {2, {0, 7}, {0}}},
    {"flatten 1", run_flatten, same_order, 4, {2, 3, 4, 2}, {1, {1}, {0}}},
    {"flatten -2", run_flatten, same_order, 4, {2, 3, 4, 2}, {1, {-2}, {0}}},
    {"flatten scalar", run_flatten, same_order, 0, {0}, {1, {0}, {0}}},
    {"flatten empty batch", run_flatten, same_order, 3, {0, 3, 4}, {1, {1}, {0}}},
    {"flatten empty", run_flatten, same_order, 3, {2, 0, 4}, {1, {1}, {0}}},
    {"squeeze", run_squeeze, same_order, 4, {1, 3, 1, 2}, {2, {0, -2}, {0}}},
    {"squeeze all", run_squeeze, same_order, 4, {1, 3, 1, 2}, {0, {0}, {0}}},
    {"unsqueeze", run_unsqueeze, same_order, 2, {3, 2}, {3, {0, -1, 2}, {0}}},
    {"unsqueeze scalar", run_unsqueeze, same_order, 0, {0}, {1, {-1}, {0}}},
    {"clone", run_clone, same_order, 3, {2, 3, 4}, {0, {0}, {0}}},
    {"clone scalar", run_clone, same_order, 0, {0}, {0, {0}, {0}}},
    {"contiguous", run_contiguous, same_order, 3, {2, 3, 4}, {0, {0}, {0}}},
    {"permute", run_permute, from_permute, 4, {2, 3, 4, 5}, {4, {2, 0, -1, 1}, {0}}},
    {"permute identity", run_permute, from_permute, 2, {3, 4}, {2, {0, 1}, {0}}},
    {"permute scalar", run_permute, from_permute, 0, {0}, {0, {0}, {0}}},
    {"transpose", run_transpose, from_transpose, 3, {2, 3, 4}, {2, {-1, 0}, {0}}},
    {"transpose same", run_transpose, from_transpose, 2, {2, 3}, {2, {1, -1}, {0}}},
    {"expand", run_expand, from_expand, 3, {2, 1, 3}, {4, {2, -1, 4, 3}, {0}}},
    {"expand scalar", run_expand, from_expand, 0, {0}, {2, {2, 3}, {0}}},
    {"expand to none", run_expand, from_expand, 2, {1, 3}, {2, {0, 3}, {0}}},
    {"expand_as", run_expand_as, from_expand, 2, {1, 3}, {3, {2, 5, 3}, {0}}},
    {"slice", run_slice, from_slice, 2, {5, 3}, {3, {0, 1, 4, 1}, {1, 2, 3}}},
    {"slice step", run_slice, from_slice, 2, {3, 7}, {3, {-1, 1, OM_END, 2}, {1, 3, 5}}},
    {"slice negative", run_slice, from_slice, 1, {6}, {2, {0, -3, -1, 1}, {3, 4}}},
    {"slice clamped", run_slice, from_slice, 1, {4}, {4, {0, -100, 100, 1}, {0, 1, 2, 3}}},
    {"slice none", run_slice, from_slice, 2, {4, 2}, {0, {0, 3, 1, 1}, {0}}},
    {"slice past end", run_slice, from_slice, 1, {4}, {0, {0, 9, OM_END, 1}, {0}}},
    {"slice huge step", run_slice, from_slice, 1, {4}, {1, {0, 1, OM_END, INT64_MAX}, {1}}},
    {"slice back", run_slice, from_slice, 2, {5, 2}, {5, {0, -1, OM_END, -1}, {4, 3, 2, 1, 0}}},
    {"slice back open start", run_slice, from_slice, 1, {5}, {3, {0, OM_END, INT64_MIN, -2}, {4, 2, 0}}},
    {"slice back part", run_slice, from_slice, 1, {6}, {2, {0, 4, 0, -2}, {4, 2}}},
    {"slice back none", run_slice, from_slice, 1, {6}, {0, {0, 1, 3, -1}, {0}}},
    {"slice back least step", run_slice, from_slice, 1, {6}, {1, {0, 5, OM_END, INT64_MIN}, {5}}},
    {"slice of empty", run_slice, from_slice, 1, {0}, {0, {0, 0, OM_END, -1}, {0}}},
    {"select", run_select, from_select, 3, {3, 4, 2}, {0, {1, 2}, {1, 2}}},
    {"select last", run_select, from_select, 3, {3, 4, 2}, {0, {-1, -1}, {2, 1}}},
    {"select to scalar", run_select, from_select, 1, {4}, {0, {0, 3}, {0, 3}}},
    {"index_select", run_index_select, from_index, 3, {2, 4, 3}, {5, {1}, {3, 0, 3, -1, 1}}},
    {"index_select none", run_index_select, from_index, 2, {4, 2}, {0, {0}, {0}}},
    {"index_select 2-D", run_index_select2, from_index, 2, {4, 3}, {6, {-1}, {2, 2, 2, 0, 1, -3}}},
    {"embedding", run_embedding, from_index, 2, {4, 3}, {4, {0}, {3, 1, 3, 0}}},
    {"split joined", run_split, from_split, 2, {2, 10}, {5, {1, 4, 2, 0, 3, 1}, {3, 0, 2, 1, 4}}},
    {"split axis 0", run_split, from_split, 3, {5, 2, 2}, {2, {0, 1, 0}, {2, 3}}},
    {"concat of one", run_split, from_split, 1, {3}, {1, {0, 0}, {3}}},
    {"stack front", run_stack, from_stack, 2, {2, 3}, {0, {0}, {0}}},
    {"stack back", run_stack, from_stack, 2, {2, 3}, {0, {-1}, {0}}},
    {"stack scalars", run_stack, from_stack, 0, {0}, {0, {0}, {0}}},
    {"pad", run_pad, from_pad, 3, {2, 3, 2}, {3, {1, 0, 2}, {0, 2, 1}}},
    {"pad nothing", run_pad, from_pad, 1, {3}, {1, {0}, {0}}},
    {"pad empty", run_pad, from_pad, 2, {0, 2}, {2, {1, 1}, {1, 0}}},
    {"pad scalar", run_pad, from_pad, 0, {0}, {0, {0}, {0}}},
};
// clang-format on

/* ---- the driver ------------------------------------------------------------------------------ */

static void no_error(const char *what) {
    om_error e;
    if (om_catch(&e) != OM_OK) fail_msg("%s: %s: %s", what, e.where, e.message);
}

/* x of the case's shape with distinct values, seen through strides: 0 plain, 1 axes stored in
 * reverse, 2 every second element of each axis of a larger array. */
static om_tensor *make_input(const move_case *c, om_dtype t, int how) {
    int64_t base[OM_MAX_RANK], perm[OM_MAX_RANK];
    for (int i = 0; i < c->rank; i++) {
        base[i] = how == 1 ? c->shape[c->rank - 1 - i] : how == 2 ? 2 * c->shape[i] : c->shape[i];
        perm[i] = c->rank - 1 - i;
    }
    // Distinct where the type allows: 1, 2, 3 ...; never the pad value 0 of another element.
    om_tensor *x = counting(1, t, c->rank, base);
    if (how == 1) x = om_permute(x, c->rank, perm);
    for (int i = 0; how == 2 && i < c->rank; i++)
        x = om_slice(x, i, 1, OM_END, 2);
    return om_detach(x);
}

static void check_forward(const move_case *c, om_tensor *x, om_tensor *y) {
    int64_t at[OM_MAX_RANK], from[OM_MAX_RANK];
    for (int64_t k = 0; k < om_numel(y); k++) {
        unflatten(k, y->rank, y->shape, at);
        double want = c->source(&c->arg, x, y, at, from) ? om_get(x, from) : 1;
        if (om_get(y, at) != want)
            fail_msg("%s, %s: element %lld is %g, not %g", c->name, om_dtype_name(om_dtype_of(x)),
                     (long long)k, om_get(y, at), want);
    }
}

static void check_gradient(const move_case *c, om_tensor *x, om_tensor *y) {
    int64_t at[OM_MAX_RANK], from[OM_MAX_RANK];
    double want[512] = {0};
    om_tensor *g     = counting(3, om_dtype_of(y), y->rank, y->shape);
    assert_true(om_numel(x) <= 512);
    assert_int_equal(om_backward_with(y, OM_OPTS(backward, .grad = g)), OM_OK);
    for (int64_t k = 0; k < om_numel(y); k++) {
        unflatten(k, y->rank, y->shape, at);
        if (c->source(&c->arg, x, y, at, from))
            want[flat_index(from, x->rank, x->shape)] += om_get(g, at);
    }
    om_tensor *dx = om_grad_of(x);
    assert_non_null(dx);
    for (int64_t k = 0; k < om_numel(x); k++) {
        unflatten(k, x->rank, x->shape, at);
        if (om_get(dx, at) != want[k])
            fail_msg("%s: dx[%lld] is %g, not %g", c->name, (long long)k, om_get(dx, at), want[k]);
    }
}

static void all_cases(void **state) {
    (void)state;
    static const om_dtype types[] = {OM_F32, OM_F64, OM_I64, OM_I32, OM_U8, OM_BOOL};
    int64_t live                  = om_live_tensors();
    for (size_t i = 0; i < OM_COUNT(cases); i++)
        for (size_t t = 0; t < OM_COUNT(types); t++)
            for (int how = 0; how < 3; how++) {
                om_scope s         = om_scope_begin();
                const move_case *c = &cases[i];
                om_tensor *x       = make_input(c, types[t], how);
                bool floats        = types[t] == OM_F32 || types[t] == OM_F64;
                if (floats) om_set_requires_grad(x, true);
                om_tensor *y = c->run(&c->arg, x);
                no_error(c->name);
                check_forward(c, x, y);
                no_error(c->name);
                if (floats) check_gradient(c, x, y);
                no_error(c->name);
                om_scope_end(s);
            }
    assert_int_equal(om_live_tensors(), live);
}

/* While an error is pending, nothing runs and nothing is raised. */
static void pending(void **state) {
    (void)state;
    for (size_t i = 0; i < OM_COUNT(cases); i++) {
        om_scope s   = om_scope_begin();
        om_tensor *x = make_input(&cases[i], OM_F32, 0);
        om_error e;
        om_reshape(NULL, 0, NULL);
        assert_null(cases[i].run(&cases[i].arg, x));
        om_catch(&e);
        assert_int_equal(e.status, OM_ERR_ARG);
        assert_string_equal(e.where, "om_reshape");
        om_scope_end(s);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {OM_TEST(all_cases), OM_TEST(pending)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
