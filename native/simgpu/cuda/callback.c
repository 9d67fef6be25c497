/* One thread per process runs host functions, in the order they were asked for. It is started by the first one. */
#include "callback.h"

#include <stdlib.h>

#include "capture.h"

typedef struct item {
    CUstream stream;
    uint32_t gpu;
    uint64_t position;
    CUhostFn plain;
    CUstreamCallback full;
    void *data;
    struct item *next;
} item;

static struct {
    uint32_t generation, pending;
    bool running;
    item *first, **last;
    pthread_mutex_t lock;
    pthread_cond_t changed;
} queue = {.lock = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER};

static void *run(void *unused) {
    (void)unused;
    pthread_mutex_lock(&queue.lock);
    for (;;) {
        while (queue.first == NULL) pthread_cond_wait(&queue.changed, &queue.lock);
        item *i = queue.first;
        queue.first = i->next;
        if (queue.first == NULL) queue.last = &queue.first;
        pthread_mutex_unlock(&queue.lock);
        timeline_wait(&driver.m, i->gpu, driver.slot, i->position);
        if (i->plain != NULL) i->plain(i->data);
        else i->full(i->stream, CUDA_SUCCESS, i->data);
        pthread_mutex_lock(&queue.lock);
        i->stream->callbacks--;
        queue.pending--;
        free(i);
        pthread_cond_broadcast(&queue.changed);
    }
    return NULL;
}

/* With the queue's lock held. A fork leaves the thread and its work behind. */
static bool start(void) {
    pthread_t thread;
    if (queue.generation != driver.generation) queue.running = false;
    if (queue.running) return true;
    queue.generation = driver.generation;
    queue.first = NULL;
    queue.last = &queue.first;
    queue.pending = 0;
    if (pthread_create(&thread, NULL, run, NULL) != 0) return false;
    pthread_detach(thread);
    return queue.running = true;
}

CUresult callback_add(CUstream stream, CUhostFn plain, CUstreamCallback full, void *data) {
    item *i = malloc(sizeof *i);
    if (i == NULL) return CUDA_ERROR_OUT_OF_MEMORY;
    *i = (item){.stream = stream, .gpu = stream->ctx->dev->gpu, .position = stream->last, .plain = plain, .full = full,
                .data = data};
    pthread_mutex_lock(&queue.lock);
    bool started = start();
    if (started) {
        stream->callbacks++;
        queue.pending++;
        *queue.last = i;
        queue.last = &i->next;
        pthread_cond_broadcast(&queue.changed);
    }
    pthread_mutex_unlock(&queue.lock);
    if (!started) free(i);
    return started ? CUDA_SUCCESS : CUDA_ERROR_OPERATING_SYSTEM;
}

static void wait_for(const uint32_t *count) {
    if (!queue.running || queue.generation != driver.generation) return;
    pthread_mutex_lock(&queue.lock);
    while (*count > 0) pthread_cond_wait(&queue.changed, &queue.lock);
    pthread_mutex_unlock(&queue.lock);
}

void callback_wait(CUstream stream) { wait_for(&stream->callbacks); }

void callback_wait_all(void) { wait_for(&queue.pending); }

SIM_API CUresult cuLaunchHostFunc(CUstream handle, CUhostFn function, void *data) {
    CUstream stream;
    CUresult result = stream_resolve(handle, &stream);
    if (result != CUDA_SUCCESS) return result;
    if (function == NULL) return CUDA_ERROR_INVALID_VALUE;
    if (stream->capture != NULL) return capture_host(stream, function, data);
    return callback_add(stream, function, NULL, data);
}

SIM_API CUresult cuStreamAddCallback(CUstream handle, CUstreamCallback function, void *data, unsigned int flags) {
    CUstream stream;
    CUresult result = stream_resolve(handle, &stream);
    if (result != CUDA_SUCCESS) return result;
    if (function == NULL || flags != 0) return CUDA_ERROR_INVALID_VALUE;
    if (stream->capture != NULL) return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
    return callback_add(stream, NULL, function, data);
}
