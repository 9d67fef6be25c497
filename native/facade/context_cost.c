#include "context_cost.h"

#include "contexts.h"
#include "facade.h"
#include "hold.h"
#include "self.h"

#include <time.h>

/* A context on today's cards takes 100 to 600 MiB. Whoever can announce AMPLE need not wait to learn the cost;
 * LIKELY is charged where the driver gives no figure at all,
 * and less than LEAST is no figure of a context. */
static const uint64_t AMPLE = UINT64_C(1) << 30, LIKELY = UINT64_C(512) << 20, LEAST = UINT64_C(16) << 20;

enum { WAIT_MS = 30000, LOOK_FOR_DEAD_EVERY_MS = 50 };

static uint64_t *learned(int device)
{
    return &facade_open()->account.usage->devices[device].context_bytes;
}

static uint64_t known_cost(int device)
{
    uint64_t cost = __atomic_load_n(learned(device), __ATOMIC_ACQUIRE);
    return cost != 0 ? cost : facade_open()->limits.devices[device].context_bytes;
}

/* Nobody knows the cost yet. With ample room that does not matter; with little, one process at a time takes all that
 * is left until it knows, and the others wait for it. */
static CUresult announce_unknown(struct context_cost *cost)
{
    const struct timespec moment = {.tv_nsec = 1000000};
    for (int waited = 0; waited < WAIT_MS && known_cost(cost->device) == 0; waited++) {
        uint64_t rest = hold_rest(cost->device);
        cost->announced = rest < AMPLE ? rest : AMPLE;
        if (rest > 0) {
            CUresult result = hold_quietly(cost->device, LAMINA_CONTEXT, cost->announced);
            if (result != CUDA_ERROR_OUT_OF_MEMORY)
                return result;
        }
        if (waited % LOOK_FOR_DEAD_EVERY_MS == 0)
            self_reclaim();
        nanosleep(&moment, NULL);
    }
    cost->announced = known_cost(cost->device) != 0 ? known_cost(cost->device) : LIKELY;
    return hold(cost->device, LAMINA_CONTEXT, cost->announced);
}

CUresult context_cost_announce(struct context_cost *cost, int device)
{
    *cost = (struct context_cost){.device = device};
    if (self_slot() == NULL)
        return CUDA_ERROR_OPERATING_SYSTEM;
    cost->own_before = hold_own(device);
    if (!figure_of_process(device, &cost->figure_before))
        cost->figure_before = 0;
    cost->device_known = figure_of_device(device, &cost->device_before);
    cost->announced = known_cost(device);
    if (cost->announced == 0)
        return announce_unknown(cost);
    return hold(device, LAMINA_CONTEXT, cost->announced);
}

/* What this process holds more than before, apart from what the account already has. */
static bool measure(const struct context_cost *cost, uint64_t *bytes)
{
    uint64_t figure, known = known_cost(cost->device);
    uint64_t own = hold_own(cost->device);
    if (figure_of_process(cost->device, &figure)) {
        uint64_t grown = figure > cost->figure_before ? figure - cost->figure_before : 0;
        uint64_t counted = own > cost->own_before + cost->announced ? own - cost->own_before - cost->announced : 0;
        *bytes = grown > counted ? grown - counted : 0;
        if (*bytes >= LEAST)
            return true;
        /* No context is that small: the figure is that of another process, which has our pid elsewhere. */
    }
    /* The driver does not know us by our pid, as in some containers: then the growth of the whole device, which
     * others disturb, gives only a first figure. */
    *bytes = known != 0 ? known : LIKELY;
    if (known == 0 && cost->device_known && figure_of_device(cost->device, &figure) &&
        figure >= cost->device_before + LEAST && figure - cost->device_before < AMPLE)
        *bytes = figure - cost->device_before;
    return known == 0;
}

CUresult context_cost_settle(struct context_cost *cost, uint64_t *bytes)
{
    if (measure(cost, bytes))
        __atomic_store_n(learned(cost->device), *bytes, __ATOMIC_RELEASE);
    CUresult result = hold_adjust(cost->device, LAMINA_CONTEXT, cost->announced, *bytes);
    if (result != CUDA_SUCCESS)
        context_cost_undo(cost);
    return result;
}

void context_cost_undo(const struct context_cost *cost)
{
    give_back(cost->device, LAMINA_CONTEXT, cost->announced);
}

uint64_t context_cost_unseen(int device)
{
    uint64_t figure, own = hold_own(device);
    return figure_of_process(device, &figure) && figure > own ? figure - own : 0;
}
