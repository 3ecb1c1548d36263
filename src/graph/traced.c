/*
 * traced.c -- the life of a kept trace.
 */
#include "graph/traced.h"

#include <stdatomic.h>

om_traced *omi_traced_new(void) {
    om_traced *t = omi_calloc(sizeof *t);
    if (t) t->atoms.arena = &t->arena;
    return t;
}

void omi_traced_free(om_traced *t) {
    if (!t) return;
    omi_atoms_free(&t->atoms);
    OMI_VEC_FREE(&t->notes);
    omi_free(atomic_load(&t->report), t->report_bytes);
    omi_arena_clear(&t->arena);
    omi_free(t, sizeof *t);
}
