#include "shared/facade.h"

#include "shared/assertion.h"
#include "shared/kept_errno.h"
#include "shared/limits.h"
#include "shared/log.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define FIXED_DIRECTORY "/run/lamina"
#define FIXED_DRIVER "/run/lamina-driver"

static struct facade facade;
static _Atomic(const struct facade *) opened; /* NULL until everything is open */
static pthread_once_t once = PTHREAD_ONCE_INIT;

static bool path_exists(const char *path)
{
    return access(path, F_OK) == 0 || errno != ENOENT;
}

/* The environment is used only where nothing is mounted, so never in a container. */
static const char *choose_directory(const char *fixed, const char *variable)
{
    return path_exists(FIXED_DIRECTORY) ? fixed : getenv(variable);
}

static bool read_limits(const char *directory)
{
    char path[4096], data[sizeof facade.limits + 1];
    snprintf(path, sizeof path, "%s/limits", directory);
    int file = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t length = file < 0 ? -1 : read(file, data, sizeof data);
    const char *why = length < 0 ? strerror(errno) : limits_check(data, (size_t)length);
    if (file >= 0)
        close(file);
    if (why != NULL) {
        log_line(LOG_ERROR, "no device: %s: %s", path, why);
        return false;
    }
    memcpy(&facade.limits, data, sizeof facade.limits);
    log_level = facade.limits.log_level;
    return true;
}

static bool map_usage(const char *directory)
{
    const char *path = facade.usage_path;
    snprintf(facade.usage_path, sizeof facade.usage_path, "%s/usage", directory);
    size_t size = LAMINA_USAGE_BYTES(facade.limits.device_count);
    void *memory = MAP_FAILED;
    int file = open(path, O_RDWR | O_CLOEXEC);
    off_t end = file < 0 ? -1 : lseek(file, 0, SEEK_END);
    if (end >= 0 && (size_t)end >= size)
        memory = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    const char *why;
    if (file < 0)
        why = strerror(errno);
    else if (memory == MAP_FAILED)
        why = "the file is truncated or cannot be mapped";
    else
        why = usage_check(memory, (size_t)end, &facade.limits);
    if (file >= 0)
        close(file);
    if (why != NULL) {
        log_line(LOG_ERROR, "no device: %s: %s", path, why);
        return false;
    }
    facade.account = (struct account){memory, &facade.limits, NULL, path};
    return true;
}

/* The beginning of a file. MAP_FAILED where it cannot be mapped or is shorter. */
static void *map_file(const char *path, size_t size, bool writing)
{
    void *found = MAP_FAILED;
    int file = open(path, (writing ? O_RDWR : O_RDONLY) | O_CLOEXEC);
    if (file >= 0 && lseek(file, 0, SEEK_END) >= (off_t)size)
        found = mmap(NULL, size, writing ? PROT_READ | PROT_WRITE : PROT_READ, MAP_SHARED, file, 0);
    if (file >= 0)
        close(file);
    return found;
}

/* Without it a container only gets none of the time that others on the GPU do not use. */
static void map_arbiter(void)
{
    static const struct lamina_arbiter no_arbiter;
    char path[sizeof facade.files + 16];
    snprintf(path, sizeof path, "%s/arbiter", facade.files);
    const struct lamina_arbiter *found = map_file(path, sizeof *found, false);
    bool valid = found != MAP_FAILED && found->magic == LAMINA_ARBITER_MAGIC &&
                 found->version == LAMINA_LAYOUT_VERSION && found->device_count == facade.limits.device_count;
    facade.arbiter = valid ? found : &no_arbiter;
    facade.account.arbiter = facade.arbiter;
    if (!valid)
        log_line(LOG_INFO, "%s: there is no arbiter; GPU time is limited without regard to other containers", path);
}

/* Without it, neighbors of lower priority do not make room at once. */
static void map_signal(void)
{
    static struct lamina_signal no_signal;
    char path[sizeof facade.files + 16];
    snprintf(path, sizeof path, "%s/signal", facade.files);
    struct lamina_signal *found = map_file(path, sizeof *found, true);
    bool valid = found != MAP_FAILED && found->magic == LAMINA_SIGNAL_MAGIC && found->version == LAMINA_LAYOUT_VERSION;
    facade.signal = valid ? found : &no_signal;
    if (!valid)
        log_line(LOG_INFO, "%s: there is no signal; other containers do not see when this one has work", path);
}

static bool open_driver(const char *directory)
{
    char path[sizeof facade.directory + 64];
    snprintf(facade.directory, sizeof facade.directory, "%s", directory);
    snprintf(path, sizeof path, "%s/%s", facade.directory, facade_library);
    facade.driver = directory[0] == '/' ? dlopen(path, RTLD_NOW | RTLD_LOCAL) : NULL;
    if (facade.driver == NULL)
        log_line(LOG_ERROR, "no device: %s",
                 directory[0] == '/' ? dlerror() : "LAMINA_DRIVER must be an absolute path");
    return facade.driver != NULL;
}

static void open_once(void)
{
    KEEP_ERRNO;
    const char *directory = choose_directory(FIXED_DIRECTORY, "LAMINA_DIR");
    const char *driver = choose_directory(FIXED_DRIVER, "LAMINA_DRIVER");
    if (directory == NULL || driver == NULL) {
        log_line(LOG_ERROR, "no device: there is no " FIXED_DIRECTORY ", and %s is not set",
                 directory == NULL ? "LAMINA_DIR" : "LAMINA_DRIVER");
        return;
    }
    snprintf(facade.files, sizeof facade.files, "%s", directory);
    if (!read_limits(directory) || !map_usage(directory))
        return;
    map_arbiter();
    map_signal();
    if (!open_driver(driver))
        return;
    ASSERT(facade.driver != NULL && facade.arbiter != NULL);
    ASSERT(facade.limits.device_count <= LAMINA_MAX_DEVICES);
    facade_opened(&facade);
    atomic_store(&opened, &facade);
}

const struct facade *facade_open(void)
{
    /* Acquire: a thread that sees the pointer also sees all that open_once wrote before it. This is on the path of
     * every hook. */
    const struct facade *ready = atomic_load_explicit(&opened, memory_order_acquire);
    if (ready != NULL)
        return ready;
    pthread_once(&once, open_once);
    return atomic_load(&opened);
}
