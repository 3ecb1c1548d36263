/*
 * marks.c -- elements that may not be frozen: where they came from, until the trace ends (TD-9,
 * TD-23 to TD-25).
 *
 * A generator's numbers drawn while the trace records, the original example of an input, and a
 * tensor that was there before and is written while the trace records: what holds such elements, or
 * was computed from them, is marked. Marks are sets and are joined, so no order of operands loses
 * one. They are kept here by storage id, with the first site of each kind; a storage's `taint` only
 * says that there may be some. Views share the storage, so marks reach them; an example that is
 * itself a view marks the bytes that it covers, not what lies beside it.
 */
#include "trace/tracer.h"

/* The bytes of its storage that t's elements lie in; false when it has none. */
static bool marked_bytes(const om_tensor *t, int64_t *lo, int64_t *hi) {
    int64_t size = (int64_t)om_dtype_size((om_dtype)t->dtype), last = t->offset;
    if (omi_numel(t) == 0) return false;
    if (t->layout != OM_STRIDED) return *lo = 0, *hi = INT64_MAX, true;
    for (int i = 0; i < t->rank; i++)
        last += (t->shape[i] - 1) * t->strides[i];
    *lo = t->offset * size;
    *hi = (last + 1) * size;
    return true;
}

static om_tmark *mark_of(om_tracer *tr, om_storage *s) {
    om_tmark *m = omi_map_get(&tr->marks, s->id);
    atomic_store_explicit(&s->taint, tr->serial, memory_order_relaxed);
    if (m) return m;
    m = omi_arena_alloc(&tr->arena, sizeof *m);
    return m && omi_map_set(&tr->marks, s->id, m) ? m : NULL;
}

static void add_kind(om_tmark *m, om_tmark_kind k, const om_site *site, bool derived) {
    if (m->kinds >> k & 1) return;
    m->kinds |= 1u << k;
    m->site[k] = *site;
    if (derived) m->derived |= 1u << k;
}

void omi_tr_mark(om_tracer *tr, om_storage *s, om_tmark_kind kind, const om_site *site) {
    om_tmark *m = mark_of(tr, s);
    if (m) add_kind(m, kind, site, false); // else raised: the caller sees it pending
}

bool omi_tr_mark_example(om_tracer *tr, const om_tensor *example, const char *input) {
    om_texample *e = omi_arena_alloc(&tr->arena, sizeof *e);
    om_tmark *m    = e ? mark_of(tr, example->storage) : NULL;
    if (!m) return false;
    if (!marked_bytes(example, &e->lo, &e->hi)) return true;
    e->input    = input;
    e->next     = m->examples;
    m->examples = e;
    return true;
}

uint32_t omi_tr_marks_of(om_tracer *tr, const om_tensor *t, om_tmark_info *info) {
    static const om_tmark unknown = {.kinds   = 1u << OM_MARK_RANDOM,
                                     .derived = 1u << OM_MARK_RANDOM};
    *info                         = (om_tmark_info){0};
    uint32_t taint                = atomic_load_explicit(&t->storage->taint, memory_order_relaxed);
    if (OM_LIKELY(!taint)) return 0;
    const om_tmark *m = omi_map_get(&tr->marks, t->storage->id);
    if (!m) { // ours, but joined where there were no hooks: on another thread
        if (taint != tr->serial) return 0;
        m = &unknown;
    }
    int64_t lo, hi;
    uint32_t kinds = m->kinds;
    info->mark     = m;
    info->input    = m->input;
    for (const om_texample *e = m->examples; e && marked_bytes(t, &lo, &hi); e = e->next)
        if (lo < e->hi && e->lo < hi) {
            info->input  = e->input;
            info->direct = true;
            return kinds | 1u << OM_MARK_EXAMPLE;
        }
    return kinds;
}

