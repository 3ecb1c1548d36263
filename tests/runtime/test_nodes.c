/*
 * test_nodes.c -- every node type the session runs against ONNX Runtime's answers in nodes.txt
 * (made by tools/make_node_cases.py), each case four times: sizes fixed in the graph or symbolic,
 * Exact or Fast.
 *
 * Integers and bools must be equal, floats within 1e-6 of the largest element of the output (ONNX
 * Runtime sums in another order); NaN and infinities in the same places.
 */
#include "runtime/build.h"

#include <math.h>

#include "graphops/node.h"

#define MAX_PORTS 8
#define MAX_NODES 8

typedef struct port {
    char name[24];
    om_dtype type;
    int rank;
    int64_t dims[OM_MAX_RANK], n;
    void *data;
} port;

typedef struct test_case {
    char name[80];
    int64_t opset;
    port in[MAX_PORTS], konst[MAX_PORTS], out[MAX_PORTS];
    int n_in, n_konst, n_out, n_lines;
    char *lines[64]; /* of nodes and attributes, in order */
} test_case;

static om_dtype type_of(const char *name) {
    static const om_dtype all[] = {OM_F32, OM_F64, OM_I64, OM_I32, OM_U8, OM_BOOL};
    for (size_t i = 0; i < OM_COUNT(all); i++)
        if (strcmp(om_dtype_name(all[i]), name) == 0) return all[i];
    fail_msg("type '%s'", name);
    return OM_DTYPE_NONE;
}

static void store(port *p, int64_t i, const char *word) {
    switch ((int)p->type) {
    case OM_F32:
        ((float *)p->data)[i] = strtof(word, NULL);
        break;
    case OM_F64:
        ((double *)p->data)[i] = strtod(word, NULL);
        break;
    case OM_I64:
        ((int64_t *)p->data)[i] = strtoll(word, NULL, 10);
        break;
    case OM_I32:
        ((int32_t *)p->data)[i] = (int32_t)strtol(word, NULL, 10);
        break;
    default:
        ((uint8_t *)p->data)[i] = (uint8_t)strtoul(word, NULL, 10);
    }
}

/* "name type 2,3 : values" */
static void read_port(port *p, char *line) {
    char *save, *word = strtok_r(line, " \n", &save);
    snprintf(p->name, sizeof p->name, "%s", word);
    p->type    = type_of(strtok_r(NULL, " \n", &save));
    char *dims = strtok_r(NULL, " \n", &save);
    p->rank    = 0;
    p->n       = 1;
    for (; *dims && *dims != '-'; dims += *dims == ',') {
        p->dims[p->rank] = strtoll(dims, &dims, 10);
        p->n *= p->dims[p->rank++];
    }
    p->data = calloc((size_t)p->n + 1, om_dtype_size(p->type));
    strtok_r(NULL, " \n", &save); // ":"
    for (int64_t i = 0; i < p->n; i++) {
        word = strtok_r(NULL, " \n", &save);
        if (!word) fail_msg("'%s' has %lld values too few", p->name, (long long)(p->n - i));
        store(p, i, word);
    }
}

static void set_attribute(om_graph *g, int32_t n, const char *line) {
    char kind[16], name[32];
    int at = 0;
    sscanf(line, "%7s %31s %n", kind, name, &at);
    const char *rest = line + at;
    char text[64];
    int64_t list[16];
    float reals[16];
    size_t k = 0;
    if (strcmp(kind, "int") == 0)
        omi_graph_attr_int(g, n, name, strtoll(rest, NULL, 10));
    else if (strcmp(kind, "float") == 0)
        omi_graph_attr_float(g, n, name, strtof(rest, NULL));
    else if (strcmp(kind, "text") == 0) {
        snprintf(text, sizeof text, "%.*s", (int)strcspn(rest, "\n"), rest);
        omi_graph_attr_string(g, n, name, text);
    } else if (strcmp(kind, "tensor") == 0) {
        port p     = {0};
        char *copy = strdup(line + 7);
        read_port(&p, copy);
        omi_graph_attr_tensor(g, n, p.name, (int32_t)p.type, p.rank, p.dims, p.data,
                              (size_t)p.n * om_dtype_size(p.type));
        free(p.data);
        free(copy);
    } else {
        bool whole = strcmp(kind, "ints") == 0;
        for (char *end; k < 16; rest = end, k++) {
            list[k]  = whole ? strtoll(rest, &end, 10) : 0;
            reals[k] = whole ? 0 : strtof(rest, &end);
            if (end == rest) break;
        }
        if (whole)
            omi_graph_attr_ints(g, n, name, k, list);
        else
            omi_graph_attr_floats(g, n, name, k, reals);
    }
}

