/* Times calls of the driver, in batches, until its input ends. It reads lines "CALL ARGUMENT THREADS START UNTIL"
 * and answers each with "operations cpu_ns"; START and UNTIL are nanoseconds of CLOCK_MONOTONIC, so that several
 * processes can work in the same time span. ARGUMENT is the number of blocks held meanwhile, for calls that
 * allocate, and the number of the name that is asked for. The first line on standard output, "ready", says that there
 * is a context.
 *
 * Its first argument is a file of kernels with one named `empty`. With two more arguments, CALL OPERATIONS, it makes so
 * many calls and ends, for counting instructions. */
#include "bench.h"

#include <dlfcn.h>
#include <pthread.h>
#include <string.h>

enum { BATCH = 256, MAX_THREADS = 16, MAX_LIVE = 10000, BLOCK = 2 << 20, SMALL = 1000 };

struct call {
    const char *name;
    void (*once)(void);
    void (*take)(CUdeviceptr *block); /* for what is held meanwhile */
    void (*drop)(CUdeviceptr block);
};

static CUcontext context;
static CUfunction empty;
static CUdeviceptr buffer;
static CUmemoryPool pool;
static nvmlDevice_t handle;
static __typeof__(nvmlDeviceGetMemoryInfo) *nvml_memory;

static void take_plain(CUdeviceptr *block)
{
    need(cuda.cuMemAlloc_v2(block, BLOCK), "cuMemAlloc");
}
static void take_small(CUdeviceptr *block)
{
    need(cuda.cuMemAlloc_v2(block, SMALL), "cuMemAlloc");
}
static void drop_plain(CUdeviceptr block)
{
    need(cuda.cuMemFree_v2(block), "cuMemFree");
}
static void take_async(CUdeviceptr *block)
{
    need(cuda.cuMemAllocAsync(block, BLOCK, NULL), "cuMemAllocAsync");
}
static void drop_async(CUdeviceptr block)
{
    need(cuda.cuMemFreeAsync(block, NULL), "cuMemFreeAsync");
}

static void take_pool(CUdeviceptr *block)
{
    need(cuda.cuMemAllocFromPoolAsync(block, BLOCK, pool, NULL), "cuMemAllocFromPoolAsync");
}

static void take_physical(CUdeviceptr *block)
{
    static const CUmemAllocationProp on_device = {.type = CU_MEM_ALLOCATION_TYPE_PINNED,
                                                  .location = {CU_MEM_LOCATION_TYPE_DEVICE, 0}};
    CUmemGenericAllocationHandle made;
    need(cuda.cuMemCreate(&made, BLOCK, &on_device, 0), "cuMemCreate");
    *block = made;
}

static void drop_physical(CUdeviceptr block)
{
    need(cuda.cuMemRelease(block), "cuMemRelease");
}

static void launch(void)
{
    need(cuda.cuLaunchKernel(empty, 1056, 1, 1, 256, 1, 1, 0, NULL, NULL, NULL), "cuLaunchKernel");
}

static void memory_info(void)
{
    size_t free, total;
    need(cuda.cuMemGetInfo_v2(&free, &total), "cuMemGetInfo");
}

static void nvml_info(void)
{
    nvmlMemory_t memory;
    need((CUresult)nvml_memory(handle, &memory), "nvmlDeviceGetMemoryInfo");
}

/* The names in the table, without the suffixes of their forms. The number of what is held says which is asked for. */
static const char *const names[] = {
#define ROW(i, name, since) #name,
#define HOOK ROW
#define PASS ROW
#define FORBID ROW
#include "../facade/generated/cuda_table.h"
#undef ROW
#undef HOOK
#undef PASS
#undef FORBID
};
static char asked_name[64] = "cuMemAlloc";

static void ask_for(int number)
{
    const char *name = names[(size_t)number % (sizeof names / sizeof *names)];
    snprintf(asked_name, sizeof asked_name, "%.*s", (int)strcspn(name, "_"), name);
}

static void proc_address(void)
{
    void *function;
    CUdriverProcAddressQueryResult found;
    need(cuda.cuGetProcAddress_v2(asked_name, &function, 11070, 0, &found), "cuGetProcAddress");
}

static void current(void)
{
    CUcontext now;
    need(cuda.cuCtxGetCurrent(&now), "cuCtxGetCurrent");
}

static void attribute(void)
{
    int value;
    need(cuda.cuDeviceGetAttribute(&value, 16, 0), "cuDeviceGetAttribute");
}

static void copy(void)
{
    static const char bytes[16];
    need(cuda.cuMemcpyHtoDAsync_v2(buffer, bytes, sizeof bytes, NULL), "cuMemcpyHtoDAsync");
}

#define PAIR(kind, drop)                                                                                               \
    static void pair_##kind(void)                                                                                      \
    {                                                                                                                  \
        CUdeviceptr block;                                                                                             \
        take_##kind(&block);                                                                                           \
        drop(block);                                                                                                   \
    }
PAIR(plain, drop_plain)
PAIR(small, drop_plain)
PAIR(async, drop_async)
PAIR(pool, drop_async)
PAIR(physical, drop_physical)

