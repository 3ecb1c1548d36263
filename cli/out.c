/*
 * out.c -- safe text, exit codes and signals.
 */
#include "cli/cli.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* Length of the valid UTF-8 sequence at s, 0 when there is none. C1 controls count as invalid. */
static int utf8_length(const unsigned char *s) {
    if (s[0] < 0x80) return 1;
    int n = s[0] >= 0xf0 && s[0] < 0xf5 ? 4 : s[0] >= 0xe0 ? 3 : s[0] >= 0xc2 ? 2 : 0;
    if (s[0] >= 0xf5) return 0;
    for (int i = 1; i < n; i++)
        if ((s[i] & 0xc0) != 0x80) return 0;
    if (n == 2 && s[0] == 0xc2 && s[1] < 0xa0) return 0;
    if (n == 3 && ((s[0] == 0xe0 && s[1] < 0xa0) || (s[0] == 0xed && s[1] >= 0xa0))) return 0;
    if (n == 4 && ((s[0] == 0xf0 && s[1] < 0x90) || (s[0] == 0xf4 && s[1] >= 0x90))) return 0;
    // Direction overrides and other invisible controls of U+2028 to U+202E and U+2066 to U+2069.
    if (n == 3 && s[0] == 0xe2 &&
        ((s[1] == 0x80 && s[2] >= 0xa8 && s[2] <= 0xae) ||
         (s[1] == 0x81 && s[2] >= 0xa6 && s[2] <= 0xa9)))
        return 0;
    return n;
}

void cli_text(FILE *f, const char *s) {
    const unsigned char *p = (const unsigned char *)(s ? s : "");
    while (*p) {
        int n = utf8_length(p);
        if (n == 0 || *p < 0x20 || *p == 0x7f) {
            fprintf(f, "\\x%02x", *p);
            n = 1;
        } else
            fwrite(p, 1, (size_t)n, f);
        p += n;
    }
}

void cli_value_type(FILE *f, const om_value_info *v) {
    fprintf(f, "%s ", om_dtype_name((om_dtype)v->dtype));
    if (v->rank < 0) {
        fputs("[?]", f);
        return;
    }
    fputc('[', f);
    for (int i = 0; i < v->rank && i < OM_MAX_RANK; i++) {
        const om_axis_info *a = &v->axes[i];
        if (i) fputs(", ", f);
        if (a->size >= 0)
            fprintf(f, "%lld", (long long)a->size);
        else
            cli_text(f, a->symbol ? a->symbol : "?");
    }
    fputc(']', f);
}

/* ---- signals ------------------------------------------------------------------------------------
 */

static om_cancel cancel;
static volatile sig_atomic_t signal_seen;

static void on_signal(int number) {
    if (!signal_seen) signal_seen = number;
    om_cancel_raise(&cancel);
}

void cli_catch_signals(void) {
    struct sigaction a = {.sa_handler = on_signal};
    sigemptyset(&a.sa_mask);
    sigaction(SIGINT, &a, NULL);
    sigaction(SIGTERM, &a, NULL);
    sigaction(SIGALRM, &a, NULL);
    signal(SIGPIPE, SIG_IGN); // a closed pipe is an I/O error with a code, not a death
    om_set_cancel(&cancel);
}

int cli_cancel_code(void) {
    return signal_seen == SIGINT ? 130 : signal_seen == SIGTERM ? 143 : EXIT_LIMIT;
}

/* ---- exit codes ---------------------------------------------------------------------------------
 */

int cli_exit_code(om_status s) {
    switch (s) {
    case OM_OK:
        return EXIT_YES;
    case OM_ERR_IO:
        return EXIT_IO;
    case OM_ERR_NOMEM:
    case OM_ERR_LIMIT:
        return EXIT_LIMIT;
    case OM_ERR_CANCELLED:
        return cli_cancel_code();
    case OM_ERR_INTERNAL:
        return EXIT_BUG;
    case OM_ERR_ARG:
        return EXIT_USAGE;
    default:
        return EXIT_REFUSED;
    }
}

/* Does the message say which file it is about? Readers begin with its name, without folders: that
 * is skipped, so that the path stands there once. */
static bool names_its_file(const char **text, const char *path) {
    const char *slash = strrchr(path, '/'), *base = slash ? slash + 1 : path;
    size_t n = strlen(base);
    char quoted[300];
    if (n && strncmp(*text, base, n) == 0 && strncmp(*text + n, ": ", 2) == 0) {
        *text += n + 2;
        return false;
    }
    snprintf(quoted, sizeof quoted, "'%.290s'", path);
    return strstr(*text, quoted) != NULL;
}

int cli_failed(const char *subject) {
    om_error e;
    if (om_catch(&e) == OM_OK) return EXIT_YES;
    const char *text = e.message;
    fputs("onemodel: ", stderr);
    if (subject && !names_its_file(&text, subject)) {
        cli_text(stderr, subject);
        fputs(": ", stderr);
    }
    if (e.status == OM_ERR_CANCELLED)
        fputs(signal_seen == SIGALRM ? "stopped by --timeout" : "stopped by a signal", stderr);
    else
        cli_text(stderr, text);
    if (e.status == OM_ERR_INTERNAL) fputs(" (a bug; please report it)", stderr);
    fputc('\n', stderr);
    return cli_exit_code(e.status);
}

int cli_no_memory(void) {
    return fputs("onemodel: out of memory\n", stderr), EXIT_LIMIT;
}

int cli_finish(int code) {
    if (fflush(stdout) == 0 && !ferror(stdout)) return code;
    fprintf(stderr, "onemodel: writing to stdout failed: %s\n", strerror(errno));
    return EXIT_IO;
}

char *cli_read_file(const char *path, size_t limit, size_t *bytes) {
    FILE *f = fopen(path, "rb");
    struct stat st;
    if (!f || fstat(fileno(f), &st) != 0 || !S_ISREG(st.st_mode) || (size_t)st.st_size > limit) {
        fprintf(stderr, "onemodel: ");
        cli_text(stderr, path);
        fprintf(stderr, ": %s\n", f ? "not a regular file of a reasonable size" : strerror(errno));
        if (f) fclose(f);
        return NULL;
    }
    char *text = malloc((size_t)st.st_size + 1);
    *bytes     = text ? fread(text, 1, (size_t)st.st_size, f) : 0;
    if (text) text[*bytes] = 0;
    fclose(f);
    return text;
}
