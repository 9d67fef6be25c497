#include "core/cgroups.h"

#include "core/hash.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

uint64_t cgroup_from_path(const char *path)
{
    size_t length = strlen(path);
    while (length > 1 && path[length - 1] == '/')
        length--;
    return hash_text(HASH_SEED, path, length) | 1;
}

uint64_t cgroup_of_self(void)
{
    const char *named = getenv("SIMGPU_CGROUP");
    char line[4096], path[4200] = "/sys/fs/cgroup";
    if (named != NULL && *named != '\0')
        return cgroup_from_path(named);
    FILE *file = fopen("/proc/self/cgroup", "re");
    while (file != NULL && fgets(line, sizeof line, file) != NULL)
        if (strncmp(line, "0::", 3) == 0)
            snprintf(path, sizeof path, "/sys/fs/cgroup%.*s", (int)strcspn(line + 3, "\n"), line + 3);
    if (file != NULL)
        fclose(file);
    return cgroup_from_path(path);
}

bool cgroups_supported(const struct machine *m)
{
    return m->head->driver[0] >= '0' && atoi(m->head->driver) >= 615;
}

static int open_limits(int flags)
{
    char path[4096];
    if ((size_t)snprintf(path, sizeof path, "%s.cgroups", machine_path()) >= sizeof path)
        return -1;
    return open(path, flags | O_CLOEXEC, 0666);
}

/* The number of the limit's record, or of the first free one; CGROUP_LIMITS when there is neither. */
static uint32_t find_place(int file, uint64_t cgroup, uint64_t gpu, struct cgroup_limit *found)
{
    for (uint32_t i = 0; i < CGROUP_LIMITS; i++) {
        *found = (struct cgroup_limit){0};
        if (pread(file, found, sizeof *found, (off_t)(i * sizeof *found)) <= 0 || found->cgroup == 0)
            return i;
        if (found->cgroup == cgroup && found->gpu == gpu)
            return i;
    }
    return CGROUP_LIMITS;
}

bool cgroups_set_limit(struct cgroup_limit limit)
{
    struct cgroup_limit found;
    int file = open_limits(O_RDWR | O_CREAT);
    if (file < 0)
        return false;
    flock(file, LOCK_EX); /* the kernel drops it when the process is killed, too */
    uint32_t place = find_place(file, limit.cgroup, limit.gpu, &found);
    bool written =
        place < CGROUP_LIMITS && pwrite(file, &limit, sizeof limit, (off_t)(place * sizeof limit)) == sizeof limit;
    close(file);
    return written;
}

bool cgroups_find_limit(uint64_t cgroup, uint32_t gpu, struct cgroup_limit *limit)
{
    int file = open_limits(O_RDONLY);
    if (file < 0)
        return false;
    find_place(file, cgroup, gpu, limit);
    close(file);
    return limit->cgroup == cgroup && limit->gpu == gpu;
}
