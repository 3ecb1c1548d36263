/*
 * program.h (internal) -- a graph made ready for running: rows of opset.def looked up, constants
 * aligned, passes applied.
 *
 * The graph itself is shared and never changed; passes work on this copy of its wiring. Values keep
 * the numbers they have in the graph; what passes add comes behind (grow.c). A node owns its form
 * and its lists: both lie in the program's arena, whoever made it. Counted: sessions, plans and
 * prepared runs hold it.
 *
 * Needs: graphops.  Used by: runtime.
 */
#ifndef OM_PASSES_PROGRAM_H
#define OM_PASSES_PROGRAM_H

#include "base/str.h"
#include "graphops/node.h"
#include "onemodel/session.h"

typedef struct om_pnode {
    const om_node_def *def; /* NULL: removed                            */
    const void *form;       /* its attributes, as parse read them       */
    uint32_t index;         /* in the graph, for messages: of a node that a pass made, the node
                               that it was made for */
    uint32_t n_in, n_out;
    uint32_t *in, *out; /* value numbers or OM_NO_VALUE          */
    /* What fuse_epilogue found: the node that may become a step behind this one (0: none), and
     * which of its own inputs this one then is. */
    uint32_t next;
    uint8_t via;
    bool in_chain;
    struct om_nest *nest; /* its subgraphs as programs, NULL: none */
} om_pnode;

/* The subgraphs of a node. What child k captures are inputs of the node, behind those of the file:
 * in[first[k]] and on, in the order of the last inputs of the child. */
#define OM_NEST_MOST 2
typedef struct om_nest {
    struct om_nest *next; /* of the program, also when the node is gone */
    uint32_t n;
    struct om_program *child[OM_NEST_MOST];
    uint32_t first[OM_NEST_MOST];
} om_nest;

/* A program that has nodes whose sizes are met while running, or is a subgraph, is run in stages:
 * such a node, or a part, the plain nodes between two of them. A part is a program with values of
 * its own numbers; it borrows its constants and outlives nobody. */
typedef struct om_stage {
    struct om_program *part; /* NULL: the node */
    const om_pnode *node;
    uint32_t *in, *out;     /* of a part: numbers in the whole of its inputs and outputs */
    uint32_t *drop, n_drop; /* values of the whole that nobody reads after it            */
} om_stage;

/* A node that the running pass made. */
typedef struct om_added {
    om_pnode node;
    uint32_t before;
} om_added;

typedef struct om_program {
    _Atomic uint32_t refs;
    om_graph *graph;
    om_arith arith;
    bool creating; /* until om_session_new returns */
    int64_t opset;
    om_arena arena;
    om_pval *values; /* types, and what is constant; sizes of the rest come with a plan */
    uint32_t n_values, cap_values;
    om_pnode *nodes;
    uint32_t n_nodes, max_io; /* most inputs plus outputs of one node */
    om_added *added;          /* by the pass that runs                */
    uint32_t n_added, cap_added;
    uint32_t *inputs, *outputs;
    uint32_t n_inputs, n_formal, n_outputs; /* formal: those that the graph itself declares   */
    uint32_t *captured; /* of a subgraph, per input behind the formal ones: its number outside */
    int32_t *input_of;  /* per value of the graph: which input it is, or -1 */
    bool *sizes;    /* per value: its contents decide sizes, directly or through nodes that fold */
    bool *by_value; /* per input: its contents decide sizes, so they are part of the key */
    om_buffer **bufs; /* aligned copies and results of passes */
    uint32_t n_bufs, cap_bufs;
    size_t limit;        /* of the session: bytes of all it holds; 0: none     */
    size_t held, folded; /* bytes of bufs; of them made by folding             */
    size_t given;        /* bytes of the graph's own constants                 */
    bool inner;          /* a subgraph or a part: what it is fed was made here */
    int depth;           /* of subgraphs around it                             */
    size_t nested;       /* bytes of its children and parts                */
    size_t session;      /* bytes that all of the session's programs hold; 0: not ready */
    om_buffer **lent;    /* of the program around it                           */
    uint32_t n_lent;
    om_nest *nests;
    om_stage *stages;
    uint32_t n_stages, n_parts, n_met; /* parts, nodes met while running: of its children too */
    bool staged;                       /* run in stages, not by one plan                 */
    uint32_t first_met; /* index in the graph of the first node that is met while running */
} om_program;

/* All problems of g, one a line; the status of the gravest: OM_ERR_UNSUPPORTED before the rest. */
typedef struct om_problems {
    om_str text;
    om_str brief; /* for a message: type and name of each node */
    uint32_t n;
    om_status status;
} om_problems;
void omi_problems_free(om_problems *p);
void omi_problems_note(om_problems *p, const om_graph *g, uint32_t node, om_status s,
                       const char *what);

