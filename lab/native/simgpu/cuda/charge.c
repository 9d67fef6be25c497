#include "cuda/charge.h"

#include "core/cgroups.h"
#include "core/lane.h"
#include "core/ledger.h"
#include "core/slots.h"
#include "cuda/arena.h"
#include "cuda/driver.h"

/* What limits this process on a device besides its memory. */
struct process_limits {
    uint64_t cgroup, cgroup_bytes; /* CGROUP_UNLIMITED: no limit was set, or the driver is too old to have them */
    uint32_t client_mib;           /* of a client of MPS; 0: no limit */
};

uint32_t charge_round_up_mib(size_t size)
{
    const size_t pages = (size + PAGE_BYTES - 1) / PAGE_BYTES;
    return size > (size_t)INT32_MAX * MIB ? INT32_MAX : (uint32_t)(pages * (PAGE_BYTES / MIB));
}

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
           slots_cgroup_bytes(&driver.m, limits.cgroup, dev->gpu) + more_mib * MIB > limits.cgroup_bytes;
}

bool charge_is_beyond_limits(const struct device *dev, uint32_t more_mib)
{
    return is_beyond(dev, read_limits(dev), more_mib);
}

bool charge_take(struct device *dev, uint32_t mib)
{
    struct process_limits limits = read_limits(dev);
    if (!ledger_take(&driver.m, dev->gpu, driver.slot, mib))
        return false;
    if (!is_beyond(dev, limits, 0)) /* checked afterwards, when others of the cgroup see what was taken */
        return true;
    ledger_give(&driver.m, dev->gpu, driver.slot, mib);
    return false;
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
        left = least(left, limits.cgroup_bytes, slots_cgroup_bytes(&driver.m, limits.cgroup, dev->gpu));
    if (limits.client_mib != 0)
        left = least(left, limits.client_mib * MIB, lane_held_mib(&driver.m, dev->gpu, driver.slot, 0) * MIB);
    *available = left;
}
