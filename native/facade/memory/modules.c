/* Loaded code and its global variables, as modules and as libraries. What they take is known only afterwards, by the
 * driver's own figure for this process; a module beyond the limit is unloaded at once. Where there is no figure, the
 * least that the image takes is reserved and counted. For code that the driver loads at its first use, that part counts
 * from the start, and the rest does not count. */
#include "cuda/context_table.h"
#include "cuda/hooks.h"
#include "memory/blocks.h"
#include "memory/driver_usage.h"
#include "memory/images.h"
#include "memory/lending.h"
#include "memory/release.h"
#include "memory/reserve.h"

struct loading {
    CUcontext context;
    int device;
    uint64_t figure, own;
    uint64_t reserved;
    bool known;
};

static CUresult begin_loading(struct loading *loading, uint64_t least)
{
    *loading = (struct loading){0};
    loading->device = context_device(&loading->context);
    /* With a figure of the driver, nothing is reserved: what the code takes is measured. */
    loading->known = loading->device >= 0 && driver_usage_of_process(loading->device, &loading->figure);
    if (loading->known)
        loading->own = reserved_by_process(loading->device);
    else if (loading->device >= 0)
        loading->reserved = shares_a_block(least) ? least : whole_blocks(least); /* code shares blocks with code */
    return loading->reserved == 0 ? CUDA_SUCCESS : reserve_fixed(loading->device, LAMINA_MODULE, loading->reserved);
}

/* How much the process's figure grew, apart from what other threads allocated meanwhile. A library may be loaded by a
 * thread without a context, as PyTorch's backward threads do; then it takes nothing before it is used. */
static uint64_t measure_growth(const struct loading *loading)
{
    if (loading->device < 0)
        return 0;
    uint64_t figure = 0, own = reserved_by_process(loading->device);
    uint64_t given = own > loading->own ? own - loading->own : 0;
    if (!loading->known || !driver_usage_of_process(loading->device, &figure) || figure <= loading->figure + given)
        return loading->reserved;
    return figure - loading->figure - given;
}

/* What the code takes is now known. It is either within the limit or unloaded. */
static CUresult finish_loading(const struct loading *loading, CUresult result, const void *code,
                               CUresult (*unload)(void *))
{
    struct block replaced, block = {.key = (uint64_t)(uintptr_t)code,
                                    .context = (uint64_t)(uintptr_t)loading->context,
                                    .class = BLOCK_MODULE,
                                    .kind = LAMINA_MODULE,
                                    .device = (uint8_t)loading->device};
    if (result != CUDA_SUCCESS && loading->reserved > 0)
        unreserve(loading->device, LAMINA_MODULE, loading->reserved);
    if (result != CUDA_SUCCESS || (block.bytes = measure_growth(loading)) == 0)
        return result;
    if (loading->reserved == 0) /* there was a figure, so nothing was reserved by the size of the image */
        result = reserve_fixed(loading->device, LAMINA_MODULE, block.bytes);
    if (result == CUDA_SUCCESS && !blocks_put(&block, &replaced)) {
        unreserve(loading->device, LAMINA_MODULE, block.bytes);
        result = CUDA_ERROR_OUT_OF_MEMORY;
    }
    if (result != CUDA_SUCCESS)
        unload((void *)(uintptr_t)code);
    return result;
}

static CUresult finish_unloading(CUresult result, const void *code)
{
    struct block block;
    if (result == CUDA_SUCCESS && blocks_take(BLOCK_MODULE, (uint64_t)(uintptr_t)code, &block))
        release_block(&block);
    return result;
}

/* Memory is reserved for the image, then the driver loads it, then the reservation becomes what was really taken. */
#define LOAD(name, parameters, arguments, size, loaded_code, unload)                                                   \
    CUresult name parameters                                                                                           \
    {                                                                                                                  \
        struct loading loading;                                                                                        \
        CUresult result = begin_loading(&loading, size);                                                               \
        if (result != CUDA_SUCCESS)                                                                                    \
            return result;                                                                                             \
        result = REAL(name) arguments;                                                                                 \
        return finish_loading(&loading, result, result == CUDA_SUCCESS ? *(loaded_code) : NULL, unload);               \
    }

static CUresult unload_module(void *module)
{
    return REAL(cuModuleUnload)(module);
}

LOAD(cuModuleLoad, (CUmodule * module, const char *file), (module, file), image_bytes_of_file(file), module,
     unload_module)
LOAD(cuModuleLoadData, (CUmodule * module, const void *image), (module, image), image_bytes(image), module,
     unload_module)
LOAD(cuModuleLoadDataEx,
     (CUmodule * module, const void *image, unsigned int count, CUjit_option *options, void **values),
     (module, image, count, options, values), image_bytes(image), module, unload_module)
LOAD(cuModuleLoadFatBinary, (CUmodule * module, const void *image), (module, image), image_bytes(image), module,
     unload_module)

CUresult cuModuleUnload(CUmodule module)
{
    return finish_unloading(REAL(cuModuleUnload)(module), module);
}

static CUresult unload_library(void *library)
{
    return REAL(cuLibraryUnload)(library);
}

LOAD(cuLibraryLoadData,
     (CUlibrary * library, const void *image, CUjit_option *options, void **values, unsigned int count,
      CUlibraryOption *loading_options, void **loading_values, unsigned int loading_count),
     (library, image, options, values, count, loading_options, loading_values, loading_count), image_bytes(image),
     library, unload_library)
LOAD(cuLibraryLoadFromFile,
     (CUlibrary * library, const char *file, CUjit_option *options, void **values, unsigned int count,
      CUlibraryOption *loading_options, void **loading_values, unsigned int loading_count),
     (library, file, options, values, count, loading_options, loading_values, loading_count), image_bytes_of_file(file),
     library, unload_library)

CUresult cuLibraryUnload(CUlibrary library)
{
    return finish_unloading(REAL(cuLibraryUnload)(library), library);
}
