#include "memory/lending.h"

#include "cuda/devices.h"
#include "memory/reserve.h"
#include "shared/assertion.h"
#include "shared/facade.h"
#include "shared/live_limits.h"
#include "shared/log.h"

#include <stdatomic.h>
#include <time.h>

/* A request that becomes managed memory counts as plain memory until it has. */
enum { TRIES = 20 };
static const struct timespec TRY_AGAIN = {.tv_nsec = 1000000}, CALL_AGAIN = {.tv_nsec = 5000000};

static const struct account *own_account(void)
{
    return &facade_open()->account;
}

static bool is_within_physical(int device)
{
    return !may_borrow(own_account(), (uint32_t)device) ||
           account_pinned(own_account(), (uint32_t)device) <= live_physical(own_account(), (uint32_t)device);
}

static bool fits_soon(int device)
{
    for (int tries = 0; tries < TRIES; tries++) {
        if (is_within_physical(device))
            return true;
        nanosleep(&TRY_AGAIN, NULL);
    }
    return is_within_physical(device);
}

static void log_refusal(int device)
{
    atomic_fetch_add(&own_account()->usage->devices[device].refusals, 1);
    log_line(LOG_ERROR, "Device %d OOM %llu / %llu of the guaranteed memory, which alone serves such requests",
             device_ordinal(device), (unsigned long long)account_pinned(own_account(), (uint32_t)device),
             (unsigned long long)live_physical(own_account(), (uint32_t)device));
}

CUresult reserve_fixed_quietly(int device, enum lamina_kind kind, uint64_t bytes)
{
    CUresult result = reserve_quietly(device, kind, bytes);
    if (result != CUDA_SUCCESS || fits_soon(device))
        return result;
    unreserve(device, kind, bytes);
    return CUDA_ERROR_OUT_OF_MEMORY;
}

CUresult reserve_fixed(int device, enum lamina_kind kind, uint64_t bytes)
{
    CUresult result = reserve(device, kind, bytes);
    if (result != CUDA_SUCCESS || fits_soon(device))
        return result;
    log_refusal(device);
    unreserve(device, kind, bytes);
    return CUDA_ERROR_OUT_OF_MEMORY;
}

uint64_t reserve_available_fixed(int device)
{
    uint64_t available = reserve_available(device);
    if (!may_borrow(own_account(), (uint32_t)device))
        return available;
    uint64_t physical = live_physical(own_account(), (uint32_t)device);
    uint64_t pinned = account_pinned(own_account(), (uint32_t)device), rest = physical > pinned ? physical - pinned : 0;
    return rest < available ? rest : available;
}

bool lending_wait(int device, uint64_t *since)
{
    ASSERT(device >= 0 && device < LAMINA_MAX_DEVICES);
    const struct lamina_arbiter *arbiter = facade_open()->arbiter;
    uint64_t now = monotonic_ns();
    if (*since == 0)
        *since = now;
    if (atomic_load(&arbiter->lendings[device].neighbors_borrow) == 0 || !is_within_physical(device) ||
        now - *since >= (uint64_t)LENDING_WAIT_MS * 1000000)
        return false;
    nanosleep(&CALL_AGAIN, NULL);
    return true;
}
