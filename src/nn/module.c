/*
 * module.c -- the module tree: making, filing, naming, running, walking.
 *
 * om_forward has no frame of its own while the module's function runs: the outermost public call an
 * error names is then the operator inside, and the module path in front of it says the rest (CD-13,
 * CD-15). Relies on the module stack of base/error.h.
 */
#include "nn/module.h"

#include <stdio.h>
#include <string.h>

#include "base/map.h"
#include "base/str.h"
#include "base/utf8.h"
#include "base/words.h"

/* ---- making and freeing ------------------------------------------------------------------ */

om_module *omi_module_new(const char *kind, om_forward_fn forward, void *ctx,
                          void (*free_fn)(void *ctx)) {
    om_module *m = omi_failed() ? NULL : omi_calloc(sizeof *m);
    if (!m) {
        if (free_fn) free_fn(ctx);
        return NULL;
    }
    m->kind     = kind;
    m->forward  = forward;
    m->ctx      = ctx;
    m->free_fn  = free_fn;
    m->training = true;
    return m;
}

om_module *om_nn_module(void) {
    OMI_ENTER("om_nn_module");
    return omi_module_new("module", NULL, NULL, NULL);
}

om_module *om_nn_custom(om_forward_fn forward, void *ctx, void (*free_fn)(void *ctx)) {
    OMI_ENTER("om_nn_custom");
    if (!forward && !omi_failed()) omi_fail(OM_ERR_ARG, "forward is NULL");
    return omi_module_new("custom", forward, ctx, free_fn);
}

void omi_module_free(om_module *m) {
    if (!m) return;
    for (size_t i = 0; i < m->children.n; i++)
        omi_module_free(m->children.v[i]);
    for (size_t i = 0; i < m->params.n; i++)
        om_release(m->params.v[i].t);
    for (size_t i = 0; i < m->buffers.n; i++)
        om_release(m->buffers.v[i].t);
    if (m->free_fn) m->free_fn(m->ctx);
    omi_strmap_free(&m->names);
    OMI_VEC_FREE(&m->children);
    OMI_VEC_FREE(&m->params);
    OMI_VEC_FREE(&m->buffers);
    m->freed = true;
    omi_free_standing(m, sizeof *m);
}

/* Raises when m was freed and waits under OM_DEBUG_POISON; NULL is for the caller to judge. */
static bool standing(const om_module *m) {
    if (OM_LIKELY(!m || !m->freed)) return true;
    omi_fail(OM_ERR_STATE,
             "module '%s' (%s) was freed before; its parent frees a child, and a root "
             "is freed once",
             m->name ? m->name : "", m->kind);
    return false;
}

void om_nn_free(om_module *m) {
    OMI_ENTER("om_nn_free");
    if (!standing(m)) return;
    if (m && m->parent) {
        omi_fail(OM_ERR_STATE, "module '%s' belongs to a parent, which frees it", m->name);
        return;
    }
    omi_module_free(m);
}

/* ---- names ------------------------------------------------------------------------------- */

/* A module of this many names is searched from end to end; one of more keeps a map of them. */
#define FEW_NAMES 8

/* What a name stands for: its kind, and its place among those of its kind. 0: nothing. */
enum { PLACE_PARAM = 1, PLACE_BUFFER, PLACE_CHILD, PLACE_KINDS };
OM_INLINE uintptr_t place(int kind, size_t i) {
    return (uintptr_t)i * PLACE_KINDS + (uintptr_t)kind;
}

static size_t n_names(const om_module *m) {
    return m->params.n + m->buffers.n + m->children.n;
}

static bool is_name(const char *have, const char *name, size_t n) {
    return strncmp(have, name, n) == 0 && have[n] == 0;
}

static uintptr_t place_named(const om_module *m, const char *name, size_t n) {
    if (m->names.n) return (uintptr_t)omi_strmap_get(&m->names, name, n);
    for (size_t i = 0; i < m->params.n; i++)
        if (is_name(m->params.v[i].name, name, n)) return place(PLACE_PARAM, i);
    for (size_t i = 0; i < m->buffers.n; i++)
        if (is_name(m->buffers.v[i].name, name, n)) return place(PLACE_BUFFER, i);
    for (size_t i = 0; i < m->children.n; i++)
        if (is_name(m->children.v[i]->name, name, n)) return place(PLACE_CHILD, i);
    return 0;
}

