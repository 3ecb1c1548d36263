/*
 * npy.c -- .npy files: NumPy's array format 1.0 to 3.0, as numpy/lib/format describes it.
 *
 * A file is a magic, a version, the length of a header, the header, and the elements. The header is
 * a Python literal, {'descr': '<f4', 'fortran_order': False, 'shape': (2, 3)}; what is not exactly
 * that is refused, and nothing in it is believed before it was checked against the bytes that are
 * there: a header of a few bytes cannot ask for memory that the file does not fill. Files are
 * written as NumPy writes them, byte for byte, in C order with every NaN canonical (AR-1.4).
 *
 * Needs: tensor.h, base/file.h.
 */
#include <stdio.h>
#include <string.h>

#include "base/bytes.h"
#include "base/file.h"
#include "base/thread.h"
#include "tensor/flat.h"
#include "tensor/seam.h"

enum { MAGIC_BYTES = 6, HEADER_MOST = 1 << 16 };
static const char npy_magic[MAGIC_BYTES + 1] = "\x93NUMPY";

/* The element types, as NumPy writes them. */
typedef struct npy_header {
    om_dtype dtype;
    bool fortran;
    int rank;
    int64_t shape[OM_MAX_RANK];
    size_t data; /* offset of the elements */
} npy_header;

/* ---- the header's text ----------------------------------------------------------------------- */

typedef struct npy_text {
    const char *p, *end;
} npy_text;

static om_status npy_bad(const char *what) {
    return omi_fail(OM_ERR_MALFORMED, "not a .npy file: %s", what);
}

static void npy_space(npy_text *s) {
    while (s->p < s->end && (*s->p == ' ' || *s->p == '\t' || *s->p == '\n' || *s->p == '\r'))
        s->p++;
}
/* Takes c after white space. */
static bool npy_char(npy_text *s, char c) {
    npy_space(s);
    if (s->p == s->end || *s->p != c) return false;
    s->p++;
    return true;
}
static bool npy_word(npy_text *s, const char *word) {
    size_t n = strlen(word);
    npy_space(s);
    if ((size_t)(s->end - s->p) < n || memcmp(s->p, word, n) != 0) return false;
    s->p += n;
    return true;
}
/* 'text' or "text" without escapes. */
static bool npy_string(npy_text *s, const char **text, size_t *n) {
    char quote = npy_char(s, '\'') ? '\'' : npy_char(s, '"') ? '"' : 0;
    if (!quote) return false;
    for (*text = s->p; s->p < s->end && *s->p != quote; s->p++)
        if (*s->p == '\\' || (unsigned char)*s->p < 0x20) return false;
    if (s->p == s->end) return false;
    *n = (size_t)(s->p++ - *text);
    return true;
}

static om_status npy_descr(npy_text *s, npy_header *h) {
    const char *text;
    size_t n;
    npy_space(s);
    if (s->p < s->end && *s->p == '[')
        return omi_fail(OM_ERR_DTYPE, "the .npy file holds records; save plain arrays");
    if (!npy_string(s, &text, &n)) return npy_bad("'descr' is not a string");
    for (int32_t i = 0; i < 32; i++) {
        const om_dtype_info *type = omi_dtype_computed(i);
        const char *d             = type ? type->npy : NULL;
        // One byte has no byte order: NumPy reads '<u1' as '|u1'.
        if (d && n == 3 && memcmp(text + 1, d + 1, 2) == 0 &&
            (text[0] == d[0] || (d[2] == '1' && text[0] == '<')))
            return h->dtype = (om_dtype)i, OM_OK;
    }
    char shown[24] = {0};
    for (size_t i = 0; i < n && i + 1 < sizeof shown; i++)
        shown[i] = text[i] > 0x20 && text[i] < 0x7f ? text[i] : '?';
    return omi_fail(OM_ERR_DTYPE,
                    "the .npy file holds '%s'; save little-endian float32, float64, int64, int32, "
                    "uint8 or bool",
                    shown);
}

