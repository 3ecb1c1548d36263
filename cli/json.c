/*
 * json.c -- writing JSON, and finding string members in JSON we wrote ourselves.
 */
#include "cli/cli.h"

#include <math.h>
#include <string.h>

static void separate(cli_json *j, const char *key) {
    if (j->depth) {
        if (!j->first[j->depth]) fputc(',', j->f);
        j->first[j->depth] = false;
        fprintf(j->f, "\n%*s", j->depth * 2, "");
    }
    if (key) fprintf(j->f, "\"%s\": ", key);
}

void json_open(cli_json *j, const char *key, char bracket) {
    separate(j, key);
    fputc(bracket, j->f);
    j->first[++j->depth] = true;
}

void json_close(cli_json *j, char bracket) {
    bool empty = j->first[j->depth];
    j->depth--;
    if (!empty) fprintf(j->f, "\n%*s", j->depth * 2, "");
    fputc(bracket, j->f);
    if (!j->depth) fputc('\n', j->f);
}

/* Any byte that is not printable ASCII and not valid in a JSON string goes out as \u00NN; UTF-8
 * stays. */
void json_string(cli_json *j, const char *key, const char *v) {
    separate(j, key);
    if (!v) {
        fputs("null", j->f);
        return;
    }
    fputc('"', j->f);
    for (const unsigned char *p = (const unsigned char *)v; *p; p++)
        if (*p == '"' || *p == '\\')
            fprintf(j->f, "\\%c", *p);
        else if (*p < 0x20 || *p == 0x7f)
            fprintf(j->f, "\\u%04x", *p);
        else
            fputc(*p, j->f);
    fputc('"', j->f);
}

void json_int(cli_json *j, const char *key, int64_t v) {
    separate(j, key);
    fprintf(j->f, "%lld", (long long)v);
}

void json_bool(cli_json *j, const char *key, bool v) {
    separate(j, key);
    fputs(v ? "true" : "false", j->f);
}

void json_double(cli_json *j, const char *key, double v) {
    separate(j, key);
    if (isfinite(v))
        fprintf(j->f, "%.9g", v);
    else
        fputs("null", j->f);
}

void json_value(cli_json *j, const om_value_info *v) {
    json_open(j, NULL, '{');
    json_string(j, "name", v->name);
    json_string(j, "type", om_dtype_name((om_dtype)v->dtype));
    if (v->rank >= 0) {
        json_open(j, "shape", '[');
        for (int i = 0; i < v->rank && i < OM_MAX_RANK; i++)
            if (v->axes[i].size >= 0)
                json_int(j, NULL, v->axes[i].size);
            else
                json_string(j, NULL, v->axes[i].symbol);
        json_close(j, ']');
    }
    json_close(j, '}');
}

const char *json_find_string(const char *text, const char *key, char *out, size_t n) {
    size_t len = strlen(key);
    for (const char *p = text; (p = strchr(p, '"')) != NULL; p++) {
        if (strncmp(p + 1, key, len) != 0 || p[len + 1] != '"') continue;
        const char *q = p + len + 2;
        q += strspn(q, " \t\r\n");
        if (*q++ != ':') continue;
        q += strspn(q, " \t\r\n");
        if (*q++ != '"') continue;
        const char *end = strchr(q, '"');
        if (!end || (size_t)(end - q) >= n) return NULL;
        memcpy(out, q, (size_t)(end - q));
        out[end - q] = 0;
        return end + 1;
    }
    return NULL;
}
