/* Libraries for forward compatibility in an image. */
#ifndef LAMINA_COMPAT_H
#define LAMINA_COMPAT_H

#include <stdbool.h>

/* Called for each libcuda.so.VERSION below /usr/local/cuda-VERSION/compat of the container whose root is `root`, with
 * its path on the node. Returns false when `each` did, or when there is no memory. */
bool compat_each(const char *root, bool (*each)(const char *path, void *data), void *data);

/* The first number of a driver's version in the name of its library, like 580 of libcuda.so.580.65.06. 0: it has none.
 */
unsigned compat_major(const char *path);

#endif