static om_status npy_shape(npy_text *s, npy_header *h) {
    bool comma = true;
    if (!npy_char(s, '(')) return npy_bad("'shape' is not a tuple");
    while (!npy_char(s, ')')) {
        int64_t v      = 0;
        const char *at = s->p;
        if (!comma) return npy_bad("'shape' is not a tuple of sizes");
        for (; s->p < s->end && *s->p >= '0' && *s->p <= '9'; s->p++) {
            if (v > (INT64_MAX - 9) / 10)
                return omi_fail(OM_ERR_LIMIT, "the .npy file has a size of more than 18 digits");
            v = v * 10 + (*s->p - '0');
        }
        if (s->p == at) return npy_bad("'shape' is not a tuple of sizes");
        if (s->p < s->end && *s->p == 'L') s->p++; // Python 2 wrote 3L
        if (h->rank == OM_MAX_RANK)
            return omi_fail(OM_ERR_LIMIT, "the .npy file has more than %d axes", OM_MAX_RANK);
        h->shape[h->rank++] = v;
        comma               = npy_char(s, ',');
        npy_space(s);
    }
    // (3) is a number in Python, not a tuple.
    return h->rank == 1 && !comma ? npy_bad("'shape' is not a tuple") : OM_OK;
}

static om_status npy_dict(npy_text *s, npy_header *h) {
    unsigned seen = 0;
    bool comma    = true;
    const char *key;
    size_t n;
    if (!npy_char(s, '{')) return npy_bad("the header is not a dictionary");
    while (!npy_char(s, '}')) {
        unsigned bit;
        if (!comma || !npy_string(s, &key, &n) || !npy_char(s, ':'))
            return npy_bad("the header is not a dictionary of its three keys");
        if (n == 5 && memcmp(key, "descr", 5) == 0) {
            bit = 1;
            OM_TRY(npy_descr(s, h));
        } else if (n == 5 && memcmp(key, "shape", 5) == 0) {
            bit = 2;
            if (seen & bit) return npy_bad("a header key is repeated");
            OM_TRY(npy_shape(s, h));
        } else if (n == 13 && memcmp(key, "fortran_order", 13) == 0) {
            bit        = 4;
            h->fortran = npy_word(s, "True");
            if (!h->fortran && !npy_word(s, "False"))
                return npy_bad("'fortran_order' is not True or False");
        } else {
            return npy_bad("the header has an unknown key");
        }
        if (seen & bit) return npy_bad("a header key is repeated");
        seen |= bit;
        comma = npy_char(s, ',');
    }
    npy_space(s);
    if (s->p != s->end) return npy_bad("bytes follow the header's dictionary");
    return seen == 7 ? OM_OK : npy_bad("the header lacks 'descr', 'fortran_order' or 'shape'");
}

/* ---- reading --------------------------------------------------------------------------------- */

static om_status npy_parse(const uint8_t *p, size_t bytes, npy_header *h) {
    *h = (npy_header){0};
    if (bytes < 10 || memcmp(p, npy_magic, MAGIC_BYTES) != 0)
        return npy_bad("it has another magic");
    int major = p[6];
    size_t at = major == 1 ? 10 : 12, n;
    if (major < 1 || major > 3 || p[7] != 0)
        return omi_fail(OM_ERR_MALFORMED, "the .npy file has version %d.%d; 1.0 to 3.0 are known",
                        major, p[7]);
    if (bytes < at) return npy_bad("it ends within its header");
    n = major == 1 ? (size_t)p[8] | (size_t)p[9] << 8 : omi_load_u32(p + 8);
    if (n > HEADER_MOST)
        return omi_fail(OM_ERR_LIMIT, "the .npy file has a header of %zu bytes; %d are read", n,
                        HEADER_MOST);
    if (n > bytes - at) return npy_bad("it ends within its header");
    npy_text text = {(const char *)p + at, (const char *)p + at + n};
    OM_TRY(npy_dict(&text, h));
    h->data = at + n;
    int64_t numel;
    size_t size = om_dtype_size(h->dtype);
    if (omi_check_dims(h->rank, h->shape, &numel) != OM_OK) return omi_pending_status;
    if ((uint64_t)numel > (bytes - h->data) / size)
        return omi_fail(OM_ERR_MALFORMED,
                        "the .npy file ends early: its header promises %lld elements of %zu bytes, "
                        "%zu bytes are there",
                        (long long)numel, size, bytes - h->data);
    if ((size_t)numel * size != bytes - h->data)
        return npy_bad("bytes follow its elements; one file holds one array");
    return OM_OK;
}

