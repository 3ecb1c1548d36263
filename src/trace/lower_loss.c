/*
 * lower_loss.c -- losses are refused (TR-2); MseLoss and CrossEntropy are composites of recorded
 * operators and arrive here as their parts.
 */
#include "trace/lower.h"

const om_lower_rule omi_lower_nll_loss = {
    .refusal =
        "losses have no ONNX equivalent in opset 20, and a trace is for inference: trace the "
        "model up to its logits"};
