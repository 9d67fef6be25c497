#include "memory/agent_figures.h"

#include "cuda/process.h"
#include "memory/figure_answer.h"
#include "memory/reserve.h"
#include "shared/assertion.h"
#include "shared/facade.h"

#include <stdatomic.h>
#include <time.h>

/* An agent writes every 10 to 25 ms that it is ready. Where it is, it also answers, unless the driver hangs. */
enum { STALE_MS = 1000, WAIT_MS = 5000, TRIES = 3 };

static uint64_t now_ms(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000;
}

static bool agent_is_ready(void)
{
    uint64_t ready = atomic_load(&facade_open()->arbiter->figures_at) / 1000000, now = now_ms();
    return ready != 0 && (now < ready ? ready - now : now - ready) < STALE_MS;
}

bool agent_figures_are_available(void)
{
    return process_slot_if_any() != NULL && !process_has_host_pids() && agent_is_ready();
}

/* The word of this process, or NULL when its slot is none of those that the agent looks at. */
static const _Atomic uint64_t *own_word(int device)
{
    const struct facade *facade = facade_open();
    struct lamina_slot *slot = process_slot_if_any();
    ASSERT(device >= 0 && device < LAMINA_MAX_DEVICES);
    if (slot == NULL)
        return NULL;
    uint32_t number = account_holder(&facade->account, slot) & 0xffff;
    return number < LAMINA_FIGURES ? &facade->arbiter->figures[device].slots[number] : NULL;
}

static enum figure_answer ask_agent(int device, uint64_t *bytes)
{
    const struct timespec moment = {.tv_nsec = 1000000};
    const _Atomic uint64_t *word = own_word(device);
    enum figure_answer answer = FIGURE_NOT_YET;
    if (word == NULL)
        return FIGURE_UNKNOWN;
    const uint64_t asked = now_ms();
    nanosleep(&moment, NULL); /* so that the time of the answer is later */
    atomic_fetch_add(&facade_open()->account.usage->figure_requests, 1);
    for (int waited = 0; answer == FIGURE_NOT_YET && waited < WAIT_MS && agent_is_ready(); waited++) {
        nanosleep(&moment, NULL);
        answer = figure_answer(atomic_load(word), asked, now_ms(), bytes);
    }
    return answer;
}

bool agent_figure(int device, uint64_t *bytes, uint64_t *held)
{
    for (int tries = 0; tries < TRIES; tries++) {
        *held = reserved_by_process(device);
        if (!agent_figures_are_available() || ask_agent(device, bytes) != FIGURE_KNOWN)
            return false;
        if (reserved_by_process(device) == *held)
            return true;
    }
    return false;
}