static bool map_name(om_module *m, const char *name, uintptr_t at) {
    return omi_strmap_set(&m->names, name, strlen(name), (void *)at);
}

/* Every name m has. False and raised when memory is out; the map is empty then. */
static bool map_names(om_module *m) {
    bool ok = true;
    for (size_t i = 0; ok && i < m->params.n; i++)
        ok = map_name(m, m->params.v[i].name, place(PLACE_PARAM, i));
    for (size_t i = 0; ok && i < m->buffers.n; i++)
        ok = map_name(m, m->buffers.v[i].name, place(PLACE_BUFFER, i));
    for (size_t i = 0; ok && i < m->children.n; i++)
        ok = map_name(m, m->children.v[i]->name, place(PLACE_CHILD, i));
    if (!ok) omi_strmap_free(&m->names);
    return ok;
}

/* After name was put at the end of its list. False and raised: the caller takes it out again. */
static bool name_added(om_module *m, const char *name, uintptr_t at) {
    if (m->names.n) return map_name(m, name, at);
    return n_names(m) <= FEW_NAMES || map_names(m);
}

/* The interned name, or NULL and raised. */
static const char *new_name(const om_module *m, const char *name) {
    if (!name || !*name)
        OM_FAIL_NULL(OM_ERR_ARG, "the name is empty; children and tensors need one");
    for (const char *c = name; *c; c++)
        if (*c == '.' || (unsigned char)*c < 32 || *c == 127)
            OM_FAIL_NULL(OM_ERR_ARG, "the name '%.60s' holds a %s, which paths cannot", name,
                         *c == '.' ? "dot" : "control character");
    if (!omi_utf8_valid(name, strlen(name))) OM_FAIL_NULL(OM_ERR_ARG, "the name is not UTF-8");
    if (place_named(m, name, strlen(name)))
        OM_FAIL_NULL(OM_ERR_ARG, "the name '%.60s' is used already in this module", name);
    return omi_intern(name);
}

static int tree_height(const om_module *m) {
    int h = 0;
    for (size_t i = 0; i < m->children.n; i++) {
        int c = tree_height(m->children.v[i]);
        if (c > h) h = c;
    }
    return h + 1;
}

static void forget_paths(om_module *m) {
    m->path = NULL;
    for (size_t i = 0; i < m->children.n; i++)
        forget_paths(m->children.v[i]);
}

/* True when parent can take child; a child of somebody else must not be freed by the caller. */
static bool can_take(om_module *parent, om_module *child, bool *foreign) {
    *foreign = false;
    if (!child) return omi_fail(OM_ERR_ARG, "child is NULL"), false;
    if (!standing(child)) return *foreign = true, false;
    if (child->parent) {
        *foreign = true;
        return omi_fail(OM_ERR_STATE, "the child has a parent already, where it is '%s'",
                        child->name),
               false;
    }
    if (!standing(parent)) return false;
    int depth = 0;
    for (const om_module *p = parent; p; p = p->parent, depth++)
        if (p == child) {
            *foreign = true;
            return omi_fail(OM_ERR_STATE, "a module cannot become its own descendant"), false;
        }
    if (!parent) return omi_fail(OM_ERR_ARG, "parent is NULL"), false;
    if (depth + tree_height(child) > OM_MODULE_DEPTH)
        return omi_fail(OM_ERR_LIMIT, "modules would be nested more than %d deep", OM_MODULE_DEPTH),
               false;
    return true;
}

static om_module *module_add(om_module *parent, const char *name, om_module *child) {
    bool foreign;
    if (!can_take(parent, child, &foreign) || omi_failed()) {
        if (!foreign) omi_module_free(child);
        return NULL;
    }
    const char *interned = new_name(parent, name);
    if (!interned || !OMI_PUSH(&parent->children, child)) {
        omi_module_free(child);
        return NULL;
    }
    child->name = interned;
    if (!name_added(parent, interned, place(PLACE_CHILD, parent->children.n - 1))) {
        parent->children.n--;
        omi_module_free(child);
        return NULL;
    }
    child->parent = parent;
    forget_paths(child);
    return child;
}

