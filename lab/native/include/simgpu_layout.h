/* The machine file: one simulated machine and its state.
 *
 * Every process of the machine maps this file. The first part of a GPU's record never changes; the rest is state
 * that any number of processes change at once, and that a process may leave at any instruction because it was
 * killed. So there is no lock. Two 128-bit words per GPU, the ledger and the turn, each hold the newest step of a
 * sequence. A process that takes the next step first finishes the last one in the cell that it names. A step is
 * finished exactly once, because a cell keeps the number of the last step that was applied to it.
 *
 *   ledger   which process took or gave back memory last: used, delta, slot, step
 *   turn     which process has the GPU now: start, duration, slot, step. A turn lasts at most a time slice
 *   cell     one process on one GPU: memory held, work submitted and done
 *   log      the last turns, which show when a piece of work was done
 *
 * Clients of MPS take no turns: each one has its own lane on its part of the GPU's processors.
 *
 * A MIG instance has a record like a GPU's, so it has its own memory, time and processes. The records for instances of
 * all GPUs that can be partitioned come after the GPUs; both are called units. An instance exists while its `instance`
 * says so, which is written last. A process that changes instances or modes holds a lock on the file, which the kernel
 * drops when the process is killed.
 *
 * Order in the file: header, processes, then per unit: record, log, cells. lab/src/lamina_lab/simgpu/layout.py is the
 * Python twin. */
#ifndef LAMINA_SIMGPU_LAYOUT_H
#define LAMINA_SIMGPU_LAYOUT_H

#include <stddef.h>
#include <stdint.h>

#define SIMGPU_MAGIC 0x315550474d49534cull /* "LSIMGPU1", little endian */
#define SIMGPU_VERSION 1
#define SIMGPU_MAX_GPUS 16
#define SIMGPU_MIG_UNITS 7 /* of each GPU that can be partitioned */
#define SIMGPU_MAX_UNITS (SIMGPU_MAX_GPUS * (1 + SIMGPU_MIG_UNITS))
#define SIMGPU_MIG_PROFILES 12
#define SIMGPU_NO_ECC 2 /* instead of whether ECC is on, where the memory has none */
#define SIMGPU_SLOTS 1024
#define SIMGPU_LOG 8192
#define SIMGPU_HISTORY 16
#define SIMGPU_TIME_SLICES 4 /* number of lengths */
#define SIMGPU_HISTORY_NS 100000000

struct simgpu_header {
    uint64_t magic;
    uint32_t version, gpu_count, cuda_version;
    uint32_t context_us; /* how long the driver takes to make a context */
    uint64_t size;       /* bytes of the whole file */
    uint64_t kernel_ns;  /* duration of a kernel that does not give its own */
    uint64_t host_mib;   /* host memory that managed allocations may spill to */
    uint64_t processes;  /* offsets from the start of the file */
    uint64_t gpus;
    uint64_t gpu_stride;
    _Atomic uint32_t slots_used; /* no slot at or above this index was ever used */
    uint32_t allocation_us;      /* and to allocate memory on a GPU */
    _Atomic uint64_t swept_at;   /* CLOCK_MONOTONIC ns of the last search for dead processes */
    char driver[32], nvml[32];
    uint32_t unit_count; /* GPUs and places for MIG instances */
    uint32_t init_us;    /* how long the driver takes to initialize in a process */
    uint32_t unified;    /* GPUs have the host's memory, and NVML has no figure of it */
    uint32_t padding;
};

/* identity: pid, start time and whether its cells are ready, in one word; 0 is a free slot. */
struct simgpu_process {
    _Atomic uint64_t identity;
    uint64_t image; /* distinguishes one execve from the next in the same process */
    uint64_t since_ns;
    char name[104];
};

/* Memory that one process has open and another owns; in the header's page. `place`: GPU | owner's slot << 8. */
struct simgpu_import {
    _Atomic uint64_t user;
    uint64_t owner, number;
    uint32_t mib, place;
};

#define SIMGPU_IMPORTS_AT 1024
#define SIMGPU_IMPORTS 96
#define SIMGPU_IDENTITY_READY (1ull << 63)
#define SIMGPU_IDENTITY_PID_BITS 22

struct simgpu_pair { uint64_t low, high; } __attribute__((aligned(16)));

/* One half of a 128-bit word that other processes change as a whole. Standard atomics cannot access a part of an atomic
 * object, so this is a compiler builtin; so is the exchange of the whole word in core/pair.h. */
static inline uint64_t simgpu_half(const uint64_t *half)
{
    return __atomic_load_n(half, __ATOMIC_SEQ_CST);
}

/* One way to partition a GPU. `index` is NVML's, `id` nvidia-smi's; sizes and places are in memory slices. */
struct simgpu_mig_profile {
    char name[24];
    uint32_t id, memory_mib;
    uint16_t sms, starts; /* starts: one bit for each */
    uint8_t index, slices, size, most, media, copy_engines, decoders, encoders, jpeg, ofa, padding[2];
};

