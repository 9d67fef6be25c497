/* Transfers take no time on the simulated GPU. A synchronous one waits for the device; an asynchronous one happens at
 * once, or is a node of a graph when its stream is capturing.
 *
 * Example: SYNC_TRANSFER(cuMemsetD8_v2, (CUdeviceptr at, unsigned char value, size_t count), fill(at, value, count))
 * defines cuMemsetD8_v2, which waits and then returns what `fill` returns. */
#ifndef SIMGPU_TRANSFER_H
#define SIMGPU_TRANSFER_H

#include "core/try.h"
#include "cuda/exports.h"

#include <stdbool.h>

/* An error without a context, or when a capture forbids waiting for it. */
CUresult transfer_begin_sync(void);
/* `*captured`: the transfer is now a node of the stream's graph and must not happen. */
CUresult transfer_begin_async(CUstream handle, CUgraphNodeType node, bool *captured);

#define SYNC_TRANSFER(name, parameters, transfer)                                                                      \
    CUresult name parameters                                                                                           \
    {                                                                                                                  \
        TRY(transfer_begin_sync());                                                                                    \
        return transfer;                                                                                               \
    }

/* The last parameter must be `stream`. */
#define ASYNC_TRANSFER(name, parameters, node, transfer)                                                               \
    CUresult name parameters                                                                                           \
    {                                                                                                                  \
        bool captured;                                                                                                 \
        TRY(transfer_begin_async(stream, node, &captured));                                                            \
        return captured ? CUDA_SUCCESS : transfer;                                                                     \
    }

#endif
