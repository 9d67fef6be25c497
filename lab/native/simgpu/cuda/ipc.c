/* Memory shared between processes by CUipcMemHandle. The importer gets an address of the right size; the memory is
 * charged to the exporter until no process has it open. The data is not shared. Small allocations, which share blocks,
 * end with their owner. */
#include "cuda/driver.h"
#include "cuda/exported.h"
#include "cuda/memory.h"

#include <stdlib.h>
#include <string.h>

/* What a handle contains. */
struct contents {
    char mark[8];
    uint64_t size;
    struct imported what;
};

_Static_assert(sizeof(struct contents) <= sizeof(CUipcMemHandle), "the contents fit into a handle");

static const char own_mark[8] = "simgpu";

static struct imported describe(const struct allocation *a)
{
    return exported_describe(a->dev, a->exported, a->charged_mib);
}

static void close_imported(struct allocation *a)
{
    if (a->extra != NULL)
        exported_close(a->extra);
    free(a->extra);
}

CUresult cuIpcGetMemHandle(CUipcMemHandle *out, CUdeviceptr at)
{
    CUcontext ctx;
    TRY(context_require(&ctx));
    driver_lock();
    struct allocation *a = memory_find(at);
    bool valid = out != NULL && a != NULL && a->kind == KIND_PLAIN;
    struct contents c = {0};
    if (valid) {
        if (a->exported == 0)
            a->exported = ++driver.next_id;
        c.size = a->size;
        c.what = describe(a);
    }
    driver_unlock();
    if (!valid)
        return CUDA_ERROR_INVALID_VALUE;
    memcpy(c.mark, own_mark, sizeof c.mark);
    memset(out, 0, sizeof *out);
    memcpy(out, &c, sizeof c);
    return CUDA_SUCCESS;
}

/* Addresses for the opened allocation, which is closed with them. */
static CUresult allocate_addresses(CUcontext ctx, size_t size, struct imported *what, CUdeviceptr *out)
{
    struct allocation *a;
    if (what != NULL && !exported_open(what))
        return CUDA_ERROR_OUT_OF_MEMORY;
    CUresult result = memory_allocate(ctx, KIND_IPC, size, &a);
    if (result == CUDA_SUCCESS) {
        a->extra = what;
        a->release = close_imported;
        *out = a->start;
    } else if (what != NULL)
        exported_close(what);
    return result;
}

CUresult cuIpcOpenMemHandle_v2(CUdeviceptr *out, CUipcMemHandle handle, unsigned int flags)
{
    CUcontext ctx;
    struct contents c;
    TRY(context_require(&ctx));
    memcpy(&c, &handle, sizeof c);
    if (out == NULL || flags != 1 || memcmp(c.mark, own_mark, sizeof c.mark) != 0 || c.size == 0)
        return CUDA_ERROR_INVALID_VALUE;
    if (!exported_has_owner(&c.what))
        return CUDA_ERROR_INVALID_VALUE; /* it no longer exists */
    if (c.what.gpu != ctx->dev->gpu || exported_is_own(&c.what))
        return CUDA_ERROR_INVALID_CONTEXT; /* a process cannot import what it exported itself */
    struct imported *what = NULL;          /* stays NULL for a small allocation, which is not charged by itself */
    if (c.what.mib > 0) {
        what = malloc(sizeof *what);
        if (what == NULL)
            return CUDA_ERROR_OUT_OF_MEMORY;
        *what = c.what;
    }
    driver_lock();
    CUresult result = allocate_addresses(ctx, c.size, what, out);
    driver_unlock();
    if (result != CUDA_SUCCESS)
        free(what);
    return result;
}

CUresult cuIpcCloseMemHandle(CUdeviceptr at)
{
    driver_lock();
    struct allocation *a = memory_find(at);
    bool valid = a != NULL && a->kind == KIND_IPC && a->start == at;
    if (valid)
        memory_free(a);
    driver_unlock();
    return valid ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

CUresult cuIpcGetEventHandle(CUipcEventHandle *out, CUevent event)
{
    (void)out, (void)event;
    return CUDA_ERROR_NOT_SUPPORTED;
}

CUresult cuIpcOpenEventHandle(CUevent *out, CUipcEventHandle handle)
{
    (void)out, (void)handle;
    return CUDA_ERROR_NOT_SUPPORTED;
}
