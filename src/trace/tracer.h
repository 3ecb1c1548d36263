/*
 * tracer.h (internal) -- what a recording holds until finish: values, nodes, constants, notes.
 *
 * The record hook lowers each call at once (so errors are at the call) into the provisional nodes
 * below, which refer to each other by pointer and carry no name and no number. Finish walks them
 * from the outputs and only then numbers anything (CD-17, CD-18). Everything here but constants'
 * storages, buffers and the growing lists lives in the tracer's arena.
 *
 * Needs: autograd (record, seam), graph.  Used by: trace.
 */
#ifndef OM_TRACE_TRACER_H
#define OM_TRACE_TRACER_H

#include "autograd/record.h"
#include "base/arena.h"
#include "base/map.h"
#include "base/str.h"
#include "base/vec.h"
#include "graph/graph.h"
#include "graph/traced.h"
#include "onemodel/trace.h"
#include "sym/sym.h"

typedef struct om_tvalue om_tvalue;
typedef struct om_tnode om_tnode;
typedef struct om_tconst om_tconst;

typedef enum om_tv_kind {
    OM_TV_INPUT,
    OM_TV_NODE,
    OM_TV_CONST,   /* a captured tensor                                               */
    OM_TV_LITERAL, /* a scalar or a list the lowering needs, shared by type, shape, bytes */
    OM_TV_SHAPE    /* an untraced operand of which only the shape is read             */
} om_tv_kind;

/* A value that has a size as an axis. */
typedef struct om_holder {
    om_tvalue *v;
    int axis;
} om_holder;
typedef OM_VEC(om_holder) om_holders;

struct om_tvalue {
    uint8_t kind, dtype, rank;
    uint8_t is_used; /* set at finish: the graph refers to it */
    om_extent *e;    /* rank entries */
    om_tnode *node;  /* NODE */
    uint32_t out_index;
    om_tconst *c;     /* CONST */
    const char *name; /* INPUT; at finish: the name asked for as an output */
    const void *data; /* LITERAL */
    size_t bytes;
    uint32_t gvalue; /* index in the graph + 1, 0: not there yet */
};

typedef struct om_tattr {
    struct om_tattr *next;
    const char *name;
    om_attr_type type; /* INT FLOAT STRING INTS TENSOR */
    int64_t i;
    float f;
    const char *s;
    size_t n; /* INTS */
    int64_t *ints;
    uint8_t dtype; /* TENSOR: one element, dims [1] */
    uint8_t elem[8];
} om_tattr;

/* The computed second input of a Reshape or Expand, kept as extents until finish. */
typedef struct om_operand {
    int rank;
    om_extent *e;
    om_tvalue *hint; /* expand_as: where the sizes came from, may hold the atoms; else NULL */
    om_holder (*holders)[OM_MAX_ATOMS]; /* set at finish: for each axis and atom, whom to ask */
} om_operand;

struct om_tnode {
    const char *type;
    const char *op; /* "om_relu" */
    om_site site;
    uint32_t n_in, n_out;
    om_tvalue **in, **out; /* in[i] NULL: absent */
    om_tattr *attrs, *last_attr;
    om_operand *operand; /* becomes the last input */
    const char *name;    /* set at finish */
    uint32_t order;      /* position in the walk from the outputs, 0: not reached */
    uint32_t stamp;      /* of the last search that came by */
    uint8_t state;       /* of the emitting walk: 0 new, 1 open, 2 done */
};

struct om_tconst {
    om_tconst *next; /* same hash */
    om_storage *storage;
    uint64_t version; /* at first use */
    int64_t offset, shape[OM_MAX_RANK], strides[OM_MAX_RANK];
    uint8_t dtype, rank;
    om_buffer *buf;
    size_t bytes;
    om_site first;
    const char *first_op;
    const char *tensor_name; /* om_tensor.name, or NULL */
    const char *name;        /* in the graph, set at finish */
    om_tvalue v;
};

