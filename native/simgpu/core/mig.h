/* MIG: cutting a GPU into instances. An instance is a unit of the machine file with memory, time and processes of its
 * own; its record is a copy of its GPU's with other numbers. A compute instance takes all of its GPU instance.
 *
 * The word `instance` of a unit: MIG_THERE | MIG_COMPUTE | id | profile << 8 | start << 16. */
#ifndef SIMGPU_MIG_H
#define SIMGPU_MIG_H

#include <stdbool.h>

#include "machine.h"

#define MIG_THERE (1ull << 63)
#define MIG_COMPUTE (1ull << 62)
#define MIG_ANYWHERE UINT32_MAX
#define MIG_ON 1u
#define MIG_PENDING 2u

typedef enum { MIG_OK, MIG_BUSY, MIG_NO_ROOM, MIG_GONE, MIG_WRONG } mig_result;

typedef struct {
    bool there, compute;
    uint32_t id, profile, start;
} mig_instance;

mig_instance mig_read(const machine *m, uint32_t unit);
const simgpu_mig_profile *mig_profile(const machine *m, uint32_t unit, mig_instance instance);
bool mig_on(const machine *m, uint32_t gpu);
/* Whether there is a MIG device of which the process may know. */
bool mig_visible(const machine *m, uint32_t unit);
/* Whether a living process has memory or a context on the unit. */
bool mig_in_use(const machine *m, uint32_t unit);

/* The new mode is pending while the GPU is in use: MIG_BUSY. */
mig_result mig_set_mode(const machine *m, uint32_t gpu, bool on);
/* A GPU instance of the profile with this number, at `start` or where the driver likes it. */
mig_result mig_create(const machine *m, uint32_t gpu, uint32_t profile, uint32_t start, uint32_t *unit);
mig_result mig_destroy(const machine *m, uint32_t unit);
mig_result mig_create_compute(const machine *m, uint32_t unit);
mig_result mig_destroy_compute(const machine *m, uint32_t unit);

/* Bits of the places at which one more instance of a profile could begin now. */
uint32_t mig_places(const machine *m, uint32_t gpu, uint32_t profile);

#endif
