/* Device memory that a program gets by raising a context's limits: the heap of kernels, their print buffer and their
 * stacks. The context's default limits are part of what the context costs. */
#include "cuda/context_table.h"
#include "cuda/devices.h"
#include "cuda/hooks.h"
#include "memory/blocks.h"
#include "memory/lending.h"
#include "memory/reserve.h"
#include "shared/assertion.h"

#include <stdint.h>

enum { STACK_SIZE = 0, PRINTF_FIFO_SIZE = 1, MALLOC_HEAP_SIZE = 2 };
enum { MULTIPROCESSORS = 16, THREADS_PER_MULTIPROCESSOR = 39 };

static uint64_t bytes_of_limit(int device, CUlimit limit, uint64_t value)
{
    int processors = 1, threads = 1;
    uint64_t bytes;
    if (limit == STACK_SIZE) {
        REAL(cuDeviceGetAttribute)(&processors, MULTIPROCESSORS, device_ordinal(device));
        REAL(cuDeviceGetAttribute)(&threads, THREADS_PER_MULTIPROCESSOR, device_ordinal(device));
    }
    return __builtin_mul_overflow(value, (uint64_t)processors * (uint64_t)threads, &bytes) ? UINT64_MAX : bytes;
}

/* In whole blocks, because the driver shares none of this memory with anything else. */
static uint64_t bytes_beyond(int device, CUlimit limit, uint64_t value, uint64_t initial)
{
    uint64_t all = bytes_of_limit(device, limit, value), free = bytes_of_limit(device, limit, initial);
    uint64_t more = all > free ? all - free : 0;
    return whole_blocks(more);
}

CUresult cuCtxSetLimit(CUlimit limit, size_t value)
{
    CUcontext context;
    int device = context_device(&context);
    size_t initial = 0;
    if (device < 0 || limit < STACK_SIZE || limit > MALLOC_HEAP_SIZE ||
        REAL(cuCtxGetLimit)(&initial, limit) != CUDA_SUCCESS)
        return REAL(cuCtxSetLimit)(limit, value);
    /* Handles are addresses of structures, so the numbers of the limits fit between two handles. */
    struct block replaced, former = {0},
                           block = {.key = (uint64_t)(uintptr_t)context + (unsigned)limit,
                                    .context = (uint64_t)(uintptr_t)context,
                                    .class = BLOCK_LIMIT,
                                    .kind = LAMINA_CONTEXT,
                                    .device = (uint8_t)device};
    ASSERT(context != NULL);
    ASSERT(device >= 0 && device < LAMINA_MAX_DEVICES);
    bool known = blocks_get(BLOCK_LIMIT, block.key, &former);
    block.object = known ? former.object : (void *)(uintptr_t)initial;
    block.bytes = bytes_beyond(device, limit, value, (uint64_t)(uintptr_t)block.object);
    if (block.bytes > former.bytes) {
        CUresult result = reserve_fixed(device, LAMINA_CONTEXT, block.bytes - former.bytes);
        if (result != CUDA_SUCCESS)
            return result;
    }
    CUresult result = REAL(cuCtxSetLimit)(limit, value);
    bool kept = result == CUDA_SUCCESS && blocks_put(&block, &replaced);
    if (kept && block.bytes < former.bytes)
        unreserve(device, LAMINA_CONTEXT, former.bytes - block.bytes);
    if (!kept && block.bytes > former.bytes)
        unreserve(device, LAMINA_CONTEXT, block.bytes - former.bytes);
    return result;
}
