/* Where a GPU is on the PCI bus. */
#ifndef SIMGPU_PCI_H
#define SIMGPU_PCI_H

#include "simgpu_layout.h"

#include <stdbool.h>

struct pci_address { unsigned int domain, bus, slot; };

/* Reads "domain:bus:slot" or "bus:slot", in hexadecimal. False for anything else. */
bool pci_read_address(const char *text, struct pci_address *address);
bool pci_is_at(const struct simgpu_gpu *gpu, struct pci_address address);

#endif
