/*
 * cmd_verify.c -- onemodel verify: the promise of equal bits as a command anyone can run.
 *
 * Runs the model on fixed inputs in Exact arithmetic, once per instruction set and number of
 * threads, each in a child process of its own (the cap on the instruction set is set before the
 * first kernel), and compares the SHA-256 of the outputs: with each other, and with --expect.
 */
#include "cli/cli.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static const cli_option options[] = {
    {"expect", 'e', "FILE", "compare with hashes saved by --write"},
    {"write", 'w', "FILE", "save the hashes as JSON"},
    {"input", 'i', "NAME=SPEC", "as for run; default random"},
    {"symbol", 's', "NAME=SIZE", "size of a symbolic axis"},
    {"isa", 0, "LIST", "instruction sets, default scalar,avx2,avx512"},
    {"threads", 't', "LIST", "numbers of threads, default 1,2"},
    CLI_COMMON,
    {0}};
static int run(int argc, char **argv);
const cli_command cmd_verify = {
    "verify", "MODEL",
    "Compares output hashes over kernels and threads; exit code 1 when they differ.", options, run};

typedef struct verify_args {
    cli_inputs in;
    const char *model, *expect, *write;
    int isas[3], n_isas;
    int threads[8], n_threads;
} verify_args;

static bool parse_isas(const char *list, verify_args *a) {
    for (a->n_isas = 0; *list;) {
        size_t n = strcspn(list, ",");
        int k    = 0;
        while (k <= OM_ISA_AVX512 && (strlen(om_isa_name((om_isa)k)) != n ||
                                      memcmp(list, om_isa_name((om_isa)k), n) != 0))
            k++;
        if (k > OM_ISA_AVX512 || a->n_isas == 3) return false;
        a->isas[a->n_isas++] = k;
        list += n + (list[n] == ',');
    }
    return a->n_isas > 0;
}

static bool parse_threads(const char *list, verify_args *a) {
    for (a->n_threads = 0; *list;) {
        char *end;
        long n = strtol(list, &end, 10);
        if (end == list || n < 1 || n > 256 || (*end && *end != ',') || a->n_threads == 8)
            return false;
        a->threads[a->n_threads++] = (int)n;
        list                       = end + (*end == ',');
    }
    return a->n_threads > 0;
}

static int parse(verify_args *a, int argc, char **argv, bool *done) {
    cli_parse p = {.command = &cmd_verify, .argc = argc, .argv = argv, .at = 1};
    const char *value;
    parse_isas("scalar,avx2,avx512", a);
    parse_threads("1,2", a);
    for (const cli_option *o; (o = cli_next(&p, &value)) != NULL;) {
        int c = o == CLI_BAD ? -1 : cli_common(&cmd_verify, o, value);
        if (c < 0) return EXIT_USAGE;
        *done = c == 2;
        if (*done) return EXIT_YES;
        if (c) continue;
        if (a->in.n_specs == 32 || a->in.n_symbols == 32)
            return cli_usage(&cmd_verify, "more than 32 of --%s", o->name);
        if (strcmp(o->name, "expect") == 0) a->expect = value;
        if (strcmp(o->name, "write") == 0) a->write = value;
        if (strcmp(o->name, "input") == 0) a->in.spec[a->in.n_specs++] = value;
        if (strcmp(o->name, "symbol") == 0) a->in.symbol[a->in.n_symbols++] = value;
        if (strcmp(o->name, "isa") == 0 && !parse_isas(value, a))
            return cli_usage(&cmd_verify, "--isa=%s: a list of scalar, avx2, avx512", value);
        if (strcmp(o->name, "threads") == 0 && !parse_threads(value, a))
            return cli_usage(&cmd_verify, "--threads=%s: a list such as 1,2,8", value);
    }
    if (p.n_operands != 1) return cli_usage(&cmd_verify, "one model file is wanted");
    a->model = p.operands[0];
    return EXIT_YES;
}

/* The whole of one run, in the child: hash to *hex, or an exit code. */
static int hash_once(const verify_args *a, int isa, int threads, char *hex) {
    if (om_set_isa((om_isa)isa) != OM_OK || om_set_threads(threads) != OM_OK)
        return cli_failed(NULL);
    om_session *s = om_session_load(a->model, NULL);
    if (!s) return cli_failed(a->model);
    int n             = om_session_n_inputs(s);
    om_binding *in    = calloc((size_t)n + 1, sizeof *in);
    om_shape *shapes  = calloc((size_t)n + 1, sizeof *shapes);
    const void **data = calloc((size_t)n + 1, sizeof *data);
    int code          = in && shapes && data ? cli_make_inputs(&a->in, s, in) : cli_no_memory();
    for (int i = 0; !code && i < n; i++) {
        in[i].tensor   = om_contiguous(in[i].tensor);
        data[i]        = om_data(in[i].tensor);
        shapes[i].rank = om_rank(in[i].tensor);
        for (int k = 0; k < shapes[i].rank; k++)
            shapes[i].dims[k] = om_dim(in[i].tensor, k);
    }
    om_run *r = code ? NULL : om_session_prepare(s, n, shapes);
    if (!code && (!r || om_run_call(r, data, NULL) != OM_OK || om_run_hash(r, hex) != OM_OK))
        code = cli_failed(a->model);
    om_run_free(r);
    om_session_free(s);
    free(in);
    free(shapes);
    free(data);
    return code;
}

