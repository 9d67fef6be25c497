/* Atomic use of the 128-bit words of the machine file. */
#ifndef SIMGPU_PAIR_H
#define SIMGPU_PAIR_H

#include "simgpu_layout.h"

#include <stdbool.h>

typedef unsigned __int128 pair_bits __attribute__((may_alias));

static inline bool pair_swap(struct simgpu_pair *at, struct simgpu_pair old, struct simgpu_pair new)
{
    pair_bits was = (pair_bits)old.high << 64 | old.low, is = (pair_bits)new.high << 64 | new.low;
    return __sync_bool_compare_and_swap((pair_bits *)at, was, is);
}

/* Both halves at one moment. Every change of such a word changes its high half (a step number), so a high half that
 * is the same before and after belongs to the low half between. */
static inline struct simgpu_pair pair_load(struct simgpu_pair *at)
{
    for (;;) {
        struct simgpu_pair seen;
        seen.high = simgpu_half(&at->high);
        seen.low = simgpu_half(&at->low);
        if (simgpu_half(&at->high) == seen.high)
            return seen;
    }
}

#endif
