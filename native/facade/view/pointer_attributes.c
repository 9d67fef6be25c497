/* What the driver says about an address. Managed memory in place of device memory is reported as what the program
 * requested: device memory. */
#include "cuda/hooks.h"
#include "memory/spill.h"

#include <string.h>

enum { HOST_POINTER = 4, IS_MANAGED = 8 };

CUresult cuPointerGetAttribute(void *data, CUpointer_attribute attribute, CUdeviceptr address)
{
    CUresult result = REAL(cuPointerGetAttribute)(data, attribute, address);
    if (result != CUDA_SUCCESS || (attribute != IS_MANAGED && attribute != HOST_POINTER) || !spill_contains(address))
        return result;
    if (attribute == HOST_POINTER)
        return CUDA_ERROR_INVALID_VALUE;
    *(unsigned int *)data = 0;
    return CUDA_SUCCESS;
}

CUresult cuPointerGetAttributes(unsigned int count, CUpointer_attribute *attributes, void **data, CUdeviceptr address)
{
    CUresult result = REAL(cuPointerGetAttributes)(count, attributes, data, address);
    if (result != CUDA_SUCCESS || !spill_contains(address))
        return result;
    for (unsigned int i = 0; i < count; i++)
        if (attributes[i] == IS_MANAGED)
            *(unsigned int *)data[i] = 0;
        else if (attributes[i] == HOST_POINTER)
            *(void **)data[i] = NULL;
    return CUDA_SUCCESS;
}
