/*
 * models.c -- a valid ONNX file of a few nodes from a seed (models.h): every node type this library
 * runs, with attributes and sizes that are each allowed by the format and extreme together.
 *
 * Attributes are drawn by the names that ONNX gives them, half of the time plausible for the rank
 * at hand and half of the time extreme, so that some models run and the others are refused for one
 * reason at a time.
 */
#include "fuzz/models.h"

#include <stdio.h>
#include <string.h>

enum { MAX_VALUES = 24, MAX_RANK = 5 };

typedef struct value {
    char name[16];
    int dtype, rank; /* of graph inputs and initializers; a node's output has rank -1 */
    int64_t dims[MAX_RANK];
} value;

typedef struct maker {
    fuzz_rng *g;
    value v[MAX_VALUES];
    int n;
    pb graph;
} maker;

/* ---- the node types ---------------------------------------------------------------------------
 */

/* Inputs by letter: x any value, f a float one, i an int64 list (often constant), b a bool,
 * capital: may be absent, '*': one to four. Attributes: name:kind, kinds i int, l list, f float, b
 * flag, s text of choices, t a tensor of one element, g a subgraph (always there). */
typedef struct node_type {
    const char *type, *in, *attrs;
} node_type;

static const node_type types[] = {
    {"Neg", "f", ""},
    {"Abs", "x", ""},
    {"Exp", "f", ""},
    {"Log", "f", ""},
    {"Sqrt", "f", ""},
    {"Tanh", "f", ""},
    {"Sigmoid", "f", ""},
    {"Erf", "f", ""},
    {"Relu", "f", ""},
    {"Gelu", "f", "approximate:s"},
    {"Not", "b", ""},
    {"Add", "ff", ""},
    {"Sub", "xx", ""},
    {"Mul", "ff", ""},
    {"Div", "xx", ""},
    {"Equal", "xx", ""},
    {"Less", "xx", ""},
    {"GreaterOrEqual", "ff", ""},
    {"And", "bb", ""},
    {"Max", "*f", ""},
    {"Min", "*x", ""},
    {"Sum", "*f", ""},
    {"Mean", "*f", ""},
    {"If", "b", "then_branch:g else_branch:g"},
    {"Loop", "IBfx", "body:g"},
    {"Scan", "fx",
     "body:g num_scan_inputs:i scan_input_axes:l scan_input_directions:l scan_output_axes:l"},
    {"NonZero", "x", ""},
    {"Where", "bff", ""},
    {"Clip", "fFF", ""},
    {"Cast", "x", "to:d saturate:b"},
    {"CastLike", "xx", ""},
    {"MatMul", "ff", ""},
    {"Gemm", "ffF", "alpha:f beta:f transA:b transB:b"},
    {"ReduceSum", "fI", "keepdims:b noop_with_empty_axes:b"},
    {"ReduceMean", "fI", "keepdims:b noop_with_empty_axes:b"},
    {"ReduceMax", "xI", "keepdims:b noop_with_empty_axes:b"},
    {"ReduceProd", "fI", "keepdims:b"},
    {"ReduceSumSquare", "fI", "keepdims:b"},
    {"ArgMax", "x", "axis:i keepdims:b select_last_index:b"},
    {"ArgMin", "x", "axis:i keepdims:b"},
    {"Softmax", "f", "axis:i"},
    {"LogSoftmax", "f", "axis:i"},
    {"LayerNormalization", "ffF", "axis:i epsilon:f stash_type:i"},
    {"BatchNormalization", "fffff", "epsilon:f momentum:f training_mode:b"},
    {"Identity", "x", ""},
    {"Dropout", "f", ""},
    {"Reshape", "xi", "allowzero:b"},
    {"Flatten", "x", "axis:i"},
    {"Squeeze", "xI", ""},
    {"Unsqueeze", "xi", ""},
    {"Shape", "x", "start:i end:i"},
    {"Size", "x", ""},
    {"ConstantOfShape", "i", "value:t"},
    {"Range", "iii", ""},
    {"Transpose", "x", "perm:l"},
    {"Slice", "xiiII", ""},
    {"Gather", "xi", "axis:i"},
    {"Concat", "*x", "axis:i"},
    {"Split", "xI", "axis:i num_outputs:i"},
    {"Expand", "xi", ""},
    {"Pad", "xiFI", "mode:s"},
    {"Trilu", "xI", "upper:b"},
    {"TopK", "xi", "axis:i largest:b sorted:b"},
    {"Conv", "ffF", "kernel_shape:l strides:l dilations:l pads:l group:i auto_pad:s"},
    {"MaxPool", "f",
     "kernel_shape:l strides:l dilations:l pads:l ceil_mode:b auto_pad:s storage_order:b"},
    {"AveragePool", "f",
     "kernel_shape:l strides:l pads:l ceil_mode:b count_include_pad:b auto_pad:s"},
    {"Reciprocal", "f", ""},
    {"Sin", "f", ""},
    {"Cos", "f", ""},
    {"LessOrEqual", "xx", ""},
    {"Greater", "xx", ""},
    {"Or", "bb", ""},
    {"Xor", "bb", ""},
    {"ReduceMin", "xI", "keepdims:b noop_with_empty_axes:b"},
    // Forms of earlier versions, whose operands were attributes.
    {"ReduceMax", "f", "axes:l keepdims:b"},
    {"ReduceSum", "f", "axes:l keepdims:b"},
    {"Squeeze", "x", "axes:l"},
    {"Unsqueeze", "x", "axes:l"},
    {"Split", "x", "axis:i split:l"},
    {"Slice", "x", "starts:l ends:l axes:l"},
    {"Clip", "f", "min:f max:f"},
    {"Pad", "f", "pads:l value:f"},
    {"TopK", "x", "axis:i k:i"},
    {"BatchNormalization", "fffff", "epsilon:f spatial:b"},
    {"Dropout", "f", "ratio:f"},
    {"GlobalAveragePool", "f", ""},
    {"GlobalMaxPool", "f", ""},
};
enum { N_TYPES = sizeof types / sizeof *types };

