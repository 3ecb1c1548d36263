/*
 * table.c -- opset.def as an array, found by a hash of domain and type, and the steps that Fast
 * replaces.
 *
 * The table of hashes is table_filled once per process; rows of one type lie in one chain in the
 * order of opset.def, which is that of their versions.
 */
#include <float.h>
#include <string.h>

#include "base/lock.h"
#include "graphops/rows.h"

/* ---- the words of opset.def -------------------------------------------------------------------
 */

#define IN(...)    ((const om_operand[]){__VA_ARGS__, {0}})
#define OUT(...)   ((const om_operand[]){__VA_ARGS__, {0}})
#define ATTRS(...) ((const om_schema[]){__VA_ARGS__, {0}})
#define NO_ATTRS   NULL
#define NO_INPUTS  ((const om_operand[]){{0}})
#define T(types)                                                                                   \
    { OM_OPERAND_ONE, 'T', false, OM_TY_##types }
#define T_OPT(types)                                                                               \
    { OM_OPERAND_OPTIONAL, 'T', false, OM_TY_##types }
#define T_MANY(types)                                                                              \
    { OM_OPERAND_MANY, 'T', false, OM_TY_##types }
#define T_SIZES(types)                                                                             \
    { OM_OPERAND_ONE, 'T', true, OM_TY_##types }
#define U(types)                                                                                   \
    { OM_OPERAND_ONE, 'U', false, OM_TY_##types }
#define OF(types)                                                                                  \
    { OM_OPERAND_ONE, 0, false, OM_TY_##types }
#define OF_OPT(types)                                                                              \
    { OM_OPERAND_OPTIONAL, 0, false, OM_TY_##types }
#define SIZES(types)                                                                               \
    { OM_OPERAND_ONE, 0, true, OM_TY_##types }
#define SIZES_OPT(types)                                                                           \
    { OM_OPERAND_OPTIONAL, 0, true, OM_TY_##types }
#define SAME                                                                                       \
    { OM_OPERAND_ONE, 'T', false, 0 }
#define SAME_OPT                                                                                   \
    { OM_OPERAND_OPTIONAL, 'T', false, 0 }
#define SAME_MANY                                                                                  \
    { OM_OPERAND_MANY, 'T', false, 0 }
#define PARSED                                                                                     \
    { OM_OPERAND_ONE, 0, false, 0 }
#define PARSED_MANY                                                                                \
    { OM_OPERAND_MANY, 0, false, 0 }
#define OF_MANY(types)                                                                             \
    { OM_OPERAND_MANY, 0, false, OM_TY_##types }
#define OF_ANY(types)                                                                              \
    { OM_OPERAND_ANY, 0, false, OM_TY_##types }
#define A_INT(n, v)                                                                                \
    { .name = #n, .type = OM_ATTR_INT, .i = (v) }
#define A_FLAG(n, v)                                                                               \
    { .name = #n, .type = OM_ATTR_INT, .flag = true, .i = (v) }
#define A_FLOAT(n, v)                                                                              \
    { .name = #n, .type = OM_ATTR_FLOAT, .f = (v) }
#define A_TEXT(n, v)                                                                               \
    { .name = #n, .type = OM_ATTR_STRING, .s = (v) }
#define A_INTS(n)                                                                                  \
    { .name = #n, .type = OM_ATTR_INTS }
#define A_TENSOR(n)                                                                                \
    { .name = #n, .type = OM_ATTR_TENSOR }
#define NEED_GRAPH(n)                                                                              \
    { .name = #n, .type = OM_ATTR_GRAPH, .required = true }
#define NEED_INT(n)                                                                                \
    { .name = #n, .type = OM_ATTR_INT, .required = true }
#define NEED_INTS(n)                                                                               \
    { .name = #n, .type = OM_ATTR_INTS, .required = true }

#define OM_NODE(domain, type, since, until, in, out, attrs, parse, infer, fold, select, arg)       \
    {domain, #type, since, until, in, out, attrs, parse, infer, fold, select, arg},
#define OM_FAST(type, select)
static const om_node_def rows[] = {
#include "graphops/opset.def"
};
#undef OM_NODE
#undef OM_FAST

#define OM_NODE(domain, type, since, until, in, out, attrs, parse, infer, fold, select, arg)
#define OM_FAST(type, select) {#type, select},
static const struct {
    const char *type;
    om_select_fn select;
} fast_rows[] = {
#include "graphops/opset.def"
};
#undef OM_NODE
#undef OM_FAST

/* ---- look-up ----------------------------------------------------------------------------------
 */

#define SLOTS 256
static uint16_t first_row[SLOTS], next_row[OM_COUNT(rows)]; /* index + 1, 0: the end */
static om_select_fn fast_of[OM_COUNT(rows)];
static omi_once table_filled = OMI_ONCE;
static const om_node_def *test_row;
static om_select_fn test_fast;

static uint32_t hash_type(const char *domain, const char *type) {
    uint32_t h = 2166136261u;
    for (const char *p = domain; *p; p++)
        h = (h ^ (uint8_t)*p) * 16777619u;
    for (const char *p = type; *p; p++)
        h = (h ^ (uint8_t)*p) * 16777619u;
    return (h ^ h >> 16) % SLOTS;
}

static void fill_table(void) {
    for (size_t i = OM_COUNT(rows); i-- > 0;) {
        uint16_t *head = &first_row[hash_type(rows[i].domain, rows[i].type)];
        next_row[i]    = *head;
        *head          = (uint16_t)(i + 1);
        fast_of[i]     = rows[i].select;
        for (size_t k = 0; k < OM_COUNT(fast_rows); k++)
            if (strcmp(fast_rows[k].type, rows[i].type) == 0) fast_of[i] = fast_rows[k].select;
    }
}

void omi_node_def_for_test(const om_node_def *def, om_select_fn fast) {
    test_row  = def;
    test_fast = fast;
}

const om_node_def *omi_node_rows(size_t *n) {
    *n = OM_COUNT(rows);
    return rows;
}

const om_node_def *omi_node_def(const char *type, const char *domain, int64_t opset,
                                int32_t *oldest) {
    *oldest = 0;
    if (strcmp(domain, "ai.onnx") == 0) domain = "";
    if (test_row && !strcmp(test_row->type, type) && !strcmp(test_row->domain, domain))
        return test_row;
    omi_call_once(&table_filled, fill_table);
    for (uint16_t at = first_row[hash_type(domain, type)]; at; at = next_row[at - 1]) {
        const om_node_def *d = &rows[at - 1];
        if (strcmp(d->type, type) != 0 || strcmp(d->domain, domain) != 0) continue;
        if (opset >= d->since && (!d->until || opset <= d->until)) return *oldest = 0, d;
        if (!*oldest) *oldest = d->since;
    }
    return NULL;
}

bool omi_node_met(const om_node_def *def) {
    return def->infer == omi_infer_met;
}

om_select_fn omi_node_select(const om_node_def *def, bool fast) {
    if (!fast) return def->select;
    if (def == test_row) return test_fast ? test_fast : def->select;
    return fast_of[def - rows];
}
