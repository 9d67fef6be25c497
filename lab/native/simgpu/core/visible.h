/* Which GPUs and MIG instances a list in the environment names.
 *
 * Example: NVIDIA_VISIBLE_DEVICES=0,MIG-1a2b on a machine with two GPUs, where the UUID of an instance on GPU 1 begins
 * with MIG-1a2b. The process sees both GPUs; of GPU 0 every instance, of GPU 1 only that one. */
#ifndef SIMGPU_VISIBLE_H
#define SIMGPU_VISIBLE_H

#include "core/machine.h"

/* Reads NVIDIA_VISIBLE_DEVICES into the machine. Without it, or when it says "all", every GPU is visible. */
void visible_read(struct machine *m);

/* Numbers of the GPUs that a comma list of indices and UUID prefixes names among `from`, and of visible MIG instances
 * that it names by UUID; reading stops at the first item that names none, and an item that is named twice makes the
 * list void. `out` has room for SIMGPU_MAX_UNITS. Returns how many. */
uint32_t visible_select(const struct machine *m, const char *list, const uint32_t *from, uint32_t from_count,
                        uint32_t *out);

#endif
