#include "shared/owner.h"

#include "shared/kept_errno.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <unistd.h>

static bool read_text(const char *path, char *text, size_t size)
{
    int file = open(path, O_RDONLY | O_CLOEXEC);
    if (file < 0)
        return false;
    ssize_t length = read(file, text, size - 1);
    close(file);
    if (length <= 0)
        return false;
    text[length] = 0;
    return true;
}

bool process_stat_parse(const char *text, struct process_stat *stat)
{
    /* The name is in parentheses and may itself contain any character. */
    const char *rest = strrchr(text, ')');
    if (rest == NULL)
        return false;
    return sscanf(rest + 1,
                  " %c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %*u %*u %*d %*d %*d %*d %llu %*d %llu"
                  " %*u %*d %*u %*u %*u %llu",
                  &stat->state, &stat->threads, &stat->start, &stat->stack) == 4;
}

/* The inode of the host's pid namespace, which the kernel always gives this number. */
static const uint64_t HOST_PID_NAMESPACE = 0xeffffffc;

/* The inode of this process's pid namespace; 0 when it is not known. */
static uint64_t pid_namespace(void)
{
    char target[64];
    ssize_t length = readlink("/proc/self/ns/pid", target, sizeof target - 1);
    if (length <= 0)
        return 0;
    target[length] = 0;
    const char *number = strchr(target, '['); /* "pid:[4026531836]" */
    return number == NULL ? 0 : strtoull(number + 1, NULL, 10);
}

/* /proc may show another pid namespace than ours; then it says nothing about our pids. */
static bool proc_shows(int pid)
{
    char target[32];
    ssize_t length = readlink("/proc/self", target, sizeof target - 1);
    if (length <= 0)
        return false;
    target[length] = 0;
    return atoi(target) == pid;
}

struct identity identity_of_this_process(void)
{
    KEEP_ERRNO;
    struct identity self = {0};
    struct process_stat status = {0};
    char text[1024];
    if (read_text("/proc/self/stat", text, sizeof text))
        process_stat_parse(text, &status);
    const uint64_t *random = (const uint64_t *)getauxval(AT_RANDOM);
    const uint64_t namespace = pid_namespace();
    self.owner = LAMINA_OWNER(getpid(), status.start, namespace);
    self.has_host_pids = namespace == HOST_PID_NAMESPACE;
    self.stack = status.stack;
    self.proc_is_ours = proc_shows(getpid());
    if (random != NULL)
        memcpy(&self.image, random, sizeof self.image);
    self.image |= 1; /* 0 means that the owner has not written it yet */
    if (read_text("/proc/self/comm", text, sizeof text)) {
        text[strcspn(text, "\n")] = 0;
        memcpy(self.name, text, strnlen(text, sizeof self.name - 1));
    }
    return self;
}

static bool pid_is_gone(int pid)
{
    return kill(pid, 0) != 0 && errno == ESRCH;
}

bool owner_is_dead(uint64_t owner, uint64_t stack, const struct identity *self)
{
    KEEP_ERRNO;
    const uint64_t start_mask = (UINT64_C(1) << LAMINA_START_BITS) - 1;
    uint64_t start = (owner >> LAMINA_PID_BITS) & start_mask;
    int pid = owner_pid(owner);
    if (owner_is_in_other_namespace(owner, self) || pid == 0)
        return false;
    if (pid_is_gone(pid))
        return true;
    char path[32], text[1024];
    struct process_stat status;
    snprintf(path, sizeof path, "/proc/%d/stat", pid);
    if (!self->proc_is_ours || !read_text(path, text, sizeof text) || !process_stat_parse(text, &status))
        return false;
    if (start != 0 && (status.start & start_mask) != start)
        return true;
    /* The first thread of a program may have ended while others continue. */
    if (status.state == 'X' || (status.state == 'Z' && status.threads <= 1))
        return true;
    return stack != 0 && status.stack != 0 && status.stack != stack;
}
