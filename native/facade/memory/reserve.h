/* Reserving device memory for this process in the container's account: what the hooks of all allocating calls use.
 * Devices are entries of the limits; sizes are bytes. */
#ifndef LAMINA_RESERVE_H
#define LAMINA_RESERVE_H

#include "cuda_min.h"
#include "lamina_layout.h"

/* What a request takes of the device. The driver takes memory in blocks of 2 MiB, and only requests of up to half a
 * block share one with others. */
#define DRIVER_BLOCK (UINT64_C(2) << 20)

static inline int shares_a_block(uint64_t bytes)
{
    return bytes <= DRIVER_BLOCK / 2;
}

static inline uint64_t whole_blocks(uint64_t bytes)
{
    return bytes > UINT64_MAX - DRIVER_BLOCK ? UINT64_MAX : (bytes + DRIVER_BLOCK - 1) / DRIVER_BLOCK * DRIVER_BLOCK;
}

/* Registers a function that gives back memory which is counted but no longer used. A request that does not fit calls
 * all of them, in the order of registration, before it is refused. Registering one again changes nothing. */
void add_reclaimer(void (*reclaim)(void));

/* Reserves memory before the driver is asked for it. CUDA_ERROR_OUT_OF_MEMORY, and a log line, when the container would
 * exceed its limit; another error when this process cannot take part in the account. */
CUresult reserve(int device, enum lamina_kind kind, uint64_t bytes);

/* The same without calling reclaimers and without a log line. */
CUresult reserve_quietly(int device, enum lamina_kind kind, uint64_t bytes);

/* Adds what the driver holds already, without checking the limit. */
void reserve_beyond_limit(int device, enum lamina_kind kind, uint64_t bytes);

/* Counts and logs a refused request, which would have made the container hold `requested`. */
void report_refusal(int device, uint64_t requested);

void unreserve(int device, enum lamina_kind kind, uint64_t bytes);

/* Changes a reservation of `reserved` bytes to one of `actual` bytes. On an error nothing is changed. */
CUresult reserve_adjust(int device, enum lamina_kind kind, uint64_t reserved, uint64_t actual);

/* Notes what the container holds as its peak: for contexts, once their cost is known. */
void reserve_note_peak(int device);

/* What remains of the container's limit; what the container holds; what this process holds. */
uint64_t reserve_available(int device);
uint64_t reserved_total(int device);
uint64_t reserved_by_process(int device);

/* The part of that which is managed memory, requested as such or substituted for device memory. */
uint64_t reserved_managed_by_process(int device);

#endif
