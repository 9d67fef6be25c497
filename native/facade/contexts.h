/* The contexts of this process: which device each is on, and what it costs.
 *
 * A context is charged before it is made, with what one is known to cost on that GPU, and corrected afterwards by the
 * driver's own figure for this process. The first process of a container to make one finds the cost out; meanwhile
 * others wait for the result. No context is ever made just to measure. */
#ifndef LAMINA_CONTEXTS_H
#define LAMINA_CONTEXTS_H

#include "cuda_min.h"

#include <stdint.h>

/* The device of the calling thread's current context, or -1 without one. Fast for a context seen before. */
int context_device(CUcontext *context);

/* Forgets all contexts, in a forked child. */
void contexts_forget(void);

/* What the driver says that this process, or everybody, uses on a device in bytes; by NVML. */
int figure_of_process(int device, uint64_t *bytes);
int figure_of_device(int device, uint64_t *bytes);
void figure_forget(void);

#endif
