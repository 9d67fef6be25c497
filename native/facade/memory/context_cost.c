#include "memory/context_cost.h"

#include "cuda/process.h"
#include "memory/driver_usage.h"
#include "memory/reserve.h"
#include "shared/assertion.h"
#include "shared/facade.h"

#include <stdatomic.h>
#include <time.h>

/* A context on current GPUs takes 100 to 600 MiB. The process that finds out the cost reserves AMPLE meanwhile, or what
 * is left. LIKELY is charged where the driver gives no figure at all. A figure outside LEAST..MOST is not that of a
 * context; in the usage file anything may be written. */
static const uint64_t AMPLE = UINT64_C(1) << 30, LIKELY = UINT64_C(512) << 20, LEAST = UINT64_C(16) << 20,
                      MOST = UINT64_C(8) << 30;

enum { WAIT_MS = 30000, LOOK_FOR_DEAD_EVERY_MS = 50 };

static _Atomic uint64_t *learned(int device)
{
    return &facade_open()->account.usage->devices[device].context_bytes;
}

static uint64_t known_cost(int device)
{
    uint64_t cost = atomic_load(learned(device));
    return cost >= LEAST && cost <= MOST ? cost : facade_open()->limits.devices[device].context_bytes;
}

/* One process at a time finds out the cost. The word names its slot, and is void when that process is dead. */
static _Atomic uint64_t *measuring(int device)
{
    return &facade_open()->account.usage->devices[device].measuring;
}

static bool is_being_measured(int device)
{
    return account_holder_is_valid(&facade_open()->account, atomic_load(measuring(device)));
}

static bool begin_measuring(int device)
{
    const struct account *account = &facade_open()->account;
    struct lamina_slot *slot = process_slot_if_any();
    uint64_t former = atomic_load(measuring(device));
    return slot != NULL && !account_holder_is_valid(account, former) &&
           atomic_compare_exchange_strong(measuring(device), &former, account_holder(account, slot));
}

/* Called after the excess was given back, so that processes which waited find it free. */
static void end_measuring(struct context_cost *cost)
{
    if (cost->measures)
        atomic_store(measuring(cost->device), 0);
    cost->measures = false;
}

static CUresult reserve_ample(struct context_cost *cost)
{
    uint64_t rest = reserve_available(cost->device), known = known_cost(cost->device);
    cost->measures = true;
    cost->reserved = known != 0 ? known : rest == 0 ? LIKELY : rest < AMPLE ? rest : AMPLE;
    CUresult result = reserve(cost->device, LAMINA_CONTEXT, cost->reserved);
    if (result != CUDA_SUCCESS)
        end_measuring(cost);
    return result;
}

/* While one process finds out the cost, others wait for it: then it is known how many contexts fit. */
static CUresult reserve_known_or_measure(struct context_cost *cost)
{
    const struct timespec moment = {.tv_nsec = 1000000};
    for (int waited = 0; waited < WAIT_MS; waited++) {
        bool others =
            is_being_measured(cost->device); /* read first: the measuring process stores the cost before it ends */
        cost->reserved = known_cost(cost->device);
        if (cost->reserved != 0 && !others)
            return reserve(cost->device, LAMINA_CONTEXT, cost->reserved);
        if (cost->reserved != 0) {
            CUresult result = reserve_quietly(cost->device, LAMINA_CONTEXT, cost->reserved);
            if (result != CUDA_ERROR_OUT_OF_MEMORY)
                return result;
        } else if (!others && begin_measuring(cost->device))
            return reserve_ample(cost);
        if (waited % LOOK_FOR_DEAD_EVERY_MS == 0)
            process_reclaim_dead();
        nanosleep(&moment, NULL);
    }
    cost->reserved = known_cost(cost->device) != 0 ? known_cost(cost->device) : LIKELY;
    return reserve(cost->device, LAMINA_CONTEXT, cost->reserved);
}

CUresult context_cost_reserve(struct context_cost *cost, int device)
{
    *cost = (struct context_cost){.device = device};
    if (process_slot() == NULL)
        return CUDA_ERROR_OPERATING_SYSTEM;
    cost->own_before = reserved_by_process(device);
    if (!driver_usage_of_process(device, &cost->usage_before))
        cost->usage_before = 0;
    cost->device_known = driver_usage_of_device(device, &cost->device_before);
    return reserve_known_or_measure(cost);
}

/* How much more this process uses than before, apart from what the account already has. Returns whether that is what
 * contexts cost from now on. */
static bool measure(const struct context_cost *cost, uint64_t *bytes)
{
    uint64_t figure, known = known_cost(cost->device);
    uint64_t own = reserved_by_process(cost->device);
    if (driver_usage_of_process(cost->device, &figure)) {
        uint64_t grown = figure > cost->usage_before ? figure - cost->usage_before : 0;
        uint64_t before = add_saturating(cost->own_before, cost->reserved);
        uint64_t counted = own > before ? own - before : 0;
        *bytes = grown > counted ? grown - counted : 0;
        if (*bytes >= LEAST)
            return true;
        /* No context is that small: the figure is that of a process which has our pid in another namespace. */
    }
    /* The driver does not know this process by its pid, as in some containers. Then the growth of the whole device
     * gives a first figure, although other processes distort it. When it is implausible, the next context finds out. */
    *bytes = known != 0 ? known : LIKELY;
    if (known != 0)
        return false;
    if (!cost->device_known || !driver_usage_of_device(cost->device, &figure))
        return true; /* no later context will find out more */
    if (figure < cost->device_before + LEAST || figure - cost->device_before >= AMPLE)
        return false;
    *bytes = figure - cost->device_before;
    return true;
}

CUresult context_cost_settle(struct context_cost *cost, uint64_t *bytes)
{
    ASSERT(cost->reserved > 0);
    bool found = measure(cost, bytes);
    CUresult result = reserve_adjust(cost->device, LAMINA_CONTEXT, cost->reserved, *bytes);
    if (result != CUDA_SUCCESS)
        unreserve(cost->device, LAMINA_CONTEXT, cost->reserved);
    if (found)
        atomic_store(learned(cost->device), *bytes);
    end_measuring(cost);
    return result;
}

void context_cost_cancel(struct context_cost *cost)
{
    unreserve(cost->device, LAMINA_CONTEXT, cost->reserved);
    end_measuring(cost);
}

uint64_t context_cost_uncounted(int device)
{
    uint64_t figure, own = reserved_by_process(device);
    return driver_usage_of_process(device, &figure) && figure > own ? figure - own : 0;
}
