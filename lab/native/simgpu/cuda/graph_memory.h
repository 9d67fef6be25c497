/* Memory of graphs: each device has one store for all graphs of the process. It grows when a graph that needs more is
 * launched or uploaded, and keeps what it has until it is trimmed. Graphs share it, and nodes that allocate use what
 * earlier nodes freed. A block that no node freed is the program's, even when its graph is gone. */
#ifndef SIMGPU_GRAPH_MEMORY_H
#define SIMGPU_GRAPH_MEMORY_H

#include "cuda/memory.h"

/* Finds memory for the most that the graph's nodes hold at once; `freeing`: what they left from the last run. */
CUresult graph_memory_reserve(CUgraphExec exec, bool freeing);
/* The graph can no longer run. */
void graph_memory_remove(CUgraphExec exec);

/* A node allocates its block; call this with the lock held. */
void graph_memory_allocate(struct allocation *a, CUcontext ctx);

/* Gives back what no graph uses, with the lock held. */
void graph_memory_trim(struct device *dev);
void graph_memory_after_fork(void);

#endif
