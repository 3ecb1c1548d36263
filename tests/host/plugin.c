/*
 * plugin.c -- a shared object that a host loads and that has the static library inside.
 */
#include "onemodel.h"

__attribute__((visibility("default"))) float plugin_sum(void);

float plugin_sum(void) {
    float total = -1;
    OM_SCOPE {
        om_tensor *x = om_full(2.0, OM_F32, OM_DIMS(300, 300));
        total        = om_item_f32(om_sum(om_relu(x), 0, NULL, false));
    }
    return om_catch(NULL) == OM_OK ? total : -1;
}
