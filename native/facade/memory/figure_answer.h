/* The agent's answer to a process that asked what it uses by the driver's figure. Pure.
 *
 * Example: a process asks at 5000 ms. The word says 4990 ms: that figure is older than the question, so it is none. At
 * 5012 ms the word says 5004 ms and 310272 KiB: the driver was asked in between, so the process uses 303 MiB. */
#ifndef LAMINA_FIGURE_ANSWER_H
#define LAMINA_FIGURE_ANSWER_H

#include <stdint.h>

enum figure_answer { FIGURE_NOT_YET, FIGURE_UNKNOWN, FIGURE_KNOWN };

/* `word` is as in struct lamina_figures; times are CLOCK_MONOTONIC in ms. Only an answer from after `asked` up to `now`
 * is one: what an earlier process of the slot left there is not, though times have 32 bits. */
static inline enum figure_answer figure_answer(uint64_t word, uint64_t asked, uint64_t now, uint64_t *bytes)
{
    uint32_t age = (uint32_t)now - (uint32_t)(word >> 32), kib = (uint32_t)word;
    if (now <= asked || age >= now - asked)
        return FIGURE_NOT_YET;
    if (kib == 0)
        return FIGURE_UNKNOWN;
    *bytes = (uint64_t)kib << 10;
    return FIGURE_KNOWN;
}

#endif
