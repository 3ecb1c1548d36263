/*
 * cmd_report.c -- onemodel report: one self-contained HTML page about a model.
 */
#include "cli/cli.h"

#include <string.h>
#include <unistd.h>

static const cli_option options[] = {
    {"output", 'o', "FILE", "where to write it; default report.html"}, CLI_COMMON, {0}};
static int run(int argc, char **argv);
const cli_command cmd_report = {
    "report", "MODEL", "Writes an offline HTML page: inputs, graph, weights, runnable or not.",
    options, run};

static void html(FILE *f, const char *s) {
    for (const unsigned char *p = (const unsigned char *)(s ? s : ""); *p; p++)
        switch (*p) {
        case '<':
            fputs("&lt;", f);
            break;
        case '>':
            fputs("&gt;", f);
            break;
        case '&':
            fputs("&amp;", f);
            break;
        case '"':
            fputs("&quot;", f);
            break;
        default:
            if (*p < 0x20 || *p == 0x7f)
                fputs("&#xfffd;", f);
            else
                fputc(*p, f);
        }
}

static const char head[] =
    "<!doctype html><html lang=\"en\"><meta charset=\"utf-8\">"
    "<meta name=\"viewport\" content=\"width=device-width,initial-scale=1\"><title>Model report</title><style>"
    ":root{color-scheme:light dark}body{font:16px/1.5 system-ui,sans-serif;max-width:62rem;margin:2rem auto;"
    "padding:0 1rem}table{border-collapse:collapse;width:100%}td,th{text-align:left;padding:.25rem .6rem;"
    "border-bottom:1px solid #8884;vertical-align:top;overflow-wrap:anywhere}th{font-weight:600}"
    "code{font:14px ui-monospace,monospace}.n{text-align:right;font-variant-numeric:tabular-nums}"
    ".bad{color:#c22}</style>\n";

static void values(FILE *f, om_graph *g, bool inputs) {
    int n = inputs ? om_graph_n_inputs(g) : om_graph_n_outputs(g);
    for (int i = 0; i < n; i++) {
        om_value_info v;
        if ((inputs ? om_graph_input(g, i, &v) : om_graph_output(g, i, &v)) != OM_OK) return;
        fprintf(f, "<tr><td>%s<td><code>", inputs ? "input" : "output");
        html(f, v.name);
        fprintf(f, "</code><td>%s<td>[", om_dtype_name((om_dtype)v.dtype));
        for (int k = 0; k < v.rank && k < OM_MAX_RANK; k++) {
            if (k) fputs(", ", f);
            if (v.axes[k].size >= 0)
                fprintf(f, "%lld", (long long)v.axes[k].size);
            else
                html(f, v.axes[k].symbol ? v.axes[k].symbol : "?");
        }
        fputs("]\n", f);
    }
}

static void nodes(FILE *f, om_graph *g) {
    fprintf(f, "<h2>Graph</h2><p>%d nodes.<table><tr><th>#<th>operator<th>inputs<th>outputs\n",
            om_graph_n_nodes(g));
    for (int i = 0; i < om_graph_n_nodes(g) && i < 5000; i++) {
        om_node_info v;
        if (om_graph_node(g, i, &v) != OM_OK) return;
        fprintf(f, "<tr><td class=n>%d<td>", i);
        html(f, v.op_type);
        for (int side = 0; side < 2; side++) {
            fputs("<td><code>", f);
            for (int k = 0; k < (side ? v.n_outputs : v.n_inputs); k++) {
                if (k) fputs(", ", f);
                html(f, side ? om_graph_node_output(g, i, k) : om_graph_node_input(g, i, k));
            }
            fputs("</code>", f);
        }
        fputc('\n', f);
    }
    fputs("</table>", f);
}

static void weights(FILE *f, om_graph *g) {
    fprintf(f, "<h2>Weights</h2><table><tr><th>name<th>type<th>shape<th class=n>bytes\n");
    for (int i = 0; i < om_graph_n_initializers(g) && i < 5000; i++) {
        om_init_info v;
        if (om_graph_initializer(g, i, &v) != OM_OK) return;
        fputs("<tr><td><code>", f);
        html(f, v.name);
        fprintf(f, "</code><td>%s<td>[", om_dtype_name((om_dtype)v.dtype));
        for (int k = 0; k < v.rank; k++)
            fprintf(f, "%s%lld", k ? ", " : "", (long long)v.dims[k]);
        fprintf(f, "]<td class=n>%lld\n", (long long)v.bytes);
    }
    fputs("</table>", f);
}

static int problem(void *ctx, const char *text, size_t n) {
    char line[512];
    snprintf(line, sizeof line, "%.*s", (int)(n < 500 ? n : 500), text);
    fputs("<li class=bad>", ctx);
    html(ctx, line);
    return 0;
}

static om_status page(FILE *f, om_graph *g, const char *name) {
    fputs(head, f);
    fputs("<h1>", f);
    html(f, name);
    fprintf(f, "</h1><p>IR %lld, opset %lld, made by ", (long long)om_graph_ir_version(g),
            (long long)om_graph_opset(g));
    html(f, om_graph_producer(g));
    fputs(".<h2>Interface</h2><table><tr><th><th>name<th>type<th>shape\n", f);
    values(f, g, true);
    values(f, g, false);
    fputs("</table><h2>Exact arithmetic</h2><ul>", f);
    om_status st = om_graph_check(g, OM_EXACT, problem, f);
    fputs(st == OM_OK ? "<li>every node has an exact kernel</ul>" : "</ul>", f);
    nodes(f, g);
    weights(f, g);
    return om_pending() != OM_OK ? st : OM_OK; // problems are part of the page
}

static int run(int argc, char **argv) {
    cli_parse p      = {.command = &cmd_report, .argc = argc, .argv = argv, .at = 1};
    const char *path = "report.html", *value;
    for (const cli_option *o; (o = cli_next(&p, &value)) != NULL;) {
        int c = o == CLI_BAD ? -1 : cli_common(&cmd_report, o, value);
        if (c < 0) return EXIT_USAGE;
        if (c == 2) return EXIT_YES;
        if (!c) path = value;
    }
    if (p.n_operands != 1) return cli_usage(&cmd_report, "one model file is wanted");
    om_graph *g = om_graph_load(p.operands[0], NULL);
    if (!g) return cli_failed(p.operands[0]);
    char tmp[1024];
    snprintf(tmp, sizeof tmp, "%s.part", path);
    FILE *f  = fopen(tmp, "w");
    int code = EXIT_YES;
    if (!f) {
        perror(tmp);
        code = EXIT_IO;
    } else {
        om_status st = page(f, g, p.operands[0]);
        bool io      = ferror(f) != 0;
        if (fclose(f) != 0 || io || (st == OM_OK && rename(tmp, path) != 0)) {
            perror(path);
            code = EXIT_IO;
        } else if (st != OM_OK)
            code = cli_failed(p.operands[0]);
        if (code) unlink(tmp);
    }
    if (!code && !cli.quiet) {
        fputs("wrote ", stdout);
        cli_text(stdout, path);
        putchar('\n');
    }
    om_graph_release(g);
    return code;
}
