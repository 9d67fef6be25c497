#include "core/identity.h"

#include "core/machine.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define PID_MASK ((1ull << SIMGPU_IDENTITY_PID_BITS) - 1)

static uint32_t read_own_pid(void)
{
    char path[256], text[24];
    snprintf(path, sizeof path, "%s/self", machine_proc());
    ssize_t length = readlink(path, text, sizeof text - 1);
    if (length <= 0)
        return (uint32_t)getpid();
    text[length] = '\0';
    return (uint32_t)strtoul(text, NULL, 10);
}

/* A process may be hidden in /proc; one of another PID namespace cannot be probed by a signal. */
static bool does_not_exist(uint32_t pid)
{
    char path[256];
    if (strcmp(machine_proc(), "/proc") == 0)
        return kill((pid_t)pid, 0) != 0 && errno == ESRCH;
    snprintf(path, sizeof path, "%s/self", machine_proc());
    return access(path, F_OK) == 0;
}

/* Start time of a living process in clock ticks; GONE when there is none, UNKNOWN when /proc does not say. A process
 * whose threads have all ended is gone even while its parent has not waited for it. */
enum { GONE = 0, UNKNOWN = 1 };

static uint64_t read_start_time(uint32_t pid)
{
    char path[256], text[1024];
    snprintf(path, sizeof path, "%s/%u/stat", machine_proc(), pid);
    int file = open(path, O_RDONLY | O_CLOEXEC);
    if (file < 0)
        return errno == ENOENT && does_not_exist(pid) ? GONE : UNKNOWN;
    ssize_t length = read(file, text, sizeof text - 1);
    int error = errno;
    close(file);
    if (length <= 0)
        return length < 0 && error == ESRCH ? GONE : UNKNOWN;
    text[length] = '\0';
    const char *after_name = strrchr(text, ')');
    char state;
    long threads;
    unsigned long long start;
    if (after_name == NULL ||
        sscanf(after_name + 1, " %c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %*u %*u %*d %*d %*d %*d %ld %*d %llu",
               &state, &threads, &start) != 3)
        return UNKNOWN;
    return (state == 'Z' || state == 'X') && threads < 2 ? GONE : start;
}

static uint64_t make_identity(uint32_t pid, uint64_t start)
{
    return (start << SIMGPU_IDENTITY_PID_BITS | (pid & PID_MASK)) & ~SIMGPU_IDENTITY_READY;
}

uint64_t identity_of_self(void)
{
    uint32_t pid = read_own_pid();
    return make_identity(pid, read_start_time(pid));
}

uint32_t identity_pid(uint64_t identity)
{
    return (uint32_t)(identity & PID_MASK);
}

/* The driver asks this in many calls, at moments that depend on the machine, so errno stays as it was. */
bool identity_is_dead(uint64_t identity)
{
    const int before = errno;
    uint32_t pid = identity_pid(identity);
    uint64_t start = read_start_time(pid);
    errno = before;
    return start != UNKNOWN && (start == GONE || make_identity(pid, start) != (identity & ~SIMGPU_IDENTITY_READY));
}
