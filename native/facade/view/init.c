/* cuInit: takes a slot in the account and lets the driver see only the granted GPUs. */
#include "view/init.h"
#include "compute/time_share.h"
#include "cuda/devices.h"
#include "cuda/hooks.h"
#include "cuda/mps_client.h"
#include "cuda/process.h"
#include "shared/assertion.h"
#include "shared/facade.h"
#include "shared/log.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

const char facade_library[] = "libcuda.so.1";

enum { UUIDS = LAMINA_MAX_DEVICES * LAMINA_UUID_BYTES };

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static int refused; /* the driver showed a GPU that was not granted, so none may be used */

int facade_denied(void)
{
    return CUDA_ERROR_NOT_INITIALIZED;
}

int facade_missing(void)
{
    return CUDA_ERROR_NOT_SUPPORTED;
}

void init_after_fork(void)
{
    lock = (pthread_mutex_t)PTHREAD_MUTEX_INITIALIZER;
}

/* Calls the driver's cuInit with another value of CUDA_VISIBLE_DEVICES. The environment is replaced as a whole and put
 * back, so that other threads always read a valid one. A child that is forked meanwhile keeps the replacement. */
static CUresult init_with_visible(const char *visible, unsigned int flags)
{
    static const char name[] = "CUDA_VISIBLE_DEVICES=";
    static char assignment[sizeof name + UUIDS];
    size_t count = 0, used = 0;
    while (environ != NULL && environ[count] != NULL)
        count++;
    char **ours = calloc(count + 2, sizeof *ours), **theirs = environ;
    if (ours == NULL)
        return CUDA_ERROR_OUT_OF_MEMORY;
    ASSERT(strlen(visible) < UUIDS);
    memcpy(assignment, name, sizeof name - 1);
    strcpy(assignment + sizeof name - 1, visible);
    ours[used++] = assignment;
    for (size_t i = 0; i < count; i++)
        if (strncmp(theirs[i], name, sizeof name - 1) != 0)
            ours[used++] = theirs[i];
    ASSERT(used <= count + 1);
    environ = ours;
    CUresult result = REAL(cuInit)(flags);
    environ = theirs;
    free(ours);
    return result;
}

static CUresult init_granted(const struct facade *facade, unsigned int flags)
{
    char visible[UUIDS];
    if (process_slot() == NULL)
        return CUDA_ERROR_OPERATING_SYSTEM;
    if (!devices_visible(&facade->limits, getenv("CUDA_VISIBLE_DEVICES"), visible, sizeof visible))
        return CUDA_ERROR_NO_DEVICE;
    mps_client_prepare();
    CUresult result = init_with_visible(visible, flags);
    if (result == CUDA_SUCCESS && !devices_map()) {
        log_line(LOG_ERROR, "no device: the driver shows GPUs that are not in the limits");
        refused = 1;
    }
    for (uint32_t i = 0; result == CUDA_SUCCESS && i < facade->limits.device_count; i++)
        time_share_note_use((int)i, monotonic_ns());
    return refused ? CUDA_ERROR_NO_DEVICE : result;
}

CUresult cuInit(unsigned int flags)
{
    const struct facade *facade = facade_open();
    if (facade == NULL)
        return CUDA_ERROR_NO_DEVICE;
    process_watch_forks();
    pthread_mutex_lock(&lock);
    CUresult result = refused ? CUDA_ERROR_NO_DEVICE : init_granted(facade, flags);
    pthread_mutex_unlock(&lock);
    return result;
}
