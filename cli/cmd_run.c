/*
 * cmd_run.c -- onemodel run: runs a model once on .npy files or generated inputs.
 */
#include "cli/cli.h"

#include <stdlib.h>
#include <string.h>

static const cli_option options[] = {
    {"input", 'i', "NAME=SPEC",
     "@FILE.npy, random:seed=1,shape=1x3, zeros, ones or range; default random"},
    {"output", 'o', "NAME=FILE", "save an output as .npy"},
    {"symbol", 's', "NAME=SIZE", "size of a symbolic axis for generated inputs"},
    {"exact", 0, NULL, "Exact arithmetic (default)"},
    {"fast", 0, NULL, "Fast arithmetic"},
    {"threads", 't', "N", "threads to use"},
    CLI_COMMON,
    {0}};
static int run(int argc, char **argv);
const cli_command cmd_run = {"run", "MODEL", "Runs a model and prints or saves its outputs.",
                             options, run};

typedef struct run_args {
    cli_inputs in;
    const char *output[32];
    int n_outputs;
    om_session_opts session;
    const char *model;
} run_args;

static int parse(run_args *a, int argc, char **argv, bool *done) {
    cli_parse p = {.command = &cmd_run, .argc = argc, .argv = argv, .at = 1};
    const char *value;
    int64_t n;
    for (const cli_option *o; (o = cli_next(&p, &value)) != NULL;) {
        int c = o == CLI_BAD ? -1 : cli_common(&cmd_run, o, value);
        if (c < 0) return EXIT_USAGE;
        *done = c == 2;
        if (*done) return EXIT_YES;
        if (c) continue;
        bool full = a->in.n_specs == 32 || a->in.n_symbols == 32 || a->n_outputs == 32;
        if (full) return cli_usage(&cmd_run, "more than 32 of --%s", o->name);
        if (strcmp(o->name, "input") == 0) a->in.spec[a->in.n_specs++] = value;
        if (strcmp(o->name, "output") == 0) a->output[a->n_outputs++] = value;
        if (strcmp(o->name, "symbol") == 0) a->in.symbol[a->in.n_symbols++] = value;
        if (strcmp(o->name, "fast") == 0) a->session.arith = OM_FAST;
        if (strcmp(o->name, "exact") == 0) a->session.arith = OM_EXACT;
        if (strcmp(o->name, "threads") == 0) {
            if (!cli_int(value, 1, 256, &n))
                return cli_usage(&cmd_run, "--threads=%s: 1 to 256", value);
            a->session.threads = (int32_t)n;
        }
    }
    if (p.n_operands != 1) return cli_usage(&cmd_run, "one model file is wanted");
    a->model = p.operands[0];
    return EXIT_YES;
}

static int save(const run_args *a, const char *name, om_tensor *t, bool *saved) {
    size_t n = strlen(name);
    *saved   = false;
    for (int i = 0; i < a->n_outputs; i++)
        if (strncmp(a->output[i], name, n) == 0 && a->output[i][n] == '=') {
            const char *path = a->output[i] + n + 1;
            *saved           = true;
            if (om_npy_save(t, path) != OM_OK) return cli_failed(path);
        }
    return EXIT_YES;
}

static int check_outputs(const run_args *a, om_session *s) {
    for (int i = 0; i < a->n_outputs; i++) {
        bool found = false;
        for (int k = 0; k < om_session_n_outputs(s); k++) {
            om_value_info v;
            if (om_session_output(s, k, &v) != OM_OK) return cli_failed(NULL);
            size_t n = strlen(v.name);
            found |= strncmp(a->output[i], v.name, n) == 0 && a->output[i][n] == '=';
        }
        if (!found)
            return cli_usage(&cmd_run, "--output=%s: the model has no such output", a->output[i]);
    }
    return EXIT_YES;
}

static int show_output(const run_args *a, cli_json *j, const char *name, om_tensor *t) {
    char hex[65];
    bool saved;
    int code = save(a, name, t, &saved);
    if (code) return code;
    if (om_hash(t, hex) != OM_OK) return cli_failed(name);
    if (j->f) {
        json_open(j, NULL, '{');
        json_string(j, "name", name);
        json_string(j, "type", om_dtype_name(om_dtype_of(t)));
        json_open(j, "shape", '[');
        for (int i = 0; i < om_rank(t); i++)
            json_int(j, NULL, om_dim(t, i));
        json_close(j, ']');
        json_string(j, "sha256", hex);
        json_close(j, '}');
        return EXIT_YES;
    }
    cli_text(stdout, name);
    printf(" sha256 %s\n", hex);
    if (saved || cli.quiet) return EXIT_YES;
    char *text = om_text_of(t);
    if (!text) return cli_failed(name);
    puts(text);
    om_bytes_free(text, strlen(text) + 1);
    return EXIT_YES;
}

static int run_session(const run_args *a, om_session *s) {
    int n_in = om_session_n_inputs(s), n_out = om_session_n_outputs(s);
    om_binding *in  = calloc((size_t)n_in + 1, sizeof *in);
    om_tensor **out = calloc((size_t)n_out + 1, sizeof(om_tensor *));
    int code        = in && out ? check_outputs(a, s) : cli_no_memory();
    cli_json j      = {.f = cli.json ? stdout : NULL};
    if (!code) code = cli_make_inputs(&a->in, s, in);
    if (!code && om_session_run(s, n_in, in, n_out, out) != OM_OK) code = cli_failed(a->model);
    if (!code && cli.json) {
        json_open(&j, NULL, '{');
        json_string(&j, "schema", "onemodel.run.v1");
        json_string(&j, "arithmetic", a->session.arith == OM_EXACT ? "exact" : "fast");
        json_open(&j, "outputs", '[');
    }
    for (int i = 0; !code && i < n_out; i++) {
        om_value_info v;
        code = om_session_output(s, i, &v) == OM_OK ? show_output(a, &j, v.name, out[i])
                                                    : cli_failed(NULL);
    }
    if (!code && cli.json) {
        json_close(&j, ']');
        json_close(&j, '}');
    }
    free(in);
    free(out);
    return code;
}

static int run(int argc, char **argv) {
    run_args a = {.session = {.struct_size = sizeof a.session}};
    bool done  = false;
    int code   = parse(&a, argc, argv, &done);
    if (code || done) return code;
    om_session *s = om_session_load(a.model, &a.session);
    if (!s) return cli_failed(a.model);
    om_scope scope = om_scope_begin();
    code           = run_session(&a, s);
    om_scope_end(scope);
    om_session_free(s);
    return code;
}
