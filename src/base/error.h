/*
 * error.h -- raising errors, the call stack they name, and the running module path.
 *
 * A public function starts with OMI_ENTER("om_relu"). The outermost entry on the thread is the call
 * an error names, the innermost the operator (CD-13); the frames live on the C stack and are popped
 * by scope. The module path is a stack of interned state-dict paths pushed by om_forward (CD-15).
 * The first error of a thread stays pending until om_catch.
 *
 * Needs: compiler.h.  Used by: everything.
 */
#ifndef OM_BASE_ERROR_H
#define OM_BASE_ERROR_H

#include "base/fpenv.h"
#include "onemodel/base.h"

/* Where a public call came from; copied into records and graph provenance. */
typedef struct om_site {
    const char *function; /* outermost public function, a literal    */
    const char *op;       /* innermost public function, a literal    */
    const char *module;   /* interned state-dict path, or NULL       */
    const void *address;  /* return address into the caller          */
    const char *file;     /* from OM_HERE, or NULL                   */
    int32_t line;
} om_site;

typedef struct omi_frame {
    const char *function;
    const void *address;
    struct omi_frame *up;
    omi_fpenv fpenv; /* the caller's, kept by the outermost frame */
    int32_t here;    /* omi_here_depth when the outermost frame began */
} omi_frame;

extern OM_TLS omi_frame *omi_frames;

/* Lines noted by om_here_call for calls that have not returned yet. Arguments are calls themselves,
 * so in f(g(x)) the line of f waits below that of g; the outermost frame takes its own line along
 * when it ends, and a line never outlives its call. */
enum { OMI_HERE_DEPTH = 32 };
typedef struct omi_here_line {
    const char *file;
    int32_t line;
} omi_here_line;
extern OM_TLS omi_here_line omi_here_lines[OMI_HERE_DEPTH];
extern OM_TLS int32_t omi_here_depth;

/* The outermost frame also holds the floating-point control word of AR-1.3 for the whole call. */
OM_INLINE omi_frame *omi_frame_push(omi_frame *f) {
    if (!f->up) {
        f->fpenv = omi_fp_enter();
        f->here  = omi_here_depth;
    }
    return f;
}
OM_INLINE void omi_frame_pop(omi_frame *f) {
    omi_frames = f->up;
    if (f->up) return;
    omi_fp_leave(f->fpenv);
    omi_here_depth = f->here > 0 ? f->here - 1 : 0;
}

/* Names the public function that runs until the end of the enclosing block. */
#define OMI_ENTER(name)                                                                            \
    omi_frame omi_frame_ __attribute__((cleanup(omi_frame_pop), unused)) = {                       \
        .function = (name), .address = __builtin_return_address(0), .up = omi_frames};             \
    omi_frames = omi_frame_push(&omi_frame_)

/* The site of the public call that runs now. */
om_site omi_site(void);
/* "net.c:41", else "prog+0x1a2f", else "", into a buffer. */
void omi_site_place(const om_site *s, char *out, size_t n);

/* Module path stack; paths are interned by the caller. Push fails with OM_ERR_LIMIT at depth 64. */
om_status omi_module_push(const char *path);
void omi_module_pop(void);
const char *omi_module_path(void); /* NULL outside any module */
int omi_module_depth(void);
void omi_module_reset(int depth);

/* Raise: record the error unless one is pending, and return the pending status. */
om_status omi_fail(om_status s, const char *fmt, ...) OM_PRINTF(2, 3) OM_COLD;
om_status omi_fail_trace(om_trace_kind kind, const char *fmt, ...) OM_PRINTF(2, 3) OM_COLD;
om_status omi_fail_nomem(size_t bytes) OM_COLD;
/* Breakpoint target: called once for every error raised. */
void omi_error_break(void);

/* True while an error is pending on this thread: operators and commands do nothing. */
extern OM_TLS om_status omi_pending_status;
OM_INLINE bool omi_failed(void) {
    return OM_UNLIKELY(omi_pending_status != OM_OK);
}

void omi_log(om_log_level level, const char *fmt, ...) OM_PRINTF(2, 3);

#define OM_TRY(expr)                                                                               \
    do {                                                                                           \
        om_status try_ = (expr);                                                                   \
        if (OM_UNLIKELY(try_ != OM_OK)) return try_;                                               \
    } while (0)
/* For functions that return a pointer. */
#define OM_FAIL_NULL(...) return (omi_fail(__VA_ARGS__), NULL)

#endif
