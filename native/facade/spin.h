/* A lock between the threads of one process, for a few instructions at a time. */
#ifndef LAMINA_SPIN_H
#define LAMINA_SPIN_H

#include <sched.h>
#include <stdatomic.h>

typedef atomic_int spin_t;

static inline void spin_lock(spin_t *lock)
{
    while (atomic_exchange_explicit(lock, 1, memory_order_acquire) != 0)
        for (int tries = 0; atomic_load_explicit(lock, memory_order_relaxed) != 0; tries++)
            if (tries > 64)
                sched_yield();
}

static inline void spin_unlock(spin_t *lock)
{
    atomic_store_explicit(lock, 0, memory_order_release);
}

#endif
