#include "context_cost.h"

#include "contexts.h"
#include "facade.h"
#include "hold.h"
#include "self.h"

#include <time.h>

/* A context on today's cards takes 100 to 600 MiB. Whoever finds out what one takes announces AMPLE meanwhile, or what is
 * left; LIKELY is charged where the driver gives no figure at all, and less than LEAST is no figure of a context. */
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

/* One process at a time finds out; the word says which one, and is void when that is dead. */
static uint64_t *measuring(int device)
{
    return &facade_open()->account.usage->devices[device].measuring;
}

static bool someone_measures(int device)
{
    return account_word_stands(&facade_open()->account, __atomic_load_n(measuring(device), __ATOMIC_ACQUIRE));
}

static bool begin_to_measure(int device)
{
    const struct account *account = &facade_open()->account;
    uint64_t former = __atomic_load_n(measuring(device), __ATOMIC_ACQUIRE), mine = account_word(account, self_slot());
    return !account_word_stands(account, former) &&
           __atomic_compare_exchange_n(measuring(device), &former, mine, false, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED);
}

/* After what was announced too much is given back, so that those who waited find it free. */
static void end_measuring(struct context_cost *cost)
{
    if (cost->measures)
        __atomic_store_n(measuring(cost->device), 0, __ATOMIC_RELEASE);
    cost->measures = false;
}

static CUresult announce_ample(struct context_cost *cost)
{
    uint64_t rest = hold_rest(cost->device), known = known_cost(cost->device);
    cost->measures = true;
    cost->announced = known != 0 ? known : rest == 0 ? LIKELY : rest < AMPLE ? rest : AMPLE;
    CUresult result = hold(cost->device, LAMINA_CONTEXT, cost->announced);
    if (result != CUDA_SUCCESS)
        end_measuring(cost);
    return result;
}

/* Those who come while one finds out the cost wait for it: then it is known how many fit. */
static CUresult announce(struct context_cost *cost)
{
    const struct timespec moment = {.tv_nsec = 1000000};
    for (int waited = 0; waited < WAIT_MS; waited++) {
        bool others = someone_measures(cost->device); /* asked first: whoever ends has made the cost known before */
        cost->announced = known_cost(cost->device);
        if (cost->announced != 0 && !others)
            return hold(cost->device, LAMINA_CONTEXT, cost->announced);
        if (cost->announced != 0) {
            CUresult result = hold_quietly(cost->device, LAMINA_CONTEXT, cost->announced);
            if (result != CUDA_ERROR_OUT_OF_MEMORY)
                return result;
        } else if (!others && begin_to_measure(cost->device))
            return announce_ample(cost);
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
    return announce(cost);
}

/* What this process holds more than before, apart from what the account already has. Returns whether that is what
 * contexts cost from now on. */
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
     * others disturb, gives only a first figure. Where it cannot be one, the next context finds out. */
    *bytes = known != 0 ? known : LIKELY;
    if (known != 0)
        return false;
    if (!cost->device_known || !figure_of_device(cost->device, &figure))
        return true; /* nobody will know more */
    if (figure < cost->device_before + LEAST || figure - cost->device_before >= AMPLE)
        return false;
    *bytes = figure - cost->device_before;
    return true;
}

CUresult context_cost_settle(struct context_cost *cost, uint64_t *bytes)
{
    bool found = measure(cost, bytes);
    CUresult result = hold_adjust(cost->device, LAMINA_CONTEXT, cost->announced, *bytes);
    if (result != CUDA_SUCCESS)
        give_back(cost->device, LAMINA_CONTEXT, cost->announced);
    if (found)
        __atomic_store_n(learned(cost->device), *bytes, __ATOMIC_RELEASE);
    end_measuring(cost);
    return result;
}

void context_cost_undo(struct context_cost *cost)
{
    give_back(cost->device, LAMINA_CONTEXT, cost->announced);
    end_measuring(cost);
}

uint64_t context_cost_unseen(int device)
{
    uint64_t figure, own = hold_own(device);
    return figure_of_process(device, &figure) && figure > own ? figure - own : 0;
}
