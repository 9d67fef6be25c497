/* Handles of GPUs and MIG devices. */
#ifndef SIMGPU_NVML_DEVICE_H
#define SIMGPU_NVML_DEVICE_H

#include "nvml/library.h"

/* Start of a call about a device: *gpu is its record. An error when the library is not initialized, the handle is not
 * valid, the GPU has fallen off the bus, or the output is missing. */
nvmlReturn_t device_find(nvmlDevice_t device, const void *out, struct simgpu_gpu **gpu);
/* The same for a query that a MIG device does not answer. */
nvmlReturn_t device_find_gpu(nvmlDevice_t device, const void *out, struct simgpu_gpu **gpu);
/* The same for a change, which takes root: a container may not make it. */
nvmlReturn_t device_find_to_change(nvmlDevice_t device, struct simgpu_gpu **gpu);
/* The handle of a GPU by its number in the machine file; NULL when it is not visible. */
nvmlDevice_t device_handle(uint32_t gpu);

/* A query whose answer is one value. `gpu` is the device's record. */
#define DEVICE_VALUE(function, type, value)                                                                            \
    nvmlReturn_t function(nvmlDevice_t device, type *out)                                                              \
    {                                                                                                                  \
        struct simgpu_gpu *gpu;                                                                                        \
        TRY(device_find(device, out, &gpu));                                                                           \
        *out = (type)(value);                                                                                          \
        return NVML_SUCCESS;                                                                                           \
    }

#endif
