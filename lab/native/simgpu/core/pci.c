#include "core/pci.h"

#include <stdio.h>

bool pci_read_address(const char *text, struct pci_address *address)
{
    if (sscanf(text, "%x:%x:%x", &address->domain, &address->bus, &address->slot) == 3)
        return true;
    address->domain = 0;
    return sscanf(text, "%x:%x", &address->bus, &address->slot) == 2;
}

bool pci_is_at(const struct simgpu_gpu *gpu, struct pci_address address)
{
    return gpu->pci_domain == address.domain && gpu->pci_bus == address.bus && gpu->pci_slot == address.slot;
}
