/* The three files that enforce a container's limits, byte for byte.
 *
 * `limits` says what the container may use. The agent writes it once, before the container starts; programs read it
 * once, when they first call the driver. A missing, truncated or altered file means no device, never no limit.
 *
 * `usage` is memory shared by all processes of the container. Each process owns one slot and is the only one that
 * adds to it; the container's total is the sum over the slots. Nothing here is a lock: a process may be killed at any
 * instruction, the others continue, and the next process that finds the dead owner's slot frees it.
 *
 * `arbiter` is what the agent decides while the container runs, from the `usage` of all containers of a GPU, and what
 * it knows from the driver about the container's processes, and what the container may use since it was resized:
 * `limits` is replaced then, which a running container does not see. A size that is larger than that of `limits` counts
 * while the heartbeat is new; a smaller one always does. Programs only read it. Without it, or when its heartbeat is
 * old, a container gets only its own share, and what contexts cost is measured less exactly.
 *
 * `signal` says whether the container has work on a GPU now. It is the only file that a neighbor's programs look at,
 * and the container's own programs may write anything to it or cut it off: neighbors only ask the kernel whether a word
 * of it is 0, and only as long as the arbiter says so.
 *
 * What several processes change at the same time is _Atomic, which changes neither size nor alignment.
 *
 * Entries of all files have the same order: that of the GPUs' indices on the node. src/lamina/enforcement/layout.py
 * is the Python twin; a test compares both. Times are CLOCK_MONOTONIC in ns. Little-endian, 64-bit. */
#ifndef LAMINA_LAYOUT_H
#define LAMINA_LAYOUT_H

#include <stddef.h>
#include <stdint.h>

#define LAMINA_LIMITS_MAGIC UINT64_C(0x54494d494c4d414c)  /* "LAMLIMIT" */
#define LAMINA_USAGE_MAGIC UINT64_C(0x45474153554d414c)   /* "LAMUSAGE" */
#define LAMINA_ARBITER_MAGIC UINT64_C(0x49425241414d414c) /* "LAMAARBI" */
#define LAMINA_SIGNAL_MAGIC UINT64_C(0x4c4e4749534d414c)  /* "LAMSIGNL" */
#define LAMINA_LAYOUT_VERSION 1u

enum {
    LAMINA_MAX_DEVICES = 16,
    LAMINA_SLOTS = 1024,
    LAMINA_SHARES = 2048,
    LAMINA_UUID_BYTES = 48, /* "GPU-" or "MIG-" and the 36 characters of a UUID, then zeros */
    LAMINA_BINS = 128,      /* of a millisecond each, the last ones in which the GPU had work */
    LAMINA_FIGURES = 128,   /* the first slots, whose figures the agent tells */
    LAMINA_HEEDED = 8,      /* how many neighbors' signals a container heeds on a GPU */
};

enum lamina_compute_policy {
    LAMINA_COMPUTE_NONE = 0,    /* GPU time is not limited */
    LAMINA_COMPUTE_CAP = 1,     /* never more than `cores_percent` */
    LAMINA_COMPUTE_WEIGHT = 2,  /* `cores_percent` under contention, idle time is lent */
    LAMINA_COMPUTE_THREADS = 3, /* GPU time is not limited; as a client of MPS, `cores_percent` of the processors */
};

struct lamina_limit {
    char uuid[LAMINA_UUID_BYTES];
    uint64_t memory_bytes;  /* over 0 */
    uint64_t context_bytes; /* what a context is known to cost on this GPU; 0: not known yet */
    uint32_t cores_percent; /* 0..100; 1..100 unless the policy is `none` */
    uint32_t compute_policy;
    uint64_t physical_bytes; /* 1..memory_bytes: what may be memory that stays on the GPU; the rest becomes managed */
    uint32_t most_percent;   /* 0, or cores_percent..100: up to where idle time is lent; 0: all of it */
    uint32_t reserved1;
    uint64_t request_bytes; /* 0, or 1..memory_bytes: what is guaranteed; the rest is lent. 0: all is guaranteed */
    uint8_t reserved[32];
};

struct lamina_limits {
    uint64_t magic;
    uint32_t version;
    uint32_t size;     /* of the whole file */
    uint64_t checksum; /* FNV-1a of the whole file with this field taken as zeros */
    uint32_t device_count;
    uint32_t log_level; /* 0 errors, 1 and warnings, 3 and information, 4 everything */
    uint32_t priority;  /* 0 is the highest */
    uint32_t flags;     /* none is defined; must be 0 */
    uint8_t reserved[24];
    struct lamina_limit devices[LAMINA_MAX_DEVICES];
};

