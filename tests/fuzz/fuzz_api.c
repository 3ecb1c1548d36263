/*
 * fuzz_api.c -- random sequences of public calls with extreme arguments: each call returns
 * something or raises a named error; nothing crashes, hangs, leaks, or ends with OM_ERR_INTERNAL. A
 * third of the sequences records a trace, whose session must then give the bits of the eager run;
 * another third goes backward.
 */
#include "fuzz/fuzz.h"

#include <stdio.h>
#include <string.h>

#include "onemodel.h"

enum { POOL = 12, CALLS = 14 };

typedef struct play {
    fuzz_rng g;
    om_tensor *t[POOL];
    int n;
    int64_t list[8];
    bool values; /* host reads are allowed: no trace */
} play;

static om_tensor *any(play *p) {
    return fuzz_chance(&p->g, 1) ? NULL : p->t[fuzz_below(&p->g, p->n)];
}

static int small_or_odd(play *p) { // an axis, a count
    return fuzz_chance(&p->g, 93) ? (int)fuzz_below(&p->g, 4) - 1
                                  : (int)(fuzz_extreme(&p->g) & 0x7fffffff);
}

static int64_t number(play *p) {
    return fuzz_chance(&p->g, 70) ? fuzz_below(&p->g, 4) : fuzz_extreme(&p->g);
}

static const int64_t *list(play *p) {
    for (int i = 0; i < 8; i++)
        p->list[i] = number(p);
    return p->list;
}

static int rank(play *p) {
    return fuzz_chance(&p->g, 97) ? (int)fuzz_below(&p->g, 5) : (int)fuzz_below(&p->g, 12) - 2;
}

static om_dtype type(play *p) {
    static const om_dtype types[] = {OM_F32, OM_F32, OM_F32,  OM_F32, OM_I64,
                                     OM_I32, OM_U8,  OM_BOOL, OM_F64, OM_DTYPE_NONE};
    return types[fuzz_below(&p->g, 10)];
}

static const int64_t *dims(play *p) {
    for (int i = 0; i < 8; i++)
        p->list[i] = fuzz_chance(&p->g, 97) ? fuzz_below(&p->g, 5) : fuzz_extreme(&p->g);
    return p->list;
}

/* ---- the calls, by family ---------------------------------------------------------------------
 */

typedef om_tensor *(*one_fn)(om_tensor *);
typedef om_tensor *(*two_fn)(om_tensor *, om_tensor *);
static const one_fn ones[] = {
    om_neg,        om_abs,   om_exp,        om_log,        om_sqrt,        om_tanh,
    om_sigmoid,    om_erf,   om_relu,       om_gelu,       om_gelu_tanh,   om_silu,
    om_reciprocal, om_not,   om_zeros_like, om_ones_like,  om_sum_all,     om_mean_all,
    om_contiguous, om_clone, om_detach,     om_to_nchw16c, om_from_nchw16c};
static const two_fn twos[] = {om_add,     om_sub,       om_mul,      om_div,        om_maximum,
                              om_minimum, om_equal,     om_less,     om_greater,    om_matmul,
                              om_and,     om_expand_as, om_mse_loss, om_causal_mask};

static om_tensor *scalar_call(play *p, om_tensor *x) {
    double s = (double)fuzz_float(&p->g);
    switch (fuzz_below(&p->g, 7)) {
    case 0:
        return om_add_scalar(x, s);
    case 1:
        return om_rsub_scalar(x, s);
    case 2:
        return om_mul_scalar(x, s);
    case 3:
        return om_div_scalar(x, s);
    case 4:
        return om_rdiv_scalar(x, s);
    case 5:
        return om_clamp(x, s, (double)fuzz_float(&p->g));
    default:
        return om_full_like(x, s, type(p));
    }
}

