/* Functions of modules. */
#ifndef SIMGPU_MODULE_H
#define SIMGPU_MODULE_H

#include "driver.h"

struct CUfunc_st {
    uint32_t magic;
    enum { FUNCTION_PLAIN, FUNCTION_SPIN, FUNCTION_EMPTY } kind;
    struct CUmod_st *module;
    CUfunction next;
    char name[];
};

bool function_valid(CUfunction f);
/* GPU time of a launch with these parameters, in ns. */
uint64_t function_duration(CUfunction f, void **params, void **extra);
CUfunction module_function(CUmodule module, const char *name);
CUmodule module_new(void);
void module_delete(CUmodule module);

#endif