/* What memory is used for. */
enum lamina_kind {
    LAMINA_DATA = 0,    /* device memory: cuMemAlloc, pitched, and virtual memory management */
    LAMINA_MANAGED = 1, /* cuMemAllocManaged */
    LAMINA_POOL = 2,    /* what memory pools and graphs hold, used or not */
    LAMINA_ARRAY = 3,   /* arrays and mipmaps */
    LAMINA_CONTEXT = 4, /* contexts and what the driver keeps in them */
    LAMINA_MODULE = 5,  /* loaded code and its globals */
    LAMINA_KINDS = 6,
};

/* When a process makes a GPU work. Only timestamps: those of a killed process become old. */
struct lamina_slot_compute {
    _Atomic uint64_t busy_since; /* since when it has work on the GPU; 0: it has none */
    _Atomic uint64_t asked_at;   /* when it last asked for GPU time, or was waiting for it */
    _Atomic uint64_t waited_at;  /* when it last waited for its share */
    _Atomic uint64_t busy_ns;    /* how long it has had work on the GPU in total */
    uint64_t reserved[3];
};

/* One device of one slot: one cache line for memory, and one for compute and what is seldom written. */
struct lamina_slot_device {
    _Atomic uint64_t bytes[LAMINA_KINDS]; /* held or announced, by kind */
    _Atomic uint64_t charged;             /* the part that is surely in the device's `total` */
    _Atomic uint64_t spilled;             /* the part of `bytes` that is managed memory, for lack of physical memory */
    struct lamina_slot_compute compute;
    _Atomic uint64_t hosted; /* the part of `spilled` that is kept on the host */
};

/* `owner` identifies a process even when its pid is reused: bits 0..21 pid, 22..47 start time in clock ticks since
 * boot, 48..62 the low bits of its pid namespace's inode. 0 is a free slot. It is one word, so that a slot is taken and
 * given up in one step. Only processes of the same pid namespace can tell by its pid whether an owner is alive. Bit 63:
 * this process is clearing what a dead owner left. */
struct lamina_slot {
    _Atomic uint64_t owner;
    _Atomic uint64_t image;      /* random number of the program image that took the slot; exec changes it */
    _Atomic uint64_t stack;      /* where that image's stack begins, by which others notice an exec; 0: not known */
    _Atomic uint32_t generation; /* grows with every owner */
    /* A bit per device: it has reserved more than a context takes, until that is known. In the upper half: what it
     * reserved above what a context is likely to take may be taken from it, by clearing the bit. */
    _Atomic uint32_t measures;
    char name[16]; /* of the program, truncated */
    uint8_t reserved2[16];
    /* then device_count x struct lamina_slot_device */
};

/* GPU time of the container. See native/facade/compute/bucket.h for the arithmetic. */
struct lamina_usage_compute {
    _Atomic uint64_t due;       /* the container may launch from this time on; in the past: it has saved up time */
    _Atomic int64_t refund_ns;  /* the part of the arbiter's refund that is in `due` */
    _Atomic uint64_t busy_ns;   /* how long any of its processes had work on the GPU, in total */
    _Atomic uint64_t waited_ns; /* how long threads waited for the share, in total */
    /* Work that was measured and is not yet in `due`, and since when there is some: the arbiter's refund for it comes
     * at the same time. */
    _Atomic uint64_t deferred_ns, deferred_at;
    _Atomic uint64_t used_at;   /* when a process last made a GPU work, where time is not measured; the arbiter asks */
    _Atomic uint64_t launch_ns; /* what a launch takes, on average */
    _Atomic uint64_t occupied_ns; /* how long processes had work that was not seen to be done, in total */
    _Atomic uint64_t pause_ns;    /* how long pauses within its work are; neighbors that heed it wait that long */
    _Atomic uint64_t turns_taken; /* how many of the arbiter's turns it has begun, and until when the last one lasts */
    _Atomic uint64_t turn_until;
    uint64_t reserved[4];
    /* How long processes had work in each of the last milliseconds, added up. The index is the millisecond's number
     * modulo LAMINA_BINS; bucket.h describes the word. */
    _Atomic uint64_t bins[LAMINA_BINS];
};

