/*
 * dtype.c -- the table made of dtype.def, and what the public interface says of types.
 */
#include "base/dtype.h"

/* clang-format off */
#define OM_DTYPE(ID, number, ONNX, name, bits, class, type, npy, field)                            \
    [number] = {#ONNX, name, "OM_" #ID, npy, bits, 1, OM_CLASS_##class, OM_PROTO_##field, 1},
#define OM_DTYPE_STORED(number, ONNX, bits, group, class, field, entries)                          \
    [number] = {#ONNX, NULL, NULL, NULL, bits, group, OM_CLASS_##class, OM_PROTO_##field, entries},
static const om_dtype_info dtypes[] = {
#include "base/dtype.def"
};
#undef OM_DTYPE
#undef OM_DTYPE_STORED

/* The public enum and the list agree: every row has its number, whole bytes and the width of its C type ... */
#define OM_DTYPE_STORED(number, ONNX, bits, group, class, field, entries)                          \
    _Static_assert((number) < 32 && (bits) * (group) % 8 == 0, #ONNX);
#define OM_DTYPE(ID, number, ONNX, name, bits, class, type, npy, field)                            \
    _Static_assert(OM_##ID == (number) && (number) < 32 && sizeof(type) * 8 == (bits), #ID);
#include "base/dtype.def"
#undef OM_DTYPE
#undef OM_DTYPE_STORED
/* clang-format on */

/* ... and no constant is without a row (-Wswitch). */
size_t om_dtype_size(om_dtype t) {
    switch (t) {
#define OM_DTYPE_STORED(number, ONNX, bits, group, class, field, entries)
#define OM_DTYPE(ID, number, ONNX, name, bits, class, type, npy, field)                            \
    case OM_##ID:                                                                                  \
        return (bits) / 8;
#include "base/dtype.def"
#undef OM_DTYPE
#undef OM_DTYPE_STORED
    case OM_DTYPE_NONE:
        break;
    }
    return 0;
}

const char omi_dtype_names[] = ""
#define OM_DTYPE_STORED(number, ONNX, bits, group, class, field, entries)
#define OM_DTYPE(ID, number, ONNX, name, bits, class, type, npy, field) " " name
#include "base/dtype.def"
#undef OM_DTYPE
#undef OM_DTYPE_STORED
    ;

const char *om_dtype_name(om_dtype t) {
    const om_dtype_info *info = omi_dtype_computed((int32_t)t);
    return info ? info->name : "unsupported";
}

const om_dtype_info *omi_dtype(int32_t number) {
    const om_dtype_info *t = (uint32_t)number < OM_COUNT(dtypes) ? &dtypes[number] : NULL;
    return t && t->onnx ? t : NULL;
}
