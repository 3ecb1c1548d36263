/*
 * sink.h -- somewhere to put bytes: memory, a checksum, or a file (file.h).
 *
 * A writer is run once over a counting sink and once over the real one, so that sizes and bytes
 * come from the same code and cannot disagree. After a failure a sink swallows everything; the
 * status is asked for once, at the end.
 *
 * Needs: error.h.  Used by: file, hash, onnx, format.
 */
#ifndef OM_BASE_SINK_H
#define OM_BASE_SINK_H

#include "base/error.h"

typedef struct om_sink om_sink;
struct om_sink {
    om_status (*write)(om_sink *s, const void *p, size_t n); /* raises; NULL: only counts */
    uint64_t n;                                              /* bytes put so far          */
    om_status status;
};

OM_INLINE void omi_put(om_sink *s, const void *p, size_t n) {
    s->n += n;
    if (s->write && s->status == OM_OK && n) s->status = s->write(s, p, n);
}
void omi_put_u32(om_sink *s, uint32_t v); /* little-endian */
void omi_put_u64(om_sink *s, uint64_t v);
void omi_put_zero(om_sink *s, size_t n);

/* Memory of a size known beforehand; more is OM_ERR_INTERNAL. */
typedef struct om_mem_sink {
    om_sink sink;
    uint8_t *data;
    size_t size;
} om_mem_sink;
om_mem_sink omi_mem_sink(void *data, size_t size);

#endif
