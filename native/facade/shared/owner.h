/* Who owns a slot, and whether that process is still alive. */
#ifndef LAMINA_OWNER_H
#define LAMINA_OWNER_H

#include "lamina_layout.h"

#include <stdbool.h>

struct identity {
    uint64_t owner; /* as in struct lamina_slot */
    uint64_t image;
    uint64_t stack;
    char name[16];
    bool proc_is_ours;  /* /proc shows the pids of our own namespace */
    bool has_host_pids; /* our pids are those of the host, as the driver knows them */
};

/* The calling process. Reads a few files below /proc, so never call it on a hot path. */
struct identity identity_of_this_process(void);

/* What /proc says about a process. */
struct process_stat {
    char state;
    unsigned long long threads, start, stack;
};

/* Parses the text of /proc/<pid>/stat. Pure. */
bool process_stat_parse(const char *text, struct process_stat *stat);

/* True only when the owner certainly holds no device memory any more: the process is gone, its pid belongs to another
 * process, or it executes another program image. `self` is the calling process. False for every owner in another pid
 * namespace, whose pid means nothing here. */
bool owner_is_dead(uint64_t owner, uint64_t stack, const struct identity *self);

/* Whether the owner lives in another pid namespace. */
static inline bool owner_is_in_other_namespace(uint64_t owner, const struct identity *self)
{
    return (owner << 1) >> 49 != (self->owner << 1) >> 49;
}

static inline int owner_pid(uint64_t owner)
{
    return (int)(owner & ((1u << LAMINA_PID_BITS) - 1));
}

#endif
