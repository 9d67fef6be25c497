#include "hold.h"

#include "devices.h"
#include "graphs.h"
#include "log.h"
#include "pools.h"
#include "self.h"

#include <stdatomic.h>

static CUresult weigh(int device, enum lamina_kind kind, uint64_t bytes, uint64_t *asked)
{
    struct lamina_slot *slot = self_slot();
    const struct facade *facade = facade_open();
    if (slot == NULL || facade == NULL)
        return CUDA_ERROR_OPERATING_SYSTEM;
    *asked = account_charge(&facade->account, slot, (uint32_t)device, kind, bytes);
    return *asked == 0 ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

CUresult hold_quietly(int device, enum lamina_kind kind, uint64_t bytes)
{
    uint64_t asked;
    return weigh(device, kind, bytes, &asked);
}

void hold_refused(int device, uint64_t asked)
{
    const struct facade *facade = facade_open();
    __atomic_fetch_add(&facade->account.usage->devices[device].refusals, 1, __ATOMIC_RELAXED);
    log_line(LOG_ERROR, "Device %d OOM %llu / %llu", device_ordinal(device), (unsigned long long)asked,
             (unsigned long long)facade->limits.devices[device].memory_bytes);
}

CUresult hold(int device, enum lamina_kind kind, uint64_t bytes)
{
    uint64_t asked;
    CUresult result = weigh(device, kind, bytes, &asked);
    if (result != CUDA_ERROR_OUT_OF_MEMORY)
        return result;
    /* Before a refusal, everything that is held only on paper is given back. */
    pools_refresh();
    graphs_trim();
    self_reclaim();
    result = weigh(device, kind, bytes, &asked);
    if (result == CUDA_ERROR_OUT_OF_MEMORY)
        hold_refused(device, asked);
    return result;
}

void hold_anyway(int device, enum lamina_kind kind, uint64_t bytes)
{
    struct lamina_slot *slot = self_slot();
    if (slot != NULL)
        account_add(&facade_open()->account, slot, (uint32_t)device, kind, bytes);
}

void give_back(int device, enum lamina_kind kind, uint64_t bytes)
{
    struct lamina_slot *slot = self_slot_if_any();
    if (slot != NULL)
        account_discharge(&facade_open()->account, slot, (uint32_t)device, kind, bytes);
}

CUresult hold_adjust(int device, enum lamina_kind kind, uint64_t announced, uint64_t real)
{
    if (real > announced)
        return hold(device, kind, real - announced);
    if (real < announced)
        give_back(device, kind, announced - real);
    return CUDA_SUCCESS;
}

uint64_t hold_all(int device)
{
    const struct facade *facade = facade_open();
    return facade == NULL ? 0 : account_held(&facade->account, (uint32_t)device);
}

uint64_t hold_own(int device)
{
    struct lamina_slot *slot = self_slot_if_any();
    return slot == NULL ? 0 : account_slot_held(&facade_open()->account, slot, (uint32_t)device);
}

uint64_t hold_rest(int device)
{
    const struct facade *facade = facade_open();
    uint64_t held = hold_all(device), limit = facade == NULL ? 0 : facade->limits.devices[device].memory_bytes;
    return held < limit ? limit - held : 0;
}