static om_tensor *reduce_call(play *p, om_tensor *x) {
    int n = fuzz_chance(&p->g, 90) ? (int)fuzz_below(&p->g, 3) : rank(p), axis = small_or_odd(p);
    bool b   = fuzz_chance(&p->g, 50);
    int kind = (int)fuzz_below(&p->g, 8);
    if (kind == 0) return om_sum(x, n, list(p), b);
    if (kind == 1) return om_mean(x, n, list(p), b);
    if (kind == 2) return om_max(x, n, list(p), b);
    if (kind == 3) return om_min(x, n, list(p), b);
    if (kind == 4) return om_argmax(x, axis, b);
    if (kind == 5) return om_softmax(x, axis);
    if (kind == 6) return om_log_softmax(x, axis);
    return om_layer_norm(x, axis, b ? any(p) : NULL, NULL, 1e-5f);
}

static om_tensor *shape_call(play *p, om_tensor *x) {
    int64_t after[8];
    switch (fuzz_below(&p->g, 14)) {
    case 0:
        return om_reshape(x, rank(p), list(p));
    case 1:
        return om_flatten(x, small_or_odd(p));
    case 2:
        return om_permute(x, fuzz_chance(&p->g, 80) ? om_rank(x) : rank(p), list(p));
    case 3:
        return om_transpose(x, small_or_odd(p), small_or_odd(p));
    case 4:
        return om_squeeze(x, (int)fuzz_below(&p->g, 2), list(p));
    case 5:
        return om_unsqueeze(x, 1 + (int)fuzz_below(&p->g, 2), list(p));
    case 6:
        return om_slice(x, small_or_odd(p), number(p), fuzz_chance(&p->g, 50) ? OM_END : number(p),
                        number(p));
    case 7:
        return om_select(x, small_or_odd(p), number(p));
    case 8:
        return om_index_select(x, small_or_odd(p), any(p));
    case 9:
        return om_concat(1 + (int)fuzz_below(&p->g, p->n), p->t, small_or_odd(p));
    case 10:
        return om_stack(1 + (int)fuzz_below(&p->g, p->n), p->t, small_or_odd(p));
    case 11:
        return om_expand(x, rank(p), list(p));
    case 12:
        return om_arange_like(x, small_or_odd(p));
    default:
        memcpy(after, list(p), sizeof after);
        return om_pad(x, om_rank(x), list(p), after, 1.5);
    }
}

static om_tensor *window_call(play *p, om_tensor *x) {
    om_conv2d_opts c = {.struct_size = sizeof c};
    om_pool2d_opts q = {.struct_size = sizeof q,
                        .ceil_mode   = fuzz_chance(&p->g, 30),
                        .exclude_pad = fuzz_chance(&p->g, 50)};
    for (int k = 0; k < 2; k++) {
        c.stride[k] = q.stride[k] = number(p);
        c.padding[k] = q.padding[k] = fuzz_chance(&p->g, 60) ? 0 : number(p);
        c.dilation[k] = q.dilation[k] = fuzz_chance(&p->g, 70) ? 1 : number(p);
        c.padding_end[k]              = fuzz_chance(&p->g, 90) ? 0 : number(p);
    }
    c.groups = fuzz_chance(&p->g, 80) ? 1 : number(p);
    switch (fuzz_below(&p->g, 4)) {
    case 0:
        return om_max_pool2d(x, number(p), number(p), &q);
    case 1:
        return om_avg_pool2d(x, number(p), number(p), &q);
    case 2:
        return om_adaptive_avg_pool2d(x, number(p), number(p));
    default:
        return om_conv2d(x, any(p), fuzz_chance(&p->g, 70) ? NULL : any(p), &c);
    }
}

