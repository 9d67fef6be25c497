/* The library's state in this process. */
#ifndef SIMGPU_NVML_LIBRARY_H
#define SIMGPU_NVML_LIBRARY_H

#include "core/machine.h"
#include "core/try.h"
#include "nvml/exports.h"

#include <stdbool.h>

/* For how long a killed process's memory may still be shown. A driver takes that long too, and queries are cheap. */
#define MEMORY_PAUSE_NS 5000000

struct nvmlDevice_st {
    uint32_t gpu;   /* number in the machine file */
    uint32_t index; /* among the visible ones; not used for a MIG device */
};

struct library_state {
    struct machine m;
    _Atomic uint32_t uses;
    struct nvmlDevice_st devices[SIMGPU_MAX_GPUS];
    struct nvmlDevice_st units[SIMGPU_MAX_UNITS]; /* MIG devices, and GPU and compute instances, by their numbers */
};

extern struct library_state library;

/* An error when nvmlInit was not called, or nvmlShutdown as often. */
nvmlReturn_t library_check_ready(void);

/* Copies a string as NVML does: INSUFFICIENT_SIZE when it does not fit. */
nvmlReturn_t library_copy_text(char *to, unsigned int length, const char *text);

#endif
