/*
 * bytes.h -- hostile bytes for each reader: load, and run or use what loads.
 */
#ifndef OM_TESTS_FUZZ_BYTES_H
#define OM_TESTS_FUZZ_BYTES_H

#include <stddef.h>
#include <stdint.h>

/* libFuzzer's entry. Which reader is meant is fixed when bytes.c is compiled (OM_FUZZ_ONNX, _OM,
 * _CHECKPOINT or _NPY). Aborts when a promise is broken. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);
/* The name of its corpus: tests/fuzz/corpus/NAME. */
extern const char *const fuzz_bytes_name;

#endif
