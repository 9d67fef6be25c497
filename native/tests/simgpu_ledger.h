/* What the simulated GPU itself says that all processes hold: the figure that no limit may let grow beyond it. */
#ifndef SIMGPU_LEDGER_H
#define SIMGPU_LEDGER_H

#include "simgpu_layout.h"

#include <fcntl.h>
#include <stdbool.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/types.h>
#include <unistd.h>

/* The machine that this process sees, with its first GPU. Ends the program when there is none. */
static inline const struct simgpu_header *ledger_map(void)
{
    int file = open(getenv("SIMGPU_MACHINE"), O_RDONLY);
    const char *machine =
        mmap(NULL, SIMGPU_HEADER_BYTES + (SIMGPU_SLOTS * sizeof(struct simgpu_process)) + SIMGPU_GPU_BYTES, PROT_READ,
             MAP_SHARED, file, 0);
    close(file);
    if (machine == MAP_FAILED)
        exit(3);
    return (const struct simgpu_header *)machine;
}

/* Its first GPU. */
static inline const struct simgpu_gpu *ledger_open(void)
{
    const struct simgpu_header *machine = ledger_map();
    return (const struct simgpu_gpu *)((const char *)machine + machine->gpus);
}

/* MiB of it that living processes hold. What ended ones held stays in the ledger until the driver looks for them. */
static inline size_t ledger_mib_of_living(const struct simgpu_header *machine, bool (*lives)(pid_t))
{
    const struct simgpu_process *processes =
        (const struct simgpu_process *)((const char *)machine + machine->processes);
    const struct simgpu_cell *cells =
        (const struct simgpu_cell *)((const char *)machine + machine->gpus + SIMGPU_RECORD_BYTES +
                                     SIMGPU_LOG * sizeof(struct simgpu_log_entry));
    size_t mib = 0;
    for (uint32_t slot = 0; slot < machine->slots_used && slot < SIMGPU_SLOTS; slot++) {
        pid_t pid = (pid_t)(processes[slot].identity & ((UINT64_C(1) << SIMGPU_IDENTITY_PID_BITS) - 1));
        mib += pid != 0 && lives(pid) ? (uint32_t)cells[slot].memory : 0;
    }
    return mib;
}

/* Bytes in use on it. */
static inline size_t ledger_bytes(const struct simgpu_gpu *gpu)
{
    return (size_t)(uint32_t)simgpu_half(&gpu->ledger.low) << 20;
}

#endif
