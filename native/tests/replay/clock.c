/* Virtual time. These functions take the place of the C library's for the program, the facade and the driver. */
#include "replay.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define EXPORT __attribute__((visibility("default")))
#define SECOND_NS UINT64_C(1000000000)

enum { START_S = 1000, START_OF_DAY_S = 1700000000, YIELD_NS = 5000, LOOK_AGAIN_NS = 200000, LOOKS = 3 };

__thread bool makes_call;
static _Atomic pid_t watched;
static struct {
    char name[64], value[64];
    bool set, raise;
} meanwhile;

/* For references that stay valid: the address of what was freed never becomes that of something else. */
EXPORT void free(void *memory)
{
    (void)memory;
}

EXPORT int clock_gettime(clockid_t which, struct timespec *time)
{
    const bool of_day = which == CLOCK_REALTIME || which == CLOCK_REALTIME_COARSE;
    if (shared == NULL || which == CLOCK_PROCESS_CPUTIME_ID || which == CLOCK_THREAD_CPUTIME_ID)
        return (int)syscall(SYS_clock_gettime, which, time);
    const uint64_t passed = atomic_load(&shared->passed_ns);
    time->tv_sec = (of_day ? START_OF_DAY_S : START_S) + (time_t)(passed / SECOND_NS);
    time->tv_nsec = (long)(passed % SECOND_NS);
    return 0;
}

static void really_sleep(void)
{
    const struct timespec pause = {.tv_nsec = LOOK_AGAIN_NS};
    syscall(SYS_clock_nanosleep, CLOCK_MONOTONIC, 0, &pause, NULL);
}

/* Whether a thread of this process waits in the kernel. */
static bool is_asleep(const char *thread)
{
    char path[64], text[256];
    snprintf(path, sizeof path, "/proc/self/task/%.20s/stat", thread);
    int file = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t length = file < 0 ? 0 : read(file, text, sizeof text - 1);
    if (file >= 0)
        close(file);
    text[length > 0 ? length : 0] = 0;
    const char *end = strrchr(text, ')');
    return end == NULL || strchr("SZX", end[2]) != NULL;
}

void clock_watch(pid_t thread)
{
    atomic_store(&watched, thread);
}

static bool is_stuck(void)
{
    char thread[16];
    const pid_t one = atomic_load(&watched);
    snprintf(thread, sizeof thread, "%d", one);
    for (int looks = 0; looks < LOOKS; looks++) {
        if (one == 0 || !is_asleep(thread) || atomic_load(&watched) != one)
            return false;
        really_sleep();
    }
    return true;
}

static void raise_to(uint64_t moment)
{
    uint64_t now = atomic_load(&shared->passed_ns);
    while (now < moment && !atomic_compare_exchange_weak(&shared->passed_ns, &now, moment)) {
    }
}

static void *set_variable(void *unused)
{
    (void)unused;
    setenv(meanwhile.name, meanwhile.value, 1);
    return NULL;
}

/* Returns whether a signal ends the sleep. */
static bool do_what_waits(void)
{
    pthread_t thread;
    if (meanwhile.set) {
        meanwhile.set = false;
        if (pthread_create(&thread, NULL, set_variable, NULL) == 0)
            pthread_join(thread, NULL);
    }
    const bool ends = meanwhile.raise;
    meanwhile.raise = false;
    if (ends)
        raise(SIGUSR1);
    return ends;
}

/* Returns whether all of it has passed. */
static bool pass(uint64_t ns)
{
    const uint64_t moment = atomic_load(&shared->passed_ns) + ns;
    if (makes_call) {
        if (do_what_waits())
            return false;
        raise_to(moment);
        return true;
    }
    while (atomic_load(&shared->passed_ns) < moment) {
        really_sleep();
        if (is_stuck())
            raise_to(moment);
    }
    return true;
}

EXPORT int nanosleep(const struct timespec *time, struct timespec *left)
{
    if (pass((uint64_t)time->tv_sec * SECOND_NS + (uint64_t)time->tv_nsec))
        return 0;
    if (left != NULL)
        *left = *time;
    errno = EINTR;
    return -1;
}

EXPORT int sched_yield(void)
{
    if (shared == NULL)
        return 0;
    pass(YIELD_NS);
    return 0;
}

void clock_set_meanwhile(const char *name, const char *value)
{
    snprintf(meanwhile.name, sizeof meanwhile.name, "%s", name);
    snprintf(meanwhile.value, sizeof meanwhile.value, "%s", value);
    meanwhile.set = true;
}

void clock_do_meanwhile(void)
{
    do_what_waits();
}

void clock_raise_meanwhile(void)
{
    meanwhile.raise = true;
}

static bool others_sleep(bool *are)
{
    char own[16];
    bool all = true;
    *are = false;
    snprintf(own, sizeof own, "%d", gettid());
    DIR *tasks = opendir("/proc/self/task");
    for (struct dirent *task = tasks == NULL ? NULL : readdir(tasks); task != NULL; task = readdir(tasks))
        if (task->d_name[0] != '.' && strcmp(task->d_name, own) != 0) {
            *are = true;
            all = all && is_asleep(task->d_name);
        }
    if (tasks != NULL)
        closedir(tasks);
    return all;
}

void clock_settle(void)
{
    bool are = true;
    for (int looks = 0; looks < LOOKS && are; looks = others_sleep(&are) ? looks + 1 : 0)
        if (looks > 0)
            really_sleep();
}
