/*
 * base.h -- status codes, the pending error, memory, threads, logging, version.
 *
 * A failing function stores one om_error in the calling thread's slot and fails: functions that
 * return a pointer return NULL, commands return the om_status. The first error stays, and while it
 * is pending operators and commands do nothing, so a chain of calls needs one check at its end.
 * om_catch() takes the error out; it is the only way to go on.
 *
 * Needs: nothing.  Included by every other public header.
 */
#ifndef ONEMODEL_BASE_H
#define ONEMODEL_BASE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#if defined(_WIN32)
#    define OM_API
#else
#    define OM_API __attribute__((visibility("default")))
#endif

#ifdef __cplusplus
extern "C" {
#endif

#define OM_VERSION_MAJOR 0
#define OM_VERSION_MINOR 1
#define OM_VERSION_PATCH 0

/* "0.1.0". Static. */
OM_API const char *om_version(void);

/* ---- status and errors ------------------------------------------------------------------ */

typedef enum om_status {
    OM_OK              = 0,
    OM_ERR_NOMEM       = 1,  /* an allocation failed                                          */
    OM_ERR_ARG         = 2,  /* an argument is out of its range, NULL, or a name is wrong      */
    OM_ERR_SHAPE       = 3,  /* shapes do not fit each other                                   */
    OM_ERR_DTYPE       = 4,  /* an element type is not taken; the message names the cast       */
    OM_ERR_LAYOUT      = 5,  /* a blocked tensor where a strided one is needed                 */
    OM_ERR_STATE       = 6,  /* right call, wrong moment                                       */
    OM_ERR_VALUE       = 7,  /* an element value is not allowed (index, integer divisor)       */
    OM_ERR_TRACE       = 8,  /* what a trace cannot record; see om_trace_kind                  */
    OM_ERR_UNSUPPORTED = 9,  /* well formed, but this build has no kernel or meaning for it    */
    OM_ERR_MALFORMED   = 10, /* a file or byte string breaks its format                        */
    OM_ERR_LIMIT       = 11, /* a limit on memory, size, depth or time was reached             */
    OM_ERR_IO          = 12, /* the operating system refused to open, read, write or rename    */
    OM_ERR_CANCELLED   = 13, /* the caller's cancel flag or callback stopped the command       */
    OM_ERR_INTERNAL    = 14  /* a bug in the library; please report                            */
} om_status;

/* The kind of an OM_ERR_TRACE; docs/trace.md section 3. */
typedef enum om_trace_kind {
    OM_TRACE_NONE                  = 0,
    OM_TRACE_UNSUPPORTED_OPERATION = 1,
    OM_TRACE_DATA_DEPENDENT        = 2,
    OM_TRACE_IN_PLACE_MUTATION     = 3,
    OM_TRACE_NO_GRAD               = 4,
    OM_TRACE_SYMBOLIC_SHAPE        = 5,
    OM_TRACE_INVALID_USAGE         = 6
} om_trace_kind;

/* One failure. Plain data: nothing in it needs freeing, and raising it allocates nothing. */
typedef struct om_error {
    om_status status;
    om_trace_kind trace_kind; /* OM_TRACE_NONE unless status is OM_ERR_TRACE                 */
    char where[128];          /* running module and call: "enc.3.attn: om_matmul"            */
    char message[400];        /* one line, with the operands and their shapes                */
    char site[160];           /* file:line where known, else "prog+0x1a2f", else ""          */
} om_error;

/* Moves the pending error into *out (may be NULL) and clears the slot. Returns its status, OM_OK
 * when none was pending (then *out is zeroed). */
OM_API om_status om_catch(om_error *out);
/* The status of the pending error of this thread, OM_OK when there is none. Clears nothing. */
OM_API om_status om_pending(void);
/* Raises an error of the caller's own, as the library does: for callbacks (custom operators,
 * forward functions, visitors, fillers), which then return failure, and for bindings. where is the
 * call to name, NULL: the one that runs; a running module is named in front. message is one line,
 * cut at 399 bytes. An error that is pending already stays. An OM_ERR_TRACE is an InvalidUsage.
 * Returns the pending status; OM_ERR_ARG when status is none of the errors above. */
OM_API om_status om_raise(om_status status, const char *where, const char *message);
/* Static name of a status ("OM_ERR_SHAPE") or trace kind ("DataDependent"). */
OM_API const char *om_status_name(om_status s);
OM_API const char *om_trace_kind_name(om_trace_kind k);
/* When true, the first failure of any thread prints itself to stderr and exits with status 1. For
 * scripts and examples; off by default. */
OM_API void om_exit_on_error(bool on);
/* Called at the raising point of every error, on the raising thread. NULL removes it. */
typedef void (*om_error_fn)(void *ctx, const om_error *e);
OM_API void om_on_error(om_error_fn fn, void *ctx);
/* A breadcrumb: errors and refused traces of the calls that follow on this thread name this source
 * line, until the next breadcrumb. om_here(NULL, 0) ends it. file need not outlive the call: the
 * library keeps one copy of each name for the life of the process. */
OM_API void om_here(const char *file, int line);
/* The same for the next call of a library function only, before a breadcrumb: what the macros of
 * <onemodel/callsite.h> write in front of every function that can fail. */
OM_API void om_here_call(const char *file, int line);
#define OM_HERE om_here(__FILE__, __LINE__)

/* ---- memory ----------------------------------------------------------------------------- */

/* The one allocation function. size == 0 frees p (old bytes, may be NULL) and returns NULL; p ==
 * NULL allocates; otherwise p is resized, keeping min(old, size) bytes. align is a power of two of
 * at least 16. NULL means failure and leaves p as it was. Must be callable from any thread. */
typedef void *(*om_alloc_fn)(void *ctx, void *p, size_t old, size_t size, size_t align);
/* Replaces the allocator (NULL: the default one). Call it while nothing of the library is alive;
 * fails with OM_ERR_STATE otherwise. */
OM_API om_status om_set_allocator(om_alloc_fn fn, void *ctx);

typedef struct om_memory_stats {
    int64_t bytes;  /* allocated now                  */
    int64_t peak;   /* most ever since the last reset */
    int64_t blocks; /* allocations alive              */
    int64_t limit;  /* 0: none                        */
    int64_t kept;   /* freed and kept for the next use, beside bytes */
} om_memory_stats;
OM_API void om_memory(om_memory_stats *out);
OM_API void om_memory_reset_peak(void);
/* Caps the bytes the library may hold, kept ones included (they go first); an allocation beyond
 * fails with OM_ERR_NOMEM. 0: no cap. */
OM_API void om_set_memory_limit(int64_t bytes);
/* Freed blocks above 4 KiB are kept for the next one of the same size, from any thread, so that a
 * training step or a run touches no fresh pages: up to this many bytes, by default 512 MiB, the one
 * that waited longest going first. 0: none is kept. Below 0: the default. Nothing is kept under a
 * caller's allocator, which sees every call. */
OM_API void om_set_memory_kept(int64_t bytes);
/* Gives back what is kept for speed: the large blocks of all threads, and what this thread caches
 * (freed tensor and storage headers, small buffers). */
OM_API void om_trim(void);

/* Finds what is used after it was freed; for looking, not for running: every block is overwritten.
 * With OM_DEBUG_POISON freed blocks are filled with 0xff (NaN, -1) and not used again until 64 MiB
 * were freed after them; a tensor or module that is used meanwhile is OM_ERR_STATE and named, and
 * bytes that were written are logged (om_set_log). What waits counts as kept. 0 ends it and frees
 * what waits. Begin before the objects in question are made. Recipes for
 * valgrind and sanitizers: docs/ownership.md. */
enum { OM_DEBUG_POISON = 1 };
OM_API om_status om_debug(uint32_t what);

/* ---- threads and the machine ------------------------------------------------------------ */

/* Number of threads that share one operator, the caller included. 0: one per processor. No run may
 * be active. Results never depend on it. */
OM_API om_status om_set_threads(int n);
OM_API int om_threads(void);
/* Replaces the library's thread pool: fn must call body(arg, i) once for each i in [0, n_chunks),
 * in any order and on any threads, and return when all are done. NULL restores the pool. */
typedef void (*om_parallel_for_fn)(void *ctx, int64_t n_chunks, void (*body)(void *arg, int64_t i),
                                   void *arg);
OM_API void om_set_parallel_for(om_parallel_for_fn fn, void *ctx);

/* Ends the library's threads (they are joined) and frees what it keeps for the calling thread,
 * whose scopes are drained. Nothing else of the library may be running. For hosts that unload it or
 * count what is left at exit; what is called afterwards starts both again. */
OM_API void om_shutdown(void);

/* In its host the library behaves thus. Its threads take no signal (but those that an instruction
 * raises), and are as many as the processors that the process may use. fork is allowed from any
 * thread, except inside a callback of the library: the child may use everything, its sessions too,
 * and starts threads of its own. Leaving a callback by longjmp or a C++ exception is forbidden:
 * what the interrupted call held stays held. The thread's next call still finds a sound state.
 * Everything works in a thread of 64 KiB stack. The library is never unloaded: dlclose is harmless.
 * A plug-in that contains the static library is linked with -z nodelete itself. */

typedef enum om_isa { OM_ISA_SCALAR = 0, OM_ISA_AVX2 = 1, OM_ISA_AVX512 = 2 } om_isa;
/* Caps the instruction set that kernels use. Before the first kernel runs, else OM_ERR_STATE; a cap
 * above what the machine has is OM_ERR_UNSUPPORTED. Results never depend on it. */
OM_API om_status om_set_isa(om_isa isa);
OM_API om_isa om_get_isa(void);
OM_API const char *om_isa_name(om_isa isa);
/* The processor features that kernels ask for, as "sse3 fma avx2 -avx512f": a minus where this
 * machine (or its system, for the os: ones) lacks it. Empty on processors without such kernels.
 * Writes at most n bytes with the NUL and returns the length of the whole text, as snprintf. */
OM_API size_t om_cpu_features(char *out, size_t n);
/* Reads ONEMODEL_THREADS, ONEMODEL_ISA and ONEMODEL_MEMORY_LIMIT. The library itself reads no
 * environment unless this is called. */
OM_API om_status om_config_from_env(void);

/* A flag that another thread or a signal handler may raise, by om_cancel_raise. Operators, runs,
 * loads and training steps look at it, long ones several times, and stop with OM_ERR_CANCELLED
 * within about 50 ms. What writes into tensors in place (om_add_, om_step, gradients of leaves)
 * looks before its first write only and then ends whole. */
typedef struct om_cancel {
    volatile int32_t raised; /* atomic: change it by the functions below once it is set */
} om_cancel;
/* From any thread, and from signal handlers. */
OM_API void om_cancel_raise(om_cancel *c);
OM_API void om_cancel_lower(om_cancel *c);
OM_API bool om_cancel_raised(const om_cancel *c);
/* Makes c (NULL: none) the flag that operators and commands of this thread look at. The flag must
 * outlive its use. */
OM_API void om_set_cancel(om_cancel *c);

/* ---- hashing ---------------------------------------------------------------------------- */

/* SHA-256 of bytes as 64 lower-case digits and a NUL. */
OM_API void om_sha256_of(const void *data, size_t bytes, char hex[65]);

/* ---- logging ---------------------------------------------------------------------------- */

typedef enum om_log_level {
    OM_LOG_ERROR = 0,
    OM_LOG_WARN  = 1,
    OM_LOG_INFO  = 2,
    OM_LOG_DEBUG = 3
} om_log_level;
typedef void (*om_log_fn)(void *ctx, om_log_level level, const char *message);
/* The library never prints; it calls fn for messages up to level. NULL: no log. */
OM_API void om_set_log(om_log_fn fn, void *ctx, om_log_level level);

/* Receives text from functions that write some: n bytes, no NUL. A non-zero return stops them with
 * OM_ERR_CANCELLED. */
typedef int (*om_write_fn)(void *ctx, const char *text, size_t n);

/* ---- element types, used by tensors, graphs and sessions -------------------------------- */

/* The numbers are ONNX's TensorProto.DataType. */
typedef enum om_dtype {
    OM_DTYPE_NONE = 0,
    OM_F32        = 1,
    OM_U8         = 2,
    OM_I32        = 6,
    OM_I64        = 7,
    OM_BOOL       = 9,
    OM_F64        = 11
} om_dtype;
/* Bytes of one element; 0 for a type this library does not compute with. */
OM_API size_t om_dtype_size(om_dtype t);
OM_API const char *om_dtype_name(om_dtype t); /* "float32" */

#define OM_MAX_RANK 8

#ifndef __cplusplus
/* OM_DIMS(2, 3) expands to the two arguments (rank, dims) that functions with a size list take. */
#    define OM_DIMS(...)                                                                           \
        (int)(sizeof((int64_t[]){__VA_ARGS__}) / sizeof(int64_t)), (const int64_t[]) {             \
            __VA_ARGS__                                                                            \
        }
/* OM_OPTS(conv2d, .stride = {2, 2}) is a pointer to an option struct with the rest zero. */
#    define OM_OPTS(op, ...) (&(om_##op##_opts){.struct_size = sizeof(om_##op##_opts), __VA_ARGS__})
#endif

#ifdef __cplusplus
}
#endif
#endif
