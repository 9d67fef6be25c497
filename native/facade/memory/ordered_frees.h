/* Memory that was freed in the order of a stream. Work submitted before may still use it, so it counts until the GPU
 * has come to the free: an event behind the free says so.
 *
 * Example: a kernel of 3 s runs in a stream, and 2000 MiB are freed behind it. The driver accepts the free at once. For
 * 3 s the 2000 MiB still count, and an allocation that needs them is refused. When the program has waited for the
 * stream, asks what is free, or would be refused again, the event has happened and they no longer count. */
#ifndef LAMINA_ORDERED_FREES_H
#define LAMINA_ORDERED_FREES_H

#include "cuda_min.h"
#include "memory/blocks.h"

/* The driver has accepted a free of the block in the stream. */
void ordered_frees_add(const struct block *block, CUstream stream);

/* Releases what the GPU has freed since. */
void ordered_frees_collect(void);

/* The driver has destroyed the context: all of its work is over. */
void ordered_frees_end_context(CUcontext context);

/* Drops all, in a forked child. */
void ordered_frees_after_fork(void);

#endif
