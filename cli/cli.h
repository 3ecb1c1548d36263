/*
 * cli.h -- what the files of the command `onemodel` share.
 *
 * The command stands on the public API alone. Results go to stdout, diagnostics to stderr; with
 * --json stdout is one document. Text from a model (names, metadata) never reaches a terminal raw:
 * cli_text escapes control characters.
 *
 * Exit codes (docs/cli.md): 0 done, yes; 1 done, no; 2 usage; 3 input refused; 4 I/O; 5 limit; 70
 * bug; 130, 143 stopped by a signal.
 */
#ifndef OM_CLI_H
#define OM_CLI_H

#include <onemodel.h>
#include <stdio.h>

enum {
    EXIT_YES     = 0,
    EXIT_NO      = 1,
    EXIT_USAGE   = 2,
    EXIT_REFUSED = 3,
    EXIT_IO      = 4,
    EXIT_LIMIT   = 5,
    EXIT_BUG     = 70
};

/* ---- options: one table per command, from which parsing and --help come
 * -------------------------- */

typedef struct cli_option {
    const char *name;     /* "threads"                         */
    char letter;          /* 't', or 0                         */
    const char *argument; /* "N", NULL: a switch               */
    const char *help;
} cli_option;

typedef struct cli_command {
    const char *name, *arguments, *summary;
    const cli_option *options; /* ends with a NULL name */
    int (*run)(int argc, char **argv);
} cli_command;

/* Iterates over argv[1..]. Returns the option at hand (its argument in *value), or NULL at the end.
 * Operands are collected in order; `--` ends options. Usage errors are printed and give (cli_option
 * *)-1. */
typedef struct cli_parse {
    const cli_command *command;
    int argc, at;
    char **argv;
    const char *operands[16];
    int n_operands;
    bool only_operands;
    const char *cluster; /* rest of -abc */
} cli_parse;
#define CLI_BAD ((const cli_option *)-1)
const cli_option *cli_next(cli_parse *p, const char **value);
void cli_help(const cli_command *c, FILE *to);
int cli_usage(const cli_command *c, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* "512M" -> bytes, "5s" "200ms" "1m" -> milliseconds, "7" -> int. False for anything else. */
bool cli_bytes(const char *s, int64_t *out);
bool cli_duration(const char *s, int64_t *ms);
bool cli_int(const char *s, int64_t lo, int64_t hi, int64_t *out);

/* The options every command has, handled by cli_common: true when o was one of them. */
#define CLI_COMMON                                                                                 \
    {"json", 0, NULL, "one JSON document on stdout"}, {"quiet", 'q', NULL, "results only"},        \
        {"verbose", 'v', NULL, "say more on stderr"},                                              \
        {"timeout", 0, "TIME", "stop after TIME (5s, 200ms, 1m), exit code 5"},                    \
        {"memory-limit", 0, "BYTES", "hold no more than BYTES (512M), exit code 5"}, {             \
        "help", 'h', NULL, "this text"                                                             \
    }
typedef struct cli_globals {
    bool json, quiet, verbose;
} cli_globals;
extern cli_globals cli;
/* 1: handled; 0: not a common option; -1: bad value, printed; 2: help was printed, exit 0. */
int cli_common(const cli_command *c, const cli_option *o, const char *value);

/* ---- errors -----------------------------------------------------------------------------------
 */

/* Prints the pending error for `subject` (a file name, or NULL) and returns the exit code for it.
 */
int cli_failed(const char *subject);
/* Says that the command itself has none; returns the exit code. */
int cli_no_memory(void);
int cli_exit_code(om_status s);
/* Sets the flag that Ctrl-C, SIGTERM and --timeout raise. */
void cli_catch_signals(void);
/* Exit code of a cancelled command: 130, 143, or 5 when the timeout did it. */
int cli_cancel_code(void);

/* ---- output -----------------------------------------------------------------------------------
 */

/* Writes s with control characters and invalid UTF-8 as \xNN. */
void cli_text(FILE *f, const char *s);
/* JSON: values, with commas and nesting kept by the writer. */
typedef struct cli_json {
    FILE *f;
    int depth;
    bool first[16];
} cli_json;
void json_open(cli_json *j, const char *key,
               char bracket); /* '{' or '[' ; key NULL inside arrays */
void json_close(cli_json *j, char bracket);
void json_string(cli_json *j, const char *key, const char *v);
void json_int(cli_json *j, const char *key, int64_t v);
void json_bool(cli_json *j, const char *key, bool v);
void json_double(cli_json *j, const char *key, double v);
/* Reading: the value of the first string member `key` at any depth of a JSON document we wrote,
 * copied to out. Returns where to go on, or NULL. */
const char *json_find_string(const char *text, const char *key, char *out, size_t n);
/* Reads a whole regular file of at most limit bytes; NULL and printed. free() it. */
char *cli_read_file(const char *path, size_t limit, size_t *bytes);
/* "float32 [batch, 1, 8, 8]" */
void cli_value_type(FILE *f, const om_value_info *v);
void json_value(cli_json *j, const om_value_info *v);
/* Flushes stdout; exit code 4 and a message when that fails, else code. */
int cli_finish(int code);

/* ---- inputs: --input and --symbol
 * ---------------------------------------------------------------- */

typedef struct cli_inputs {
    const char *spec[32]; /* "x=@x.npy", "x=random:seed=1,shape=1x3" */
    int n_specs;
    const char *symbol[32]; /* "batch=4" */
    int n_symbols;
} cli_inputs;
/* Tensors for every input of the session, in graph order, filed in the current scope. Inputs
 * without a spec get random:seed=<index+1>. Returns 0 or an exit code, printed. */
int cli_make_inputs(const cli_inputs *in, om_session *s, om_binding *out);

extern const cli_command cmd_inspect, cmd_run, cmd_verify, cmd_report;

#endif
