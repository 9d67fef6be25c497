#include "memory/ordered_frees.h"

#include "cuda/capture_mode.h"
#include "cuda/context_table.h"
#include "cuda/hooks.h"
#include "memory/release.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>

struct ordered_free {
    struct ordered_free *next;
    struct block block;
    CUcontext context; /* the stream's, which the event ends with */
    CUstream stream;
    CUevent event; /* NULL: none could be recorded, so the block counts as long as the context is there */
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct ordered_free *oldest, **newest = &oldest; /* by the lock */
static atomic_bool any;

void ordered_frees_after_fork(void)
{
    lock = (pthread_mutex_t)PTHREAD_MUTEX_INITIALIZER;
    oldest = NULL;
    newest = &oldest;
    any = false;
}

/* An event belongs to the stream's context, which need not be the current one. */
static CUevent record_event(CUstream stream, CUcontext context, CUcontext current)
{
    CUevent event = NULL;
    CUcontext popped;
    if (context != current && REAL(cuCtxPushCurrent_v2)(context) != CUDA_SUCCESS)
        return NULL;
    if (REAL(cuEventCreate)(&event, CU_EVENT_DISABLE_TIMING) != CUDA_SUCCESS)
        event = NULL;
    if (event != NULL && REAL(cuEventRecord)(event, stream) != CUDA_SUCCESS) {
        REAL(cuEventDestroy_v2)(event);
        event = NULL;
    }
    if (context != current)
        REAL(cuCtxPopCurrent_v2)(&popped);
    return event;
}

/* Without memory for the record, the memory counts until the process ends. */
static void keep_counting(const struct block *block, CUstream stream)
{
    CUcontext current = NULL, context;
    struct ordered_free *entry = malloc(sizeof *entry);
    if (entry == NULL)
        return;
    context_device(&current);
    if (REAL(cuStreamGetCtx)(stream, &context) != CUDA_SUCCESS)
        context = current;
    *entry = (struct ordered_free){.block = *block, .context = context, .stream = stream};
    entry->event = record_event(stream, context, current);
    pthread_mutex_lock(&lock);
    *newest = entry;
    newest = &entry->next;
    any = true;
    pthread_mutex_unlock(&lock);
}

void ordered_frees_add(const struct block *block, CUstream stream)
{
    CUstreamCaptureMode mode = neutral_begin();
    bool idle = REAL(cuStreamQuery)(stream) == CUDA_SUCCESS;
    if (!idle)
        keep_counting(block, stream);
    neutral_end(mode);
    if (idle)
        release_block(block);
}

/* Nothing behind a free that waits in the same stream can have happened. */
static bool has_happened(const struct ordered_free *entry, CUstream *waiting)
{
    if (entry->event == NULL || entry->stream == *waiting)
        return false;
    if (REAL(cuEventQuery)(entry->event) == CUDA_SUCCESS)
        return true;
    *waiting = entry->stream;
    return false;
}

/* Moves the entry that the link points to into another list. */
static void move_entry(struct ordered_free **link, struct ordered_free **list)
{
    struct ordered_free *entry = *link;
    *link = entry->next;
    if (newest == &entry->next)
        newest = link;
    entry->next = *list;
    *list = entry;
}

/* Without the lock, because releasing takes others. */
static void release_all(struct ordered_free *list)
{
    while (list != NULL) {
        struct ordered_free *entry = list;
        list = entry->next;
        release_block(&entry->block);
        free(entry);
    }
}

void ordered_frees_collect(void)
{
    /* Relaxed: only a hint; the list is read under the lock. */
    if (!atomic_load_explicit(&any, memory_order_relaxed))
        return;
    static const char none;
    CUstream waiting = (CUstream)(uintptr_t)&none; /* no stream's handle */
    struct ordered_free *done = NULL;
    CUstreamCaptureMode mode = neutral_begin();
    pthread_mutex_lock(&lock);
    for (struct ordered_free **link = &oldest; *link != NULL;)
        if (has_happened(*link, &waiting)) {
            REAL(cuEventDestroy_v2)((*link)->event);
            move_entry(link, &done);
        } else
            link = &(*link)->next;
    any = oldest != NULL;
    pthread_mutex_unlock(&lock);
    neutral_end(mode);
    release_all(done);
}

void ordered_frees_end_context(CUcontext context)
{
    struct ordered_free *done = NULL;
    pthread_mutex_lock(&lock);
    for (struct ordered_free **link = &oldest; *link != NULL;)
        if ((*link)->context == context)
            move_entry(link, &done); /* its event ended with the context */
        else
            link = &(*link)->next;
    any = oldest != NULL;
    pthread_mutex_unlock(&lock);
    release_all(done);
}
