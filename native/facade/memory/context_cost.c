#include "memory/context_cost.h"

#include "cuda/devices.h"
#include "cuda/process.h"
#include "memory/agent_figures.h"
#include "memory/driver_usage.h"
#include "memory/lending.h"
#include "memory/reserve.h"
#include "shared/assertion.h"
#include "shared/facade.h"
#include "shared/live_limits.h"
#include "shared/log.h"

#include <stdatomic.h>
#include <time.h>

/* A context on current GPUs takes 100 to 600 MiB. The process that finds out the cost reserves AMPLE meanwhile, or what
 * is left. LIKELY is charged where the driver gives no figure at all. A figure outside MIN_COST..MAX_COST is not that
 * of a context; in the usage file anything may be written. */
static const uint64_t AMPLE = UINT64_C(1) << 30, LIKELY = UINT64_C(512) << 20, MIN_COST = UINT64_C(16) << 20,
                      MAX_COST = UINT64_C(8) << 30;

enum { WAIT_MS = 30000, LOOK_FOR_DEAD_EVERY_MS = 50, SAY_SO_AFTER_MS = 2000 };

static _Atomic uint64_t *learned_of(int device)
{
    return &facade_open()->account.usage->devices[device].context_bytes;
}

static uint64_t known_cost(int device)
{
    uint64_t cost = atomic_load(learned_of(device));
    return cost >= MIN_COST && cost <= MAX_COST ? cost : facade_open()->limits.devices[device].context_bytes;
}

/* What is reserved for a context of that cost. Another program may have a smaller one, so where the cost exceeds the
 * limit, all of that is reserved, and the driver's figure decides. */
static uint64_t within_limit(int device, uint64_t cost)
{
    const struct account *account = &facade_open()->account;
    const uint64_t limit = may_borrow(account, (uint32_t)device) ? live_physical(account, (uint32_t)device)
                                                                 : live_memory(account, (uint32_t)device);
    return cost < limit ? cost : limit;
}

/* One process at a time finds out the cost. The word names its slot, and is void when that process is dead. */
static _Atomic uint64_t *measuring_of(int device)
{
    return &facade_open()->account.usage->devices[device].measuring;
}

/* Whether a process holds more than it needs, or will know soon what a context costs. */
static bool is_being_measured(int device)
{
    const struct account *account = &facade_open()->account;
    return account_holder_is_valid(account, atomic_load(measuring_of(device))) ||
           account_measures(account, (uint32_t)device);
}

static void mark_measuring(const struct context_cost *cost, bool measures)
{
    struct lamina_slot *slot = process_slot_if_any();
    ASSERT(cost->device >= 0 && cost->device < LAMINA_MAX_DEVICES);
    if (slot != NULL && measures)
        atomic_fetch_or(&slot->measures, 1u << cost->device);
    else if (slot != NULL)
        atomic_fetch_and(&slot->measures, ~(1u << cost->device));
}

static bool begin_measuring(int device)
{
    const struct account *account = &facade_open()->account;
    struct lamina_slot *slot = process_slot_if_any();
    uint64_t former = atomic_load(measuring_of(device));
    return slot != NULL && !account_holder_is_valid(account, former) &&
           atomic_compare_exchange_strong(measuring_of(device), &former, account_holder(account, slot));
}

/* Of a process's first context alone, because then all of its bytes for contexts are that reservation. */
static void let_others_take_excess(struct context_cost *cost)
{
    cost->yields = cost->own_before == 0 && cost->reserved > LIKELY && process_slot_if_any() != NULL;
    if (cost->yields)
        account_mark(process_slot_if_any(), (uint32_t)cost->device);
}

/* Whether none or another process has it, it is decided from now on. */
static void end_yielding(struct context_cost *cost)
{
    struct lamina_slot *slot = process_slot_if_any();
    if (cost->yields && slot != NULL && !account_take_mark(slot, (uint32_t)cost->device))
        cost->reserved = LIKELY;
    cost->yields = false;
}

/* A process that takes very long, or is stopped, does not keep others out with what it reserved beyond what is likely.
 * Its context counts as that until it is known. */
