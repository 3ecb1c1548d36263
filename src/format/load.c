/*
 * load.c -- om_graph_load: which format is it, from where, under which limits.
 *
 * The bytes decide, not the name. When they are neither format the message says what they look
 * like: a downloaded HTML page or a Git LFS pointer is the commonest "broken model".
 *
 * Needs: model.h, onnx/onnx.h, base/file.h.
 */
#include <string.h>

#include "base/file.h"
#include "base/opts.h"
#include "base/utf8.h"
#include "format/model.h"
#include "onnx/onnx.h"

/* What bytes that are no model look like, or NULL. */
static const char *looks_like(const uint8_t *p, size_t n) {
    static const struct {
        const char *magic;
        size_t n;
        const char *name;
    } kinds[] = {{"version https://git-lfs", 23, "a Git LFS pointer (fetch the file itself)"},
                 {"PK\3\4", 4, "a ZIP archive (or a PyTorch checkpoint)"},
                 {"\x1f\x8b", 2, "gzip; decompress it first"},
                 {"\x7f"
                  "ELF",
                  4, "an ELF program"},
                 {"OMODEL", 6, "an .om file of another version, or a damaged one"},
                 {"\x89HDF", 4, "an HDF5 file"},
                 {"\x93NUMPY", 6, "a .npy array"},
                 {"GGUF", 4, "a GGUF file"},
                 {"<", 1, "HTML or XML"}};
    for (size_t i = 0; i < OM_COUNT(kinds); i++)
        if (n >= kinds[i].n && memcmp(p, kinds[i].magic, kinds[i].n) == 0) return kinds[i].name;
    if (n >= 8 && memcmp(p + 4, "TFL3", 4) == 0) return "a TensorFlow Lite model";
    size_t k = 0;
    for (; k < n && k < 64; k++)
        if ((p[k] < 0x20 && (p[k] < '\t' || p[k] > '\r')) || p[k] >= 0x7f) return NULL;
    return k >= 8 ? "text" : NULL;
}

static bool cancel_is_set(const om_load_opts *o) {
    return o->cancel && om_cancel_raised(o->cancel);
}

static om_graph *load_buffer(om_buffer *file, const char *label, const om_load_opts *o) {
    om_source source = {.label         = label,
                        .hint          = looks_like(file->data, file->bytes),
                        .cancel        = o->cancel,
                        .skip_checksum = o->skip_checksum};
    uint64_t cap     = o->memory_limit > 0           ? (uint64_t)o->memory_limit
                       : file->bytes < SIZE_MAX / 32 ? 16 * (uint64_t)file->bytes + ((uint64_t)64 << 20)
                                                     : SIZE_MAX;
    source.arena_cap = cap > SIZE_MAX ? SIZE_MAX : (size_t)cap;
    if (cancel_is_set(o)) OM_FAIL_NULL(OM_ERR_CANCELLED, "the load was cancelled");
    if (omi_container_is(file->data, file->bytes)) {
        source.hint = NULL;
        return omi_model_read(file, &source);
    }
    return omi_onnx_read(file, &source);
}

static bool take_opts(om_load_opts *o, const om_load_opts *opts) {
    if (!OMI_OPTS(o, opts, cancel)) return false;
    if (o->memory_limit >= 0) return true;
    omi_fail(OM_ERR_ARG, "the memory limit is negative");
    return false;
}

om_graph *om_graph_load(const char *path, const om_load_opts *opts) {
    OMI_ENTER("om_graph_load");
    om_load_opts o;
    char label[100];
    if (omi_failed()) return NULL;
    if (!path) OM_FAIL_NULL(OM_ERR_ARG, "the path is NULL");
    if (!take_opts(&o, opts)) return NULL;
    om_buffer *file = omi_file_read(path, o.copy);
    if (!file) return NULL;
    const char *slash = strrchr(path, '/');
    const char *name  = slash ? slash + 1 : path;
    omi_escape_buf(label, sizeof label, name, strlen(name));
    om_graph *g = load_buffer(file, label, &o);
    omi_buffer_release(file);
    return g;
}

om_graph *om_graph_load_memory(const void *data, size_t bytes, const om_load_opts *opts) {
    OMI_ENTER("om_graph_load_memory");
    om_load_opts o;
    om_buffer *file;
    if (omi_failed()) return NULL;
    if (!data && bytes) OM_FAIL_NULL(OM_ERR_ARG, "the bytes are NULL");
    if (!take_opts(&o, opts)) return NULL;
    if (o.borrow && bytes) {
        // Read only like a mapping: a storage that shares it must copy before it writes.
        void *shared;
        memcpy(&shared, &data, sizeof shared);
        file = omi_buffer_wrap(shared, bytes, OM_BUF_MAPPED, NULL, NULL);
    } else {
        file = omi_buffer_new(bytes);
        if (file && bytes) memcpy(file->data, data, bytes);
    }
    om_graph *g = file ? load_buffer(file, "", &o) : NULL;
    omi_buffer_release(file);
    return g;
}
