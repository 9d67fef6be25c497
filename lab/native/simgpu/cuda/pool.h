/* Pools of stream-ordered memory. A pool takes memory from the device in big steps and keeps what it has until the
 * program waits for the device; then it gives back what is above its release threshold. */
#ifndef SIMGPU_POOL_H
#define SIMGPU_POOL_H

#include "cuda/driver.h"

struct CUmemPoolHandle_st {
    struct device *dev;
    bool of_device; /* the default pool; it cannot be destroyed */
    bool destroyed; /* removed with the last allocation from it */
    uint64_t threshold, used, used_high;
    uint64_t waiting; /* freed in the order of a stream, which the GPU has not come to */
    uint32_t reserved_mib, reserved_high_mib, limit_mib;
    int reuse[3];
    CUmemoryPool next;
};

/* What an allocation takes of its pool. */
#define POOL_PIECE 512
static inline uint64_t pool_piece(uint64_t size)
{
    return (size + POOL_PIECE - 1) / POOL_PIECE * POOL_PIECE;
}

/* Call these with the driver's lock held. */
CUmemoryPool pool_default(struct device *dev); /* created at the first call; NULL without host memory */
bool pool_exists(CUmemoryPool pool);
void pool_shrink(CUmemoryPool pool, uint64_t keep); /* to this many bytes, or to what is used */
/* Gives back what all pools of the device hold but do not use. */
void pool_trim_all(struct device *dev);

/* The program waited for the device: pools shrink to their thresholds. */
void pool_trim_idle(struct device *dev);
void pool_after_fork(void);

#endif
