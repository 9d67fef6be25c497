/* Small allocations, which share blocks of the driver. A block stays on the GPU until the last allocation in it is
 * freed, and of its 2 MiB some may be of no use for any size; so what counts is blocks, not the bytes requested. The
 * address of an allocation says which block it is in.
 *
 *     begin -> the driver's call -> commit (the driver gave memory) or cancel (it did not)
 *
 * Before the driver is asked, either a block is reserved, or a known block has a piece free that no other request
 * expects. What a block can serve is taken to be powers of two of 512 bytes, one size per block: a driver that divides
 * blocks in another way gets a block reserved more often, and gives it back when its answer is in a known block.
 *
 * Example: a program allocates 700 kB three times. The first time, a block is reserved, and the driver uses a new one.
 * It holds one more piece of up to 1 MiB, so for the second time nothing is reserved. For the third time a block is
 * reserved again. 4 MiB count, and do so until two of the three are freed that are in the same block. */
#ifndef LAMINA_SMALL_BLOCKS_H
#define LAMINA_SMALL_BLOCKS_H

#include "cuda_min.h"
#include "lamina_layout.h"

#include <stdbool.h>
#include <stdint.h>

struct small_block;
struct small_space;

struct small_request {
    CUcontext context;
    int device;
    enum lamina_kind kind;
    uint64_t bytes;
    struct small_space *expects; /* where a piece is kept for it; NULL: nowhere */
    bool reserved;               /* a block is reserved for it */
};

/* On an error nothing is reserved, and the request has ended. */
CUresult small_blocks_begin(struct small_request *request);

/* The driver gave this address: counts the allocation in its block. On an error nothing is counted, and the memory is
 * to be freed. */
CUresult small_blocks_commit(struct small_request *request, CUdeviceptr pointer, struct small_block **block);

void small_blocks_cancel(struct small_request *request);

/* An allocation in the block was freed. */
void small_blocks_leave(struct small_block *block);

/* Drops everything, in a forked child. */
void small_blocks_after_fork(void);

#endif
