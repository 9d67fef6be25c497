/* One kind of device memory at the limit: all that is left can be allocated, a byte (or the kind's step) more is CUDA
 * error 2, and after freeing all can be allocated again.
 * Arguments: how functions are found, kind. Prints "ok" or what went wrong. */
#include "facade_calls.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MIB ((size_t)1 << 20)

struct thing {
    CUdeviceptr pointer;
    CUmemGenericAllocationHandle handle;
    CUarray array;
    CUmipmappedArray mipmap;
    CUcontext context;
    size_t mapped;
};

struct kind {
    const char *name;
    size_t step; /* its granularity */
    CUresult (*take)(struct thing *thing, size_t bytes);
    void (*drop)(struct thing *thing);
};

static CUmemoryPool pool;
static const CUmemAllocationProp on_device = {.type = CU_MEM_ALLOCATION_TYPE_PINNED,
                                              .location = {CU_MEM_LOCATION_TYPE_DEVICE, 0}};

static CUresult take_plain(struct thing *t, size_t bytes)
{
    return CALL(cuMemAlloc_v2)(&t->pointer, bytes);
}
static CUresult take_managed(struct thing *t, size_t bytes)
{
    return CALL(cuMemAllocManaged)(&t->pointer, bytes, CU_MEM_ATTACH_GLOBAL);
}
static CUresult take_pitch(struct thing *t, size_t bytes)
{
    size_t pitch;
    return CALL(cuMemAllocPitch_v2)(&t->pointer, &pitch, 4, bytes / 512, 4); /* 4 bytes a row; the driver takes 512 */
}
static void drop_plain(struct thing *t)
{
    NEED(CALL(cuMemFree_v2)(t->pointer));
}

static CUresult take_async(struct thing *t, size_t bytes)
{
    return CALL(cuMemAllocAsync)(&t->pointer, bytes, NULL);
}
static void drop_async(struct thing *t)
{
    NEED(CALL(cuMemFreeAsync)(t->pointer, NULL));
    NEED(CALL(cuStreamSynchronize)(NULL));
}
static CUresult take_per_thread(struct thing *t, size_t bytes)
{
    return CALL(cuMemAllocAsync_ptsz)(&t->pointer, bytes, NULL);
}
static void drop_per_thread(struct thing *t)
{
    NEED(CALL(cuMemFreeAsync_ptsz)(t->pointer, NULL));
    NEED(CALL(cuCtxSynchronize)());
}
static CUresult take_pool(struct thing *t, size_t bytes)
{
    const CUmemPoolProps props = {.allocType = CU_MEM_ALLOCATION_TYPE_PINNED,
                                  .location = {CU_MEM_LOCATION_TYPE_DEVICE, 0}};
    if (pool == NULL)
        NEED(CALL(cuMemPoolCreate)(&pool, &props));
    return CALL(cuMemAllocFromPoolAsync)(&t->pointer, bytes, pool, NULL);
}

static CUresult take_physical(struct thing *t, size_t bytes)
{
    return CALL(cuMemCreate)(&t->handle, bytes, &on_device, 0);
}
static void drop_physical(struct thing *t)
{
    NEED(CALL(cuMemRelease)(t->handle));
}

/* Mapped, and released while mapped: the memory is held until it is unmapped. */
static CUresult take_mapped(struct thing *t, size_t bytes)
{
    CUresult result = CALL(cuMemCreate)(&t->handle, bytes, &on_device, 0);
    if (result != CUDA_SUCCESS)
        return result;
    NEED(CALL(cuMemAddressReserve)(&t->pointer, bytes, 0, 0, 0));
    NEED(CALL(cuMemMap)(t->pointer, bytes, 0, t->handle, 0));
    NEED(CALL(cuMemRelease)(t->handle));
    t->mapped = bytes;
    return CUDA_SUCCESS;
}
static void drop_mapped(struct thing *t)
{
    NEED(CALL(cuMemUnmap)(t->pointer, t->mapped));
}

