/*
 * source.c -- see source.h.
 */
#include "graph/source.h"

#include <stdarg.h>
#include <stdio.h>

#include "base/str.h"
#include "base/thread.h"

om_status omi_source_fail(const om_source *o, om_status s, uint64_t at, const char *fmt, ...) {
    char text[300];
    va_list ap;
    va_start(ap, fmt);
    omi_vformat(text, sizeof text, fmt, ap);
    va_end(ap);
    return omi_fail(s, "%s%sbyte %llu: %s%s%s", o->label, *o->label ? ": " : "",
                    (unsigned long long)at, text, o->hint ? "; the bytes look like " : "",
                    o->hint ? o->hint : "");
}

om_status omi_source_check(const om_source *o) {
    if (o->cancel && om_cancel_raised(o->cancel))
        return omi_fail(OM_ERR_CANCELLED, "the load was cancelled");
    return omi_check_cancel();
}
