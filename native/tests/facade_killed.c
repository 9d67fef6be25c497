/* Kills children at random moments of their work with the driver, then checks that the container's whole limit is
 * available again. Arguments: rounds, seed. Prints "ok" or what is missing. */
#include "facade_calls.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define MIB ((size_t)1 << 20)
enum { AT_ONCE = 3, MAX_WAIT_US = 3000 };

static CUcontext begin(void)
{
    CUcontext context;
    NEED(CALL(cuInit)(0));
    NEED(CALL(cuDevicePrimaryCtxRetain)(&context, 0));
    NEED(CALL(cuCtxSetCurrent)(context));
    return context;
}

static void work(void)
{
    static const CUmemAllocationProp on_device = {.type = CU_MEM_ALLOCATION_TYPE_PINNED,
                                                  .location = {CU_MEM_LOCATION_TYPE_DEVICE, 0}};
    CUdeviceptr plain, pooled;
    CUmemGenericAllocationHandle handle;
    CUcontext context;
    for (;;) {
        begin();
        for (int i = 0; i < 20; i++) {
            CUresult first = CALL(cuMemAlloc_v2)(&plain, (size_t)(1 + rand() % 64) * MIB);
            CUresult second = CALL(cuMemAllocAsync)(&pooled, (size_t)(1 + rand() % 64) * MIB, NULL);
            CUresult third = CALL(cuMemCreate)(&handle, 2 * MIB, &on_device, 0);
            if (third == CUDA_SUCCESS)
                CALL(cuMemRelease)(handle);
            if (second == CUDA_SUCCESS)
                CALL(cuMemFreeAsync)(pooled, NULL);
            if (first == CUDA_SUCCESS)
                CALL(cuMemFree_v2)(plain);
        }
        if (CALL(cuCtxCreate_v2)(&context, 0, 0) == CUDA_SUCCESS)
            CALL(cuCtxDestroy_v2)(context);
        CALL(cuDevicePrimaryCtxReset_v2)(0);
    }
}

static pid_t start(int seed)
{
    pid_t child = fork();
    if (child == 0) {
        srand((unsigned)seed);
        work();
    }
    return child;
}

static int all_is_back(void)
{
    size_t left, total;
    CUdeviceptr pointer;
    begin();
    NEED(CALL(cuMemGetInfo_v2)(&left, &total)); /* the cost of a context is known now: this is what it leaves */
    CUresult result = CALL(cuMemAlloc_v2)(&pointer, left);
    if (result == CUDA_SUCCESS && CALL(cuMemAlloc_v2)(&pointer, 1) == CUDA_ERROR_OUT_OF_MEMORY)
        printf("ok %zu\n", total - left);
    else
        printf("of %zu bytes %zu are free, but asking for them gave %d\n", total, left, result);
    return 0;
}

int main(int count, char **arguments)
{
    if (count != 3)
        return 2;
    int rounds = atoi(arguments[1]);
    pid_t children[rounds];
    calls_find("dlopen");
    srand((unsigned)atoi(arguments[2]));
    for (int round = 0; round < rounds + AT_ONCE; round++) {
        if (round >= AT_ONCE) {
            kill(children[round - AT_ONCE], SIGKILL);
            if (rand() % 2) /* otherwise it stays a zombie */
                waitpid(children[round - AT_ONCE], NULL, 0);
        }
        if (round >= rounds)
            continue;
        children[round] = start(rand());
        nanosleep(&(struct timespec){.tv_nsec = rand() % MAX_WAIT_US * 1000L}, NULL);
    }
    for (int i = 0; i < rounds; i++) /* all are dead, and some stay zombies; those already waited for are unknown */
        waitid(P_PID, (id_t)children[i], &(siginfo_t){0}, WEXITED | WNOWAIT);
    return all_is_back();
}
