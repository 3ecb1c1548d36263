/*
 * lower.c -- the table of lowering rules. It expands from ops.def, so an operator without a mapping
 * or a refusal does not link (the census).
 */
#include "trace/lower.h"

#define OM_OP(name, ID, in_min, in_max, out_min, out_max, raw, res)                                \
    extern const om_lower_rule omi_lower_##name;
#include "ops/ops.def"
#undef OM_OP

static const om_lower_rule *const rules[OM_OP_COUNT] = {
#define OM_OP(name, ID, in_min, in_max, out_min, out_max, raw, res) &omi_lower_##name,
#include "ops/ops.def"
#undef OM_OP
};

const om_lower_rule *omi_lower_rule(om_op op) {
    return op >= 0 && op < OM_OP_COUNT ? rules[op] : NULL;
}
