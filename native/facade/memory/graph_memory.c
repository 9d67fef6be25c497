#include "memory/graph_memory.h"

#include "cuda/capture_mode.h"
#include "cuda/devices.h"
#include "memory/lending.h"
#include "memory/reserve.h"
#include "shared/assertion.h"

#include <time.h>

enum { USED_CURRENT = 0, RESERVED_CURRENT = 2, WAIT_MS = 1000 };

/* Protected by the lock of the graph records. */
static uint64_t charged[LAMINA_MAX_DEVICES];
static unsigned trims;

void graph_memory_after_fork(void)
{
    for (int device = 0; device < LAMINA_MAX_DEVICES; device++)
        charged[device] = 0;
}

/* A driver that does not say is assumed to hold `otherwise`. */
static uint64_t read_attribute(int device, CUgraphMem_attribute which, uint64_t otherwise)
{
    cuuint64_t value = 0;
    CUstreamCaptureMode mode = neutral_begin();
    CUresult result = REAL(cuDeviceGetGraphMemAttribute)(device_ordinal(device), which, &value);
    neutral_end(mode);
    return result == CUDA_SUCCESS ? value : otherwise;
}

/* What is charged and reserved becomes what the driver holds. It holds it already, so no limit is checked here. */
static void follow_driver(int device, uint64_t reserved)
{
    uint64_t counted = charged[device] + reserved, actual = read_attribute(device, RESERVED_CURRENT, counted);
    if (actual > counted)
        reserve_beyond_limit(device, LAMINA_POOL, actual - counted);
    else if (actual < counted)
        unreserve(device, LAMINA_POOL, counted - actual);
    ASSERT(device >= 0 && device < LAMINA_MAX_DEVICES);
    charged[device] = actual;
}

static void trim_device(int device)
{
    CUstreamCaptureMode mode = neutral_begin();
    REAL(cuDeviceGraphMemTrim)(device_ordinal(device));
    neutral_end(mode);
    trims++;
    follow_driver(device, 0);
}

void graph_memory_trim(void)
{
    if (!graph_records_any() || !graph_records_try_lock())
        return;
    for (int device = 0; device < LAMINA_MAX_DEVICES; device++)
        if (charged[device] > 0)
            trim_device(device);
    graph_records_unlock();
}

void graph_memory_refresh(int device)
{
    if (!graph_records_any())
        return;
    graph_records_lock();
    trims++;
    follow_driver(device, 0);
    graph_records_unlock();
}

void graph_memory_wait(CUstream stream, CUresult (*query)(CUstream))
{
    const struct timespec moment = {.tv_nsec = 1000000};
    for (int waited = 0; waited < WAIT_MS; waited++) {
        CUstreamCaptureMode mode = neutral_begin();
        CUresult result = query(stream);
        neutral_end(mode);
        if (result != CUDA_ERROR_NOT_READY)
            return;
        nanosleep(&moment, NULL);
    }
}

/* The most that the store lacks for the graph. */
static uint64_t measure_lack(const struct graph_record *record, int device)
{
    ASSERT(device >= 0 && device < LAMINA_MAX_DEVICES);
    ASSERT(record->need[device].live <= record->need[device].most);
    uint64_t most = record->need[device].most, in_store = read_attribute(device, RESERVED_CURRENT, charged[device]);
    uint64_t used = read_attribute(device, USED_CURRENT, in_store);
    uint64_t spare = in_store > used ? in_store - used : 0;
    return most > spare ? most - spare : 0;
}

CUresult graph_memory_reserve(struct graph_record *record, bool last, uint64_t reserved[LAMINA_MAX_DEVICES])
{
    CUresult result = CUDA_SUCCESS;
    for (int device = 0; device < LAMINA_MAX_DEVICES; device++)
        reserved[device] = 0;
    for (int device = 0; device < LAMINA_MAX_DEVICES && result == CUDA_SUCCESS; device++) {
        if (record->need[device].most == 0)
            continue;
        uint64_t lacks = measure_lack(record, device);
        if (reserve_fixed_quietly(device, LAMINA_POOL, lacks) != CUDA_SUCCESS) {
            trim_device(device);
            lacks = measure_lack(record, device);
            result = (last ? reserve_fixed : reserve_fixed_quietly)(device, LAMINA_POOL, lacks);
        }
        reserved[device] = result == CUDA_SUCCESS ? lacks : 0;
    }
    for (int device = 0; device < LAMINA_MAX_DEVICES && result != CUDA_SUCCESS; device++)
        if (reserved[device] > 0) /* also keeps to the devices that the account has */
            unreserve(device, LAMINA_POOL, reserved[device]);
    return result;
}

void graph_memory_settle(struct graph_record *record, CUstream stream, CUresult result,
                         const uint64_t reserved[LAMINA_MAX_DEVICES])
{
    for (int device = 0; device < LAMINA_MAX_DEVICES; device++)
        if (record->need[device].most > 0)
            follow_driver(device, reserved[device]);
    record->mapped = result == CUDA_SUCCESS;
    record->stream = stream;
    record->trims = trims;
}

bool graph_memory_is_mapped(const struct graph_record *record, CUstream stream)
{
    return record->mapped && record->stream == stream && record->trims == trims;
}

CUresult cuDeviceGraphMemTrim(CUdevice ordinal)
{
    CUresult result = REAL(cuDeviceGraphMemTrim)(ordinal);
    int device = device_entry(ordinal);
    if (result == CUDA_SUCCESS && device >= 0)
        graph_memory_refresh(device);
    return result;
}