/* NULL and raised when memory is out; NULL with p->n > 0 when g cannot be run. */
om_program *omi_program_new(om_graph *g, om_arith arith, size_t limit, om_problems *p);
om_program *omi_program_retain(om_program *p);
void omi_program_release(om_program *p);

/* Subgraphs inside subgraphs that are run. */
#define OM_NEST_DEPTH 16
/* Bytes that the session holds for its program. */
size_t omi_program_held(const om_program *p);
/* The session is made: its total is known to all parts and children. */
void omi_program_ready(om_program *p);

/* ---- nest.c, stages.c (CD-37) -----------------------------------------------------------------
 */

/* Makes the programs of the subgraphs of n, which was parsed, appends to its inputs what they
 * capture, and sets the types of its outputs. Problems are noted; raises for memory. */
om_status omi_program_nest(om_program *p, om_pnode *n, om_problems *pr);
/* Cuts p into stages where it has to be. */
om_status omi_program_cut(om_program *p);
/* The program of subgraph g of outer, whose formal inputs have these types (0: as declared). */
om_program *omi_program_sub(const om_program *outer, om_graph *g, uint32_t n, const int32_t *types,
                            om_problems *pr);
/* Fills sizes and by_value. */
om_status omi_program_find_by_value(om_program *p);

/* Adds what inference finds where all inputs declare their sizes. Fails only for lack of memory and
 * when cancelled. */
om_status omi_program_check_sizes(const om_program *p, om_problems *pr);

/* A context for node n over a table of values (p->values or a plan's); slots holds max_io pointers.
 */
om_nctx omi_program_ctx(const om_program *p, const om_pnode *n, om_pval *values, om_pval **slots,
                        om_arena *arena, int workers);
/* The problem of c as the pending error, with the node's name. */
om_status omi_program_raise(const om_nctx *c);
/* The step of a node in the program's arithmetic. NULL: problem in c, or raised. */
om_run_step *omi_program_select(const om_program *p, om_nctx *c);

/* Runs a node now: inputs are known, sizes inferred; output k is written to dst[k] (NULL: absent).
 * ptr has one entry per value and is scratch. Raises. */
om_status omi_program_eval(const om_program *p, om_nctx *c, void **ptr, void *const *dst);

/* A further value, of rank -1 where its sizes come with a plan. name lives as long as p. Pointers
 * to values are stale after it. OM_NO_VALUE and raised. */
uint32_t omi_program_add_value(om_program *p, const char *name, int32_t dtype, int rank);
/* A node before node `before` of the list as the running pass sees it (n_nodes: behind the last);
 * several before one keep the order they were added in. n's lists and form_bytes of its form are
 * copied; a form that is in p's arena already has form_bytes 0. It joins the list when the pass is
 * over. The types of its outputs are the caller's matter. */
om_status omi_program_add_node(om_program *p, uint32_t before, const om_pnode *n,
                               size_t form_bytes);
/* Joins what a pass added; after each pass. */
om_status omi_program_settle(om_program *p);
/* A further constant value over a buffer (whose reference p takes). OM_NO_VALUE and raised. */
uint32_t omi_program_add_const(om_program *p, const char *name, int32_t dtype, int rank,
                               const int64_t *shape, om_buffer *b);
/* Makes value v constant: b (whose reference p takes) holds it from byte offset on. */
om_status omi_program_set_const(om_program *p, uint32_t v, int rank, const int64_t *shape,
                                om_buffer *b);

/* ---- passes: passes.def has the list and which arithmetic each may serve (CD-27) ----------------
 */

enum { OM_PASS_EXACT = 1, OM_PASS_FAST = 2, OM_PASS_PLANNED = 4 };
om_status omi_run_passes(om_program *p);
/* Those of OM_PASS_PLANNED, on a program that is planned: nodes are not added or taken any more. */
om_status omi_run_planned_passes(om_program *p);
/* Leaves the pass of this name out of programs made from now on, for tests only; NULL: none. */
void omi_pass_off_for_test(const char *name);
#define OM_PASS(name, where) om_status omi_pass_##name(om_program *p);
#include "passes/passes.def"
#undef OM_PASS

/* Whether folding may keep these bytes more: all of it holds at most OM_FOLD_BUDGET and twice the
 * graph's own constants, and half of the session's limit. */
#define OM_FOLD_BUDGET ((size_t)4 << 20)
bool omi_program_may_fold(const om_program *p, size_t bytes);
/* An output of this node decides sizes, so that its contents must be known before a run. */
bool omi_program_decides_sizes(const om_program *p, const om_nctx *c);
/* Releases constants that no node reads any more. */
om_status omi_program_drop_unused(om_program *p);

#endif
