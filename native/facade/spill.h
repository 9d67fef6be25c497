/* Memory beyond the container's physical share, on GPUs whose memory is granted more than once.
 *
 * The shares of all containers on such a GPU fit it together, so each gets its own whatever the others do. What a
 * container holds beyond its share, and what the driver has no room for, becomes managed memory: the driver moves it
 * between GPU and host as it is used. Elsewhere nothing ever becomes managed by itself. */
#ifndef LAMINA_SPILL_H
#define LAMINA_SPILL_H

#include "blocks.h"
#include "cuda_min.h"

/* Whether memory of the device is granted more than once. */
bool spill_possible(int device);

/* True when what was just announced for the device exceeds the physical share. */
bool spill_due(int device);

/* Makes managed memory for a request that is announced with `taken` bytes. CUDA_ERROR_OUT_OF_MEMORY where memory is
 * not granted more than once. */
CUresult spill(CUdeviceptr *pointer, int device, size_t bytes, uint64_t taken);

/* The request was undone, or its block freed. */
void spill_undo(int device, uint64_t taken);

/* Whether the address lies in such memory of this process. No cost to programs that have none. */
bool spilled(CUdeviceptr address);

#endif