om_module *om_nn_add(om_module *parent, const char *name, om_module *child) {
    OMI_ENTER("om_nn_add");
    return module_add(parent, name, child);
}

om_module *om_nn_append(om_module *sequential, om_module *child) {
    OMI_ENTER("om_nn_append");
    char name[24];
    snprintf(name, sizeof name, "%zu", sequential ? sequential->children.n : (size_t)0);
    return module_add(sequential, name, child);
}

/* The parents' names in front, the module's own last. */
static void path_text(const om_module *m, om_str *s) {
    if (!m->parent) return;
    path_text(m->parent, s);
    if (s->n) omi_str_puts(s, ".");
    omi_str_puts(s, m->name);
}

const char *omi_module_path_of(om_module *m) {
    if (m->path) return m->path;
    om_str s = {0};
    path_text(m, &s);
    if (!s.failed) m->path = omi_intern(s.n ? s.v : "");
    omi_str_free(&s);
    return m->path;
}

const char *om_nn_path(om_module *m) {
    OMI_ENTER("om_nn_path");
    return m ? omi_module_path_of(m) : NULL;
}

/* ---- tensors ----------------------------------------------------------------------------- */

static om_tensor *register_slot(om_module *m, const char *name, om_tensor *t, bool is_buffer) {
    const char *interned = new_name(m, name);
    if (!interned) return NULL;
    om_slot s = {interned, t};
    if (!(is_buffer ? OMI_PUSH(&m->buffers, s) : OMI_PUSH(&m->params, s))) return NULL;
    size_t *n = is_buffer ? &m->buffers.n : &m->params.n;
    if (!name_added(m, interned, place(is_buffer ? PLACE_BUFFER : PLACE_PARAM, *n - 1)))
        return --*n, NULL;
    return om_retain(t);
}

om_tensor *om_nn_parameter(om_module *m, const char *name, om_tensor *t) {
    OMI_ENTER("om_nn_parameter");
    if (omi_failed()) return NULL;
    if (!m) OM_FAIL_NULL(OM_ERR_ARG, "the module is NULL");
    if (!standing(m)) return NULL;
    if (omi_check_arg(t, "the parameter") != OM_OK) return NULL;
    if (t->dtype != OM_F32)
        OM_FAIL_NULL(OM_ERR_DTYPE, "parameter '%.60s' is %s; parameters are float32, see om_cast",
                     name ? name : "", om_dtype_name((om_dtype)t->dtype));
    if (om_set_requires_grad(t, true) != OM_OK) return NULL;
    return register_slot(m, name, t, false);
}

om_tensor *om_nn_buffer(om_module *m, const char *name, om_tensor *t) {
    OMI_ENTER("om_nn_buffer");
    if (omi_failed()) return NULL;
    if (!m) OM_FAIL_NULL(OM_ERR_ARG, "the module is NULL");
    if (!standing(m)) return NULL;
    if (omi_check_arg(t, "the buffer") != OM_OK) return NULL;
    return register_slot(m, name, t, true);
}

/* ---- running ----------------------------------------------------------------------------- */

static om_status forward_check(om_module *m, om_tensor *x) {
    OMI_ENTER("om_forward");
    if (omi_failed()) return om_pending();
    if (!m) return omi_fail(OM_ERR_ARG, "the module is NULL");
    if (!standing(m)) return om_pending();
    if (!x) return omi_fail(OM_ERR_ARG, "the input of module '%s' is NULL", m->name ? m->name : "");
    if (!m->forward)
        return omi_fail(OM_ERR_ARG,
                        "module '%s' has no forward function; call its children, or make it with "
                        "om_nn_custom or om_nn_sequential",
                        m->name ? m->name : "");
    const char *path = omi_module_path_of(m);
    return path ? omi_module_push(path) : om_pending();
}

/* In a frame of its own: one that is not below om_forward's would be taken for a jump out of it. */
static OM_COLD void no_result(void) {
    OMI_ENTER("om_forward");
    omi_fail(OM_ERR_STATE, "the module's forward function returned NULL without an error");
}

om_tensor *om_forward(om_module *m, om_tensor *x) {
    omi_forward f = omi_forward_begin(__builtin_frame_address(0));
    if (forward_check(m, x) != OM_OK) return NULL;
    omi_forward_enter(&f);
    om_scope s   = om_scope_begin();
    om_tensor *y = m->forward(m->ctx, m, x);
    if (!y && !omi_failed()) no_result();
    if (omi_failed()) y = NULL;
    omi_forward_end(&f);
    return om_scope_return(s, y);
}

