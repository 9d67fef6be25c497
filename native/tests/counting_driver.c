/* A driver in front of the simulated one that counts calls which go past the facade.
 *
 * The facade finds its functions by name. A program that has one of the driver's own functions has it from
 * cuGetProcAddress. So names lead to the simulated driver directly, and cuGetProcAddress returns other functions, which
 * count each call first. The build names the list of functions in NAMES; COUNTED_DRIVER is the simulated driver, and
 * COUNTED_CALLS a file with one 64-bit number for each function. */
#include "cuda_prototypes.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#define NAME(i, name) #name,
static const char *const names[] = {
#include NAMES
};
#undef NAME
enum { COUNT = sizeof names / sizeof names[0] };

__attribute__((visibility("hidden"))) extern void *driver_functions[];
__attribute__((visibility("hidden"))) extern uint64_t *driver_counts;
void *driver_functions[COUNT];
uint64_t *driver_counts;

/* What is exported, and what cuGetProcAddress returns: r11 is free for callees. The two functions that are written in
 * C below are exported there. */
#define NAME(i, name)                                                                                                  \
    __asm__(".text\n.ifnc " #name ",cuGetProcAddress\n.ifnc " #name ",cuGetProcAddress_v2\n.globl " #name              \
            "\n.type " #name ", @function\n" #name ":\n jmp *driver_functions+8*" #i "(%rip)\n.endif\n.endif\n"        \
            ".balign 16\ncounted_call_" #i ":\n movq driver_counts(%rip), %r11\n lock incq 8*" #i                      \
            "(%r11)\n jmp *driver_functions+8*" #i "(%rip)\n");                                                        \
    void counted_call_##i(void);
#include NAMES
#undef NAME

#define NAME(i, name) counted_call_##i,
static void (*const counted[])(void) = {
#include NAMES
};

static void *open_driver(void)
{
    static void *driver;
    if (driver == NULL)
        driver = dlopen(getenv("COUNTED_DRIVER"), RTLD_NOW | RTLD_LOCAL);
    if (driver == NULL)
        abort();
    return driver;
}

__attribute__((constructor)) static void find_all(void)
{
    int file = open(getenv("COUNTED_CALLS"), O_RDWR | O_CLOEXEC);
    driver_counts = mmap(NULL, COUNT * sizeof *driver_counts, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    if (file < 0 || driver_counts == MAP_FAILED)
        abort();
    close(file);
    for (unsigned i = 0; i < COUNT; i++)
        driver_functions[i] = dlsym(open_driver(), names[i]);
}

static CUresult give_counted(CUresult result, void **function)
{
    for (unsigned i = 0; result == CUDA_SUCCESS && function != NULL && *function != NULL && i < COUNT; i++)
        if (driver_functions[i] == *function) {
            *function = (void *)counted[i];
            break;
        }
    return result;
}

CUresult cuGetProcAddress(const char *symbol, void **function, int version, cuuint64_t flags)
{
    __typeof__(cuGetProcAddress) *real = dlsym(open_driver(), "cuGetProcAddress");
    return give_counted(real(symbol, function, version, flags), function);
}

CUresult cuGetProcAddress_v2(const char *symbol, void **function, int version, cuuint64_t flags,
                             CUdriverProcAddressQueryResult *status)
{
    __typeof__(cuGetProcAddress_v2) *real = dlsym(open_driver(), "cuGetProcAddress_v2");
    return give_counted(real(symbol, function, version, flags, status), function);
}
