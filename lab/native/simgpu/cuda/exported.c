#include "cuda/exported.h"

#include "cuda/driver.h"

imported exported_describe(const device *dev, uint64_t number, uint32_t mib)
{
    return (imported){.owner = driver_identity(), .number = number, .gpu = dev->gpu, .slot = driver.slot, .mib = mib};
}

bool exported_is_own(const imported *what)
{
    return what->owner == driver_identity();
}

bool exported_has_owner(const imported *what)
{
    return driver.m.processes[what->slot].identity == what->owner;
}

bool exported_open(const imported *what)
{
    return imports_open(&driver.m, what, driver_identity());
}

void exported_close(const imported *what)
{
    imports_close(&driver.m, what, driver_identity());
}
