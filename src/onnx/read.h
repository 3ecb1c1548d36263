/*
 * read.h -- what the files of the ONNX reader share.
 *
 * Every message is walked twice: once to count, once to fill arrays of the right size, so nothing
 * is reallocated and a hostile count is caught by the arena's cap before memory is touched.
 * Functions return false when they have raised.
 *
 * Needs: graph, wire.h.  Used by: onnx/read_*.c.
 */
#ifndef OM_ONNX_READ_H
#define OM_ONNX_READ_H

#include "onnx/onnx.h"
#include "onnx/wire.h"

/* Keeps big locals out of the frames of functions that recurse through subgraphs. */
#define OM_LEAF __attribute__((noinline))

typedef struct om_reader {
    om_buffer *file;
    const om_source *opts;
    om_graph *root;
    size_t spent; /* bytes of converted tensors, counted against the arena's cap */
    uint32_t tick;
} om_reader;

typedef struct om_span {
    const uint8_t *p;
    size_t n;
} om_span;

/* Raises "file.onnx: byte 123: ..." and returns false. */
bool omi_read_fail(om_reader *r, om_status s, const void *at, const char *fmt, ...) OM_PRINTF(4, 5);
/* The next field; false at the end, and when raised: check omi_failed() behind the loop. */
bool omi_read_next(om_reader *r, om_wire *w, om_field *f);
/* Raises unless f has this wire type. what: "graph.node", for the message. */
bool omi_read_expect(om_reader *r, const om_field *f, uint8_t type, const char *what);
/* A field that becomes a name: bytes, UTF-8, no NUL. */
bool omi_read_name(om_reader *r, const om_field *f, const char *what, om_span *out);
/* Raises OM_ERR_CANCELLED when asked to stop; cheap enough for every node. */
bool omi_read_go_on(om_reader *r);
/* Counts bytes outside the arena against its cap. */
bool omi_read_spend(om_reader *r, const void *at, size_t bytes);

OM_INLINE om_wire omi_wire_of(om_span s) {
    return (om_wire){.p = s.p, .end = s.n ? s.p + s.n : s.p}; // no bytes may be no address
}
/* The items of a packed list, or none for a field that is one item. */
OM_INLINE om_wire omi_wire_of_list(const om_field *f) {
    bool packed = f->type == OM_WIRE_BYTES;
    return (om_wire){.p = packed ? f->data : NULL, .end = packed ? f->data + f->n : NULL};
}
OM_INLINE om_span omi_slice_of(const om_field *f) {
    return (om_span){f->data, f->n};
}

/* GraphProto into g, a fresh graph. */
bool omi_read_graph(om_reader *r, om_graph *g, om_span s);
/* AttributeProto into the node. */
bool omi_read_attr(om_reader *r, om_graph *g, int32_t node, om_span s);
/* TensorProto: its name (may be empty) and the rest into *out. */
bool omi_read_tensor_name(om_reader *r, om_span s, om_span *name);
bool omi_read_tensor(om_reader *r, om_graph *g, om_span s, om_ginit *out);
/* ValueInfoProto: its name, and its type into a value. */
bool omi_read_value_name(om_reader *r, om_span s, om_span *name);
bool omi_read_value_type(om_reader *r, om_graph *g, om_span s, uint32_t value);

#endif
