/*
 * saved.c -- writing and reading the sections that hold tensors; om_nn_save and om_nn_load.
 */
#include "nn/saved.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/bytes.h"
#include "base/checked.h"
#include "base/file.h"
#include "base/str.h"
#include "base/utf8.h"
#include "tensor/seam.h"

#define SAVED_TAGS "STATDATATRAIOPTMRNGS"

/* ---- writing -----------------------------------------------------------------------------------
 */

void omi_out_u32(om_str *s, uint32_t v) {
    uint8_t b[4];
    omi_store_u32(b, v);
    omi_str_add(s, (const char *)b, sizeof b);
}
void omi_out_u64(om_str *s, uint64_t v) {
    uint8_t b[8];
    omi_store_u64(b, v);
    omi_str_add(s, (const char *)b, sizeof b);
}
void omi_out_f64(om_str *s, double v) {
    uint64_t u;
    memcpy(&u, &v, sizeof u);
    omi_out_u64(s, u);
}
void omi_out_text(om_str *s, const char *text) {
    size_t n = strlen(text);
    omi_out_u32(s, (uint32_t)n);
    omi_str_add(s, text, n);
}

bool omi_data_add(om_saved_data *d, const void *p, uint64_t bytes, uint64_t *offset) {
    om_saved_array a = {p, bytes, d->bytes};
    *offset          = d->bytes;
    if (!OMI_PUSH(&d->v, a)) return false;
    d->bytes = (d->bytes + bytes + 63) & ~(uint64_t)63;
    return true;
}

static void emit_arrays(om_sink *to, void *ctx) {
    const om_saved_data *d = ctx;
    uint64_t at            = 0;
    for (size_t i = 0; i < d->v.n; i++) {
        omi_put_zero(to, (size_t)(d->v.v[i].offset - at));
        omi_put(to, d->v.v[i].p, (size_t)d->v.v[i].bytes);
        at = d->v.v[i].offset + d->v.v[i].bytes;
    }
    omi_put_zero(to, (size_t)(d->bytes - at));
}

om_section omi_data_section(om_saved_data *d) {
    return (om_section){.tag   = "DATA",
                        .flags = OM_SECTION_CRITICAL | OM_SECTION_PAGE,
                        .bytes = d->bytes,
                        .emit  = emit_arrays,
                        .ctx   = d};
}

om_section omi_text_section(const char *tag, uint32_t flags, const om_str *s) {
    om_section r = {.flags = flags, .data = s->v, .bytes = s->n};
    memcpy(r.tag, tag, 5);
    return r;
}

om_status omi_out_state(om_str *stat, om_saved_data *d, const om_state_list *list) {
    omi_out_u32(stat, (uint32_t)list->v.n);
    for (size_t i = 0; i < list->v.n; i++) {
        const om_state_entry *e = &list->v.v[i];
        om_tensor *t            = omi_pack(e->t);
        uint64_t bytes, offset;
        if (!t) return om_pending();
        OM_TRY(omi_seam_opaque(e->t, "saving weights"));
        bytes = (uint64_t)omi_numel(t) * om_dtype_size((om_dtype)t->dtype);
        if (!omi_data_add(d, omi_ptr(t), bytes, &offset)) return om_pending();
        omi_out_text(stat, e->path);
        omi_out_u32(stat, e->is_buffer);
        omi_out_u32(stat, t->dtype);
        omi_out_u32(stat, t->rank);
        for (int k = 0; k < t->rank; k++)
            omi_out_u64(stat, (uint64_t)t->shape[k]);
        omi_out_u64(stat, offset);
        omi_out_u64(stat, bytes);
    }
    return stat->failed ? om_pending() : OM_OK;
}

