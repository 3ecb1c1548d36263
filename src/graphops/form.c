/*
 * form.c -- a node against its row of opset.def: operands, types, attributes; and what the parse
 * functions of the rows read attributes with (CD-35).
 *
 * Everything here reads files nobody vouches for. What a row does not say is a problem of the file:
 * an attribute that this version of the node does not have is listed, never ignored, because its
 * author meant something by it.
 */
#include <stdio.h>
#include <string.h>

#include "graphops/node.h"

/* ---- operands ---------------------------------------------------------------------------------
 */

/* The operand that describes input or output k; NULL past the end of the list. */
static const om_operand *operand_at(const om_operand *list, uint32_t k) {
    const om_operand *o = list;
    for (uint32_t i = 0; o->kind; i++, o++)
        if (i == k || o->kind == OM_OPERAND_MANY || o->kind == OM_OPERAND_ANY) return o;
    return NULL;
}

static uint32_t operands_needed(const om_operand *list) {
    uint32_t need = 0;
    for (uint32_t i = 0; list[i].kind; i++)
        if (list[i].kind != OM_OPERAND_OPTIONAL && list[i].kind != OM_OPERAND_ANY) need = i + 1;
    return need;
}

bool omi_node_sizes(const om_node_def *def, uint32_t k) {
    const om_operand *o = operand_at(def->in, k);
    return o && o->sizes;
}

static om_status check_counts(om_nctx *c) {
    const om_operand *in = c->def->in, *out = c->def->out;
    uint32_t need = operands_needed(in);
    if (c->n_in < need)
        return omi_problem(c, OM_ERR_MALFORMED, "it has %u inputs; at least %u are defined",
                           c->n_in, need);
    for (uint32_t i = 0; i < c->n_in; i++) {
        const om_operand *o = operand_at(in, i);
        if (!o && c->in[i])
            return omi_problem(c, OM_ERR_MALFORMED, "it has %u inputs; %u are defined", c->n_in, i);
        if (o && o->kind != OM_OPERAND_OPTIONAL && !c->in[i])
            return omi_problem(c, OM_ERR_MALFORMED, "required input %u is absent", i);
    }
    need = operands_needed(out);
    for (uint32_t k = 0; k < need; k++) // of a list of outputs any may be absent
        if (k >= c->n_out || (!c->out[k] && out[k].kind == OM_OPERAND_ONE))
            return omi_problem(c, OM_ERR_MALFORMED, "required output %u is absent", k);
    for (uint32_t k = 0; k < c->n_out; k++)
        if (c->out[k] && !operand_at(out, k))
            return omi_problem(c, OM_ERR_UNSUPPORTED, "output %u is not computed by this library",
                               k);
    return OM_OK;
}

/* ---- types ------------------------------------------------------------------------------------
 */

/* "float32, int64" */
static const char *type_list(uint32_t types, char *buf, size_t n) {
    size_t at = 0;
    buf[0]    = 0;
    for (int32_t t = 0; t < 32; t++)
        if (types >> t & 1 && at < n)
            at += (size_t)snprintf(buf + at, n - at, "%s%s", at ? ", " : "", omi_elem_name(t));
    return buf;
}

static om_status check_type(om_nctx *c, uint32_t i, const om_operand *o) {
    const om_pval *v = c->in[i];
    char list[100];
    if (v->dtype == 0 || (v->dtype > 0 && v->dtype < 32 && o->types >> v->dtype & 1)) return OM_OK;
    if (o->var)
        return omi_problem(
            c, OM_ERR_UNSUPPORTED, "there is no kernel for %s (input %u '%.60s'); %s is computed",
            omi_elem_name(v->dtype), i, v->name, type_list(o->types, list, sizeof list));
    return omi_problem(c, OM_ERR_MALFORMED, "input %u '%.60s' is %s; it must be %s", i, v->name,
                       omi_elem_name(v->dtype), type_list(o->types, list, sizeof list));
}

