/* What the parts of the simulated NVML share. */
#ifndef SIMGPU_NVML_LIBRARY_H
#define SIMGPU_NVML_LIBRARY_H

#include <stdbool.h>

#include "ledger.h"
#include "machine.h"
#include "mig.h"
#include "nvml_min.h"
#include "slots.h"
#include "timeline.h"

#define SIM_API __attribute__((visibility("default")))
#define MIB (1ull << 20)
/* So long the memory of a killed process may still show: a driver takes that long too, and asking must be cheap. */
#define MEMORY_PAUSE_NS 5000000u

struct nvmlDevice_st {
    uint32_t gpu;   /* number in the machine file */
    uint32_t index; /* among the visible ones; of a MIG device unused */
};

typedef struct {
    machine m;
    uint32_t uses;
    struct nvmlDevice_st devices[SIMGPU_MAX_GPUS];
    struct nvmlDevice_st units[SIMGPU_MAX_UNITS]; /* MIG devices, and GPU and compute instances, by their numbers */
} library_state;

extern library_state library;

/* NVML_SUCCESS when the library is initialised, the handle is one of ours and the GPU has not fallen off the bus;
 * then *gpu is its record. */
nvmlReturn_t handle_check(nvmlDevice_t device, simgpu_gpu **gpu);
/* The same for a GPU alone. */
nvmlReturn_t gpu_check(nvmlDevice_t device, simgpu_gpu **gpu);
bool library_ready(void);
/* Copies a string as NVML does: INSUFFICIENT_SIZE when it does not fit. */
nvmlReturn_t copy_text(char *to, unsigned int length, const char *text);

/* Start of a call: leaves with an error for a bad handle or a missing output. */
#define FOR_DEVICE(device, output)                        \
    simgpu_gpu *gpu;                                      \
    nvmlReturn_t bad_handle = handle_check(device, &gpu); \
    if (bad_handle != NVML_SUCCESS) return bad_handle;    \
    if ((output) == NULL) return NVML_ERROR_INVALID_ARGUMENT

/* And for a question about a GPU that a MIG device does not answer. */
#define FOR_GPU(device, output)                        \
    simgpu_gpu *gpu;                                   \
    nvmlReturn_t bad_handle = gpu_check(device, &gpu); \
    if (bad_handle != NVML_SUCCESS) return bad_handle; \
    if ((output) == NULL) return NVML_ERROR_INVALID_ARGUMENT

#endif
