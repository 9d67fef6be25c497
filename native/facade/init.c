/* cuInit: takes a place in the account and lets the driver see only what was granted. */
#include "devices.h"
#include "facade.h"
#include "hooks.h"
#include "init.h"
#include "log.h"
#include "self.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

const char facade_library[] = "libcuda.so.1";

#define HOOK(i, name, since) #name,
#define PASS(i, name, since) #name,
#define FORBID(i, name, since) #name,
const char facade_names[][64] = {
#include "generated/cuda_table.h"
};
#undef HOOK
#undef PASS
#undef FORBID

enum { UUIDS = LAMINA_MAX_DEVICES * LAMINA_UUID_BYTES };

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static int refused; /* the driver showed a GPU that was not granted: nothing of it may be used */

int facade_denied(void)
{
    return CUDA_ERROR_NOT_INITIALIZED;
}

int facade_missing(void)
{
    return CUDA_ERROR_NOT_SUPPORTED;
}

void init_forget(void)
{
    lock = (pthread_mutex_t)PTHREAD_MUTEX_INITIALIZER;
}

/* Calls the driver under an environment in which CUDA_VISIBLE_DEVICES has another value. The environment is replaced
 * as a whole and put back, so that other threads always read a sound one. A child forked meanwhile keeps it. */
static CUresult init_showing(const char *visible, unsigned int flags)
{
    static const char name[] = "CUDA_VISIBLE_DEVICES=";
    static char assignment[sizeof name + UUIDS];
    size_t count = 0, used = 0;
    while (environ != NULL && environ[count] != NULL)
        count++;
    char **ours = calloc(count + 2, sizeof *ours), **theirs = environ;
    if (ours == NULL)
        return CUDA_ERROR_OUT_OF_MEMORY;
    memcpy(assignment, name, sizeof name - 1);
    strcpy(assignment + sizeof name - 1, visible);
    ours[used++] = assignment;
    for (size_t i = 0; i < count; i++)
        if (strncmp(theirs[i], name, sizeof name - 1) != 0)
            ours[used++] = theirs[i];
    environ = ours;
    CUresult result = REAL(cuInit)(flags);
    environ = theirs;
    free(ours);
    return result;
}

static CUresult init_granted(const struct facade *facade, unsigned int flags)
{
    char visible[UUIDS];
    if (self_slot() == NULL)
        return CUDA_ERROR_OPERATING_SYSTEM;
    if (!devices_visible(&facade->limits, getenv("CUDA_VISIBLE_DEVICES"), visible, sizeof visible))
        return CUDA_ERROR_NO_DEVICE;
    CUresult result = init_showing(visible, flags);
    if (result == CUDA_SUCCESS && !devices_map()) {
        log_line(LOG_ERROR, "no device: the driver shows GPUs that are not in the limits");
        refused = 1;
    }
    return refused ? CUDA_ERROR_NO_DEVICE : result;
}

CUresult cuInit(unsigned int flags)
{
    const struct facade *facade = facade_open();
    if (facade == NULL)
        return CUDA_ERROR_NO_DEVICE;
    self_watch_forks();
    pthread_mutex_lock(&lock);
    CUresult result = refused ? CUDA_ERROR_NO_DEVICE : init_granted(facade, flags);
    pthread_mutex_unlock(&lock);
    return result;
}
