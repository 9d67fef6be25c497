/* Making and destroying contexts, and charging what they cost.
 *
 * A context is charged before it is made, with what one is known to cost on that GPU, and corrected afterwards by the
 * driver's own figure for this process. The first process of a container to make one finds out the cost; meanwhile
 * others wait for the result. No context is ever made just to measure. */
#ifndef LAMINA_CONTEXTS_H
#define LAMINA_CONTEXTS_H

#include "cuda_min.h"

/* Charges a context that was made without our knowledge, for example by graphics interoperation. Returns its device. */
int contexts_adopt(CUcontext context, int device);

/* Replaces guesses of what contexts cost by the driver's figure, at most once a second and one at a time. */
void contexts_correct_guesses(void);

/* Resets the lock, in a forked child. */
void contexts_after_fork(void);

#endif
