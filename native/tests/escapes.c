/* Tries to take 1500 MiB under a limit of 1000 MiB, in a way that its first argument names; a second one is a file that
 * some ways need. Prints "held" or "escapes", and details on stderr. Built twice: LINKED to the driver, and not. */
#include "cuda_prototypes.h"
#include "lamina_layout.h"
#include "shared/limits.h"

#include <dlfcn.h>
#include <elf.h>
#include <fcntl.h>
#include <link.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define MIB ((size_t)1 << 20)

typedef void *(*find_t)(const char *name);
static const char *file;
static void *library;

static void *in_library(const char *name)
{
    return library == NULL ? NULL : dlsym(library, name);
}
static void *everywhere(const char *name)
{
    return dlsym(RTLD_DEFAULT, name);
}
static void *in_next(const char *name)
{
    return dlsym(RTLD_NEXT, name);
}

static void *real_dlsym(const char *name)
{
    static const char *const versions[] = {"GLIBC_2.34", "GLIBC_2.17", "GLIBC_2.2.5"};
    void *(*find)(void *, const char *) = NULL;
    for (int i = 0; find == NULL && i < 3; i++)
        find = (void *(*)(void *, const char *))dlvsym(RTLD_NEXT, "dlsym", versions[i]);
    return find == NULL || library == NULL ? NULL : find(library, name);
}

/* A symbol that one loaded object defines, by its tables in memory. */
static void *defined_in(const struct link_map *map, const char *wanted)
{
    const ElfW(Sym) *symbols = NULL;
    const char *names = NULL;
    for (const ElfW(Dyn) *entry = map->l_ld; entry->d_tag != DT_NULL; entry++) {
        if (entry->d_tag == DT_SYMTAB)
            symbols = (const ElfW(Sym) *)entry->d_un.d_ptr;
        if (entry->d_tag == DT_STRTAB)
            names = (const char *)entry->d_un.d_ptr;
    }
    /* The string table follows the symbol table. */
    for (const ElfW(Sym) *symbol = symbols; symbol != NULL && (const char *)symbol < names; symbol++)
        if (symbol->st_shndx != SHN_UNDEF && strcmp(names + symbol->st_name, wanted) == 0)
            return (void *)(map->l_addr + symbol->st_value);
    return NULL;
}

static void *in_tables_of_library(const char *name)
{
    return library == NULL ? NULL : defined_in((const struct link_map *)library, name);
}

static void *by_address(const char *name, bool second)
{
    char symbol[64];
    void *function = NULL;
    snprintf(symbol, sizeof symbol, "%s", name);
    symbol[strcspn(symbol, "_")] = 0;
    void *ask = in_library(second ? "cuGetProcAddress_v2" : "cuGetProcAddress");
    if (ask == NULL)
        return NULL;
    if (second)
        ((__typeof__(cuGetProcAddress_v2) *)ask)(symbol, &function, 11070, 0, NULL);
    else
        ((__typeof__(cuGetProcAddress) *)ask)(symbol, &function, 11070, 0);
    return function;
}

static void *by_first_form(const char *name)
{
    return by_address(name, false);
}
static void *by_second_form(const char *name)
{
    return by_address(name, true);
}

static void *in_plugin(const char *name)
{
    void *plugin = dlopen(file, RTLD_NOW | RTLD_LOCAL | RTLD_DEEPBIND);
    find_t find = plugin == NULL ? NULL : (find_t)dlsym(plugin, "linked_find");
    return find == NULL ? NULL : find(name);
}

static CUresult begin(find_t find)
{
    CUcontext context = NULL;
    __typeof__(cuInit) *init = find("cuInit");
    __typeof__(cuDevicePrimaryCtxRetain) *retain = find("cuDevicePrimaryCtxRetain");
    __typeof__(cuCtxSetCurrent) *set = find("cuCtxSetCurrent");
    if (init == NULL || retain == NULL || set == NULL)
        return CUDA_ERROR_NOT_FOUND;
    CUresult result = init(0);
    result = result != CUDA_SUCCESS ? result : retain(&context, 0);
    return result != CUDA_SUCCESS ? result : set(context);
}

