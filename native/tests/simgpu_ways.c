/* One small program that calls the driver in three ways: linked, by dlopen and dlsym, and by cuGetProcAddress.
 * Prints "ok WAY" for each, or what went wrong and ends with 1. */
#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

#include "cuda_prototypes.h"

struct api {
    __typeof__(cuInit) *init;
    __typeof__(cuDevicePrimaryCtxRetain) *retain;
    __typeof__(cuCtxSetCurrent) *set_current;
    __typeof__(cuMemAlloc_v2) *alloc;
    __typeof__(cuMemGetInfo_v2) *info;
    __typeof__(cuMemcpyHtoD_v2) *to_device;
    __typeof__(cuMemcpyDtoH_v2) *to_host;
    __typeof__(cuMemFree_v2) *free;
    __typeof__(cuDevicePrimaryCtxRelease_v2) *release;
};

#define EXPECT(condition)                                                                                              \
    do {                                                                                                               \
        if (!(condition)) {                                                                                            \
            printf("%s: line %d: %s\n", way, __LINE__, #condition);                                                    \
            return 1;                                                                                                  \
        }                                                                                                              \
    } while (0)

static int try_out(const char *way, const struct api *cu)
{
    CUcontext ctx;
    CUdeviceptr at;
    size_t before, between, after, total;
    char text[32] = "three ways to one driver", back[32] = "";
    EXPECT(cu->init(0) == CUDA_SUCCESS);
    EXPECT(cu->retain(&ctx, 0) == CUDA_SUCCESS);
    EXPECT(cu->set_current(ctx) == CUDA_SUCCESS);
    EXPECT(cu->info(&before, &total) == CUDA_SUCCESS);
    EXPECT(cu->alloc(&at, 64 << 20) == CUDA_SUCCESS);
    EXPECT(cu->info(&between, &total) == CUDA_SUCCESS);
    EXPECT(before - between == 64 << 20);
    EXPECT(cu->to_device(at, text, sizeof text) == CUDA_SUCCESS);
    EXPECT(cu->to_host(back, at, sizeof back) == CUDA_SUCCESS);
    EXPECT(memcmp(text, back, sizeof text) == 0);
    EXPECT(cu->alloc(&(CUdeviceptr){0}, total) == CUDA_ERROR_OUT_OF_MEMORY);
    EXPECT(cu->free(at) == CUDA_SUCCESS);
    EXPECT(cu->info(&after, &total) == CUDA_SUCCESS);
    EXPECT(after == before);
    EXPECT(cu->release(0) == CUDA_SUCCESS);
    printf("ok %s\n", way);
    return 0;
}

static struct api linked(void)
{
    return (struct api){cuInit,
                        cuDevicePrimaryCtxRetain,
                        cuCtxSetCurrent,
                        cuMemAlloc_v2,
                        cuMemGetInfo_v2,
                        cuMemcpyHtoD_v2,
                        cuMemcpyDtoH_v2,
                        cuMemFree_v2,
                        cuDevicePrimaryCtxRelease_v2};
}

static struct api by_dlsym(void)
{
    static const char *names[] = {"cuInit",
                                  "cuDevicePrimaryCtxRetain",
                                  "cuCtxSetCurrent",
                                  "cuMemAlloc_v2",
                                  "cuMemGetInfo_v2",
                                  "cuMemcpyHtoD_v2_ptds",
                                  "cuMemcpyDtoH_v2_ptds",
                                  "cuMemFree_v2",
                                  "cuDevicePrimaryCtxRelease_v2"};
    void *library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
    struct api cu;
    void **slots = (void **)&cu;
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        slots[i] = dlsym(library, names[i]);
    return cu;
}

static struct api by_proc_address(void)
{
    static const char *names[] = {"cuInit",
                                  "cuDevicePrimaryCtxRetain",
                                  "cuCtxSetCurrent",
                                  "cuMemAlloc",
                                  "cuMemGetInfo",
                                  "cuMemcpyHtoD",
                                  "cuMemcpyDtoH",
                                  "cuMemFree",
                                  "cuDevicePrimaryCtxRelease"};
    struct api cu;
    void **slots = (void **)&cu;
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        cuGetProcAddress_v2(names[i], &slots[i], 11070, CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM, NULL);
    return cu;
}

int main(void)
{
    struct api ways[] = {linked(), by_dlsym(), by_proc_address()};
    return try_out("linked", &ways[0]) || try_out("dlsym", &ways[1]) || try_out("cuGetProcAddress", &ways[2]);
}