om_status om_nn_enter(om_module *m) {
    OMI_ENTER("om_nn_enter");
    if (!m) return omi_fail(OM_ERR_ARG, "the module is NULL");
    if (!standing(m)) return om_pending();
    /* Entered even while an error is pending, so that leave finds what it expects. */
    const char *path = omi_module_path_of(m);
    if (!path) return om_pending();
    om_status st = omi_module_push(path);
    return st != OM_OK ? st : om_pending();
}

void om_nn_leave(om_module *m) {
    if (m && m->path && omi_module_path() == m->path) omi_module_pop();
}

static void set_training(om_module *m, bool on) {
    m->training = on;
    for (size_t i = 0; i < m->children.n; i++)
        set_training(m->children.v[i], on);
}

om_status om_nn_train(om_module *m, bool training) {
    OMI_ENTER("om_nn_train");
    if (omi_failed()) return om_pending();
    if (!m) return omi_fail(OM_ERR_ARG, "the module is NULL");
    if (!standing(m)) return om_pending();
    set_training(m, training);
    return OM_OK;
}

bool om_nn_training(const om_module *m) {
    return m && m->training;
}

/* ---- finding ----------------------------------------------------------------------------- */

static om_module *child_named(const om_module *m, const char *name, size_t n) {
    uintptr_t at = place_named(m, name, n);
    return at % PLACE_KINDS == PLACE_CHILD ? m->children.v[at / PLACE_KINDS] : NULL;
}

/* Walks the parts of path; with last, stops before the last part and hands it out. */
static om_module *descend(om_module *m, const char *path, const char **last) {
    if (!path) OM_FAIL_NULL(OM_ERR_ARG, "the path is NULL");
    const char *at = path;
    while (*at) {
        size_t n = strcspn(at, ".");
        if (last && at[n] == 0) break;
        om_module *c = child_named(m, at, n);
        if (!c)
            OM_FAIL_NULL(OM_ERR_ARG, "'%.80s': there is no module '%.*s'%s%.*s", path,
                         (int)omi_min64((int64_t)n, 60), at, at > path ? " in " : "",
                         at > path ? (int)omi_min64(at - path - 1, 80) : 0, path);
        m = c;
        at += n;
        if (*at == '.') at++;
    }
    if (last) *last = at;
    return m;
}

om_module *om_nn_child(om_module *m, const char *path) {
    OMI_ENTER("om_nn_child");
    if (omi_failed()) return NULL;
    if (!m) OM_FAIL_NULL(OM_ERR_ARG, "the module is NULL");
    if (!standing(m)) return NULL;
    return descend(m, path, NULL);
}

om_tensor *om_nn_get(om_module *m, const char *path) {
    OMI_ENTER("om_nn_get");
    if (omi_failed()) return NULL;
    if (!m) OM_FAIL_NULL(OM_ERR_ARG, "the module is NULL");
    if (!standing(m)) return NULL;
    const char *last = NULL;
    m                = descend(m, path, &last);
    if (!m) return NULL;
    uintptr_t at = place_named(m, last, strlen(last));
    if (at % PLACE_KINDS == PLACE_PARAM) return m->params.v[at / PLACE_KINDS].t;
    if (at % PLACE_KINDS == PLACE_BUFFER) return m->buffers.v[at / PLACE_KINDS].t;
    OM_FAIL_NULL(OM_ERR_ARG, "'%.80s': module '%s' (%s) has no tensor '%.60s'", path,
                 m->name ? m->name : "", m->kind, last);
}

/* ---- walking ----------------------------------------------------------------------------- */

static void cut(om_str *s, size_t n) {
    s->n = n;
    if (s->v) s->v[n] = 0;
}

static om_status visit_slot(const om_slot *slot, bool is_buffer, om_str *path, om_nn_visit_fn visit,
                            void *ctx) {
    size_t n = path->n;
    if (n) omi_str_puts(path, ".");
    omi_str_puts(path, slot->name);
    if (path->failed) return om_pending();
    int code = visit(ctx, path->v, slot->t, is_buffer);
    cut(path, n);
    if (omi_failed()) return om_pending();
    return code ? omi_fail(OM_ERR_CANCELLED, "the visit function stopped with %d", code) : OM_OK;
}

