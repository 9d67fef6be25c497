/* FNV-1a of a text: the same number for the same text on every machine. */
#ifndef SIMGPU_HASH_H
#define SIMGPU_HASH_H

#include <stddef.h>
#include <stdint.h>

#define HASH_SEED 0xcbf29ce484222325ull

static inline uint64_t hash_text(uint64_t seed, const char *text, size_t length)
{
    for (size_t i = 0; i < length; i++)
        seed = (seed ^ (unsigned char)text[i]) * 0x100000001b3ull;
    return seed;
}

#endif