/* Types of the inputs, and for each letter (A to Z) the input that decided it. */
static om_status check_types(om_nctx *c, const om_pval **letter) {
    for (uint32_t i = 0; i < c->n_in; i++) {
        const om_operand *o = operand_at(c->def->in, i);
        const om_pval *v    = c->in[i];
        if (!o || !v) continue;
        if (v->rank > OM_MAX_RANK)
            return omi_problem(c, OM_ERR_UNSUPPORTED, "input %u has rank %d; up to %d are computed",
                               i, v->rank, OM_MAX_RANK);
        OM_TRY(check_type(c, i, o));
        if (!o->var || !v->dtype) continue;
        const om_pval **first = &letter[o->var - 'A'];
        if (*first && (*first)->dtype != v->dtype)
            return omi_problem(c, OM_ERR_MALFORMED,
                               "inputs '%.60s' and '%.60s' are %s and %s; they must have one type",
                               (*first)->name, v->name, omi_elem_name((*first)->dtype),
                               omi_elem_name(v->dtype));
        if (!*first) *first = v;
    }
    return OM_OK;
}

static void set_out_types(om_nctx *c, const om_pval *const *letter) {
    for (uint32_t k = 0; k < c->n_out; k++) {
        const om_operand *o = operand_at(c->def->out, k);
        if (!o || !c->out[k]) continue;
        c->out[k]->dtype = 0; // of an unknown input, or what parse will say
        if (o->var && letter[o->var - 'A']) c->out[k]->dtype = letter[o->var - 'A']->dtype;
        for (int32_t t = 1; !o->var && t < 32; t++)
            if (o->types == 1u << t) c->out[k]->dtype = t;
    }
}

/* ---- attributes --------------------------------------------------------------------------------
 */

static const om_schema *schema_of(const om_node_def *def, const char *name) {
    for (const om_schema *s = def->attrs; s && s->name; s++)
        if (strcmp(s->name, name) == 0) return s;
    return NULL;
}

static const char *attr_type_name(om_attr_type t) {
    static const char *const names[] = {"nothing",  "a float", "an integer", "a text",
                                        "a tensor", "a graph", "floats",     "integers",
                                        "texts",    "tensors", "graphs"};
    return (size_t)t < OM_COUNT(names) ? names[t] : "of another type";
}

static om_status check_attr(om_nctx *c, const om_attr *a) {
    const om_schema *s = schema_of(c->def, a->name);
    if (!s)
        return omi_problem(c, OM_ERR_MALFORMED,
                           "attribute '%.60s' is not defined for %.40s at opset %lld", a->name,
                           c->def->type, (long long)c->opset);
    if (a->type != s->type)
        return omi_problem(c, OM_ERR_MALFORMED, "attribute '%s' is %s; it must be %s", s->name,
                           attr_type_name(a->type), attr_type_name(s->type));
    if (s->flag && a->i != 0 && a->i != 1)
        return omi_problem(c, OM_ERR_MALFORMED, "attribute '%s' is %lld; 0 and 1 are defined",
                           s->name, (long long)a->i);
    return OM_OK;
}

static om_status check_attrs(om_nctx *c) {
    for (uint32_t i = 0; i < c->node->n_attr; i++)
        OM_TRY(check_attr(c, &c->node->attrs[i]));
    for (const om_schema *s = c->def->attrs; s && s->name; s++)
        if (s->required && !omi_attr(c->node, s->name))
            return omi_problem(c, OM_ERR_MALFORMED, "attribute '%s' is missing", s->name);
    return OM_OK;
}

om_status omi_node_parse(om_nctx *c) {
    const om_pval *letter['Z' - 'A' + 1] = {0};
    c->form                              = NULL;
    OM_TRY(check_counts(c));
    OM_TRY(check_attrs(c));
    OM_TRY(check_types(c, letter));
    set_out_types(c, letter);
    return c->def->parse(c);
}

/* ---- for the parse functions -------------------------------------------------------------------
 */

const om_attr *omi_given(const om_nctx *c, const char *name) {
    return omi_attr(c->node, name);
}

int64_t omi_int(const om_nctx *c, const char *name) {
    const om_schema *s = schema_of(c->def, name);
    const om_attr *a   = s ? omi_attr(c->node, name) : NULL;
    return a ? a->i : s ? s->i : 0;
}

bool omi_flag(const om_nctx *c, const char *name) {
    return omi_int(c, name) != 0;
}

float omi_float(const om_nctx *c, const char *name) {
    const om_schema *s = schema_of(c->def, name);
    const om_attr *a   = s ? omi_attr(c->node, name) : NULL;
    return a ? a->f : s ? s->f : 0;
}

