/* A lock between the threads of one process, held for a few instructions at a time. */
#ifndef LAMINA_SPIN_H
#define LAMINA_SPIN_H

#include <sched.h>
#include <stdatomic.h>

typedef atomic_int spin_t;

enum { SPIN_TRIES = 64 }; /* before the thread lets others run, one of which may hold the lock */

static inline void spin_lock(spin_t *lock)
{
    /* Acquire: what the last holder wrote is visible from here on. It pairs with the release in spin_unlock. */
    while (atomic_exchange_explicit(lock, 1, memory_order_acquire) != 0)
        /* Relaxed: only waits for a chance; the exchange above decides. */
        for (int tries = 0; atomic_load_explicit(lock, memory_order_relaxed) != 0; tries++)
            if (tries > SPIN_TRIES)
                sched_yield();
}

static inline void spin_unlock(spin_t *lock)
{
    /* Release: what this holder wrote is visible to the next one. */
    atomic_store_explicit(lock, 0, memory_order_release);
}

#endif
