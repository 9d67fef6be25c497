/* Checking the two files of a container. Pure: bytes in, verdict out. */
#ifndef LAMINA_LIMITS_H
#define LAMINA_LIMITS_H

#include "lamina_layout.h"

/* NULL when `data` is a complete, valid limits file; otherwise what is wrong with it. */
const char *limits_check(const void *data, size_t size);

/* NULL when the usage file belongs to these limits; otherwise what is wrong with it. */
const char *usage_check(const struct lamina_usage *usage, size_t size, const struct lamina_limits *limits);

/* The checksum that a limits file must carry. */
uint64_t limits_checksum(const struct lamina_limits *limits);

/* The index of a GPU's entry, or -1. UUIDs are compared without their "GPU-" or "MIG-". */
int limits_find(const struct lamina_limits *limits, const char *uuid);

#endif
