/* What this process uses by the driver's figure, as the agent tells it.
 *
 * In a container of its own pid namespace, a process does not find itself in the driver's list, which has the pids of
 * the host. The agent finds it there and writes its figure into the `arbiter` file, which processes only read. */
#ifndef LAMINA_AGENT_FIGURES_H
#define LAMINA_AGENT_FIGURES_H

#include <stdbool.h>
#include <stdint.h>

/* Whether there is an agent to ask, and a need for it: a process with the host's pids finds itself in the list. */
bool agent_figures_are_available(void);

/* Asks the agent and waits for its answer, for some 10 ms as a rule. `held` is what the account has of this process at
 * the moment of the figure. False when the agent does not answer, when the driver does not say what the process uses,
 * or when other threads kept on allocating and freeing memory. */
bool agent_figure(int device, uint64_t *bytes, uint64_t *held);

#endif
