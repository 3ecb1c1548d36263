/*
 * error.c -- the pending error of a thread, call frames, module path, log.
 */
#include "base/error.h"

#include <dlfcn.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MODULE_DEPTH 64

OM_TLS omi_frame *omi_frames;
OM_TLS om_status omi_pending_status;

static OM_TLS om_error pending;
OM_TLS omi_here_line omi_here_lines[OMI_HERE_DEPTH];
OM_TLS int32_t omi_here_depth;
static OM_TLS omi_here_line breadcrumb;
static OM_TLS const char *module_stack[MODULE_DEPTH];
static OM_TLS int module_depth;

static bool exit_on_error;
static om_error_fn on_error;
static void *on_error_ctx;
static om_log_fn log_fn;
static void *log_ctx;
static om_log_level log_level;

const char *om_status_name(om_status s) {
    static const char *const names[] = {
        "OM_OK",        "OM_ERR_NOMEM",       "OM_ERR_ARG",       "OM_ERR_SHAPE",
        "OM_ERR_DTYPE", "OM_ERR_LAYOUT",      "OM_ERR_STATE",     "OM_ERR_VALUE",
        "OM_ERR_TRACE", "OM_ERR_UNSUPPORTED", "OM_ERR_MALFORMED", "OM_ERR_LIMIT",
        "OM_ERR_IO",    "OM_ERR_CANCELLED",   "OM_ERR_INTERNAL"};
    return (unsigned)s < OM_COUNT(names) ? names[s] : "OM_ERR_UNKNOWN";
}

const char *om_trace_kind_name(om_trace_kind k) {
    static const char *const names[] = {
        "None",          "UnsupportedOperation", "DataDependent", "InPlaceMutation",
        "NoGradInTrace", "SymbolicShape",        "InvalidUsage"};
    return (unsigned)k < OM_COUNT(names) ? names[k] : "Unknown";
}

om_status om_pending(void) {
    return omi_pending_status;
}

om_status om_catch(om_error *out) {
    om_status s = omi_pending_status;
    if (out) {
        if (s == OM_OK)
            memset(out, 0, sizeof *out);
        else
            *out = pending;
    }
    omi_pending_status = OM_OK;
    return s;
}

void om_exit_on_error(bool on) {
    exit_on_error = on;
}

void om_on_error(om_error_fn fn, void *ctx) {
    on_error     = fn;
    on_error_ctx = ctx;
}

void om_here(const char *file, int line) {
    breadcrumb = (omi_here_line){file, line};
}

void om_here_call(const char *file, int line) {
    if (omi_here_depth == OMI_HERE_DEPTH) // the outermost calls of a deep expression lose theirs
        memmove(omi_here_lines, omi_here_lines + 1, sizeof *omi_here_lines * --omi_here_depth);
    omi_here_lines[omi_here_depth++] = (omi_here_line){file, line};
}

void om_set_log(om_log_fn fn, void *ctx, om_log_level level) {
    log_fn    = fn;
    log_ctx   = ctx;
    log_level = level;
}

void omi_log(om_log_level level, const char *fmt, ...) {
    if (!log_fn || level > log_level) return;
    char text[512];
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(text, sizeof text, fmt, ap);
    va_end(ap);
    log_fn(log_ctx, level, text);
}

om_site omi_site(void) {
    omi_here_line at = omi_here_depth ? omi_here_lines[omi_here_depth - 1] : breadcrumb;
    om_site s        = {.module = omi_module_path(), .file = at.file, .line = at.line};
    for (omi_frame *f = omi_frames; f; f = f->up) {
        if (!s.op) s.op = f->function;
        s.function = f->function;
        s.address  = f->address;
    }
    return s;
}

om_status omi_module_push(const char *path) {
    if (module_depth == MODULE_DEPTH)
        return omi_fail(OM_ERR_LIMIT, "modules are nested more than %d deep", MODULE_DEPTH);
    module_stack[module_depth++] = path;
    return OM_OK;
}

void omi_module_pop(void) {
    if (module_depth > 0) module_depth--;
}

const char *omi_module_path(void) {
    return module_depth ? module_stack[module_depth - 1] : NULL;
}
int omi_module_depth(void) {
    return module_depth;
}
void omi_module_reset(int depth) {
    module_depth = depth;
}

void omi_error_break(void) {
    __asm__ volatile("");
}

/* "prog+0x1a2f": what addr2line needs, and the only thing known of a caller without OM_HERE. */
void omi_site_place(const om_site *s, char *out, size_t n) {
    Dl_info info;
    if (s->file)
        snprintf(out, n, "%s:%d", s->file, (int)s->line);
    else if (s->address && dladdr(s->address, &info) && info.dli_fname) {
        const char *slash = strrchr(info.dli_fname, '/');
        snprintf(out, n, "%s+0x%zx", slash ? slash + 1 : info.dli_fname,
                 (size_t)((const char *)s->address - (const char *)info.dli_fbase));
    } else
        out[0] = 0;
}

static void describe_where(const om_site *s, char *out, size_t n) {
    const char *call = s->function ? s->function : "onemodel";
    const char *sep  = s->module && *s->module ? ": " : "";
    const char *path = s->module ? s->module : "";
    if (s->op && s->op != s->function)
        snprintf(out, n, "%s%s%s (in %s)", path, sep, call, s->op);
    else
        snprintf(out, n, "%s%s%s", path, sep, call);
}

static om_status raise(om_status s, om_trace_kind kind, const char *fmt, va_list ap) {
    if (omi_pending_status != OM_OK) return omi_pending_status;
    om_site site = omi_site();
    memset(&pending, 0, sizeof pending);
    pending.status     = s;
    pending.trace_kind = kind;
    describe_where(&site, pending.where, sizeof pending.where);
    omi_site_place(&site, pending.site, sizeof pending.site);
    vsnprintf(pending.message, sizeof pending.message, fmt, ap);
    omi_pending_status = s;
    omi_error_break();
    if (on_error) on_error(on_error_ctx, &pending);
    if (exit_on_error) {
        fprintf(stderr, "%s: %s%s%s%s\n", pending.where, pending.message,
                pending.site[0] ? " [" : "", pending.site, pending.site[0] ? "]" : "");
        exit(1);
    }
    return s;
}

om_status omi_fail(om_status s, const char *fmt, ...) {
    va_list ap;
    va_start(ap, fmt);
    s = raise(s, OM_TRACE_NONE, fmt, ap);
    va_end(ap);
    return s;
}

om_status omi_fail_trace(om_trace_kind kind, const char *fmt, ...) {
    va_list ap;
    va_start(ap, fmt);
    om_status s = raise(OM_ERR_TRACE, kind, fmt, ap);
    va_end(ap);
    return s;
}

om_status omi_fail_nomem(size_t bytes) {
    return omi_fail(OM_ERR_NOMEM, "out of memory (%zu bytes asked for)", bytes);
}
