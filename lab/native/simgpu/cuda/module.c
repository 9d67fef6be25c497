#include "cuda/module.h"

#include "cuda/driver.h"
#include "cuda/function.h"
#include "cuda/kernel_names.h"
#include "cuda/memory.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MODULE_MAGIC 0x4d4f4455

struct CUmod_st {
    uint32_t magic;
    struct kernel_names names;
    CUfunction functions;      /* those that the program asked for */
    struct allocation *memory; /* NULL: none, or ended with its context */
};

CUmodule module_create(const void *image)
{
    CUmodule module = calloc(1, sizeof *module);
    if (module == NULL || !kernel_names_read(&module->names, image)) {
        free(module);
        return NULL;
    }
    module->magic = MODULE_MAGIC;
    return module;
}

static void destroy(CUmodule module)
{
    driver_lock();
    memory_free(module->memory);
    driver_unlock();
    while (module->functions != NULL) {
        CUfunction f = module->functions;
        module->functions = f->next;
        function_destroy(f);
    }
    kernel_names_free(&module->names);
    module->magic = 0;
    free(module);
}

static CUresult check(CUmodule module)
{
    return module != NULL && module->magic == MODULE_MAGIC ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE;
}

/* The function of this name. It is created at the first call. */
static CUfunction find_function(CUmodule module, const char *name)
{
    driver_lock();
    CUfunction f = module->functions;
    while (f != NULL && strcmp(f->name, name) != 0)
        f = f->next;
    if (f == NULL && (f = function_create(module, module->names.target, name)) != NULL) {
        f->next = module->functions;
        module->functions = f;
    }
    driver_unlock();
    return f;
}

static CUresult take_memory(CUmodule module, CUcontext ctx, const char *image)
{
    unsigned int mib;
    if (strncmp(image, "mib=", 4) != 0 || sscanf(image, "mib=%u", &mib) != 1 || mib == 0)
        return CUDA_SUCCESS;
    driver_lock();
    CUresult result = memory_allocate(ctx, KIND_ARRAY, mib * MIB, &module->memory); /* not freed by its address */
    if (result == CUDA_SUCCESS)
        module->memory->extra = &module->memory;
    driver_unlock();
    return result;
}

static CUresult load(CUmodule *out, const void *image)
{
    CUcontext ctx;
    TRY(context_require(&ctx));
    if (out == NULL || image == NULL)
        return CUDA_ERROR_INVALID_VALUE;
    if (!kernel_names_is_code(image))
        return CUDA_ERROR_INVALID_IMAGE;
    CUmodule module = module_create(image);
    if (module == NULL)
        return CUDA_ERROR_OUT_OF_MEMORY;
    CUresult result = take_memory(module, ctx, image);
    if (result == CUDA_SUCCESS)
        *out = module;
    else
        destroy(module);
    return result;
}

CUresult cuModuleLoad(CUmodule *out, const char *file)
{
    char *image;
    TRY(module_read_file(file, &image));
    CUresult result = load(out, image);
    free(image);
    return result;
}

CUresult cuModuleLoadData(CUmodule *out, const void *image)
{
    return load(out, image);
}

CUresult cuModuleLoadDataEx(CUmodule *out, const void *image, unsigned int count, CUjit_option *options, void **values)
{
    (void)count, (void)options, (void)values;
    return load(out, image);
}

CUresult cuModuleLoadFatBinary(CUmodule *out, const void *image)
{
    return load(out, image);
}

CUresult cuModuleUnload(CUmodule module)
{
    TRY(driver_check_ready());
    TRY(check(module));
    destroy(module);
    return CUDA_SUCCESS;
}

CUresult cuModuleGetFunction(CUfunction *out, CUmodule module, const char *name)
{
    TRY(driver_check_ready());
    if (out == NULL || name == NULL)
        return CUDA_ERROR_INVALID_VALUE;
    TRY(check(module));
    if (!kernel_names_have(&module->names, name))
        return CUDA_ERROR_NOT_FOUND;
    *out = find_function(module, name);
    return *out != NULL ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

CUresult cuModuleGetGlobal_v2(CUdeviceptr *at, size_t *bytes, CUmodule module, const char *name)
{
    (void)at, (void)bytes, (void)module, (void)name;
    return CUDA_ERROR_NOT_FOUND;
}

CUresult cuModuleGetLoadingMode(CUmoduleLoadingMode *mode)
{
    enum { LAZY = 2 };
    TRY(driver_check_ready());
    if (mode == NULL)
        return CUDA_ERROR_INVALID_VALUE;
    *mode = LAZY;
    return CUDA_SUCCESS;
}

static CUresult read_all(FILE *file, char **out)
{
    if (fseek(file, 0, SEEK_END) != 0)
        return CUDA_ERROR_FILE_NOT_FOUND;
    long bytes = ftell(file);
    char *image = bytes >= 0 ? malloc((size_t)bytes + 1) : NULL;
    if (image == NULL)
        return CUDA_ERROR_OUT_OF_MEMORY;
    rewind(file);
    if (fread(image, 1, (size_t)bytes, file) != (size_t)bytes) {
        free(image);
        return CUDA_ERROR_FILE_NOT_FOUND;
    }
    image[bytes] = '\0';
    *out = image;
    return CUDA_SUCCESS;
}

CUresult module_read_file(const char *path, char **out)
{
    if (path == NULL)
        return CUDA_ERROR_INVALID_VALUE;
    FILE *file = fopen(path, "rbe");
    if (file == NULL)
        return CUDA_ERROR_FILE_NOT_FOUND;
    CUresult result = read_all(file, out);
    fclose(file);
    return result;
}
