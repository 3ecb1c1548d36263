/*
 * report.c -- writes report.html: loss curve, confusion matrix, digits with predictions, the graph.
 *
 * Pictures are inline SVG and colours are CSS variables, so the page works offline, follows the
 * reader's light or dark setting, and folds to one column on a narrow screen.
 */
#include "report.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

static const char style[] =
    ":root{color-scheme:light dark;--bg:#fafaf8;--card:#fff;--fg:#1c1e21;--dim:#6b7075;--line:#e3e3de;"
    "--ink:#2457c5;--soft:#2457c533;--bad:#c0392b;--good:#2e7d4f}"
    "@media(prefers-color-scheme:dark){:root{--bg:#15171a;--card:#1e2125;--fg:#e8e6e1;--dim:#9aa0a6;"
    "--line:#33373d;--ink:#7fa7ff;--soft:#7fa7ff33;--bad:#ff8a7a;--good:#7fd3a0}}"
    "*{box-sizing:border-box}body{margin:0;background:var(--bg);color:var(--fg);"
    "font:16px/1.5 system-ui,-apple-system,'Segoe UI',Roboto,sans-serif}"
    "main{max-width:1200px;margin:0 auto;padding:24px 16px;display:grid;gap:16px;"
    "grid-template-columns:repeat(auto-fit,minmax(min(100%,440px),1fr));align-items:start}"
    "header{grid-column:1/-1}h1{margin:0;font-size:1.7rem}h2{margin:0 0 4px;font-size:1.1rem}"
    "p{margin:4px 0;color:var(--dim)}section{background:var(--card);border:1px solid var(--line);"
    "border-radius:10px;padding:16px;min-width:0}.col{display:grid;gap:16px;min-width:0}.wide{grid-column:1/-1}"
    "svg{display:block;width:100%;height:auto}text{fill:var(--fg);font-size:11px;"
    "font-family:inherit}.dim{fill:var(--dim)}.grid{stroke:var(--line);stroke-width:1}"
    ".facts{display:flex;flex-wrap:wrap;gap:8px 32px;margin-top:12px}.facts div{min-width:0}"
    ".facts b{display:block;font-size:1.4rem}code{font-size:.8rem;overflow-wrap:anywhere}"
    ".digits{display:grid;grid-template-columns:repeat(auto-fill,minmax(56px,1fr));gap:8px}"
    "figure{margin:0;text-align:center;font-size:.8rem}figure svg{background:var(--bg);"
    "border:1px solid var(--line);border-radius:6px;color:var(--fg)}.wrong{color:var(--bad);"
    "font-weight:600}.net{max-width:420px;margin:0 auto}";

static int argmax(const float *v) {
    int best = 0;
    for (int i = 1; i < 10; i++)
        if (v[i] > v[best]) best = i;
    return best;
}

/* Probability of the class with the largest logit, for display. */
static double confidence(const float *v) {
    int best   = argmax(v);
    double sum = 0;
    for (int i = 0; i < 10; i++)
        sum += exp((double)v[i] - (double)v[best]);
    return 1.0 / sum;
}

/* ---- loss curve ------------------------------------------------------------------------------ */

enum { CURVE_W = 460, CURVE_H = 240, LEFT = 48, BOTTOM = 28, TOP = 10 };

/* Loss on a logarithmic axis from 0.001 to 4. */
static double curve_y(double loss) {
    double lo = log(0.001), hi = log(4.0), v = log(loss < 0.001 ? 0.001 : loss > 4.0 ? 4.0 : loss);
    return TOP + (hi - v) / (hi - lo) * (CURVE_H - TOP - BOTTOM);
}
static double curve_x(int i, int n) {
    return LEFT + (double)i / (n > 1 ? n - 1 : 1) * (CURVE_W - LEFT - 8);
}

