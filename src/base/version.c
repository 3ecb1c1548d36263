/*
 * version.c -- the version string.
 */
#include "onemodel/base.h"

#define STR2(x) #x
#define STR(x)  STR2(x)

const char *om_version(void) {
    return STR(OM_VERSION_MAJOR) "." STR(OM_VERSION_MINOR) "." STR(OM_VERSION_PATCH);
}
