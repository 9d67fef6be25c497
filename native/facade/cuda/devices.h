/* CUDA's ordinals and the entries of the limits. The real driver shows only the granted GPUs, because it is initialized
 * in an environment whose CUDA_VISIBLE_DEVICES names them; so ordinals, handles and locations need no translation. */
#ifndef LAMINA_DEVICES_H
#define LAMINA_DEVICES_H

#include "cuda_min.h"
#include "lamina_layout.h"

#include <stdbool.h>
#include <stddef.h>

/* Writes the UUIDs that the driver shall show: those of the limits that the program's own CUDA_VISIBLE_DEVICES selects
 * (NULL: it is not set), in its order. As in CUDA, the first invalid entry ends the list. Pure. False when `size` is
 * too small. */
bool devices_visible(const struct lamina_limits *limits, const char *wanted, char *text, size_t size);

/* Finds out which entry each ordinal is, once the driver is initialized. False when the driver shows a GPU that was not
 * granted. */
bool devices_map(void);

/* The entry behind an ordinal (a CUdevice), or -1. */
int device_entry(int ordinal);

/* The entry whose memory a location is in, or -1 for host memory and for GPUs that do not exist. */
int device_of_location(const CUmemLocation *location);

/* The ordinal of an entry; the entry's own number while the driver does not show it. */
int device_ordinal(int entry);

#endif
