/* Where a GPU is on the PCI bus. */
#ifndef SIMGPU_NVML_BUS_H
#define SIMGPU_NVML_BUS_H

#include "nvml/library.h"

/* Fills the address; what else there is to say becomes 0. */
void bus_fill_address(const struct simgpu_gpu *gpu, nvmlPciInfo_t *pci);

#endif