/* A named weight: state-dict path and the view it names. */
typedef struct om_tparam {
    struct om_tparam *next; /* of the same storage, as declared */
    const char *name;
    uint64_t storage;
    int64_t offset, shape[OM_MAX_RANK], strides[OM_MAX_RANK];
    uint8_t dtype, rank;
    uint32_t views; /* at finish: .view_<n> given so far */
    bool is_used;   /* at finish                         */
} om_tparam;

typedef struct om_toutput {
    const char *name;
    om_tvalue *v;
} om_toutput;

/* marks.c: why the elements of a storage may not be frozen. */
typedef enum om_tmark_kind {
    OM_MARK_RANDOM,  /* drawn while recording (TD-9)                              */
    OM_MARK_EXAMPLE, /* an input's original example (TD-23)                       */
    OM_MARK_UPDATED, /* there before the trace, written while it records (TD-25)  */
    OM_MARK_KINDS
} om_tmark_kind;
typedef struct om_texample {
    struct om_texample *next;
    int64_t lo, hi; /* bytes of the storage */
    const char *input;
} om_texample;
typedef struct om_tmark {
    uint32_t kinds, derived; /* a bit per kind; derived: computed from what has it */
    om_site site[OM_MARK_KINDS];
    const char *input;     /* derived EXAMPLE: of which input      */
    om_texample *examples; /* parts of this very storage           */
} om_tmark;
/* What holds of one tensor. */
typedef struct om_tmark_info {
    const om_tmark *mark;
    const char *input;
    bool direct; /* its elements are the example's */
} om_tmark_info;

/* Select along a symbolic axis, for the loop detector (TD-17). */
typedef struct om_tselect {
    om_tvalue *v, *out;
    int axis;
    int64_t index; /* as written */
} om_tselect;

struct om_tracer {
    om_seam seam;
    uint32_t serial;
    uint64_t first_id; /* storages below it were there before the trace */
    uint64_t thread;
    bool grad_off; /* the thread's state at begin */
    int module_depth;
    bool provenance;
    const char *name;
    om_arena arena;
    om_traced *kept; /* what the graph keeps; atoms live there   */
    om_atoms *atoms; /* kept->atoms                              */
    om_map values;   /* tensor id -> om_tvalue */
    om_map marks;    /* storage id -> om_tmark */
    om_map consts;   /* hash -> chain of om_tconst */
    om_strmap literals;
    om_strmap names; /* of inputs, outputs, parameters */
    om_strmap symbol_names;
    om_map symbol_sizes; /* example size -> om_atom       */
    om_map param_map;    /* storage id -> first om_tparam */
    OM_VEC(om_tconst *) const_list;
    OM_VEC(om_tvalue *) inputs;
    OM_VEC(om_atom *) symbols;
    OM_VEC(om_toutput) outputs;
    OM_VEC(om_tparam *) params;
    OM_VEC(om_tnode *) nodes; /* call order: for counting and the report only */
    OM_VEC(om_tselect) selects;
    om_strmap note_texts; /* each once */
    om_holders *holders;  /* at finish: of each atom, inputs first, then as walked */
    uint32_t n_aliases;
    bool by_shape;     /* an Expand gave a value sizes that do not come along its data */
    char refused[320]; /* the first refused read, write or no-grad: no finish (TD-27) */
};

/* tracer.c: tr is the active tracer of this thread. */
om_status omi_tr_check_active(const om_tracer *tr);

/* declare.c: text that may stand in a file (TD-28). */
#define OM_TRACE_NAME 65536 /* names are shorter */
bool omi_tr_clean_name(const char *s, size_t n);
om_status omi_tr_check_name(const char *name, const char *what);

/* values.c */
om_tvalue *omi_tr_value_of(om_tracer *tr, const om_tensor *t); /* NULL and raised when unknown */
bool omi_tr_bind(om_tracer *tr, om_tensor *t, om_tvalue *v);   /* t becomes traced as v */
om_tvalue *omi_tr_new_value(om_tracer *tr, om_tv_kind kind, om_dtype dtype, int rank);
om_tvalue *omi_tr_literal(om_tracer *tr, om_dtype dtype, int rank, const int64_t *dims,
                          const void *data, size_t bytes);
