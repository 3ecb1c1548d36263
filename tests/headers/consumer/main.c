/* A project outside the tree: two tensors, one product. */
#include <onemodel.h>
#include <stdio.h>

int main(void) {
    float v[]    = {1, 2, 3, 4};
    om_tensor *a = om_from(v, OM_F32, OM_DIMS(2, 2)), *y = om_matmul(a, a);
    om_error e;
    if (om_catch(&e)) return printf("%s: %s\n", e.where, e.message), 1;
    float got[4];
    if (om_copy_out(y, got, sizeof got)) return 1;
    printf("%s: %g %g %g %g\n", om_version(), (double)got[0], (double)got[1], (double)got[2],
           (double)got[3]);
    om_scope_drain();
    return !(got[0] == 7 && got[1] == 10 && got[2] == 15 && got[3] == 22);
}
