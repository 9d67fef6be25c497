/* Modules and functions. There is no code to run: a function is a name. `spin` takes as many nanoseconds as its first
 * parameter, a uint64, says; `empty` takes none; any other takes the machine's default. A module takes no memory unless
 * its image is the text "mib=" and a number: then so much, for its code and variables. */
#include "memory.h"
#include "module.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define FUNCTION_MAGIC 0x46554e43u
#define MODULE_MAGIC 0x4d4f4455u

struct CUmod_st {
    uint32_t magic;
    CUfunction functions;
    allocation *memory; /* NULL: none, or gone with its context */
};

bool function_valid(CUfunction f) { return f != NULL && f->magic == FUNCTION_MAGIC; }

uint64_t function_duration(CUfunction f, void **params, void **extra) {
    enum { END = 0, BUFFER_POINTER = 1 };
    uint64_t ns = 0;
    if (f->kind == FUNCTION_EMPTY) return 0;
    if (f->kind == FUNCTION_PLAIN) return driver.m.head->kernel_ns;
    if (params != NULL && params[0] != NULL) memcpy(&ns, params[0], sizeof ns);
    for (int i = 0; params == NULL && extra != NULL && extra[i] != (void *)END; i += 2)
        if (extra[i] == (void *)BUFFER_POINTER) memcpy(&ns, extra[i + 1], sizeof ns);
    return ns;
}

CUmodule module_new(void) {
    CUmodule module = calloc(1, sizeof *module);
    if (module != NULL) module->magic = MODULE_MAGIC;
    return module;
}

void module_delete(CUmodule module) {
    driver_lock();
    memory_free(module->memory);
    driver_unlock();
    while (module->functions != NULL) {
        CUfunction f = module->functions;
        module->functions = f->next;
        f->magic = 0;
        free(f);
    }
    module->magic = 0;
    free(module);
}

CUfunction module_function(CUmodule module, const char *name) {
    driver_lock();
    CUfunction f = module->functions;
    while (f != NULL && strcmp(f->name, name) != 0) f = f->next;
    if (f == NULL && (f = calloc(1, sizeof *f + strlen(name) + 1)) != NULL) {
        f->magic = FUNCTION_MAGIC;
        f->kind = strcmp(name, "spin") == 0 ? FUNCTION_SPIN : strcmp(name, "empty") == 0 ? FUNCTION_EMPTY : FUNCTION_PLAIN;
        f->module = module;
        f->next = module->functions;
        strcpy(f->name, name);
        module->functions = f;
    }
    driver_unlock();
    return f;
}

static CUresult load(CUmodule *out, const void *image) {
    CUcontext ctx;
    CUresult result = context_needed(&ctx);
    if (result != CUDA_SUCCESS) return result;
    if (out == NULL || image == NULL) return CUDA_ERROR_INVALID_VALUE;
    unsigned int mib;
    CUmodule module = module_new();
    if (module == NULL) return CUDA_ERROR_OUT_OF_MEMORY;
    if (strncmp(image, "mib=", 4) == 0 && sscanf(image, "mib=%u", &mib) == 1 && mib > 0) {
        driver_lock();
        result = memory_new(ctx, KIND_ARRAY, mib * MIB, &module->memory); /* not to be freed by its address */
        if (result == CUDA_SUCCESS) module->memory->extra = &module->memory;
        driver_unlock();
    }
    if (result == CUDA_SUCCESS) *out = module;
    else module_delete(module);
    return result;
}

SIM_API CUresult cuModuleLoad(CUmodule *out, const char *file) { return load(out, file); }

SIM_API CUresult cuModuleLoadData(CUmodule *out, const void *image) { return load(out, image); }

SIM_API CUresult cuModuleLoadDataEx(CUmodule *out, const void *image, unsigned int count, CUjit_option *options,
                                    void **values) {
    (void)count, (void)options, (void)values;
    return load(out, image);
}

SIM_API CUresult cuModuleLoadFatBinary(CUmodule *out, const void *image) { return load(out, image); }