om_tnode *omi_tr_node(om_tracer *tr, const char *type, const char *op, const om_site *site,
                      uint32_t n_in, om_tvalue *const *in, uint32_t n_out);

/* marks.c */
void omi_tr_mark(om_tracer *tr, om_storage *s, om_tmark_kind kind, const om_site *site);
bool omi_tr_mark_example(om_tracer *tr, const om_tensor *example, const char *input);
/* Bits by om_tmark_kind. */
uint32_t omi_tr_marks_of(om_tracer *tr, const om_tensor *t, om_tmark_info *info);
void omi_tr_join(om_tracer *tr, const om_tensor *from, om_tensor *to);
/* Raise when t may not become a constant used by op; when its elements may not be read by the host.
 */
om_status omi_tr_check_marks(om_tracer *tr, const om_tensor *t, const char *op);
om_status omi_tr_check_read(om_tracer *tr, const om_tensor *t, const char *how);

/* consts.c: the constant holding t's elements now, or the given view of its storage. */
om_tvalue *omi_tr_const(om_tracer *tr, om_tensor *t, const char *op);
om_tvalue *omi_tr_const_view(om_tracer *tr, om_tensor *t, int rank, const int64_t *shape,
                             const int64_t *strides, const char *op);
/* At finish: no captured storage may have changed. */
om_status omi_tr_check_consts(om_tracer *tr);
void omi_tr_free_consts(om_tracer *tr);
om_tvalue *omi_tr_shape_only(om_tracer *tr, const om_tensor *t);

/* report.c */
void omi_tr_note(om_tracer *tr, om_note_kind kind, const om_site *site, const char *fmt, ...)
    OM_PRINTF(4, 5);
/* Hands what is kept of the trace to g. */
bool omi_tr_keep(om_tracer *tr, om_graph *g, size_t n, om_extent *const *extents);
/* "om_add in enc.3 (net.c:41)" */
typedef struct omi_site_buf {
    char s[160];
} omi_site_buf;
const char *omi_site_text(const om_site *s, omi_site_buf *buf);
#define OMI_SITE(s) omi_site_text((s), &(omi_site_buf){{0}})

/* finish.c */
om_graph *omi_tr_finish(om_tracer *tr);

/* names.c: the only place where text that reaches a file is made up, in the order of the walk. */
typedef struct om_dim_name {
    om_extent e;
    int32_t sym;
    uint32_t next; /* of the same hash, + 1 */
} om_dim_name;
typedef struct om_namer {
    om_tracer *tr;
    om_graph *g;
    om_strmap counters; /* "enc.3/MatMul" -> count */
    om_strmap symbols;
    uint32_t n_consts;
    OM_VEC(om_dim_name) dims;
    om_map by_extent; /* hash -> index in dims + 1 of the latest */
} om_namer;
void omi_namer_free(om_namer *n);
/* All are NULL and raised when memory is out; text lives in the tracer's arena. */
const char *omi_name_node(om_namer *n, const char *module, const char *type); /* "enc.3/MatMul_1" */
const char *omi_name_out(om_namer *n, const char *node, uint32_t i, uint32_t n_out);
/* The parameter's name, <name>.view_<n>, or a generated one. */
const char *omi_name_const(om_namer *n, om_tconst *c);
const char *omi_name_literal(om_namer *n);
/* An axis of an input or output: fixed, a declared symbol, or a derived name. */
bool omi_name_dim(om_namer *n, const om_extent *e, om_gdim *out);
bool omi_tr_same_view(const om_tparam *p, int64_t offset, int dtype, int rank, const int64_t *shape,
                      const int64_t *strides);
/* The parameter whose storage c is; *exact: it is that very view. NULL: unnamed. */
om_tparam *omi_tr_param_of(om_tracer *tr, const om_tconst *c, bool *exact);

#endif
