/*
 * checkpoint.c -- saving and resuming a training run to the bit.
 *
 * Sections beside the weights (nn/saved.h):
 *
 *   RNGS  u64 seed, stream, block of the thread's generators 0 to 3
 *   TRAI  i64 step of the caller; u32 loader there (0 or 1); if so i64 items, batch, u32 shuffle,
 * drop_last, running, i64 epoch, position, u64 seed, stream, block as the running epoch found them
 *   OPTM  u32 kind, u32 parameters, u32 arrays each, u32 groups; i64 steps; f64 momentum,
 * dampening, betas (2), eps; u32 nesterov; u32 schedule, i64 every, total, warmup, f64 gamma,
 * floor; per group f64 lr, weight_decay; per parameter text path, u32 group, i64 steps, f64 powers
 * (2), u32 arrays there (0 or 1), u64 offset in DATA of each
 *
 * Loading reads and checks everything into new objects first; only then, and without any step that
 * can fail, are they put in place.
 */
#include <string.h>

#include "base/opts.h"
#include "nn/saved.h"
#include "optim/loader.h"
#include "optim/optim.h"

/* ---- writing -----------------------------------------------------------------------------------
 */

static void out_rng(om_str *s, const om_rng *r) {
    omi_out_u64(s, r->seed);
    omi_out_u64(s, r->stream);
    omi_out_u64(s, r->block);
}

static void out_trai(om_str *s, const om_checkpoint *c) {
    const om_loader *l = c->loader;
    omi_out_u64(s, (uint64_t)c->step);
    omi_out_u32(s, l != NULL);
    if (!l) return;
    omi_out_u64(s, (uint64_t)l->items);
    omi_out_u64(s, (uint64_t)l->batch);
    omi_out_u32(s, l->shuffle);
    omi_out_u32(s, l->drop_last);
    omi_out_u32(s, l->running);
    omi_out_u64(s, (uint64_t)l->epoch);
    omi_out_u64(s, (uint64_t)l->position);
    out_rng(s, &l->start);
}

static om_status out_optm(om_str *s, om_saved_data *d, const om_optim *o) {
    int n_state = omi_optim_n_state(o);
    omi_out_u32(s, o->kind);
    omi_out_u32(s, (uint32_t)o->params.n);
    omi_out_u32(s, (uint32_t)n_state);
    omi_out_u32(s, (uint32_t)o->groups.n);
    omi_out_u64(s, (uint64_t)o->steps);
    omi_out_f64(s, o->momentum);
    omi_out_f64(s, o->dampening);
    omi_out_f64(s, o->betas[0]);
    omi_out_f64(s, o->betas[1]);
    omi_out_f64(s, o->eps);
    omi_out_u32(s, o->nesterov);
    omi_out_u32(s, o->schedule.kind);
    omi_out_u64(s, (uint64_t)o->schedule.every);
    omi_out_u64(s, (uint64_t)o->schedule.total);
    omi_out_u64(s, (uint64_t)o->schedule.warmup);
    omi_out_f64(s, o->schedule.gamma);
    omi_out_f64(s, o->schedule.floor);
    for (size_t i = 0; i < o->groups.n; i++) {
        omi_out_f64(s, o->groups.v[i].lr);
        omi_out_f64(s, o->groups.v[i].weight_decay);
    }
    for (size_t i = 0; i < o->params.n; i++) {
        const om_param *p = &o->params.v[i];
        omi_out_text(s, p->path);
        omi_out_u32(s, (uint32_t)p->group);
        omi_out_u64(s, (uint64_t)p->steps);
        omi_out_f64(s, p->power[0]);
        omi_out_f64(s, p->power[1]);
        omi_out_u32(s, n_state > 0 && p->state[0]);
        for (int k = 0; k < n_state && p->state[0]; k++) {
            uint64_t offset;
            if (!omi_data_add(d, p->state[k], omi_param_bytes(p), &offset)) return om_pending();
            omi_out_u64(s, offset);
        }
    }
    return s->failed ? om_pending() : OM_OK;
}

