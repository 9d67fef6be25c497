/* A place to copy from or to, in any kind of memory. */
#ifndef SIMGPU_PLACE_H
#define SIMGPU_PLACE_H

#include "cuda/memory.h"

struct place {
    char *at;
    size_t length;         /* how many bytes there are from here on */
    size_t stored;         /* how many of them are kept; the others read as zero */
    struct allocation *of; /* NULL for host memory */
};

/* The address may be one of pinned host memory. */
CUresult place_of_device(CUdeviceptr at, struct place *p);
CUresult place_of_array(CUarray array, size_t offset, struct place *p);
struct place place_of_host(const void *at);
/* Device memory if the address is one, otherwise host memory. */
struct place place_of_unified(CUdeviceptr at);
CUresult place_move(struct place *p, size_t offset);

/* INVALID_VALUE when the place has fewer bytes. */
CUresult place_copy(struct place to, struct place from, size_t bytes);
CUresult place_fill(struct place to, const void *pattern, size_t width, size_t count);

#endif
