/*
 * wire_build.c -- see wire_build.h.
 */
#include "graph/wire_build.h"

#include <stdlib.h>
#include <string.h>

void pb_raw(pb *b, const void *p, size_t n) {
    if (b->n + n > b->cap) {
        b->cap = (b->n + n) * 2 + 64;
        b->v   = realloc(b->v, b->cap);
        if (!b->v) abort();
    }
    if (n) memcpy(b->v + b->n, p, n);
    b->n += n;
}

void pb_num(pb *b, uint64_t v) {
    do {
        uint8_t x = (uint8_t)((v & 0x7f) | (v > 0x7f ? 0x80 : 0));
        pb_raw(b, &x, 1);
    } while (v >>= 7);
}

void pb_int_field(pb *b, uint32_t field, uint64_t v) {
    pb_num(b, (uint64_t)field << 3);
    pb_num(b, v);
}

void pb_data(pb *b, uint32_t field, const void *p, size_t n) {
    pb_num(b, (uint64_t)field << 3 | 2);
    pb_num(b, n);
    pb_raw(b, p, n);
}

void pb_str(pb *b, uint32_t field, const char *s) {
    pb_data(b, field, s, strlen(s));
}

void pb_msg(pb *b, uint32_t field, pb *m) {
    pb_data(b, field, m->v, m->n);
    pb_clear(m);
}

void pb_clear(pb *b) {
    free(b->v);
    *b = (pb){0};
}

pb_back pb_back_new(size_t cap) {
    pb_back b = {malloc(cap), cap, cap};
    if (!b.v) abort();
    return b;
}

void pb_front(pb_back *b, const void *p, size_t n) {
    if (n > b->at) abort();
    b->at -= n;
    memcpy(b->v + b->at, p, n);
}

void pb_wrap(pb_back *b, uint32_t field) {
    pb head = {0};
    pb_num(&head, (uint64_t)field << 3 | 2);
    pb_num(&head, b->cap - b->at);
    pb_front(b, head.v, head.n);
    pb_clear(&head);
}

pb pb_back_take(pb_back *b) {
    pb out = {0};
    pb_raw(&out, b->v + b->at, b->cap - b->at);
    free(b->v);
    *b = (pb_back){0};
    return out;
}

pb pb_tensor(int n_dims, const uint64_t *dims, uint64_t dtype, const char *name, const void *raw,
             size_t n_raw) {
    pb t = {0};
    for (int i = 0; i < n_dims; i++)
        pb_int_field(&t, 1, dims[i]);
    pb_int_field(&t, 2, dtype);
    pb_str(&t, 8, name);
    if (raw) pb_data(&t, 9, raw, n_raw);
    return t;
}

pb pb_value(const char *name) {
    pb dim = {0}, shape = {0}, tensor = {0}, type = {0}, v = {0};
    pb_int_field(&dim, 1, 1);
    pb_msg(&shape, 1, &dim);
    pb_int_field(&tensor, 1, 1);
    pb_msg(&tensor, 2, &shape);
    pb_msg(&type, 1, &tensor);
    pb_str(&v, 1, name);
    pb_msg(&v, 2, &type);
    return v;
}

pb pb_model_of(pb *graph) {
    pb m = {0}, opset = {0};
    pb_int_field(&m, 1, 9);
    pb_msg(&m, 7, graph);
    pb_int_field(&opset, 2, 20);
    pb_msg(&m, 8, &opset);
    return m;
}

pb pb_node(const char *op, const char *in, const char *out, pb *attrs) {
    pb n = {0};
    if (in) pb_str(&n, 1, in);
    if (out) pb_str(&n, 2, out);
    pb_str(&n, 4, op);
    if (attrs) {
        pb_raw(&n, attrs->v, attrs->n);
        pb_clear(attrs);
    }
    return n;
}

pb pb_graph_of(pb *nodes) {
    pb g = {0}, x = pb_value("x"), y = pb_value("y");
    pb_raw(&g, nodes->v, nodes->n);
    pb_clear(nodes);
    pb_str(&g, 2, "g");
    pb_msg(&g, 11, &x);
    pb_msg(&g, 12, &y);
    return g;
}

pb pb_model_with(pb *tensor) {
    pb node = {0}, nodes = {0};
    pb_str(&node, 1, "x");
    pb_str(&node, 1, "c");
    pb_str(&node, 2, "y");
    pb_str(&node, 4, "Add");
    pb_msg(&nodes, 1, &node);
    pb g = pb_graph_of(&nodes);
    pb_msg(&g, 5, tensor);
    return pb_model_of(&g);
}
