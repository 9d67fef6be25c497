/* Memory for graphs that allocate when they run.
 *
 * The driver takes it when a graph is launched or uploaded, from a store on each device. All graphs share the store,
 * and it keeps its memory when they are gone, until the program trims it. What the store has reserved counts, and the
 * driver says how much that is. Before a graph's memory is mapped, the most that its nodes hold at once is reserved, in
 * the order in which they were added; afterwards the driver's figure replaces it. Allocations that outlive their graph
 * are part of that figure. */
#ifndef LAMINA_GRAPH_MEMORY_H
#define LAMINA_GRAPH_MEMORY_H

#include "memory/graph_records.h"

/* Before memory is mapped for launches into a stream, and after; with the lock held. On an error nothing is changed. It
 * is only logged at the last try. */
CUresult graph_memory_reserve(struct graph_record *record, bool last, uint64_t reserved[LAMINA_MAX_DEVICES]);
void graph_memory_settle(struct graph_record *record, CUstream stream, CUresult result,
                         const uint64_t reserved[LAMINA_MAX_DEVICES]);

/* A graph that still runs keeps its memory out of the store, and the next one in its stream can use that memory. Waits
 * for the stream, for a while and without the lock, because the stream may wait for this thread itself. */
void graph_memory_wait(CUstream stream, CUresult (*query)(CUstream));

/* Whether a launch into the stream needs no memory beyond what the graph already has. Call with the lock held. */
bool graph_memory_is_mapped(const struct graph_record *record, CUstream stream);

/* Makes the stores of all devices give back what no graph uses, unless another thread works with a graph. */
void graph_memory_trim(void);

/* The store of a device may have changed. */
void graph_memory_refresh(int device);

/* Drops what the stores hold, in a forked child. */
void graph_memory_after_fork(void);

#endif
