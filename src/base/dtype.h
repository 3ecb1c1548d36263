/*
 * dtype.h -- what dtype.def says of element types, sets of them, and code by element size.
 *
 * A set of types is a mask with bit n for the type of number n, so a rule can say "any float" and
 * takes a new row in. Code that moves elements goes by their size through OM_BY_SIZE; code that
 * computes switches over types. Neither has a last case that "must be" the remaining type: what is
 * not named ends in omi_no_type.
 *
 * Needs: compiler.h.  Used by: everything that looks at element types.
 */
#ifndef OM_BASE_DTYPE_H
#define OM_BASE_DTYPE_H

#include "base/compiler.h"
#include "onemodel/base.h"

typedef enum om_dtype_class {
    OM_CLASS_FLOAT,
    OM_CLASS_SIGNED,
    OM_CLASS_UNSIGNED,
    OM_CLASS_BOOL,
    OM_CLASS_NARROW,
    OM_CLASS_COMPLEX,
    OM_CLASS_TEXT
} om_dtype_class;

/* The fields of TensorProto that hold elements, by number. */
enum {
    OM_PROTO_NONE    = 0,
    OM_PROTO_FLOATS  = 4,
    OM_PROTO_INT32S  = 5,
    OM_PROTO_STRINGS = 6,
    OM_PROTO_INT64S  = 7,
    OM_PROTO_DOUBLES = 10,
    OM_PROTO_UINT64S = 11
};

typedef struct om_dtype_info {
    const char *onnx;     /* "FLOAT" */
    const char *name;     /* "float32"; NULL: only stored */
    const char *constant; /* "OM_F32"; NULL: only stored */
    const char *npy;      /* "<f4"; NULL: only stored */
    uint8_t bits, group, class, field, entries;
} om_dtype_info;

/* Of a type by its number; NULL for a number that ONNX does not have, and for 0. */
const om_dtype_info *omi_dtype(int32_t number);
/* The one that computes with it, or NULL. */
OM_INLINE const om_dtype_info *omi_dtype_computed(int32_t number) {
    const om_dtype_info *t = omi_dtype(number);
    return t && t->name ? t : NULL;
}

/* " float32 float64 ...": those that are computed with, for messages. */
extern const char omi_dtype_names[];

/* The numbers by ONNX's names. */
enum {
#define OM_DTYPE(ID, number, ONNX, name, bits, class, type, npy, field)   OM_ONNX_##ONNX = number,
#define OM_DTYPE_STORED(number, ONNX, bits, group, class, field, entries) OM_ONNX_##ONNX = number,
#include "base/dtype.def"
#undef OM_DTYPE
#undef OM_DTYPE_STORED
    OM_ONNX_UNDEFINED = 0
};

/* Sets: one type, all of a class, all that are computed with. */
#define OM_TYPE_BIT(number) (1u << (number))
#define OM_DTYPE_STORED(number, ONNX, bits, group, class, field, entries)
enum {
#define OM_DTYPE(ID, number, ONNX, name, bits, class, type, npy, field)                            \
    OM_SET_##ID = OM_TYPE_BIT(number),
#include "base/dtype.def"
#undef OM_DTYPE
#define OM_DTYPE(ID, number, ONNX, name, bits, class, type, npy, field) | OM_TYPE_BIT(number)
    OM_SET_COMPUTED = 0
#include "base/dtype.def"
    ,
#undef OM_DTYPE
#define OM_DTYPE(ID, number, ONNX, name, bits, class, type, npy, field)                            \
    | (OM_CLASS_##class == OM_CLASS_FLOAT ? OM_TYPE_BIT(number) : 0)
    OM_SET_FLOAT = 0
#include "base/dtype.def"
    ,
#undef OM_DTYPE
#define OM_DTYPE(ID, number, ONNX, name, bits, class, type, npy, field)                            \
    | (OM_CLASS_##class == OM_CLASS_SIGNED ? OM_TYPE_BIT(number) : 0)
    OM_SET_SIGNED = 0
#include "base/dtype.def"
    ,
#undef OM_DTYPE
#define OM_DTYPE(ID, number, ONNX, name, bits, class, type, npy, field)                            \
    | (OM_CLASS_##class == OM_CLASS_UNSIGNED ? OM_TYPE_BIT(number) : 0)
    OM_SET_UNSIGNED = 0
#include "base/dtype.def"
#undef OM_DTYPE
    ,
    OM_SET_INTEGER = OM_SET_SIGNED | OM_SET_UNSIGNED,
    OM_SET_NUMBER  = OM_SET_FLOAT | OM_SET_INTEGER
};
#undef OM_DTYPE_STORED

/* The set of one type; empty for what is not computed with. */
OM_INLINE uint32_t omi_type_bit(om_dtype t) {
    return (uint32_t)t < 32 ? OM_TYPE_BIT(t) & (uint32_t)OM_SET_COMPUTED : 0;
}

/* Says that a computation met a type it has no case for. Its result is worthless, and the next
 * omi_check_cancel of the call fails with OM_ERR_INTERNAL; from workers too. */
void omi_no_type(void) OM_COLD;

/* om_dtype_size for code that moves elements: says so when there is none. */
OM_INLINE size_t omi_move_size(om_dtype t) {
    size_t size = om_dtype_size(t);
    if (OM_UNLIKELY(!size)) omi_no_type();
    return size;
}

/* F(type) with the unsigned integer type of an element's size: for code that only moves bits. */
#define OM_BY_SIZE(size, F)                                                                        \
    switch (size) {                                                                                \
    case 1:                                                                                        \
        F(uint8_t);                                                                                \
        break;                                                                                     \
    case 2:                                                                                        \
        F(uint16_t);                                                                               \
        break;                                                                                     \
    case 4:                                                                                        \
        F(uint32_t);                                                                               \
        break;                                                                                     \
    case 8:                                                                                        \
        F(uint64_t);                                                                               \
        break;                                                                                     \
    default:                                                                                       \
        omi_no_type();                                                                             \
        break;                                                                                     \
    }

/* F(type) with the C type of a float that has arithmetic of its own. */
#define OM_BY_FLOAT(dtype, F)                                                                      \
    switch (dtype) {                                                                               \
    case OM_F32:                                                                                   \
        F(float);                                                                                  \
        break;                                                                                     \
    case OM_F64:                                                                                   \
        F(double);                                                                                 \
        break;                                                                                     \
    default:                                                                                       \
        omi_no_type();                                                                             \
        break;                                                                                     \
    }

#endif
