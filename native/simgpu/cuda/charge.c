/* What this process is charged on a device. Before memory is refused, everything is tried that a driver can do. */
#include "memory.h"
#include "paging.h"

bool charge_take(device *dev, uint32_t mib) {
    driver_take_time(driver.m.head->allocation_us);
    if (mib == 0 || ledger_take(&driver.m, dev->gpu, driver.slot, mib)) return true;
    slots_sweep(&driver.m, 0);
    if (ledger_take(&driver.m, dev->gpu, driver.slot, mib)) return true;
    pool_trim_all(dev);
    if (ledger_take(&driver.m, dev->gpu, driver.slot, mib)) return true;
    while (paging_evict(&driver.m, dev->gpu, mib))
        if (ledger_take(&driver.m, dev->gpu, driver.slot, mib)) return true; /* else somebody was faster */
    return false;
}

void charge_give(device *dev, uint32_t mib) { ledger_give(&driver.m, dev->gpu, driver.slot, mib); }