om_status om_nn_save(om_module *m, const char *path) {
    OMI_ENTER("om_nn_save");
    if (omi_failed()) return om_pending();
    if (!m || !path) return omi_fail(OM_ERR_ARG, "%s is NULL", m ? "the path" : "the module");
    om_state_list list;
    OM_TRY(omi_state_list(m, &list));
    om_scope s         = om_scope_begin();
    om_str stat        = {0};
    om_saved_data data = {0};
    om_status st       = omi_out_state(&stat, &data, &list);
    if (st == OM_OK) {
        om_section sections[] = {omi_text_section("STAT", OM_SECTION_CRITICAL, &stat),
                                 omi_data_section(&data)};
        st                    = omi_container_save(path, sections, 2);
    }
    omi_str_free(&stat);
    OMI_VEC_FREE(&data.v);
    omi_state_list_free(&list);
    (void)om_scope_end(s);
    return st;
}

/* ---- reading ------------------------------------------------------------------------------------
 */

om_status omi_saved_fail(const om_saved_file *f, const char *fmt, ...) {
    char text[300];
    va_list ap;
    va_start(ap, fmt);
    omi_vformat(text, sizeof text, fmt, ap);
    va_end(ap);
    return omi_fail(OM_ERR_MALFORMED, "%s: %s", f->label, text);
}

om_status omi_saved_open(om_saved_file *f, const char *path) {
    memset(f, 0, sizeof *f);
    if (!path) return omi_fail(OM_ERR_ARG, "the path is NULL");
    const char *slash = strrchr(path, '/');
    const char *name  = slash ? slash + 1 : path;
    omi_escape_buf(f->label, sizeof f->label, name, strlen(name));
    f->file = omi_file_read(path, false);
    if (!f->file) return om_pending();
    om_source source = {.label = f->label};
    if (omi_container_open(&f->container, f->file, &source,
                           SAVED_TAGS "METASTRSDIMSVALSATTRNODEGRPHINIT") != OM_OK)
        goto fail;
    f->data = omi_container_find(&f->container, "DATA");
    if (omi_container_find(&f->container, "STAT") && f->data) return OM_OK;
    omi_fail(OM_ERR_ARG, "%s is a model, not the weights of a module; om_graph_load reads it",
             f->label);
fail:
    omi_saved_close(f);
    return om_pending();
}

void omi_saved_close(om_saved_file *f) {
    omi_buffer_release(f->file);
    f->file = NULL;
}

om_cursor omi_cursor(const om_section *s) {
    return (om_cursor){.p = s->data, .n = s->bytes};
}

static const uint8_t *take(om_cursor *c, uint64_t n) {
    if (c->bad || n > c->n - c->at) {
        c->bad = true;
        return NULL;
    }
    c->at += n;
    return c->p + c->at - n;
}

uint32_t omi_in_u32(om_cursor *c) {
    const uint8_t *p = take(c, 4);
    return p ? omi_load_u32(p) : 0;
}
uint64_t omi_in_u64(om_cursor *c) {
    const uint8_t *p = take(c, 8);
    return p ? omi_load_u64(p) : 0;
}
int64_t omi_in_i64(om_cursor *c) {
    uint64_t v = omi_in_u64(c);
    if (v > INT64_MAX) {
        c->bad = true;
        return 0;
    }
    return (int64_t)v;
}
double omi_in_f64(om_cursor *c) {
    uint64_t u = omi_in_u64(c);
    double v;
    memcpy(&v, &u, sizeof v);
    return v;
}
const char *omi_in_text(om_cursor *c, uint32_t *n) {
    *n = omi_in_u32(c);
    return (const char *)take(c, *n);
}

om_status omi_cursor_end(const om_saved_file *f, const om_cursor *c, const char *tag) {
    if (!c->bad && c->at == c->n) return OM_OK;
    return omi_saved_fail(f, "section %s %s at byte %llu of %llu", tag,
                          c->bad ? "holds an impossible value or ends too early"
                                 : "has bytes left over",
                          (unsigned long long)c->at, (unsigned long long)c->n);
}