struct simgpu_gpu {
    char uuid[48], name[96], bus_id[32], serial[32], model[32];
    uint32_t index, memory_mib, context_mib, sm_count, compute_major, compute_minor, threads_per_sm, cuda_cores;
    uint32_t architecture, brand, power_limit_mw, power_idle_mw, temperature, pci_device, pci_subsystem, pci_domain;
    uint32_t pci_bus, pci_slot, pcie_generation, sm_clock_mhz, memory_clock_mhz, bus_width, l2_bytes, ecc;
    uint32_t persistence, mig_capable, bar1_mib, shared_per_sm;
    int32_t numa;
    _Atomic uint32_t contexts_made; /* in total, by all processes */
    uint32_t nvlinks;               /* how many NVLinks lead to the other GPUs of `bridge` */
    uint32_t bridge; /* 0: all linked GPUs are on one switch; else those of one number are linked directly */
    /* written from outside, to inject faults */
    _Atomic uint64_t xid; /* number of XID events so far << 32 | code of the last one */
    _Atomic uint32_t lost;
    _Atomic uint32_t time_slice; /* how long a turn is at most: 0 default, 1 short, 2 medium, 3 long */
    struct simgpu_pair ledger;   /* low: used MiB | delta MiB << 32;  high: step | slot << 48 */
    struct simgpu_pair turn;     /* low: start ns;  high: duration ns | slot << 25 | step << 36 */
    _Atomic uint32_t mig_mode;   /* present | pending << 1 */
    uint32_t first_unit, mig_slices, mig_media, mig_profiles; /* of a GPU that can be partitioned */
    uint32_t parent;                                          /* of an instance: its GPU */
    _Atomic uint64_t instance;                                /* of an instance, see core/mig.h */
    struct simgpu_mig_profile profiles[SIMGPU_MIG_PROFILES];
    _Atomic uint32_t compute_mode; /* NVML's: 0 default, 2 prohibited, 3 exclusive process */
    uint32_t default_slice_us;     /* how long a turn of the default length is; 0: 2 ms */
    uint32_t switch_us;            /* how long nothing runs when another process gets its turn */
    uint32_t reserved;
};

struct simgpu_log_entry {
    _Atomic uint64_t start, done_after, turn;
    uint64_t reserved;
};

struct simgpu_cell {
    _Atomic uint64_t memory;     /* held MiB | low half of the step << 32 */
    _Atomic uint64_t work;       /* ns of GPU time submitted in total */
    _Atomic uint64_t ready_at;   /* when the queue last became non-empty */
    uint64_t base;               /* `executed` when this process took the slot */
    struct simgpu_pair executed; /* low: ns of GPU time given in total;  high: step of the last turn */
    _Atomic uint32_t contexts;
    uint32_t padding;
    _Atomic uint64_t launches;
    _Atomic uint64_t history[SIMGPU_HISTORY]; /* executed in us at every tenth of a second | tenth << 44 */
    _Atomic uint64_t managed;                 /* MiB of managed memory on the GPU | MiB on the host << 32 */
    _Atomic uint64_t touched_at;              /* when a kernel last used it */
    uint64_t cgroup;                          /* of the process, see core/cgroups.h */
    _Atomic uint64_t mps;    /* of a client of MPS: percent of the GPU's threads | MiB that it may hold << 32; else 0 */
    struct simgpu_pair lane; /* of such: low: position of the end of its work;  high: when that is done */
    _Atomic uint64_t promised; /* percentages of all clients with work, added up when it last submitted some */
    uint64_t reserved;
};

_Static_assert(sizeof(struct simgpu_process) == 128, "layout");
_Static_assert(SIMGPU_IMPORTS_AT + SIMGPU_IMPORTS * sizeof(struct simgpu_import) <= 4096, "layout");
_Static_assert(sizeof(struct simgpu_log_entry) == 32, "layout");
_Static_assert(sizeof(struct simgpu_mig_profile) == 48, "layout");
_Static_assert(sizeof(struct simgpu_cell) == 256, "layout");
_Static_assert(offsetof(struct simgpu_gpu, ledger) % 16 == 0 && sizeof(struct simgpu_gpu) % 16 == 0, "layout");
_Static_assert(sizeof(struct simgpu_gpu) <= 2048, "layout");

#define SIMGPU_HEADER_BYTES 4096
#define SIMGPU_RECORD_BYTES 2048
#define SIMGPU_GPU_BYTES                                                                                               \
    (SIMGPU_RECORD_BYTES + SIMGPU_LOG * sizeof(struct simgpu_log_entry) + SIMGPU_SLOTS * sizeof(struct simgpu_cell))

#endif
