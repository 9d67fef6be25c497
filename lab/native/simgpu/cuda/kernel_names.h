/* The names of the kernels in an image of code. Images that the simulator cannot read have every kernel: fat binaries,
 * whose contents may be compressed, and the texts of module.h. */
#ifndef SIMGPU_KERNEL_NAMES_H
#define SIMGPU_KERNEL_NAMES_H

#include <stdbool.h>
#include <stddef.h>

struct kernel_names {
    bool known;
    int target;  /* of PTX, like 50 for sm_50; 0: not known */
    char *names; /* each with its zero byte */
    size_t bytes;
};

/* Whether this is code at all: the driver refuses other images. */
bool kernel_names_is_code(const void *image);
/* False without host memory. */
bool kernel_names_read(struct kernel_names *out, const void *image);
void kernel_names_free(struct kernel_names *n);
bool kernel_names_have(const struct kernel_names *n, const char *name);

#endif
