/*
 * opts.c -- reading option structs of other versions (opts.h).
 */
#include "base/opts.h"

#include <string.h>

bool omi_opts_read(void *dst, size_t now, size_t first, const void *from) {
    uint32_t given = 0, size = (uint32_t)now;
    memset(dst, 0, now);
    memcpy(dst, &size, sizeof size);
    if (!from) return true;
    memcpy(&given, from, sizeof given);
    size_t n = given ? given : first;
    if (n < first || n > now + OMI_OPTS_NEWER) {
        omi_fail(OM_ERR_ARG,
                 "struct_size of the options is %u; set it to the sizeof of their struct, %zu",
                 (unsigned)given, now);
        return false;
    }
    memcpy(dst, from, n < now ? n : now);
    memcpy(dst, &size, sizeof size);
    for (size_t i = now; i < n; i++)
        if (((const unsigned char *)from)[i]) {
            omi_fail(
                OM_ERR_ARG,
                "the options have %zu bytes and one behind the %zu that this library (%s) knows is set; leave it "
                "zero or use a newer library",
                n, now, om_version());
            return false;
        }
    return true;
}
