/*
 * read_model.c -- ModelProto: versions, operator sets, metadata, and the one graph.
 *
 * Dropped: domain, doc strings, training_info, device configurations, unknown fields. Refused by
 * name: model-local functions. A second graph field is malformed: protobuf libraries merge the two
 * into something nobody wrote.
 */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/str.h"
#include "base/utf8.h"
#include "onnx/read.h"

#define OLDEST_IR 3
#define NEWEST_IR 14

bool omi_read_fail(om_reader *r, om_status s, const void *at, const char *fmt, ...) {
    char text[300];
    va_list ap;
    va_start(ap, fmt);
    omi_vformat(text, sizeof text, fmt, ap);
    va_end(ap);
    uint64_t offset = (uint64_t)((const uint8_t *)at - (const uint8_t *)r->file->data);
    omi_source_fail(r->opts, s, offset, "%s", text);
    return false;
}

bool omi_read_next(om_reader *r, om_wire *w, om_field *f) {
    if (omi_wire_next(w, f)) return true;
    if (w->why) omi_read_fail(r, w->too_deep ? OM_ERR_LIMIT : OM_ERR_MALFORMED, w->p, "%s", w->why);
    return false;
}

bool omi_read_expect(om_reader *r, const om_field *f, uint8_t type, const char *what) {
    if (f->type == type) return true;
    return omi_read_fail(r, OM_ERR_MALFORMED, f->at, "%s (field %u) has wire type %u, not %u", what,
                         (unsigned)f->number, (unsigned)f->type, (unsigned)type);
}

bool omi_read_name(om_reader *r, const om_field *f, const char *what, om_span *out) {
    if (!omi_read_expect(r, f, OM_WIRE_BYTES, what)) return false;
    if (!omi_utf8_valid((const char *)f->data, f->n))
        return omi_read_fail(r, OM_ERR_MALFORMED, f->at, "%s is not UTF-8", what);
    if (f->n && memchr(f->data, 0, f->n))
        return omi_read_fail(r, OM_ERR_MALFORMED, f->at, "%s holds a NUL byte", what);
    *out = omi_slice_of(f);
    return true;
}

bool omi_read_go_on(om_reader *r) {
    if (r->tick++ % 256) return true;
    return omi_source_check(r->opts) == OM_OK;
}

bool omi_read_spend(om_reader *r, const void *at, size_t bytes) {
    size_t cap = r->opts->arena_cap;
    if (cap &&
        (bytes > cap || r->spent > cap - bytes || r->root->arena->total > cap - bytes - r->spent))
        return omi_read_fail(r, OM_ERR_LIMIT, at,
                             "a tensor of %zu bytes is over the limit of %zu bytes for this load",
                             bytes, cap);
    r->spent += bytes;
    return true;
}

/* ---- parts -------------------------------------------------------------------------------------
 */

/* StringStringEntryProto: text may be NULL when absent. */
static bool read_entry(om_reader *r, om_span s, om_span *key, om_span *value) {
    om_wire w = omi_wire_of(s);
    om_field f;
    *key = *value = (om_span){(const uint8_t *)"", 0};
    while (omi_read_next(r, &w, &f)) {
        if (f.number == 1 && !omi_read_name(r, &f, "metadata_props.key", key)) return false;
        if (f.number == 2 && !omi_read_name(r, &f, "metadata_props.value", value)) return false;
    }
    return !omi_failed();
}

static char *text_of(om_reader *r, om_span s) {
    return omi_arena_strndup(r->root->arena, (const char *)s.p, s.n);
}

static bool read_meta(om_reader *r, om_span s) {
    om_span key, value;
    if (!read_entry(r, s, &key, &value)) return false;
    char *k = text_of(r, key), *v = k ? text_of(r, value) : NULL;
    return v && omi_graph_add_meta(r->root, k, v);
}

static bool read_opset(om_reader *r, om_span s) {
    om_wire w      = omi_wire_of(s);
    om_field f     = {0};
    om_span domain = {(const uint8_t *)"", 0};
    int64_t v      = 0;
    while (omi_read_next(r, &w, &f)) {
        if (f.number == 1 && !omi_read_name(r, &f, "opset_import.domain", &domain)) return false;
        if (f.number == 2) {
            if (!omi_read_expect(r, &f, OM_WIRE_VARINT, "opset_import.version")) return false;
            v = (int64_t)f.v;
        }
    }
    if (omi_failed()) return false;
    char *d = text_of(r, domain);
    if (!d) return false;
    if (v < 1)
        return omi_read_fail(r, OM_ERR_MALFORMED, s.p, "an imported operator set has version %lld",
                             (long long)v);
    return omi_graph_add_opset(r->root, d, v);
}

