/* The graphs of this process that allocate memory when they run, and how much each one needs. */
#ifndef LAMINA_GRAPH_RECORDS_H
#define LAMINA_GRAPH_RECORDS_H

#include "cuda/hooks.h"
#include "lamina_layout.h"

#include <stdbool.h>
#include <stdint.h>

struct graph_record {
    struct graph_record *next;
    CUgraph graph; /* NULL: destroyed, but its executable form is not */
    unsigned execs;
    bool mapped;     /* the driver has found memory for it, */
    CUstream stream; /* for launches into this stream, */
    unsigned trims;  /* after this many trims of the stores */
    struct {
        uint64_t live; /* allocated and not freed by the nodes so far */
        uint64_t most; /* the maximum of `live` */
    } need[LAMINA_MAX_DEVICES];
};

/* Adds a record for a graph that gets nodes which allocate, if it has none. False when there is no memory for it. */
bool graph_records_add(CUgraph graph);

/* A node that allocates, or one that frees, was added. A device below 0 is not counted. */
void graph_records_note_allocation(CUgraph graph, int device, uint64_t bytes, CUdeviceptr pointer);
void graph_records_note_free(CUgraph graph, CUdeviceptr pointer);

/* The graph that a stream is captured into, or NULL when its work goes to the GPU. */
CUgraph captured_graph(__typeof__(cuStreamGetCaptureInfo_v2) *info, CUstream stream);

/* Whether a node of a graph allocates this address. */
bool graph_records_have_pointer(CUdeviceptr pointer);

/* The record of an executable graph, or of a graph; NULL if it allocates nothing. Call with the lock held. */
struct graph_record *graph_record_of_exec(CUgraphExec exec);
struct graph_record *graph_record_of(CUgraph graph);
void graph_records_lock(void);
bool graph_records_try_lock(void);
void graph_records_unlock(void);

/* Whether any graph of this process allocates. */
bool graph_records_any(void);

/* Frees the records of graphs that can no longer run. Call with the lock held. */
void graph_records_remove_unused(void);

/* Drops all records, in a forked child. */
void graph_records_after_fork(void);

#endif