/* ---- values -----------------------------------------------------------------------------------
 */

static value *new_value(maker *m, int dtype, int rank) {
    value *v = &m->v[m->n];
    snprintf(v->name, sizeof v->name, "v%d", m->n++);
    v->dtype = dtype;
    v->rank  = rank;
    return v;
}

static int some_type(fuzz_rng *g) {
    static const int t[] = {OM_F32, OM_F32, OM_F32, OM_F32,  OM_I64,
                            OM_F64, OM_I32, OM_U8,  OM_BOOL, 10 /* float16 */};
    return t[fuzz_below(g, 10)];
}

static int64_t some_size(fuzz_rng *g) {
    static const int64_t sizes[] = {1, 1, 2, 3, 3, 4, 7, 0};
    return sizes[fuzz_below(g, 8)];
}

static void add_input(maker *m, int dtype) {
    value *v = new_value(m, dtype, (int)fuzz_below(m->g, MAX_RANK + 1));
    pb shape = {0}, tensor = {0}, type = {0}, info = {0};
    for (int i = 0; i < v->rank; i++) {
        pb dim     = {0};
        v->dims[i] = fuzz_chance(m->g, 96) ? some_size(m->g) : fuzz_extreme(m->g);
        if (fuzz_chance(m->g, 15))
            pb_str(&dim, 2, fuzz_chance(m->g, 50) ? "N" : "T");
        else
            pb_int_field(&dim, 1, (uint64_t)v->dims[i]);
        pb_msg(&shape, 1, &dim);
    }
    pb_int_field(&tensor, 1, (uint64_t)dtype);
    pb_msg(&tensor, 2, &shape);
    pb_msg(&type, 1, &tensor);
    pb_str(&info, 1, v->name);
    pb_msg(&info, 2, &type);
    pb_msg(&m->graph, 11, &info);
}

static void put_elements(fuzz_rng *g, int dtype, int64_t n, uint8_t *raw) {
    size_t size = om_dtype_size((om_dtype)dtype);
    for (int64_t i = 0; i < n; i++) {
        float f   = fuzz_float(g);
        double d  = (double)f;
        int64_t k = fuzz_chance(g, 60) ? fuzz_below(g, 4) : fuzz_extreme(g);
        if (dtype == OM_BOOL) k &= 1;
        const void *from = dtype == OM_F32   ? (const void *)&f
                           : dtype == OM_F64 ? (const void *)&d
                                             : (const void *)&k;
        memcpy(raw + (size_t)i * size, from, size);
    }
}

/* A weight of rank up to 5 and at most 4,096 elements; an empty one may have extreme other sizes.
 */
static value *add_weight(maker *m, int dtype, int rank) {
    static uint8_t raw[4096 * 8];
    value *v  = new_value(m, dtype, rank);
    int64_t n = 1;
    uint64_t dims[MAX_RANK];
    bool hollow = rank > 1 && fuzz_chance(m->g, 4);
    for (int i = 0; i < rank; i++) {
        v->dims[i] = hollow ? (i ? fuzz_extreme(m->g) & INT64_MAX : 0) : some_size(m->g);
        if (!hollow && n * v->dims[i] > 4096) v->dims[i] = 1;
        n       = hollow ? 0 : n * v->dims[i];
        dims[i] = (uint64_t)v->dims[i];
    }
    put_elements(m->g, dtype, n, raw);
    pb t = pb_tensor(rank, dims, (uint64_t)dtype, v->name, raw,
                     (size_t)n * om_dtype_size((om_dtype)dtype));
    pb_msg(&m->graph, 5, &t);
    return v;
}

