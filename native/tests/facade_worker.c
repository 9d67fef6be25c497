/* A tenant that allocates and frees at random. With a context it prints "ready" and waits for a line. Arguments: how
 * functions are found, what to do, limit in MiB, rounds, seed. After every success it reads the simulated machine:
 * all processes together must never hold more than the limit. At the end it waits for another line.
 *
 *   race    random allocations of all sizes and kinds, each checked
 *   grab    takes 2 MiB at a time until refused
 *   loop    allocates and frees until killed */
#include "facade_offers.h"
#include "simgpu_ledger.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MIB ((size_t)1 << 20)
enum { HELD = 16 };

static const struct simgpu_gpu *machine;
static size_t limit;

static struct offer *offers;

static void check(void)
{
    size_t held = ledger_bytes(machine);
    if (held <= limit)
        return;
    printf("%zu bytes are held, %zu over the limit\n", held, held - limit);
    exit(1);
}

struct block {
    enum { NOTHING, POINTER, HANDLE, ARRAY, MIPMAP, IMPORT, GRAPH } is;
    CUdeviceptr pointer;
    CUmemGenericAllocationHandle handle;
    CUarray array;
    CUmipmappedArray mipmap;
    CUgraph graph;
    CUgraphExec run;
};

static CUresult use_offer(struct block *block)
{
    CUresult result = offer_use(&offers[rand() % OFFERS], &block->pointer);
    block->is = IMPORT;
    return result == CUDA_SUCCESS ? result : CUDA_ERROR_OUT_OF_MEMORY;
}

static void drop_graph(struct block *block)
{
    NEED(CALL(cuGraphDestroy)(block->graph));
    NEED(CALL(cuGraphExecDestroy)(block->run));
}

static CUresult take_graph(struct block *block, size_t bytes)
{
    static CUstream stream;
    if (stream == NULL)
        NEED(CALL(cuStreamCreate)(&stream, 0));
    NEED(CALL(cuStreamBeginCapture_v2)(stream, 0));
    NEED(CALL(cuMemAllocAsync)(&block->pointer, bytes, stream));
    NEED(CALL(cuMemFreeAsync)(block->pointer, stream));
    NEED(CALL(cuStreamEndCapture)(stream, &block->graph));
    NEED(CALL(cuGraphInstantiateWithFlags)(&block->run, block->graph, 0));
    CUresult result = CALL(cuGraphLaunch)(block->run, stream);
    block->is = GRAPH;
    if (result != CUDA_SUCCESS)
        drop_graph(block);
    return result;
}

static CUresult take_shaped(struct block *block, size_t bytes)
{
    const CUDA_ARRAY_DESCRIPTOR flat = {.Width = 4096, .Height = bytes / 4096, .Format = 0x01, .NumChannels = 1};
    const CUDA_ARRAY3D_DESCRIPTOR level = {.Width = 4096, .Height = bytes / 4096, .Format = 0x01, .NumChannels = 1};
    block->is = rand() % 2 ? ARRAY : MIPMAP;
    return block->is == ARRAY ? CALL(cuArrayCreate_v2)(&block->array, &flat)
                              : CALL(cuMipmappedArrayCreate)(&block->mipmap, &level, 1);
}

static CUresult take(struct block *block)
{
    static const CUmemAllocationProp on_device = {.type = CU_MEM_ALLOCATION_TYPE_PINNED,
                                                  .location = {CU_MEM_LOCATION_TYPE_DEVICE, 0}};
    size_t bytes = (size_t)(1 + rand() % 40) * 2 * MIB, pitch;
    int kind = rand() % 12;
    block->is = kind == 0 || kind == 1 ? HANDLE : POINTER;
    switch (kind) {
    case 0:
    case 1:
        return CALL(cuMemCreate)(&block->handle, bytes, &on_device, 0);
    case 2:
        return CALL(cuMemAllocAsync)(&block->pointer, bytes, NULL);
    case 3:
        return CALL(cuMemAllocPitch_v2)(&block->pointer, &pitch, 4096, bytes / 4096, 4);
    case 4:
        return CALL(cuMemAllocManaged)(&block->pointer, bytes, CU_MEM_ATTACH_GLOBAL);
    case 5:
        return take_shaped(block, bytes);
    case 6:
    case 7:
        return use_offer(block);
    case 8:
        return take_graph(block, bytes);
    case 9:
        return CALL(cuMemAlloc_v2)(&block->pointer, 1 + (size_t)rand() % MIB);
    default:
        return CALL(cuMemAlloc_v2)(&block->pointer, bytes);
    }
}

