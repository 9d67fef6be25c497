/* Serves requests that arrive in an open loop: each at its own time, whether the previous one is done or not. A request
 * is a train of kernels, and is done when the GPU has finished the last one. Arguments: a file of arrival times, in ns
 * since the start; a file for results; the number of kernels of a request; and one or more lengths of a kernel in ns,
 * which are used in turn. Prints "ready" and waits for a line. The results have three numbers for each request that is
 * done, in ns: when it arrived, when it began, and when it was done. After the last request, the program sleeps until
 * it is killed, because a program that takes part in virtual time must not end. */
#include "bench.h"

enum { KINDS = 8 };

static CUfunction spin;
static uint64_t kernel_ns[KINDS];
static int kinds, train;

static void serve(void)
{
    for (int i = 0; i < train; i++) {
        void *params[] = {&kernel_ns[i % kinds]};
        need(cuda.cuLaunchKernel(spin, 1056, 1, 1, 256, 1, 1, 0, NULL, params, NULL), "cuLaunchKernel");
    }
    need(cuda.cuCtxSynchronize(), "cuCtxSynchronize");
}

static void serve_all(FILE *moments, FILE *results)
{
    uint64_t start = clock_ns(CLOCK_MONOTONIC), moment;
    while (fread(&moment, sizeof moment, 1, moments) == 1) {
        uint64_t request[3] = {start + moment};
        if (request[0] > clock_ns(CLOCK_MONOTONIC))
            wait_until(request[0]);
        request[1] = clock_ns(CLOCK_MONOTONIC);
        serve();
        request[2] = clock_ns(CLOCK_MONOTONIC);
        if (fwrite(request, sizeof request, 1, results) != 1)
            exit(1);
    }
}

int main(int count, char **arguments)
{
    CUmodule module;
    char line[8];
    if (count < 5 || count > 4 + KINDS)
        return 2;
    FILE *moments = fopen(arguments[1], "rb"), *results = fopen(arguments[2], "wb");
    train = atoi(arguments[3]);
    for (kinds = 0; kinds < count - 4; kinds++)
        kernel_ns[kinds] = strtoull(arguments[4 + kinds], NULL, 10);
    bench_begin();
    need(cuda.cuModuleLoadData(&module, "simgpu"), "cuModuleLoadData");
    need(cuda.cuModuleGetFunction(&spin, module, "spin"), "cuModuleGetFunction");
    printf("ready\n");
    fflush(stdout);
    if (moments == NULL || results == NULL || fgets(line, sizeof line, stdin) == NULL)
        return 1;
    setvbuf(results, NULL, _IONBF, 0); /* it is read before this program ends */
    serve_all(moments, results);
    for (;;)
        nanosleep(&(struct timespec){.tv_sec = 1000000}, NULL);
}