static int32_t add_line_node(om_graph *g, const char *line) {
    char type[40], from[200] = "", to[100] = "";
    int at = 0;
    sscanf(line, "node %39s %n", type, &at);
    const char *arrow = strstr(line, "->");
    snprintf(from, sizeof from, "%.*s", (int)(arrow - (line + at)), line + at);
    snprintf(to, sizeof to, "%.*s", (int)strcspn(arrow + 3, "\n"), arrow + 3);
    size_t n = strlen(from);
    if (n && from[n - 1] == ' ') from[n - 1] = 0;
    return node(g, type, from, to);
}

/* sconst name type dims : values */
static void add_inner_constant(om_graph *g, const char *line) {
    port p     = {0};
    char *copy = strdup(line + 7);
    read_port(&p, copy);
    constant(g, p.name, p.type, p.rank, p.dims, p.data);
    free(p.data);
    free(copy);
}

/* Nodes and their attributes; "graph NAME" to "endgraph" is a subgraph of the node before. */
static void add_lines(om_graph *g, const test_case *c) {
    om_graph *around[4];
    int32_t node_of[4], n = -1;
    int depth = 0;
    for (int i = 0; i < c->n_lines; i++) {
        const char *l = c->lines[i];
        if (strncmp(l, "node ", 5) == 0)
            n = add_line_node(g, l);
        else if (strncmp(l, "graph ", 6) == 0) {
            around[depth]    = g;
            node_of[depth++] = n;
            g                = omi_graph_new_sub(g, "");
            omi_graph_attr_graph(around[depth - 1], n, l + 6, g);
        } else if (strcmp(l, "endgraph") == 0) {
            g = around[--depth];
            n = node_of[depth];
        } else if (strncmp(l, "sin ", 4) == 0)
            omi_graph_add_input(g, omi_graph_add_value(g, l + 4, 0, -1, NULL));
        else if (strncmp(l, "sconst ", 7) == 0)
            add_inner_constant(g, l);
        else if (strncmp(l, "sout ", 5) == 0)
            out(g, l + 5);
        else
            set_attribute(g, n, l);
    }
}

static om_graph *make(const test_case *c, bool symbolic) {
    om_graph *g = begin(c->opset);
    for (int i = 0; i < c->n_in; i++) {
        char axes[200] = "";
        for (int k = 0; k < c->in[i].rank; k++) {
            size_t used = strlen(axes);
            if (symbolic)
                snprintf(axes + used, sizeof axes - used, "%ss%d_%d", k ? "," : "", i, k);
            else
                snprintf(axes + used, sizeof axes - used, "%s%lld", k ? "," : "",
                         (long long)c->in[i].dims[k]);
        }
        in(g, c->in[i].name, c->in[i].type, axes);
    }
    for (int i = 0; i < c->n_konst; i++)
        constant(g, c->konst[i].name, c->konst[i].type, c->konst[i].rank, c->konst[i].dims,
                 c->konst[i].data);
    add_lines(g, c);
    for (int i = 0; i < c->n_out; i++)
        out(g, c->out[i].name);
    return done(g);
}

static void compare(const test_case *c, const port *want, const om_tensor *got) {
    if (om_dtype_of(got) != want->type || om_rank(got) != want->rank)
        fail_msg("%s: output %s has type %s and rank %d", c->name, want->name,
                 om_dtype_name(om_dtype_of(got)), om_rank(got));
    for (int k = 0; k < want->rank; k++)
        if (om_dim(got, k) != want->dims[k])
            fail_msg("%s: axis %d of %s is %lld", c->name, k, want->name,
                     (long long)om_dim(got, k));
    const void *data = om_data(got);
    if (want->type != OM_F32 && want->type != OM_F64) {
        if (want->n && memcmp(data, want->data, (size_t)want->n * om_dtype_size(want->type)) != 0)
            fail_msg("%s: output %s differs", c->name, want->name);
        return;
    }
    double scale = 0;
    for (int pass = 0; pass < 2; pass++)
        for (int64_t i = 0; i < want->n; i++) {
            bool single = want->type == OM_F32;
            double a    = single ? ((const float *)data)[i] : ((const double *)data)[i];
            double b    = single ? ((float *)want->data)[i] : ((double *)want->data)[i];
            if (pass == 0 && isfinite(b) && fabs(b) > scale) scale = fabs(b);
            if (pass == 0 || a == b || (isnan(a) && isnan(b))) continue;
            if (!(fabs(a - b) <= (single ? 1e-6 : 1e-14) * scale))
                fail_msg("%s: %s[%lld] is %.9g, ONNX Runtime has %.9g", c->name, want->name,
                         (long long)i, a, b);
        }
}