static void drop(struct block *block)
{
    if (block->is == HANDLE)
        NEED(CALL(cuMemRelease)(block->handle));
    else if (block->is == ARRAY)
        NEED(CALL(cuArrayDestroy)(block->array));
    else if (block->is == MIPMAP)
        NEED(CALL(cuMipmappedArrayDestroy)(block->mipmap));
    else if (block->is == IMPORT)
        NEED(CALL(cuIpcCloseMemHandle)(block->pointer));
    else if (block->is == GRAPH)
        drop_graph(block);
    else if (block->is == POINTER)
        NEED(CALL(cuMemFree_v2)(block->pointer));
    *block = (struct block){0};
}

static void race(int rounds)
{
    struct block held[HELD] = {0};
    int taken = 0, refused = 0, imported = 0, run = 0;
    for (int round = 0; round < rounds; round++) {
        struct block *block = &held[rand() % HELD];
        drop(block);
        CUresult result = take(block);
        check();
        taken += result == CUDA_SUCCESS;
        imported += result == CUDA_SUCCESS && block->is == IMPORT;
        run += result == CUDA_SUCCESS && block->is == GRAPH;
        if (result == CUDA_SUCCESS && block->is == POINTER)
            offer_memory(&offers[rand() % OFFERS], block->pointer);
        refused += result == CUDA_ERROR_OUT_OF_MEMORY;
        if (result != CUDA_SUCCESS) {
            *block = (struct block){0};
            if (result != CUDA_ERROR_OUT_OF_MEMORY)
                need(result, "take", __LINE__);
        }
    }
    for (int i = 0; i < HELD; i++)
        drop(&held[i]);
    NEED(CALL(cuCtxSynchronize)());
    printf("ok %d %d %d %d\n", taken, refused, imported, run);
}

static void grab(void)
{
    CUdeviceptr pointer;
    CUresult result;
    int taken = 0;
    while ((result = CALL(cuMemAlloc_v2)(&pointer, 2 * MIB)) == CUDA_SUCCESS) {
        taken++;
        check();
    }
    printf("%s %d\n", result == CUDA_ERROR_OUT_OF_MEMORY ? "ok" : "wrong error", taken);
}

int main(int count, char **arguments)
{
    CUcontext context;
    if (count != 6)
        return 2;
    calls_find(arguments[1]);
    limit = strtoull(arguments[3], NULL, 10) * MIB;
    srand((unsigned)atoi(arguments[5]));
    machine = ledger_open();
    offers = offers_open();
    NEED(CALL(cuInit)(0));
    CUresult result = CALL(cuDevicePrimaryCtxRetain)(&context, 0);
    check();
    if (result != CUDA_SUCCESS) {
        printf("context %d\n", result);
        return 4;
    }
    NEED(CALL(cuCtxSetCurrent)(context));
    puts("ready");
    fflush(stdout);
    if (strcmp(arguments[2], "loop") != 0)
        getchar(); /* all start together */
    if (strcmp(arguments[2], "grab") == 0)
        grab();
    else
        race(strcmp(arguments[2], "loop") == 0 ? 1 << 30 : atoi(arguments[4]));
    fflush(stdout);
    getchar(); /* the simulated GPU takes a while to notice a process's end, so none ends before all are ready */
    check();
    return 0;
}
