/* Modules. A module takes no memory unless its image is the text "mib=" and a number: then so much, for its code and
 * variables. */
#ifndef SIMGPU_MODULE_H
#define SIMGPU_MODULE_H

#include "exports.h"

/* A module that takes no memory and belongs to no context, with the kernels of the image; NULL without host memory. */
CUmodule module_create(const void *image);

#endif
