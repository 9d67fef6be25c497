/* The container's share of each GPU's time, which its processes keep together in the usage file, and what the arbiter
 * decides about it. There is no lock: each step changes one atomic word. A step that is lost with a killed process
 * makes the container wait longer at most.
 *
 * Example: a container with 50 % of a GPU has two processes, and `due` is 100 ms.
 *
 *   at 100 ms    A takes 1 ms for a batch: it is not in debt, so `due` becomes 102 ms and A launches.
 *   at 101 ms    B tries to take 1 ms: the container is in debt for 1 ms. B waits as long and tries again.
 *   at 101.5 ms  A's batch has taken 1.4 ms. A adds this work to the bins of the milliseconds in which it ran. B worked
 *                in none of them, so all of it is charged; the correction of 0.4 ms moves `due` to 102.8 ms.
 *   at 102 ms    B tries again: 0.8 ms are left to wait.
 *
 * Unless the limit is a cap, the arbiter may lend time that other containers do not use: at a rate of 100 % no process
 * waits. A decision that is 300 ms old no longer counts. */
#ifndef LAMINA_TIME_SHARE_H
#define LAMINA_TIME_SHARE_H

#include "shared/live_limits.h"

#include <stdbool.h>
#include <stdint.h>

/* Whether launches on this GPU are measured: there is a limit, or another container needs to know. */
bool time_share_is_measured(int device, uint64_t now);

/* Whether a container of higher priority has the GPU. */
bool time_share_is_closed(int device, uint64_t now);

/* Whether the container may launch for a moment although its gate is closed: a small part of the time is left to lower
 * priorities. */
bool time_share_has_turn(int device, uint64_t now);

/* Flags that are not 0 when a launch has to pass the gate: for a GPU that is measured, and for one that is not. If the
 * flag is set but the arbiter no longer decides, so that it would stay set, a flag that is always 0 is returned. */
extern const _Atomic uint64_t time_share_zero_flag __attribute__((visibility("hidden")));
const _Atomic uint64_t *time_share_closed_flag(int device, uint64_t now);
const _Atomic uint64_t *time_share_attention_flag(int device, uint64_t now);

/* Charges `ns` of work when the container is not in debt, and returns 0. Otherwise changes nothing and returns for how
 * many ns it is in debt. Applies the arbiter's refunds first. */
uint64_t time_share_take(int device, uint64_t now, uint64_t ns);

/* Charges `ns` more or, when negative, less. Next to other containers more is charged when the arbiter has decided with
 * knowledge of it: a part of it may have been the turns of others, and its refund then comes at the same time. */
void time_share_correct(int device, uint64_t now, int64_t ns);

/* Notes that this process had work on the GPU in that time, `density` of it, and returns for how many ns the container
 * is charged. `brief`: see bucket.h. */
uint64_t time_share_add_work(int device, uint64_t now, uint64_t from, uint64_t to, double density, bool brief);

/* When the container launches on this GPU; see launch_window.h. */
uint64_t time_share_window(int device, uint64_t now);

/* Notes for how long the process had work that was not seen to be done. */
void time_share_note_occupied(int device, uint64_t ns);

/* Notes what a launch takes on average. */
void time_share_note_launch(int device, uint64_t ns);

/* Timestamps about this process, which the arbiter reads. */
void time_share_note_request(int device, uint64_t now);
void time_share_note_wait(int device, uint64_t now, uint64_t ns);
void time_share_note_busy(int device, uint64_t since);

/* Notes that the container uses the GPU, where its time is not measured: when it begins, and when the arbiter asks. */
void time_share_note_use(int device, uint64_t now);

#endif