/* Elements as a file has them -> as the machine has them, in place. */
static void npy_to_host(void *data, om_dtype t, int64_t n) {
    if (t == OM_BOOL) // kernels rely on 0 and 1
        for (uint8_t *p = data, *end = p + n; p < end; p++)
            *p = *p != 0;
#if defined(__BYTE_ORDER__) && __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
    char *p = data; // turned over byte by byte: any size
    for (size_t size = om_dtype_size(t); n-- > 0; p += size)
        for (size_t i = 0; i < size / 2; i++) {
            char c          = p[i];
            p[i]            = p[size - 1 - i];
            p[size - 1 - i] = c;
        }
#endif
}

static om_tensor *npy_copy(const npy_header *h, const uint8_t *data) {
    om_tensor *y = omi_new(h->dtype, h->rank, h->shape);
    if (!y) return NULL;
    int64_t n    = omi_numel(y);
    size_t bytes = (size_t)n * om_dtype_size(h->dtype);
    if (!h->fortran || h->rank < 2 || n == 0) {
        if (bytes) memcpy(omi_ptr(y), data, bytes);
    } else { // read through strides; aligned first, since a header may end anywhere
        void *aligned = omi_alloc_aligned(bytes);
        if (!aligned) return NULL;
        memcpy(aligned, data, bytes);
        om_view from = omi_view(y), to = from;
        from.data = aligned;
        for (int64_t i = 0, s = 1; i < h->rank; s *= h->shape[i++])
            from.strides[i] = s;
        omi_copy(&from, &to);
        omi_free_aligned(aligned, bytes);
        if (omi_check_cancel() != OM_OK) return NULL;
    }
    npy_to_host(omi_ptr(y), h->dtype, n);
    return y;
}

om_tensor *om_npy_load_memory(const void *data, size_t bytes) {
    OMI_ENTER("om_npy_load_memory");
    npy_header h;
    if (omi_failed()) return NULL;
    if (!data) OM_FAIL_NULL(OM_ERR_ARG, "data is NULL");
    return npy_parse(data, bytes, &h) == OM_OK ? npy_copy(&h, (const uint8_t *)data + h.data)
                                               : NULL;
}

om_tensor *om_npy_load(const char *path) {
    OMI_ENTER("om_npy_load");
    npy_header h;
    om_tensor *y = NULL;
    if (omi_failed()) return NULL;
    if (!path) OM_FAIL_NULL(OM_ERR_ARG, "path is NULL");
    om_buffer *b = omi_file_read(path, true);
    if (!b) return NULL;
    if (npy_parse(b->data, b->bytes, &h) == OM_OK) {
        const uint8_t *data = (const uint8_t *)b->data + h.data;
        // NumPy aligns the elements, so the bytes that were read can stay where they are.
        if (h.data % OM_ALIGN == 0 && (!h.fortran || h.rank < 2)) {
            y = omi_from_buffer(b, (int64_t)h.data, h.dtype, h.rank, h.shape);
            if (y) npy_to_host(omi_ptr(y), h.dtype, omi_numel(y));
        } else {
            y = npy_copy(&h, data);
        }
    }
    omi_buffer_release(b);
    return y;
}

