/* Events: moments in the work of a stream. */
#ifndef SIMGPU_EVENT_H
#define SIMGPU_EVENT_H

#include "driver.h"

struct capture *event_capture(CUevent event);
uint32_t event_gpu(CUevent event);
void event_wait(CUevent event);
/* Records the stream's present end, as cuEventRecord does outside of captures. */
void event_set(CUevent event, CUstream stream);

#endif
