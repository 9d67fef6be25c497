#include "facade.h"

#include "limits.h"
#include "log.h"

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
static const struct facade *opened; /* NULL until all of it is there */
static pthread_once_t once = PTHREAD_ONCE_INIT;

static bool exists(const char *path)
{
    return access(path, F_OK) == 0 || errno != ENOENT;
}

/* The environment counts only where nobody mounted anything, so never in a container. */
static const char *place(const char *fixed, const char *variable)
{
    return exists(FIXED_DIRECTORY) ? fixed : getenv(variable);
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
    static char path[4096];
    snprintf(path, sizeof path, "%s/usage", directory);
    size_t size = LAMINA_USAGE_BYTES(facade.limits.device_count);
    void *memory = MAP_FAILED;
    int file = open(path, O_RDWR | O_CLOEXEC);
    off_t end = file < 0 ? -1 : lseek(file, 0, SEEK_END);
    if (end >= 0 && (size_t)end >= size)
        memory = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    const char *why = file < 0                 ? strerror(errno)
                      : memory == MAP_FAILED   ? "the file is truncated or cannot be mapped"
                                               : usage_check(memory, (size_t)end, &facade.limits);
    if (file >= 0)
        close(file);
    if (why != NULL) {
        log_line(LOG_ERROR, "no device: %s: %s", path, why);
        return false;
    }
    facade.account = (struct account){memory, &facade.limits, path};
    return true;
}

/* Nothing is missing without it but what the others on the GPU do not use. */
static bool map_arbiter(const char *directory)
{
    static const struct lamina_arbiter nobody;
    char path[4096];
    snprintf(path, sizeof path, "%s/arbiter", directory);
    const struct lamina_arbiter *found = MAP_FAILED;
    int file = open(path, O_RDONLY | O_CLOEXEC);
    if (file >= 0 && lseek(file, 0, SEEK_END) >= (off_t)sizeof *found)
        found = mmap(NULL, sizeof *found, PROT_READ, MAP_SHARED, file, 0);
    if (file >= 0)
        close(file);
    bool sound = found != MAP_FAILED && found->magic == LAMINA_ARBITER_MAGIC &&
                 found->version == LAMINA_LAYOUT_VERSION && found->device_count == facade.limits.device_count;
    facade.arbiter = sound ? found : &nobody;
    if (!sound)
        log_line(LOG_INFO, "%s: there is no arbiter; GPU time is limited without regard to other containers", path);
    return true;
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
    const char *directory = place(FIXED_DIRECTORY, "LAMINA_DIR");
    const char *driver = place(FIXED_DRIVER, "LAMINA_DRIVER");
    if (directory == NULL || driver == NULL) {
        log_line(LOG_ERROR, "no device: there is no " FIXED_DIRECTORY ", and %s is not set",
                 directory == NULL ? "LAMINA_DIR" : "LAMINA_DRIVER");
        return;
    }
    if (read_limits(directory) && map_usage(directory) && map_arbiter(directory) && open_driver(driver))
        __atomic_store_n(&opened, &facade, __ATOMIC_RELEASE);
}

const struct facade *facade_open(void)
{
    const struct facade *there = __atomic_load_n(&opened, __ATOMIC_ACQUIRE);
    if (there != NULL)
        return there;
    pthread_once(&once, open_once);
    return opened;
}

void *facade_real(unsigned entry)
{
    return facade_open() == NULL ? NULL : dlsym(facade.driver, facade_names[entry]);
}

/* Called by trampoline.S for an entry's first use. */
__attribute__((visibility("hidden"))) void *lamina_resolve(unsigned entry);
void *lamina_resolve(unsigned entry)
{
    void *target = facade_real(entry);
    if (target == NULL)
        target = facade_open() == NULL ? (void *)facade_denied : (void *)facade_missing;
    __atomic_store_n(&lamina_table[entry], target, __ATOMIC_RELEASE);
    return target;
}
