/*
 * wire.c -- see wire.h.
 */
#include "onnx/wire.h"

#include "base/bytes.h"

static bool wire_bad(om_wire *w, const uint8_t *at, const char *why) {
    w->p   = at;
    w->why = why;
    return false;
}

bool omi_wire_varint(om_wire *w, uint64_t *v) {
    const uint8_t *p = w->p;
    uint64_t x       = 0;
    if (OM_LIKELY(p < w->end && *p < 0x80)) return w->p = p + 1, *v = *p, true;
    for (int i = 0; i < 10; i++) {
        if (p == w->end) return wire_bad(w, w->p, "a number is cut short");
        uint8_t b = *p++;
        if (i == 9 && b > 1) return wire_bad(w, w->p, "a number has more than 64 bits");
        x |= (uint64_t)(b & 0x7f) << (7 * i);
        if (b < 0x80) return w->p = p, *v = x, true;
    }
    return wire_bad(w, w->p, "a number has more than 64 bits");
}

size_t omi_wire_count_varints(const uint8_t *p, size_t n) {
    size_t count = 0;
    for (size_t i = 0; i < n; i++)
        count += p[i] < 0x80;
    return count;
}

/* The tag at w->p. */
static bool wire_tag(om_wire *w, uint32_t *number, uint8_t *type) {
    const uint8_t *at = w->p;
    uint64_t tag;
    if (!omi_wire_varint(w, &tag)) return false;
    if (tag > UINT32_MAX || tag >> 3 == 0)
        return wire_bad(w, at, "a field number is 0 or too large");
    *number = (uint32_t)(tag >> 3);
    *type   = (uint8_t)(tag & 7);
    return true;
}

/* The payload behind a tag that is neither a group's begin nor its end. */
static bool wire_payload(om_wire *w, om_field *f) {
    const uint8_t *at = w->p;
    size_t left       = (size_t)(w->end - w->p);
    switch (f->type) {
    case OM_WIRE_VARINT:
        return omi_wire_varint(w, &f->v);
    case OM_WIRE_64:
        if (left < 8) return wire_bad(w, at, "an 8-byte value is cut short");
        f->v = omi_load_u64(w->p);
        w->p += 8;
        return true;
    case OM_WIRE_32:
        if (left < 4) return wire_bad(w, at, "a 4-byte value is cut short");
        f->v = omi_load_u32(w->p);
        w->p += 4;
        return true;
    case OM_WIRE_BYTES:
        if (!omi_wire_varint(w, &f->v)) return false;
        left = (size_t)(w->end - w->p);
        if (f->v > left) return wire_bad(w, at, "a length reaches past the end of its message");
        f->data = w->p;
        f->n    = (size_t)f->v;
        w->p += f->n;
        return true;
    default:
        return wire_bad(w, f->at, "a wire type is not one of protobuf's");
    }
}

/* Behind the begin of group number: skips to its end. */
static bool wire_skip_group(om_wire *w, uint32_t number) {
    uint32_t open[OM_WIRE_DEPTH];
    int depth     = 0;
    open[depth++] = number;
    while (depth) {
        om_field f = {.at = w->p};
        if (w->p == w->end) return wire_bad(w, w->p, "a group does not end");
        if (!wire_tag(w, &f.number, &f.type)) return false;
        if (f.type == 4) {
            if (f.number != open[--depth]) return wire_bad(w, f.at, "a group ends another group");
        } else if (f.type == OM_WIRE_GROUP) {
            if (depth == OM_WIRE_DEPTH) {
                w->too_deep = true;
                return wire_bad(w, f.at, "groups are nested too deep");
            }
            open[depth++] = f.number;
        } else if (!wire_payload(w, &f))
            return false;
    }
    return true;
}

bool omi_wire_next(om_wire *w, om_field *f) {
    if (w->why || w->p == w->end) return false;
    *f = (om_field){.at = w->p};
    if (!wire_tag(w, &f->number, &f->type)) return false;
    if (f->type == OM_WIRE_GROUP) return wire_skip_group(w, f->number);
    return wire_payload(w, f);
}
