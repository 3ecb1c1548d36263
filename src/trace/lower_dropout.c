/*
 * lower_dropout.c -- Dropout in training mode is refused; in eval mode it is its own argument
 * (CD-2).
 */
#include "trace/lower.h"

const om_lower_rule omi_lower_dropout = {
    .refusal =
        "Dropout is in training mode and its random mask would be frozen; switch the module to "
        "eval"};
