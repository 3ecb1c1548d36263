/*
 * utf8.c -- see utf8.h.
 */
#include "base/utf8.h"

#include <string.h>

/* Length of the UTF-8 character at s, 0 when there is none; its number in *c. */
static size_t utf8_char(const unsigned char *s, size_t n, uint32_t *c) {
    if (s[0] < 0x80) return *c = s[0], 1;
    size_t k     = s[0] >= 0xf0 ? 4 : s[0] >= 0xe0 ? 3 : 2;
    uint32_t min = k == 4 ? 0x10000 : k == 3 ? 0x800 : 0x80;
    if (s[0] < 0xc2 || s[0] > 0xf4 || n < k) return 0;
    uint32_t v = s[0] & (0x7fu >> k);
    for (size_t i = 1; i < k; i++) {
        if ((s[i] & 0xc0) != 0x80) return 0;
        v = v << 6 | (s[i] & 0x3fu);
    }
    if (v < min || v > 0x10ffff || (v >= 0xd800 && v <= 0xdfff)) return 0;
    return *c = v, k;
}

bool omi_utf8_valid(const char *s, size_t n) {
    for (size_t i = 0; i < n;) {
        uint32_t c;
        size_t k = utf8_char((const unsigned char *)s + i, n - i, &c);
        if (k == 0) return false;
        i += k;
    }
    return true;
}

/* Characters that move the cursor, hide text or turn its direction. */
static bool unsafe_char(uint32_t c) {
    return c < 0x20 || (c >= 0x7f && c < 0xa0) || c == '\\' || (c >= 0x200e && c <= 0x200f) ||
           (c >= 0x2028 && c <= 0x202e) || (c >= 0x2066 && c <= 0x2069) || c == 0xfeff;
}

/* Writes one escaped character (at most 16 bytes) to out, returns its length; *used bytes of s. */
static size_t escape_one(char *out, const char *s, size_t n, size_t *used) {
    static const char hex[] = "0123456789abcdef";
    uint32_t c              = 0;
    size_t k                = utf8_char((const unsigned char *)s, n, &c);
    *used                   = k ? k : 1;
    if (k && !unsafe_char(c)) return memcpy(out, s, k), k;
    const char *at = k == 1 && c ? strchr("\nn\tt\rr\\\\", (int)c) : NULL;
    if (at) return out[0] = '\\', out[1] = at[1], 2;
    size_t m = 0;
    for (size_t i = 0; i < *used; i++) {
        unsigned char b = (unsigned char)s[i];
        out[m++]        = '\\';
        out[m++]        = 'x';
        out[m++]        = hex[b >> 4];
        out[m++]        = hex[b & 15];
    }
    return m;
}

void omi_escape(om_str *out, const char *s, size_t n) {
    char piece[16];
    size_t used;
    for (size_t i = 0; i < n; i += used) {
        size_t m = escape_one(piece, s + i, n - i, &used);
        omi_str_add(out, piece, m);
    }
}

const char *omi_escape_buf(char *buf, size_t size, const char *s, size_t n) {
    char piece[16];
    size_t used, at = 0, keep = 0; // keep: where "..." still fits
    for (size_t i = 0; i < n; i += used) {
        size_t m = escape_one(piece, s + i, n - i, &used);
        if (m >= size - at) {
            memcpy(buf + keep, "...", 4);
            return buf;
        }
        memcpy(buf + at, piece, m);
        at += m;
        if (at + 4 <= size) keep = at;
    }
    buf[at] = 0;
    return buf;
}
