/* CUDA's ordinals and the entries of the limits. The real driver itself shows only the granted GPUs, because it is
 * initialised under a CUDA_VISIBLE_DEVICES that names them; so ordinals, handles and locations need no translation. */
#ifndef LAMINA_DEVICES_H
#define LAMINA_DEVICES_H

#include "cuda_min.h"
#include "lamina_layout.h"

#include <stdbool.h>
#include <stddef.h>

/* Writes the UUIDs that the driver shall show: those of the limits, narrowed and ordered by what the program's own
 * CUDA_VISIBLE_DEVICES says (NULL: unset) of them. As in CUDA, the first entry that means nothing ends the list. Pure.
 * False when `size` is too small. */
bool devices_visible(const struct lamina_limits *limits, const char *wanted, char *text, size_t size);

/* After the driver is initialised: finds out which entry each ordinal is. False when the driver shows a GPU that was
 * not granted. */
bool devices_map(void);

/* The entry behind an ordinal (a CUdevice), or -1. */
int device_entry(int ordinal);

/* The entry in whose memory a location lies, all or a part of it, or -1 for host memory and GPUs that are not there. */
int device_of_location(const CUmemLocation *location);

/* The ordinal of an entry; the entry's own number while the driver does not show it. */
int device_ordinal(int entry);

#endif
