/*
 * wire.h -- the protobuf wire format, read without copies and without trust.
 *
 * A cursor is a pair of pointers into the file. A field is looked at only as far as its own message
 * reaches: lengths are compared with what remains, never added to a pointer first. Groups, which
 * nobody writes any more, are skipped as other readers do, to a bounded depth and without
 * recursion. Nothing here allocates or raises; a failure is left in the cursor.
 *
 * Needs: compiler.h.  Used by: the readers of this folder, tests.
 */
#ifndef OM_ONNX_WIRE_H
#define OM_ONNX_WIRE_H

#include "base/compiler.h"

#define OM_WIRE_DEPTH 64

enum { OM_WIRE_VARINT = 0, OM_WIRE_64 = 1, OM_WIRE_BYTES = 2, OM_WIRE_GROUP = 3, OM_WIRE_32 = 5 };

typedef struct om_wire {
    const uint8_t *p, *end;
    const char *why; /* what is wrong with the bytes at p; NULL: nothing so far  */
    bool too_deep;   /* groups nested beyond OM_WIRE_DEPTH: a limit, not a fault */
} om_wire;

typedef struct om_field {
    uint32_t number;     /* 1 to 2^29 - 1                                  */
    uint8_t type;        /* OM_WIRE_*; a group has been skipped            */
    uint64_t v;          /* VARINT, 64, 32                                 */
    const uint8_t *data; /* BYTES                                          */
    size_t n;
    const uint8_t *at; /* where the field begins, for messages           */
} om_field;

/* Reads the next field. False at the end, and on a failure (then w->why is set). */
bool omi_wire_next(om_wire *w, om_field *f);
/* One varint of a packed list. False on a failure. */
bool omi_wire_varint(om_wire *w, uint64_t *v);
/* Varints in a packed list, by their last bytes. A cut one at the end is found when it is read. */
size_t omi_wire_count_varints(const uint8_t *p, size_t n);

#endif
