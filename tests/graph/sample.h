/*
 * sample.h -- graphs that the tests of the graph plane build, and small helpers.
 */
#ifndef OM_TESTS_GRAPH_SAMPLE_H
#define OM_TESTS_GRAPH_SAMPLE_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include "graph/graph.h"
#include "onemodel/onnx.h"

/* y = x * w + c with a symbolic batch: a few hundred bytes in either format. */
om_graph *sample_small(void);
/* Every attribute type, absent operands, a subgraph that captures, opsets of two domains, metadata,
 * a scalar, an empty and a string tensor, ranges of axes. */
om_graph *sample_all(void);

/* Live blocks of the library: tests compare before and after. */
int64_t live_blocks(void);
/* The pending error must be this status; its message is returned (static). */
const char *expect_error(om_status want);
/* The dump as one string, to be freed with om_bytes_free(text, *n). */
char *dump_string(const om_graph *g, size_t *n);

#endif