static om_tensor *other_call(play *p, om_tensor *x) {
    om_tensor *out[8] = {0};
    om_rng r          = om_rng_new(3, 3);
    switch (fuzz_below(&p->g, 10)) {
    case 0:
        return om_cast(x, type(p));
    case 1:
        return om_where(any(p), x, any(p));
    case 2:
        return om_linear(x, any(p), fuzz_chance(&p->g, 60) ? NULL : any(p));
    case 3:
        return om_embedding(x, any(p), number(p));
    case 4:
        return om_nll_loss(x, any(p), NULL);
    case 5:
        return om_cross_entropy(x, any(p));
    case 6:
        return om_top_k(x, number(p), small_or_odd(p), fuzz_chance(&p->g, 50), &out[0], &out[1])
                   ? NULL
                   : out[0];
    case 7:
        return om_split(x, small_or_odd(p), 1 + (int)fuzz_below(&p->g, 4), list(p), out) ? NULL
                                                                                         : out[0];
    case 8:
        return p->values ? om_rand(&r, -1, 1, rank(p), dims(p)) : om_relu(x);
    default:
        return om_full((double)fuzz_float(&p->g), type(p), rank(p), dims(p));
    }
}

/* Calls that return no tensor, or read elements. */
static void host_call(play *p, om_tensor *x) {
    char hex[65];
    int64_t v[64];
    switch (fuzz_below(&p->g, 10)) {
    case 0:
        om_hash(x, hex);
        break;
    case 1:
        (void)om_item_f64(x);
        break;
    case 2:
        (void)om_get(x, list(p));
        break;
    case 3:
        om_set(x, list(p), 2);
        break;
    case 4:
        om_fill_(x, (double)fuzz_float(&p->g));
        break;
    case 5:
        om_copy_(x, any(p));
        break;
    case 6:
        om_add_(x, any(p));
        break;
    case 7:
        om_copy_out(x, v,
                    om_numel(x) <= 64 ? (size_t)om_numel(x) * om_dtype_size(om_dtype_of(x)) : 16);
        break;
    case 8:
        (void)om_allclose(x, any(p), 1e-3, 1e-3);
        break;
    default: {
        char *text = om_text_of(x);
        if (text) om_bytes_free(text, strlen(text) + 1);
    }
    }
}

static om_tensor *call(play *p) {
    om_tensor *x = any(p);
    switch (fuzz_below(&p->g, 8)) {
    case 0:
        return ones[fuzz_below(&p->g, sizeof ones / sizeof *ones)](x);
    case 1:
        return twos[fuzz_below(&p->g, sizeof twos / sizeof *twos)](x, any(p));
    case 2:
        return scalar_call(p, x);
    case 3:
        return reduce_call(p, x);
    case 4:
        return shape_call(p, x);
    case 5:
        return window_call(p, x);
    case 6:
        return other_call(p, x);
    default:
        if (p->values) host_call(p, x);
        return x;
    }
}

/* ---- a sequence -------------------------------------------------------------------------------
 */

static bool named(uint64_t seed) {
    om_error e;
    if (om_catch(&e) != OM_ERR_INTERNAL) return true;
    fprintf(stderr, "%llu: OM_ERR_INTERNAL from %s: %s\n", (unsigned long long)seed, e.where,
            e.message);
    return false;
}

/* Makes the calls; the number that returned a tensor, or -1. */
static int run_calls(play *p, uint64_t seed) {
    int made = 0;
    for (int k = 0; k < CALLS; k++) {
        om_tensor *y = call(p);
        if (!named(seed)) return -1;
        if (!y) continue;
        made++;
        if (p->n < POOL)
            p->t[p->n++] = y;
        else
            p->t[2 + fuzz_below(&p->g, POOL - 2)] = y;
    }
    return made;
}

static void start(play *p, bool leaves) {
    om_rng r = om_rng_new(fuzz_bits(&p->g), 3);
    for (; p->n < 5; p->n++) {
        int64_t d[5];
        int k = (int)fuzz_below(&p->g, 5);
        for (int i = 0; i < k; i++)
            d[i] = fuzz_chance(&p->g, 95) ? 1 + fuzz_below(&p->g, 5) : 0;
        bool ints  = p->n == 3;
        p->t[p->n] = ints ? om_randint(&r, 0, 3, k, d) : om_rand(&r, -2, 2, k, d);
        if (leaves && !ints) om_set_requires_grad(p->t[p->n], true);
    }
}

static int print(void *ctx, const char *text, size_t n) {
    (void)ctx;
    return fwrite(text, 1, n, stderr) != n;
}

