/* Memory shared between processes by CUipcMemHandle. */
#ifndef SIMGPU_IPC_H
#define SIMGPU_IPC_H

#include "cuda/memory.h"

/* The owner frees an exported allocation. True when others have it open, so that it stays charged. */
bool ipc_mark_freed(const struct allocation *a);
void ipc_close(struct allocation *a);

#endif
