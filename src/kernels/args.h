/*
 * args.h -- the argument structs of kernel entries. Plain pointers, counts and element strides; the
 * caller has checked everything and split the work.
 */
#ifndef OM_KERNELS_ARGS_H
#define OM_KERNELS_ARGS_H

#include "base/compiler.h"

#endif