static const struct call calls[] = {
    {"launch", launch, NULL, NULL},
    {"plain", pair_plain, take_plain, drop_plain},
    {"small", pair_small, take_small, drop_plain},
    {"async", pair_async, take_async, drop_async},
    {"pool", pair_pool, take_pool, drop_async},
    {"physical", pair_physical, take_physical, drop_physical},
    {"memory-info", memory_info, NULL, NULL},
    {"nvml-memory", nvml_info, NULL, NULL},
    {"proc-address", proc_address, NULL, NULL},
    {"current", current, NULL, NULL},
    {"attribute", attribute, NULL, NULL},
    {"copy", copy, NULL, NULL},
};

static const struct call *held_by;
static CUdeviceptr live[MAX_LIVE];
static int held;

static void hold(const struct call *call, int wanted)
{
    while (held > (held_by == call ? wanted : 0))
        held_by->drop(live[--held]);
    held_by = call;
    while (call->take != NULL && held < wanted && held < MAX_LIVE)
        call->take(&live[held++]);
}

struct span {
    const struct call *call;
    uint64_t start, until, operations, cpu_ns;
};

static void *work(void *argument)
{
    struct span *span = argument;
    need(cuda.cuCtxSetCurrent(context), "cuCtxSetCurrent");
    void (*once)(void) = span->call->once;
    wait_until(span->start);
    uint64_t before = clock_ns(CLOCK_THREAD_CPUTIME_ID);
    do {
        for (int i = 0; i < BATCH; i++)
            once();
        span->operations += BATCH;
    } while (clock_ns(CLOCK_MONOTONIC) < span->until);
    span->cpu_ns = clock_ns(CLOCK_THREAD_CPUTIME_ID) - before;
    return NULL;
}

static void measure(const struct call *call, int blocks, int threads, uint64_t start, uint64_t until)
{
    pthread_t ids[MAX_THREADS];
    struct span spans[MAX_THREADS], sum = {0};
    hold(call, blocks);
    if (call->once == proc_address)
        ask_for(blocks);
    for (int i = 0; i < threads; i++) {
        spans[i] = (struct span){.call = call, .start = start, .until = until};
        if (threads > 1)
            pthread_create(&ids[i], NULL, work, &spans[i]);
    }
    if (threads == 1)
        work(&spans[0]);
    for (int i = 0; i < threads; i++) {
        if (threads > 1)
            pthread_join(ids[i], NULL);
        sum.operations += spans[i].operations;
        sum.cpu_ns += spans[i].cpu_ns;
    }
    printf("%llu %llu\n", (unsigned long long)sum.operations, (unsigned long long)sum.cpu_ns);
    fflush(stdout);
}

static void begin(const char *kernels)
{
    static const CUmemPoolProps props = {.allocType = CU_MEM_ALLOCATION_TYPE_PINNED,
                                         .location = {CU_MEM_LOCATION_TYPE_DEVICE, 0}};
    CUmodule module;
    context = bench_begin();
    char image[1 << 16];
    FILE *file = fopen(kernels, "r");
    size_t length = file == NULL ? 0 : fread(image, 1, sizeof image - 1, file);
    need(length == 0 ? CUDA_ERROR_NOT_FOUND : CUDA_SUCCESS, kernels);
    fclose(file);
    image[length] = 0;
    need(cuda.cuModuleLoadData(&module, image), "cuModuleLoadData");
    need(cuda.cuModuleGetFunction(&empty, module, "empty"), "cuModuleGetFunction");
    need(cuda.cuMemAlloc_v2(&buffer, BLOCK), "cuMemAlloc");
    need(cuda.cuMemPoolCreate(&pool, &props), "cuMemPoolCreate");
    void *nvml = dlopen("libnvidia-ml.so.1", RTLD_NOW);
    __typeof__(nvmlInit_v2) *init = nvml == NULL ? NULL : dlsym(nvml, "nvmlInit_v2");
    __typeof__(nvmlDeviceGetHandleByIndex_v2) *by_index;
    need(init == NULL ? 1 : (CUresult)init(), "nvmlInit");
    by_index = dlsym(nvml, "nvmlDeviceGetHandleByIndex_v2");
    nvml_memory = dlsym(nvml, "nvmlDeviceGetMemoryInfo");
    need((CUresult)by_index(0, &handle), "nvmlDeviceGetHandleByIndex");
}

static const struct call *call_of(const char *name)
{
    for (size_t i = 0; i < sizeof calls / sizeof *calls; i++)
        if (strcmp(calls[i].name, name) == 0)
            return &calls[i];
    exit(2);
}

int main(int count, char **arguments)
{
    char line[256], name[32];
    int blocks, threads;
    unsigned long long start, until;
    if (count != 2 && count != 4)
        return 2;
    begin(arguments[1]);
    if (count == 4) {
        void (*once)(void) = call_of(arguments[2])->once;
        for (int left = atoi(arguments[3]); left > 0; left--)
            once();
        return 0;
    }
    puts("ready");
    fflush(stdout);
    while (fgets(line, sizeof line, stdin) != NULL) {
        if (sscanf(line, "%31s %d %d %llu %llu", name, &blocks, &threads, &start, &until) != 5 || threads > MAX_THREADS)
            return 2;
        measure(call_of(name), blocks, threads, start, until);
    }
    return 0;
}
