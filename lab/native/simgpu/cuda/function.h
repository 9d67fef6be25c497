/* Functions of modules. There is no code to run: a function is a name. `spin` takes as many nanoseconds as its first
 * parameter, a uint64, says; `fault` does too, and then breaks its context; `empty` takes none; any other takes the
 * machine's default. */
#ifndef SIMGPU_FUNCTION_H
#define SIMGPU_FUNCTION_H

#include "core/machine.h"
#include "cuda/exports.h"

#include <stdbool.h>
#include <stdint.h>

struct CUfunc_st {
    uint32_t magic;
    enum { FUNCTION_PLAIN, FUNCTION_SPIN, FUNCTION_EMPTY, FUNCTION_FAULT } kind;
    CUmodule module;
    int target;      /* of the module's PTX, like 50 for sm_50; 0 where that is not known */
    CUfunction next; /* of the module */
    char name[];
};

/* NULL without host memory. */
CUfunction function_create(CUmodule module, int target, const char *name);
void function_destroy(CUfunction f);
bool function_is_valid(CUfunction f);
/* How many blocks of this many threads one multiprocessor runs at the same time. */
uint64_t function_blocks_per_sm(const struct simgpu_gpu *gpu, uint64_t threads);
/* GPU time of a launch with these parameters, in ns. */
uint64_t function_read_duration(CUfunction f, void **params, void **extra);

#endif
