/*
 * str.h -- a growing text buffer. After a failed append it stays valid and failed; check once.
 */
#ifndef OM_BASE_STR_H
#define OM_BASE_STR_H

#include <stdarg.h>

#include "base/alloc.h"

typedef struct om_str {
    char *v; /* NUL-terminated once anything was appended */
    size_t n, cap;
    bool failed;
} om_str;

void omi_str_add(om_str *s, const char *text, size_t n);
void omi_str_puts(om_str *s, const char *text);
void omi_str_printf(om_str *s, const char *fmt, ...) OM_PRINTF(2, 3);
/* What src/ formats numbers and messages with: vsnprintf that knows no locale. */
int omi_vformat(char *out, size_t n, const char *fmt, va_list ap) OM_PRINTF(3, 0);
void omi_str_free(om_str *s);
/* "[2,3,4]" into buf, for messages. Returns buf. */
const char *omi_shape_text(char *buf, size_t n, int rank, const int64_t *shape);

#endif
