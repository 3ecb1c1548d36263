/*
 * table.c -- opset.def as an array, and the look-up by type.
 */
#include <string.h>

#include "graphops/rows.h"

#define OM_NODE(type, since, infer, fold, exact, fast, arg, operands)                              \
    {#type, since, infer, fold, exact, fast, arg, operands},
static const om_node_def rows[] = {
#include "graphops/opset.def"
};
#undef OM_NODE

static const om_node_def *test_row;

void omi_node_def_for_test(const om_node_def *def) {
    test_row = def;
}

const om_node_def *omi_node_def(const char *type, const char *domain) {
    if (domain[0] && strcmp(domain, "ai.onnx") != 0) return NULL;
    if (test_row && strcmp(test_row->type, type) == 0) return test_row;
    for (size_t i = 0; i < OM_COUNT(rows); i++)
        if (strcmp(rows[i].type, type) == 0) return &rows[i];
    return NULL;
}
