/* What the driver says of an address. Memory that was made managed behind the program's back is told as what the
 * program asked for: plain device memory. */
#include "hooks.h"
#include "spill.h"

#include <string.h>

enum { HOST_POINTER = 4, IS_MANAGED = 8 };

CUresult cuPointerGetAttribute(void *data, CUpointer_attribute attribute, CUdeviceptr address)
{
    CUresult result = REAL(cuPointerGetAttribute)(data, attribute, address);
    if (result != CUDA_SUCCESS || (attribute != IS_MANAGED && attribute != HOST_POINTER) || !spilled(address))
        return result;
    if (attribute == HOST_POINTER)
        return CUDA_ERROR_INVALID_VALUE;
    *(unsigned int *)data = 0;
    return CUDA_SUCCESS;
}

CUresult cuPointerGetAttributes(unsigned int count, CUpointer_attribute *attributes, void **data, CUdeviceptr address)
{
    CUresult result = REAL(cuPointerGetAttributes)(count, attributes, data, address);
    if (result != CUDA_SUCCESS || !spilled(address))
        return result;
    for (unsigned int i = 0; i < count; i++)
        if (attributes[i] == IS_MANAGED)
            *(unsigned int *)data[i] = 0;
        else if (attributes[i] == HOST_POINTER)
            *(void **)data[i] = NULL;
    return CUDA_SUCCESS;
}
