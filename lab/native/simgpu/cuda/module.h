/* Modules. Two images exist only here, for programs that need no compiler: the text "simgpu", and "mib=" with a number,
 * which takes so much memory for its code and variables. A module of another image takes none. */
#ifndef SIMGPU_MODULE_H
#define SIMGPU_MODULE_H

#include "cuda/exports.h"

/* A module that takes no memory and belongs to no context, with the kernels of the image; NULL without host memory. */
CUmodule module_create(const void *image);
/* The image of code in a file, with a zero byte after it; the caller frees it. */
CUresult module_read_file(const char *path, char **out);

#endif