static void take_excess(int device)
{
    const struct account *account = &facade_open()->account;
    for (uint32_t i = 0; i < account_slot_count(account); i++) {
        struct lamina_slot *slot = account_slot(account, i);
        if (slot == process_slot_if_any() || !account_take_mark(slot, (uint32_t)device))
            continue;
        uint64_t bytes = atomic_load(&account_slot_device(slot, (uint32_t)device)->bytes[LAMINA_CONTEXT]);
        if (bytes > LIKELY)
            account_discharge(account, slot, (uint32_t)device, LAMINA_CONTEXT, bytes - LIKELY);
    }
}

static void say_what_is_waited_for(int device)
{
    log_line(LOG_WARNING,
             "Device %d: waiting for another process of this container, which makes its first context; what that takes "
             "says whether this one fits",
             device_ordinal(device));
}

/* Called after the excess was given back, so that processes which waited find it free. */
static void end_measuring(struct context_cost *cost)
{
    if (cost->measures)
        atomic_store(measuring_of(cost->device), 0);
    cost->measures = false;
    if (cost->parallel)
        mark_measuring(cost, false);
    cost->parallel = false;
}

static CUresult reserve_ample(struct context_cost *cost)
{
    uint64_t rest = reserve_available_fixed(cost->device), known = within_limit(cost->device, known_cost(cost->device));
    cost->measures = true;
    if (known != 0)
        cost->reserved = known;
    else if (rest == 0)
        cost->reserved = LIKELY; /* refused below, unless some is freed meanwhile */
    else
        cost->reserved = rest < AMPLE ? rest : AMPLE;
    CUresult result = reserve_fixed(cost->device, LAMINA_CONTEXT, cost->reserved);
    if (result != CUDA_SUCCESS)
        end_measuring(cost);
    else
        let_others_take_excess(cost);
    return result;
}

/* Next to the process that finds out the cost, where there is ample room for that and the driver will tell this process
 * its own figure too. So processes that start at once need not wait for the first one. */
static bool reserve_parallel(struct context_cost *cost)
{
    if (!process_has_host_pids() && !cost->reported)
        return false;
    cost->parallel = true;
    mark_measuring(cost, true);
    if (reserve_fixed_quietly(cost->device, LAMINA_CONTEXT, AMPLE) == CUDA_SUCCESS) {
        cost->reserved = AMPLE;
        let_others_take_excess(cost);
        return true;
    }
    end_measuring(cost);
    return false;
}

/* While one process finds out the cost and there is not ample room for more, others wait for it: then it is known how
 * many contexts fit. */
static CUresult reserve_known_or_measure(struct context_cost *cost)
{
    const struct timespec moment = {.tv_nsec = 1000000};
    for (int waited = 0; waited < WAIT_MS; waited++) {
        bool others =
            is_being_measured(cost->device); /* read first: the measuring process stores the cost before it ends */
        cost->reserved = within_limit(cost->device, known_cost(cost->device));
        if (cost->reserved != 0 && !others)
            return reserve_fixed(cost->device, LAMINA_CONTEXT, cost->reserved);
        if (cost->reserved != 0) {
            CUresult result = reserve_fixed_quietly(cost->device, LAMINA_CONTEXT, cost->reserved);
            if (result != CUDA_ERROR_OUT_OF_MEMORY)
                return result;
        } else if (begin_measuring(cost->device))
            return reserve_ample(cost);
        else if (reserve_parallel(cost))
            return CUDA_SUCCESS;
        if (waited % LOOK_FOR_DEAD_EVERY_MS == 0)
            process_reclaim_dead();
        if (waited == SAY_SO_AFTER_MS)
            say_what_is_waited_for(cost->device);
        nanosleep(&moment, NULL);
    }
    take_excess(cost->device);
    uint64_t known = known_cost(cost->device);
    cost->reserved = within_limit(cost->device, known != 0 ? known : LIKELY);
    return reserve_fixed(cost->device, LAMINA_CONTEXT, cost->reserved);
}

CUresult context_cost_reserve(struct context_cost *cost, int device)
{
    *cost = (struct context_cost){.device = device};
    if (process_slot() == NULL)
        return CUDA_ERROR_OPERATING_SYSTEM;
    cost->own_before = reserved_by_process(device);
    if (!driver_usage_of_process(device, &cost->usage_before))
        cost->usage_before = 0;
    cost->reported = agent_figures_are_available() &&
                     (cost->own_before == 0 || agent_figure(device, &cost->reported_before, &cost->reported_held));
    cost->device_known = driver_usage_of_device(device, &cost->device_before);
    cost->listed = cost->own_before == 0 && driver_list_read(device, &cost->list_before);
    return reserve_known_or_measure(cost);
}

