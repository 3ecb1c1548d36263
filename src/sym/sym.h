/*
 * sym.h -- sizes that know what they stand for: coefficient x product of atoms (TR-4).
 *
 * An atom is a declared symbol or an extent that an operation derived (a window's count, a sum).
 * Atoms of derived extents are interned by definition, so two branches of one geometry are equal
 * (TD-4). Definitions serve equality and explanation only: in the graph a derived atom is always
 * read by Shape from a value that holds it, so a wrong expression cannot be written, only a
 * conservative atom. They can be evaluated (omi_ext_eval), for tests, reports and checks of a run.
 *
 * The order of atoms inside an extent is the order data flow gave them (row-major through a
 * Reshape), never the order in which atoms were made: that one depends on the compiler (CD-18).
 *
 * Needs: base.  Used by: graph (keeps them), trace.
 */
#ifndef OM_SYM_SYM_H
#define OM_SYM_SYM_H

#include "base/arena.h"
#include "base/map.h"
#include "base/vec.h"

#define OM_MAX_ATOMS 6

typedef struct om_atom om_atom;

typedef struct om_extent {
    int64_t size; /* in the example run; always coef * product of the atoms' examples */
    int64_t coef;
    uint8_t n; /* 0: static */
    om_atom *a[OM_MAX_ATOMS];
} om_extent;

typedef enum om_atom_kind {
    OM_ATOM_SYMBOL, /* declared                                                                  */
    OM_ATOM_ADD,    /* src[0] + p[0]                                                             */
    OM_ATOM_WINDOW, /* floor((src[0] + p[0]) / p[1]) + 1                                         */
    OM_ATOM_CEIL,   /* ceil((src[0] + p[0]) / p[1]) + 1, last window inside src[0] + p[2]        */
    OM_ATOM_SUM,    /* sum of src + p[0]                                                         */
    OM_ATOM_EQUAL   /* src[0] and src[1], different but equal in the example                     */
} om_atom_kind;

struct om_atom {
    om_atom_kind kind;
    int64_t example;
    const char *name;         /* SYMBOL: as declared            */
    int64_t lo, hi, multiple; /* SYMBOL: allowed sizes          */
    int64_t p[3];
    uint32_t n_src;
    om_extent *src;
    const char *module; /* where it was derived, for the report */
    const char *op;
    uint32_t index;  /* in the list: sources come before what is made of them    */
    uint32_t n_made; /* calls that derived it: more than 1 when branches share it */
    uint32_t rank;   /* position in a canonical order, 0 none: given by the user  */
    om_atom *next_hash, *next_size;
};

typedef struct om_atoms {
    om_arena *arena;
    OM_VEC(om_atom *) list; /* call order: for lookup only */
    om_map by_hash;         /* of the definition -> chain  */
    om_map by_size;         /* of the example -> chain, the latest first */
    om_strmap words;        /* module paths, once each: they outlive the module */
} om_atoms;

void omi_atoms_free(om_atoms *t);

om_extent omi_ext_static(int64_t size);
/* A declared symbol; the caller has checked size and name. NULL and raised when memory is out. */
om_atom *omi_atom_symbol(om_atoms *t, const char *name, int64_t example);
om_extent omi_ext_atom(om_atom *a);

OM_INLINE bool omi_ext_is_static(const om_extent *e) {
    return e->n == 0;
}
/* The same product, in whatever order. */
bool omi_ext_equal(const om_extent *a, const om_extent *b);
bool omi_ext_has(const om_extent *e, const om_atom *a);
/* Equal extents have equal hashes, in whatever order their atoms are. */
uint64_t omi_ext_hash(const om_extent *e);
/* The atoms whose example is this size, by next_size. */
om_atom *omi_atoms_of_size(const om_atoms *t, int64_t size);
/* Sorts the atoms of an extent canonically, by rank. */
void omi_ext_sort(om_extent *e);

/* The size of e where the symbols have other sizes: values[i] is the size of atom i for every
 * SYMBOL, the rest is filled in by omi_atoms_eval. False, nothing raised: something overflows, is
 * negative, or two sizes that the example made equal (EQUAL) differ. */
bool omi_atoms_eval(const om_atoms *t, int64_t *values);
bool omi_ext_eval(const om_extent *e, const int64_t *values, int64_t *out);

/* The rest are false when raised: SymbolicShape past six atoms or on overflow, or no memory. */
bool omi_ext_mul(const om_extent *a, const om_extent *b, om_extent *out);
bool omi_ext_add(om_atoms *t, const om_extent *e, int64_t c, om_extent *out);
/* Extent of a convolution or pool along one axis; ceil: pooling's ceil_mode. size is what the
 * kernel produced. */
bool omi_ext_window(om_atoms *t, const om_extent *e, int64_t kernel, int64_t stride, int64_t begin,
                    int64_t end, int64_t dilation, bool ceil, int64_t size, om_extent *out);
bool omi_ext_sum(om_atoms *t, int n, const om_extent *const *parts, om_extent *out);
/* An extent known only to equal both at the example. */
bool omi_ext_either(om_atoms *t, const om_extent *a, const om_extent *b, om_extent *out);

/* "4*B", "floor((H-1)/2)+1" into a buffer, for messages and the report. Returns buf. */
typedef struct omi_ext_buf {
    char s[96];
} omi_ext_buf;
const char *omi_ext_text(const om_extent *e, omi_ext_buf *buf);
#define OMI_EXT(e) omi_ext_text((e), &(omi_ext_buf){{0}})

#endif