static om_status save_sections(const char *path, const om_checkpoint *c, const om_state_list *list,
                               om_str *text, om_saved_data *data) {
    om_section sections[5];
    int n = 0;
    OM_TRY(omi_out_state(&text[0], data, list));
    sections[n++] = omi_text_section("STAT", OM_SECTION_CRITICAL, &text[0]);
    for (int i = 0; i < 4; i++)
        out_rng(&text[1], om_thread_rng(i));
    out_trai(&text[2], c);
    if (text[1].failed || text[2].failed) return om_pending();
    sections[n++] = omi_text_section("RNGS", 0, &text[1]);
    sections[n++] = omi_text_section("TRAI", 0, &text[2]);
    if (c->optim) {
        OM_TRY(out_optm(&text[3], data, c->optim));
        sections[n++] = omi_text_section("OPTM", 0, &text[3]);
    }
    sections[n++] = omi_data_section(data);
    return omi_container_save(path, sections, n);
}

om_status om_checkpoint_save(const char *path, const om_checkpoint *given) {
    OMI_ENTER("om_checkpoint_save");
    om_checkpoint own;
    if (omi_failed() || !OMI_OPTS(&own, given, step)) return om_pending();
    const om_checkpoint *c = given ? &own : NULL;
    if (!path || !c || !c->module)
        return omi_fail(OM_ERR_ARG, "%s is NULL",
                        !path ? "the path"
                        : !c  ? "the checkpoint"
                              : "its module");
    if (c->step < 0)
        return omi_fail(OM_ERR_ARG, "step is %lld; it counts from 0", (long long)c->step);
    om_state_list list;
    OM_TRY(omi_state_list(c->module, &list));
    om_str text[4]     = {{0}};
    om_saved_data data = {0};
    om_scope s         = om_scope_begin();
    om_status st       = save_sections(path, c, &list, text, &data);
    for (int i = 0; i < 4; i++)
        omi_str_free(&text[i]);
    OMI_VEC_FREE(&data.v);
    omi_state_list_free(&list);
    (void)om_scope_end(s);
    return st;
}

/* ---- reading ------------------------------------------------------------------------------------
 */

/* Everything read, before it is put in place. */
typedef struct restored {
    om_saved_list tensors;
    om_state_list have;
    om_rng rng[4];
    int64_t step;
    om_loader loader; /* order is its own */
    om_optim optim;   /* params: state is its own, t and path borrowed */
} restored;

static om_rng in_rng(om_cursor *c) {
    om_rng r;
    r.seed   = omi_in_u64(c);
    r.stream = omi_in_u64(c);
    r.block  = omi_in_u64(c);
    return r;
}

static om_status find(const om_saved_file *f, const char *tag, const char *what, om_cursor *c) {
    const om_section *s = omi_container_find(&f->container, tag);
    if (!s) return omi_fail(OM_ERR_ARG, "%s holds no %s; it was saved without", f->label, what);
    *c = omi_cursor(s);
    return OM_OK;
}

static om_status read_rngs(const om_saved_file *f, restored *r) {
    om_cursor c;
    OM_TRY(find(f, "RNGS", "generators", &c));
    for (int i = 0; i < 4; i++)
        r->rng[i] = in_rng(&c);
    return omi_cursor_end(f, &c, "RNGS");
}

static om_status read_trai(const om_saved_file *f, const om_loader *l, restored *r) {
    om_cursor c;
    OM_TRY(find(f, "TRAI", "training state", &c));
    r->step        = omi_in_i64(&c);
    uint32_t there = omi_in_u32(&c);
    om_loader *to  = &r->loader;
    if (there == 1) {
        to->items     = omi_in_i64(&c);
        to->batch     = omi_in_i64(&c);
        to->shuffle   = omi_in_u32(&c) != 0;
        to->drop_last = omi_in_u32(&c) != 0;
        to->running   = omi_in_u32(&c) != 0;
        to->epoch     = omi_in_i64(&c);
        to->position  = omi_in_i64(&c);
        to->start     = in_rng(&c);
        if (to->position > to->items) c.bad = true;
    } else if (there)
        c.bad = true;
    OM_TRY(omi_cursor_end(f, &c, "TRAI"));
    if (!l) return OM_OK;
    if (!there) return omi_fail(OM_ERR_ARG, "%s holds no loader; it was saved without", f->label);
    if (to->items != l->items || to->batch != l->batch || to->shuffle != l->shuffle ||
        to->drop_last != l->drop_last)
        return omi_fail(
            OM_ERR_ARG,
            "%s was saved with a loader of %lld items, batch %lld%s%s; this one has %lld and "
            "%lld%s%s",
            f->label, (long long)to->items, (long long)to->batch, to->shuffle ? ", shuffled" : "",
            to->drop_last ? ", drop_last" : "", (long long)l->items, (long long)l->batch,
            l->shuffle ? ", shuffled" : "", l->drop_last ? ", drop_last" : "");
    to->order = omi_alloc((size_t)to->items * sizeof *to->order);
    if (!to->order) return om_pending();
    om_rng rng = to->start;
    return omi_loader_order(to, &rng);
}

