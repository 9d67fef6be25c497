/* A tenant that launches kernels. Arguments: how functions are found, what to do, ns of a kernel, and how many.
 *
 *   plain     this many launches, then waits; prints how many ms it took
 *   graph     captures this many launches into a graph, which must take no time, and runs it once
 *   queue     this many launches; prints how many ms they took, and does not wait
 *   slowly    this many launches, each 10 us after the one before; prints how many ms they took
 *   until     launches until killed; prints "ready" first */
#include "facade_calls.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static CUfunction spin;
static uint64_t kernel_ns;

static long ms(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

static void launch(int times, CUstream stream)
{
    void *params[] = {&kernel_ns};
    for (int i = 0; i < times; i++)
        NEED(CALL(cuLaunchKernel)(spin, 1, 1, 1, 32, 1, 1, 0, stream, params, NULL));
}

static void slowly(int times)
{
    struct timespec now, next;
    clock_gettime(CLOCK_MONOTONIC, &next);
    for (int i = 0; i < times; i++) {
        launch(1, NULL);
        next.tv_nsec += 10000;
        next.tv_sec += next.tv_nsec / 1000000000;
        next.tv_nsec %= 1000000000;
        do
            clock_gettime(CLOCK_MONOTONIC, &now);
        while (now.tv_sec < next.tv_sec || (now.tv_sec == next.tv_sec && now.tv_nsec < next.tv_nsec));
    }
}

static void graph(int times)
{
    CUstream stream;
    CUgraph taken;
    CUgraphExec exec;
    NEED(CALL(cuStreamCreate)(&stream, 1));
    launch(1, stream);
    long begin = ms();
    NEED(CALL(cuStreamBeginCapture_v2)(stream, 0));
    launch(times, stream);
    NEED(CALL(cuStreamEndCapture)(stream, &taken));
    printf("%ld ", ms() - begin);
    NEED(CALL(cuGraphInstantiateWithFlags)(&exec, taken, 0));
    begin = ms();
    NEED(CALL(cuGraphLaunch)(exec, stream));
    NEED(CALL(cuStreamSynchronize)(stream));
    NEED(CALL(cuGraphLaunch)(exec, stream));
    printf("%ld\n", ms() - begin);
}

int main(int count, char **arguments)
{
    CUcontext context;
    CUmodule module;
    if (count < 5)
        return 2;
    calls_find(arguments[1]);
    kernel_ns = strtoull(arguments[3], NULL, 10);
    NEED(CALL(cuInit)(0));
    NEED(CALL(cuDevicePrimaryCtxRetain)(&context, 0));
    NEED(CALL(cuCtxSetCurrent)(context));
    NEED(CALL(cuModuleLoadData)(&module, "simgpu"));
    NEED(CALL(cuModuleGetFunction)(&spin, module, "spin"));
    long begin = ms();
    if (strcmp(arguments[2], "graph") == 0)
        graph(atoi(arguments[4]));
    else if (strcmp(arguments[2], "queue") == 0 || strcmp(arguments[2], "slowly") == 0) {
        arguments[2][0] == 'q' ? launch(atoi(arguments[4]), NULL) : slowly(atoi(arguments[4]));
        printf("%ld\n", ms() - begin);
    } else if (strcmp(arguments[2], "until") == 0) {
        printf("ready\n");
        fflush(stdout);
        for (;;)
            launch(1, NULL);
    } else {
        launch(atoi(arguments[4]), NULL);
        NEED(CALL(cuCtxSynchronize)());
        printf("%ld\n", ms() - begin);
    }
    return 0;
}
