/*
 * error.c -- the pending error of a thread, call frames, module path, log.
 */
#include "base/error.h"

#include <dlfcn.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/str.h"
#include "base/words.h"

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
    om_state *s  = omi_state();
    om_status st = s->pending_status;
    if (out) {
        if (st == OM_OK)
            memset(out, 0, sizeof *out);
        else
            *out = s->pending;
    }
    if (omi_state_lasts(s)) s->pending_status = OM_OK;
    return st;
}

void om_exit_on_error(bool on) {
    exit_on_error = on;
}

void om_on_error(om_error_fn fn, void *ctx) {
    on_error     = fn;
    on_error_ctx = ctx;
}

/* The copy of a file's name that lasts; sites are read long after the call. Most are the literal
 * that was given before; a binding may have other text at the same address by now. */
static const char *kept_file(om_state *s, const char *file) {
    if (!file) return NULL;
    omi_file_name *f = &s->files[((uintptr_t)file >> 3 ^ (uintptr_t)file >> 9) % OMI_FILE_NAMES];
    if (OM_UNLIKELY(f->given != file || strcmp(f->kept, file) != 0)) {
        const char *kept = omi_intern_quiet(file);
        if (!kept) return NULL; // without memory the line is not named
        *f = (omi_file_name){file, kept};
    }
    return f->kept;
}

void om_here(const char *file, int line) {
    om_state *s = omi_state();
    if (omi_state_lasts(s)) s->breadcrumb = (omi_here_line){kept_file(s, file), line};
}

void om_here_call(const char *file, int line) {
    om_state *s = omi_state();
    if (!omi_state_lasts(s)) return;
    if (s->here_depth == OMI_HERE_DEPTH) // the outermost calls of a deep expression lose theirs
        memmove(s->here, s->here + 1, sizeof *s->here * (size_t)--s->here_depth);
    if (s->here_base > s->here_depth) s->here_base = s->here_depth;
    s->here[s->here_depth++] = (omi_here_line){kept_file(s, file), line};
}

/* A call cannot be inside one whose caller's stack is below its own, nor inside another call from
 * the same place; a compiler may have put one public function into another, which then share both.
 */
static bool was_left(const omi_frame *f, const char *function, const void *address,
                     const char *stack) {
    if (stack != f->stack) return stack > f->stack;
    return address != f->address || function == f->function;
}

void omi_frames_left(om_state *s, const char *function, const void *address, const char *stack) {
    int32_t depth = (int32_t)omi_min64(s->depth, OMI_CALL_DEPTH), was = depth;
    while (depth && was_left(&s->calls[depth - 1], function, address, stack))
        depth--;
    if (depth == was) return;
    s->depth        = depth;
    s->module_depth = s->calls[depth].modules;
    if (depth) return;
    // Nothing of the library runs on this thread: what the calls that were left had set is undone.
    s->inside = s->held = false;
    s->cut              = 0;
    bool line           = s->here_depth > s->here_start && s->here_depth > s->here_base;
    if (line) s->here[s->here_base] = s->here[s->here_depth - 1];
    s->here_depth = s->here_base + line;
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
    omi_vformat(text, sizeof text, fmt, ap);
    va_end(ap);
    log_fn(log_ctx, level, text);
}

om_site omi_site(void) {
    const om_state *s = omi_state();
    omi_here_line at  = s->here_depth > s->here_base ? s->here[s->here_depth - 1] : s->breadcrumb;
    om_site site      = {.module = omi_module_path(), .file = at.file, .line = at.line};
    if (s->depth > 0) {
        site.op       = omi_function();
        site.function = s->calls[0].function;
        site.address  = s->calls[0].address;
    }
    return site;
}

omi_forward omi_forward_begin(const char *stack) {
    const om_state *s = omi_state();
    omi_forward f     = {.modules = s->module_depth, .base = s->here_base, .stack = stack};
    if (s->here_depth > s->here_base) f.line = s->here[s->here_depth - 1];
    return f;
}

void omi_forward_enter(omi_forward *f) {
    om_state *s = omi_state();
    if (!omi_state_lasts(s)) return;
    f->depth = s->here_base = s->here_depth;
    f->breadcrumb           = s->breadcrumb;
    if (f->line.file) s->breadcrumb = f->line;
    if (!s->modules_stack) s->modules_stack = f->stack;
}

