#include "cuda/reclaim.h"

#include "core/paging.h"
#include "core/slots.h"
#include "cuda/charge.h"
#include "cuda/ordered_free.h"
#include "cuda/pool.h"

/* Managed memory moves to the host. Of several processes that want the space it leaves, another may be faster. */
static bool take_from_managed(struct device *dev, uint32_t mib)
{
    uint32_t moved = 0;
    bool taken = false;
    while (!taken && !charge_is_beyond_limits(dev, mib) && paging_evict(&driver.m, dev->gpu, mib, &moved))
        taken = charge_take(dev, mib);
    driver_delay(moved * PAGING_US_PER_MIB);
    return taken;
}

bool reclaim_take(struct device *dev, uint32_t mib)
{
    driver_delay(driver.m.head->allocation_us);
    ordered_free_collect();
    if (mib == 0 || charge_take(dev, mib))
        return true;
    slots_sweep(&driver.m, 0); /* what dead processes hold */
    if (charge_take(dev, mib))
        return true;
    pool_trim_all(dev);
    return charge_take(dev, mib) || take_from_managed(dev, mib);
}
