/* What an address is. */
#include <string.h>

#include "host.h"
#include "memory.h"

enum { CONTEXT = 1, MEMORY_TYPE = 2, DEVICE_POINTER = 3, HOST_POINTER = 4, SYNC_MEMOPS = 6, BUFFER_ID = 7, IS_MANAGED = 8,
       DEVICE_ORDINAL = 9, RANGE_START = 11, RANGE_SIZE = 12, MAPPED = 13, ALLOWED_HANDLE_TYPES = 14, ACCESS_FLAGS = 16,
       MEMPOOL_HANDLE = 17 };

static CUresult of_device(allocation *a, CUpointer_attribute attribute, CUdeviceptr at, void *out) {
    switch (attribute) {
    case CONTEXT: *(CUcontext *)out = a->ctx; break;
    case MEMORY_TYPE: *(unsigned int *)out = CU_MEMORYTYPE_DEVICE; break;
    case DEVICE_POINTER: *(CUdeviceptr *)out = at; break;
    case HOST_POINTER:
        if (a->kind != KIND_MANAGED) return CUDA_ERROR_INVALID_VALUE;
        *(void **)out = (void *)(uintptr_t)at;
        break;
    case SYNC_MEMOPS: *(int *)out = 0; break;
    case BUFFER_ID: *(unsigned long long *)out = a->start >> 9; break;
    case IS_MANAGED: *(unsigned int *)out = a->kind == KIND_MANAGED; break;
    case DEVICE_ORDINAL: *(int *)out = (int)(a->dev - driver.devices); break;
    case RANGE_START: *(CUdeviceptr *)out = a->start; break;
    case RANGE_SIZE: *(size_t *)out = a->size; break;
    case MAPPED: *(int *)out = 1; break;
    case ALLOWED_HANDLE_TYPES: *(unsigned long long *)out = 0; break;
    case ACCESS_FLAGS: *(int *)out = 3; break;
    case MEMPOOL_HANDLE: *(CUmemoryPool *)out = a->pool; break;
    default: return CUDA_ERROR_INVALID_VALUE;
    }
    return CUDA_SUCCESS;
}

static CUresult of_host(CUpointer_attribute attribute, CUdeviceptr at, void *out) {
    switch (attribute) {
    case MEMORY_TYPE: *(unsigned int *)out = CU_MEMORYTYPE_HOST; break;
    case DEVICE_POINTER: *(CUdeviceptr *)out = at; break;
    case HOST_POINTER: *(void **)out = (void *)(uintptr_t)at; break;
    case IS_MANAGED: *(unsigned int *)out = 0; break;
    case DEVICE_ORDINAL: *(int *)out = 0; break;
    default: return CUDA_ERROR_INVALID_VALUE;
    }
    return CUDA_SUCCESS;
}

SIM_API CUresult cuPointerGetAttribute(void *out, CUpointer_attribute attribute, CUdeviceptr at) {
    if (driver_ready() != CUDA_SUCCESS) return CUDA_ERROR_NOT_INITIALIZED;
    if (out == NULL) return CUDA_ERROR_INVALID_VALUE;
    driver_lock();
    allocation *a = memory_find(at);
    CUresult result = a != NULL ? of_device(a, attribute, at, out) : CUDA_ERROR_INVALID_VALUE;
    driver_unlock();
    if (a == NULL && host_known((void *)(uintptr_t)at)) result = of_host(attribute, at, out);
    return result;
}

/* Unlike the single question, this one answers for addresses the driver does not know, with nothing. */
SIM_API CUresult cuPointerGetAttributes(unsigned int count, CUpointer_attribute *attributes, void **out, CUdeviceptr at) {
    if (driver_ready() != CUDA_SUCCESS) return CUDA_ERROR_NOT_INITIALIZED;
    if (attributes == NULL || out == NULL) return CUDA_ERROR_INVALID_VALUE;
    for (unsigned int i = 0; i < count; i++) {
        if (cuPointerGetAttribute(out[i], attributes[i], at) == CUDA_SUCCESS) continue;
        bool wide = attributes[i] == CONTEXT || attributes[i] == DEVICE_POINTER || attributes[i] == HOST_POINTER ||
                    attributes[i] == BUFFER_ID || attributes[i] == RANGE_START || attributes[i] == RANGE_SIZE ||
                    attributes[i] == ALLOWED_HANDLE_TYPES || attributes[i] == MEMPOOL_HANDLE;
        memset(out[i], 0, wide ? 8 : 4);
        if (attributes[i] == DEVICE_ORDINAL) *(int *)out[i] = -2; /* no device, as the driver says it */
    }
    return CUDA_SUCCESS;
}

SIM_API CUresult cuPointerSetAttribute(const void *value, CUpointer_attribute attribute, CUdeviceptr at) {
    (void)value;
    if (driver_ready() != CUDA_SUCCESS) return CUDA_ERROR_NOT_INITIALIZED;
    driver_lock();
    bool known = memory_find(at) != NULL;
    driver_unlock();
    return known && attribute == SYNC_MEMOPS ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}
