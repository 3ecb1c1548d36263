/*
 * print.c -- om_text_of: a tensor as text for people.
 *
 * Axes longer than eight show their first and last three entries, so the text of any tensor of
 * rank r has at most 7^r elements. Numbers look the same whatever the process's locale is.
 */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/str.h"
#include "compute/move.h"
#include "tensor/seam.h"

enum { AXIS_WHOLE = 8, AXIS_EDGE = 3 };

static void put_float(om_str *s, double v, int digits) {
    if (v != v) {
        omi_str_puts(s, "nan");
        return;
    }
    if (isinf(v)) {
        omi_str_puts(s, v > 0 ? "inf" : "-inf");
        return;
    }
    omi_str_printf(s, "%.*g", digits, v);
}

static void put_element(om_str *s, const om_tensor *t, int64_t at) {
    size_t size      = om_dtype_size((om_dtype)t->dtype);
    const void *data = (const char *)t->storage->buf->data + (size_t)at * size;
    om_dtype type    = (om_dtype)t->dtype;
    switch (omi_dtype(t->dtype)->class) {
    case OM_CLASS_FLOAT:
        put_float(s, omi_element_to_double(data, type), size == 4 ? 6 : 10);
        break;
    case OM_CLASS_SIGNED:
    case OM_CLASS_UNSIGNED:
        omi_str_printf(s, "%lld", (long long)omi_element_to_int(data, type));
        break;
    case OM_CLASS_BOOL:
        omi_str_puts(s, omi_element_to_int(data, type) ? "true" : "false");
        break;
    default:
        omi_no_type();
    }
}

static void put_axis(om_str *s, const om_tensor *t, int axis, int64_t at) {
    if (axis == t->rank) {
        put_element(s, t, at);
        return;
    }
    int64_t n = t->shape[axis];
    bool leaf = axis + 1 == t->rank;
    omi_str_puts(s, "[");
    for (int64_t i = 0; i < n; i++) {
        if (i > 0) {
            omi_str_puts(s, leaf ? ", " : ",\n");
            for (int k = 0; !leaf && k <= axis; k++)
                omi_str_puts(s, " ");
        }
        if (n > AXIS_WHOLE && i == AXIS_EDGE) {
            omi_str_puts(s, "...");
            i = n - AXIS_EDGE - 1;
            continue;
        }
        put_axis(s, t, axis + 1, at + i * t->strides[axis]);
    }
    omi_str_puts(s, "]");
}

char *om_text_of(const om_tensor *t) {
    OMI_ENTER("om_text_of");
    char shape[160];
    om_str s = {0};
    if (omi_check_arg(t, "the tensor") != OM_OK || omi_seam_read(t, OM_READ_EXPORT) != OM_OK)
        return NULL;
    omi_str_printf(&s, "%s %s\n", om_dtype_name((om_dtype)t->dtype),
                   omi_shape_text(shape, sizeof shape, t->rank, t->shape));
    put_axis(&s, t, 0, t->offset);
    // The caller frees by the length of the text, so the block must have that size.
    char *text = s.failed ? NULL : omi_alloc(s.n + 1);
    if (text) memcpy(text, s.v, s.n + 1);
    omi_str_free(&s);
    return text;
}