static void loss_curve(FILE *f, const report *r) {
    static const double tick[] = {0.001, 0.01, 0.1, 1.0};
    fprintf(f,
            "<section><h2>Training loss</h2><p>Cross entropy of each of %d steps, and its running "
            "mean; logarithmic.</p><svg viewBox='0 0 %d %d' role='img' aria-label='loss curve'>",
            r->n_loss, CURVE_W, CURVE_H);
    for (int i = 0; i < 4; i++)
        fprintf(f,
                "<line class='grid' x1='%d' x2='%d' y1='%.1f' y2='%.1f'/><text class='dim' x='%d' "
                "y='%.1f' text-anchor='end'>%g</text>",
                LEFT, CURVE_W - 8, curve_y(tick[i]), curve_y(tick[i]), LEFT - 6,
                curve_y(tick[i]) + 4, tick[i]);
    for (int i = 0; i <= 4; i++) {
        int step = (r->n_loss - 1) * i / 4;
        fprintf(f, "<text class='dim' x='%.1f' y='%d' text-anchor='%s'>%d</text>",
                curve_x(step, r->n_loss), CURVE_H - 8, i == 4 ? "end" : "middle", step);
    }
    for (int pass = 0; pass < 2; pass++) {
        double mean = (double)r->loss[0];
        fprintf(f, "<polyline fill='none' stroke='var(--%s)' stroke-width='%d' points='",
                pass ? "ink" : "soft", pass ? 2 : 1);
        for (int i = 0; i < r->n_loss; i++) {
            mean = 0.96 * mean + 0.04 * (double)r->loss[i];
            if (i % 2 == 0 || i == r->n_loss - 1)
                fprintf(f, "%.1f,%.1f ", curve_x(i, r->n_loss),
                        curve_y(pass ? mean : (double)r->loss[i]));
        }
        fputs("'/>", f);
    }
    fputs("</svg></section>", f);
}

/* ---- confusion matrix ------------------------------------------------------------------------ */

static void confusion(FILE *f, const report *r) {
    int count[10][10] = {{0}}, cell = 34, off = 34;
    for (int i = 0; i < r->n; i++)
        count[r->labels[i]][argmax(r->logits + 10 * i)]++;
    fprintf(
        f,
        "<section><h2>Confusion matrix</h2><p>Rows: the digit written; columns: the digit read; "
        "%d test images.</p><svg viewBox='0 0 %d %d' role='img' aria-label='confusion matrix'>",
        r->n, off + 10 * cell + 2, off + 10 * cell + 2);
    for (int a = 0; a < 10; a++) {
        int row = 0;
        for (int b = 0; b < 10; b++)
            row += count[a][b];
        fprintf(f,
                "<text class='dim' x='%d' y='%d' text-anchor='middle'>%d</text>"
                "<text class='dim' x='%d' y='%d' text-anchor='middle'>%d</text>",
                off / 2, off + a * cell + cell / 2 + 4, a, off + a * cell + cell / 2, off / 2 + 4,
                a);
        for (int b = 0; b < 10; b++) {
            double share = row ? (double)count[a][b] / row : 0;
            int x = off + b * cell, y = off + a * cell;
            fprintf(f,
                    "<rect x='%d' y='%d' width='%d' height='%d' rx='4' fill='var(--%s)' "
                    "fill-opacity='%.2f' stroke='var(--line)'/>",
                    x, y, cell - 2, cell - 2, a == b ? "good" : "bad",
                    count[a][b] ? (a == b ? 0.15 + 0.45 * share : 0.35 + share) : 0.0);
            if (count[a][b])
                fprintf(f, "<text x='%d' y='%d' text-anchor='middle'>%d</text>", x + cell / 2 - 1,
                        y + cell / 2 + 3, count[a][b]);
        }
    }
    fputs("</svg></section>", f);
}

/* ---- digits ---------------------------------------------------------------------------------- */

static void digit(FILE *f, const float *p, int label, int read, double sure) {
    fputs("<figure><svg viewBox='0 0 8 8' shape-rendering='crispEdges' fill='currentColor'>", f);
    for (int i = 0; i < 64; i++)
        if (p[i] > 0.0f)
            fprintf(f, "<rect x='%d' y='%d' width='1' height='1' fill-opacity='%.2f'/>", i % 8,
                    i / 8, (double)p[i]);
    if (read == label)
        fprintf(f, "</svg>%d</figure>", read);
    else
        fprintf(f, "</svg><span class='wrong'>%d, is %d</span><br>%.0f %%</figure>", read, label,
                100 * sure);
}

