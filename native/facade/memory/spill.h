/* Memory beyond the container's physical share, on GPUs whose memory is granted more than once, and memory that a
 * container borrows (lending.h): there its physical share is what is guaranteed.
 *
 * The physical shares of all containers on such a GPU fit it together, so each container gets its own whatever the
 * others do. What a container holds beyond its share, and what the driver cannot place on the GPU, becomes managed
 * memory: the driver moves it between GPU and host as it is used. On other GPUs no memory is substituted. */
#ifndef LAMINA_SPILL_H
#define LAMINA_SPILL_H

#include "cuda_min.h"
#include "memory/blocks.h"

/* Whether memory of the device is granted more than once, or lent. */
bool spill_possible(int device);

/* Whether what is reserved on the device exceeds the physical share. While a container borrows, a part of its share is
 * kept for memory that cannot be managed, such as code and contexts. */
bool spill_needed(int device);

/* Allocates managed memory for a request with `reserved` bytes reserved. CUDA_ERROR_OUT_OF_MEMORY where memory is not
 * granted more than once. */
CUresult spill_allocate(CUdeviceptr *pointer, int device, size_t bytes, uint64_t reserved);

/* The request was undone, or its block freed, of which so much was kept on the host. */
void spill_undo(int device, uint64_t reserved, uint64_t hosted);

/* Whether the address is in such memory of this process. Free of cost for programs that have none. */
bool spill_contains(CUdeviceptr address);

#endif
