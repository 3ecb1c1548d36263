/*
 * main.c -- the command `onemodel`: picks the sub-command.
 */
#include "cli/cli.h"

#include <string.h>

static int run_version(int argc, char **argv);

static const cli_option version_options[] = {CLI_COMMON, {0}};
static const cli_command cmd_version      = {
         "version", "", "Prints the version and what the machine offers.", version_options, run_version};

static const cli_command *const commands[] = {&cmd_inspect, &cmd_run, &cmd_verify, &cmd_report,
                                              &cmd_version};
#define N_COMMANDS (sizeof commands / sizeof *commands)

static int run_version(int argc, char **argv) {
    cli_parse p = {.command = &cmd_version, .argc = argc, .argv = argv, .at = 1};
    const char *value;
    for (const cli_option *o; (o = cli_next(&p, &value)) != NULL;) {
        if (o == CLI_BAD) return EXIT_USAGE;
        int c = cli_common(&cmd_version, o, value);
        if (c == 2) return EXIT_YES;
        if (c < 0) return EXIT_USAGE;
    }
    if (p.n_operands) return cli_usage(&cmd_version, "takes no operands");
    char features[512];
    om_cpu_features(features, sizeof features);
    if (cli.json) {
        cli_json j = {.f = stdout};
        json_open(&j, NULL, '{');
        json_string(&j, "schema", "onemodel.version.v1");
        json_string(&j, "version", om_version());
        json_string(&j, "isa", om_isa_name(om_get_isa()));
        json_int(&j, "threads", om_threads());
        json_string(&j, "features", features);
        json_close(&j, '}');
    } else
        printf("onemodel %s (%s, %d threads)\nprocessor: %s\n", om_version(),
               om_isa_name(om_get_isa()), om_threads(), *features ? features : "no extensions");
    return EXIT_YES;
}

static int help(FILE *to) {
    fprintf(
        to,
        "onemodel: inspect, run and verify models (.onnx, .om) with the same bits everywhere.\n\n");
    for (size_t i = 0; i < N_COMMANDS; i++)
        fprintf(to, "  onemodel %-8s %-22s %s\n", commands[i]->name, commands[i]->arguments,
                commands[i]->summary);
    fprintf(
        to,
        "\nonemodel COMMAND --help tells the options. Environment: ONEMODEL_THREADS, ONEMODEL_ISA\n"
        "(scalar, avx2, avx512), ONEMODEL_MEMORY_LIMIT.\n");
    return to == stdout ? EXIT_YES : EXIT_USAGE;
}

int main(int argc, char **argv) {
    if (argc < 2) return help(stderr);
    const char *name = argv[1];
    if (strcmp(name, "--help") == 0 || strcmp(name, "-h") == 0 || strcmp(name, "help") == 0)
        return cli_finish(help(stdout));
    if (strcmp(name, "--version") == 0) name = "version";
    for (size_t i = 0; i < N_COMMANDS; i++)
        if (strcmp(commands[i]->name, name) == 0) {
            if (om_config_from_env() != OM_OK) return cli_failed(NULL);
            cli_catch_signals();
            int code = cli_finish(commands[i]->run(argc - 1, argv + 1));
            om_scope_drain();
            return code;
        }
    fputs("onemodel: there is no command '", stderr);
    cli_text(stderr, name);
    fputs("'; see onemodel --help\n", stderr);
    return EXIT_USAGE;
}
