/* Holding and giving back device memory for this process: what the hooks of all allocating calls use. Devices are
 * entries of the limits; sizes are bytes. */
#ifndef LAMINA_HOLD_H
#define LAMINA_HOLD_H

#include "cuda_min.h"
#include "lamina_layout.h"

/* What a request takes of the device. The driver's memory comes in blocks of 2 MiB: only requests of up to half a block
 * share one with others. */
static inline int is_small(uint64_t bytes)
{
    return bytes <= UINT64_C(1) << 20;
}

static inline uint64_t in_whole_blocks(uint64_t bytes)
{
    const uint64_t block = UINT64_C(2) << 20;
    return bytes > UINT64_MAX - block ? UINT64_MAX : (bytes + block - 1) / block * block;
}

static inline uint64_t in_blocks(uint64_t bytes)
{
    return is_small(bytes) ? bytes : in_whole_blocks(bytes);
}

/* Announces memory before the driver is asked for it. CUDA_ERROR_OUT_OF_MEMORY when the container would pass its
 * limit (and one log line says so), another error when this process cannot take part in the account. */
CUresult hold(int device, enum lamina_kind kind, uint64_t bytes);

/* The same without a log line and without looking for dead processes. */
CUresult hold_quietly(int device, enum lamina_kind kind, uint64_t bytes);

/* Adds what the driver holds already, limit or not. */
void hold_anyway(int device, enum lamina_kind kind, uint64_t bytes);

/* Counts and logs a request that was refused because it would have made the container hold `asked`. */
void hold_refused(int device, uint64_t asked);

void give_back(int device, enum lamina_kind kind, uint64_t bytes);

/* Turns what was held for `announced` bytes into `real` ones: more is asked for, less is given back. On an error
 * nothing is changed. */
CUresult hold_adjust(int device, enum lamina_kind kind, uint64_t announced, uint64_t real);

/* What the container's limit leaves over; what it and this process hold. */
uint64_t hold_rest(int device);
uint64_t hold_all(int device);
uint64_t hold_own(int device);

#endif
