/* The facade's own calls of the driver may happen while the program captures, in this thread or another. Between begin
 * and end of a neutral section they are allowed and change no capture, as the driver's documentation says of
 * CU_STREAM_CAPTURE_MODE_RELAXED. */
#ifndef LAMINA_CAPTURE_MODE_H
#define LAMINA_CAPTURE_MODE_H

#include "cuda/hooks.h"

static inline CUstreamCaptureMode neutral_begin(void)
{
    CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_RELAXED;
    REAL(cuThreadExchangeStreamCaptureMode)(&mode);
    return mode;
}

static inline void neutral_end(CUstreamCaptureMode before)
{
    REAL(cuThreadExchangeStreamCaptureMode)(&before);
}

#endif
