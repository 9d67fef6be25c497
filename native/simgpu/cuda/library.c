/* Libraries: modules that belong to no context. A kernel is its function. */
#include "module.h"

static CUmodule module_of(CUlibrary library) { return (CUmodule)library; }

SIM_API CUresult cuLibraryLoadData(CUlibrary *out, const void *code, CUjit_option *options, void **values,
                                   unsigned int count, CUlibraryOption *library_options, void **library_values,
                                   unsigned int library_count) {
    (void)options, (void)values, (void)count, (void)library_options, (void)library_values, (void)library_count;
    if (driver_ready() != CUDA_SUCCESS) return CUDA_ERROR_NOT_INITIALIZED;
    if (out == NULL || code == NULL) return CUDA_ERROR_INVALID_VALUE;
    *out = (CUlibrary)module_new();
    return *out != NULL ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

SIM_API CUresult cuLibraryLoadFromFile(CUlibrary *out, const char *file, CUjit_option *options, void **values,
                                       unsigned int count, CUlibraryOption *library_options, void **library_values,
                                       unsigned int library_count) {
    return cuLibraryLoadData(out, file, options, values, count, library_options, library_values, library_count);
}

SIM_API CUresult cuLibraryUnload(CUlibrary library) { return cuModuleUnload(module_of(library)); }

SIM_API CUresult cuLibraryGetKernel(CUkernel *out, CUlibrary library, const char *name) {
    return cuModuleGetFunction((CUfunction *)out, module_of(library), name);
}

SIM_API CUresult cuLibraryGetModule(CUmodule *out, CUlibrary library) {
    if (out == NULL || library == NULL) return CUDA_ERROR_INVALID_VALUE;
    *out = module_of(library);
    return CUDA_SUCCESS;
}

SIM_API CUresult cuLibraryGetGlobal(CUdeviceptr *at, size_t *bytes, CUlibrary library, const char *name) {
    return cuModuleGetGlobal_v2(at, bytes, module_of(library), name);
}

SIM_API CUresult cuKernelGetFunction(CUfunction *out, CUkernel kernel) {
    if (out == NULL || !function_valid((CUfunction)kernel)) return CUDA_ERROR_INVALID_HANDLE;
    *out = (CUfunction)kernel;
    return CUDA_SUCCESS;
}

SIM_API CUresult cuKernelGetName(const char **name, CUkernel kernel) { return cuFuncGetName(name, (CUfunction)kernel); }

SIM_API CUresult cuKernelGetAttribute(int *value, CUfunction_attribute attribute, CUkernel kernel, CUdevice ordinal) {
    (void)ordinal;
    return cuFuncGetAttribute(value, attribute, (CUfunction)kernel);
}

SIM_API CUresult cuKernelSetAttribute(CUfunction_attribute attribute, int value, CUkernel kernel, CUdevice ordinal) {
    (void)ordinal;
    return cuFuncSetAttribute((CUfunction)kernel, attribute, value);
}

SIM_API CUresult cuKernelSetCacheConfig(CUkernel kernel, CUfunc_cache config, CUdevice ordinal) {
    (void)ordinal;
    return cuFuncSetCacheConfig((CUfunction)kernel, config);
}
