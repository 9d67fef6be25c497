/* What the simulated GPU itself says that all processes hold: the figure that no limit may let grow beyond it. */
#ifndef SIMGPU_LEDGER_H
#define SIMGPU_LEDGER_H

#include "simgpu_layout.h"

#include <fcntl.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

/* The first GPU of the machine that this process sees. Ends the program when there is none. */
static inline const struct simgpu_gpu *ledger_open(void)
{
    int file = open(getenv("SIMGPU_MACHINE"), O_RDONLY);
    const char *machine =
        mmap(NULL, SIMGPU_HEADER_BYTES + (SIMGPU_SLOTS * sizeof(struct simgpu_process)) + SIMGPU_GPU_BYTES, PROT_READ,
             MAP_SHARED, file, 0);
    close(file);
    if (machine == MAP_FAILED)
        exit(3);
    return (const struct simgpu_gpu *)(machine + ((const struct simgpu_header *)machine)->gpus);
}

/* Bytes in use on it. */
static inline size_t ledger_bytes(const struct simgpu_gpu *gpu)
{
    return (size_t)(uint32_t)simgpu_half(&gpu->ledger.low) << 20;
}

#endif
