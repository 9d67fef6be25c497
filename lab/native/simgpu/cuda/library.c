/* Libraries: modules that belong to no context. A kernel is its function. */
#include "cuda/driver.h"
#include "cuda/function.h"
#include "cuda/kernel_names.h"
#include "cuda/module.h"

#include <stdlib.h>

static CUmodule module_of(CUlibrary library)
{
    return (CUmodule)library;
}

CUresult cuLibraryLoadData(CUlibrary *out, const void *code, CUjit_option *options, void **values, unsigned int count,
                           CUlibraryOption *library_options, void **library_values, unsigned int library_count)
{
    (void)options, (void)values, (void)count, (void)library_options, (void)library_values, (void)library_count;
    TRY(driver_check_ready());
    if (out == NULL || code == NULL)
        return CUDA_ERROR_INVALID_VALUE;
    if (!kernel_names_is_code(code))
        return CUDA_ERROR_INVALID_IMAGE;
    *out = (CUlibrary)module_create(code);
    return *out != NULL ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

CUresult cuLibraryLoadFromFile(CUlibrary *out, const char *file, CUjit_option *options, void **values,
                               unsigned int count, CUlibraryOption *library_options, void **library_values,
                               unsigned int library_count)
{
    char *image;
    TRY(module_read_file(file, &image));
    CUresult result =
        cuLibraryLoadData(out, image, options, values, count, library_options, library_values, library_count);
    free(image);
    return result;
}

CUresult cuLibraryUnload(CUlibrary library)
{
    return cuModuleUnload(module_of(library));
}

CUresult cuLibraryGetKernel(CUkernel *out, CUlibrary library, const char *name)
{
    return cuModuleGetFunction((CUfunction *)out, module_of(library), name);
}

CUresult cuLibraryGetModule(CUmodule *out, CUlibrary library)
{
    if (out == NULL || library == NULL)
        return CUDA_ERROR_INVALID_VALUE;
    *out = module_of(library);
    return CUDA_SUCCESS;
}

CUresult cuLibraryGetGlobal(CUdeviceptr *at, size_t *bytes, CUlibrary library, const char *name)
{
    return cuModuleGetGlobal_v2(at, bytes, module_of(library), name);
}

CUresult cuKernelGetFunction(CUfunction *out, CUkernel kernel)
{
    if (out == NULL || !function_is_valid((CUfunction)kernel))
        return CUDA_ERROR_INVALID_HANDLE;
    *out = (CUfunction)kernel;
    return CUDA_SUCCESS;
}

CUresult cuKernelGetName(const char **name, CUkernel kernel)
{
    return cuFuncGetName(name, (CUfunction)kernel);
}

CUresult cuKernelGetAttribute(int *value, CUfunction_attribute attribute, CUkernel kernel, CUdevice ordinal)
{
    (void)ordinal;
    return cuFuncGetAttribute(value, attribute, (CUfunction)kernel);
}

CUresult cuKernelSetAttribute(CUfunction_attribute attribute, int value, CUkernel kernel, CUdevice ordinal)
{
    (void)ordinal;
    return cuFuncSetAttribute((CUfunction)kernel, attribute, value);
}

CUresult cuKernelSetCacheConfig(CUkernel kernel, CUfunc_cache config, CUdevice ordinal)
{
    (void)ordinal;
    return cuFuncSetCacheConfig((CUfunction)kernel, config);
}
