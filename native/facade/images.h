/* What code takes of a GPU at least, by its image. */
#ifndef LAMINA_IMAGES_H
#define LAMINA_IMAGES_H

#include <stdint.h>

/* Bytes of code and variables that an image brings onto the GPU as it is. 0 where it does not tell: source (PTX) and
 * collections for several GPUs, of which the driver makes its choice. */
uint64_t image_bytes(const void *image);
uint64_t image_bytes_of_file(const char *path);

#endif
