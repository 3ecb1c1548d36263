/*
 * cmd_inspect.c -- onemodel inspect: what is in a model, and what of it can be run.
 */
#include "cli/cli.h"

#include <string.h>

static const cli_option options[] = {{"nodes", 'n', NULL, "list every node"},
                                     {"weights", 'w', NULL, "list every initializer"},
                                     {"exact", 0, NULL, "check for Exact arithmetic (default)"},
                                     {"fast", 0, NULL, "check for Fast arithmetic"},
                                     CLI_COMMON,
                                     {0}};
static int run(int argc, char **argv);
const cli_command cmd_inspect = {
    "inspect", "MODEL",
    "Shows inputs, outputs, operators and weights; exit code 1 when it cannot be run.", options,
    run};

typedef struct problems {
    cli_json *json;
    int n;
} problems;

/* One problem a call, without the line end. */
static int on_problem(void *ctx, const char *text, size_t n) {
    problems *p = ctx;
    char line[512];
    while (n && text[n - 1] == '\n')
        n--;
    if (!n) return 0;
    snprintf(line, sizeof line, "%.*s", (int)(n < 500 ? n : 500), text);
    p->n++;
    if (p->json)
        json_string(p->json, NULL, line);
    else {
        fputs("  ", stdout);
        cli_text(stdout, line);
        fputc('\n', stdout);
    }
    return 0;
}

/* Operator types with their counts, in order of first appearance. */
static void count_types(om_graph *g, cli_json *j) {
    const char *types[256];
    int counts[256], n = 0;
    for (int i = 0; i < om_graph_n_nodes(g); i++) {
        om_node_info v;
        if (om_graph_node(g, i, &v) != OM_OK) return;
        int k = 0;
        while (k < n && strcmp(types[k], v.op_type) != 0)
            k++;
        if (k == n && n < 256) {
            types[n]    = v.op_type;
            counts[n++] = 0;
        }
        if (k < 256) counts[k]++;
    }
    if (j) json_open(j, "operators", '[');
    for (int k = 0; k < n; k++)
        if (j) {
            json_open(j, NULL, '{');
            json_string(j, "type", types[k]);
            json_int(j, "count", counts[k]);
            json_close(j, '}');
        } else {
            printf("%s%d ", k ? ", " : "  ", counts[k]);
            cli_text(stdout, types[k]);
        }
    if (j)
        json_close(j, ']');
    else
        putchar('\n');
}

static int64_t weight_bytes(om_graph *g) {
    int64_t bytes = 0;
    for (int i = 0; i < om_graph_n_initializers(g); i++) {
        om_init_info v;
        if (om_graph_initializer(g, i, &v) == OM_OK) bytes += v.bytes;
    }
    return bytes;
}

static void list_nodes(om_graph *g) {
    for (int i = 0; i < om_graph_n_nodes(g); i++) {
        om_node_info v;
        if (om_graph_node(g, i, &v) != OM_OK) return;
        printf("  #%d ", i);
        for (int k = 0; k < v.n_outputs; k++) {
            if (k) fputs(", ", stdout);
            cli_text(stdout, om_graph_node_output(g, i, k));
        }
        fputs(" = ", stdout);
        cli_text(stdout, v.op_type);
        putchar('(');
        for (int k = 0; k < v.n_inputs; k++) {
            if (k) fputs(", ", stdout);
            cli_text(stdout, om_graph_node_input(g, i, k));
        }
        fputs(")\n", stdout);
    }
}

static void list_weights(om_graph *g) {
    for (int i = 0; i < om_graph_n_initializers(g); i++) {
        om_init_info v;
        if (om_graph_initializer(g, i, &v) != OM_OK) return;
        fputs("  ", stdout);
        cli_text(stdout, v.name);
        printf(" %s [", om_dtype_name((om_dtype)v.dtype));
        for (int k = 0; k < v.rank; k++)
            printf("%s%lld", k ? ", " : "", (long long)v.dims[k]);
        printf("] %lld bytes\n", (long long)v.bytes);
    }
}

static void show_values(om_graph *g, bool inputs) {
    int n = inputs ? om_graph_n_inputs(g) : om_graph_n_outputs(g);
    for (int i = 0; i < n; i++) {
        om_value_info v;
        if ((inputs ? om_graph_input(g, i, &v) : om_graph_output(g, i, &v)) != OM_OK) return;
        printf("%-8s", inputs ? "input" : "output");
        cli_text(stdout, v.name);
        putchar(' ');
        cli_value_type(stdout, &v);
        putchar('\n');
    }
}