static void digits(FILE *f, const report *r) {
    int shown = 0;
    fputs(
        "<section class='wide'><h2>Test images and what was read</h2><p>First every image read wrongly, "
        "with the network's confidence; then some of the others.</p><div class='digits'>",
        f);
    for (int right = 0; right < 2; right++)
        for (int i = 0; i < r->n && shown < 68; i += right ? 7 : 1) {
            const float *v = r->logits + 10 * i;
            int k          = argmax(v);
            if ((k == r->labels[i]) != right) continue;
            digit(f, r->pixels + 64 * i, (int)r->labels[i], k, confidence(v));
            shown++;
        }
    fputs("</div></section>", f);
}

/* ---- the graph ---------------------------------------------------------------------------------
 */

enum { MAX_NODES = 64, ROW = 62, BOX_W = 190, BOX_H = 40, NET_W = 420 };

/* The node that makes value, or -1. */
static int producer(const om_graph *g, const char *value) {
    om_node_info info;
    for (int i = 0; i < om_graph_n_nodes(g); i++)
        if (om_graph_node(g, i, &info) == OM_OK)
            for (int k = 0; k < info.n_outputs; k++)
                if (strcmp(om_graph_node_output(g, i, k), value) == 0) return i;
    return -1;
}

/* Shape of the first initializer among a node's inputs, as text. */
static void weight_text(const om_graph *g, int node, int n_in, char *out, size_t size) {
    out[0] = 0;
    for (int k = 0; k < n_in; k++)
        for (int j = 0; j < om_graph_n_initializers(g); j++) {
            om_init_info w;
            if (om_graph_initializer(g, j, &w) != OM_OK ||
                strcmp(w.name, om_graph_node_input(g, node, k)))
                continue;
            size_t at = (size_t)snprintf(out, size, "%.24s [", w.name);
            for (int d = 0; d < w.rank && at < size; d++)
                at += (size_t)snprintf(out + at, size - at, "%s%lld", d ? "," : "",
                                       (long long)w.dims[d]);
            if (at < size) snprintf(out + at, size - at, "]");
            return;
        }
}

static void escaped(FILE *f, const char *s) {
    for (; *s; s++)
        if (*s == '<')
            fputs("&lt;", f);
        else if (*s == '&')
            fputs("&amp;", f);
        else
            fputc((unsigned char)*s < 32 ? '?' : *s, f);
}

static void box(FILE *f, int x, int y, const char *title, const char *small, bool end) {
    fprintf(f,
            "<rect x='%d' y='%d' width='%d' height='%d' rx='8' fill='var(--%s)' "
            "stroke='var(--ink)'/><text x='%d' y='%d' text-anchor='middle' font-weight='600'>",
            x, y, BOX_W, BOX_H, end ? "soft" : "card", x + BOX_W / 2, y + (*small ? 17 : 25));
    escaped(f, title);
    fprintf(f, "</text><text class='dim' x='%d' y='%d' text-anchor='middle' font-size='9'>",
            x + BOX_W / 2, y + 32);
    escaped(f, small);
    fputs("</text>", f);
}

static void axes_text(const om_value_info *v, char *out, size_t size) {
    size_t at = (size_t)snprintf(out, size, "[");
    for (int d = 0; d < v->rank && at < size; d++)
        at += v->axes[d].symbol ? (size_t)snprintf(out + at, size - at, "%s%.20s", d ? ", " : "",
                                                   v->axes[d].symbol)
                                : (size_t)snprintf(out + at, size - at, "%s%lld", d ? ", " : "",
                                                   (long long)v->axes[d].size);
    if (at < size) snprintf(out + at, size - at, "]");
}

