/* MIG: partitioning a GPU into instances. An instance is a unit of the machine file with memory, time and processes of
 * its own; its record is a copy of its GPU's with other numbers. A compute instance takes all of its GPU instance.
 *
 * The word `instance` of a unit: MIG_EXISTS | MIG_COMPUTE | id | profile << 8 | start << 16. */
#ifndef SIMGPU_MIG_H
#define SIMGPU_MIG_H

#include "core/machine.h"

#include <stdbool.h>

#define MIG_EXISTS (1ull << 63)
#define MIG_COMPUTE (1ull << 62)
#define MIG_ANYWHERE UINT32_MAX
#define MIG_ENABLED 1
#define MIG_PENDING 2

enum mig_result { MIG_OK, MIG_BUSY, MIG_NO_SPACE, MIG_NOT_FOUND, MIG_NOT_ENABLED };

struct mig_instance {
    bool exists, compute;
    uint32_t id, profile, start;
};

struct mig_instance mig_read_instance(const struct machine *m, uint32_t unit);
const struct simgpu_mig_profile *mig_profile_of(const struct machine *m, uint32_t unit, struct mig_instance instance);
bool mig_is_enabled(const struct machine *m, uint32_t gpu);
/* Whether there is a MIG device that the process may see. */
bool mig_is_visible(const struct machine *m, uint32_t unit);
/* Whether a living process has memory or a context on the unit. */
bool mig_is_in_use(const struct machine *m, uint32_t unit);

/* The new mode is pending while the GPU is in use: MIG_BUSY. */
enum mig_result mig_set_mode(const struct machine *m, uint32_t gpu, bool on);
/* A GPU instance of the profile with this number, at `start` or where the driver chooses. */
enum mig_result mig_create(const struct machine *m, uint32_t gpu, uint32_t profile, uint32_t start, uint32_t *unit);
enum mig_result mig_destroy(const struct machine *m, uint32_t unit);
enum mig_result mig_create_compute(const struct machine *m, uint32_t unit);
enum mig_result mig_destroy_compute(const struct machine *m, uint32_t unit);

/* A bit for each place at which another instance of the profile could begin now. */
uint32_t mig_free_places(const struct machine *m, uint32_t gpu, uint32_t profile);

#endif
