#include "machine.h"

#include "mig.h"

#include <ctype.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define IN_CONTAINERS "/run/simgpu"

static bool is_machine(const simgpu_header *h, uint64_t bytes) {
    uint64_t gpus = SIMGPU_HEADER_BYTES + SIMGPU_SLOTS * sizeof(simgpu_process);
    return h->magic == SIMGPU_MAGIC && h->version == SIMGPU_VERSION && h->gpu_count <= SIMGPU_MAX_GPUS &&
           h->processes == SIMGPU_HEADER_BYTES && h->gpus == gpus && h->gpu_stride == SIMGPU_GPU_BYTES &&
           h->unit_count >= h->gpu_count && h->unit_count <= SIMGPU_MAX_UNITS &&
           h->size == gpus + h->unit_count * SIMGPU_GPU_BYTES && h->size <= bytes;
}

static simgpu_header *map_file(const char *path) {
    int file = open(path, O_RDWR | O_CLOEXEC);
    if (file < 0) return NULL;
    struct stat about;
    void *at = MAP_FAILED;
    if (fstat(file, &about) == 0 && S_ISREG(about.st_mode) && about.st_size >= (off_t)SIMGPU_HEADER_BYTES)
        at = mmap(NULL, (size_t)about.st_size, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    close(file);
    if (at == MAP_FAILED) return NULL;
    if (is_machine(at, (uint64_t)about.st_size)) return at;
    munmap(at, (size_t)about.st_size);
    return NULL;
}

static uint32_t find_instance(const machine *m, const char *item, size_t length) {
    uint32_t found = UINT32_MAX;
    for (uint32_t unit = m->head->gpu_count; unit < m->head->unit_count; unit++) {
        if (!mig_visible(m, unit) || strncasecmp(machine_gpu(m, unit)->uuid, item, length) != 0) continue;
        if (found != UINT32_MAX) return UINT32_MAX;
        found = unit;
    }
    return found;
}

static uint32_t find(const machine *m, const char *item, size_t length, const uint32_t *from, uint32_t from_count) {
    bool digits = true;
    for (size_t i = 0; i < length; i++) digits = digits && isdigit((unsigned char)item[i]);
    if (digits && length > 0 && length < 4) {
        unsigned long index = strtoul(item, NULL, 10);
        return index < from_count ? from[index] : UINT32_MAX;
    }
    uint32_t found = UINT32_MAX;
    if (length >= 5 && strncasecmp(item, "MIG-", 4) == 0) return find_instance(m, item, length);
    if (length < 5 || strncasecmp(item, "GPU-", 4) != 0) return found;
    for (uint32_t i = 0; i < from_count; i++) {
        if (strncasecmp(machine_gpu(m, from[i])->uuid, item, length) != 0) continue;
        if (found != UINT32_MAX) return UINT32_MAX; /* a prefix of two GPUs names neither */
        found = from[i];
    }
    return found;
}

uint32_t machine_select(const machine *m, const char *list, const uint32_t *from, uint32_t from_count, uint32_t *out) {
    uint32_t count = 0;
    for (const char *item = list; count < SIMGPU_MAX_UNITS;) {
        while (isspace((unsigned char)*item)) item++;
        size_t length = strcspn(item, ",");
        size_t word = length;
        while (word > 0 && isspace((unsigned char)item[word - 1])) word--;
        uint32_t number = find(m, item, word, from, from_count);
        if (number == UINT32_MAX) break;
        for (uint32_t i = 0; i < count; i++)
            if (out[i] == number) return 0; /* a GPU named twice makes the whole list void, as in CUDA */
        out[count++] = number;
        if (item[length] == '\0') break;
        item += length + 1;
    }
    return count;
}

static int by_number(const void *a, const void *b) {
    uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
    return (x > y) - (x < y);
}

static void show(machine *m, uint32_t number) {
    for (uint32_t i = 0; i < m->visible_count; i++)
        if (m->visible[i] == number) return;
    m->visible[m->visible_count++] = number;
}

static void read_visible(machine *m) {
    uint32_t all[SIMGPU_MAX_GPUS], chosen[SIMGPU_MAX_UNITS];
    m->whole = UINT32_MAX;
    for (uint32_t i = 0; i < m->head->gpu_count; i++) all[i] = i;
    const char *list = getenv("NVIDIA_VISIBLE_DEVICES");
    if (list == NULL || strcmp(list, "all") == 0) {
        memcpy(m->visible, all, sizeof all);
        m->visible_count = m->head->gpu_count;
        return;
    }
    uint32_t count = machine_select(m, list, all, m->head->gpu_count, chosen);
    m->whole = 0;
    for (uint32_t i = 0; i < count; i++) {
        bool instance = chosen[i] >= m->head->gpu_count;
        if (instance) m->named[m->named_count++] = chosen[i];
        else m->whole |= 1u << chosen[i];
        show(m, instance ? machine_gpu(m, chosen[i])->parent : chosen[i]);
    }
    qsort(m->visible, m->visible_count, sizeof m->visible[0], by_number);
}

const char *machine_path(void) {
    const char *named = getenv("SIMGPU_MACHINE");
    return named != NULL && *named != '\0' ? named : IN_CONTAINERS "/machine";
}

const char *machine_proc(void) {
    return access(IN_CONTAINERS "/proc/self", F_OK) == 0 ? IN_CONTAINERS "/proc" : "/proc";
}

bool machine_open(machine *m) {
    simgpu_header *head = map_file(machine_path());
    if (head == NULL) return false;
    *m = (machine){.head = head};
    m->processes = (simgpu_process *)((char *)head + head->processes);
    read_visible(m);
    return true;
}

void machine_close(machine *m) {
    if (m->head != NULL) munmap(m->head, m->head->size);
    memset(m, 0, sizeof *m);
}

simgpu_gpu *machine_gpu(const machine *m, uint32_t number) {
    return (simgpu_gpu *)((char *)m->head + m->head->gpus + number * SIMGPU_GPU_BYTES);
}

simgpu_log_entry *machine_log(const machine *m, uint32_t number) {
    return (simgpu_log_entry *)((char *)machine_gpu(m, number) + SIMGPU_RECORD_BYTES);
}

simgpu_cell *machine_cell(const machine *m, uint32_t number, uint32_t slot) {
    return (simgpu_cell *)(machine_log(m, number) + SIMGPU_LOG) + slot;
}

uint32_t machine_slots_used(const machine *m) {
    uint32_t used = __atomic_load_n(&m->head->slots_used, __ATOMIC_SEQ_CST);
    return used < SIMGPU_SLOTS ? used : SIMGPU_SLOTS;
}

bool machine_limits_cgroups(const machine *m) {
    return m->head->driver[0] >= '0' && atoi(m->head->driver) >= 615;
}

uint64_t machine_now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}
