/*
 * options.c -- option parsing and help from one table per command.
 *
 * Not getopt_long: its order of operands and its messages differ between C libraries, and the help
 * text would be a second list.
 */
#include "cli/cli.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>

cli_globals cli;

static const cli_option *bad(const cli_parse *p, const char *fmt, const char *what) {
    cli_usage(p->command, fmt, what);
    return CLI_BAD;
}

static const cli_option *take_value(cli_parse *p, const cli_option *o, const char *inline_value,
                                    const char **value) {
    *value = inline_value;
    if (!o->argument && inline_value) return bad(p, "--%s takes no value", o->name);
    if (o->argument && !inline_value) {
        if (p->at >= p->argc) return bad(p, "--%s needs a value", o->name);
        *value = p->argv[p->at++];
    }
    return o;
}

static const cli_option *long_option(cli_parse *p, const char *text, const char **value) {
    const char *eq = strchr(text, '=');
    size_t n       = eq ? (size_t)(eq - text) : strlen(text);
    for (const cli_option *o = p->command->options; o->name; o++)
        if (strlen(o->name) == n && memcmp(o->name, text, n) == 0)
            return take_value(p, o, eq ? eq + 1 : NULL, value);
    return bad(p, "there is no option --%s", text);
}

static const cli_option *short_option(cli_parse *p, const char **value) {
    char letter = *p->cluster++;
    for (const cli_option *o = p->command->options; o->name; o++)
        if (o->letter == letter) {
            const char *rest = o->argument && *p->cluster ? p->cluster : NULL;
            if (rest || !*p->cluster) p->cluster = NULL;
            return take_value(p, o, rest, value);
        }
    return bad(p, "there is no option -%s", (char[]){letter, 0});
}

const cli_option *cli_next(cli_parse *p, const char **value) {
    while (p->cluster || p->at < p->argc) {
        if (p->cluster) return short_option(p, value);
        const char *a = p->argv[p->at++];
        if (p->only_operands || a[0] != '-' || !a[1]) {
            if (p->n_operands == 16) return bad(p, "too many operands, from '%s' on", a);
            p->operands[p->n_operands++] = a;
        } else if (strcmp(a, "--") == 0)
            p->only_operands = true;
        else if (a[1] == '-')
            return long_option(p, a + 2, value);
        else
            p->cluster = a + 1;
    }
    return NULL;
}

void cli_help(const cli_command *c, FILE *to) {
    fprintf(to, "onemodel %s [options] %s\n%s\n\n", c->name, c->arguments, c->summary);
    for (const cli_option *o = c->options; o->name; o++) {
        char left[48];
        snprintf(left, sizeof left, "--%s%s%s", o->name, o->argument ? "=" : "",
                 o->argument ? o->argument : "");
        if (o->letter)
            fprintf(to, "  -%c, %-24s %s\n", o->letter, left, o->help);
        else
            fprintf(to, "      %-24s %s\n", left, o->help);
    }
}

int cli_usage(const cli_command *c, const char *fmt, ...) {
    va_list ap;
    va_start(ap, fmt);
    fprintf(stderr, "onemodel %s: ", c->name);
    vfprintf(stderr, fmt, ap);
    fprintf(stderr, "; see onemodel %s --help\n", c->name);
    va_end(ap);
    return EXIT_USAGE;
}

bool cli_int(const char *s, int64_t lo, int64_t hi, int64_t *out) {
    char *end;
    long long v = strtoll(s, &end, 10);
    if (end == s || *end || v < lo || v > hi) return false;
    *out = v;
    return true;
}

bool cli_bytes(const char *s, int64_t *out) {
    char *end;
    long long v = strtoll(s, &end, 10);
    int bits    = *end == 'K' ? 10 : *end == 'M' ? 20 : *end == 'G' ? 30 : 0;
    if (bits) end++;
    if (end == s || *end || v <= 0 || v > (INT64_MAX >> bits)) return false;
    *out = (int64_t)v << bits;
    return true;
}

bool cli_duration(const char *s, int64_t *ms) {
    char *end;
    long long v   = strtoll(s, &end, 10);
    int64_t scale = strcmp(end, "ms") == 0  ? 1
                    : strcmp(end, "s") == 0 ? 1000
                    : strcmp(end, "m") == 0 ? 60000
                                            : 0;
    if (end == s || !scale || v <= 0 || v > 100000000) return false;
    *ms = v * scale;
    return true;
}

int cli_common(const cli_command *c, const cli_option *o, const char *value) {
    int64_t n;
    if (strcmp(o->name, "help") == 0) {
        cli_help(c, stdout);
        return 2;
    }
    if (strcmp(o->name, "json") == 0)
        cli.json = true;
    else if (strcmp(o->name, "quiet") == 0)
        cli.quiet = true;
    else if (strcmp(o->name, "verbose") == 0)
        cli.verbose = true;
    else if (strcmp(o->name, "timeout") == 0) {
        if (!cli_duration(value, &n))
            return cli_usage(c, "--timeout=%s: write 5s, 200ms or 1m", value), -1;
        struct itimerval t = {.it_value = {n / 1000, (n % 1000) * 1000}};
        setitimer(ITIMER_REAL, &t, NULL);
    } else if (strcmp(o->name, "memory-limit") == 0) {
        if (!cli_bytes(value, &n)) return cli_usage(c, "--memory-limit=%s: write 512M", value), -1;
        om_set_memory_limit(n);
    } else
        return 0;
    return 1;
}
