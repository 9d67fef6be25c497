/* When a container launches, where several that keep a GPU busy do so one after the other: pure functions of a word and
 * the time. src/lamina/enforcement/launch_windows.py decides about windows and says why there are some.
 *
 * The word has the window's bounds in us of a period of CLOCK_MONOTONIC: from | until << 32. Any other word, such as 0,
 * is no window, and the container launches always.
 *
 * Example: from 5 to 10 ms. At 3 ms of the period a batch waits for 2 ms. At 9.5 ms one of 0.8 ms begins, because more
 * than half of it fits, and one of 1.2 ms waits for the next period. So windows are as long as they should be on
 * average. */
#ifndef LAMINA_LAUNCH_WINDOW_H
#define LAMINA_LAUNCH_WINDOW_H

#include <stdint.h>

#define WINDOW_PERIOD_NS UINT64_C(20000000)

/* For how many ns a batch of so many ns has to wait; 0: it may begin. */
uint64_t launch_window_wait(uint64_t word, uint64_t now, uint64_t ns);

/* How many of `launches`, which take `each` ns, fit into the rest of the window; at least 1, and all outside of it. */
uint32_t launch_window_fit(uint64_t word, uint64_t now, uint64_t each, uint32_t launches);

#endif
