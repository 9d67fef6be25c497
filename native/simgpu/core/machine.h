/* The machine that this process lives on: its mapped file, and which of its GPUs the process may see. */
#ifndef SIMGPU_MACHINE_H
#define SIMGPU_MACHINE_H

#include <stdbool.h>
#include <stdint.h>

#include "simgpu_layout.h"

typedef struct {
    simgpu_header *head;
    simgpu_process *processes;
    uint32_t visible[SIMGPU_MAX_GPUS]; /* numbers in the file, in the file's order */
    uint32_t visible_count;
    uint32_t named[SIMGPU_MAX_UNITS]; /* MIG instances that NVIDIA_VISIBLE_DEVICES names, without their GPUs */
    uint32_t named_count;
    uint32_t whole; /* bits of GPUs of which every instance is visible */
} machine;

/* The machine's file: what SIMGPU_MACHINE names, else where containers have it, as they have device nodes. */
const char *machine_path(void);
/* Where processes are looked up: in a container the node's own /proc, mounted beside the machine's file, because a
 * kernel's driver knows processes of all PID namespaces apart. */
const char *machine_proc(void);

/* Maps the machine's file and reads NVIDIA_VISIBLE_DEVICES. False when there is no such machine. */
bool machine_open(machine *m);
void machine_close(machine *m);

/* The functions that take the number of a GPU take that of a MIG instance too. */
simgpu_gpu *machine_gpu(const machine *m, uint32_t number);
simgpu_log_entry *machine_log(const machine *m, uint32_t number);
simgpu_cell *machine_cell(const machine *m, uint32_t number, uint32_t slot);
uint32_t machine_slots_used(const machine *m);

/* CLOCK_MONOTONIC in ns: the clock of the simulated GPUs too. */
uint64_t machine_now(void);
/* Whether the driver is one that limits the memory of cgroups: R615 and later. */
bool machine_limits_cgroups(const machine *m);

/* Numbers of the GPUs that a comma list of indices and UUID prefixes names among `from`, and of visible MIG instances
 * that it names by UUID; reading stops at the first item that names none, and one named twice makes the list void.
 * `out` has room for SIMGPU_MAX_UNITS. Returns how many. */
uint32_t machine_select(const machine *m, const char *list, const uint32_t *from, uint32_t from_count, uint32_t *out);

#endif
