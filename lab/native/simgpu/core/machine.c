#include "core/machine.h"

#include <fcntl.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define IN_CONTAINERS "/run/simgpu"

static bool is_valid_header(const struct simgpu_header *h, uint64_t bytes)
{
    uint64_t gpus = SIMGPU_HEADER_BYTES + SIMGPU_SLOTS * sizeof(struct simgpu_process);
    return h->magic == SIMGPU_MAGIC && h->version == SIMGPU_VERSION && h->gpu_count <= SIMGPU_MAX_GPUS &&
           h->processes == SIMGPU_HEADER_BYTES && h->gpus == gpus && h->gpu_stride == SIMGPU_GPU_BYTES &&
           h->unit_count >= h->gpu_count && h->unit_count <= SIMGPU_MAX_UNITS &&
           h->size == gpus + h->unit_count * SIMGPU_GPU_BYTES && h->size <= bytes;
}

static struct simgpu_header *map_file(const char *path)
{
    int file = open(path, O_RDWR | O_CLOEXEC);
    if (file < 0)
        return NULL;
    struct stat about;
    void *at = MAP_FAILED;
    if (fstat(file, &about) == 0 && S_ISREG(about.st_mode) && about.st_size >= (off_t)SIMGPU_HEADER_BYTES)
        at = mmap(NULL, (size_t)about.st_size, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    close(file);
    if (at == MAP_FAILED)
        return NULL;
    if (is_valid_header(at, (uint64_t)about.st_size))
        return at;
    munmap(at, (size_t)about.st_size);
    return NULL;
}

const char *machine_path(void)
{
    const char *named = getenv("SIMGPU_MACHINE");
    return named != NULL && *named != '\0' ? named : IN_CONTAINERS "/machine";
}

const char *machine_proc(void)
{
    return access(IN_CONTAINERS "/proc/self", F_OK) == 0 ? IN_CONTAINERS "/proc" : "/proc";
}

bool machine_open(struct machine *m)
{
    struct simgpu_header *head = map_file(machine_path());
    if (head == NULL)
        return false;
    *m = (struct machine){.head = head};
    m->processes = (struct simgpu_process *)((char *)head + head->processes);
    return true;
}

void machine_close(struct machine *m)
{
    if (m->head != NULL)
        munmap(m->head, m->head->size);
    memset(m, 0, sizeof *m);
}

struct simgpu_gpu *machine_gpu(const struct machine *m, uint32_t number)
{
    return (struct simgpu_gpu *)((char *)m->head + m->head->gpus + number * SIMGPU_GPU_BYTES);
}

struct simgpu_log_entry *machine_log(const struct machine *m, uint32_t number)
{
    return (struct simgpu_log_entry *)((char *)machine_gpu(m, number) + SIMGPU_RECORD_BYTES);
}

struct simgpu_cell *machine_cell(const struct machine *m, uint32_t number, uint32_t slot)
{
    return (struct simgpu_cell *)(machine_log(m, number) + SIMGPU_LOG) + slot;
}

uint32_t machine_slots_used(const struct machine *m)
{
    uint32_t used = atomic_load(&m->head->slots_used);
    return used < SIMGPU_SLOTS ? used : SIMGPU_SLOTS;
}

uint64_t machine_now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}
