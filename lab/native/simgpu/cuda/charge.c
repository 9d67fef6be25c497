#include "cuda/charge.h"

#include "core/cgroups.h"
#include "core/lane.h"
#include "core/ledger.h"
#include "core/paging.h"
#include "core/slots.h"
#include "cuda/driver.h"
#include "cuda/pool.h"

/* What limits this process on a device besides its memory. */
struct process_limits {
    uint64_t cgroup, cgroup_bytes; /* CGROUP_UNLIMITED: no limit was set, or the driver is too old to have them */
    uint32_t client_mib;           /* of a client of MPS; 0: no limit */
};

static struct process_limits read_limits(const struct device *dev)
{
    struct cgroup_limit limit;
    struct process_limits found = {.cgroup = device_cell(dev)->cgroup,
                                   .cgroup_bytes = CGROUP_UNLIMITED,
                                   .client_mib = lane_limit_mib(&driver.m, dev->gpu, driver.slot)};
    if (cgroups_supported(&driver.m) && cgroups_find_limit(found.cgroup, dev->gpu, &limit))
        found.cgroup_bytes = limit.hard;
    return found;
}

/* Whether the limits leave no space for this much more; then free memory on the GPU does not help. */
static bool is_beyond(const struct device *dev, struct process_limits limits, uint32_t more_mib)
{
    if (limits.client_mib != 0 && lane_held_mib(&driver.m, dev->gpu, driver.slot, more_mib) > limits.client_mib)
        return true;
    return limits.cgroup_bytes != CGROUP_UNLIMITED &&
           cgroups_used_bytes(&driver.m, limits.cgroup, dev->gpu) + more_mib * MIB > limits.cgroup_bytes;
}

bool charge_take_once(struct device *dev, uint32_t mib)
{
    struct process_limits limits = read_limits(dev);
    if (!ledger_take(&driver.m, dev->gpu, driver.slot, mib))
        return false;
    if (!is_beyond(dev, limits, 0)) /* checked afterwards, when others of the cgroup see what was taken */
        return true;
    ledger_give(&driver.m, dev->gpu, driver.slot, mib);
    return false;
}

bool charge_take(struct device *dev, uint32_t mib)
{
    driver_delay(driver.m.head->allocation_us);
    if (mib == 0 || charge_take_once(dev, mib))
        return true;
    slots_sweep(&driver.m, 0);
    if (charge_take_once(dev, mib))
        return true;
    pool_trim_all(dev);
    if (charge_take_once(dev, mib))
        return true;
    uint32_t moved = 0;
    bool taken = false;
    while (!taken && !is_beyond(dev, read_limits(dev), mib) && paging_evict(&driver.m, dev->gpu, mib, &moved))
        taken = charge_take_once(dev, mib); /* otherwise another process was faster */
    driver_delay(moved * PAGING_US_PER_MIB);
    return taken;
}

void charge_give(struct device *dev, uint32_t mib)
{
    ledger_give(&driver.m, dev->gpu, driver.slot, mib);
}

/* What is left on the GPU, or below a limit if that is less. */
static uint64_t least(uint64_t left, uint64_t limit, uint64_t used)
{
    uint64_t own = limit > used ? limit - used : 0;
    return own < left ? own : left;
}

/* A cgroup's limit shows as the total; that of a client of MPS only in what is left. */
void charge_available(const struct device *dev, uint64_t *available, uint64_t *total)
{
    uint64_t all = device_record(dev)->memory_mib * MIB, left = all - ledger_used(&driver.m, dev->gpu) * MIB;
    struct process_limits limits = read_limits(dev);
    *total = limits.cgroup_bytes < all ? limits.cgroup_bytes : all;
    if (limits.cgroup_bytes < all)
        left = least(left, limits.cgroup_bytes, cgroups_used_bytes(&driver.m, limits.cgroup, dev->gpu));
    if (limits.client_mib != 0)
        left = least(left, limits.client_mib * MIB, lane_held_mib(&driver.m, dev->gpu, driver.slot, 0) * MIB);
    *available = left;
}
