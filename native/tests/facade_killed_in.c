/* Kills a process at chosen instructions of each of its calls to the driver: init, context, allocations, frees, exit.
 *
 * The child stops itself before each call. It is stepped through the call once to count the instructions, and then
 * killed after some of them, in as many places as the argument says. After each death a new process takes the whole
 * limit. Prints "ok" and the number of kills. */
#include "facade_calls.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <unistd.h>

#define MIB ((size_t)1 << 20)
enum { MAX_STEPS = 40000, SECONDS = 20 };

static CUcontext context;
static CUdeviceptr plain, pooled, managed;
static CUmemGenericAllocationHandle handle;
static CUarray array;

static void init(void)
{
    NEED(CALL(cuInit)(0));
}
static void retain(void)
{
    NEED(CALL(cuDevicePrimaryCtxRetain)(&context, 0));
    NEED(CALL(cuCtxSetCurrent)(context));
}
static void allocate(void)
{
    NEED(CALL(cuMemAlloc_v2)(&plain, 64 * MIB));
}
static void refused(void)
{
    CUdeviceptr more;
    CALL(cuMemAlloc_v2)(&more, 4000 * MIB);
}
static void from_pool(void)
{
    NEED(CALL(cuMemAllocAsync)(&pooled, 64 * MIB, NULL));
}
static void to_pool(void)
{
    NEED(CALL(cuMemFreeAsync)(pooled, NULL));
    NEED(CALL(cuStreamSynchronize)(NULL));
}
static void manage(void)
{
    NEED(CALL(cuMemAllocManaged)(&managed, 64 * MIB, 1));
}
static void make(void)
{
    static const CUmemAllocationProp on_device = {.type = CU_MEM_ALLOCATION_TYPE_PINNED,
                                                  .location = {CU_MEM_LOCATION_TYPE_DEVICE, 0}};
    NEED(CALL(cuMemCreate)(&handle, 64 * MIB, &on_device, 0));
}
static void make_array(void)
{
    CUDA_ARRAY_DESCRIPTOR shape = {.Width = 1024, .Height = 1024, .Format = 0x20, .NumChannels = 4};
    NEED(CALL(cuArrayCreate_v2)(&array, &shape));
}
static void release(void)
{
    NEED(CALL(cuMemFree_v2)(plain));
    NEED(CALL(cuMemFree_v2)(managed));
    NEED(CALL(cuMemRelease)(handle));
    NEED(CALL(cuArrayDestroy)(array));
}
static void reset(void)
{
    NEED(CALL(cuDevicePrimaryCtxReset_v2)(0));
}
static void leave(void)
{
    exit(0);
}

static void (*const calls_in_turn[])(void) = {init,   retain, allocate,   refused, from_pool, to_pool,
                                              manage, make,   make_array, release, reset,     leave};
enum { CALLS_IN_TURN = sizeof calls_in_turn / sizeof calls_in_turn[0] };

static pid_t start(void)
{
    pid_t child = fork();
    if (child != 0)
        return child;
    if (ptrace(PTRACE_TRACEME, 0, NULL, NULL) != 0)
        _exit(77);
    for (int i = 0; i < CALLS_IN_TURN; i++) {
        raise(SIGSTOP);
        calls_in_turn[i]();
    }
    _exit(0);
}

/* Whether the child stopped, after a step or by itself. */
static int stopped(pid_t child, int *status)
{
    return waitpid(child, status, 0) == child && WIFSTOPPED(*status);
}

/* Starts a new child and runs it to the beginning of a call. */
static pid_t at_call(int call)
{
    pid_t child = start();
    int status;
    for (int stops = 0; stops <= call; stops++) {
        if (!stopped(child, &status)) {
            puts("no ptrace");
            exit(77);
        }
        if (stops < call)
            ptrace(PTRACE_CONT, child, NULL, NULL);
    }
    return child;
}

/* Steps until the next call begins, or for this many instructions. Returns how many there were. */
static long step(pid_t child, long most)
{
    int status;
    long steps = 0;
    for (; steps < most; steps++) {
        ptrace(PTRACE_SINGLESTEP, child, NULL, NULL);
        if (!stopped(child, &status) || WSTOPSIG(status) == SIGSTOP)
            return steps;
    }
    return steps;
}

static void finish(pid_t child)
{
    kill(child, SIGKILL);
    waitpid(child, NULL, 0);
}

/* In a new process: the whole limit is available, to the block. */
static void inspect(void)
{
    pid_t child = fork();
    int status;
    if (child == 0) {
        size_t left, total;
        CUdeviceptr pointer;
        alarm(SECONDS);
        init();
        retain();
        NEED(CALL(cuMemGetInfo_v2)(&left, &total));
        if (total - left > 400 * MIB)
            _exit(2);
        NEED(CALL(cuMemAlloc_v2)(&pointer, left / (2 * MIB) * 2 * MIB));
        _exit(CALL(cuMemAlloc_v2)(&pointer, 2 * MIB) == CUDA_ERROR_OUT_OF_MEMORY ? 0 : 3);
    }
    waitpid(child, &status, 0);
    if (status != 0) {
        printf("the next process ended with %#x\n", status);
        exit(1);
    }
}

int main(int count, char **arguments)
{
    int places = count > 1 ? atoi(arguments[1]) : 10, kills = 0;
    calls_find("dlopen");
    for (int call = 0; call < CALLS_IN_TURN; call++) {
        pid_t child = at_call(call);
        long length = step(child, MAX_STEPS);
        finish(child);
        for (int place = 0; place < places; place++, kills++) {
            child = at_call(call);
            step(child, length * place / places + (long)(rand() % (length / places + 1)));
            finish(child);
            inspect();
        }
    }
    printf("ok %d\n", kills);
    return 0;
}
