#include "compute/launch_window.h"

#include "shared/assertion.h"

#include <stdbool.h>

#define NS_PER_US 1000

struct window { uint64_t from, until, phase; };

/* False without a window. */
static bool read_window(uint64_t word, uint64_t now, struct window *window)
{
    *window = (struct window){(word & UINT32_MAX) * NS_PER_US, (word >> 32) * NS_PER_US, now % WINDOW_PERIOD_NS};
    return window->from < window->until && window->until <= WINDOW_PERIOD_NS;
}

static bool is_inside(const struct window *window)
{
    return window->phase >= window->from && window->phase < window->until;
}

uint64_t launch_window_wait(uint64_t word, uint64_t now, uint64_t ns)
{
    struct window window;
    if (!read_window(word, now, &window))
        return 0;
    uint64_t length = window.until - window.from;
    if (is_inside(&window) && (ns < length ? ns : length) / 2 <= window.until - window.phase)
        return 0;
    uint64_t wait = (WINDOW_PERIOD_NS + window.from - window.phase) % WINDOW_PERIOD_NS;
    ASSERT(wait < WINDOW_PERIOD_NS);
    return wait > 0 ? wait : WINDOW_PERIOD_NS;
}

uint32_t launch_window_fit(uint64_t word, uint64_t now, uint64_t each, uint32_t launches)
{
    struct window window;
    ASSERT(launches >= 1);
    if (each == 0 || !read_window(word, now, &window) || !is_inside(&window))
        return launches;
    uint64_t fit = (window.until - window.phase) / each;
    if (fit == 0)
        return 1; /* no batch is smaller */
    return fit < launches ? (uint32_t)fit : launches;
}
