/* Which process it is: pid and start time in one word, because the kernel gives a pid to another process later. Slots
 * of the machine file keep it, with the bit SIMGPU_IDENTITY_READY once their cells are ready. */
#ifndef SIMGPU_IDENTITY_H
#define SIMGPU_IDENTITY_H

#include <stdbool.h>
#include <stdint.h>

uint64_t identity_of_self(void);
uint32_t identity_pid(uint64_t identity);
/* Whether the process has ended. False also when /proc does not say. */
bool identity_is_dead(uint64_t identity);

#endif
