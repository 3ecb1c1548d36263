/*
 * emit.c -- graph values, initializers and nodes from provisional ones; the nodes that compute
 * sizes.
 */
#include "trace/emit.h"

#include <stdio.h>
#include <string.h>

void omi_emit_free(om_emit *em) {
    omi_namer_free(&em->namer);
    omi_strmap_free(&em->texts);
    OMI_VEC_FREE(&em->extents);
}

/* The graph keeps the extents of value id (CD-38): n of them, or those of a static list of one
 * axis. */
static bool keep_extents(om_emit *em, uint32_t id, int n, const om_extent *e) {
    om_extent *copy = omi_arena_array(&em->tr->kept->arena, n ? (size_t)n : 1, sizeof *copy);
    if (!copy) return false;
    if (n) memcpy(copy, e, (size_t)n * sizeof *e);
    while (em->extents.n <= id)
        if (!OMI_PUSH(&em->extents, NULL)) return false;
    em->extents.v[id] = copy;
    return true;
}

/* ---- values -------------------------------------------------------------------------------------
 */

static bool emit_input(om_emit *em, om_tvalue *v) {
    om_gdim dims[OM_MAX_RANK];
    for (int i = 0; i < v->rank; i++)
        if (!omi_name_dim(&em->namer, &v->e[i], &dims[i])) return false;
    uint32_t id = omi_graph_add_value(em->g, v->name, v->dtype, v->rank, dims);
    if (id == OM_NO_VALUE || !omi_graph_add_input(em->g, id)) return false;
    v->gvalue = id + 1;
    return keep_extents(em, id, v->rank, v->e);
}

bool omi_emit_begin(om_emit *em) {
    om_tracer *tr = em->tr;
    em->g         = omi_graph_new(tr->name, 0);
    if (!em->g) return false;
    em->namer               = (om_namer){.tr = tr, .g = em->g};
    em->g->ir_version       = 9;
    em->g->producer         = "onemodel";
    em->g->producer_version = om_version();
    if (!omi_graph_add_opset(em->g, "", 20)) return false;
    for (size_t i = 0; i < tr->symbols.n; i++) {
        om_extent e = omi_ext_atom(tr->symbols.v[i]);
        om_gdim d;
        if (!omi_name_dim(&em->namer, &e, &d)) return false;
        om_symbol *s = &em->g->symbols[d.sym];
        s->lo        = tr->symbols.v[i]->lo;
        s->hi        = tr->symbols.v[i]->hi;
        s->multiple  = tr->symbols.v[i]->multiple;
    }
    for (size_t i = 0; i < tr->inputs.n; i++)
        if (!emit_input(em, tr->inputs.v[i])) return false;
    return true;
}

static void release_buffer(om_buffer **b) {
    omi_buffer_release(*b);
}

/* An initializer over bytes of a buffer. OM_NO_VALUE when raised. */
static uint32_t emit_init(om_emit *em, const char *name, const om_tvalue *v, om_buffer *buf,
                          size_t bytes) {
    om_gdim dims[OM_MAX_RANK];
    int64_t sizes[OM_MAX_RANK];
    for (int i = 0; i < v->rank; i++) {
        sizes[i] = v->e[i].size;
        dims[i]  = OM_DIM_FIXED(sizes[i]);
    }
    uint32_t id = name ? omi_graph_add_value(em->g, name, v->dtype, v->rank, dims) : OM_NO_VALUE;
    if (id == OM_NO_VALUE ||
        !omi_graph_add_init(em->g, id, v->dtype, v->rank, sizes, buf, 0, bytes))
        return OM_NO_VALUE;
    return id;
}

static uint32_t emit_literal(om_emit *em, const om_tvalue *v) {
    om_buffer *buf __attribute__((cleanup(release_buffer))) =
        omi_buffer_new(v->bytes ? v->bytes : 1);
    if (!buf) return OM_NO_VALUE;
    if (v->bytes) memcpy(buf->data, v->data, v->bytes);
    return emit_init(em, omi_name_literal(&em->namer), v, buf, v->bytes);
}

/* The graph's index of a value; constants and literals appear at their first use. */
static uint32_t value_index(om_emit *em, om_tvalue *v) {
    if (!v) return OM_NO_VALUE;
    v->is_used = 1;
    if (v->gvalue) return v->gvalue - 1;
    uint32_t id = OM_NO_VALUE;
    if (v->kind == OM_TV_CONST)
        id = emit_init(em, omi_name_const(&em->namer, v->c), v, v->c->buf, v->c->bytes);
    else if (v->kind == OM_TV_LITERAL)
        id = emit_literal(em, v);
    else
        omi_fail(OM_ERR_INTERNAL, "a value of the trace was used before it was made");
    if (id != OM_NO_VALUE) v->gvalue = id + 1;
    return id;
}

