/* Forks while another thread is in cuInit; every child must get its answer. Prints "ok". */
#include "cuda_min.h"

#include <pthread.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

CUresult cuInit(unsigned flags);
CUresult cuDriverGetVersion(int *version);

enum { CHILDREN = 100, SECONDS = 10 };

static void *initialise(void *argument)
{
    for (;;)
        cuInit(0);
    return argument;
}

int main(void)
{
    pthread_t thread;
    int version, status;
    cuDriverGetVersion(&version); /* the loader's own lock is not the subject */
    pthread_create(&thread, NULL, initialise, NULL);
    for (int i = 0; i < CHILDREN; i++) {
        pid_t child = fork();
        if (child == 0) {
            alarm(SECONDS);
            cuInit(0);
            _exit(0);
        }
        waitpid(child, &status, 0);
        if (status != 0) {
            printf("child %d ended with %x\n", i, (unsigned)status);
            return 1;
        }
    }
    puts("ok");
    fflush(stdout);
    _exit(0);
}