/* int64 [n] or a scalar: axes, sizes, starts, pads ... */
static value *add_list(maker *m) {
    int64_t raw[8];
    int n      = (int)fuzz_below(m->g, 6);
    value *v   = new_value(m, OM_I64, fuzz_chance(m->g, 15) ? 0 : 1);
    v->dims[0] = v->rank ? n : 1;
    for (int i = 0; i < 8; i++)
        raw[i] = fuzz_chance(m->g, 75) ? fuzz_below(m->g, 4) : fuzz_extreme(m->g);
    uint64_t dims[1] = {(uint64_t)n};
    pb t             = pb_tensor(v->rank, dims, OM_I64, v->name, raw, (size_t)v->dims[0] * 8);
    pb_msg(&m->graph, 5, &t);
    return v;
}

static const char *operand(maker *m, char kind) {
    fuzz_rng *g = m->g;
    int want    = kind == 'f' ? OM_F32 : kind == 'b' ? OM_BOOL : kind == 'i' ? OM_I64 : 0;
    for (int k = 0; k < 6 && m->n; k++) {
        value *v = &m->v[fuzz_below(g, m->n)];
        if (want == 0 || v->dtype == want || v->rank < 0) return v->name;
    }
    if (m->n >= MAX_VALUES - 6) return m->v[0].name;
    if (kind == 'i') return add_list(m)->name;
    return add_weight(m,
                      want                 ? want
                      : some_type(g) == 10 ? OM_F32
                                           : OM_F32,
                      (int)fuzz_below(g, MAX_RANK + 1))
        ->name;
}

/* ---- attributes -------------------------------------------------------------------------------
 */

static pb attr_head(const char *name, int type) {
    pb a = {0};
    pb_str(&a, 1, name);
    pb_int_field(&a, 20, (uint64_t)type);
    return a;
}

static void put_float(pb *a, float f) {
    uint8_t tag = 2 << 3 | 5;
    pb_raw(a, &tag, 1);
    pb_raw(a, &f, 4);
}

static pb list_attr(fuzz_rng *g, const char *name) {
    bool perm = strcmp(name, "perm") == 0, pads = strcmp(name, "pads") == 0,
         fit = fuzz_chance(g, 75);
    int n    = fit ? (perm   ? (int)fuzz_below(g, 5)
                      : pads ? 4
                             : 2)
                   : (int)fuzz_below(g, 7),
        swap = (int)fuzz_below(g, 4);
    pb a     = attr_head(name, 7);
    for (int i = 0; i < n; i++) {
        int64_t v = perm   ? (i ^ (swap < n && (i ^ 1) < n ? 1 : 0))
                    : pads ? fuzz_below(g, 3)
                           : 1 + fuzz_below(g, 3);
        if (!fit && fuzz_chance(g, 50)) v = fuzz_extreme(g);
        pb_int_field(&a, 8, (uint64_t)v);
    }
    return a;
}

static void name_info(pb *to, uint32_t field, const char *name) {
    pb info = {0};
    pb_str(&info, 1, name);
    pb_msg(to, field, &info);
}

/* For a Loop over two states mostly, else for a Scan or a branch: a node over what comes in or is
 * captured, its results out. Sometimes with one input or output too many or few. */
static pb graph_attr(maker *m, const char *name) {
    static const char *const in[] = {"q0", "q1", "q2", "q3", "q4"};
    static const char *const of[] = {"Add", "Mul", "Concat", "Neg", "Identity", "Equal", "NonZero"};
    fuzz_rng *g                   = m->g;
    bool body                     = strcmp(name, "body") == 0;
    pb a = attr_head(name, 5), sub = {0};
    int n_in = body ? (fuzz_chance(g, 60) ? 4 : 2 + (int)fuzz_below(g, 4)) : 0;
    for (int k = 0; k < n_in && k < 5; k++)
        name_info(&sub, 11, in[k]);
    int nodes = 1 + (int)fuzz_below(g, 3);
    for (int k = 0; k < nodes; k++) {
        pb n          = {0};
        const char *t = of[fuzz_below(g, 7)];
        char out[16];
        snprintf(out, sizeof out, "r%d", k);
        for (int i = strcmp(t, "Add") && strcmp(t, "Mul") && strcmp(t, "Equal") ? 1 : 2; i > 0; i--)
            pb_str(&n, 1,
                   n_in && fuzz_chance(g, 70) ? in[fuzz_below(g, n_in < 5 ? n_in : 5)]
                   : m->n                     ? m->v[fuzz_below(g, m->n)].name
                                              : "r0");
        pb_str(&n, 2, out);
        pb_str(&n, 4, t);
        if (strcmp(t, "Concat") == 0) {
            pb axis = attr_head("axis", 2);
            pb_int_field(&axis, 3, 0);
            pb_msg(&n, 5, &axis);
        }
        pb_msg(&sub, 1, &n);
    }
    pb_str(&sub, 2, "sub");
    if (body) name_info(&sub, 12, n_in > 1 && fuzz_chance(g, 80) ? "q1" : "r0");
    for (int k = body ? 1 + (int)fuzz_below(g, 4) : 1; k > 0; k--)
        name_info(&sub, 12, fuzz_chance(g, 50) && n_in > 2 ? "q2" : "r0");
    pb_msg(&a, 6, &sub);
    return a;
}