static om_status visit_tree(om_module *m, om_str *path, om_nn_visit_fn visit, void *ctx) {
    for (size_t i = 0; i < m->params.n; i++)
        OM_TRY(visit_slot(&m->params.v[i], false, path, visit, ctx));
    for (size_t i = 0; i < m->buffers.n; i++)
        OM_TRY(visit_slot(&m->buffers.v[i], true, path, visit, ctx));
    for (size_t i = 0; i < m->children.n; i++) {
        size_t n = path->n;
        if (n) omi_str_puts(path, ".");
        omi_str_puts(path, m->children.v[i]->name);
        if (path->failed) return om_pending();
        OM_TRY(visit_tree(m->children.v[i], path, visit, ctx));
        cut(path, n);
    }
    return OM_OK;
}

static om_status walk(om_module *m, om_nn_visit_fn visit, void *ctx) {
    om_str path  = {0};
    om_status st = visit_tree(m, &path, visit, ctx);
    omi_str_free(&path);
    return st;
}

om_status om_nn_visit(om_module *m, om_nn_visit_fn visit, void *ctx) {
    OMI_ENTER("om_nn_visit");
    if (omi_failed()) return om_pending();
    if (!m || !visit) return omi_fail(OM_ERR_ARG, "%s is NULL", m ? "visit" : "the module");
    return walk(m, visit, ctx);
}

typedef struct list_build {
    om_state_list *list;
    om_map seen; /* tensor id -> any */
} list_build;

static int list_add(void *ctx, const char *path, om_tensor *t, bool is_buffer) {
    list_build *b    = ctx;
    om_state_entry e = {
        .t = t, .is_buffer = is_buffer, .tied = omi_map_get(&b->seen, t->id) != NULL};
    e.path = omi_arena_strndup(&b->list->arena, path, strlen(path));
    return !e.path || !omi_map_set(&b->seen, t->id, t) || !OMI_PUSH(&b->list->v, e);
}

om_status omi_state_list(om_module *m, om_state_list *out) {
    memset(out, 0, sizeof *out);
    if (!standing(m)) return om_pending();
    list_build b = {.list = out};
    om_status st = walk(m, list_add, &b);
    omi_map_free(&b.seen);
    if (st != OM_OK) omi_state_list_free(out);
    return st;
}

void omi_state_list_free(om_state_list *l) {
    omi_arena_clear(&l->arena);
    OMI_VEC_FREE(&l->v);
}

int64_t om_nn_n_parameters(om_module *m) {
    OMI_ENTER("om_nn_n_parameters");
    om_state_list l;
    if (!m || omi_failed() || omi_state_list(m, &l) != OM_OK) return 0;
    int64_t n = 0;
    for (size_t i = 0; i < l.v.n; i++)
        if (!l.v.v[i].is_buffer && !l.v.v[i].tied) n += om_numel(l.v.v[i].t);
    omi_state_list_free(&l);
    return n;
}

bool omi_path_matches(const char *path, const char *prefix) {
    size_t n = strlen(prefix);
    return n == 0 || (strncmp(path, prefix, n) == 0 && (path[n] == 0 || path[n] == '.'));
}

om_status om_nn_freeze(om_module *m, const char *prefix, bool frozen) {
    OMI_ENTER("om_nn_freeze");
    if (omi_failed()) return om_pending();
    if (!m || !prefix) return omi_fail(OM_ERR_ARG, "%s is NULL", m ? "prefix" : "the module");
    om_state_list l;
    OM_TRY(omi_state_list(m, &l));
    int matched = 0;
    for (size_t i = 0; i < l.v.n && !omi_failed(); i++) {
        const om_state_entry *e = &l.v.v[i];
        if (e->is_buffer || !omi_path_matches(e->path, prefix)) continue;
        matched++;
        om_set_requires_grad(e->t, !frozen);
        if (frozen) om_clear_grad(e->t);
    }
    omi_state_list_free(&l);
    if (!matched && !omi_failed())
        return omi_fail(OM_ERR_ARG, "no parameter has a path that begins with '%.80s'", prefix);
    return om_pending();
}
