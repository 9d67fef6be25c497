/* The driver's functions, which are exported under their own names. */
#ifndef SIMGPU_EXPORTS_H
#define SIMGPU_EXPORTS_H

#pragma GCC visibility push(default)
#include "cuda_prototypes.h"
#pragma GCC visibility pop

#endif
