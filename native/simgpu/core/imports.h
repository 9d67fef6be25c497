/* Memory of one process that others have open. It stays on the GPU, charged to its owner's slot, until the last of them
 * lets go, also when the owner frees it or ends before. An allocation is named by its owner's identity and a number. */
#ifndef SIMGPU_IMPORTS_H
#define SIMGPU_IMPORTS_H

#include "machine.h"

typedef struct {
    uint64_t owner, number;
    uint32_t gpu, slot, mib; /* slot: the owner's */
} imported;

/* False when the table is full. `user` is the identity of the process that opens it. */
bool imports_open(const machine *m, const imported *what, uint64_t user);
void imports_close(const machine *m, const imported *what, uint64_t user);

/* The owner frees it. True when it is still open: then it is charged until it is closed. */
bool imports_linger(const machine *m, const imported *what);

/* What others have open of an owner that has ended. */
uint32_t imports_kept(const machine *m, uint32_t gpu, uint64_t owner);

/* Closes what dead processes had open. */
void imports_sweep(const machine *m, bool (*is_dead)(uint64_t identity));

#endif
