/*
 * lower_custom.c -- a custom operator that reaches the recorder brought no lowering (CD-12).
 */
#include "trace/lower.h"

const om_lower_rule omi_lower_custom = {
    .refusal =
        "a custom operator without a lowering; give om_custom_op.lowering, the same computation "
        "with library operators"};
