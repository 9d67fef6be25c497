/* The least that code takes of a GPU, by its image. */
#ifndef LAMINA_IMAGES_H
#define LAMINA_IMAGES_H

#include <stdint.h>

/* Bytes of code and variables that an image brings onto the GPU as it is. 0 where it does not say: for source (PTX),
 * and for collections for several GPUs, from which the driver chooses. */
uint64_t image_bytes(const void *image);
uint64_t image_bytes_of_file(const char *path);

#endif
