#include "cuda/mps_client.h"

#include "shared/assertion.h"
#include "shared/facade.h"

#include <stdio.h>
#include <stdlib.h>

static const char variable[] = "CUDA_MPS_ACTIVE_THREAD_PERCENTAGE";

static int is_within(const char *text, uint32_t percent)
{
    double own = text != NULL ? strtod(text, NULL) : 0;
    return own > 0 && own <= percent;
}

void mps_client_prepare(void)
{
    const struct facade *facade = facade_open();
    const struct lamina_limit *limit = &facade->limits.devices[0];
    char text[16];
    /* One GPU: a client has one daemon, and a daemon serves one GPU. */
    if (facade->limits.device_count != 1 || limit->compute_policy != LAMINA_COMPUTE_THREADS)
        return;
    ASSERT(limit->cores_percent >= 1 && limit->cores_percent <= 100);
    /* The environment is written only where it has to be, because other threads may be reading it. */
    if (is_within(getenv(variable), limit->cores_percent))
        return;
    snprintf(text, sizeof text, "%u", limit->cores_percent);
    setenv(variable, text, 1);
}
