/*
 * pack.h -- packed forms of weights that hang on their buffer (CD-25): keys, and find-or-make.
 */
#ifndef OM_COMPUTE_PACK_H
#define OM_COMPUTE_PACK_H

#include "base/buffer.h"

enum { OM_PACK_PANEL16 = 1, OM_PACK_CONV = 2 };

/* Fills dst (64-byte aligned) with the packed form; cannot fail. */
typedef void (*omi_pack_fn)(const void *ctx, float *dst);

/* Whether packed forms may be kept with a buffer. Not with the caller's own memory, nor under his
 * writable pin: he changes it without a word. */
OM_INLINE bool omi_pack_may_cache(const om_buffer *buf) {
    return buf->kind != OM_BUF_USER && !omi_buffer_written_outside(buf);
}
/* True when this was asked of buf before, and nothing else since: the same weights in the same use.
 */
bool omi_pack_seen(om_buffer *buf, int kind, const int64_t *numbers, int count);
/* The packed form of buf with this kind and these numbers (offset, strides, extents ...), made by
 * fn at the first call. NULL and raised when memory is out. buf is one that may cache. */
const float *omi_pack_cached(om_buffer *buf, int kind, const int64_t *numbers, int count,
                             size_t bytes, omi_pack_fn fn, const void *ctx);

#endif