void omi_forward_end(const omi_forward *f) {
    om_state *s = omi_state();
    if (!omi_state_lasts(s)) return;
    s->module_depth = f->modules;
    s->here_base    = f->base;
    s->here_depth   = f->depth;
    if (f->line.file) s->breadcrumb = f->breadcrumb;
    if (s->modules_stack == f->stack) s->modules_stack = NULL;
}

/* A module's function was left by a jump: no module runs, and of the lines only the newest, which
 * is of the call that begins, is one of a call to come. */
void omi_forward_left(om_state *s) {
    s->modules_stack = NULL;
    s->module_depth  = 0;
    if (s->here_depth > s->here_base) s->here[0] = s->here[s->here_depth - 1];
    s->here_depth = s->here_depth > s->here_base;
    s->here_base  = 0;
}

om_status omi_module_push(const char *path) {
    om_state *s = omi_state();
    if (s->module_depth == OMI_MODULE_DEPTH)
        return omi_fail(OM_ERR_LIMIT, "modules are nested more than %d deep", OMI_MODULE_DEPTH);
    if (!omi_state_lasts(s)) return OM_ERR_NOMEM;
    s->modules[s->module_depth++] = path;
    return OM_OK;
}

void omi_module_pop(void) {
    om_state *s = omi_state();
    if (s->module_depth > 0) s->module_depth--;
}

const char *omi_module_path(void) {
    const om_state *s = omi_state();
    return s->module_depth ? s->modules[s->module_depth - 1] : NULL;
}
int omi_module_depth(void) {
    return omi_state()->module_depth;
}
void omi_module_reset(int depth) {
    omi_state()->module_depth = depth;
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

static om_status raise(om_status st, om_trace_kind kind, const char *where, const char *fmt,
                       va_list ap) {
    om_state *s = omi_state();
    if (s->pending_status != OM_OK) return s->pending_status;
    om_site site = omi_site();
    if (where) site.function = site.op = where;
    om_error *e = &s->pending;
    memset(e, 0, sizeof *e);
    e->status     = st;
    e->trace_kind = kind;
    describe_where(&site, e->where, sizeof e->where);
    omi_site_place(&site, e->site, sizeof e->site);
    omi_vformat(e->message, sizeof e->message, fmt, ap);
    s->pending_status = st;
    omi_error_break();
    if (on_error) on_error(on_error_ctx, e);
    if (exit_on_error) {
        fprintf(stderr, "%s: %s%s%s%s\n", e->where, e->message, e->site[0] ? " [" : "", e->site,
                e->site[0] ? "]" : "");
        exit(1);
    }
    return st;
}

om_status omi_fail(om_status s, const char *fmt, ...) {
    va_list ap;
    va_start(ap, fmt);
    s = raise(s, OM_TRACE_NONE, NULL, fmt, ap);
    va_end(ap);
    return s;
}

om_status omi_fail_trace(om_trace_kind kind, const char *fmt, ...) {
    va_list ap;
    va_start(ap, fmt);
    om_status s = raise(OM_ERR_TRACE, kind, NULL, fmt, ap);
    va_end(ap);
    return s;
}

static om_status fail_at(om_status st, om_trace_kind kind, const char *where, const char *fmt, ...)
    OM_PRINTF(4, 5);
static om_status fail_at(om_status st, om_trace_kind kind, const char *where, const char *fmt,
                         ...) {
    va_list ap;
    va_start(ap, fmt);
    st = raise(st, kind, where, fmt, ap);
    va_end(ap);
    return st;
}

om_status om_raise(om_status status, const char *where, const char *message) {
    if (status < OM_ERR_NOMEM || status > OM_ERR_INTERNAL) {
        OMI_ENTER("om_raise");
        return omi_fail(OM_ERR_ARG,
                        "%d is no error; om_raise takes OM_ERR_NOMEM to OM_ERR_INTERNAL",
                        (int)status);
    }
    om_trace_kind kind = status == OM_ERR_TRACE ? OM_TRACE_INVALID_USAGE : OM_TRACE_NONE;
    return fail_at(status, kind, where, "%s", message ? message : "no message was given");
}

om_status omi_fail_nomem(size_t bytes) {
    const omi_purpose *p = omi_state()->purpose;
    char text[300]       = "";
    if (p && !omi_failed()) p->write(p->ctx, text, sizeof text);
    return omi_fail(OM_ERR_NOMEM, "out of memory (%zu bytes asked for%s)", bytes, text);
}
