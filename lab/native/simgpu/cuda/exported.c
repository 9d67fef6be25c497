#include "cuda/exported.h"

#include "cuda/driver.h"

struct imported exported_describe(const struct device *dev, uint64_t number, uint32_t mib)
{
    return (struct imported){
        .owner = driver_identity(), .number = number, .gpu = dev->gpu, .slot = driver.slot, .mib = mib};
}

bool exported_is_own(const struct imported *what)
{
    return what->owner == driver_identity();
}

bool exported_has_owner(const struct imported *what)
{
    return driver.m.processes[what->slot].identity == what->owner;
}

bool exported_mark_freed(const struct imported *what)
{
    return imports_mark_freed(&driver.m, what);
}

bool exported_open(const struct imported *what)
{
    return imports_open(&driver.m, what, driver_identity());
}

void exported_close(const struct imported *what)
{
    imports_close(&driver.m, what, driver_identity());
}