/* Parts that are planned one by one; 1 where one plan serves all or it cannot be run. */
static int parts_of(om_graph *g, om_arith arith) {
    int parts = 1;
    om_error e;
    if (om_graph_parts(g, arith, &parts) != OM_OK) om_catch(&e);
    return parts;
}

static om_status show_text(om_graph *g, om_arith arith, bool nodes, bool weights, int *n_problems) {
    printf("IR %lld, opset %lld, made by ", (long long)om_graph_ir_version(g),
           (long long)om_graph_opset(g));
    cli_text(stdout, om_graph_producer(g));
    putchar('\n');
    show_values(g, true);
    show_values(g, false);
    printf("%d nodes:\n", om_graph_n_nodes(g));
    count_types(g, NULL);
    if (nodes) list_nodes(g);
    printf("%d weights, %lld bytes\n", om_graph_n_initializers(g), (long long)weight_bytes(g));
    if (weights) list_weights(g);
    for (int i = 0; i < om_graph_n_meta(g); i++) {
        fputs("meta    ", stdout);
        cli_text(stdout, om_graph_meta_key(g, i));
        fputs(": ", stdout);
        cli_text(stdout, om_graph_meta(g, om_graph_meta_key(g, i)));
        putchar('\n');
    }
    problems p   = {0};
    om_status st = om_graph_check(g, arith, on_problem, &p);
    *n_problems  = p.n;
    if (st == OM_OK || p.n) {
        if (p.n)
            printf("cannot be run: %d problem%s, above\n", p.n, p.n == 1 ? "" : "s");
        else
            printf("can be run in %s arithmetic\n", arith == OM_EXACT ? "Exact" : "Fast");
        if (!p.n && parts_of(g, arith) != 1)
            printf("sizes are met while running: planned in %d parts, not ahead\n",
                   parts_of(g, arith));
    }
    return st;
}

static om_status show_json(om_graph *g, om_arith arith, int *n_problems) {
    cli_json j = {.f = stdout};
    json_open(&j, NULL, '{');
    json_string(&j, "schema", "onemodel.inspect.v1");
    json_int(&j, "ir_version", om_graph_ir_version(g));
    json_int(&j, "opset", om_graph_opset(g));
    json_string(&j, "producer", om_graph_producer(g));
    for (int k = 0; k < 2; k++) {
        json_open(&j, k ? "outputs" : "inputs", '[');
        int n = k ? om_graph_n_outputs(g) : om_graph_n_inputs(g);
        for (int i = 0; i < n; i++) {
            om_value_info v;
            if ((k ? om_graph_output(g, i, &v) : om_graph_input(g, i, &v)) == OM_OK)
                json_value(&j, &v);
        }
        json_close(&j, ']');
    }
    json_int(&j, "nodes", om_graph_n_nodes(g));
    count_types(g, &j);
    json_int(&j, "weights", om_graph_n_initializers(g));
    json_int(&j, "weight_bytes", weight_bytes(g));
    json_open(&j, "problems", '[');
    problems p   = {.json = &j};
    om_status st = om_graph_check(g, arith, on_problem, &p);
    *n_problems  = p.n;
    json_close(&j, ']');
    json_bool(&j, "runnable", st == OM_OK && p.n == 0);
    json_int(&j, "parts", st == OM_OK && p.n == 0 ? parts_of(g, arith) : 0);
    json_close(&j, '}');
    return st;
}

static int run(int argc, char **argv) {
    cli_parse p    = {.command = &cmd_inspect, .argc = argc, .argv = argv, .at = 1};
    om_arith arith = OM_EXACT;
    bool nodes = false, weights = false;
    const char *value;
    for (const cli_option *o; (o = cli_next(&p, &value)) != NULL;) {
        int c = o == CLI_BAD ? -1 : cli_common(&cmd_inspect, o, value);
        if (c < 0) return EXIT_USAGE;
        if (c == 2) return EXIT_YES;
        if (c) continue;
        if (strcmp(o->name, "nodes") == 0) nodes = true;
        if (strcmp(o->name, "weights") == 0) weights = true;
        if (strcmp(o->name, "fast") == 0) arith = OM_FAST;
        if (strcmp(o->name, "exact") == 0) arith = OM_EXACT;
    }
    if (p.n_operands != 1) return cli_usage(&cmd_inspect, "one model file is wanted");
    om_graph *g = om_graph_load(p.operands[0], NULL);
    if (!g) return cli_failed(p.operands[0]);
    int n        = 0;
    om_status st = cli.json ? show_json(g, arith, &n) : show_text(g, arith, nodes, weights, &n);
    int code     = n ? EXIT_NO : EXIT_YES;
    if (st != OM_OK && !n) code = cli_failed(p.operands[0]); // else the problems were listed
    om_graph_release(g);
    return code;
}
