/* The machine that this process runs on: its mapped file, and which of its GPUs the process may see. */
#ifndef SIMGPU_MACHINE_H
#define SIMGPU_MACHINE_H

#include "simgpu_layout.h"

#include <stdbool.h>
#include <stdint.h>

#define MIB (1ull << 20)

struct machine {
    struct simgpu_header *head;
    struct simgpu_process *processes;
    uint32_t visible[SIMGPU_MAX_GPUS]; /* numbers in the file, in the file's order */
    uint32_t visible_count;
    uint32_t named[SIMGPU_MAX_UNITS]; /* MIG instances that NVIDIA_VISIBLE_DEVICES names, without their GPUs */
    uint32_t named_count;
    uint32_t whole; /* bits of GPUs of which every instance is visible */
};

/* The machine's file: the one that SIMGPU_MACHINE names, otherwise the place where containers have it. */
const char *machine_path(void);
/* Where processes are looked up: in a container the node's own /proc, mounted next to the machine's file, because a
 * kernel's driver distinguishes processes of all PID namespaces. */
const char *machine_proc(void);

/* Maps the machine's file; visible.h says what of it the process sees. False when there is no such machine. */
bool machine_open(struct machine *m);
void machine_close(struct machine *m);

/* Functions that take the number of a GPU also take that of a MIG instance. */
struct simgpu_gpu *machine_gpu(const struct machine *m, uint32_t number);
struct simgpu_log_entry *machine_log(const struct machine *m, uint32_t number);
struct simgpu_cell *machine_cell(const struct machine *m, uint32_t number, uint32_t slot);
uint32_t machine_slots_used(const struct machine *m);

/* CLOCK_MONOTONIC in ns, which is also the clock of the simulated GPUs. */
uint64_t machine_now(void);
#endif
