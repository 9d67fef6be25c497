/* Memory that graphs allocate when they run.
 *
 * The driver takes it when a graph is launched or uploaded, from a store of its own on each device; graphs share it, and
 * the store keeps it when graphs are gone, until it is told to trim. How much it has counts, and the driver says so.
 * Before a graph's memory is mapped, the most that its nodes hold at once is announced, in the order in which they were
 * added; afterwards the driver's figure takes its place. Allocations that outlive their graph are part of it. */
#ifndef LAMINA_GRAPHS_H
#define LAMINA_GRAPHS_H

#include "hooks.h"
#include "lamina_layout.h"

#include <stdbool.h>
#include <stdint.h>

/* What is known of a graph that allocates. */
struct graph_record {
    struct graph_record *next;
    CUgraph graph; /* NULL: destroyed, but its executable form is not */
    unsigned execs;
    bool mapped;      /* the driver has found memory for it, */
    CUstream stream;  /* for launches into this stream, */
    unsigned trims;   /* after so many trims of the stores */
    struct {
        uint64_t live; /* allocated and not freed by the nodes so far */
        uint64_t most;
    } need[LAMINA_MAX_DEVICES];
};

/* Nodes that allocate are going to be added to the graph. False when there is no memory to note it. */
bool graphs_note(CUgraph graph);

/* Such a node was added, or one that frees. A device below 0 is none of ours. */
void graphs_allocates(CUgraph graph, int device, uint64_t bytes, CUdeviceptr pointer);
void graphs_frees(CUgraph graph, CUdeviceptr pointer);

/* The graph that a stream's work goes into, or NULL when it goes to the GPU. */
CUgraph graph_captured(__typeof__(cuStreamGetCaptureInfo_v2) *info, CUstream stream);

/* Whether a node of a graph made the address. */
bool graphs_know(CUdeviceptr pointer);

/* The record of an executable graph, or of a graph. NULL: it allocates nothing. Both want the lock. */
struct graph_record *graphs_of_exec(CUgraphExec exec);
struct graph_record *graphs_of(CUgraph graph);
void graphs_lock(void);
bool graphs_try_lock(void);
void graphs_unlock(void);

/* Whether any graph of this process allocates. */
bool graphs_any(void);

/* Before memory is mapped for launches into a stream, and after; with the lock held. On an error nothing is changed. */
CUresult graphs_announce(struct graph_record *record, CUstream stream, CUresult (*wait)(CUstream),
                         uint64_t announced[LAMINA_MAX_DEVICES]);
void graphs_settle(struct graph_record *record, CUstream stream, CUresult result,
                   const uint64_t announced[LAMINA_MAX_DEVICES]);

/* Lets the stores of all devices give back what nothing uses, unless another thread is at a graph. */
void graphs_trim(void);

/* The store of a device may have changed. */
void graphs_refresh(int device);

/* Forgets all graphs, in a forked child. */
void graphs_forget(void);
void graph_memory_forget(void);

#endif