static CUresult take(find_t find, size_t mib)
{
    CUdeviceptr pointer;
    __typeof__(cuMemAlloc_v2) *alloc = find("cuMemAlloc_v2");
    return alloc == NULL ? CUDA_ERROR_NOT_FOUND : alloc(&pointer, mib * MIB);
}

static int verdict(CUresult result)
{
    fprintf(stderr, "CUDA error %d\n", result);
    return puts(result == CUDA_SUCCESS ? "escapes" : "held") < 0;
}

static int all_at_once(find_t find)
{
    CUresult result = begin(find);
    return verdict(result != CUDA_SUCCESS ? result : take(find, 1500));
}

/* The last object in the loader's list that has the function: once the facade is in use, the driver itself. */
static int last_object(void)
{
    void *alloc = NULL;
    CUdeviceptr pointer;
    CUresult result = begin(in_library);
    for (const struct link_map *map = _r_debug.r_map; map != NULL; map = map->l_next)
        if (strstr(map->l_name, "libcuda.so") != NULL && defined_in(map, "cuMemAlloc_v2") != NULL)
            alloc = defined_in(map, "cuMemAlloc_v2");
    if (result == CUDA_SUCCESS && alloc != NULL)
        result = ((__typeof__(cuMemAlloc_v2) *)alloc)(&pointer, 1500 * MIB);
    return verdict(result);
}

static int in_child(void)
{
    int status = 0;
    CUresult first = begin(in_library), second = CUDA_ERROR_UNKNOWN;
    first = first != CUDA_SUCCESS ? first : take(in_library, 600);
    pid_t child = fork();
    if (child == 0) {
        second = begin(in_library);
        second = second != CUDA_SUCCESS ? second : take(in_library, 600);
        _exit(second == CUDA_SUCCESS ? 0 : 1);
    }
    waitpid(child, &status, 0);
    return verdict(first == CUDA_SUCCESS && status == 0 ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY);
}

static const char *own_file(const char *name)
{
    static char path[4096];
    const char *folder = access("/run/lamina", F_OK) == 0 ? "/run/lamina" : getenv("LAMINA_DIR");
    snprintf(path, sizeof path, "%s/%s", folder, name);
    return path;
}

/* Sets to zero what the account says that this process holds. */
static void forge_usage(void)
{
    int usage = open(own_file("usage"), O_RDWR);
    struct lamina_usage *map = mmap(NULL, LAMINA_USAGE_BYTES(1), PROT_READ | PROT_WRITE, MAP_SHARED, usage, 0);
    if (map == MAP_FAILED)
        return;
    map->devices[0].total = 0;
    for (unsigned i = 0; i < LAMINA_SLOTS; i++) {
        char *slot = (char *)(map + 1) + (size_t)i * LAMINA_SLOT_STRIDE(1);
        struct lamina_slot_device *line = (struct lamina_slot_device *)((struct lamina_slot *)slot + 1);
        memset(line->bytes, 0, sizeof line->bytes);
        line->charged = 0;
    }
}

static void garble_usage(void)
{
    static char garbage[LAMINA_USAGE_BYTES(1)];
    memset(garbage, 0xff, sizeof garbage);
    if (pwrite(open(own_file("usage"), O_RDWR), garbage, sizeof garbage, 0) != sizeof garbage)
        perror("write");
}

static void truncate_usage(void)
{
    if (truncate(own_file("usage"), 0) != 0)
        perror("truncate");
}

static void delete_usage(void)
{
    if (unlink(own_file("usage")) != 0)
        perror("unlink");
}

/* A copy from before any process took memory. */
static void replace_usage(void)
{
    if (rename(file, own_file("usage")) != 0)
        perror("rename");
}

static void raise_limits(void)
{
    struct lamina_limits limits;
    const char *path = own_file("limits");
    int from = open(path, O_RDONLY);
    if (read(from, &limits, sizeof limits) != sizeof limits)
        return;
    limits.devices[0].memory_bytes *= 10;
    limits.checksum = limits_checksum(&limits);
    if (chmod(path, 0666) != 0)
        perror("chmod");
    int to = open(path, O_WRONLY);
    if (to < 0 || write(to, &limits, sizeof limits) != sizeof limits)
        perror("write");
}

