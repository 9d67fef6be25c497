#include "slots.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <unistd.h>

#include "cgroups.h"
#include "imports.h"
#include "ledger.h"

#define JOIN_PAUSE_NS 5000000u /* so that processes that start together do not all look for dead ones */
#define PID_MASK ((1ull << SIMGPU_IDENTITY_PID_BITS) - 1)

static uint32_t own_pid(void) {
    char path[256], text[24];
    snprintf(path, sizeof path, "%s/self", machine_proc());
    ssize_t length = readlink(path, text, sizeof text - 1);
    if (length <= 0) return (uint32_t)getpid();
    text[length] = '\0';
    return (uint32_t)strtoul(text, NULL, 10);
}

/* Start time of a living process in clock ticks; GONE when there is none, UNKNOWN when /proc does not tell. A process
 * whose threads have all ended is gone even while its parent has not waited for it. */
enum { GONE = 0, UNKNOWN = 1 };

/* A process may be hidden in /proc; one of another PID namespace cannot be asked for by a signal. */
static bool is_nowhere(uint32_t pid) {
    char path[256];
    if (strcmp(machine_proc(), "/proc") == 0) return kill((pid_t)pid, 0) != 0 && errno == ESRCH;
    snprintf(path, sizeof path, "%s/self", machine_proc());
    return access(path, F_OK) == 0;
}

