/*
 * scale.c -- one kind of thing, n of them: what tests/scale/run.py counts the instructions of.
 *
 *     scale KIND N        scale --list
 *
 * A quadratic loop shows as a ratio of 16 between n and 4 n; linear work is 4.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "graph/graph.h"
#include "onemodel.h"

static void must(bool ok, const char *what) {
    om_error e;
    if (ok && om_pending() == OM_OK) return;
    om_catch(&e);
    fprintf(stderr, "%s: %s: %s\n", what, e.where, e.message);
    exit(1);
}

static const char *numbered(const char *stem, int i) {
    static char text[96];
    snprintf(text, sizeof text, "%s%d", stem, i);
    return text;
}

static om_tensor *vec(float v) {
    return om_full((double)v, OM_F32, OM_DIMS(2));
}

/* ---- graphs -----------------------------------------------------------------------------------
 */

static uint32_t value(om_graph *g, const char *name) {
    om_gdim d = OM_DIM_FIXED(2);
    return omi_graph_add_value(g, name, OM_F32, 1, &d);
}

static void weight(om_graph *g, uint32_t v) {
    static const float two[2] = {1, 2};
    om_buffer *b              = omi_buffer_new(sizeof two);
    must(b != NULL, "weight");
    memcpy(b->data, two, sizeof two);
    omi_graph_add_init(g, v, OM_F32, 1, (int64_t[]){2}, b, 0, sizeof two);
    omi_buffer_release(b);
}

/* Through the writer, the reader and a session that runs once: what a user does with a file. */
static void use(om_graph *g, int n_inputs) {
    void *data;
    size_t bytes;
    must(omi_graph_seal(g) == OM_OK, "seal");
    must(om_graph_save_onnx_memory(g, NULL, &data, &bytes) == OM_OK, "save");
    om_graph_release(g);
    om_load_opts o   = {.struct_size = sizeof o, .memory_limit = 1 << 30};
    om_graph *loaded = om_graph_load_memory(data, bytes, &o);
    must(loaded != NULL, "load");
    om_session *s  = om_session_new(loaded, NULL);
    om_binding *in = calloc((size_t)n_inputs, sizeof *in);
    om_tensor *out;
    must(s && in, "session");
    om_scope scope = om_scope_begin();
    for (int i = 0; i < n_inputs; i++) {
        om_value_info v;
        om_session_input(s, i, &v);
        in[i] = (om_binding){v.name, vec(1)};
    }
    must(om_session_run(s, n_inputs, in, 1, &out) == OM_OK, "run");
    om_scope_end(scope);
    free(in);
    om_session_free(s);
    om_graph_release(loaded);
    om_bytes_free(data, bytes);
}

/* x, then n nodes of this type in a chain; with weights each takes one of its own. */
static void chain(int n, const char *type, bool weights) {
    om_graph *g = omi_graph_new("g", 0);
    uint32_t at = value(g, "x"), in[2];
    omi_graph_add_opset(g, "", 20);
    omi_graph_add_input(g, at);
    for (int i = 0; i < n; i++) {
        in[0] = at;
        if (weights) weight(g, in[1] = value(g, numbered("the.common.prefix.of.a.weight.", i)));
        at = value(g, numbered("value_", i));
        omi_graph_add_node(g, type, "", numbered("node_", i), weights ? 2 : 1, in, 1, &at);
    }
    omi_graph_add_output(g, at);
    must(true, "chain");
    use(g, 1);
}

static void nodes(int n) {
    chain(n, "Relu", false);
}
static void initializers(int n) {
    chain(n, "Add", true);
}

static void inputs(int n) {
    om_graph *g  = omi_graph_new("g", 0);
    uint32_t out = value(g, "y"), *in = calloc((size_t)n, sizeof *in);
    must(in != NULL, "inputs");
    omi_graph_add_opset(g, "", 20);
    for (int i = 0; i < n; i++)
        omi_graph_add_input(g,
                            in[i] = value(g, numbered("the.common.prefix.of.all.the.inputs.", i)));
    omi_graph_add_node(g, "Sum", "", "sum", (uint32_t)n, in, 1, &out);
    omi_graph_add_output(g, out);
    use(g, n);
    free(in);
}

/* Wide: all values are alive at once, then summed pair by pair. */
static void alive(int n) {
    om_graph *g = omi_graph_new("g", 0);
    uint32_t x = value(g, "x"), *v = calloc((size_t)n, sizeof *v), sum = 0;
    must(v != NULL, "alive");
    omi_graph_add_opset(g, "", 20);
    omi_graph_add_input(g, x);
    for (int i = 0; i < n; i++) {
        v[i] = value(g, numbered("v", i));
        omi_graph_add_node(g, i % 2 ? "Abs" : "Neg", "", numbered("n", i), 1, &x, 1, &v[i]);
    }
    sum = v[0];
    for (int i = 1; i < n; i++) {
        uint32_t two[2] = {sum, v[i]};
        sum             = value(g, numbered("s", i));
        omi_graph_add_node(g, "Add", "", numbered("a", i), 2, two, 1, &sum);
    }
    omi_graph_add_output(g, sum);
    use(g, 1);
    free(v);
}