/* ---- writing --------------------------------------------------------------------------------- */

/* The whole header of t, as NumPy writes it. Returns its length, a multiple of 64. */
static size_t npy_write_header(const om_tensor *t, char out[512]) {
    const char *descr = omi_dtype_computed(t->dtype)->npy;
    char dims[OM_MAX_RANK * 21 + 4];
    int n = 0, last = 1;
    dims[0] = 0;
    for (int i = 0; i < t->rank; i++) {
        last = snprintf(dims + n, sizeof dims - (size_t)n, "%lld", (long long)t->shape[i]);
        n += last;
        n += snprintf(dims + n, sizeof dims - (size_t)n, "%s",
                      i + 1 < t->rank ? ", "
                      : t->rank == 1  ? ","
                                      : "");
    }
    n = snprintf(out + 10, 502, "{'descr': '%s', 'fortran_order': False, 'shape': (%s), }", descr,
                 dims);
    // NumPy leaves room to append along the first axis: 21 digits for its size.
    if (t->rank > 0) {
        int first = snprintf(dims, sizeof dims, "%lld", (long long)t->shape[0]);
        while (first++ < 21)
            out[10 + n++] = ' ';
    }
    while ((10 + n + 1) % 64 != 0)
        out[10 + n++] = ' ';
    out[10 + n++] = '\n';
    memcpy(out, npy_magic, MAGIC_BYTES);
    out[6] = 1;
    out[7] = 0;
    omi_store_u16(out + 8, (uint16_t)n);
    return 10 + (size_t)n;
}

enum { NPY_CHUNK = 256 };

static void npy_write(const om_tensor *t, const omi_flat *f, om_sink *to) {
    char header[512], chunk[NPY_CHUNK * 8];
    size_t size = om_dtype_size((om_dtype)t->dtype);
    omi_put(to, header, npy_write_header(t, header));
    for (int64_t i = 0, n = omi_numel(t); i < n; i += NPY_CHUNK) {
        int64_t k = omi_min64(NPY_CHUNK, n - i);
        omi_canonical_copy(chunk, (const char *)f->data + (size_t)i * size, (om_dtype)t->dtype, k);
        omi_put(to, chunk, (size_t)k * size);
    }
}

static om_status npy_source(const om_tensor *t, omi_flat *f) {
    OM_TRY(omi_check_arg(t, "the tensor"));
    OM_TRY(omi_seam_opaque(t, "saving a .npy file"));
    return omi_flat_get(t, f) ? OM_OK : omi_pending_status;
}

om_status om_npy_save(const om_tensor *t, const char *path) {
    OMI_ENTER("om_npy_save");
    omi_flat f;
    om_save s;
    OM_TRY(npy_source(t, &f));
    om_status st = path ? omi_save_begin(&s, path) : omi_fail(OM_ERR_ARG, "path is NULL");
    if (st == OM_OK) {
        npy_write(t, &f, &s.sink);
        st = omi_save_commit(&s);
    }
    omi_flat_put(&f);
    return st;
}

om_status om_npy_save_memory(const om_tensor *t, void **data, size_t *bytes) {
    OMI_ENTER("om_npy_save_memory");
    char header[512];
    omi_flat f;
    if (data) *data = NULL;
    if (bytes) *bytes = 0;
    if (omi_failed()) return omi_pending_status;
    if (!data || !bytes) return omi_fail(OM_ERR_ARG, "data or bytes is NULL");
    OM_TRY(npy_source(t, &f));
    size_t n     = npy_write_header(t, header) + f.bytes;
    void *memory = omi_alloc(n);
    if (memory) {
        om_mem_sink sink = omi_mem_sink(memory, n);
        npy_write(t, &f, &sink.sink);
        *data  = memory;
        *bytes = n;
    }
    omi_flat_put(&f);
    return omi_pending_status;
}