static CUresult take_array(struct thing *t, size_t bytes)
{
    CUDA_ARRAY_DESCRIPTOR d = {.Width = 4096, .Height = bytes / 4096 / 16, .Format = 0x20, .NumChannels = 4};
    return CALL(cuArrayCreate_v2)(&t->array, &d);
}
static CUresult take_array3d(struct thing *t, size_t bytes)
{
    CUDA_ARRAY3D_DESCRIPTOR d = {
        .Width = 512, .Height = 512, .Depth = bytes / 512 / 512 / 4, .Format = 0x10, .NumChannels = 2};
    return CALL(cuArray3DCreate_v2)(&t->array, &d);
}
static void drop_array(struct thing *t)
{
    NEED(CALL(cuArrayDestroy)(t->array));
}

static CUresult take_mipmap(struct thing *t, size_t bytes)
{
    CUDA_ARRAY3D_DESCRIPTOR d = {.Width = bytes / 4096, .Height = 4096, .Format = 0x01, .NumChannels = 1};
    return CALL(cuMipmappedArrayCreate)(&t->mipmap, &d, 1);
}
static void drop_mipmap(struct thing *t)
{
    NEED(CALL(cuMipmappedArrayDestroy)(t->mipmap));
}

static const struct kind kinds[] = {
    {"plain", 2 * MIB, take_plain, drop_plain},
    {"managed", 2 * MIB, take_managed, drop_plain},
    {"pitch", 2 * MIB, take_pitch, drop_plain},
    {"async", 32 * MIB, take_async, drop_async},
    {"per-thread", 32 * MIB, take_per_thread, drop_per_thread},
    {"pool", 32 * MIB, take_pool, drop_async},
    {"async-freed-plainly", 32 * MIB, take_async, drop_plain},
    {"physical", 2 * MIB, take_physical, drop_physical},
    {"mapped", 2 * MIB, take_mapped, drop_mapped},
    {"array", 2 * MIB, take_array, drop_array},
    {"array3d", 2 * MIB, take_array3d, drop_array},
    {"mipmap", 2 * MIB, take_mipmap, drop_mipmap},
};

static size_t free_now(void)
{
    size_t left, total, device;
    NEED(CALL(cuMemGetInfo_v2)(&left, &total));
    NEED(CALL(cuMemGetInfo_v2)(NULL, NULL));
    NEED(CALL(cuDeviceTotalMem_v2)(&device, 0));
    if (device != total) {
        printf("cuDeviceTotalMem says %zu, cuMemGetInfo %zu\n", device, total);
        exit(1);
    }
    return left;
}

static void expect(const char *what, unsigned long long got, unsigned long long wanted)
{
    if (got == wanted)
        return;
    printf("%s: %llu instead of %llu\n", what, got, wanted);
    exit(1);
}

static void at_the_limit(const struct kind *kind)
{
    struct thing all = {0}, half = {0}, more = {0};
    size_t room = free_now(), whole = room / kind->step * kind->step;
    for (int round = 0; round < 2; round++) {
        expect("beyond the limit", kind->take(&more, whole + kind->step), CUDA_ERROR_OUT_OF_MEMORY);
        expect("exactly the limit", kind->take(&all, whole), CUDA_SUCCESS);
        expect("free at the limit", free_now(), room - whole);
        expect("one step more", kind->take(&more, kind->step), CUDA_ERROR_OUT_OF_MEMORY);
        kind->drop(&all);
        if (kind->drop == drop_plain)
            NEED(CALL(cuCtxSynchronize)());
        expect("free afterwards", free_now(), room);
        size_t part = whole / 2 / kind->step * kind->step;
        expect("half", kind->take(&half, part), CUDA_SUCCESS);
        expect("more than the rest", kind->take(&more, whole - part + kind->step), CUDA_ERROR_OUT_OF_MEMORY);
        expect("the rest", kind->take(&all, whole - part), CUDA_SUCCESS);
        kind->drop(&half);
        kind->drop(&all);
        NEED(CALL(cuCtxSynchronize)());
        expect("free in the end", free_now(), room);
    }
}

int main(int count, char **arguments)
{
    CUcontext context;
    if (count != 3)
        return 2;
    calls_find(arguments[1]);
    NEED(CALL(cuInit)(0));
    NEED(CALL(cuDevicePrimaryCtxRetain)(&context, 0));
    NEED(CALL(cuCtxSetCurrent)(context));
    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++)
        if (strcmp(kinds[i].name, arguments[2]) == 0) {
            at_the_limit(&kinds[i]);
            puts("ok");
            return 0;
        }
    return 2;
}
