/* Clients of MPS. Where CUDA_MPS_PIPE_DIRECTORY has a control daemon's socket, cuInit sends it one line, and keeps the
 * connection: it shows the daemon that the client is alive, and the client that its server is.
 *
 *   CLIENT <pid> <percent>            what the client's own CUDA_MPS_ACTIVE_THREAD_PERCENTAGE allows at most
 *   OK <percent> <uuid>=<MiB> ...     its part of the processors, and what it may hold on each GPU; 0 is no limit
 *   ERROR <number>                    an error of CUDA
 *
 * A line that comes later says that the server has failed. */
#ifndef SIMGPU_MPS_H
#define SIMGPU_MPS_H

#include "core/machine.h"
#include "cuda/exports.h"

/* Makes the process a client of MPS if CUDA_MPS_PIPE_DIRECTORY has a daemon: `*connection` and the clients' lanes on
 * the devices that it serves; others are removed from the list. Without a daemon nothing changes. */
CUresult mps_join(const struct machine *m, uint32_t slot, uint32_t *gpus, uint32_t *count, int *connection);
/* An error when this process is a client and its server is gone. */
CUresult mps_check(void);

#endif
