#include "fork.h"

#include <pthread.h>

#include "arena.h"
#include "callback.h"
#include "context.h"
#include "driver.h"
#include "graph_memory.h"
#include "host.h"
#include "pool.h"

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
