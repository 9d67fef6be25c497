/* Handles by which test programs use each other's memory, in a file that all of them map. */
#ifndef FACADE_OFFERS_H
#define FACADE_OFFERS_H

#include "facade_calls.h"

#include <fcntl.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

struct offer {
    _Atomic uint32_t busy;
    uint32_t there;
    CUipcMemHandle handle;
};
enum { OFFERS = 64 };

/* The file lies next to the simulated machine's. Ends the program when it cannot be mapped. */
static inline struct offer *offers_open(void)
{
    char path[4096];
    snprintf(path, sizeof path, "%s.offers", getenv("SIMGPU_MACHINE"));
    int file = open(path, O_RDWR | O_CREAT, 0600);
    if (ftruncate(file, OFFERS * sizeof(struct offer)) != 0)
        exit(3);
    struct offer *offers = mmap(NULL, OFFERS * sizeof *offers, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    close(file);
    if (offers == MAP_FAILED)
        exit(3);
    return offers;
}

/* Lets others use the memory, unless another process writes to the same place right now. */
static inline void offer_memory(struct offer *place, CUdeviceptr pointer)
{
    if (atomic_exchange(&place->busy, 1) != 0)
        return;
    place->there = CALL(cuIpcGetMemHandle)(&place->handle, pointer) == CUDA_SUCCESS;
    atomic_store(&place->busy, 0);
}

/* An offer may be stale or the process's own: then nothing is opened. */
static inline CUresult offer_use(struct offer *place, CUdeviceptr *pointer)
{
    if (atomic_exchange(&place->busy, 1) != 0)
        return CUDA_ERROR_OUT_OF_MEMORY;
    struct offer taken = *place;
    atomic_store(&place->busy, 0);
    return taken.there ? CALL(cuIpcOpenMemHandle_v2)(pointer, taken.handle, 1) : CUDA_ERROR_OUT_OF_MEMORY;
}

#endif