static om_status read_param(const om_saved_file *f, om_cursor *c, const om_param *now,
                            size_t n_groups, om_optim *to) {
    uint32_t n;
    const char *path = omi_in_text(c, &n);
    om_param p       = {.t = now->t, .path = now->path};
    uint32_t g       = omi_in_u32(c);
    p.steps          = omi_in_i64(c);
    p.power[0]       = omi_in_f64(c);
    p.power[1]       = omi_in_f64(c);
    uint32_t there   = omi_in_u32(c);
    if (c->bad || there > 1 || g >= n_groups) {
        c->bad = true;
        return omi_cursor_end(f, c, "OPTM");
    }
    p.group = (int32_t)g;
    if (strlen(now->path) != n || memcmp(now->path, path, n) != 0)
        return omi_fail(OM_ERR_ARG,
                        "%s was saved for another model: its parameters differ at '%.80s'",
                        f->label, now->path);
    if (!OMI_PUSH(&to->params, p)) return om_pending();
    om_param *mine = &to->params.v[to->params.n - 1];
    if (!there) return OM_OK;
    OM_TRY(omi_param_state(to, mine));
    for (int k = 0; k < omi_optim_n_state(to); k++) {
        uint64_t offset  = omi_in_u64(c);
        const void *from = c->bad ? NULL : omi_saved_array(f, offset, omi_param_bytes(mine));
        if (!from) return c->bad ? omi_cursor_end(f, c, "OPTM") : om_pending();
        memcpy(mine->state[k], from, omi_param_bytes(mine));
    }
    return OM_OK;
}

static bool schedule_ok(const om_schedule *s) {
    return s->kind == OM_SCHEDULE_NONE || (s->kind == OM_SCHEDULE_STEP && s->every >= 1) ||
           (s->kind == OM_SCHEDULE_COSINE && s->total > s->warmup);
}

static om_status read_optm(const om_saved_file *f, const om_optim *o, restored *r) {
    om_cursor c;
    om_optim *to = &r->optim;
    OM_TRY(find(f, "OPTM", "optimizer", &c));
    to->kind          = (om_optim_kind)omi_in_u32(&c);
    uint32_t n_params = omi_in_u32(&c), n_state = omi_in_u32(&c), n_groups = omi_in_u32(&c);
    to->steps           = omi_in_i64(&c);
    to->momentum        = omi_in_f64(&c);
    to->dampening       = omi_in_f64(&c);
    to->betas[0]        = omi_in_f64(&c);
    to->betas[1]        = omi_in_f64(&c);
    to->eps             = omi_in_f64(&c);
    to->nesterov        = omi_in_u32(&c) != 0;
    to->schedule.kind   = (om_schedule_kind)omi_in_u32(&c);
    to->schedule.every  = omi_in_i64(&c);
    to->schedule.total  = omi_in_i64(&c);
    to->schedule.warmup = omi_in_i64(&c);
    to->schedule.gamma  = omi_in_f64(&c);
    to->schedule.floor  = omi_in_f64(&c);
    if (c.bad || !schedule_ok(&to->schedule)) {
        c.bad = true;
        return omi_cursor_end(f, &c, "OPTM");
    }
    if (to->kind != o->kind || n_state != (uint32_t)omi_optim_n_state(o) ||
        n_groups != o->groups.n || (int)n_state != omi_optim_n_state(to))
        return omi_fail(OM_ERR_ARG, "%s was saved with another kind of optimizer, or other groups",
                        f->label);
    if (n_params != o->params.n)
        return omi_fail(OM_ERR_ARG,
                        "%s was saved for another model: %u parameters, this one has %zu", f->label,
                        n_params, o->params.n);
    for (uint32_t i = 0; i < n_groups; i++) {
        om_group g;
        g.lr           = omi_in_f64(&c);
        g.weight_decay = omi_in_f64(&c);
        if (!OMI_PUSH(&to->groups, g)) return om_pending();
    }
    for (uint32_t i = 0; i < n_params; i++)
        OM_TRY(read_param(f, &c, &o->params.v[i], n_groups, to));
    return omi_cursor_end(f, &c, "OPTM");
}