void omi_tr_join(om_tracer *tr, const om_tensor *from, om_tensor *to) {
    om_tmark_info info;
    uint32_t kinds = omi_tr_marks_of(tr, from, &info);
    om_tmark *m    = kinds ? mark_of(tr, to->storage) : NULL;
    if (!m) return;
    for (int k = 0; k < OM_MARK_KINDS; k++)
        if (kinds >> k & 1) add_kind(m, (om_tmark_kind)k, &info.mark->site[k], true);
    if (!m->input) m->input = info.input;
}

/* ---- what is refused ----------------------------------------------------------------------------
 */

static const char *maker(const om_tmark *m, om_tmark_kind k, omi_site_buf *buf) {
    return m->site[k].function ? omi_site_text(&m->site[k], buf) : "a call of another thread";
}

om_status omi_tr_check_marks(om_tracer *tr, const om_tensor *t, const char *op) {
    om_tmark_info in;
    omi_site_buf at;
    if (t->trace_serial && t->trace_serial != tr->serial)
        return omi_fail_trace(
            OM_TRACE_INVALID_USAGE,
            "%s got %s, a value of an earlier trace, which would be frozen into the graph: compute "
            "it in this trace, or make it an input",
            op, OMI_T(t));
    uint32_t kinds = omi_tr_marks_of(tr, t, &in);
    if (OM_LIKELY(!kinds)) return OM_OK;
    if (kinds >> OM_MARK_EXAMPLE & 1 && in.direct)
        return omi_fail_trace(
            OM_TRACE_INVALID_USAGE,
            "input '%s' was used through the original tensor %s; use the one om_trace_input returned",
            in.input, OMI_T(t));
    if (kinds >> OM_MARK_EXAMPLE & 1)
        return omi_fail_trace(
            OM_TRACE_INVALID_USAGE,
            "%s got %s, which was computed from the example that input '%s' was declared with: it "
            "would be frozen into the graph; compute it from what om_trace_input returned",
            op, OMI_T(t), in.input);
    if (kinds >> OM_MARK_UPDATED & 1)
        return omi_fail_trace(
            OM_TRACE_IN_PLACE_MUTATION,
            "%s got %s, which %s while tracing by %s: the graph would hold one of its values; update "
            "it outside the trace, or make it an input",
            op, OMI_T(t),
            in.mark->derived >> OM_MARK_UPDATED & 1 ? "was computed from a tensor that was updated"
                                                    : "was updated",
            maker(in.mark, OM_MARK_UPDATED, &at));
    return omi_fail_trace(
        OM_TRACE_UNSUPPORTED_OPERATION,
        "%s got %s, which %s random numbers drawn while tracing by %s: they would be frozen into the "
        "graph; draw them before om_trace_begin or make them an input",
        op, OMI_T(t), in.mark->derived >> OM_MARK_RANDOM & 1 ? "was computed from" : "holds",
        maker(in.mark, OM_MARK_RANDOM, &at));
}

om_status omi_tr_check_read(om_tracer *tr, const om_tensor *t, const char *how) {
    om_tmark_info in;
    omi_site_buf at;
    uint32_t kinds = omi_tr_marks_of(tr, t, &in);
    if (kinds >> OM_MARK_EXAMPLE & 1)
        return omi_fail_trace(
            OM_TRACE_DATA_DEPENDENT,
            "%s %s would be read while tracing, and %s the example of input '%s': what is decided "
            "from it would be frozen into the graph; compute with what om_trace_input returned, or "
            "read it before om_trace_begin",
            how, OMI_T(t), in.direct ? "it is" : "it was computed from", in.input);
    if (kinds >> OM_MARK_RANDOM & 1)
        return omi_fail_trace(
            OM_TRACE_DATA_DEPENDENT,
            "%s %s would be read while tracing, and %s random numbers drawn by %s: what is decided "
            "from it would be frozen into the graph; draw before om_trace_begin",
            how, OMI_T(t),
            in.mark->derived >> OM_MARK_RANDOM & 1 ? "it was computed from" : "it holds",
            maker(in.mark, OM_MARK_RANDOM, &at));
    return OM_OK;
}