/* What differed, for --one. */
static void explain(om_graph *g, om_tensor *x, om_tensor *eager, om_tensor *session) {
    om_tensor *const three[3] = {x, eager, session};
    om_graph_dump(g, print, NULL);
    for (int i = 0; i < 3; i++) {
        char *text = om_text_of(three[i]);
        if (text) fprintf(stderr, "%s %s\n", i == 0 ? "input" : i == 1 ? "eager" : "session", text);
        if (text) om_bytes_free(text, strlen(text) + 1);
    }
}

/* The session of what was traced, beside the eager output. */
static bool same_as_session(uint64_t seed, om_graph *g, om_tensor *x, om_tensor *y) {
    om_session *s = om_session_new(g, NULL);
    om_tensor *z  = NULL;
    om_binding in = {"x", x};
    om_status st  = s ? om_session_run(s, 1, &in, 1, &z) : om_pending();
    bool ok       = st == OM_OK && om_bit_equal(y, z);
    if (st == OM_ERR_CANCELLED || st == OM_ERR_NOMEM) ok = true;
    if (!ok) {
        om_error e;
        om_catch(&e);
        fprintf(stderr, "%llu: session differs from the eager run: %s\n", (unsigned long long)seed,
                e.message);
        explain(g, x, y, z);
    }
    om_catch(NULL);
    om_session_free(s);
    return ok;
}

static fuzz_outcome traced(play *p, uint64_t seed) {
    static const char *const axes[] = {"A", "B", NULL, "C"};
    om_tensor *example              = p->t[0];
    om_tracer *tr                   = om_trace_begin(NULL);
    bool sym                        = fuzz_chance(&p->g, 50);
    om_tensor *x =
        om_trace_input(tr, "x", example, sym && om_rank(example) <= 4 ? om_rank(example) : 0, axes);
    if (!x) { // an example size below 2, or two alike
        om_catch(NULL);
        om_trace_abort(tr);
        return FUZZ_REFUSED;
    }
    p->t[0]  = x;
    int made = run_calls(p, seed);
    if (made < 0) return om_trace_abort(tr), FUZZ_WRONG;
    om_tensor *y = p->t[p->n - 1];
    om_trace_output(tr, "y", y);
    om_graph *g = om_trace_finish(tr);
    if (!g) return named(seed) ? FUZZ_REFUSED : FUZZ_WRONG;
    bool ok = same_as_session(seed, g, example, y);
    om_graph_release(g);
    return ok ? FUZZ_RAN : FUZZ_WRONG;
}

static fuzz_outcome sequence(play *p, uint64_t seed) {
    int mode  = (int)fuzz_below(&p->g, 3);
    p->values = mode != 1;
    start(p, mode == 2);
    if (mode == 1) return traced(p, seed);
    int made = run_calls(p, seed);
    if (made < 0) return FUZZ_WRONG;
    if (mode == 2) {
        om_backward(om_sum_all(p->t[p->n - 1]));
        if (!named(seed)) return FUZZ_WRONG;
    }
    return made * 3 >= CALLS ? FUZZ_RAN : FUZZ_REFUSED;
}

static fuzz_outcome step(uint64_t seed) {
    om_memory_stats before, after;
    play p = {.g = {seed}};
    om_trim();
    om_memory(&before);
    int64_t tensors  = om_live_tensors();
    om_scope scope   = om_scope_begin();
    fuzz_outcome out = sequence(&p, seed);
    om_scope_end(scope);
    om_scope_drain();
    om_trim();
    om_memory(&after);
    if (out == FUZZ_WRONG || (om_live_tensors() == tensors && after.blocks <= before.blocks + 8))
        return out;
    fprintf(stderr, "%llu: %lld tensors and %lld blocks leaked\n", (unsigned long long)seed,
            (long long)(om_live_tensors() - tensors), (long long)(after.blocks - before.blocks));
    return FUZZ_WRONG;
}

int main(int argc, char **argv) {
    return fuzz_main(argc, argv, "fuzz_api", step, 20);
}
