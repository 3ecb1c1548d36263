/*
 * text.c -- extents as people read them: "4*B", "(floor((H-1)/2)+1)". Depth and length are bounded.
 */
#include <stdio.h>
#include <string.h>

#include "sym/sym.h"

static void put_text(char *s, size_t cap, const char *text) {
    size_t n = strlen(s);
    if (n + 1 < cap) snprintf(s + n, cap - n, "%s", text);
}

static void put_int(char *s, size_t cap, int64_t v, bool sign) {
    char t[32];
    snprintf(t, sizeof t, sign ? "%+lld" : "%lld", (long long)v);
    put_text(s, cap, t);
}

static void put_ext(char *s, size_t cap, const om_extent *e, int depth);

static void put_atom(char *s, size_t cap, const om_atom *a, int depth, bool alone) {
    switch (depth > 3 && a->kind != OM_ATOM_SYMBOL ? -1 : (int)a->kind) {
    case -1:
        put_text(s, cap, "..");
        break;
    case OM_ATOM_SYMBOL:
        put_text(s, cap, a->name);
        break;
    case OM_ATOM_ADD:
    case OM_ATOM_SUM:
        if (!alone) put_text(s, cap, "(");
        for (uint32_t i = 0; i < a->n_src; i++) {
            if (i) put_text(s, cap, "+");
            put_ext(s, cap, &a->src[i], depth + 1);
        }
        if (a->p[0]) put_int(s, cap, a->p[0], true);
        if (!alone) put_text(s, cap, ")");
        break;
    case OM_ATOM_EQUAL:
        put_ext(s, cap, &a->src[0], depth + 1);
        put_text(s, cap, "~");
        put_ext(s, cap, &a->src[1], depth + 1);
        break;
    default:
        put_text(s, cap, a->kind == OM_ATOM_CEIL ? "(ceil((" : "(floor((");
        put_ext(s, cap, &a->src[0], depth + 1);
        if (a->p[0]) put_int(s, cap, a->p[0], true);
        put_text(s, cap, ")/");
        put_int(s, cap, a->p[1], false);
        put_text(s, cap, ")+1)");
    }
}

static void put_ext(char *s, size_t cap, const om_extent *e, int depth) {
    if (e->n == 0 || e->coef != 1) {
        put_int(s, cap, e->n ? e->coef : e->size, false);
        if (e->n) put_text(s, cap, "*");
    }
    for (int i = 0; i < e->n; i++) {
        if (i) put_text(s, cap, "*");
        put_atom(s, cap, e->a[i], depth, e->n == 1 && e->coef == 1 && depth == 0);
    }
}

const char *omi_ext_text(const om_extent *e, omi_ext_buf *buf) {
    buf->s[0] = 0;
    put_ext(buf->s, sizeof buf->s, e, 0);
    return buf->s;
}
