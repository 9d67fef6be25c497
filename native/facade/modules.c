/* Loaded code and its global variables. What they take is known only afterwards, by the driver's own figure for this
 * process; where it gives none, they are not counted. What is over the limit is unloaded at once. */
#include "blocks.h"
#include "contexts.h"
#include "hold.h"
#include "hooks.h"
#include "release.h"

struct loading {
    CUcontext context;
    int device;
    uint64_t figure, own;
    bool known;
};

static struct loading before(void)
{
    struct loading loading = {0};
    loading.device = context_device(&loading.context);
    loading.known = loading.device >= 0 && figure_of_process(loading.device, &loading.figure);
    if (loading.known)
        loading.own = hold_own(loading.device);
    return loading;
}

/* What the process's figure grew by, apart from what other threads were given meanwhile. */
static uint64_t grown(const struct loading *loading)
{
    uint64_t figure = 0, own = hold_own(loading->device);
    uint64_t given = own > loading->own ? own - loading->own : 0;
    if (!loading->known || !figure_of_process(loading->device, &figure) || figure <= loading->figure + given)
        return 0;
    return figure - loading->figure - given;
}

static CUresult loaded(const struct loading *loading, CUresult result, const void *code, CUresult (*unload)(void *))
{
    struct block replaced, block = {.key = (uint64_t)(uintptr_t)code, .context = (uint64_t)(uintptr_t)loading->context,
                                    .class = BLOCK_MODULE, .kind = LAMINA_MODULE, .device = (uint8_t)loading->device};
    if (result != CUDA_SUCCESS || (block.bytes = grown(loading)) == 0)
        return result;
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
    struct loading loading = before();
    CUresult result = REAL(cuModuleLoad)(module, file);
    return loaded(&loading, result, result == CUDA_SUCCESS ? *module : NULL, unload_module);
}

CUresult cuModuleLoadData(CUmodule *module, const void *image)
{
    struct loading loading = before();
    CUresult result = REAL(cuModuleLoadData)(module, image);
    return loaded(&loading, result, result == CUDA_SUCCESS ? *module : NULL, unload_module);
}

CUresult cuModuleLoadDataEx(CUmodule *module, const void *image, unsigned int count, CUjit_option *options, void **values)
{
    struct loading loading = before();
    CUresult result = REAL(cuModuleLoadDataEx)(module, image, count, options, values);
    return loaded(&loading, result, result == CUDA_SUCCESS ? *module : NULL, unload_module);
}

CUresult cuModuleLoadFatBinary(CUmodule *module, const void *image)
{
    struct loading loading = before();
    CUresult result = REAL(cuModuleLoadFatBinary)(module, image);
    return loaded(&loading, result, result == CUDA_SUCCESS ? *module : NULL, unload_module);
}

CUresult cuModuleUnload(CUmodule module)
{
    return unloaded(REAL(cuModuleUnload)(module), module);
}
