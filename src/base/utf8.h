/*
 * utf8.h -- is it UTF-8, and text that is safe to print.
 *
 * Names come from files of strangers: a name may hold any UTF-8, so a terminal escape or a newline
 * in it must not reach a message, a dump or a report as it is.
 */
#ifndef OM_BASE_UTF8_H
#define OM_BASE_UTF8_H

#include "base/str.h"

/* No overlong forms, no surrogates, nothing above U+10FFFF. NUL bytes are allowed. */
bool omi_utf8_valid(const char *s, size_t n);

/* Appends s with control characters (C0, DEL, C1), bidirectional overrides, backslashes and bytes
 * that are not UTF-8 written as \xNN, \n, \t, \r or \\. */
void omi_escape(om_str *out, const char *s, size_t n);
/* The same into buf, cut with "..." when it does not fit. Returns buf. size >= 8. */
const char *omi_escape_buf(char *buf, size_t size, const char *s, size_t n);

#endif
