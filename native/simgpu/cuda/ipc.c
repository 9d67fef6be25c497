/* Memory shared between processes. The importer gets an address of the right size; the memory is charged to the exporter
 * until nobody has it open. The data is not shared. Small allocations, which share blocks, go with their owner. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "imports.h"
#include "memory.h"

typedef struct {
    char mark[8];
    uint64_t size;
    imported what;
} ticket;

_Static_assert(sizeof(ticket) <= sizeof(CUipcMemHandle), "a ticket travels in a handle");

static uint64_t identity(void) { return driver.m.processes[driver.slot].identity; }

static imported name_of(const allocation *a) {
    return (imported){.owner = identity(), .number = a->exported, .gpu = a->dev->gpu, .slot = driver.slot,
                      .mib = a->charged_mib};
}

bool ipc_stays(const allocation *a) {
    imported what = name_of(a);
    return imports_linger(&driver.m, &what);
}

void ipc_close(allocation *a) {
    if (a->extra != NULL) imports_close(&driver.m, a->extra, identity());
    free(a->extra);
}

SIM_API CUresult cuIpcGetMemHandle(CUipcMemHandle *out, CUdeviceptr at) {
    CUcontext ctx;
    CUresult result = context_needed(&ctx);
    if (result != CUDA_SUCCESS) return result;
    driver_lock();
    allocation *a = memory_find(at);
    bool right = out != NULL && a != NULL && a->kind == KIND_PLAIN;
    ticket t = {.mark = "simgpu"};
    if (right) {
        if (a->exported == 0) a->exported = ++driver.next_id;
        t.size = a->size;
        t.what = name_of(a);
    }
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
    if (driver.m.processes[t.what.slot].identity != t.what.owner) return CUDA_ERROR_INVALID_VALUE; /* it is gone */
    /* A process cannot import what it exported itself. */
    if (t.what.gpu != ctx->dev->gpu || t.what.owner == identity()) return CUDA_ERROR_INVALID_CONTEXT;
    imported *what = t.what.mib > 0 ? malloc(sizeof *what) : NULL;
    allocation *a;
    if (what != NULL) *what = t.what;
    driver_lock();
    if (t.what.mib > 0 && (what == NULL || !imports_open(&driver.m, what, identity()))) result = CUDA_ERROR_OUT_OF_MEMORY;
    else {
        result = memory_new(ctx, KIND_IPC, t.size, &a);
        if (result == CUDA_SUCCESS) {
            a->extra = what;
            *out = a->start;
        } else if (what != NULL)
            imports_close(&driver.m, what, identity());
    }
    driver_unlock();
    if (result != CUDA_SUCCESS) free(what);
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
