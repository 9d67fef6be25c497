/* The names of the kernels in an image of code. Images that the simulator cannot read have every kernel: fat binaries,
 * whose contents may be compressed, and any text that is not PTX. */
#ifndef SIMGPU_KERNEL_NAMES_H
#define SIMGPU_KERNEL_NAMES_H

#include <stdbool.h>
#include <stddef.h>

typedef struct {
    bool known;
    char *names; /* each with its zero byte */
    size_t bytes;
} kernel_names;

/* False without host memory. */
bool kernel_names_read(kernel_names *out, const void *image);
void kernel_names_free(kernel_names *n);
bool kernel_names_have(const kernel_names *n, const char *name);

#endif
