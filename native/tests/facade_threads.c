/* Threads of one process that allocate and free at the same time. At the end everything must be free again.
 * Arguments: threads, rounds. Prints "ok" or how many bytes are missing. */
#include "facade_calls.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

#define MIB ((size_t)1 << 20)
enum { HELD = 8, MAX_THREADS = 16 };

static CUcontext context;
static int rounds;

struct block {
    int kind; /* 0: nothing */
    CUdeviceptr pointer;
    CUmemGenericAllocationHandle handle;
    CUarray array;
};

static void take(struct block *b, int kind, size_t mib)
{
    static const CUmemAllocationProp on_device = {.type = CU_MEM_ALLOCATION_TYPE_PINNED,
                                                  .location = {CU_MEM_LOCATION_TYPE_DEVICE, 0}};
    const CUDA_ARRAY_DESCRIPTOR shape = {.Width = MIB, .Height = mib, .Format = 0x01, .NumChannels = 1};
    CUresult result;
    if (kind == 1)
        result = CALL(cuMemAlloc_v2)(&b->pointer, mib * MIB);
    else if (kind == 2)
        result = CALL(cuMemAllocManaged)(&b->pointer, mib * MIB, CU_MEM_ATTACH_GLOBAL);
    else if (kind == 3)
        result = CALL(cuMemAllocAsync)(&b->pointer, mib * MIB, NULL);
    else if (kind == 4)
        result = CALL(cuMemCreate)(&b->handle, mib * MIB, &on_device, 0);
    else
        result = CALL(cuArrayCreate_v2)(&b->array, &shape);
    if (result != CUDA_ERROR_OUT_OF_MEMORY)
        NEED(result);
    b->kind = result == CUDA_SUCCESS ? kind : 0;
}

static void drop(struct block *b)
{
    switch (b->kind) {
    case 1:
    case 2:
        NEED(CALL(cuMemFree_v2)(b->pointer));
        break;
    case 3:
        NEED(CALL(cuMemFreeAsync)(b->pointer, NULL));
        break;
    case 4:
        NEED(CALL(cuMemRelease)(b->handle));
        break;
    case 5:
        NEED(CALL(cuArrayDestroy)(b->array));
        break;
    }
    b->kind = 0;
}

static void *work(void *argument)
{
    unsigned seed = (unsigned)(size_t)argument;
    struct block held[HELD] = {{0}};
    NEED(CALL(cuCtxSetCurrent)(context));
    for (int round = 0; round < rounds; round++) {
        struct block *block = &held[rand_r(&seed) % HELD];
        drop(block);
        take(block, 1 + rand_r(&seed) % 5, (size_t)(1 + rand_r(&seed) % 20) * 2);
    }
    for (int i = 0; i < HELD; i++)
        drop(&held[i]);
    return NULL;
}

int main(int count, char **arguments)
{
    pthread_t threads[MAX_THREADS];
    size_t before, after, total;
    if (count != 3 || atoi(arguments[1]) > MAX_THREADS)
        return 2;
    rounds = atoi(arguments[2]);
    calls_find("linked");
    NEED(CALL(cuInit)(0));
    NEED(CALL(cuDevicePrimaryCtxRetain)(&context, 0));
    NEED(CALL(cuCtxSetCurrent)(context));
    NEED(CALL(cuMemGetInfo_v2)(&before, &total));
    for (int i = 0; i < atoi(arguments[1]); i++)
        pthread_create(&threads[i], NULL, work, (void *)(size_t)(i + 1));
    for (int i = 0; i < atoi(arguments[1]); i++)
        pthread_join(threads[i], NULL);
    NEED(CALL(cuCtxSynchronize)());
    NEED(CALL(cuMemGetInfo_v2)(&after, &total));
    if (before == after)
        puts("ok");
    else
        printf("%zd bytes are missing\n", (ssize_t)(before - after));
    return 0;
}
