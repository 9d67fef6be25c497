/* Memory shared between processes. The importer gets an address of the right size and is charged nothing, since the
 * memory is the exporter's; the data is not shared. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "memory.h"

typedef struct {
    char mark[8];
    uint64_t size;
    uint32_t gpu, pid;
} ticket;

_Static_assert(sizeof(ticket) <= sizeof(CUipcMemHandle), "a ticket travels in a handle");

SIM_API CUresult cuIpcGetMemHandle(CUipcMemHandle *out, CUdeviceptr at) {
    CUcontext ctx;
    CUresult result = context_needed(&ctx);
    if (result != CUDA_SUCCESS) return result;
    driver_lock();
    allocation *a = memory_find(at);
    bool right = out != NULL && a != NULL && a->kind == KIND_PLAIN;
    ticket t = {.mark = "simgpu", .size = right ? a->size : 0, .gpu = right ? a->dev->gpu : 0, .pid = (uint32_t)getpid()};
    driver_unlock();
    if (!right) return CUDA_ERROR_INVALID_VALUE;
    memset(out, 0, sizeof *out);
    memcpy(out, &t, sizeof t);
    return CUDA_SUCCESS;
}

SIM_API CUresult cuIpcOpenMemHandle_v2(CUdeviceptr *out, CUipcMemHandle handle, unsigned int flags) {
    CUcontext ctx;
    CUresult result = context_needed(&ctx);
    if (result != CUDA_SUCCESS) return result;
    ticket t;
    memcpy(&t, &handle, sizeof t);
    if (out == NULL || flags != 1 || strncmp(t.mark, "simgpu", sizeof t.mark) != 0 || t.size == 0)
        return CUDA_ERROR_INVALID_VALUE;
    /* A process cannot import what it exported itself. */
    if (t.gpu != ctx->dev->gpu || t.pid == (uint32_t)getpid()) return CUDA_ERROR_INVALID_CONTEXT;
    allocation *a;
    driver_lock();
    result = memory_new(ctx, KIND_IPC, t.size, &a);
    if (result == CUDA_SUCCESS) *out = a->start;
    driver_unlock();
    return result;
}

SIM_API CUresult cuIpcCloseMemHandle(CUdeviceptr at) {
    driver_lock();
    allocation *a = memory_find(at);
    bool right = a != NULL && a->kind == KIND_IPC && a->start == at;
    if (right) memory_free(a);
    driver_unlock();
    return right ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

SIM_API CUresult cuIpcGetEventHandle(CUipcEventHandle *out, CUevent event) {
    (void)out, (void)event;
    return CUDA_ERROR_NOT_SUPPORTED;
}

SIM_API CUresult cuIpcOpenEventHandle(CUevent *out, CUipcEventHandle handle) {
    (void)out, (void)handle;
    return CUDA_ERROR_NOT_SUPPORTED;
}
