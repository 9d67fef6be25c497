/* Memory that is lent, on GPUs where a container may hold more than it is guaranteed.
 *
 * What a container borrows is managed memory (spill.h), so the driver moves it to the host as soon as a neighbor
 * allocates. Memory that cannot be managed stays within what is guaranteed. So every container gets what it is
 * guaranteed, whatever the borrowers and the agent do.
 *
 * Example: a GPU has 16 GiB. A and B are guaranteed 8 GiB each, and A may hold 16. B is idle, so A holds 8 GiB as plain
 * and 7 as managed memory. B allocates 6 GiB: the driver moves 5 of A's 7 GiB to the host and gives B its memory. */
#ifndef LAMINA_LENDING_H
#define LAMINA_LENDING_H

#include "cuda_min.h"
#include "lamina_layout.h"

#include <stdbool.h>

/* As reserve(), for memory that cannot be managed: where memory is lent, also refused beyond what is guaranteed. */
CUresult reserve_fixed(int device, enum lamina_kind kind, uint64_t bytes);
CUresult reserve_fixed_quietly(int device, enum lamina_kind kind, uint64_t bytes);

/* What could be reserved in this way. */
uint64_t reserve_available_fixed(int device);

/* For calls that the driver refused for lack of memory: whether to make the call again, after a short pause. It is
 * while neighbors have to return memory, for at most LENDING_WAIT_MS since the first call, at which *since is 0. */
bool lending_wait(int device, uint64_t *since);

enum { LENDING_WAIT_MS = 2000 };

#endif
