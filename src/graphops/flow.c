/*
 * flow.c -- nodes whose output sizes are met only while they run: If, Loop, Scan, NonZero.
 *
 * They have no step. A program is cut at them (passes/stages.c) and the runtime does what the row's
 * arg says (runtime/flow.c); their subgraphs are programs of their own (passes/nest.c). Here is
 * what their attributes say, and the refusal of those who ask for sizes all the same.
 */
#include "graphops/forms.h"
#include "graphops/rows.h"

om_status omi_infer_met(om_nctx *c) {
    return omi_problem(c, OM_ERR_UNSUPPORTED, "its output sizes are met while it runs");
}

om_run_step *omi_sel_met(om_nctx *c) {
    omi_infer_met(c);
    return NULL;
}

/* A list of n integers, each from lo to hi; NULL when it is not given. */
static om_status scan_list(om_nctx *c, const char *name, size_t n, int64_t lo, int64_t hi,
                           const int64_t **out, size_t *n_out) {
    const om_attr *a = omi_given(c, name);
    if (!a) return OM_OK;
    if (n && a->n != n)
        return omi_problem(c, OM_ERR_MALFORMED, "attribute '%s' has %zu entries; it needs %zu",
                           name, a->n, n);
    for (size_t i = 0; i < a->n; i++)
        if (a->ints[i] < lo || a->ints[i] > hi)
            return omi_problem(c, OM_ERR_MALFORMED,
                               "attribute '%s' has %lld; %lld to %lld are possible", name,
                               (long long)a->ints[i], (long long)lo, (long long)hi);
    *out   = a->ints;
    *n_out = a->n;
    return OM_OK;
}

om_status omi_parse_scan(om_nctx *c) {
    om_scan_form *f = omi_form(c, sizeof *f);
    if (!f) return om_pending();
    int64_t n = omi_int(c, "num_scan_inputs");
    size_t any;
    if (n < 1 || n > (int64_t)c->n_in)
        return omi_problem(c, OM_ERR_MALFORMED, "it has %lld scan inputs and %u inputs",
                           (long long)n, c->n_in);
    f->n_scan  = (uint32_t)n;
    f->n_state = c->n_in - f->n_scan;
    OM_TRY(scan_list(c, "scan_input_axes", f->n_scan, -OM_MAX_RANK, OM_MAX_RANK - 1, &f->in_axes,
                     &any));
    OM_TRY(scan_list(c, "scan_input_directions", f->n_scan, 0, 1, &f->in_back, &any));
    OM_TRY(scan_list(c, "scan_output_axes", 0, -OM_MAX_RANK, OM_MAX_RANK - 1, &f->out_axes,
                     &f->n_out_axes));
    return scan_list(c, "scan_output_directions", 0, 0, 1, &f->out_back, &f->n_out_back);
}
