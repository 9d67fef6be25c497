/* cuGetExportTable: functions without names that NVIDIA's own libraries call in the driver.
 *
 * CUDA's runtime, video libraries, OptiX and profilers do not start without their tables, so tables are passed on. The
 * runtime gets from them callbacks for tools, storage per context and helpers for modules; it makes contexts and
 * allocates memory by named functions. One table is known to have another way to make a context; it is replaced by one
 * with the facade's function. What a library takes by any other table appears only in the driver's figure for the
 * process. */
#include "cuda/hooks.h"

#include <string.h>

/* 0ca50b8c-1004-929a-89a7-d0df10e77286: its size, and cuCtxCreate without the callbacks of tools. */
static const unsigned char contexts_without_callbacks[16] = {0x0c, 0xa5, 0x0b, 0x8c, 0x10, 0x04, 0x92, 0x9a,
                                                             0x89, 0xa7, 0xd0, 0xdf, 0x10, 0xe7, 0x72, 0x86};

CUresult cuGetExportTable(const void **table, const CUuuid *id)
{
    static const void *ours[2]; /* filled at run time, so that the loader has no relocations to apply */
    CUresult result = REAL(cuGetExportTable)(table, id);
    if (result != CUDA_SUCCESS || memcmp(id, contexts_without_callbacks, sizeof contexts_without_callbacks) != 0)
        return result;
    ours[0] = (const void *)sizeof ours;
    ours[1] = (const void *)cuCtxCreate_v2;
    *table = ours;
    return CUDA_SUCCESS;
}
