/* Memory that graphs allocate when they run. A graph is charged with the most that its nodes hold at once, in the
 * order in which they were added, from when a node is added until graph and executable graph are both gone. */
#ifndef LAMINA_GRAPHS_H
#define LAMINA_GRAPHS_H

#include "blocks.h"
#include "cuda_min.h"

/* A node that allocates is about to be added, by hand or by capture; and what came of it. */
CUresult graphs_announce(CUgraph graph, int device, uint64_t bytes);
void graphs_settle(CUgraph graph, int device, uint64_t bytes, CUresult result, CUdeviceptr pointer);

/* A block of a graph was freed: by a node, or by the program. */
void graphs_freed(const struct block *block);

/* Forgets all graphs, in a forked child. */
void graphs_forget(void);

#endif
