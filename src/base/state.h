/*
 * state.h -- everything the library keeps for one thread, behind one thread-local pointer (CD-41).
 *
 * A shared library that is loaded by dlopen gets only a small, shared piece of static thread
 * storage; so there is one pointer in dynamic thread storage, to a block from the heap that is made
 * by a thread's first call and freed when the thread ends. When that block cannot be had, a static
 * state stands in: it says OM_ERR_NOMEM to everything, nothing that has to last is written to it,
 * and the thread's next call tries again.
 *
 * Upper planes have their fields here too, as pointers to types that only they know.
 *
 * Needs: base.h, os.h.  Used by: everything.
 */
#ifndef OM_BASE_STATE_H
#define OM_BASE_STATE_H

#include "base/compiler.h"
#include "onemodel/tensor.h" /* om_rng */

enum {
    OMI_HERE_DEPTH   = 32,
    OMI_CALL_DEPTH   = 160, /* calls within calls that errors can name */
    OMI_MODULE_DEPTH = 64,
    OMI_FILE_NAMES   = 8,
    OMI_CACHE_SIZES  = 64,
    OMI_EXIT_FNS     = 8
};

/* A public function that runs, or was left by a jump or an exception (error.c finds out). */
typedef struct omi_frame {
    const char *function; /* a literal                                   */
    const void *address;  /* return address into the caller              */
    const char *stack;    /* the caller's stack, to see what was left    */
    int32_t modules;      /* module_depth when it began                  */
} omi_frame;

typedef struct omi_here_line {
    const char *file;
    int32_t line;
} omi_here_line;

/* A file's name as it was given last from that address, and the copy that lasts. */
typedef struct omi_file_name {
    const char *given, *kept;
} omi_file_name;

typedef struct omi_block {
    struct omi_block *next;
} omi_block;
/* Freed blocks kept by size: [0] in steps of 16 bytes, [1] of 64 (alloc.c). */
typedef struct omi_cache {
    omi_block *head[2][OMI_CACHE_SIZES];
    uint8_t held[2][OMI_CACHE_SIZES];
} omi_cache;

typedef struct omi_scope_mark {
    uint32_t height, serial;
} omi_scope_mark;
/* Results of this thread, and where its scopes began (tensor/scope.c). */
typedef struct omi_scope_stack {
    om_tensor **v; /* NULL: one that was taken from the middle */
    size_t n, cap, holes;
    omi_scope_mark *marks;
    size_t n_marks, cap_marks;
    uint32_t next_serial;
    bool warned;
} omi_scope_stack;

struct om_seam;
struct omi_accumulation;
struct om_call;
struct om_record;

/* Writes what memory is for, for the message that there is none: " for the values of a run; ...".
 */
typedef struct omi_purpose {
    void (*write)(const void *ctx, char *out, size_t n);
    const void *ctx;
} omi_purpose;

/* Why work was left out: the cancel flag; an element type without code (base/dtype.h). */
enum { OMI_CUT_CANCEL = 1, OMI_CUT_TYPE = 2 };

typedef struct om_state {
    /* error.c */
    int32_t depth; /* calls running; those past OMI_CALL_DEPTH are not in calls */
    om_status pending_status;
    int32_t here_depth, here_start; /* lines noted; how many when the outermost call began */
    int32_t here_base;         /* of the lines, those that wait outside the module that runs   */
    const char *modules_stack; /* the stack of the outermost om_forward that runs, or NULL     */
    int32_t module_depth;
    omi_frame calls[OMI_CALL_DEPTH];
    omi_here_line here[OMI_HERE_DEPTH], breadcrumb;
    omi_file_name files[OMI_FILE_NAMES];
    const char *modules[OMI_MODULE_DEPTH];
    om_error pending;
    /* thread.c */
    const om_cancel *cancel; /* of this thread; in a worker: of the job's caller */
    int worker_cap;
    bool inside; /* running a chunk: nested jobs go inline               */
    bool held;   /* what is being written must be finished               */
    uint8_t cut; /* OMI_CUT_*: work was left out since omi_check_cancel  */
    /* alloc.c */
    const omi_purpose *purpose; /* what the memory asked for now is for, or NULL */
    omi_cache cache;
    /* tensor */
    uint64_t id_next, id_end;
    om_rng rngs[4];
    omi_scope_stack scopes;
    const struct om_seam *seam; /* the hooks of the trace that runs on this thread */
    /* autograd */
    bool grad_off;
    struct omi_accumulation *accumulation; /* accumulate.c; NULL: none is open */
    om_status (*record_watch)(const struct om_call *c);
    om_status (*backward_watch)(const struct om_record *r, om_tensor *const *dy,
                                om_tensor *const *dx);
    /* run in reverse order when the thread ends */
    void (*exit_fns[OMI_EXIT_FNS])(void);
    int n_exit_fns;
} om_state;

extern _Thread_local om_state *omi_state_of_thread __attribute__((visibility("hidden")));
extern om_state omi_state_none; /* stands in when there is no memory */

/* A state for a thread that is about to start; NULL without memory. */
om_state *omi_state_new(void);
void omi_state_drop(om_state *s); /* one that no thread has */
/* Makes s the state of this thread, which frees it when it ends. */
void omi_state_adopt(om_state *s);
om_state *omi_state_first(void) OM_COLD;
/* Drains, trims and frees the state of this thread; its next call makes a new one. */
void omi_state_end(void);
/* fn runs when this thread ends; once, however often it is asked for. False: not noted. */
bool omi_state_at_exit(void (*fn)(void));

OM_INLINE om_state *omi_state(void) {
    om_state *s = omi_state_of_thread;
    return OM_LIKELY(s != NULL) ? s : omi_state_first();
}
/* What is written to the stand-in is lost, and may be seen by another thread. */
OM_INLINE bool omi_state_lasts(const om_state *s) {
    return OM_LIKELY(s != &omi_state_none);
}

#endif