om_status omi_choice(om_nctx *c, const char *name, int n, const char *const *texts, int *out) {
    const om_schema *s = schema_of(c->def, name);
    const om_attr *a   = s ? omi_attr(c->node, name) : NULL;
    const char *v      = a ? a->s.v : s && s->s ? s->s : texts[0];
    size_t len         = a ? a->s.n : strlen(v);
    char all[120];
    size_t at = 0;
    *out      = 0;
    for (int i = 0; i < n; i++) {
        if (len == strlen(texts[i]) && memcmp(v, texts[i], len) == 0) return *out = i, OM_OK;
        if (at < sizeof all)
            at += (size_t)snprintf(all + at, sizeof all - at, "%s%s", i ? ", " : "", texts[i]);
    }
    return omi_problem(c, OM_ERR_MALFORMED, "attribute '%s' is '%.40s'; %s are defined", name, v,
                       all);
}

void *omi_form(om_nctx *c, size_t size) {
    void *f = omi_arena_alloc(c->arena, size);
    c->form = f;
    return f;
}

/* ---- lists that are an attribute or an input ---------------------------------------------------
 */

om_status omi_either(om_nctx *c, const char *attr, uint32_t input, om_either *out) {
    const om_attr *a = schema_of(c->def, attr) ? omi_attr(c->node, attr) : NULL;
    *out             = (om_either){.input = OM_NO_VALUE};
    if (omi_in(c, input) && operand_at(c->def->in, input)) {
        out->input = input;
        out->given = true;
    } else if (a && a->type == OM_ATTR_INT) {
        out->n     = 1;
        out->v     = &a->i; // attributes live as long as the graph, which the program holds
        out->given = true;
    } else if (a) {
        out->n     = a->n <= OM_LIST_MAX ? (int)a->n : OM_LIST_MAX + 1;
        out->v     = a->ints;
        out->given = true;
    }
    if (out->n > OM_LIST_MAX)
        return omi_problem(c, OM_ERR_MALFORMED, "attribute '%s' has %zu entries; %d are possible",
                           attr, a->n, OM_LIST_MAX);
    return OM_OK;
}

om_status omi_input_ints(om_nctx *c, uint32_t i, om_ints *out) {
    const om_pval *v = c->in[i];
    if (v->rank > 1 || v->numel > OM_LIST_MAX)
        return omi_problem(c, OM_ERR_SHAPE,
                           "input %u '%.60s' must be a list of at most %d integers", i, v->name,
                           OM_LIST_MAX);
    if (!v->known && v->numel)
        return omi_problem(
            c, OM_ERR_UNSUPPORTED,
            "the sizes depend on the contents of input %u '%.60s', which are computed "
            "while running",
            i, v->name);
    out->n     = (int)v->numel;
    out->given = true;
    for (int k = 0; k < out->n; k++)
        out->v[k] = omi_element_to_int((const char *)v->known +
                                           (size_t)k * om_dtype_size((om_dtype)v->dtype),
                                       (om_dtype)v->dtype);
    return OM_OK;
}

om_status omi_either_ints(om_nctx *c, const om_either *e, om_ints *out) {
    out->n     = e->given && e->input == OM_NO_VALUE ? e->n : 0;
    out->given = e->given;
    if (e->given && e->input != OM_NO_VALUE) return omi_input_ints(c, e->input, out);
    for (int k = 0; k < out->n; k++)
        out->v[k] = e->v[k];
    return OM_OK;
}

om_status omi_either_early(om_nctx *c, const om_either *e, om_ints *out, bool *known) {
    *known     = false;
    out->n     = 0;
    out->given = e->given;
    if (!e->given || (e->input != OM_NO_VALUE && !c->in[e->input]->known)) return OM_OK;
    OM_TRY(omi_either_ints(c, e, out));
    return *known = true, OM_OK;
}

om_status omi_axis_possible(om_nctx *c, int64_t axis, const om_pval *v) {
    int rank = v->rank < 0 ? OM_MAX_RANK : v->rank;
    if (axis >= -rank && axis < rank) return OM_OK;
    if (v->rank < 0)
        return omi_problem(c, OM_ERR_SHAPE, "axis %lld is outside every rank up to %d",
                           (long long)axis, OM_MAX_RANK);
    return omi_problem(c, OM_ERR_SHAPE, "axis %lld is outside rank %d of '%.60s'", (long long)axis,
                       v->rank, v->name);
}
