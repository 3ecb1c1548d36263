/*
 * version.c -- the version string and element types.
 */
#include "onemodel/base.h"

#define STR2(x) #x
#define STR(x)  STR2(x)

const char *om_version(void) {
    return STR(OM_VERSION_MAJOR) "." STR(OM_VERSION_MINOR) "." STR(OM_VERSION_PATCH);
}

size_t om_dtype_size(om_dtype t) {
    switch (t) {
    case OM_F32:
    case OM_I32:
        return 4;
    case OM_I64:
    case OM_F64:
        return 8;
    case OM_U8:
    case OM_BOOL:
        return 1;
    default:
        return 0;
    }
}

const char *om_dtype_name(om_dtype t) {
    switch (t) {
    case OM_F32:
        return "float32";
    case OM_I32:
        return "int32";
    case OM_I64:
        return "int64";
    case OM_F64:
        return "float64";
    case OM_U8:
        return "uint8";
    case OM_BOOL:
        return "bool";
    default:
        return "unsupported";
    }
}
