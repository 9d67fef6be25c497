/* What a context costs: announced before it is made, settled afterwards by the driver's own figure. */
#ifndef LAMINA_CONTEXT_COST_H
#define LAMINA_CONTEXT_COST_H

#include "cuda_min.h"

#include <stdbool.h>
#include <stdint.h>

struct context_cost {
    int device;
    uint64_t announced;
    uint64_t own_before;    /* what the account said that this process holds */
    uint64_t figure_before; /* what the driver said; 0 before the first context */
    uint64_t device_before; /* what the driver said of the whole device */
    bool device_known;
    bool measures; /* this process finds out what a context costs */
};

/* Announces what a context will cost on the device. CUDA_ERROR_OUT_OF_MEMORY when it does not fit. */
CUresult context_cost_announce(struct context_cost *cost, int device);

/* The context exists: finds out what it took and corrects the announcement. On an error nothing is held for it. */
CUresult context_cost_settle(struct context_cost *cost, uint64_t *bytes);

void context_cost_undo(struct context_cost *cost);

/* What the driver says that this process holds and the account does not know. */
uint64_t context_cost_unseen(int device);

#endif
