/* Moving bytes between host and device memory. */
#ifndef SIMGPU_COPY_H
#define SIMGPU_COPY_H

#include "memory.h"

/* A place that bytes can be taken from or put to, whatever memory it is in. */
typedef struct {
    char *at;
    size_t length;  /* how many bytes there are from here on */
    size_t stored;  /* how many of them are kept; the others read as zero */
    allocation *of; /* NULL for host memory */
} place;

CUresult place_device(CUdeviceptr at, place *p);
CUresult place_array(CUarray array, size_t offset, place *p);
place place_host(const void *at);
place place_unified(CUdeviceptr at);
/* INVALID_VALUE when either has fewer than `bytes`. */
CUresult copy_bytes(place to, place from, size_t bytes);
CUresult set_bytes(place to, const void *pattern, size_t width, size_t count);

/* The start of every transfer: a context, and no capture in progress on the stream. Synchronous transfers wait for
 * the device, asynchronous ones only happen in their stream's order. */
CUresult transfer_start(bool wait);
/* True when the stream is recording: then the transfer is a node of its graph and does not happen now. */
bool transfer_captured(CUstream stream, int node_type, CUresult *result);

#endif
