#include "memory/graph_records.h"

#include "memory/blocks.h"
#include "shared/assertion.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct graph_record *records; /* and what they say, by the lock */
static atomic_bool any;

void graph_records_after_fork(void)
{
    lock = (pthread_mutex_t)PTHREAD_MUTEX_INITIALIZER;
    records = NULL;
    any = false;
}

void graph_records_lock(void)
{
    pthread_mutex_lock(&lock);
}

bool graph_records_try_lock(void)
{
    return pthread_mutex_trylock(&lock) == 0;
}

void graph_records_unlock(void)
{
    pthread_mutex_unlock(&lock);
}

bool graph_records_any(void)
{
    /* Relaxed: a program orders a call with a graph after the call that made it, and the records have a lock. */
    return atomic_load_explicit(&any, memory_order_relaxed);
}

struct graph_record *graph_record_of(CUgraph graph)
{
    struct graph_record *record = records;
    while (record != NULL && record->graph != graph)
        record = record->next;
    return record;
}

struct graph_record *graph_record_of_exec(CUgraphExec exec)
{
    struct block block;
    return blocks_get(BLOCK_EXEC, (uint64_t)(uintptr_t)exec, &block) ? block.object : NULL;
}

bool graph_records_add(CUgraph graph)
{
    graph_records_lock();
    struct graph_record *record = graph_record_of(graph);
    if (record == NULL && (record = calloc(1, sizeof *record)) != NULL) {
        *record = (struct graph_record){.next = records, .graph = graph};
        records = record;
        any = true;
    }
    graph_records_unlock();
    return record != NULL;
}

void graph_records_note_allocation(CUgraph graph, int device, uint64_t bytes, CUdeviceptr pointer)
{
    if (device < 0)
        return;
    graph_records_lock();
    struct graph_record *record = graph_record_of(graph);
    /* Without an entry, for lack of memory, the free is not noted: then the graph seems to need more than it does. */
    struct block replaced, block = {.key = pointer,
                                    .bytes = bytes,
                                    .object = record,
                                    .class = BLOCK_GRAPH,
                                    .context = (uint64_t)(uintptr_t)record,
                                    .device = (uint8_t)device};
    if (record != NULL) {
        ASSERT(device < LAMINA_MAX_DEVICES);
        uint64_t live = record->need[device].live;
        record->need[device].live = live = bytes > UINT64_MAX - live ? UINT64_MAX : live + bytes;
        if (live > record->need[device].most)
            record->need[device].most = live;
        blocks_put(&block, &replaced);
    }
    graph_records_unlock();
}

void graph_records_note_free(CUgraph graph, CUdeviceptr pointer)
{
    struct block block;
    graph_records_lock();
    struct graph_record *record = graph_record_of(graph);
    /* One graph may free what another one allocates. That changes nothing for either. */
    if (record != NULL && blocks_get(BLOCK_GRAPH, pointer, &block) && block.object == record) {
        blocks_take(BLOCK_GRAPH, pointer, &block);
        ASSERT(record->need[block.device].live >= block.bytes || record->need[block.device].most == UINT64_MAX);
        record->need[block.device].live -= block.bytes;
    }
    graph_records_unlock();
}

bool graph_records_have_pointer(CUdeviceptr pointer)
{
    struct block block;
    return graph_records_any() && blocks_get(BLOCK_GRAPH, pointer, &block);
}

CUgraph captured_graph(__typeof__(cuStreamGetCaptureInfo_v2) *info, CUstream stream)
{
    CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_NONE;
    CUgraph graph = NULL;
    cuuint64_t id;
    if (info(stream, &status, &id, &graph, NULL, NULL) != CUDA_SUCCESS || status == CU_STREAM_CAPTURE_STATUS_NONE)
        return NULL;
    return graph;
}

static void ignore_block(const struct block *block)
{
    (void)block;
}

/* Its memory stays in the driver's store, and counts there. */
void graph_records_remove_unused(void)
{
    for (struct graph_record **link = &records; *link != NULL;) {
        struct graph_record *record = *link;
        if (record->graph != NULL || record->execs != 0) {
            link = &record->next;
            continue;
        }
        *link = record->next;
        blocks_drop_context((uint64_t)(uintptr_t)record, ignore_block);
        free(record);
    }
}