/* Every node sits one row below the lowest of those it reads; the input is row 0. */
static void network(FILE *f, const report *r) {
    const om_graph *g = r->graph;
    int n = om_graph_n_nodes(g), row[MAX_NODES], used[MAX_NODES + 2] = {0}, rows = 1;
    om_node_info info;
    om_value_info in, out;
    char text[96];
    if (n < 1 || n > MAX_NODES || om_graph_input(g, 0, &in) || om_graph_output(g, 0, &out)) return;
    for (int i = 0; i < n; i++) { /* a graph lists producers before users */
        row[i] = 1;
        om_graph_node(g, i, &info);
        for (int k = 0; k < info.n_inputs; k++) {
            int p = producer(g, om_graph_node_input(g, i, k));
            if (p >= 0 && p < i && row[p] + 1 > row[i]) row[i] = row[p] + 1;
        }
        if (row[i] >= rows) rows = row[i] + 1;
    }
    int x0 = (NET_W - BOX_W) / 2;
    fprintf(
        f,
        "<section><h2>The graph</h2><p>As saved in digits.onnx: %d nodes, opset %lld, any batch "
        "size.</p><svg class='net' viewBox='0 0 %d %d' role='img' aria-label='network graph'>",
        n, (long long)om_graph_opset(g), NET_W, (rows + 1) * ROW);
    for (int i = 0; i < n; i++) {
        om_graph_node(g, i, &info);
        for (int k = 0; k < info.n_inputs; k++) {
            const char *v = om_graph_node_input(g, i, k);
            int p = producer(g, v), from = p >= 0 ? row[p] : strcmp(v, in.name) == 0 ? 0 : -1;
            if (from >= 0)
                fprintf(f, "<line x1='%d' x2='%d' y1='%d' y2='%d' stroke='var(--dim)'/>", NET_W / 2,
                        NET_W / 2, from * ROW + BOX_H + 4, row[i] * ROW + 4);
        }
    }
    fprintf(f, "<line x1='%d' x2='%d' y1='%d' y2='%d' stroke='var(--dim)'/>", NET_W / 2, NET_W / 2,
            (rows - 1) * ROW + BOX_H + 4, rows * ROW + 4);
    axes_text(&in, text, sizeof text);
    box(f, x0, 4, in.name, text, true);
    for (int i = 0; i < n; i++) {
        om_graph_node(g, i, &info);
        weight_text(g, i, info.n_inputs, text, sizeof text);
        int side = used[row[i]]++;
        box(f, x0 + (side % 2 ? -1 : 1) * ((side + 1) / 2) * 110, row[i] * ROW + 4, info.op_type,
            text, false);
    }
    axes_text(&out, text, sizeof text);
    box(f, x0, rows * ROW + 4, out.name, text, true);
    fputs("</svg></section>", f);
}

static void same_bits(FILE *f, const report *r) {
    fprintf(
        f,
        "<section><h2>The same bits everywhere</h2><p>sha256 of digits.onnx, after training on "
        "any processor with any number of threads:</p><code>%s</code><p>sha256 of the logits of "
        "all test images, eager and by digits.onnx and digits.om, one, seven or all at a time, "
        "on every kernel column, with one and two threads:</p><code>%s</code><h2 "
        "style='margin-top:16px'>Data</h2><p>Optical Recognition of Handwritten Digits, E. "
        "Alpaydin and C. Kaynak (1998), UCI Machine Learning Repository, CC BY 4.0. Every fifth "
        "image is for testing.</p></section>",
        r->sha256, r->hash);
}

/* ---- the page ----------------------------------------------------------------------------------
 */

int report_write(const report *r, const char *path) {
    FILE *f = fopen(path, "w");
    if (!f) return perror(path), 1;
    int right = 0;
    for (int i = 0; i < r->n; i++)
        right += argmax(r->logits + 10 * i) == r->labels[i];
    fprintf(
        f,
        "<!DOCTYPE html><html lang='en'><head><meta charset='utf-8'><meta name='viewport' "
        "content='width=device-width,initial-scale=1'><title>OneModel: handwritten digits</title>"
        "<style>%s</style></head><body><main><header><h1>Handwritten digits, read by a network "
        "trained in C</h1><p>OneModel %s, seed %d.</p><div class='facts'>",
        style, om_version(), r->seed);
    fprintf(
        f,
        "<div><b>%.1f %%</b>of %d test images right</div><div><b>%.1f %%</b>on other writers</div>"
        "<div><b>%lld</b>weights</div><div><b>%.1f s</b>of training</div><div><b>%d</b>runs in "
        "Exact, one result</div></div></header>",
        100.0 * right / r->n, r->n, 100.0 * r->writers, (long long)r->parameters, r->seconds,
        r->runs);
    fputs("<div class='col'>", f);
    loss_curve(f, r);
    confusion(f, r);
    fputs("</div><div class='col'>", f);
    network(f, r);
    same_bits(f, r);
    fputs("</div>", f);
    digits(f, r);
    fputs("</main></body></html>\n", f);
    if (fclose(f) != 0) return perror(path), 1;
    return 0;
}
