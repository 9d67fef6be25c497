#include "shared/live_limits.h"

#include "shared/assertion.h"

#include <stdatomic.h>
#include <time.h>

#define STALE_NS UINT64_C(300000000)

uint64_t monotonic_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

bool arbiter_is_current(const struct lamina_arbiter *arbiter, uint64_t now)
{
    /* Relaxed: no other data is read because of its value. */
    uint64_t last = atomic_load_explicit(&arbiter->heartbeat, memory_order_relaxed);
    return now - last + STALE_NS < 2 * STALE_NS;
}

uint64_t live_memory(const struct account *account, uint32_t device)
{
    ASSERT(device < account->limits->device_count);
    uint64_t first = account->limits->devices[device].memory_bytes;
    /* In the order of all atomic operations: a process adds a request before it reads the limit, and the agent reads
     * the account after it has lowered the limit, so one of them sees the other. */
    uint64_t live = account->arbiter == NULL ? 0 : atomic_load(&account->arbiter->devices[device].memory_bytes);
    if (live == 0 || (live > first && !arbiter_is_current(account->arbiter, monotonic_ns())))
        return first;
    return live;
}

bool may_borrow(const struct account *account, uint32_t device)
{
    ASSERT(device < account->limits->device_count);
    return account->limits->devices[device].request_bytes != 0;
}

static const struct lamina_lending *find_lending(const struct account *account, uint32_t device)
{
    return account->arbiter == NULL ? NULL : &account->arbiter->lendings[device];
}

/* As for the limit: more than at the start counts while the heartbeat is new, less always. */
static uint64_t live_request(const struct account *account, uint32_t device)
{
    uint64_t first = account->limits->devices[device].request_bytes;
    uint64_t live =
        find_lending(account, device) == NULL ? 0 : atomic_load(&find_lending(account, device)->request_bytes);
    if (live == 0 || (live > first && !arbiter_is_current(account->arbiter, monotonic_ns())))
        return first;
    return live;
}

uint64_t live_physical(const struct account *account, uint32_t device)
{
    ASSERT(device < account->limits->device_count);
    const struct lamina_limit *limit = &account->limits->devices[device];
    bool all = limit->request_bytes != 0 && limit->physical_bytes == limit->request_bytes;
    return all ? live_request(account, device) : limit->physical_bytes;
}

uint64_t live_allowed(const struct account *account, uint32_t device)
{
    uint64_t most = live_memory(account, device);
    if (!may_borrow(account, device))
        return most;
    uint64_t request = live_request(account, device);
    uint64_t lent =
        find_lending(account, device) == NULL ? 0 : atomic_load(&find_lending(account, device)->allowed_bytes);
    uint64_t allowed = lent > request && arbiter_is_current(account->arbiter, monotonic_ns()) ? lent : request;
    return allowed < most ? allowed : most;
}

uint32_t live_cores(const struct account *account, uint32_t device, uint64_t now)
{
    ASSERT(device < account->limits->device_count);
    uint32_t first = account->limits->devices[device].cores_percent;
    uint64_t live = account->arbiter == NULL ? 0 : atomic_load(&account->arbiter->devices[device].cores_percent);
    if (live == 0 || live > 100 || (live > first && !arbiter_is_current(account->arbiter, now)))
        return first;
    return (uint32_t)live;
}
