#include "bench.h"

#include <dlfcn.h>

struct driver cuda;

void bench_failed(CUresult result, const char *call)
{
    printf("%s gave %d\n", call, result);
    exit(1);
}

void bench_find(void)
{
    void *library = dlopen("libcuda.so.1", RTLD_NOW);
#define FIND(name)                                                                                                     \
    cuda.name = library == NULL ? NULL : (__typeof__(cuda.name))dlsym(library, #name);                                 \
    if (cuda.name == NULL)                                                                                             \
        bench_failed(CUDA_ERROR_NOT_FOUND, #name);
    CALLS(FIND)
}

CUcontext bench_begin(void)
{
    CUcontext context;
    bench_find();
    need(cuda.cuInit(0), "cuInit");
    need(cuda.cuDevicePrimaryCtxRetain(&context, 0), "cuDevicePrimaryCtxRetain");
    need(cuda.cuCtxSetCurrent(context), "cuCtxSetCurrent");
    return context;
}