/* ---- tensors ----------------------------------------------------------------------------------
 */

static void names(int n) {
    for (int i = 0; i < n; i++)
        om_set_name(vec(1), numbered("a.tensor.of.its.own.name.", i));
    om_scope_drain();
}

static void scopes(int n) {
    om_scope *s = calloc((size_t)n, sizeof *s);
    must(s != NULL, "scopes");
    for (int i = 0; i < n; i++)
        s[i] = om_scope_begin(), vec(1);
    for (int i = n; i-- > 0;)
        om_scope_end(s[i]);
    free(s);
}

static void tensors(int n) {
    om_tensor **t = calloc((size_t)n, sizeof(om_tensor *));
    must(t != NULL, "tensors");
    for (int i = 0; i < n; i++)
        t[i] = vec(1);
    for (int i = 0; i < n; i += 2) // out of the middle of the scope
        om_drop(t[i]);
    om_scope_drain();
    free(t);
}

static void backward(int n) {
    om_tensor *x = vec(1), *y = x;
    om_set_requires_grad(x, true);
    for (int i = 0; i < n; i++)
        y = om_add(y, x);
    om_backward(om_sum_all(y));
    om_scope_drain();
}

static om_module *net_of(int n) {
    om_module *m = om_nn_module();
    for (int i = 0; i < n; i++) {
        om_scope s = om_scope_begin();
        om_nn_parameter(m, numbered("a_parameter_", i), vec(1));
        om_scope_end(s);
    }
    return m;
}

static void parameters(int n) {
    om_module *m = net_of(n);
    om_optim *o  = om_adam(m, 0.1, NULL);
    om_tensor *s = vec(0);
    for (int i = 0; i < n; i++)
        s = om_add(s, om_nn_get(m, numbered("a_parameter_", i)));
    om_backward(om_sum_all(s));
    om_step(o);
    must(true, "parameters");
    om_optim_free(o);
    om_scope_drain();
    om_nn_free(m);
}

/* ---- traces -----------------------------------------------------------------------------------
 */

static void end_trace(om_tracer *tr, om_tensor *y) {
    om_trace_output(tr, "y", y);
    om_graph *g = om_trace_finish(tr);
    must(g != NULL, "trace");
    om_graph_release(g);
    om_scope_drain();
}

static void traced_nodes(int n) {
    om_tracer *tr = om_trace_begin(NULL);
    om_tensor *x  = om_trace_input(tr, "x", om_zeros(OM_F32, OM_DIMS(3, 2)), OM_AXES("B"));
    for (int i = 0; i < n; i++)
        x = om_relu(x);
    end_trace(tr, x);
}

static void traced_parameters(int n) {
    om_module *m  = net_of(n);
    om_tracer *tr = om_trace_begin(NULL);
    om_trace_params(tr, m);
    om_tensor *x = om_trace_input(tr, "x", om_zeros(OM_F32, OM_DIMS(3, 2)), OM_AXES("B"));
    for (int i = 0; i < n; i++)
        x = om_add(x, om_nn_get(m, numbered("a_parameter_", i)));
    end_trace(tr, x);
    om_nn_free(m);
}

static void selects(int n) {
    om_tracer *tr = om_trace_begin(NULL);
    om_tensor *x  = om_trace_input(tr, "x", om_zeros(OM_F32, OM_DIMS(n + 1, 2)), OM_AXES("T"));
    om_tensor *y  = om_select(x, 0, 0);
    for (int i = 1; i < n; i++)
        y = om_add(y, om_select(x, 0, i));
    end_trace(tr, y);
}

/* n sizes, each derived from the one before. */
static void derived_sizes(int n) {
    om_tracer *tr  = om_trace_begin(NULL);
    om_tensor *x   = om_trace_input(tr, "x", om_zeros(OM_F32, OM_DIMS(3, 1)), OM_AXES("T")),
              *sum = NULL;
    for (int i = 0; i < n; i++) {
        om_tensor *two[2] = {
            x, om_trace_input(tr, numbered("x", i), om_zeros(OM_F32, OM_DIMS(3, 1)), OM_AXES("T"))};
        om_tensor *both = om_concat(2, two, i % 2);
        om_tensor *one  = om_sum_all(both);
        sum             = sum ? om_add(sum, one) : one;
    }
    end_trace(tr, sum);
}

static const struct {
    const char *name;
    void (*run)(int n);
} kinds[] = {{"nodes", nodes},
             {"initializers", initializers},
             {"inputs", inputs},
             {"alive", alive},
             {"names", names},
             {"scopes", scopes},
             {"tensors", tensors},
             {"backward", backward},
             {"parameters", parameters},
             {"traced_nodes", traced_nodes},
             {"traced_parameters", traced_parameters},
             {"selects", selects},
             {"derived_sizes", derived_sizes}};

int main(int argc, char **argv) {
    om_set_threads(1);
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        if (argc == 2 && strcmp(argv[1], "--list") == 0) puts(kinds[i].name);
        if (argc == 3 && strcmp(argv[1], kinds[i].name) == 0) {
            kinds[i].run(atoi(argv[2]));
            must(true, argv[1]);
            return 0;
        }
    }
    return argc != 2;
}