/* The names of model-local functions, for the refusal. */
static bool refuse_functions(om_reader *r, om_span model) {
    om_wire w = omi_wire_of(model), fw;
    om_field f, g;
    char list[200] = "", name[48];
    size_t n = 0, count = 0;
    const uint8_t *at = NULL;
    while (omi_read_next(r, &w, &f)) {
        if (f.number != 25 || !omi_read_expect(r, &f, OM_WIRE_BYTES, "functions")) continue;
        if (!at) at = f.at;
        count++;
        om_span text = {(const uint8_t *)"?", 1};
        fw           = omi_wire_of(omi_slice_of(&f));
        while (omi_wire_next(&fw, &g))
            if (g.number == 1 && g.type == OM_WIRE_BYTES) text = omi_slice_of(&g);
        omi_escape_buf(name, sizeof name, (const char *)text.p, text.n);
        if (n + strlen(name) + 8 < sizeof list)
            n += (size_t)snprintf(list + n, sizeof list - n, "%s%s", n ? ", " : "", name);
        else if (n + 4 < sizeof list && strcmp(list + n - 3, "...") != 0)
            n += (size_t)snprintf(list + n, sizeof list - n, "...");
    }
    if (omi_failed()) return false;
    return omi_read_fail(r, OM_ERR_UNSUPPORTED, at,
                         "the model defines %zu function%s of its own (%s), which cannot be read "
                         "yet; inline them first (onnx.inliner)",
                         count, count == 1 ? "" : "s", list);
}

static bool read_model_field(om_reader *r, const om_field *f, om_span *graph, bool *functions) {
    om_span s;
    om_graph *g = r->root;
    switch (f->number) {
    case 1:
        g->ir_version = (int64_t)f->v;
        return omi_read_expect(r, f, OM_WIRE_VARINT, "ir_version");
    case 2:
        return omi_read_name(r, f, "producer_name", &s) && (g->producer = text_of(r, s));
    case 3:
        return omi_read_name(r, f, "producer_version", &s) && (g->producer_version = text_of(r, s));
    case 5:
        g->model_version = (int64_t)f->v;
        return omi_read_expect(r, f, OM_WIRE_VARINT, "model_version");
    case 7:
        if (!omi_read_expect(r, f, OM_WIRE_BYTES, "graph")) return false;
        if (graph->p) return omi_read_fail(r, OM_ERR_MALFORMED, f->at, "there is a second graph");
        *graph = omi_slice_of(f);
        return true;
    case 8:
        return omi_read_expect(r, f, OM_WIRE_BYTES, "opset_import") &&
               read_opset(r, omi_slice_of(f));
    case 14:
        return omi_read_expect(r, f, OM_WIRE_BYTES, "metadata_props") &&
               read_meta(r, omi_slice_of(f));
    case 20:
        omi_log(OM_LOG_WARN, "training_info of the model is not read");
        return true;
    case 25:
        return *functions = true;
    default:
        return true;
    }
}

static bool check_versions(om_reader *r, om_span model, om_span graph) {
    int64_t ir = r->root->ir_version;
    if (!graph.p) return omi_read_fail(r, OM_ERR_MALFORMED, model.p, "the model has no graph");
    if (ir < 1)
        return omi_read_fail(r, OM_ERR_MALFORMED, model.p, "the IR version is %lld or absent",
                             (long long)ir);
    if (ir < OLDEST_IR || ir > NEWEST_IR)
        return omi_read_fail(r, OM_ERR_UNSUPPORTED, model.p,
                             "IR version %lld is not supported; %d to %d are", (long long)ir,
                             OLDEST_IR, NEWEST_IR);
    if (r->root->n_opsets == 0)
        return omi_read_fail(r, OM_ERR_MALFORMED, model.p, "the model imports no operator set");
    return true;
}

static bool read_model(om_reader *r, om_span s) {
    om_wire w      = omi_wire_of(s);
    om_field f     = {0};
    om_span graph  = {NULL, 0};
    bool functions = false;
    if (s.n == 0) return omi_read_fail(r, OM_ERR_MALFORMED, s.p, "the file is empty");
    while (omi_read_next(r, &w, &f))
        if (!omi_read_go_on(r) || !read_model_field(r, &f, &graph, &functions)) return false;
    if (omi_failed() || !check_versions(r, s, graph)) return false;
    if (functions) return refuse_functions(r, s);
    return omi_read_graph(r, r->root, graph) && omi_graph_seal(r->root) == OM_OK;
}

om_graph *omi_onnx_read(om_buffer *file, const om_source *opts) {
    om_reader r = {.file = file, .opts = opts, .root = omi_graph_new("", opts->arena_cap)};
    if (!r.root) return NULL;
    if (read_model(&r, (om_span){file->data, file->bytes})) return r.root;
    om_graph_release(r.root);
    return NULL;
}