struct lamina_usage_device {
    char uuid[LAMINA_UUID_BYTES];
    _Atomic uint64_t context_bytes; /* what a context was measured to cost; 0: not measured */
    _Atomic uint64_t refusals;      /* requests over the limit */
    _Atomic uint64_t total;         /* at least what is held; exact unless a process was killed within an update */
    _Atomic uint64_t peak;          /* the most that was held within the limit, contexts at their cost */
    _Atomic uint64_t
        measuring; /* the process that is finding out context_bytes, as in `holder` of struct lamina_share */
    uint64_t reserved[5];
    struct lamina_usage_compute compute;
};

/* An entry for an allocation that processes of the container share: either its owner lets others use it, or another
 * process uses it. The allocation counts once: in its owner's slot while the owner's entry is valid, and by its use
 * entries afterwards. An entry is valid while its process holds its slot: `holder` is the slot's number, its generation
 * << 16, and the role << 48. */
enum lamina_share_role { LAMINA_SHARE_FILLING = 1, LAMINA_SHARE_OWN = 2, LAMINA_SHARE_USE = 3 };

struct lamina_share {
    _Atomic uint64_t holder; /* 0: free */
    _Atomic uint64_t key;    /* identifies the allocation within the container */
    _Atomic uint64_t bytes;
    _Atomic uint32_t device;
    uint32_t reserved;
};

struct lamina_usage {
    uint64_t magic;
    uint32_t version;
    uint32_t device_count;
    uint64_t size; /* of the whole file */
    uint32_t slot_count;
    uint32_t slot_stride;
    uint64_t generation;          /* of the file: differs whenever it is created again */
    _Atomic uint32_t slots_used;  /* no slot from here on was ever taken */
    _Atomic uint32_t sweep;       /* where the next new process starts to look for a dead owner */
    _Atomic uint32_t shares_used; /* no share from here on was ever written */
    uint32_t reserved;
    _Atomic uint64_t figure_requests; /* grows whenever a process asks the agent for its figure */
    struct lamina_usage_device devices[LAMINA_MAX_DEVICES];
    /* then slot_count x slot_stride bytes of slots, then LAMINA_SHARES x struct lamina_share */
};

/* What the agent decides for one device of the container. */
struct lamina_decision {
    _Atomic uint64_t closed;    /* not 0: no launch, because a container of higher priority has work */
    _Atomic uint64_t watched;   /* not 0: others need to know when this container works, even if it has no limit */
    _Atomic uint64_t attention; /* not 0: one of these two is not 0 */
    _Atomic uint64_t
        rate_ppm; /* own share plus what is lent, in millionths of the GPU's time; for the policy `weight` */
    _Atomic int64_t refund_ns;      /* time charged while the GPU worked for others, in total */
    _Atomic uint64_t memory_bytes;  /* the present memory limit; 0: that of `limits` */
    _Atomic uint64_t cores_percent; /* the present share of compute; 0: that of `limits` */
    _Atomic uint64_t blocked_ns;    /* for how long others lately had the GPU while this container had work */
};

/* What the agent decides about memory that is lent on one device, for a container whose limits have `request_bytes`,
 * and the others for every container. Old words lend nothing; see live_limits.h. `window` and `turns` are here because
 * the line of struct lamina_decision is full. */
struct lamina_lending {
    _Atomic uint64_t request_bytes;    /* what is guaranteed at present; 0: that of `limits` */
    _Atomic uint64_t allowed_bytes;    /* what the container may hold at present, what it borrows included */
    _Atomic uint64_t host_bytes;       /* how much of what it borrows it has to keep on the host */
    _Atomic uint64_t neighbors_borrow; /* not 0: others hold borrowed memory on this GPU, which they have to return */
    _Atomic uint64_t window;           /* when the container launches, see launch_window.h; 0: always */
    _Atomic uint64_t turns; /* changes when it may launch although its gate is closed; 0..31: for how many us */
    uint64_t reserved[2];
};

/* What the processes of the first slots use of one device by the driver's figures. The driver lists processes by the
 * pids of the host, which only the agent can assign to slots. Bits 0..31 of a word: KiB; 0: the driver lists no such
 * process, or not what it uses. Bits 32..63: when the agent asked the driver, in ms. A process takes a figure only if
 * the agent asked the driver after the process had asked the agent. */
