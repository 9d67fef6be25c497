/* Copies of bytes to and from arrays. The asynchronous forms wait, too, as the driver's may. */
#include "cuda/place.h"
#include "cuda/transfer.h"

static CUresult copy_host_to_array(CUarray to, size_t offset, const void *from, size_t bytes)
{
    struct place target;
    TRY(place_of_array(to, offset, &target));
    return place_copy(target, place_of_host(from), bytes);
}

static CUresult copy_array_to_host(void *to, CUarray from, size_t offset, size_t bytes)
{
    struct place source;
    TRY(place_of_array(from, offset, &source));
    return place_copy(place_of_host(to), source, bytes);
}

static CUresult copy_device_to_array(CUarray to, size_t offset, CUdeviceptr from, size_t bytes)
{
    struct place target, source;
    TRY(place_of_array(to, offset, &target));
    TRY(place_of_device(from, &source));
    return place_copy(target, source, bytes);
}

static CUresult copy_array_to_device(CUdeviceptr to, CUarray from, size_t offset, size_t bytes)
{
    struct place target, source;
    TRY(place_of_device(to, &target));
    TRY(place_of_array(from, offset, &source));
    return place_copy(target, source, bytes);
}

static CUresult copy_array_to_array(CUarray to, size_t to_offset, CUarray from, size_t from_offset, size_t bytes)
{
    struct place target, source;
    TRY(place_of_array(to, to_offset, &target));
    TRY(place_of_array(from, from_offset, &source));
    return place_copy(target, source, bytes);
}

SYNC_TRANSFER(cuMemcpyHtoA_v2, (CUarray to, size_t offset, const void *from, size_t bytes),
              copy_host_to_array(to, offset, from, bytes))
SYNC_TRANSFER(cuMemcpyAtoH_v2, (void *to, CUarray from, size_t offset, size_t bytes),
              copy_array_to_host(to, from, offset, bytes))
SYNC_TRANSFER(cuMemcpyDtoA_v2, (CUarray to, size_t offset, CUdeviceptr from, size_t bytes),
              copy_device_to_array(to, offset, from, bytes))
SYNC_TRANSFER(cuMemcpyAtoD_v2, (CUdeviceptr to, CUarray from, size_t offset, size_t bytes),
              copy_array_to_device(to, from, offset, bytes))
SYNC_TRANSFER(cuMemcpyAtoA_v2, (CUarray to, size_t to_offset, CUarray from, size_t from_offset, size_t bytes),
              copy_array_to_array(to, to_offset, from, from_offset, bytes))

CUresult cuMemcpyHtoAAsync_v2(CUarray to, size_t offset, const void *from, size_t bytes, CUstream stream)
{
    (void)stream;
    return cuMemcpyHtoA_v2(to, offset, from, bytes);
}

CUresult cuMemcpyAtoHAsync_v2(void *to, CUarray from, size_t offset, size_t bytes, CUstream stream)
{
    (void)stream;
    return cuMemcpyAtoH_v2(to, from, offset, bytes);
}
