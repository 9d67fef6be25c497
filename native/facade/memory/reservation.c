#include "memory/reservation.h"

#include "cuda/hooks.h"
#include "memory/blocks.h"
#include "memory/release.h"
#include "memory/reserve.h"
#include "memory/spill.h"
#include "shared/assertion.h"

CUresult reservation_begin(struct reservation *reservation, CUcontext context, int device, enum lamina_kind kind,
                           uint64_t bytes)
{
    ASSERT(device >= 0 && device < LAMINA_MAX_DEVICES);
    ASSERT(kind < LAMINA_KINDS);
    *reservation = (struct reservation){.request = {context, device, kind, bytes, NULL, false}};
    if (shares_a_block(bytes))
        return small_blocks_begin(&reservation->request);
    reservation->reserved = whole_blocks(bytes);
    return reserve(device, kind, reservation->reserved);
}

/* From now on the allocation takes whole blocks of its own. On an error the reservation has ended. */
static CUresult take_whole_blocks(struct reservation *reservation, uint64_t bytes)
{
    struct small_request *request = &reservation->request;
    uint64_t wanted = whole_blocks(bytes);
    if (request->reserved)
        reservation->reserved = DRIVER_BLOCK;
    request->reserved = false;
    bool divided = reservation->reserved == 0;
    CUresult result = reserve_adjust(request->device, request->kind, reservation->reserved, wanted);
    if (result != CUDA_SUCCESS)
        return reservation_cancel(reservation, result);
    if (divided)
        small_blocks_cancel(request);
    reservation->reserved = wanted;
    return CUDA_SUCCESS;
}

CUresult reservation_adjust(struct reservation *reservation, uint64_t bytes)
{
    bool divided = reservation->reserved == 0 && shares_a_block(bytes);
    return divided ? CUDA_SUCCESS : take_whole_blocks(reservation, bytes);
}

/* Records the allocation, which the driver has made, or frees it where there is no memory for the record. */
static CUresult commit_block(struct reservation *reservation, CUdeviceptr pointer, uint8_t flags)
{
    struct small_request *request = &reservation->request;
    struct small_block *shared = NULL;
    bool divided = reservation->reserved == 0;
    if (divided && small_blocks_commit(request, pointer, &shared) != CUDA_SUCCESS) {
        REAL(cuMemFree_v2)(pointer);
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    struct block replaced, block = {.key = pointer,
                                    .bytes = divided ? request->bytes : reservation->reserved,
                                    .context = (uint64_t)(uintptr_t)request->context,
                                    .object = shared,
                                    .class = BLOCK_POINTER,
                                    .kind = (uint8_t)request->kind,
                                    .device = (uint8_t)request->device,
                                    .flags = divided ? flags | BLOCK_DIVIDED : flags};
    if (!blocks_put(&block, &replaced)) {
        REAL(cuMemFree_v2)(pointer);
        release_block(&block); /* gives back what the reservation took */
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    if (replaced.class != 0) /* the driver has freed what was at this address without our knowledge */
        release_block(&replaced);
    return CUDA_SUCCESS;
}

CUresult reservation_commit(struct reservation *reservation, CUdeviceptr pointer)
{
    return commit_block(reservation, pointer, 0);
}

CUresult reservation_spill(struct reservation *reservation, CUdeviceptr *pointer, size_t bytes)
{
    int device = reservation->request.device;
    if (!spill_possible(device))
        return reservation_cancel(reservation, CUDA_ERROR_OUT_OF_MEMORY);
    CUresult result = take_whole_blocks(reservation, bytes);
    if (result != CUDA_SUCCESS)
        return result;
    result = spill_allocate(pointer, device, bytes, reservation->reserved);
    return result == CUDA_SUCCESS ? commit_block(reservation, *pointer, BLOCK_SPILLED)
                                  : reservation_cancel(reservation, result);
}

CUresult reservation_cancel(struct reservation *reservation, CUresult result)
{
    ASSERT(result != CUDA_SUCCESS);
    if (reservation->reserved == 0)
        small_blocks_cancel(&reservation->request);
    else
        unreserve(reservation->request.device, reservation->request.kind, reservation->reserved);
    return result;
}
