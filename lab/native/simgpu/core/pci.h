/* Where a GPU is on the PCI bus. */
#ifndef SIMGPU_PCI_H
#define SIMGPU_PCI_H

#include "simgpu_layout.h"

#include <stdbool.h>

typedef struct { unsigned int domain, bus, slot; } pci_address;

/* Reads "domain:bus:slot" or "bus:slot", in hexadecimal. False for anything else. */
bool pci_read_address(const char *text, pci_address *address);
bool pci_is_at(const simgpu_gpu *gpu, pci_address address);

#endif
