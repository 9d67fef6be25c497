/* Text answers. */
#ifndef SIMGPU_NVML_TEXT_H
#define SIMGPU_NVML_TEXT_H

#include "nvml/exports.h"

/* Copies a string as NVML does: INSUFFICIENT_SIZE when it does not fit. */
nvmlReturn_t text_copy(char *to, unsigned int length, const char *text);

#endif
