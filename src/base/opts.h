/*
 * opts.h -- the one reader of option structs (CD-34).
 *
 * Every option struct begins with uint32_t struct_size, which the caller sets to its sizeof; 0
 * means the struct as version 0.1.0 had it. Structs only grow at the end. So a caller that was
 * compiled against an older header is understood, and one against a newer header too, as long as it
 * leaves at zero what this library does not know.
 *
 *     om_conv2d_opts o;
 *     if (!OMI_OPTS(&o, opts, no_bias)) return NULL;    // no_bias: the last member in 0.1.0
 *
 * Needs: error.h.  Used by: every function that takes options.
 */
#ifndef OM_BASE_OPTS_H
#define OM_BASE_OPTS_H

#include "base/error.h"

/* Bytes of *dst up to and with member last, as a struct that ended there would have had. */
#define OMI_OPTS_FIRST(dst, last)                                                                  \
    (((size_t)((const char *)(&(dst)->last + 1) - (const char *)(dst)) +                           \
      _Alignof(__typeof__(*(dst))) - 1) /                                                          \
     _Alignof(__typeof__(*(dst))) * _Alignof(__typeof__(*(dst))))
/* Fills *dst from the caller's struct; from NULL: all zero. False and raised (OM_ERR_ARG) for a
 * struct_size below that of version 0.1.0 or more than 256 above today's, and where a member that
 * this library does not know is set. */
#define OMI_OPTS(dst, from, last)                                                                  \
    omi_opts_read((dst), sizeof *(dst), OMI_OPTS_FIRST(dst, last), (from))

#define OMI_OPTS_NEWER 256 /* a struct of a later version is not larger than today's by more */

bool omi_opts_read(void *dst, size_t now, size_t first, const void *from);

#endif
