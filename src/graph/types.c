/*
 * types.c -- ONNX element types as a graph carries them.
 */
#include "base/checked.h"
#include "base/dtype.h"
#include "graph/graph.h"

bool omi_onnx_type_known(int32_t dtype) {
    return omi_dtype(dtype) != NULL;
}

size_t omi_onnx_elem_size(int32_t dtype) {
    const om_dtype_info *t = omi_dtype(dtype);
    return t && t->group == 1 ? t->bits / 8 : 0;
}

const char *omi_onnx_type_name(int32_t dtype) {
    const om_dtype_info *t = omi_dtype(dtype);
    return t ? t->onnx : dtype == OM_ONNX_UNDEFINED ? "UNDEFINED" : "an unknown type";
}

bool omi_onnx_bytes(int32_t dtype, int32_t rank, const int64_t *dims, size_t *bytes) {
    int64_t n;
    size_t size = omi_onnx_elem_size(dtype);
    for (int32_t i = 0; i < rank; i++)
        if (dims[i] < 0) return false;
    return size && omi_product(dims, rank, &n) && omi_mul_size((size_t)n, size, bytes);
}
