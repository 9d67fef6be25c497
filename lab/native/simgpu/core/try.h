/* Calls that may fail. */
#ifndef SIMGPU_TRY_H
#define SIMGPU_TRY_H

/* Ends the calling function with the error of a call that failed; success is 0 in CUDA and in NVML. Not between taking
 * and releasing a lock, which would stay locked. */
#define TRY(call)                                                                                                      \
    do {                                                                                                               \
        __typeof__(call) call_result = (call);                                                                         \
        if (call_result != 0)                                                                                          \
            return call_result;                                                                                        \
    } while (0)

#endif