static uint64_t start_time(uint32_t pid) {
    char path[256], text[1024];
    snprintf(path, sizeof path, "%s/%u/stat", machine_proc(), pid);
    int file = open(path, O_RDONLY | O_CLOEXEC);
    if (file < 0) return errno == ENOENT && is_nowhere(pid) ? GONE : UNKNOWN;
    ssize_t length = read(file, text, sizeof text - 1);
    int error = errno;
    close(file);
    if (length <= 0) return length < 0 && error == ESRCH ? GONE : UNKNOWN;
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

static uint64_t identity_of(uint32_t pid, uint64_t start) {
    return (start << SIMGPU_IDENTITY_PID_BITS | (pid & PID_MASK)) & ~SIMGPU_IDENTITY_READY;
}

static bool is_dead(uint64_t identity) {
    uint32_t pid = (uint32_t)(identity & PID_MASK);
    uint64_t start = start_time(pid);
    return start != UNKNOWN && (start == GONE || identity_of(pid, start) != (identity & ~SIMGPU_IDENTITY_READY));
}

static void reap(const machine *m, uint32_t slot, uint64_t identity) {
    simgpu_process *process = &m->processes[slot];
    bool kept = false; /* by processes that have memory of this one open: then the slot stays as well */
    for (uint32_t gpu = 0; gpu < m->head->unit_count; gpu++) {
        uint32_t mib = imports_kept(m, gpu, identity);
        ledger_reap(m, gpu, slot, identity, mib);
        kept = kept || mib > 0;
    }
    if (kept) return;
    /* From here on nobody gives GPU time to what the process had left in its queue. */
    __atomic_compare_exchange_n(&process->identity, &identity, 0, false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);
}

void slots_sweep(const machine *m, uint64_t pause_ns) {
    uint64_t now = machine_now();
    uint64_t last = __atomic_load_n(&m->head->swept_at, __ATOMIC_SEQ_CST);
    if (pause_ns == 0) __atomic_store_n(&m->head->swept_at, now, __ATOMIC_SEQ_CST);
    else if (now - last < pause_ns ||
             !__atomic_compare_exchange_n(&m->head->swept_at, &last, now, false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST))
        return; /* somebody just has, or is at it */
    imports_sweep(m, is_dead);
    for (uint32_t slot = 0; slot < machine_slots_used(m); slot++) {
        uint64_t identity = __atomic_load_n(&m->processes[slot].identity, __ATOMIC_SEQ_CST);
        if (identity != 0 && is_dead(identity)) reap(m, slot, identity);
    }
}

/* The kernel gives every execve 16 random bytes; threads and copies of this library in one program see the same. */
static uint64_t image_of_self(void) {
    const unsigned char *random = (const unsigned char *)getauxval(AT_RANDOM);
    uint64_t image = 0;
    if (random != NULL) memcpy(&image, random, sizeof image);
    return image;
}

static void forget_former_image(const machine *m, uint64_t identity, uint64_t image) {
    for (uint32_t slot = 0; slot < machine_slots_used(m); slot++) {
        uint64_t owner = __atomic_load_n(&m->processes[slot].identity, __ATOMIC_SEQ_CST);
        if (owner == (identity | SIMGPU_IDENTITY_READY) && m->processes[slot].image != image) reap(m, slot, owner);
    }
}

static void fill(const machine *m, uint32_t slot, uint64_t image) {
    simgpu_process *process = &m->processes[slot];
    process->image = image;
    process->since_ns = machine_now();
    memset(process->name, 0, sizeof process->name);
    ssize_t length = readlink("/proc/self/exe", process->name, sizeof process->name - 1);
    if (length < 0) process->name[0] = '\0';
    uint64_t cgroup = cgroup_of_self();
    for (uint32_t gpu = 0; gpu < m->head->unit_count; gpu++) {
        simgpu_cell *cell = machine_cell(m, gpu, slot);
        uint64_t executed = __atomic_load_n(&cell->executed.low, __ATOMIC_SEQ_CST);
        cell->base = executed;
        cell->ready_at = 0;
        cell->contexts = 0;
        __atomic_store_n(&cell->managed, 0, __ATOMIC_SEQ_CST);
        cell->touched_at = 0;
        cell->launches = 0;
        __atomic_store_n(&cell->mps, 0, __ATOMIC_SEQ_CST);
        cell->cgroup = cgroup;
        __atomic_store_n(&cell->work, executed, __ATOMIC_SEQ_CST);
    }
}

static void raise_slots_used(const machine *m, uint32_t count) {
    uint32_t seen = __atomic_load_n(&m->head->slots_used, __ATOMIC_SEQ_CST);
    uint32_t *at = &m->head->slots_used;
    while (seen < count && !__atomic_compare_exchange_n(at, &seen, count, false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST)) {
    }
}

static uint32_t take_slot(const machine *m, uint64_t identity, uint64_t image) {
    for (uint32_t slot = 0; slot < SIMGPU_SLOTS; slot++) {
        uint64_t free_slot = 0;
        uint64_t *at = &m->processes[slot].identity;
        if (__atomic_load_n(at, __ATOMIC_SEQ_CST) != 0) continue;
        /* Seen by sweepers before it can own anything. */
        raise_slots_used(m, slot + 1);
        if (!__atomic_compare_exchange_n(at, &free_slot, identity, false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST)) continue;
        fill(m, slot, image);
        __atomic_store_n(at, identity | SIMGPU_IDENTITY_READY, __ATOMIC_SEQ_CST);
        return slot;
    }
    return UINT32_MAX;
}

uint32_t slots_join(const machine *m) {
    uint32_t pid = own_pid();
    uint64_t identity = identity_of(pid, start_time(pid)), image = image_of_self();
    forget_former_image(m, identity, image);
    slots_sweep(m, JOIN_PAUSE_NS);
    uint32_t slot = take_slot(m, identity, image);
    if (slot != UINT32_MAX) return slot;
    slots_sweep(m, 0);
    return take_slot(m, identity, image);
}

void slots_leave(const machine *m, uint32_t slot) {
    reap(m, slot, __atomic_load_n(&m->processes[slot].identity, __ATOMIC_SEQ_CST));
}

bool slots_ready(const machine *m, uint32_t slot) {
    return (__atomic_load_n(&m->processes[slot].identity, __ATOMIC_SEQ_CST) & SIMGPU_IDENTITY_READY) != 0;
}

bool slots_dead(const machine *m, uint32_t slot) {
    return is_dead(__atomic_load_n(&m->processes[slot].identity, __ATOMIC_SEQ_CST));
}

uint32_t slots_pid(const machine *m, uint32_t slot) {
    return (uint32_t)(__atomic_load_n(&m->processes[slot].identity, __ATOMIC_SEQ_CST) & PID_MASK);
}
