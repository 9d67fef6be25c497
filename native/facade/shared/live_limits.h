/* What a container may use now. It may be resized while it runs: the agent, which alone writes `arbiter`, says there
 * what counts instead of `limits`. */
#ifndef LAMINA_LIVE_LIMITS_H
#define LAMINA_LIVE_LIMITS_H

#include "shared/usage_slots.h"

#include <stdbool.h>

/* CLOCK_MONOTONIC in ns. */
uint64_t monotonic_ns(void);

/* Whether the arbiter's decisions are current. If they are old, the agent is not running and nothing is known about
 * other containers. If they are from the future, they are from before the machine was restarted. */
bool arbiter_is_current(const struct lamina_arbiter *arbiter, uint64_t now);

/* Bytes on a device: the limit. */
uint64_t live_memory(const struct account *account, uint32_t device);

/* Whether the container may borrow memory beyond what is guaranteed. Constant. */
bool may_borrow(const struct account *account, uint32_t device);

/* What of the limit may be memory that stays on the GPU; the rest becomes managed. Where memory is lent, it is what is
 * guaranteed, and memory that cannot be managed never exceeds it. */
uint64_t live_physical(const struct account *account, uint32_t device);

/* What the container may hold now: what is guaranteed, and what the agent lends while its heartbeat is new. Never more
 * than the limit. */
uint64_t live_allowed(const struct account *account, uint32_t device);

/* Percent of a device's time, at least 1 where the policy is not `none`. */
uint32_t live_cores(const struct account *account, uint32_t device, uint64_t now);

#endif
