/*
 * passes.c -- runs the passes of passes.def in order. Each has a file of its own, with its rule
 * about bits at the head; each works on the program's wiring only. A removed node has def == NULL.
 */
#include <string.h>

#include "passes/program.h"

static const char *pass_off;

void omi_pass_off_for_test(const char *name) {
    pass_off = name;
}

static om_status run_those(om_program *p, int planned) {
    static const struct {
        const char *name;
        om_status (*fn)(om_program *p);
        int where;
    } passes[] = {
#define OM_PASS(name, where) {#name, omi_pass_##name, (where)},
#include "passes/passes.def"
#undef OM_PASS
    };
    int here = p->arith == OM_FAST ? OM_PASS_FAST : OM_PASS_EXACT;
    for (size_t i = 0; i < OM_COUNT(passes); i++)
        if (passes[i].where & here && (passes[i].where & OM_PASS_PLANNED) == planned &&
            !(pass_off && strcmp(pass_off, passes[i].name) == 0)) {
            OM_TRY(passes[i].fn(p));
            OM_TRY(omi_program_settle(p));
        }
    return OM_OK;
}

om_status omi_run_passes(om_program *p) {
    OM_TRY(run_those(p, 0));
    return omi_program_drop_unused(p);
}

om_status omi_run_planned_passes(om_program *p) {
    return run_those(p, OM_PASS_PLANNED);
}
