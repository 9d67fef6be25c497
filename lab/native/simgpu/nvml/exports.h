/* The library's functions, which are exported under their own names. */
#ifndef SIMGPU_NVML_EXPORTS_H
#define SIMGPU_NVML_EXPORTS_H

#pragma GCC visibility push(default)
#include "nvml_prototypes.h"
/* Not of NVIDIA's NVML: what the simulated nvidia-smi calls for a GPU's time slice. */
nvmlReturn_t simgpuDeviceGetTimeSlice(nvmlDevice_t device, unsigned int *slice);
nvmlReturn_t simgpuDeviceSetTimeSlice(nvmlDevice_t device, unsigned int slice);
#pragma GCC visibility pop

#endif
