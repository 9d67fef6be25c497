/* A reservation for one allocation with a device pointer. It ends with exactly one of commit, spill and cancel:
 *
 *     begin -> the driver's call -> commit (the driver gave memory) or cancel (it did not)
 *
 * Between begin and its end the account has what the driver may take, so the container never holds more than the
 * account says. A small allocation shares a block with others, as in small_blocks.h; all others take whole blocks.
 *
 * Example: cuMemAllocPitch for 3000 rows of 1000 bytes.
 *
 *   1. begin: rows will be 1024 bytes apart, so 2.93 MiB are needed, which are two blocks: 4 MiB are reserved.
 *   2. The driver allocates, and has chosen a pitch of 2048 bytes. adjust: 5.86 MiB are three blocks, so 2 MiB more are
 *      reserved. If the limit has no space for them, the 4 MiB are given back, and the caller frees the memory.
 *   3. commit: a block with 6 MiB is recorded under the pointer. They are given back with the memory.
 *
 * If the driver had refused in step 2, cancel would have given back the 4 MiB, or spill would have used them for
 * managed memory in place of device memory. */
#ifndef LAMINA_RESERVATION_H
#define LAMINA_RESERVATION_H

#include "cuda_min.h"
#include "memory/small_blocks.h"

#include <stddef.h>
#include <stdint.h>

struct reservation {
    struct small_request request; /* its context is the one that the memory ends with; NULL: none */
    uint64_t reserved;            /* 0: the allocation is to share a block */
};

/* Reserves what an allocation of so many bytes takes. On an error nothing is reserved, and the reservation has ended.
 */
CUresult reservation_begin(struct reservation *reservation, CUcontext context, int device, enum lamina_kind kind,
                           uint64_t bytes);

/* Changes it to what the driver really took. On an error the reservation has ended, and the memory is to be freed. */
CUresult reservation_adjust(struct reservation *reservation, uint64_t bytes);

/* Records the pointer as a block. When that is not possible, the memory is freed and the reservation canceled; then
 * CUDA_ERROR_OUT_OF_MEMORY. */
CUresult reservation_commit(struct reservation *reservation, CUdeviceptr pointer);

/* Allocates and records managed memory in place of device memory. On an error the reservation is canceled;
 * CUDA_ERROR_OUT_OF_MEMORY where no memory is substituted. */
CUresult reservation_spill(struct reservation *reservation, CUdeviceptr *pointer, size_t bytes);

/* Gives back what is reserved. Returns `result`, the driver's error. */
CUresult reservation_cancel(struct reservation *reservation, CUresult result);

#endif
