/* Processes that take all the memory they can get, all at once, while their parent watches the simulated GPU.
 *   race KIND COUNT    each takes blocks of 64 MiB until it is refused; prints the most MiB that were in use, and
 *                      those in use when all were refused. KIND is plain, managed, async or physical
 *   fill               takes blocks until it is refused, prints "ready" and waits
 *   regain             prints "ready", reads a line, requests a block until it gets it, and prints that time */
#include "bench.h"
#include "simgpu_layout.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

enum { BLOCK = 64 << 20, MAX_CHILDREN = 64 };

static CUresult take(const char *kind)
{
    static const CUmemAllocationProp on_device = {.type = CU_MEM_ALLOCATION_TYPE_PINNED,
                                                  .location = {CU_MEM_LOCATION_TYPE_DEVICE, 0}};
    CUdeviceptr block;
    CUmemGenericAllocationHandle made;
    if (strcmp(kind, "managed") == 0)
        return cuda.cuMemAllocManaged(&block, BLOCK, 1);
    if (strcmp(kind, "async") == 0)
        return cuda.cuMemAllocAsync(&block, BLOCK, NULL);
    if (strcmp(kind, "physical") == 0)
        return cuda.cuMemCreate(&made, BLOCK, &on_device, 0);
    return cuda.cuMemAlloc_v2(&block, BLOCK);
}

static void take_all(const char *kind)
{
    CUresult result;
    while ((result = take(kind)) == CUDA_SUCCESS)
        ;
    if (result != CUDA_ERROR_OUT_OF_MEMORY)
        bench_failed(result, kind);
}

static void send(int file)
{
    if (write(file, "x", 1) != 1)
        exit(1);
}

static void receive(int file)
{
    char byte;
    if (read(file, &byte, 1) != 1)
        exit(1);
}

static unsigned in_use(const struct simgpu_gpu *gpu)
{
    return (unsigned)simgpu_half(&gpu->ledger.low);
}

static const struct simgpu_gpu *open_machine(void)
{
    int file = open(getenv("SIMGPU_MACHINE"), O_RDONLY);
    size_t size = SIMGPU_HEADER_BYTES + SIMGPU_SLOTS * sizeof(struct simgpu_process) + SIMGPU_RECORD_BYTES;
    const char *memory = mmap(NULL, size, PROT_READ, MAP_SHARED, file, 0);
    if (memory == MAP_FAILED)
        exit(1);
    return (const struct simgpu_gpu *)(memory + ((const struct simgpu_header *)memory)->gpus);
}

static int race(const char *kind, int count)
{
    const struct simgpu_gpu *gpu = open_machine();
    int up[2], start[2], down[2];
    unsigned peak = 0, now;
    pid_t children[MAX_CHILDREN];
    if (count > MAX_CHILDREN || pipe(up) != 0 || pipe(start) != 0 || pipe(down) != 0)
        return 2;
    for (int i = 0; i < count; i++)
        if ((children[i] = fork()) == 0) {
            prctl(PR_SET_PDEATHSIG, SIGKILL);
            bench_begin();
            send(up[1]);
            receive(start[0]);
            take_all(kind);
            send(down[1]);
            pause(); /* holding all of it */
        }
    close(up[1]); /* a child that fails closes both, too */
    close(down[1]);
    for (int i = 0; i < count; i++)
        receive(up[0]);
    for (int i = 0; i < count; i++)
        send(start[1]);
    for (int refused = 0; refused < count; refused++) {
        struct pollfd ended = {.fd = down[0], .events = POLLIN};
        while (poll(&ended, 1, 0) == 0)
            peak = (now = in_use(gpu)) > peak ? now : peak;
        receive(down[0]);
    }
    now = in_use(gpu);
    printf("%u %u\n", peak > now ? peak : now, now);
    for (int i = 0; i < count; i++)
        kill(children[i], SIGKILL);
    while (wait(NULL) > 0)
        ;
    return 0;
}

int main(int count, char **arguments)
{
    char line[16];
    const char *what = count >= 2 ? arguments[1] : "";
    if (strcmp(what, "race") == 0 && count == 4)
        return race(arguments[2], atoi(arguments[3]));
    bench_begin();
    if (strcmp(what, "fill") == 0)
        take_all("plain");
    puts("ready");
    fflush(stdout);
    if (strcmp(what, "regain") == 0 && fgets(line, sizeof line, stdin) != NULL) {
        while (take("plain") != CUDA_SUCCESS)
            ;
        printf("%llu\n", (unsigned long long)clock_ns(CLOCK_MONOTONIC));
        fflush(stdout);
    }
    return fgets(line, sizeof line, stdin) == NULL;
}