SIM_API CUresult cuModuleUnload(CUmodule module) {
    if (driver_ready() != CUDA_SUCCESS) return CUDA_ERROR_NOT_INITIALIZED;
    if (module == NULL || module->magic != MODULE_MAGIC) return CUDA_ERROR_INVALID_HANDLE;
    module_delete(module);
    return CUDA_SUCCESS;
}

SIM_API CUresult cuModuleGetFunction(CUfunction *out, CUmodule module, const char *name) {
    if (driver_ready() != CUDA_SUCCESS) return CUDA_ERROR_NOT_INITIALIZED;
    if (out == NULL || name == NULL) return CUDA_ERROR_INVALID_VALUE;
    if (module == NULL || module->magic != MODULE_MAGIC) return CUDA_ERROR_INVALID_HANDLE;
    *out = module_function(module, name);
    return *out != NULL ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

SIM_API CUresult cuModuleGetGlobal_v2(CUdeviceptr *at, size_t *bytes, CUmodule module, const char *name) {
    (void)at, (void)bytes, (void)module, (void)name;
    return CUDA_ERROR_NOT_FOUND;
}

SIM_API CUresult cuModuleGetLoadingMode(CUmoduleLoadingMode *mode) {
    if (driver_ready() != CUDA_SUCCESS) return CUDA_ERROR_NOT_INITIALIZED;
    if (mode == NULL) return CUDA_ERROR_INVALID_VALUE;
    *mode = 2; /* lazy */
    return CUDA_SUCCESS;
}

SIM_API CUresult cuFuncGetModule(CUmodule *out, CUfunction f) {
    if (!function_valid(f)) return CUDA_ERROR_INVALID_HANDLE;
    *out = f->module;
    return CUDA_SUCCESS;
}

SIM_API CUresult cuFuncGetName(const char **name, CUfunction f) {
    if (!function_valid(f)) return CUDA_ERROR_INVALID_HANDLE;
    *name = f->name;
    return CUDA_SUCCESS;
}

SIM_API CUresult cuFuncGetAttribute(int *value, CUfunction_attribute attribute, CUfunction f) {
    static const int values[] = {1024, 0, 0, 0, 32, 70, 70, 0, 49152, -1};
    if (!function_valid(f)) return CUDA_ERROR_INVALID_HANDLE;
    if (value == NULL || attribute < 0 || attribute > 17) return CUDA_ERROR_INVALID_VALUE;
    *value = attribute < 10 ? values[attribute] : 0;
    return CUDA_SUCCESS;
}

SIM_API CUresult cuFuncSetAttribute(CUfunction f, CUfunction_attribute attribute, int value) {
    (void)attribute, (void)value;
    return function_valid(f) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE;
}

SIM_API CUresult cuFuncSetCacheConfig(CUfunction f, CUfunc_cache config) {
    (void)config;
    return function_valid(f) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE;
}

SIM_API CUresult cuFuncSetSharedMemConfig(CUfunction f, CUsharedconfig config) {
    (void)config;
    return function_valid(f) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE;
}

SIM_API CUresult cuFuncLoad(CUfunction f) { return function_valid(f) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE; }

SIM_API CUresult cuFuncIsLoaded(int *state, CUfunction f) {
    if (!function_valid(f)) return CUDA_ERROR_INVALID_HANDLE;
    *state = 1;
    return CUDA_SUCCESS;
}

SIM_API CUresult cuOccupancyMaxActiveBlocksPerMultiprocessor(int *blocks, CUfunction f, int threads, size_t shared) {
    CUcontext ctx;
    CUresult result = context_needed(&ctx);
    (void)shared;
    if (result != CUDA_SUCCESS) return result;
    if (!function_valid(f) || threads <= 0 || blocks == NULL) return CUDA_ERROR_INVALID_VALUE;
    *blocks = (int)device_record(ctx->dev)->threads_per_sm / ((threads + 31) / 32 * 32);
    return CUDA_SUCCESS;
}

SIM_API CUresult cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(int *blocks, CUfunction f, int threads,
                                                                      size_t shared, unsigned int flags) {
    (void)flags;
    return cuOccupancyMaxActiveBlocksPerMultiprocessor(blocks, f, threads, shared);
}
