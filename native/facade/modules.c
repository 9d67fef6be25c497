/* Loaded code and its global variables, as modules and as libraries. What they take is known only afterwards, by the
 * driver's own figure for this process; what is over the limit is unloaded at once. Where there is no figure, what the image
 * takes at least is announced and counted. Of code that the driver loads when it is first used, that counts from the
 * start, and what is beyond it does not. */
#include "blocks.h"
#include "contexts.h"
#include "hold.h"
#include "hooks.h"
#include "images.h"
#include "release.h"

struct loading {
    CUcontext context;
    int device;
    uint64_t figure, own;
    uint64_t announced;
    bool known;
};

static CUresult begin(struct loading *loading, uint64_t least)
{
    *loading = (struct loading){0};
    loading->device = context_device(&loading->context);
    loading->known = loading->device >= 0 && figure_of_process(loading->device, &loading->figure);
    if (loading->known)
        loading->own = hold_own(loading->device);
    else if (loading->device >= 0)
        loading->announced = in_blocks(least);
    return loading->announced == 0 ? CUDA_SUCCESS : hold(loading->device, LAMINA_MODULE, loading->announced);
}

/* What the process's figure grew by, apart from what other threads were given meanwhile. */
static uint64_t grown(const struct loading *loading)
{
    uint64_t figure = 0, own = hold_own(loading->device);
    uint64_t given = own > loading->own ? own - loading->own : 0;
    if (!loading->known || !figure_of_process(loading->device, &figure) || figure <= loading->figure + given)
        return loading->announced;
    return figure - loading->figure - given;
}

static CUresult loaded(const struct loading *loading, CUresult result, const void *code, CUresult (*unload)(void *))
{
    struct block replaced, block = {.key = (uint64_t)(uintptr_t)code, .context = (uint64_t)(uintptr_t)loading->context,
                                    .class = BLOCK_MODULE, .kind = LAMINA_MODULE, .device = (uint8_t)loading->device};
    if (result != CUDA_SUCCESS && loading->announced > 0)
        give_back(loading->device, LAMINA_MODULE, loading->announced);
    if (result != CUDA_SUCCESS || (block.bytes = grown(loading)) == 0)
        return result;
    if (loading->announced == 0)
        result = hold(loading->device, LAMINA_MODULE, block.bytes);
    if (result == CUDA_SUCCESS && !blocks_put(&block, &replaced)) {
        give_back(loading->device, LAMINA_MODULE, block.bytes);
        result = CUDA_ERROR_OUT_OF_MEMORY;
    }
    if (result != CUDA_SUCCESS)
        unload((void *)(uintptr_t)code);
    return result;
}

static CUresult unloaded(CUresult result, const void *code)
{
    struct block block;
    if (result == CUDA_SUCCESS && blocks_take(BLOCK_MODULE, (uint64_t)(uintptr_t)code, &block))
        release(&block);
    return result;
}

static CUresult unload_module(void *module)
{
    return REAL(cuModuleUnload)(module);
}

CUresult cuModuleLoad(CUmodule *module, const char *file)
{
    struct loading loading;
    CUresult result = begin(&loading, image_bytes_of_file(file));
    if (result != CUDA_SUCCESS)
        return result;
    result = REAL(cuModuleLoad)(module, file);
    return loaded(&loading, result, result == CUDA_SUCCESS ? *module : NULL, unload_module);
}

CUresult cuModuleLoadData(CUmodule *module, const void *image)
{
    struct loading loading;
    CUresult result = begin(&loading, image_bytes(image));
    if (result != CUDA_SUCCESS)
        return result;
    result = REAL(cuModuleLoadData)(module, image);
    return loaded(&loading, result, result == CUDA_SUCCESS ? *module : NULL, unload_module);
}

CUresult cuModuleLoadDataEx(CUmodule *module, const void *image, unsigned int count, CUjit_option *options, void **values)
{
    struct loading loading;
    CUresult result = begin(&loading, image_bytes(image));
    if (result != CUDA_SUCCESS)
        return result;
    result = REAL(cuModuleLoadDataEx)(module, image, count, options, values);
    return loaded(&loading, result, result == CUDA_SUCCESS ? *module : NULL, unload_module);
}

CUresult cuModuleLoadFatBinary(CUmodule *module, const void *image)
{
    struct loading loading;
    CUresult result = begin(&loading, image_bytes(image));
    if (result != CUDA_SUCCESS)
        return result;
    result = REAL(cuModuleLoadFatBinary)(module, image);
    return loaded(&loading, result, result == CUDA_SUCCESS ? *module : NULL, unload_module);
}

CUresult cuModuleUnload(CUmodule module)
{
    return unloaded(REAL(cuModuleUnload)(module), module);
}

static CUresult unload_library(void *library)
{
    return REAL(cuLibraryUnload)(library);
}

CUresult cuLibraryLoadData(CUlibrary *library, const void *image, CUjit_option *options, void **values, unsigned int count,
                           CUlibraryOption *loading_options, void **loading_values, unsigned int loading_count)
{
    struct loading loading;
    CUresult result = begin(&loading, image_bytes(image));
    if (result != CUDA_SUCCESS)
        return result;
    result = REAL(cuLibraryLoadData)(library, image, options, values, count, loading_options, loading_values,
                                     loading_count);
    return loaded(&loading, result, result == CUDA_SUCCESS ? *library : NULL, unload_library);
}

CUresult cuLibraryLoadFromFile(CUlibrary *library, const char *file, CUjit_option *options, void **values,
                               unsigned int count, CUlibraryOption *loading_options, void **loading_values,
                               unsigned int loading_count)
{
    struct loading loading;
    CUresult result = begin(&loading, image_bytes_of_file(file));
    if (result != CUDA_SUCCESS)
        return result;
    result = REAL(cuLibraryLoadFromFile)(library, file, options, values, count, loading_options, loading_values,
                                         loading_count);
    return loaded(&loading, result, result == CUDA_SUCCESS ? *library : NULL, unload_library);
}

CUresult cuLibraryUnload(CUlibrary library)
{
    return unloaded(REAL(cuLibraryUnload)(library), library);
}
