/*
 * str.c -- growing text buffer and shape text for messages.
 */
#include "base/str.h"

#include <stdio.h>
#include <string.h>

#include "base/os.h"

int omi_vformat(char *out, size_t n, const char *fmt, va_list ap) {
    return omi_os_vformat(out, n, fmt, ap);
}

void omi_str_add(om_str *s, const char *text, size_t n) {
    if (s->failed) return;
    if (n >= SIZE_MAX / 4 - s->n) {
        s->failed = true;
        omi_fail_nomem(n);
        return;
    }
    if (s->n + n + 1 > s->cap) {
        size_t cap = s->cap ? s->cap : 128;
        while (cap < s->n + n + 1)
            cap *= 2;
        char *p = omi_realloc(s->v, s->cap, cap);
        if (!p) {
            s->failed = true;
            return;
        }
        s->v   = p;
        s->cap = cap;
    }
    if (n) memcpy(s->v + s->n, text, n);
    s->n += n;
    s->v[s->n] = 0;
}

void omi_str_puts(om_str *s, const char *text) {
    omi_str_add(s, text, strlen(text));
}

void omi_str_printf(om_str *s, const char *fmt, ...) {
    char small[256];
    va_list ap, ap2;
    va_start(ap, fmt);
    va_copy(ap2, ap);
    int n = omi_vformat(small, sizeof small, fmt, ap);
    if (n >= 0 && (size_t)n < sizeof small)
        omi_str_add(s, small, (size_t)n);
    else if (n >= 0) {
        char *big = omi_alloc((size_t)n + 1);
        if (big) {
            omi_vformat(big, (size_t)n + 1, fmt, ap2);
            omi_str_add(s, big, (size_t)n);
            omi_free(big, (size_t)n + 1);
        } else
            s->failed = true;
    }
    va_end(ap);
    va_end(ap2);
}

void omi_str_free(om_str *s) {
    omi_free(s->v, s->cap);
    *s = (om_str){0};
}

const char *omi_shape_text(char *buf, size_t n, int rank, const int64_t *shape) {
    size_t k = 0;
    k += (size_t)snprintf(buf + k, n - k, "[");
    for (int i = 0; i < rank && k < n; i++)
        k += (size_t)snprintf(buf + k, n - k, "%s%lld", i ? "," : "", (long long)shape[i]);
    if (k < n) snprintf(buf + k, n - k, "]");
    return buf;
}
