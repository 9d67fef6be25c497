/* Events: moments in the work of a stream. */
#ifndef SIMGPU_EVENT_H
#define SIMGPU_EVENT_H

#include "cuda/exports.h"

#include <stdint.h>

struct capture *event_capture(CUevent event);
uint32_t event_gpu(CUevent event);
void event_wait(CUevent event);
/* What the stream gets from now on comes after the event. Both are on one GPU. */
void event_hold(CUevent event, CUstream stream);
/* Records the stream's current end, as cuEventRecord does outside captures. */
void event_record(CUevent event, CUstream stream);

#endif
