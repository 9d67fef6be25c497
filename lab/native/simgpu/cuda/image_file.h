/* Images of code in files. */
#ifndef SIMGPU_IMAGE_FILE_H
#define SIMGPU_IMAGE_FILE_H

#include "cuda/exports.h"

/* The whole file, with a zero byte after it; the caller frees it. */
CUresult image_file_read(const char *path, char **out);

#endif
