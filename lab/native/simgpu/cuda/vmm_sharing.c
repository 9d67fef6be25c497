/* Memory that is exported to other processes as a file descriptor. It is charged to its owner until no process has it
 * open. A file that is open but not imported does not keep the memory; the real driver's does. */
#include "cuda/driver.h"
#include "cuda/exported.h"
#include "cuda/vmm.h"

#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

/* What an exported file contains. */
struct contents {
    uint64_t size;
    CUmemAllocationProp prop;
    struct imported what;
    struct vmm_memory *here; /* in the owner's process */
};

static CUresult write_file(const struct contents *c, int *out)
{
    int file = memfd_create("simgpu", MFD_CLOEXEC);
    if (file >= 0 && pwrite(file, c, sizeof *c, 0) == sizeof *c) {
        *out = file;
        return CUDA_SUCCESS;
    }
    if (file >= 0)
        close(file);
    return CUDA_ERROR_OPERATING_SYSTEM;
}

CUresult cuMemExportToShareableHandle(void *out, CUmemGenericAllocationHandle handle, CUmemAllocationHandleType type,
                                      unsigned long long flags)
{
    struct contents c = {0};
    TRY(driver_check_ready());
    if (type != CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR)
        return CUDA_ERROR_NOT_SUPPORTED;
    driver_lock();
    struct vmm_memory *memory = vmm_find(handle);
    bool valid = out != NULL && flags == 0 && memory != NULL && (memory->prop.requestedHandleTypes & type) != 0;
    if (valid) {
        if (memory->what.number == 0)
            memory->what = exported_describe(memory->dev, ++driver.next_id, memory->mib);
        c = (struct contents){.size = memory->size, .prop = memory->prop, .what = memory->what, .here = memory};
    }
    driver_unlock();
    return valid ? write_file(&c, out) : CUDA_ERROR_INVALID_VALUE;
}

static CUresult open_own(const struct contents *c, CUmemGenericAllocationHandle *out)
{
    driver_lock();
    c->here->references++;
    driver_unlock();
    *out = vmm_handle(c->here);
    return CUDA_SUCCESS;
}

static CUresult open_imported(const struct contents *c, struct device *dev, CUmemGenericAllocationHandle *out)
{
    struct vmm_memory *memory = calloc(1, sizeof *memory);
    driver_lock();
    bool opened = memory != NULL && exported_open(&c->what);
    driver_unlock();
    if (!opened) {
        free(memory);
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    vmm_fill(memory, dev, c->size, &c->prop);
    memory->what = c->what;
    *out = vmm_handle(memory);
    return CUDA_SUCCESS;
}

CUresult cuMemImportFromShareableHandle(CUmemGenericAllocationHandle *out, void *file, CUmemAllocationHandleType type)
{
    struct contents c;
    TRY(driver_check_ready());
    if (type != CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR)
        return CUDA_ERROR_NOT_SUPPORTED;
    if (out == NULL || pread((int)(intptr_t)file, &c, sizeof c, 0) != sizeof c)
        return CUDA_ERROR_INVALID_VALUE;
    struct device *dev = device_at(c.prop.location.id);
    if (dev == NULL || !exported_has_owner(&c.what))
        return CUDA_ERROR_INVALID_VALUE;
    return exported_is_own(&c.what) ? open_own(&c, out) : open_imported(&c, dev, out);
}