/* ---- nodes
 * ---------------------------------------------------------------------------------------- */

static bool emit_attrs(om_graph *g, int32_t node, const om_tattr *a) {
    int64_t one = 1;
    for (bool ok = true; a; a = a->next) {
        switch (a->type) {
        case OM_ATTR_INT:
            ok = omi_graph_attr_int(g, node, a->name, a->i);
            break;
        case OM_ATTR_FLOAT:
            ok = omi_graph_attr_float(g, node, a->name, a->f);
            break;
        case OM_ATTR_STRING:
            ok = omi_graph_attr_string(g, node, a->name, a->s);
            break;
        case OM_ATTR_INTS:
            ok = omi_graph_attr_ints(g, node, a->name, a->n, a->ints);
            break;
        default:
            ok = omi_graph_attr_tensor(g, node, a->name, a->dtype, 1, &one, a->elem, a->n);
        }
        if (!ok) return false;
    }
    return true;
}

static bool set_site(om_emit *em, int32_t node, const om_site *site) {
    if (!em->tr->provenance) return true;
    omi_site_buf text;
    omi_site_text(site, &text);
    char *s = omi_arena_strndup(em->g->arena, text.s, strlen(text.s));
    if (s) em->g->nodes[node].site = s;
    return s != NULL;
}

/* A node of the size computation, found again by its text. OM_NO_VALUE when raised. */
static uint32_t size_node(om_emit *em, const om_tnode *of, const char *type, uint32_t n_in,
                          const uint32_t *in, int64_t a, int64_t b) {
    om_extent length = omi_ext_static(type[0] == 'S'   ? b - a
                                      : type[0] == 'C' ? of->operand->rank
                                                       : 1);
    size_t len       = strlen(type) + (2 + n_in) * sizeof(int64_t);
    int64_t *key     = omi_arena_array(&em->tr->arena, 3 + n_in, sizeof *key);
    if (!key) return OM_NO_VALUE;
    key[0] = a;
    key[1] = b;
    for (uint32_t i = 0; i < n_in; i++)
        key[2 + i] = in[i];
    memcpy(&key[2 + n_in], type, strlen(type)); // at most 8: Shape, Mul, Concat
    uintptr_t seen = (uintptr_t)omi_strmap_get(&em->texts, (char *)key, len);
    if (seen) return (uint32_t)(seen - 1);
    const char *name = omi_name_node(&em->namer, of->site.module, type);
    const char *out  = name ? omi_name_out(&em->namer, name, 0, 1) : NULL;
    uint32_t id      = out ? omi_graph_add_value(em->g, out, OM_I64, -1, NULL) : OM_NO_VALUE;
    if (id == OM_NO_VALUE || !keep_extents(em, id, 1, &length)) return OM_NO_VALUE;
    int32_t node = omi_graph_add_node(em->g, type, "", name, n_in, in, 1, &id);
    bool ok      = node >= 0 && set_site(em, node, &of->site);
    if (ok && type[0] == 'S')
        ok = omi_graph_attr_int(em->g, node, "start", a) &&
             omi_graph_attr_int(em->g, node, "end", b);
    else if (ok && type[0] == 'C')
        ok = omi_graph_attr_int(em->g, node, "axis", 0);
    if (!ok || !omi_strmap_set(&em->texts, (char *)key, len, (void *)(uintptr_t)(id + 1)))
        return OM_NO_VALUE;
    return id;
}

/* An int64 list as a shared literal. */
static uint32_t int_list(om_emit *em, int64_t n, const int64_t *v) {
    om_tvalue *l = omi_tr_literal(em->tr, OM_I64, 1, &n, v, (size_t)n * sizeof *v);
    return l ? value_index(em, l) : OM_NO_VALUE;
}

static uint32_t shape_piece(om_emit *em, const om_tnode *n, const om_holder *h, int count) {
    uint32_t of = value_index(em, h->v);
    return of == OM_NO_VALUE ? of : size_node(em, n, "Shape", 1, &of, h->axis, h->axis + count);
}

/* Shape pieces multiplied, then the coefficient. */
static uint32_t product_piece(om_emit *em, const om_tnode *n, const om_extent *e,
                              const om_holder *holders) {
    uint32_t p[2] = {shape_piece(em, n, &holders[0], 1), 0};
    for (int k = 1; k < e->n && p[0] != OM_NO_VALUE; k++) {
        p[1] = shape_piece(em, n, &holders[k], 1);
        p[0] = p[1] == OM_NO_VALUE ? p[1] : size_node(em, n, "Mul", 2, p, 0, 0);
    }
    if (e->coef == 1 || p[0] == OM_NO_VALUE) return p[0];
    p[1] = int_list(em, 1, &e->coef);
    return p[1] == OM_NO_VALUE ? p[1] : size_node(em, n, "Mul", 2, p, 0, 0);
}