static int hash_in_child(const verify_args *a, int isa, int threads, char *hex) {
    int pipe_fd[2];
    fflush(stdout);
    if (pipe(pipe_fd) != 0) return perror("onemodel: pipe"), EXIT_IO;
    pid_t child = fork();
    if (child < 0) return perror("onemodel: fork"), EXIT_LIMIT;
    if (child == 0) {
        char text[65] = {0};
        int code      = hash_once(a, isa, threads, text);
        if (!code && write(pipe_fd[1], text, 65) != 65) code = EXIT_IO;
        _exit(code);
    }
    close(pipe_fd[1]);
    ssize_t got = 0, n;
    while (got < 65 &&
           ((n = read(pipe_fd[0], hex + got, (size_t)(65 - got))) > 0 || (n < 0 && errno == EINTR)))
        got += n > 0 ? n : 0;
    close(pipe_fd[0]);
    int status = 0;
    while (waitpid(child, &status, 0) < 0 && errno == EINTR) {
    }
    if (!WIFEXITED(status)) return EXIT_BUG;
    return WEXITSTATUS(status) ? WEXITSTATUS(status) : got == 65 ? EXIT_YES : EXIT_BUG;
}

static int write_hashes(const char *path, const char *hex) {
    FILE *f = fopen(path, "w");
    if (!f) return perror(path), EXIT_IO;
    cli_json j = {.f = f};
    json_open(&j, NULL, '{');
    json_string(&j, "schema", "onemodel.hashes.v1");
    json_string(&j, "outputs", hex);
    json_close(&j, '}');
    if (fclose(f) != 0) return perror(path), EXIT_IO;
    return EXIT_YES;
}

static int read_expected(const char *path, char *hex) {
    size_t bytes;
    char *text = cli_read_file(path, 1 << 20, &bytes);
    if (!text) return EXIT_IO;
    char schema[64];
    bool ok = json_find_string(text, "schema", schema, sizeof schema) &&
              strcmp(schema, "onemodel.hashes.v1") == 0 &&
              json_find_string(text, "outputs", hex, 65) && strspn(hex, "0123456789abcdef") == 64;
    free(text);
    if (!ok) fprintf(stderr, "onemodel: %s: not a file written by verify --write\n", path);
    return ok ? EXIT_YES : EXIT_REFUSED;
}

static void row(cli_json *j, int isa, int threads, const char *hex, bool equal) {
    if (j->f) {
        json_open(j, NULL, '{');
        json_string(j, "isa", om_isa_name((om_isa)isa));
        json_int(j, "threads", threads);
        json_string(j, "sha256", hex);
        json_bool(j, "equal", equal);
        json_close(j, '}');
    } else
        printf("%-7s %d thread%s  %s%s\n", om_isa_name((om_isa)isa), threads,
               threads == 1 ? " " : "s", hex, equal ? "" : "  DIFFERS");
}

static int run(int argc, char **argv) {
    verify_args a = {0};
    bool done     = false;
    int code      = parse(&a, argc, argv, &done);
    if (code || done) return code;
    char expected[65] = {0}, hex[65];
    if (a.expect && (code = read_expected(a.expect, expected)) != 0) return code;
    cli_json j = {.f = cli.json ? stdout : NULL};
    bool same  = true;
    int runs   = 0;
    if (j.f) {
        json_open(&j, NULL, '{');
        json_string(&j, "schema", "onemodel.verify.v1");
        json_open(&j, "runs", '[');
    }
    for (int i = 0; i < a.n_isas; i++) {
        bool can = om_set_isa((om_isa)a.isas[i]) == OM_OK;
        om_catch(NULL);
        if (!can) {
            if (!cli.quiet)
                fprintf(stderr, "%s: not on this machine\n", om_isa_name((om_isa)a.isas[i]));
            continue;
        }
        for (int k = 0; k < a.n_threads; k++) {
            if ((code = hash_in_child(&a, a.isas[i], a.threads[k], hex)) != 0) return code;
            if (!expected[0]) memcpy(expected, hex, sizeof hex);
            bool equal = strcmp(expected, hex) == 0;
            same &= equal;
            runs++;
            row(&j, a.isas[i], a.threads[k], hex, equal);
        }
    }
    if (j.f) {
        json_close(&j, ']');
        json_bool(&j, "equal", same && runs > 0);
        json_close(&j, '}');
    } else if (!cli.quiet)
        printf(same ? "%d runs, equal bits\n" : "%d runs, the bits differ\n", runs);
    if (!runs) return EXIT_NO;
    if (same && a.write) return write_hashes(a.write, expected);
    return same ? EXIT_YES : EXIT_NO;
}
