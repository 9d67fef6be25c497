/* What this process is charged on a device. Before memory is refused, everything is tried that a driver can do. */
#include "cgroups.h"
#include "memory.h"
#include "paging.h"

/* What the process's cgroup may hold on the device; CGROUP_UNLIMITED where nobody said so, or the driver is too old. */
static uint64_t cgroup_bytes(const device *dev, uint64_t *cgroup) {
    cgroup_limit limit;
    *cgroup = machine_cell(&driver.m, dev->gpu, driver.slot)->cgroup;
    return machine_limits_cgroups(&driver.m) && cgroups_get(*cgroup, dev->gpu, &limit) ? limit.hard : CGROUP_UNLIMITED;
}

bool charge_take_once(device *dev, uint32_t mib) {
    uint64_t cgroup, most = cgroup_bytes(dev, &cgroup);
    uint32_t limit = lane_limit_mib(&driver.m, dev->gpu, driver.slot);
    if (!ledger_take(&driver.m, dev->gpu, driver.slot, mib)) return false;
    if (limit != 0 && ledger_held(&driver.m, dev->gpu, driver.slot) > limit) {
        ledger_give(&driver.m, dev->gpu, driver.slot, mib);
        return false;
    }
    if (most == CGROUP_UNLIMITED || cgroups_used(&driver.m, cgroup, dev->gpu) <= most) return true;
    ledger_give(&driver.m, dev->gpu, driver.slot, mib);
    return false;
}

/* Whether the cgroup's limit, or that of a client of MPS, leaves no room for so much; room on the GPU does not help then. */
static bool is_full(const device *dev, uint32_t mib) {
    uint64_t cgroup, most = cgroup_bytes(dev, &cgroup);
    uint32_t limit = lane_limit_mib(&driver.m, dev->gpu, driver.slot);
    if (limit != 0 && ledger_held(&driver.m, dev->gpu, driver.slot) + mib > limit) return true;
    return most != CGROUP_UNLIMITED && cgroups_used(&driver.m, cgroup, dev->gpu) + mib * MIB > most;
}

bool charge_take(device *dev, uint32_t mib) {
    driver_take_time(driver.m.head->allocation_us);
    if (mib == 0 || charge_take_once(dev, mib)) return true;
    slots_sweep(&driver.m, 0);
    if (charge_take_once(dev, mib)) return true;
    pool_trim_all(dev);
    if (charge_take_once(dev, mib)) return true;
    while (!is_full(dev, mib) && paging_evict(&driver.m, dev->gpu, mib))
        if (charge_take_once(dev, mib)) return true; /* else somebody was faster */
    return false;
}

void charge_give(device *dev, uint32_t mib) { ledger_give(&driver.m, dev->gpu, driver.slot, mib); }

void charge_rest(const device *dev, uint64_t *rest, uint64_t *total) {
    uint64_t cgroup, most = cgroup_bytes(dev, &cgroup), all = device_record(dev)->memory_mib * MIB;
    uint64_t left = all - ledger_used(&driver.m, dev->gpu) * MIB;
    uint64_t used = most < all ? cgroups_used(&driver.m, cgroup, dev->gpu) : 0;
    *total = most < all ? most : all;
    *rest = most >= all ? left : used >= most ? 0 : most - used < left ? most - used : left;
}
