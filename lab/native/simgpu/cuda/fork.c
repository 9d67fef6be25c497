#include "cuda/fork.h"

#include "cuda/arena.h"
#include "cuda/callback.h"
#include "cuda/context.h"
#include "cuda/driver.h"
#include "cuda/graph_memory.h"
#include "cuda/host.h"
#include "cuda/pool.h"

#include <pthread.h>

static pthread_once_t once = PTHREAD_ONCE_INIT;

static void forget_parent(void)
{
    driver_after_fork();
    arena_after_fork();
    callback_after_fork();
    context_after_fork();
    graph_memory_after_fork();
    host_after_fork();
    pool_after_fork();
}

static void watch(void)
{
    pthread_atfork(NULL, NULL, forget_parent);
}

void fork_watch(void)
{
    pthread_once(&once, watch);
}
