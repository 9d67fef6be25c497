/* Many processes with a GPU: "turn N" one after the other, each killed or ended in another way; "once N" all at a time,
 * then N + 1 more processes that find no slot, then all are killed. At the end the whole limit is available. */
#include "facade_calls.h"

#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#define MIB ((size_t)1 << 20)

static CUresult begin(void)
{
    CUcontext context;
    CUresult result = CALL(cuInit)(0);
    if (result == CUDA_SUCCESS)
        result = CALL(cuDevicePrimaryCtxRetain)(&context, 0);
    return result == CUDA_SUCCESS ? CALL(cuCtxSetCurrent)(context) : result;
}

static void use(void)
{
    CUdeviceptr pointer;
    NEED(begin());
    NEED(CALL(cuMemAlloc_v2)(&pointer, 500 * MIB));
}

static void become(const char *program)
{
    execl(program, program, (char *)NULL);
    _exit(9);
}

static void by_vfork(void)
{
    pid_t child = vfork();
    if (child == 0)
        become("/bin/true");
    waitpid(child, NULL, 0);
}

static void by_spawn(void)
{
    pid_t child;
    char *arguments[] = {"true", NULL};
    if (posix_spawn(&child, "/bin/true", NULL, NULL, arguments, environ) == 0)
        waitpid(child, NULL, 0);
}

/* A daemon: it has its own session and no parent, and closes its descriptors before it uses the GPU. */
static void daemonise(void)
{
    int ends[2];
    char byte;
    if (pipe(ends) != 0)
        _exit(9);
    if (fork() == 0) {
        setsid();
        if (fork() != 0)
            _exit(0);
        use();
        if (write(ends[1], "x", 1) != 1)
            _exit(9);
        _exit(0);
    }
    close(ends[1]);
    if (read(ends[0], &byte, 1) != 1)
        _exit(9);
    while (read(ends[0], &byte, 1) > 0)
        ;
}

static void one_life(int number)
{
    switch (number % 6) {
    case 0:
        use();
        kill(getpid(), SIGKILL);
        break;
    case 1:
        use();
        exit(0);
    case 2:
        use();
        by_vfork();
        by_spawn();
        _exit(0);
    case 3:
        use();
        become("/bin/true");
        break;
    case 4:
        daemonise();
        _exit(0);
    default:
        setsid();
        use();
        _exit(0);
    }
}

/* Waits for daemons, too: they come to this process when their parents have ended. One that is still ending holds
 * memory, so it has to be gone before the last reading. */
static void in_turn(int lives)
{
    if (prctl(PR_SET_CHILD_SUBREAPER, 1) != 0)
        exit(9);
    for (int life = 0; life < lives; life++) {
        int status;
        pid_t child = fork();
        if (child == 0) {
            alarm(60);
            one_life(life);
        }
        while (waitpid(-1, &status, 0) != child)
            ;
        if (status != 0 && status != SIGKILL) {
            printf("life %d ended with %#x\n", life, status);
            exit(1);
        }
    }
    while (wait(NULL) > 0)
        ;
}

static void at_once(int crowd)
{
    int ends[2];
    pid_t *children = calloc((size_t)crowd + 1, sizeof *children);
    CUresult result, expected = CUDA_SUCCESS;
    if (pipe(ends) != 0)
        exit(9);
    for (int i = 0; i <= crowd; i++) {
        children[i] = fork();
        if (children[i] == 0) {
            result = CALL(cuInit)(0);
            if (write(ends[1], &result, sizeof result) == sizeof result)
                pause();
            _exit(9);
        }
        if (read(ends[0], &result, sizeof result) != sizeof result)
            exit(9);
        expected = i == crowd ? CUDA_ERROR_OPERATING_SYSTEM : CUDA_SUCCESS;
        if (result != expected) {
            printf("process %d got %d\n", i, result);
            break;
        }
    }
    for (int i = 0; i <= crowd && children[i] > 0; i++)
        kill(children[i], SIGKILL);
    while (wait(NULL) > 0)
        ;
    if (result != expected)
        exit(1);
}

int main(int count, char **arguments)
{
    size_t left, total;
    CUdeviceptr pointer;
    if (count != 3)
        return 2;
    calls_find("dlopen");
    (strcmp(arguments[1], "turn") == 0 ? in_turn : at_once)(atoi(arguments[2]));
    NEED(begin());
    NEED(CALL(cuMemGetInfo_v2)(&left, &total));
    NEED(CALL(cuMemAlloc_v2)(&pointer, left / (2 * MIB) * 2 * MIB));
    printf("ok %zu\n", total - left);
    return 0;
}
