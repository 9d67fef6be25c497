/* Keeps a GPU busy until its standard input ends, then prints the longest launch in ns. Arguments: how, ns of a kernel,
 * blocks of its grid, launches until it waits (10 if left out). Prints "ready" and waits for a line first.
 *
 *   loop      launches, ten or so, then waits for them
 *   sync      one launch, then waits for it
 *   pauses    as `loop`, with a pause of four kernels after each launch, as programs that compute on the CPU
 *   async     launches and never waits
 *   graph     a graph of as many kernels, then waits for it
 *   copies    as `loop`, with a copy to the GPU before each launch and one back at the end
 *   streams   four streams in turn, as many launches, then waits for all
 *   threads   four threads that each do as `loop`, with per-thread default streams */
#include "bench.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <string.h>

#include <dlfcn.h>
#include <time.h>

enum { STREAMS = 4, THREADS = 4 };

static CUfunction spin;
static uint64_t kernel_ns, pause_ns;
static unsigned blocks;
static int in_burst = 10;
static atomic_bool ended;
static _Atomic uint64_t longest;
static __typeof__(cuLaunchKernel_ptsz) *launch_per_thread;
static __typeof__(cuStreamCreate) *stream_create;
static __typeof__(cuStreamBeginCapture_v2) *begin_capture;
static __typeof__(cuStreamEndCapture) *end_capture;
static __typeof__(cuGraphInstantiateWithFlags) *instantiate;
static __typeof__(cuGraphLaunch) *graph_launch;
static __typeof__(cuStreamSynchronize) *stream_wait;
static __typeof__(cuMemcpyDtoH_v2) *copy_back;

static void find(void *to, const char *name)
{
    *(void **)to = dlsym(dlopen("libcuda.so.1", RTLD_NOW), name);
    if (*(void **)to == NULL)
        bench_failed(CUDA_ERROR_NOT_FOUND, name);
}

static void took(uint64_t ns)
{
    uint64_t seen = longest;
    while (ns > seen && !atomic_compare_exchange_weak(&longest, &seen, ns))
        ;
}

static void launch(__typeof__(launch_per_thread) with, CUstream stream)
{
    void *params[] = {&kernel_ns};
    uint64_t before = clock_ns(CLOCK_MONOTONIC);
    need(with(spin, blocks, 1, 1, 256, 1, 1, 0, stream, params, NULL), "cuLaunchKernel");
    took(clock_ns(CLOCK_MONOTONIC) - before);
}

static void pause_for(uint64_t ns)
{
    struct timespec pause = {.tv_sec = (time_t)(ns / 1000000000), .tv_nsec = (long)(ns % 1000000000)};
    nanosleep(&pause, NULL);
}

static void burst(CUstream *streams, int count)
{
    for (int i = 0; i < in_burst; i++) {
        launch(cuda.cuLaunchKernel, streams[i % count]);
        if (pause_ns > 0)
            pause_for(pause_ns);
    }
}

static void copies(CUdeviceptr memory)
{
    static char bytes[4096];
    for (int i = 0; i < in_burst; i++) {
        need(cuda.cuMemcpyHtoDAsync_v2(memory, bytes, sizeof bytes, NULL), "cuMemcpyHtoDAsync");
        launch(cuda.cuLaunchKernel, NULL);
    }
    need(copy_back(bytes, memory, sizeof bytes), "cuMemcpyDtoH");
}

static CUgraphExec graph(CUstream stream)
{
    CUgraph taken;
    CUgraphExec exec;
    need(begin_capture(stream, 0), "cuStreamBeginCapture");
    burst(&stream, 1);
    need(end_capture(stream, &taken), "cuStreamEndCapture");
    need(instantiate(&exec, taken, 0), "cuGraphInstantiate");
    return exec;
}

static void *thread(void *context)
{
    need(cuda.cuCtxSetCurrent(context), "cuCtxSetCurrent");
    while (!ended) {
        for (int i = 0; i < in_burst; i++)
            launch(launch_per_thread, NULL);
        need(stream_wait(CU_STREAM_PER_THREAD), "cuStreamSynchronize");
    }
    return NULL;
}

static void *watch(void *nothing)
{
    char line[8];
    while (fgets(line, sizeof line, stdin) != NULL)
        ;
    ended = true;
    return nothing;
}

static void run(const char *how, CUcontext context)
{
    CUstream streams[STREAMS] = {NULL};
    pthread_t threads[THREADS];
    CUgraphExec exec = NULL;
    CUdeviceptr memory = 0;
    if (strcmp(how, "copies") == 0)
        need(cuda.cuMemAlloc_v2(&memory, 4096), "cuMemAlloc");
    if (strcmp(how, "streams") == 0 || strcmp(how, "graph") == 0)
        for (int i = 0; i < STREAMS; i++)
            need(stream_create(&streams[i], 1), "cuStreamCreate");
    if (strcmp(how, "graph") == 0)
        exec = graph(streams[0]);
    bool threaded = strcmp(how, "threads") == 0;
    for (int i = 0; threaded && i < THREADS; i++)
        pthread_create(&threads[i], NULL, thread, context);
    for (int i = 0; threaded && i < THREADS; i++)
        pthread_join(threads[i], NULL);
    while (!ended) {
        if (exec != NULL) {
            uint64_t before = clock_ns(CLOCK_MONOTONIC);
            need(graph_launch(exec, streams[0]), "cuGraphLaunch");
            took(clock_ns(CLOCK_MONOTONIC) - before);
        } else if (strcmp(how, "sync") == 0)
            launch(cuda.cuLaunchKernel, NULL);
        else if (strcmp(how, "copies") == 0)
            copies(memory);
        else
            burst(streams, strcmp(how, "streams") == 0 ? STREAMS : 1);
        if (strcmp(how, "async") != 0)
            need(cuda.cuCtxSynchronize(), "cuCtxSynchronize");
    }
}

int main(int count, char **arguments)
{
    CUmodule module;
    pthread_t watcher;
    char line[8];
    if (count < 4)
        return 2;
    kernel_ns = strtoull(arguments[2], NULL, 10);
    pause_ns = strcmp(arguments[1], "pauses") == 0 ? 4 * kernel_ns : 0;
    blocks = (unsigned)strtoul(arguments[3], NULL, 10);
    in_burst = count > 4 ? atoi(arguments[4]) : in_burst;
    CUcontext context = bench_begin();
    find(&launch_per_thread, "cuLaunchKernel_ptsz");
    find(&stream_create, "cuStreamCreate");
    find(&begin_capture, "cuStreamBeginCapture_v2");
    find(&end_capture, "cuStreamEndCapture");
    find(&instantiate, "cuGraphInstantiateWithFlags");
    find(&graph_launch, "cuGraphLaunch");
    find(&stream_wait, "cuStreamSynchronize");
    find(&copy_back, "cuMemcpyDtoH_v2");
    need(cuda.cuModuleLoadData(&module, "simgpu"), "cuModuleLoadData");
    need(cuda.cuModuleGetFunction(&spin, module, "spin"), "cuModuleGetFunction");
    printf("ready\n");
    fflush(stdout);
    if (fgets(line, sizeof line, stdin) == NULL)
        return 1;
    pthread_create(&watcher, NULL, watch, NULL);
    run(arguments[1], context);
    printf("longest %llu\n", (unsigned long long)longest);
    return 0;
}
