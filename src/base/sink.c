/*
 * sink.c -- the memory sink and little-endian numbers.
 */
#include "base/sink.h"

#include <string.h>

#include "base/bytes.h"

void omi_put_u32(om_sink *s, uint32_t v) {
    uint8_t b[4];
    omi_store_u32(b, v);
    omi_put(s, b, sizeof b);
}

void omi_put_u64(om_sink *s, uint64_t v) {
    uint8_t b[8];
    omi_store_u64(b, v);
    omi_put(s, b, sizeof b);
}

void omi_put_zero(om_sink *s, size_t n) {
    static const uint8_t zeros[256];
    while (n) {
        size_t k = n < sizeof zeros ? n : sizeof zeros;
        omi_put(s, zeros, k);
        n -= k;
    }
}

static om_status mem_sink_write(om_sink *s, const void *p, size_t n) {
    om_mem_sink *m = (om_mem_sink *)s;
    uint64_t at    = s->n - n;
    if (at > m->size || n > m->size - at)
        return omi_fail(OM_ERR_INTERNAL, "a writer put more bytes than it had counted");
    memcpy(m->data + at, p, n);
    return OM_OK;
}

om_mem_sink omi_mem_sink(void *data, size_t size) {
    return (om_mem_sink){.sink = {.write = mem_sink_write}, .data = data, .size = size};
}
