/*
 * wire_build.h -- protobuf bytes by hand, for files no writer would make.
 */
#ifndef OM_TESTS_GRAPH_WIRE_BUILD_H
#define OM_TESTS_GRAPH_WIRE_BUILD_H

#include <stddef.h>
#include <stdint.h>

/* Growing bytes on the C heap; building a test file cannot fail. */
typedef struct pb {
    uint8_t *v;
    size_t n, cap;
} pb;

void pb_raw(pb *b, const void *p, size_t n);
void pb_num(pb *b, uint64_t v);                       /* a varint                   */
void pb_int_field(pb *b, uint32_t field, uint64_t v); /* tag and varint             */
void pb_data(pb *b, uint32_t field, const void *p, size_t n);
void pb_str(pb *b, uint32_t field, const char *s);
void pb_msg(pb *b, uint32_t field, pb *m); /* m is emptied               */
void pb_clear(pb *b);

/* Bytes written from the end to the front, so that wrapping a message costs no copy: deep nests. */
typedef struct pb_back {
    uint8_t *v;
    size_t cap, at; /* the bytes are v[at..cap) */
} pb_back;

pb_back pb_back_new(size_t cap);
void pb_front(pb_back *b, const void *p, size_t n);
void pb_wrap(pb_back *b, uint32_t field); /* everything so far becomes this field's message */
pb pb_back_take(pb_back *b);

/* A TensorProto: dims, type, name, raw_data (NULL: none). */
pb pb_tensor(int n_dims, const uint64_t *dims, uint64_t dtype, const char *name, const void *raw,
             size_t n_raw);
/* ValueInfoProto of a float tensor [1]. */
pb pb_value(const char *name);
/* A whole model: y = Add(x, c) where c is this TensorProto (emptied). */
pb pb_model_with(pb *tensor);
/* A whole model around this GraphProto (emptied): IR 9, opset 20. */
pb pb_model_of(pb *graph);
/* GraphProto parts: nodes first (emptied), then name g, input x, output y. */
pb pb_graph_of(pb *nodes);
/* NodeProto y = op(x) with these attributes (emptied; may be NULL). */
pb pb_node(const char *op, const char *in, const char *out, pb *attrs);

#endif
