/*
 * compare.c -- om_allclose, om_bit_equal, om_hash: whether two tensors are the same.
 *
 * Equality of bits counts every NaN as the same one, because which values are NaN is exact and
 * their payload is not (AR-1.4). The hash is of that canonical form, little-endian, so it is the
 * same on every machine.
 */
#include <math.h>
#include <string.h>

#include "base/bytes.h"
#include "base/hash.h"
#include "tensor/flat.h"
#include "tensor/seam.h"

void omi_canonical_copy(void *dst, const void *src, om_dtype t, int64_t n) {
    uint32_t u32;
    uint64_t u64;
    char *to         = dst;
    const char *from = src;
    switch (om_dtype_size(t)) {
    case 4:
        for (int64_t i = 0; i < n; i++) {
            memcpy(&u32, from + 4 * i, 4);
            if (t == OM_F32 && (u32 & 0x7fffffffu) > 0x7f800000u) u32 = 0x7fc00000u;
            omi_store_u32(to + 4 * i, u32);
        }
        break;
    case 8:
        for (int64_t i = 0; i < n; i++) {
            memcpy(&u64, from + 8 * i, 8);
            if (t == OM_F64 && (u64 & INT64_MAX) > 0x7ff0000000000000u) u64 = 0x7ff8000000000000u;
            omi_store_u64(to + 8 * i, u64);
        }
        break;
    case 1:
        memcpy(to, from, (size_t)n);
        break;
    default:
        omi_no_type();
    }
}

/* Both may be read, and have the same type and shape. */
static bool comparable(const om_tensor *a, const om_tensor *b) {
    return omi_check_arg(a, "a") == OM_OK && omi_check_arg(b, "b") == OM_OK &&
           omi_seam_read(a, OM_READ_ITEM) == OM_OK && omi_seam_read(b, OM_READ_ITEM) == OM_OK &&
           a->dtype == b->dtype && omi_same_shape(a, b);
}

static bool both_flat(const om_tensor *a, const om_tensor *b, omi_flat *fa, omi_flat *fb) {
    *fb = (omi_flat){0};
    return omi_flat_get(a, fa) && omi_flat_get(b, fb);
}

/* ---- om_allclose ----------------------------------------------------------------------------- */

static bool close_float(double a, double b, double rtol, double atol) {
    if (a == b || (a != a && b != b)) return true;
    return isfinite(a) && isfinite(b) && fabs(a - b) <= atol + rtol * fabs(b);
}

static bool close_int(int64_t a, int64_t b, double rtol, double atol) {
    if (a == b) return true;
    uint64_t d = a > b ? (uint64_t)a - (uint64_t)b : (uint64_t)b - (uint64_t)a;
    return (double)d <= atol + rtol * fabs((double)b);
}

static bool all_close(const void *a, const void *b, om_dtype t, int64_t n, double rtol,
                      double atol) {
    bool ok = true, floats = omi_type_bit(t) & OM_SET_FLOAT;
    size_t size   = om_dtype_size(t);
    const char *x = a, *y = b;
    for (int64_t i = 0; ok && i < n; i++, x += size, y += size)
        ok = floats
                 ? close_float(omi_element_to_double(x, t), omi_element_to_double(y, t), rtol, atol)
                 : close_int(omi_element_to_int(x, t), omi_element_to_int(y, t), rtol, atol);
    return ok;
}

bool om_allclose(const om_tensor *a, const om_tensor *b, double rtol, double atol) {
    OMI_ENTER("om_allclose");
    omi_flat fa, fb;
    if (!comparable(a, b)) return false;
    bool same = both_flat(a, b, &fa, &fb) &&
                all_close(fa.data, fb.data, (om_dtype)a->dtype, omi_numel(a), rtol, atol);
    omi_flat_put(&fa);
    omi_flat_put(&fb);
    return same;
}

/* ---- om_bit_equal ---------------------------------------------------------------------------- */

enum { CHUNK = 128 }; /* elements converted at a time, on the stack */

static bool same_bits(const char *a, const char *b, om_dtype t, int64_t n) {
    char ca[CHUNK * 8], cb[CHUNK * 8];
    size_t size = om_dtype_size(t);
    for (int64_t i = 0; i < n; i += CHUNK) {
        int64_t k      = omi_min64(CHUNK, n - i);
        const char *pa = a + (size_t)i * size, *pb = b + (size_t)i * size;
        if (memcmp(pa, pb, (size_t)k * size) == 0) continue;
        omi_canonical_copy(ca, pa, t, k);
        omi_canonical_copy(cb, pb, t, k);
        if (memcmp(ca, cb, (size_t)k * size) != 0) return false;
    }
    return true;
}

bool om_bit_equal(const om_tensor *a, const om_tensor *b) {
    OMI_ENTER("om_bit_equal");
    omi_flat fa, fb;
    if (!comparable(a, b)) return false;
    bool same =
        both_flat(a, b, &fa, &fb) && same_bits(fa.data, fb.data, (om_dtype)a->dtype, omi_numel(a));
    omi_flat_put(&fa);
    omi_flat_put(&fb);
    return same;
}

/* ---- om_hash --------------------------------------------------------------------------------- */

om_status om_hash(const om_tensor *t, char *hex) {
    OMI_ENTER("om_hash");
    char chunk[CHUNK * 8];
    uint8_t digest[32];
    omi_flat f;
    om_sha256 h;
    OM_TRY(omi_check_arg(t, "the tensor"));
    OM_TRY(omi_seam_read(t, OM_READ_EXPORT));
    if (!hex) return omi_fail(OM_ERR_ARG, "hex is NULL; give 65 bytes");
    if (!omi_flat_get(t, &f)) return omi_pending_status;
    size_t size = om_dtype_size((om_dtype)t->dtype);
    omi_sha256_init(&h);
    omi_store_u32(chunk, t->dtype);
    omi_store_u32(chunk + 4, t->rank);
    for (int i = 0; i < t->rank; i++)
        omi_store_u64(chunk + 8 + 8 * i, (uint64_t)t->shape[i]);
    omi_sha256_add(&h, chunk, 8 + 8 * (size_t)t->rank);
    for (int64_t i = 0, n = omi_numel(t); i < n; i += CHUNK) {
        int64_t k = omi_min64(CHUNK, n - i);
        omi_canonical_copy(chunk, (const char *)f.data + (size_t)i * size, (om_dtype)t->dtype, k);
        omi_sha256_add(&h, chunk, (size_t)k * size);
    }
    omi_sha256_end(&h, digest);
    omi_hex(digest, sizeof digest, hex);
    omi_flat_put(&f);
    return OM_OK;
}