/* The operand of n: adjacent constants are one list, neighbouring axes of one value one Shape. */
static uint32_t emit_operand(om_emit *em, const om_tnode *n) {
    const om_operand *o = n->operand;
    uint32_t pieces[OM_MAX_RANK], k = 0;
    for (int i = 0; i < o->rank;) {
        const om_extent *e = &o->e[i];
        uint32_t id        = OM_NO_VALUE;
        int j              = i + 1;
        if (omi_ext_is_static(e)) {
            int64_t list[OM_MAX_RANK] = {e->size};
            for (; j < o->rank && omi_ext_is_static(&o->e[j]); j++)
                list[j - i] = o->e[j].size;
            id = int_list(em, j - i, list);
        } else if (e->n == 1 && e->coef == 1) {
            const om_holder *h = &o->holders[i][0];
            while (j < o->rank && o->e[j].n == 1 && o->e[j].coef == 1 &&
                   o->holders[j][0].v == h->v && o->holders[j][0].axis == h->axis + (j - i))
                j++;
            id = shape_piece(em, n, h, j - i);
        } else
            id = product_piece(em, n, e, o->holders[i]);
        if (id == OM_NO_VALUE) return id;
        pieces[k++] = id;
        i           = j;
    }
    return k == 1 ? pieces[0] : size_node(em, n, "Concat", k, pieces, 0, 0);
}

static bool emit_outs(om_emit *em, om_tnode *n, uint32_t *out) {
    for (uint32_t i = 0; i < n->n_out; i++) {
        om_tvalue *v     = n->out[i];
        const char *name = v && v->name ? v->name : omi_name_out(&em->namer, n->name, i, n->n_out);
        out[i] = name ? omi_graph_add_value(em->g, name, v ? v->dtype : 0, -1, NULL) : OM_NO_VALUE;
        if (out[i] == OM_NO_VALUE) return false;
        if (!v) continue;
        v->gvalue = out[i] + 1;
        if (!keep_extents(em, out[i], v->rank, v->e)) return false;
    }
    return true;
}

bool omi_emit_node(om_emit *em, om_tnode *n) {
    uint32_t n_in = n->n_in + (n->operand ? 1 : 0);
    uint32_t *ids = omi_arena_array(&em->tr->arena, n_in + n->n_out + 1, sizeof *ids);
    if (!ids) return false;
    for (uint32_t i = 0; i < n->n_in; i++) {
        ids[i] = value_index(em, n->in[i]);
        if (n->in[i] && ids[i] == OM_NO_VALUE) return false;
    }
    if (n->operand && (ids[n->n_in] = emit_operand(em, n)) == OM_NO_VALUE) return false;
    n->name = omi_name_node(&em->namer, n->site.module, n->type);
    if (!n->name || !emit_outs(em, n, ids + n_in)) return false;
    int32_t node = omi_graph_add_node(em->g, n->type, "", n->name, n_in, ids, n->n_out, ids + n_in);
    em->n_emitted++;
    return node >= 0 && set_site(em, node, &n->site) && emit_attrs(em->g, node, n->attrs);
}

/* ---- outputs
 * ---------------------------------------------------------------------------------------- */

bool omi_emit_output(om_emit *em, om_toutput *o) {
    uint32_t id = value_index(em, o->v);
    if (id == OM_NO_VALUE) return false;
    if (o->v->name == o->name) return omi_graph_add_output(em->g, id);
    const char *name = omi_name_node(&em->namer, NULL, "Identity");
    uint32_t out = name ? omi_graph_add_value(em->g, o->name, o->v->dtype, -1, NULL) : OM_NO_VALUE;
    return out != OM_NO_VALUE && keep_extents(em, out, o->v->rank, o->v->e) &&
           omi_graph_add_node(em->g, "Identity", "", name, 1, &id, 1, &out) >= 0 &&
           omi_graph_add_output(em->g, out);
}

/* Every output says its shape (O13): now that all nodes have names, derived extents do too. */
static bool output_dims(om_emit *em, const om_toutput *o, uint32_t id) {
    om_gdim dims[OM_MAX_RANK];
    for (int i = 0; i < o->v->rank; i++)
        if (!omi_name_dim(&em->namer, &o->v->e[i], &dims[i])) return false;
    return omi_graph_set_type(em->g, id, o->v->dtype, o->v->rank, dims);
}

bool omi_emit_end(om_emit *em) {
    for (size_t i = 0; i < em->tr->outputs.n; i++)
        if (!output_dims(em, &em->tr->outputs.v[i], em->g->outputs[i])) return false;
    return omi_graph_seal(em->g) == OM_OK &&
           omi_tr_keep(em->tr, em->g, em->extents.n, em->extents.v);
}
