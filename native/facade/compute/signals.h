/* Signals of work between the containers of a GPU. A container sets a bit in its own `signal` as soon as a process is
 * about to launch, and clears it when that work is seen to be done. A neighbor of lower priority looks at the word
 * before it launches a batch, so it makes room within one batch. The arbiter decides whose signals a container heeds.
 *
 * A neighbor's file may be anything and may be cut off, and a process that reads a page that is gone is killed. So the
 * word is not read: the kernel is asked whether it is 0. A killed process leaves its bit, until the agent finds that no
 * process has work.
 *
 * Example: a request begins while a neighbor's batch of 0.7 ms is on the GPU. The request's first launch sets the bit.
 * The neighbor's next batch waits. The GPU finishes the one that it has, and works for the request alone. When the
 * program has waited for the request, the bit is cleared, and 0.1 ms later the neighbor launches again. */
#ifndef LAMINA_SIGNALS_H
#define LAMINA_SIGNALS_H

#include <stdbool.h>
#include <stdint.h>

/* This process has work on the device, or no more. */
void signal_work(int device, bool works, uint64_t now);

/* Whether a neighbor whose signal is heeded has work, or pauses within its work. */
bool signals_show_work(int device, uint64_t now);

/* Whether a neighbor may soon have work for which the container makes room: not after it was idle for long. The first
 * request after that waits for the batches that the GPU has. */
bool signals_need_room(int device, uint64_t now);

void signals_after_fork(void);

#endif
