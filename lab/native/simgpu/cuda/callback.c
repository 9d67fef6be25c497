/* The first host function starts the thread. */
#include "cuda/callback.h"

#include "core/timeline.h"
#include "cuda/driver.h"

#include <stdlib.h>

struct item {
    CUstream stream;
    uint32_t gpu;
    uint64_t position;
    CUhostFn plain;
    CUstreamCallback full;
    void *data;
    struct item *next;
};

static struct {
    uint32_t pending;
    _Atomic uint64_t submitted, run;
    bool running;
    struct item *first, **last;
    pthread_mutex_t lock;
    pthread_cond_t changed;
} queue = {.last = &queue.first, .lock = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER};

/* A forked child has neither the thread nor its work. */
void callback_after_fork(void)
{
    queue.pending = 0;
    queue.submitted = queue.run = 0;
    queue.running = false;
    queue.first = NULL;
    queue.last = &queue.first;
    pthread_mutex_init(&queue.lock, NULL);
    pthread_cond_init(&queue.changed, NULL);
}

static void *run_callbacks(void *unused)
{
    (void)unused;
    pthread_mutex_lock(&queue.lock);
    for (;;) {
        while (queue.first == NULL)
            pthread_cond_wait(&queue.changed, &queue.lock);
        struct item *i = queue.first;
        queue.first = i->next;
        if (queue.first == NULL)
            queue.last = &queue.first;
        pthread_mutex_unlock(&queue.lock);
        timeline_wait(&driver.m, i->gpu, driver.slot, i->position);
        if (i->plain != NULL)
            i->plain(i->data);
        else
            i->full(i->stream, CUDA_SUCCESS, i->data);
        pthread_mutex_lock(&queue.lock);
        i->stream->callbacks--;
        queue.pending--;
        queue.run++;
        free(i);
        pthread_cond_broadcast(&queue.changed);
    }
    return NULL;
}

/* Called with the queue's lock held. */
static bool start_thread(void)
{
    pthread_t thread;
    if (queue.running)
        return true;
    if (pthread_create(&thread, NULL, run_callbacks, NULL) != 0)
        return false;
    pthread_detach(thread);
    return queue.running = true;
}

CUresult callback_enqueue(CUstream stream, CUhostFn plain, CUstreamCallback full, void *data)
{
    struct item *i = malloc(sizeof *i);
    if (i == NULL)
        return CUDA_ERROR_OUT_OF_MEMORY;
    *i = (struct item){.stream = stream,
                       .gpu = stream->ctx->dev->gpu,
                       .position = stream->last,
                       .plain = plain,
                       .full = full,
                       .data = data};
    pthread_mutex_lock(&queue.lock);
    bool started = start_thread();
    if (started) {
        stream->callbacks++;
        queue.pending++;
        queue.submitted++;
        *queue.last = i;
        queue.last = &i->next;
        pthread_cond_broadcast(&queue.changed);
    }
    pthread_mutex_unlock(&queue.lock);
    if (!started)
        free(i);
    return started ? CUDA_SUCCESS : CUDA_ERROR_OPERATING_SYSTEM;
}

/* They run in the order of their submission, so the number of the newest of all is no less. */
uint64_t callback_newest(CUstream stream)
{
    bool waits = stream == &stream->ctx->legacy ? queue.pending > 0 : stream->callbacks > 0;
    return waits ? queue.submitted : 0;
}

bool callback_has_run(uint64_t number)
{
    return queue.run >= number;
}

static void wait_for(const uint32_t *count)
{
    if (!queue.running)
        return;
    pthread_mutex_lock(&queue.lock);
    while (*count > 0)
        pthread_cond_wait(&queue.changed, &queue.lock);
    pthread_mutex_unlock(&queue.lock);
}

void callback_wait_for(uint64_t number)
{
    pthread_mutex_lock(&queue.lock);
    while (!callback_has_run(number))
        pthread_cond_wait(&queue.changed, &queue.lock);
    pthread_mutex_unlock(&queue.lock);
}

void callback_wait(CUstream stream)
{
    wait_for(&stream->callbacks);
}

void callback_wait_all(void)
{
    wait_for(&queue.pending);
}