/* Swaps what was read into o; what o had goes back and is freed there. */
static void put_optim(om_optim *o, om_optim *from) {
    for (size_t i = 0; i < o->params.n; i++) {
        om_param *p = &o->params.v[i], *q = &from->params.v[i], was = *p;
        *p          = *q;
        q->state[0] = was.state[0];
        q->state[1] = was.state[1];
    }
    for (size_t i = 0; i < o->groups.n; i++)
        o->groups.v[i] = from->groups.v[i];
    o->steps     = from->steps;
    o->momentum  = from->momentum;
    o->dampening = from->dampening;
    o->betas[0]  = from->betas[0];
    o->betas[1]  = from->betas[1];
    o->eps       = from->eps;
    o->nesterov  = from->nesterov;
    o->schedule  = from->schedule;
}

static void put_loader(om_loader *l, om_loader *from) {
    int64_t *was = l->order;
    l->order     = from->order;
    l->running   = from->running;
    l->epoch     = from->epoch;
    l->position  = from->position;
    l->start     = from->start;
    from->order  = was;
}

static void restored_free(restored *r) {
    for (size_t i = 0; i < r->optim.params.n; i++)
        for (int k = 0; k < 2; k++)
            omi_free_aligned(r->optim.params.v[i].state[k], omi_param_bytes(&r->optim.params.v[i]));
    OMI_VEC_FREE(&r->optim.params);
    OMI_VEC_FREE(&r->optim.groups);
    omi_free(r->loader.order, r->loader.order ? (size_t)r->loader.items * sizeof(int64_t) : 0);
    omi_saved_list_free(&r->tensors);
    omi_state_list_free(&r->have);
}

static om_status load_all(const om_saved_file *f, om_checkpoint *c, restored *r) {
    OM_TRY(omi_saved_tensors(f, &r->tensors));
    OM_TRY(omi_state_list(c->module, &r->have));
    OM_TRY(read_rngs(f, r));
    OM_TRY(read_trai(f, c->loader, r));
    if (c->optim) OM_TRY(read_optm(f, c->optim, r));
    OM_TRY(omi_state_assign(&r->have, (int64_t)r->tensors.v.n, r->tensors.v.v, NULL));
    if (c->optim) put_optim(c->optim, &r->optim);
    if (c->loader) put_loader(c->loader, &r->loader);
    for (int i = 0; i < 4; i++)
        *om_thread_rng(i) = r->rng[i];
    c->step = r->step;
    return OM_OK;
}

om_status om_checkpoint_load(const char *path, om_checkpoint *given) {
    OMI_ENTER("om_checkpoint_load");
    om_checkpoint own, *c = given ? &own : NULL;
    if (omi_failed() || !OMI_OPTS(&own, given, step)) return om_pending();
    if (!c || !c->module)
        return omi_fail(OM_ERR_ARG, "%s is NULL", c ? "the checkpoint's module" : "the checkpoint");
    om_saved_file f;
    OM_TRY(omi_saved_open(&f, path));
    restored *r  = omi_calloc(sizeof *r);
    om_scope s   = om_scope_begin();
    om_status st = r ? load_all(&f, c, r) : om_pending();
    given->step  = own.step;
    if (r) restored_free(r);
    omi_free(r, r ? sizeof *r : 0);
    (void)om_scope_end(s);
    omi_saved_close(&f);
    return st;
}
