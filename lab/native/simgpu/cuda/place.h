/* A place to copy from or to, in any kind of memory. */
#ifndef SIMGPU_PLACE_H
#define SIMGPU_PLACE_H

#include "cuda/memory.h"

typedef struct {
    char *at;
    size_t length;  /* how many bytes there are from here on */
    size_t stored;  /* how many of them are kept; the others read as zero */
    allocation *of; /* NULL for host memory */
} place;

/* The address may be one of pinned host memory. */
CUresult place_of_device(CUdeviceptr at, place *p);
CUresult place_of_array(CUarray array, size_t offset, place *p);
place place_of_host(const void *at);
/* Device memory if the address is one, otherwise host memory. */
place place_of_unified(CUdeviceptr at);
CUresult place_move(place *p, size_t offset);

/* INVALID_VALUE when the place has fewer bytes. */
CUresult place_copy(place to, place from, size_t bytes);
CUresult place_fill(place to, const void *pattern, size_t width, size_t count);

#endif
