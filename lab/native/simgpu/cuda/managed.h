/* Managed memory of this process. core/paging.c decides where it is. */
#ifndef SIMGPU_MANAGED_H
#define SIMGPU_MANAGED_H

#include "cuda/memory.h"

void managed_free(struct allocation *a);

#endif