struct lamina_figures { _Atomic uint64_t slots[LAMINA_FIGURES]; };

/* Whose signals the container heeds on one device: it launches nothing while one of them has work. A word names a file
 * in the directory `neighbors`: bits 0..23, 0 for none; the device of that container: 24..31; and for how many us it
 * may pause: 32..63. Words after the first 0 do not count. */
struct lamina_heeded { _Atomic uint64_t signals[LAMINA_HEEDED]; };

struct lamina_arbiter {
    uint64_t magic;
    uint32_t version;
    uint32_t device_count;
    _Atomic uint64_t heartbeat;  /* when the agent last decided */
    _Atomic uint64_t figures_at; /* when the agent was last ready to tell figures; 0: it tells none */
    uint64_t made_at;            /* when the container's files were made */
    uint64_t reserved[3];
    struct lamina_decision devices[LAMINA_MAX_DEVICES];
    struct lamina_figures figures[LAMINA_MAX_DEVICES];
    struct lamina_lending lendings[LAMINA_MAX_DEVICES];
    struct lamina_heeded heeded[LAMINA_MAX_DEVICES];
};

/* Which processes of the container have work on a device: each has one bit, by the number of its slot. */
struct lamina_signal {
    uint64_t magic;
    uint32_t version;
    uint32_t device_count;
    uint64_t reserved[6];
    _Atomic uint32_t working[LAMINA_MAX_DEVICES];
};

#define LAMINA_LIMITS_BYTES sizeof(struct lamina_limits)
#define LAMINA_SLOT_STRIDE(devices) (sizeof(struct lamina_slot) + (devices) * sizeof(struct lamina_slot_device))
#define LAMINA_USAGE_BYTES(devices)                                                                                    \
    (sizeof(struct lamina_usage) + LAMINA_SLOTS * LAMINA_SLOT_STRIDE(devices) +                                        \
     LAMINA_SHARES * sizeof(struct lamina_share))

#define LAMINA_SHARE_HOLDER(slot, generation, role)                                                                    \
    ((uint64_t)(slot) | ((uint64_t)(generation) << 16) | ((uint64_t)(role) << 48))

#define LAMINA_PID_BITS 22
#define LAMINA_START_BITS 26
#define LAMINA_NS_BITS 15
#define LAMINA_OWNER_CLEARING (UINT64_C(1) << 63)
#define LAMINA_OWNER(pid, start, ns)                                                                                   \
    (((uint64_t)(pid) & ((1u << LAMINA_PID_BITS) - 1)) |                                                               \
     (((uint64_t)(start) & ((1u << LAMINA_START_BITS) - 1)) << LAMINA_PID_BITS) |                                      \
     (((uint64_t)(ns) & ((1u << LAMINA_NS_BITS) - 1)) << 48))

_Static_assert(sizeof(struct lamina_limit) == 128, "layout");
_Static_assert(sizeof(struct lamina_limits) == 64 + 16 * 128, "layout");
_Static_assert(offsetof(struct lamina_limits, devices) == 64, "layout");
_Static_assert(sizeof(struct lamina_slot_device) == 128, "layout: two cache lines");
_Static_assert(offsetof(struct lamina_slot_device, compute) == 64, "layout: a line of its own");
_Static_assert(sizeof(struct lamina_slot) == 64, "layout: one cache line");
_Static_assert(sizeof(struct lamina_usage_device) == 256 + 8 * 128, "layout: four cache lines and the bins");
_Static_assert(offsetof(struct lamina_usage_device, total) == 64, "layout: a line of its own");
_Static_assert(offsetof(struct lamina_usage_device, compute) == 128, "layout: a line of its own");
_Static_assert(sizeof(struct lamina_share) == 32, "layout");
_Static_assert(sizeof(struct lamina_usage) == 64 + 16 * 1280, "layout");
_Static_assert(sizeof(struct lamina_decision) == 64, "layout: one cache line");
_Static_assert(sizeof(struct lamina_lending) == 64, "layout: one cache line");
_Static_assert(sizeof(struct lamina_heeded) == 64, "layout: one cache line");
_Static_assert(sizeof(struct lamina_arbiter) == 64 + 16 * 64 + 16 * 1024 + 16 * 64 + 16 * 64, "layout");
_Static_assert(sizeof(struct lamina_signal) == 64 + 16 * 4, "layout");

#endif
