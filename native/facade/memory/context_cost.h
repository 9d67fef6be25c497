/* What a context costs: reserved before it is made, corrected afterwards by the driver's own figure.
 *
 * Example: nothing is known yet, and 10 GiB are free. Process A reserves 1 GiB and makes its context. By the agent's
 * word, or by NVML where both use the same pids, its use of the GPU grew from 0 to 312 MiB. It stores 312 MiB in the
 * usage file and gives the rest back. Process B, which started at the same time, has waited for that, and reserves 312
 * MiB. Its own context takes 350 MiB by the driver's figure, so it reserves 38 MiB more.
 *
 * B would not have waited if the driver reported its own figure too, as it usually does: while 1 GiB is free, B
 * reserves that as well, makes its context at the same time as A, and gives the rest back. */
#ifndef LAMINA_CONTEXT_COST_H
#define LAMINA_CONTEXT_COST_H

#include "cuda_min.h"
#include "memory/driver_usage.h"

#include <stdbool.h>
#include <stdint.h>

struct context_cost {
    int device;
    uint64_t reserved;
    uint64_t own_before;    /* what this process held by the account */
    uint64_t usage_before;  /* what it used by the driver's figure; 0 before the first context */
    uint64_t device_before; /* what the whole device used by the driver's figure */
    bool device_known;
    bool measures; /* this process finds out what a context costs */
    bool yields;   /* another process may take what was reserved beyond what is likely */
    bool parallel; /* another one does so, and this process has reserved ample room meanwhile */
    bool reported; /* the agent tells the driver's figure */
    bool guessed;  /* the driver's figure was not known afterwards */
    uint64_t reported_before, reported_held;
    bool listed; /* the driver lists processes, and this one was not among them */
    struct driver_list list_before;
};

/* Reserves what a context will cost on the device. CUDA_ERROR_OUT_OF_MEMORY when it does not fit. */
CUresult context_cost_reserve(struct context_cost *cost, int device);

/* The context exists: finds out what it takes and corrects the reservation. On an error nothing is reserved for it. */
CUresult context_cost_settle(struct context_cost *cost, uint64_t *bytes);

/* Replaces a guess of `bytes` by the driver's figure. False, and nothing is changed, when it is still not known. Memory
 * that the driver may have moved to the host would distort it. */
bool context_cost_correct(int device, uint64_t *bytes);

/* The context was not made: gives the reservation back. */
void context_cost_cancel(struct context_cost *cost);

/* Bytes that this process uses by the driver's figure and that the account does not have. */
uint64_t context_cost_uncounted(int device);

#endif
