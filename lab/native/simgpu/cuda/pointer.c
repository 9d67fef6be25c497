/* Queries about an address. */
#include "cuda/driver.h"
#include "cuda/host.h"
#include "cuda/memory.h"

#include <string.h>

enum {
    CONTEXT = 1,
    MEMORY_TYPE = 2,
    DEVICE_POINTER = 3,
    HOST_POINTER = 4,
    SYNC_MEMOPS = 6,
    BUFFER_ID = 7,
    IS_MANAGED = 8,
    DEVICE_ORDINAL = 9,
    IS_LEGACY_IPC_CAPABLE = 10,
    RANGE_START = 11,
    RANGE_SIZE = 12,
    MAPPED = 13,
    ALLOWED_HANDLE_TYPES = 14,
    IS_GPU_DIRECT_RDMA_CAPABLE = 15,
    ACCESS_FLAGS = 16,
    MEMPOOL_HANDLE = 17,
    MAPPING_SIZE = 18,
    MAPPING_BASE = 19,
    MEMORY_BLOCK_ID = 20,
    IS_HW_DECOMPRESS_CAPABLE = 21
};

/* The sizes of the values; every one fits into a word. */
static size_t value_bytes(CUpointer_attribute attribute)
{
    switch (attribute) {
    case CONTEXT:
    case DEVICE_POINTER:
    case HOST_POINTER:
    case BUFFER_ID:
    case RANGE_START:
    case RANGE_SIZE:
    case ALLOWED_HANDLE_TYPES:
    case MEMPOOL_HANDLE:
    case MAPPING_SIZE:
    case MAPPING_BASE:
    case MEMORY_BLOCK_ID:
        return 8;
    default:
        return 4;
    }
}

static CUresult read_of_device(const struct allocation *a, CUpointer_attribute attribute, CUdeviceptr at,
                               uint64_t *value)
{
    switch (attribute) {
    case CONTEXT:
        *value = (uintptr_t)a->ctx;
        return CUDA_SUCCESS;
    case MEMORY_TYPE:
        *value = CU_MEMORYTYPE_DEVICE;
        return CUDA_SUCCESS;
    case DEVICE_POINTER:
        *value = at;
        return CUDA_SUCCESS;
    case HOST_POINTER:
        *value = at;
        return a->kind == KIND_MANAGED ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
    case SYNC_MEMOPS:
    case ALLOWED_HANDLE_TYPES:
    case IS_HW_DECOMPRESS_CAPABLE:
        *value = 0;
        return CUDA_SUCCESS;
    case BUFFER_ID:
    case MEMORY_BLOCK_ID:
        *value = a->start >> 9;
        return CUDA_SUCCESS;
    case IS_MANAGED:
        *value = a->kind == KIND_MANAGED;
        return CUDA_SUCCESS;
    case DEVICE_ORDINAL:
        *value = (uint64_t)(a->dev - driver.devices);
        return CUDA_SUCCESS;
    case IS_LEGACY_IPC_CAPABLE:
        *value = a->kind == KIND_PLAIN;
        return CUDA_SUCCESS;
    case RANGE_START:
    case MAPPING_BASE:
        *value = a->start;
        return CUDA_SUCCESS;
    case RANGE_SIZE:
    case MAPPING_SIZE:
        *value = a->size;
        return CUDA_SUCCESS;
    case MAPPED:
    case IS_GPU_DIRECT_RDMA_CAPABLE:
        *value = 1;
        return CUDA_SUCCESS;
    case ACCESS_FLAGS:
        *value = 3;
        return CUDA_SUCCESS;
    case MEMPOOL_HANDLE:
        *value = (uintptr_t)a->pool;
        return CUDA_SUCCESS;
    default:
        return CUDA_ERROR_INVALID_VALUE;
    }
}

static CUresult read_of_host(CUpointer_attribute attribute, CUdeviceptr at, uint64_t *value)
{
    switch (attribute) {
    case MEMORY_TYPE:
        *value = CU_MEMORYTYPE_HOST;
        return CUDA_SUCCESS;
    case DEVICE_POINTER:
    case HOST_POINTER:
        *value = at;
        return CUDA_SUCCESS;
    case IS_MANAGED:
    case DEVICE_ORDINAL:
        *value = 0;
        return CUDA_SUCCESS;
    default:
        return CUDA_ERROR_INVALID_VALUE;
    }
}

static CUresult read_value(CUpointer_attribute attribute, CUdeviceptr at, uint64_t *value)
{
    driver_lock();
    struct allocation *a = memory_find(at);
    CUresult result = a != NULL ? read_of_device(a, attribute, at, value) : CUDA_ERROR_INVALID_VALUE;
    driver_unlock();
    if (a == NULL && host_is_known((void *)(uintptr_t)at))
        return read_of_host(attribute, at, value);
    return result;
}

CUresult cuPointerGetAttribute(void *out, CUpointer_attribute attribute, CUdeviceptr at)
{
    uint64_t value;
    TRY(driver_check_ready());
    if (out == NULL)
        return CUDA_ERROR_INVALID_VALUE;
    TRY(read_value(attribute, at, &value));
    memcpy(out, &value, value_bytes(attribute));
    return CUDA_SUCCESS;
}

/* Unlike the single query, this one succeeds for unknown addresses, with empty values. */
CUresult cuPointerGetAttributes(unsigned int count, CUpointer_attribute *attributes, void **out, CUdeviceptr at)
{
    TRY(driver_check_ready());
    if (attributes == NULL || out == NULL)
        return CUDA_ERROR_INVALID_VALUE;
    for (unsigned int i = 0; i < count; i++) {
        if (cuPointerGetAttribute(out[i], attributes[i], at) == CUDA_SUCCESS)
            continue;
        memset(out[i], 0, value_bytes(attributes[i]));
        if (attributes[i] == DEVICE_ORDINAL)
            *(int *)out[i] = -2; /* no device, as the driver reports it */
    }
    return CUDA_SUCCESS;
}

CUresult cuPointerSetAttribute(const void *value, CUpointer_attribute attribute, CUdeviceptr at)
{
    (void)value;
    TRY(driver_check_ready());
    driver_lock();
    bool known = memory_find(at) != NULL;
    driver_unlock();
    return known && attribute == SYNC_MEMOPS ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}
