/* What the hooks of CUDA need: the table of entry points, and prototypes of the driver's functions. */
#ifndef LAMINA_CUDA_HOOKS_H
#define LAMINA_CUDA_HOOKS_H

#include "shared/facade.h"
#include "shared/table.h"

/* The hooks are exported under the driver's names. */
#pragma GCC visibility push(default)
#include "cuda_prototypes.h"
#pragma GCC visibility pop

#endif
