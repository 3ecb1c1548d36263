/*
 * models.h -- valid ONNX files with extreme attributes and sizes, from a seed.
 */
#ifndef OM_TESTS_FUZZ_MODELS_H
#define OM_TESTS_FUZZ_MODELS_H

#include "fuzz/fuzz.h"
#include "graph/wire_build.h"
#include "onemodel/base.h"

pb fuzz_model(fuzz_rng *g); /* free with pb_clear */

#endif
