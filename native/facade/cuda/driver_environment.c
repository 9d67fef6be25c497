#include "cuda/driver_environment.h"

#include "cuda/devices.h"
#include "cuda/redirect.h"
#include "shared/assertion.h"

#include <dlfcn.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static bool given;

/* An answer. The driver may keep it, as it may keep what getenv returns, so answers stay; there are few. */
struct answer {
    struct answer *next;
    char text[];
};
static struct answer *_Atomic answers;

/* An answer with this text, or `otherwise` without memory. */
static const char *keep_text(const char *text, const char *otherwise)
{
    struct answer *first = atomic_load(&answers);
    for (struct answer *each = first; each != NULL; each = each->next)
        if (strcmp(each->text, text) == 0)
            return each->text;
    struct answer *made = malloc(sizeof *made + strlen(text) + 1);
    if (made == NULL)
        return otherwise;
    strcpy(made->text, text);
    made->next = first;
    while (!atomic_compare_exchange_weak(&answers, &made->next, made)) {
    }
    return made->text;
}

/* The GPUs of the limits that the container has, in the order of the limits. It may lack some that containers of the
 * same account have, and the driver shows no GPU after the first one of a list that is not there. */
static bool in_container(const struct lamina_limits *limits, char text[LAMINA_MAX_DEVICES * LAMINA_UUID_BYTES])
{
    const char *had = getenv("NVIDIA_VISIBLE_DEVICES");
    size_t used = 0;
    text[0] = 0;
    for (uint32_t i = 0; had != NULL && i < limits->device_count && i < LAMINA_MAX_DEVICES; i++)
        if (strstr(had, limits->devices[i].uuid) != NULL)
            used += (size_t)snprintf(text + used, LAMINA_UUID_BYTES, "%s%s", used ? "," : "", limits->devices[i].uuid);
    return used > 0;
}

static const char *choose_devices(const struct lamina_limits *limits, const char *own)
{
    char text[LAMINA_MAX_DEVICES * LAMINA_UUID_BYTES];
    if (own == NULL && in_container(limits, text))
        return keep_text(text, "");
    return devices_visible(limits, own, text, sizeof text) ? keep_text(text, "") : "";
}

/* One GPU: a client has one daemon, and a daemon serves one GPU. */
static bool is_client(const struct lamina_limits *limits)
{
    return limits->device_count == 1 && limits->devices[0].compute_policy == LAMINA_COMPUTE_THREADS;
}

static bool is_within(const char *text, uint32_t percent)
{
    double own = text != NULL ? strtod(text, NULL) : 0;
    return own > 0 && own <= percent;
}

/* A program may have removed the variable or raised it; a smaller part of its own is left alone. */
static const char *choose_percentage(const struct lamina_limits *limits, const char *own)
{
    uint32_t percent = limits->devices[0].cores_percent;
    char text[16];
    ASSERT(percent >= 1 && percent <= 100);
    if (is_within(own, percent))
        return own;
    snprintf(text, sizeof text, "%u", percent);
    return keep_text(text, "1");
}

/* What the driver calls as getenv. */
static char *driver_getenv(const char *name)
{
    const struct facade *facade = facade_open();
    const char *value = getenv(name);
    const struct lamina_limits *limits = facade == NULL ? NULL : &facade->limits;
    if (limits != NULL && strcmp(name, "CUDA_VISIBLE_DEVICES") == 0)
        value = choose_devices(limits, value);
    else if (limits != NULL && strcmp(name, "CUDA_MPS_ACTIVE_THREAD_PERCENTAGE") == 0 && is_client(limits))
        value = choose_percentage(limits, value);
    return (char *)value;
}

void driver_environment_give(const struct facade *facade)
{
    given = redirect_import(dlsym(facade->driver, "cuInit"), "getenv", (void *)driver_getenv);
}

bool driver_environment_is_limited(const struct lamina_limits *limits)
{
    return given || !is_client(limits);
}