static void run_case(const test_case *c, bool symbolic, om_arith arith) {
    om_session *s = open_session(make(c, symbolic), arith, 1);
    om_error e;
    if (om_catch(&e) != OM_OK) fail_msg("%s: %s", c->name, e.message);
    OM_SCOPE {
        om_binding b[MAX_PORTS];
        om_tensor *y[MAX_PORTS] = {0};
        for (int i = 0; i < c->n_in; i++) {
            const port *p = &c->in[i];
            b[i]          = (om_binding){p->name, om_from(p->data, p->type, p->rank, p->dims)};
        }
        om_session_run(s, c->n_in, b, c->n_out, y);
        if (om_catch(&e) != OM_OK) fail_msg("%s: %s", c->name, e.message);
        for (int i = 0; i < c->n_out; i++)
            compare(c, &c->out[i], y[i]);
    }
    om_session_free(s);
}

static void end_case(test_case *c) {
    for (int i = 0; i < c->n_in; i++)
        free(c->in[i].data);
    for (int i = 0; i < c->n_konst; i++)
        free(c->konst[i].data);
    for (int i = 0; i < c->n_out; i++)
        free(c->out[i].data);
    for (int i = 0; i < c->n_lines; i++)
        free(c->lines[i]);
    memset(c, 0, sizeof *c);
}

/* ---- which rows of opset.def have a case --------------------------------------------------------
 */

static bool row_met[512];

static void meet_rows(const test_case *c) {
    size_t n;
    const om_node_def *rows = omi_node_rows(&n);
    assert_true(n <= OM_COUNT(row_met));
    for (int i = 0; i < c->n_lines; i++) {
        char type[40];
        int32_t oldest;
        if (sscanf(c->lines[i], "node %39s", type) != 1) continue;
        const om_node_def *d = omi_node_def(type, "", c->opset, &oldest);
        if (d) row_met[d - rows] = true; // a Constant has no row
    }
}

/* Rows of versions newer than ONNX Runtime's are compared with ONNX alone (tools/check_opset.py).
 */
#define NEWEST_ORACLE 21

static void every_form_has_a_case(void **state) {
    (void)state;
    size_t n;
    const om_node_def *rows = omi_node_rows(&n);
    int missing             = 0;
    for (size_t i = 0; i < n; i++)
        if (!row_met[i] && rows[i].since <= NEWEST_ORACLE) {
            print_message("%s from opset %d has no node case\n", rows[i].type, (int)rows[i].since);
            missing++;
        }
    assert_int_equal(missing, 0);
}

static void test_nodes(void **state) {
    (void)state;
    FILE *f = fopen("tests/runtime/nodes.txt", "r");
    assert_non_null(f);
    test_case c = {0};
    char *line  = NULL;
    size_t cap  = 0;
    int n       = 0;
    while (getline(&line, &cap, f) > 0) {
        line[strcspn(line, "\n")] = 0;
        if (strncmp(line, "case ", 5) == 0)
            snprintf(c.name, sizeof c.name, "%s", line + 5);
        else if (strncmp(line, "opset ", 6) == 0)
            c.opset = atoll(line + 6);
        else if (strncmp(line, "in ", 3) == 0)
            read_port(&c.in[c.n_in++], line + 3);
        else if (strncmp(line, "const ", 6) == 0)
            read_port(&c.konst[c.n_konst++], line + 6);
        else if (strncmp(line, "out ", 4) == 0)
            read_port(&c.out[c.n_out++], line + 4);
        else if (strcmp(line, "end") == 0) {
            meet_rows(&c);
            for (int k = 0; k < 4; k++)
                run_case(&c, k & 1, k & 2 ? OM_FAST : OM_EXACT);
            end_case(&c);
            n++;
        } else if (line[0] != '#')
            c.lines[c.n_lines++] = strdup(line);
    }
    free(line);
    fclose(f);
    print_message("%d node cases, each in four forms\n", n);
    assert_true(n >= 250);
}

int main(void) {
    const struct CMUnitTest tests[] = {OM_TEST(test_nodes), OM_TEST(every_form_has_a_case)};
    return cmocka_run_group_tests_name("nodes", tests, NULL, NULL);
}