static pb one_attr(fuzz_rng *g, const char *name, char kind) {
    static const char *const texts[] = {"tanh",  "none",       "constant", "reflect", "edge",
                                        "VALID", "SAME_UPPER", "NOTSET",   ""};
    if (kind == 'l') return list_attr(g, name);
    pb a = attr_head(name, kind == 'f' ? 1 : kind == 's' ? 3 : kind == 't' ? 4 : 2);
    if (kind == 'f') put_float(&a, fuzz_chance(g, 80) ? 1e-5f : fuzz_float(g));
    if (kind == 's') pb_str(&a, 4, texts[fuzz_below(g, 9)]);
    if (kind == 'b')
        pb_int_field(&a, 3, (uint64_t)(fuzz_chance(g, 97) ? fuzz_below(g, 2) : fuzz_extreme(g)));
    if (kind == 'i')
        pb_int_field(&a, 3, (uint64_t)(fuzz_chance(g, 80) ? fuzz_below(g, 3) : fuzz_extreme(g)));
    if (kind == 'd')
        pb_int_field(&a, 3, (uint64_t)(fuzz_chance(g, 90) ? some_type(g) : fuzz_extreme(g)));
    if (kind == 't') {
        double raw  = 1.5;
        int dtype   = fuzz_chance(g, 70) ? OM_F32 : some_type(g);
        uint64_t d1 = 1;
        pb t = pb_tensor(1, &d1, (uint64_t)dtype, "value", &raw, om_dtype_size((om_dtype)dtype));
        pb_msg(&a, 5, &t);
    }
    return a;
}

static void put_attrs(maker *m, pb *node, const char *list) {
    while (*list) {
        char name[32];
        size_t n = strcspn(list, ":");
        snprintf(name, sizeof name, "%.*s", (int)n, list);
        if (list[n + 1] == 'g' || fuzz_chance(m->g, 45)) {
            pb a = list[n + 1] == 'g' ? graph_attr(m, name) : one_attr(m->g, name, list[n + 1]);
            pb_msg(node, 5, &a);
        }
        list += n + 2;
        list += *list == ' ';
    }
}

/* ---- nodes and the model ----------------------------------------------------------------------
 */

static void add_node(maker *m) {
    const node_type *t = &types[fuzz_below(m->g, N_TYPES)];
    pb n               = {0};
    const char *in     = t->in;
    int copies         = *in == '*' ? 1 + (int)fuzz_below(m->g, 4) : 0;
    if (copies) in++;
    for (; *in; in += copies-- <= 1) {
        bool absent = *in >= 'A' && *in <= 'Z' && fuzz_chance(m->g, 50);
        pb_str(&n, 1, absent ? "" : operand(m, (char)(*in | 32)));
    }
    int outs = strcmp(t->type, "Split") == 0  ? 1 + (int)fuzz_below(m->g, 3)
               : strcmp(t->type, "TopK") == 0 ? 2
                                              : 1;
    for (int k = 0; k < outs && m->n < MAX_VALUES; k++)
        pb_str(&n, 2, new_value(m, 0, -1)->name);
    pb_str(&n, 4, t->type);
    put_attrs(m, &n, t->attrs);
    pb_msg(&m->graph, 1, &n);
}

pb fuzz_model(fuzz_rng *g) {
    static const int opsets[] = {20, 20, 20, 13, 17, 18, 11, 9};
    maker m                   = {.g = g};
    for (int k = 1 + (int)fuzz_below(g, 3); k > 0; k--)
        add_input(&m, some_type(g));
    for (int k = 1 + (int)fuzz_below(g, 4); k > 0; k--)
        add_node(&m);
    pb_str(&m.graph, 2, "g");
    for (int k = 0, outs = 0; k < m.n; k++)
        if (m.v[k].rank < 0 && (outs == 0 || fuzz_chance(g, 60))) {
            pb info = {0};
            pb_str(&info, 1, m.v[k].name);
            pb_msg(&m.graph, 12, &info);
            outs++;
        }
    pb file = {0}, opset = {0};
    pb_int_field(&file, 1, 9);
    pb_msg(&file, 7, &m.graph);
    pb_int_field(&opset, 2, (uint64_t)opsets[fuzz_below(g, 8)]);
    pb_msg(&file, 8, &opset);
    return file;
}
