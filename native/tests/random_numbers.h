/* Random numbers, the same ones for the same seed: xorshift, whose state must not be 0. */
#ifndef DRAWN_H
#define DRAWN_H

#include <stdint.h>

static uint64_t state;

static uint64_t next(uint64_t below)
{
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return state % below;
}

#endif
