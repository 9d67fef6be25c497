/* Forks while another thread is in cuInit, the first and later times. Every child must get its answer. Prints "ok". */
#include "cuda_prototypes.h"

#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

enum { CHILDREN = 100, FIRST_TIMES = 200, SECONDS = 10 };

static void *initialize(void *again)
{
    do
        cuInit(0);
    while (again != NULL);
    return NULL;
}

static bool child_gets_its_answer(void)
{
    int status;
    pid_t child = fork();
    if (child == 0) {
        alarm(SECONDS);
        cuInit(0);
        _exit(0);
    }
    return waitpid(child, &status, 0) == child && status == 0;
}

/* In a new process, where cuInit was not called yet. The fork comes a little later each time. */
static bool first_time(int spins)
{
    int status;
    pid_t process = fork();
    if (process == 0) {
        pthread_t thread;
        pthread_create(&thread, NULL, initialize, NULL);
        for (volatile int i = 0; i < spins; i++)
            ;
        _exit(!child_gets_its_answer());
    }
    return waitpid(process, &status, 0) == process && status == 0;
}

int main(void)
{
    pthread_t thread;
    int version;
    bool good = true;
    cuDriverGetVersion(&version); /* the loader's own lock is not the subject */
    for (int i = 0; i < FIRST_TIMES && good; i++)
        good = first_time(i % 50 * 2000);
    pthread_create(&thread, NULL, initialize, &version);
    for (int i = 0; i < CHILDREN && good; i++)
        good = child_gets_its_answer();
    puts(good ? "ok" : "a child did not get its answer");
    fflush(stdout);
    _exit(!good);
}
