#include "memory/reserve.h"

#include "cuda/devices.h"
#include "cuda/process.h"
#include "shared/assertion.h"
#include "shared/callbacks.h"
#include "shared/live_limits.h"
#include "shared/log.h"

#include <stdatomic.h>

static struct callbacks reclaimers;

void add_reclaimer(void (*reclaim)(void))
{
    callbacks_add(&reclaimers, reclaim);
}

static CUresult charge_account(int device, enum lamina_kind kind, uint64_t bytes, uint64_t *requested)
{
    ASSERT(device >= 0 && device < LAMINA_MAX_DEVICES);
    struct lamina_slot *slot = process_slot();
    const struct facade *facade = facade_open();
    if (slot == NULL || facade == NULL)
        return CUDA_ERROR_OPERATING_SYSTEM;
    *requested = account_charge(&facade->account, slot, (uint32_t)device, kind, bytes);
    return *requested == 0 ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

CUresult reserve_quietly(int device, enum lamina_kind kind, uint64_t bytes)
{
    uint64_t requested;
    return charge_account(device, kind, bytes, &requested);
}

void report_refusal(int device, uint64_t requested)
{
    ASSERT(device >= 0 && device < LAMINA_MAX_DEVICES);
    const struct facade *facade = facade_open();
    atomic_fetch_add(&facade->account.usage->devices[device].refusals, 1);
    log_line(LOG_ERROR, "Device %d OOM %llu / %llu", device_ordinal(device), (unsigned long long)requested,
             (unsigned long long)live_allowed(&facade->account, (uint32_t)device));
}

CUresult reserve(int device, enum lamina_kind kind, uint64_t bytes)
{
    uint64_t requested;
    CUresult result = charge_account(device, kind, bytes, &requested);
    if (result != CUDA_ERROR_OUT_OF_MEMORY)
        return result;
    callbacks_call(&reclaimers);
    result = charge_account(device, kind, bytes, &requested);
    if (result == CUDA_ERROR_OUT_OF_MEMORY)
        report_refusal(device, requested);
    return result;
}

void reserve_beyond_limit(int device, enum lamina_kind kind, uint64_t bytes)
{
    ASSERT(device >= 0 && device < LAMINA_MAX_DEVICES);
    ASSERT(kind < LAMINA_KINDS);
    struct lamina_slot *slot = process_slot();
    if (slot != NULL)
        account_add(&facade_open()->account, slot, (uint32_t)device, kind, bytes);
}

void unreserve(int device, enum lamina_kind kind, uint64_t bytes)
{
    ASSERT(device >= 0 && device < LAMINA_MAX_DEVICES);
    ASSERT(kind < LAMINA_KINDS);
    struct lamina_slot *slot = process_slot_if_any();
    if (slot != NULL)
        account_discharge(&facade_open()->account, slot, (uint32_t)device, kind, bytes);
}

CUresult reserve_adjust(int device, enum lamina_kind kind, uint64_t reserved, uint64_t actual)
{
    if (actual > reserved)
        return reserve(device, kind, actual - reserved);
    if (actual < reserved)
        unreserve(device, kind, reserved - actual);
    return CUDA_SUCCESS;
}

void reserve_note_peak(int device)
{
    ASSERT(device >= 0 && device < LAMINA_MAX_DEVICES);
    account_note_peak(&facade_open()->account, (uint32_t)device);
}

uint64_t reserved_total(int device)
{
    const struct facade *facade = facade_open();
    return facade == NULL ? 0 : account_held(&facade->account, (uint32_t)device);
}

uint64_t reserved_by_process(int device)
{
    ASSERT(device >= 0 && device < LAMINA_MAX_DEVICES);
    struct lamina_slot *slot = process_slot_if_any();
    return slot == NULL ? 0 : account_slot_held(slot, (uint32_t)device);
}

uint64_t reserved_managed_by_process(int device)
{
    ASSERT(device >= 0 && device < LAMINA_MAX_DEVICES);
    struct lamina_slot *slot = process_slot_if_any();
    if (slot == NULL)
        return 0;
    struct lamina_slot_device *line = account_slot_device(slot, (uint32_t)device);
    return add_saturating(atomic_load(&line->bytes[LAMINA_MANAGED]), atomic_load(&line->spilled));
}

uint64_t reserve_available(int device)
{
    const struct facade *facade = facade_open();
    uint64_t held = reserved_total(device);
    uint64_t limit = facade == NULL ? 0 : live_allowed(&facade->account, (uint32_t)device);
    return held < limit ? limit - held : 0;
}
