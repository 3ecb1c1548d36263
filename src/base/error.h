/*
 * error.h -- raising errors, the call stack they name, and the running module path.
 *
 * A public function starts with OMI_ENTER("om_relu"). The outermost entry on the thread is the call
 * an error names, the innermost the operator (CD-13); the frames live in the thread's state and are
 * popped by scope. A callback that is left by longjmp or an exception is forbidden; its frames
 * stay, and the next call that begins at or above their place on the C stack throws them away. The
 * module path is a stack of interned state-dict paths pushed by om_forward (CD-15). The first error
 * of a thread stays pending until om_catch.
 *
 * Needs: compiler.h.  Used by: everything.
 */
#ifndef OM_BASE_ERROR_H
#define OM_BASE_ERROR_H

#include "base/fpenv.h"
#include "base/state.h"
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

/* Lines noted by om_here_call for calls that have not returned yet. Arguments are calls themselves,
 * so in f(g(x)) the line of f waits below that of g; the outermost frame takes its own line along
 * when it ends, and a line never outlives its call. */

/* A call in progress; on the C stack, ended by scope. */
typedef struct omi_entered {
    om_state *s; /* NULL: the stand-in without memory */
    int32_t depth;
    omi_fpenv fpenv; /* the caller's, kept by the outermost frame */
} omi_entered;

/* Throws away the frames that a call beginning here cannot be inside of. */
void omi_frames_left(om_state *s, const char *function, const void *address,
                     const char *stack) OM_COLD;
/* The same for om_forward, which has no frame while a module's function runs. */
void omi_forward_left(om_state *s) OM_COLD;
/* Notes where the outermost call begins; NULL for the stand-in. */
OM_INLINE om_state *omi_outermost(om_state *s, const char *stack, omi_fpenv *fpenv) {
    if (OM_UNLIKELY(s->modules_stack && stack >= s->modules_stack)) omi_forward_left(s);
    *fpenv        = omi_fp_enter();
    s->here_start = s->here_depth;
    return omi_state_lasts(s) ? s : NULL;
}

/* The outermost frame also holds the floating-point control word of AR-1.3 for the whole call. */
OM_INLINE omi_entered omi_enter(const char *function, const void *address, const char *stack) {
    om_state *s = omi_state();
    if (s->depth > 0 &&
        OM_UNLIKELY(stack >= s->calls[omi_min64(s->depth, OMI_CALL_DEPTH) - 1].stack))
        omi_frames_left(s, function, address, stack);
    omi_entered e = {.s = s, .depth = s->depth};
    if (e.depth == 0 && OM_UNLIKELY(!(e.s = omi_outermost(s, stack, &e.fpenv)))) return e;
    if (OM_LIKELY(e.depth < OMI_CALL_DEPTH))
        s->calls[e.depth] = (omi_frame){function, address, stack, s->module_depth};
    s->depth = e.depth + 1;
    return e;
}
OM_INLINE void omi_leave(omi_entered *e) {
    if (OM_LIKELY(e->s != NULL)) e->s->depth = e->depth;
    if (e->depth) return;
    omi_fp_leave(e->fpenv);
    if (!e->s) return;
    bool own         = e->s->here_start > e->s->here_base; // its own line, which ends with it
    e->s->here_depth = own ? e->s->here_start - 1 : e->s->here_base;
}

/* Names the public function that runs until the end of the enclosing block. */
#define OMI_ENTER(name)                                                                            \
    omi_entered omi_entered_ __attribute__((cleanup(omi_leave), unused)) =                         \
        omi_enter((name), __builtin_return_address(0), __builtin_frame_address(0))

/* The innermost public function that runs, a literal; NULL outside any. */
OM_INLINE const char *omi_function(void) {
    const om_state *s = omi_state();
    return s->depth > 0 ? s->calls[omi_min64(s->depth, OMI_CALL_DEPTH) - 1].function : NULL;
}

/* The site of the public call that runs now. */
om_site omi_site(void);
/* "net.c:41", else "prog+0x1a2f", else "", into a buffer. */
void omi_site_place(const om_site *s, char *out, size_t n);

/* Around the function of a module. Lines that wait outside are for the calls they were noted for:
 * what runs inside, without lines of its own, is named by the line of om_forward. */
typedef struct omi_forward {
    omi_here_line line, breadcrumb; /* of om_forward, file NULL without; what it replaces */
    int32_t depth, base, modules;
    const char *stack;
} omi_forward;
/* Before the first check: the line is gone when that has ended. stack: om_forward's own frame. */
omi_forward omi_forward_begin(const char *stack);
void omi_forward_enter(omi_forward *f);
void omi_forward_end(const omi_forward *f);

/* Module path stack; paths are interned by the caller. Push fails with OM_ERR_LIMIT at depth 64. */
om_status omi_module_push(const char *path);
void omi_module_pop(void);
const char *omi_module_path(void); /* NULL outside any module */
int omi_module_depth(void);
void omi_module_reset(int depth);

/* Raise: record the error unless one is pending, and return the pending status. */
om_status omi_fail(om_status s, const char *fmt, ...) OM_PRINTF(2, 3) OM_COLD;
om_status omi_fail_trace(om_trace_kind kind, const char *fmt, ...) OM_PRINTF(2, 3) OM_COLD;
/* Adds what omi_state()->purpose writes, for large allocations whose reason a user can change. */
om_status omi_fail_nomem(size_t bytes) OM_COLD;
/* Breakpoint target: called once for every error raised. */
void omi_error_break(void);

/* The status of the error that is pending on this thread. */
#define omi_pending_status (omi_state()->pending_status)
/* True while there is one: operators and commands do nothing. */
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