/* How much more the driver has given than before, apart from what the account has more of. */
static uint64_t measure_growth(uint64_t before, uint64_t held_before, uint64_t after, uint64_t held_after)
{
    uint64_t more = add_saturating(after, held_before), less = add_saturating(before, held_after);
    return more > less ? more - less : 0;
}

/* What the context takes by the driver's figure for this process: as the agent tells it, or as found by our own pid. No
 * context is smaller than MIN_COST: then the figure is that of a process which has our pid in another namespace. */
static bool measure_cost(const struct context_cost *cost, uint64_t *bytes)
{
    uint64_t figure, held;
    if (cost->reported && agent_figure(cost->device, &figure, &held)) {
        *bytes =
            measure_growth(cost->reported_before, add_saturating(cost->reported_held, cost->reserved), figure, held);
        if (*bytes >= MIN_COST)
            return true;
    }
    if (!driver_usage_of_process(cost->device, &figure))
        return false;
    held = reserved_by_process(cost->device);
    *bytes = measure_growth(cost->usage_before, add_saturating(cost->own_before, cost->reserved), figure, held);
    return *bytes >= MIN_COST;
}

/* A guess where there is no figure. The first context of a process makes it a newcomer to the driver's list; where it
 * is the only one, it has the figure. Without a list, the growth of the whole device is a guess that others distort.
 * Returns whether other contexts may be charged the same. */
static bool guess_cost(const struct context_cost *cost, uint64_t *bytes)
{
    uint64_t used, known = cost->parallel ? LIKELY : known_cost(cost->device);
    unsigned newcomers = cost->listed ? driver_list_newcomers(cost->device, &cost->list_before, &used) : 0;
    if (newcomers == 1 && used >= MIN_COST) {
        *bytes = used;
        return true;
    }
    *bytes = known;
    if (known == 0)
        *bytes = cost->reserved < LIKELY ? cost->reserved : LIKELY;
    if (newcomers > 1 || (known != 0 && known <= cost->reserved))
        return false;
    if (!cost->device_known || !driver_usage_of_device(cost->device, &used))
        return known == 0 && *bytes == LIKELY; /* no later context will find out more */
    if (used < cost->device_before + MIN_COST || used - cost->device_before >= AMPLE)
        return false; /* the next context finds out */
    *bytes = used - cost->device_before;
    return *bytes <= cost->reserved;
}

CUresult context_cost_settle(struct context_cost *cost, uint64_t *bytes)
{
    ASSERT(cost->reserved > 0);
    end_yielding(cost);
    cost->guessed = !measure_cost(cost, bytes);
    bool learned_now = cost->guessed ? guess_cost(cost, bytes) : cost->own_before == 0; /* the first one costs most */
    CUresult result = reserve_adjust(cost->device, LAMINA_CONTEXT, cost->reserved, *bytes);
    if (result != CUDA_SUCCESS)
        unreserve(cost->device, LAMINA_CONTEXT, cost->reserved);
    else
        reserve_note_peak(cost->device);
    if (learned_now)
        atomic_store(learned_of(cost->device), *bytes);
    end_measuring(cost);
    return result;
}

void context_cost_cancel(struct context_cost *cost)
{
    end_yielding(cost);
    unreserve(cost->device, LAMINA_CONTEXT, cost->reserved);
    end_measuring(cost);
}

uint64_t context_cost_uncounted(int device)
{
    uint64_t figure, own = reserved_by_process(device);
    return driver_usage_of_process(device, &figure) && figure > own ? figure - own : 0;
}

bool context_cost_correct(int device, uint64_t *bytes)
{
    uint64_t figure, held;
    if (reserved_managed_by_process(device) > 0 || !agent_figure(device, &figure, &held) || held < *bytes)
        return false;
    uint64_t rest = held - *bytes, cost = figure > rest ? figure - rest : 0;
    if (cost < MIN_COST)
        return false;
    if (cost > *bytes)
        reserve_beyond_limit(device, LAMINA_CONTEXT, cost - *bytes);
    else
        unreserve(device, LAMINA_CONTEXT, *bytes - cost);
    *bytes = cost;
    return true;
}