const void *omi_saved_array(const om_saved_file *f, uint64_t offset, uint64_t bytes) {
    if (offset % 64 == 0 && bytes <= f->data->bytes && offset <= f->data->bytes - bytes)
        return (const uint8_t *)f->data->data + offset;
    omi_saved_fail(
        f, "an array of %llu bytes at %llu is outside of DATA (%llu bytes) or not aligned",
        (unsigned long long)bytes, (unsigned long long)offset, (unsigned long long)f->data->bytes);
    return NULL;
}

/* A bool must be 0 or 1: kernels rely on it. */
static bool bools_ok(const uint8_t *p, int64_t n) {
    for (int64_t i = 0; i < n; i++)
        if (p[i] > 1) return false;
    return true;
}

static om_status read_tensor(const om_saved_file *f, om_cursor *c, om_saved_list *out) {
    uint32_t n_name;
    const char *name = omi_in_text(c, &n_name);
    omi_in_u32(c);
    om_dtype dtype = (om_dtype)omi_in_u32(c);
    uint32_t rank  = omi_in_u32(c);
    int64_t dims[OM_MAX_RANK], numel, want;
    if (rank > OM_MAX_RANK) c->bad = true;
    for (uint32_t k = 0; k < rank && !c->bad; k++)
        dims[k] = omi_in_i64(c);
    uint64_t offset = omi_in_u64(c), bytes = omi_in_u64(c);
    int64_t size = (int64_t)om_dtype_size(dtype);
    if (c->bad || !omi_utf8_valid(name, n_name) || memchr(name, 0, n_name) || size == 0 ||
        !omi_product(dims, (int)rank, &numel) || !omi_mul_i64(numel, size, &want) ||
        (uint64_t)want != bytes)
        return omi_saved_fail(f, "tensor %zu of section STAT is described wrongly", out->v.n);
    const uint8_t *p = omi_saved_array(f, offset, bytes);
    if (!p) return om_pending();
    if (dtype == OM_BOOL && !bools_ok(p, numel))
        return omi_saved_fail(f, "tensor %zu holds bools other than 0 and 1", out->v.n);
    om_named_tensor t = {.name = omi_arena_strndup(&out->arena, name, n_name)};
    if (!t.name) return om_pending();
    int64_t at = (int64_t)(p - (const uint8_t *)f->file->data);
    t.tensor   = omi_from_buffer(f->file, at, dtype, (int)rank, dims);
    return t.tensor && OMI_PUSH(&out->v, t) ? OM_OK : om_pending();
}

om_status omi_saved_tensors(const om_saved_file *f, om_saved_list *out) {
    memset(out, 0, sizeof *out);
    om_cursor c  = omi_cursor(omi_container_find(&f->container, "STAT"));
    uint32_t n   = omi_in_u32(&c);
    om_status st = OM_OK;
    for (uint32_t i = 0; i < n && st == OM_OK; i++)
        st = read_tensor(f, &c, out);
    if (st == OM_OK) st = omi_cursor_end(f, &c, "STAT");
    if (st != OM_OK) omi_saved_list_free(out);
    return st;
}

void omi_saved_list_free(om_saved_list *l) {
    omi_arena_clear(&l->arena);
    OMI_VEC_FREE(&l->v);
}

om_status om_nn_load(om_module *m, const char *path, const om_state_opts *opts) {
    OMI_ENTER("om_nn_load");
    if (omi_failed()) return om_pending();
    if (!m) return omi_fail(OM_ERR_ARG, "the module is NULL");
    om_saved_file f;
    om_saved_list given;
    om_state_list have;
    OM_TRY(omi_saved_open(&f, path));
    om_scope s   = om_scope_begin();
    om_status st = omi_saved_tensors(&f, &given);
    if (st == OM_OK) {
        st = omi_state_list(m, &have);
        if (st == OM_OK) {
            st = omi_state_assign(&have, (int64_t)given.v.n, given.v.v, opts);
            omi_state_list_free(&have);
        }
        omi_saved_list_free(&given);
    }
    (void)om_scope_end(s);
    omi_saved_close(&f);
    return st;
}
