/*
 * types.c -- ONNX element types: names and sizes.
 */
#include "base/checked.h"
#include "graph/graph.h"

/* clang-format off */
static const struct { const char *name; uint8_t size; } onnx_types[] = {
    {"UNDEFINED", 0}, {"FLOAT", 4}, {"UINT8", 1}, {"INT8", 1}, {"UINT16", 2}, {"INT16", 2},
    {"INT32", 4}, {"INT64", 8}, {"STRING", 0}, {"BOOL", 1}, {"FLOAT16", 2}, {"DOUBLE", 8},
    {"UINT32", 4}, {"UINT64", 8}, {"COMPLEX64", 8}, {"COMPLEX128", 16}, {"BFLOAT16", 2},
    {"FLOAT8E4M3FN", 1}, {"FLOAT8E4M3FNUZ", 1}, {"FLOAT8E5M2", 1}, {"FLOAT8E5M2FNUZ", 1},
    {"UINT4", 0}, {"INT4", 0}, {"FLOAT4E2M1", 0}, {"FLOAT8E8M0", 1}, {"UINT2", 0}, {"INT2", 0},
    {"FLOAT6E2M3", 0}, {"FLOAT6E3M2", 0}};
/* clang-format on */

bool omi_onnx_type_known(int32_t dtype) {
    return dtype > 0 && (size_t)dtype < OM_COUNT(onnx_types);
}

size_t omi_onnx_elem_size(int32_t dtype) {
    return omi_onnx_type_known(dtype) ? onnx_types[dtype].size : 0;
}

const char *omi_onnx_type_name(int32_t dtype) {
    return dtype == 0 || omi_onnx_type_known(dtype) ? onnx_types[dtype].name : "an unknown type";
}

bool omi_onnx_bytes(int32_t dtype, int32_t rank, const int64_t *dims, size_t *bytes) {
    int64_t n;
    size_t size = omi_onnx_elem_size(dtype);
    for (int32_t i = 0; i < rank; i++)
        if (dims[i] < 0) return false;
    return size && omi_product(dims, rank, &n) && omi_mul_size((size_t)n, size, bytes);
}