/* Takes 600 MiB, tampers with the account, and takes 600 MiB more, here or in a second process that starts after it. */
static int after(void (*meddle)(void), bool second_process, char *program)
{
    int status = -1;
    pid_t child = fork();
    if (child == 0) {
        CUresult result = begin(in_library);
        result = result != CUDA_SUCCESS ? result : take(in_library, 600);
        if (result != CUDA_SUCCESS)
            _exit(2);
        meddle();
        if (!second_process)
            _exit(take(in_library, 600) == CUDA_SUCCESS ? 0 : 1);
        pid_t other = fork();
        if (other == 0)
            execl(program, program, "600", NULL);
        waitpid(other, &status, 0);
        _exit(WIFEXITED(status) ? WEXITSTATUS(status) : 3);
    }
    waitpid(child, &status, 0);
    fprintf(stderr, "status %d\n", status);
    return verdict(status == 0 ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY);
}

#ifdef LINKED
extern void *linked_find(const char *wanted);

static int per_thread(void)
{
    CUcontext context;
    CUdeviceptr pointer;
    CUresult result = cuInit(0);
    result = result != CUDA_SUCCESS ? result : cuDevicePrimaryCtxRetain(&context, 0);
    result = result != CUDA_SUCCESS ? result : cuCtxSetCurrent(context);
    return verdict(result != CUDA_SUCCESS ? result : cuMemAllocAsync_ptsz(&pointer, 1500 * MIB, NULL));
}
#endif

int main(int count, char **arguments)
{
    const char *way = count > 1 ? arguments[1] : "";
    file = count > 2 ? arguments[2] : NULL;
#ifdef LINKED
    if (strcmp(way, "linked") == 0)
        return all_at_once(linked_find);
    if (strcmp(way, "per thread") == 0)
        return per_thread();
#endif
    if (strcmp(way, "default") == 0)
        return all_at_once(everywhere);
    if (strcmp(way, "next") == 0)
        return all_at_once(in_next);
    if (strcmp(way, "plugin") == 0)
        return all_at_once(in_plugin);
    if (strcmp(way, "path") == 0)
        library = dlopen(file, RTLD_NOW | RTLD_LOCAL);
    else if (strcmp(way, "deepbind") == 0)
        library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL | RTLD_DEEPBIND);
#ifndef STATIC
    else if (strcmp(way, "dlmopen") == 0)
        library = dlmopen(LM_ID_NEWLM, "libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
#endif
    else
        library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
    if (library == NULL)
        fprintf(stderr, "%s\n", dlerror());
    if (strcmp(way, "600") == 0)
        return begin(in_library) != CUDA_SUCCESS || take(in_library, 600) != CUDA_SUCCESS;
    if (strcmp(way, "real dlsym") == 0)
        return all_at_once(real_dlsym);
    if (strcmp(way, "tables") == 0)
        return all_at_once(in_tables_of_library);
    if (strcmp(way, "last object") == 0)
        return last_object();
    if (strcmp(way, "procaddress 1") == 0)
        return all_at_once(by_first_form);
    if (strcmp(way, "procaddress 2") == 0)
        return all_at_once(by_second_form);
    if (strcmp(way, "fork") == 0)
        return in_child();
    if (strcmp(way, "forge usage") == 0)
        return after(forge_usage, false, arguments[0]);
    if (strcmp(way, "garble usage") == 0)
        return after(garble_usage, false, arguments[0]);
    if (strcmp(way, "truncate usage") == 0)
        return after(truncate_usage, false, arguments[0]);
    if (strcmp(way, "delete usage") == 0)
        return after(delete_usage, true, arguments[0]);
    if (strcmp(way, "replace usage") == 0)
        return after(replace_usage, true, arguments[0]);
    if (strcmp(way, "raise limits") == 0)
        return after(raise_limits, true, arguments[0]);
    return all_at_once(in_library);
}
