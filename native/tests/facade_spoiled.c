/* A tenant that calls everything while the usage file, which any process of the container can write, fills with random
 * and hostile words. What the calls answer does not matter here; each must return, and none may read or write outside
 * of its memory, which the sanitizers watch. Arguments: seed, cases. Prints "ok", how often it
 * got memory, and how often that of another process.
 *
 * In each case some words are written, then one call is made. Now and then another thread writes while calls are under
 * way. Several of these programs run in one container and use each other's memory. */
#include "facade_offers.h"
#include "lamina_layout.h"
#include "nvml_min.h"
#include "random_numbers.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdbool.h>
#include <string.h>
#include <time.h>

#define MIB ((size_t)1 << 20)
enum { HELD = 32, PATIENCE_MS = 50, SECONDS = 600 };

static struct lamina_usage *usage;
static size_t size, device_count;
static struct offer *offers;
static CUcontext context;
static CUfunction kernel;
static CUstream stream;

/* The writer of the file. It has random numbers of its own. */

static uint64_t hostile(uint64_t *random)
{
    static const uint64_t values[] = {0,
                                      1,
                                      2,
                                      15,
                                      16,
                                      17,
                                      UINT16_MAX,
                                      INT32_MAX,
                                      UINT32_MAX,
                                      UINT64_MAX,
                                      INT64_MAX,
                                      UINT64_MAX - 1,
                                      UINT64_C(1) << 63,
                                      LAMINA_SLOTS,
                                      LAMINA_SHARES,
                                      LAMINA_SLOTS - 1,
                                      0x7fffffff00000005,
                                      2 * MIB,
                                      1000 * MIB};
    *random = *random * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    uint64_t some = *random >> 20;
    switch (some % 4) {
    case 0:
        return *random;
    case 1: /* a holder that may be valid */
        return LAMINA_SHARE_HOLDER(some >> 8 & 7, some >> 16 & 3, some >> 24 & 3);
    default:
        return values[(some >> 8) % (sizeof values / sizeof *values)];
    }
}

/* Mostly where there is data: in the header and the first slots and entries. */
static void spoil(uint64_t *random)
{
    const size_t slots = sizeof *usage, stride = LAMINA_SLOT_STRIDE(device_count);
    const size_t shares = slots + LAMINA_SLOTS * stride;
    uint64_t value = hostile(random), place = *random >> 33;
    size_t width = place % 4 == 0 ? 4 : 8, at = 0, some = (*random >> 12) % (1 << 20);
    switch (place / 4 % 8) {
    case 0:
        at = offsetof(struct lamina_usage, slots_used) + some % 16;
        break;
    case 1:
        at = offsetof(struct lamina_usage, devices) + some % (device_count * sizeof(struct lamina_usage_device));
        break;
    case 2: /* all but the bins */
        at = offsetof(struct lamina_usage, devices) + LAMINA_UUID_BYTES +
             some % (offsetof(struct lamina_usage_device, compute.reserved) - LAMINA_UUID_BYTES) +
             (some >> 10) % device_count * sizeof(struct lamina_usage_device);
        break;
    case 3:
    case 4:
        at = slots + some % (4 * stride);
        break;
    case 5:
    case 6:
        at = shares + some % (8 * sizeof(struct lamina_share));
        break;
    default:
        at = some * 37 % size;
    }
    at = at / width * width;
    if (at + width <= size)
        memcpy((char *)usage + at, &value, width);
}

/* When a call takes long, because it believes a word that says so, the words are forgotten by which programs wait. */
static _Atomic uint64_t began_ms;
static _Atomic bool writing;

static uint64_t now_ms(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000;
}

static void *write_meanwhile(void *argument)
{
    uint64_t random = (uint64_t)(uintptr_t)argument;
    for (;;) {
        const struct timespec pause = {.tv_nsec = 20000};
        if (atomic_load(&writing))
            spoil(&random);
        if (now_ms() - atomic_load(&began_ms) > PATIENCE_MS)
            for (size_t i = 0; i < device_count; i++) {
                usage->devices[i].compute.due = 0;
                usage->devices[i].measuring = 0;
                usage->devices[i].context_bytes = 300 * MIB;
            }
        nanosleep(&pause, NULL);
    }
    return NULL;
}

/* The calls. */

static struct held {
    enum { NOTHING, POINTER, ORDERED, HANDLE, IMPORT, ARRAY } is;
    CUdeviceptr pointer;
    CUmemGenericAllocationHandle handle;
    CUarray array;
} all[HELD];

static void drop(struct held *held)
{
    switch (held->is) {
    case POINTER:
        CALL(cuMemFree_v2)(held->pointer);
        break;
    case ORDERED:
        CALL(cuMemFreeAsync)(held->pointer, NULL);
        break;
    case HANDLE:
        CALL(cuMemRelease)(held->handle);
        break;
    case IMPORT:
        CALL(cuIpcCloseMemHandle)(held->pointer);
        break;
    case ARRAY:
        CALL(cuArrayDestroy)(held->array);
        break;
    case NOTHING:
        break;
    }
    held->is = NOTHING;
}

static int kept, imported;

static void keep(struct held *held, CUresult result, int as)
{
    kept += result == CUDA_SUCCESS;
    imported += result == CUDA_SUCCESS && as == IMPORT;
    held->is = result == CUDA_SUCCESS ? as : NOTHING;
}

static void take_memory(struct held *held)
{
    const CUDA_ARRAY_DESCRIPTOR shape = {.Width = 1 + next(3 * MIB), .Height = 1, .Format = 0x01, .NumChannels = 1};
    size_t bytes = next(2) ? 1 + next(MIB) : 1 + next(40 * MIB), pitch;
    switch (next(6)) {
    case 0:
        keep(held, CALL(cuMemAllocManaged)(&held->pointer, bytes, CU_MEM_ATTACH_GLOBAL), POINTER);
        break;
    case 1:
        keep(held, CALL(cuMemAllocPitch_v2)(&held->pointer, &pitch, 1 + bytes % 4096, 1 + bytes / 4096, 4), POINTER);
        break;
    case 2:
        keep(held, CALL(cuMemAllocAsync)(&held->pointer, bytes, NULL), ORDERED);
        break;
    case 3:
        keep(held, CALL(cuArrayCreate_v2)(&held->array, &shape), ARRAY);
        break;
    default:
        keep(held, CALL(cuMemAlloc_v2)(&held->pointer, bytes), POINTER);
        if (held->is == POINTER && next(2))
            offer_memory(&offers[next(OFFERS)], held->pointer);
    }
}

/* Physical memory, and the same once more by a file. */
static void take_physical(struct held *held)
{
    static const CUmemAllocationProp prop = {.type = CU_MEM_ALLOCATION_TYPE_PINNED,
                                             .requestedHandleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR,
                                             .location = {CU_MEM_LOCATION_TYPE_DEVICE, 0}};
    CUmemGenericAllocationHandle again;
    int file = -1;
    keep(held, CALL(cuMemCreate)(&held->handle, 2 * MIB * (1 + next(8)), &prop, 0), HANDLE);
    if (held->is != HANDLE || CALL(cuMemExportToShareableHandle)(&file, held->handle, 1, 0) != CUDA_SUCCESS)
        return;
    if (CALL(cuMemImportFromShareableHandle)(&again, (void *)(intptr_t)file, 1) == CUDA_SUCCESS)
        CALL(cuMemRelease)(again);
    close(file);
}

static void make_context(void)
{
    CUcontext other;
    if (CALL(cuCtxCreate_v2)(&other, 0, 0) == CUDA_SUCCESS) {
        CUdeviceptr pointer;
        CALL(cuMemAlloc_v2)(&pointer, 1000);
        CALL(cuCtxDestroy_v2)(other);
    }
    CALL(cuCtxSetCurrent)(context);
}

static struct nvml {
    nvmlReturn_t (*init)(void);
    nvmlReturn_t (*by_index)(unsigned, nvmlDevice_t *);
    nvmlReturn_t (*memory)(nvmlDevice_t, nvmlMemory_t *);
    nvmlReturn_t (*processes)(nvmlDevice_t, unsigned *, nvmlProcessInfo_t *);
    nvmlReturn_t (*rates)(nvmlDevice_t, nvmlUtilization_t *);
    nvmlReturn_t (*name)(unsigned, char *, unsigned);
    nvmlDevice_t device;
} nvml;

static void ask_nvml(void)
{
    unsigned count = (unsigned)next(8);
    nvmlProcessInfo_t infos[8];
    nvmlMemory_t memory;
    nvmlUtilization_t rates;
    char name[64];
    nvml.memory(nvml.device, &memory);
    nvml.rates(nvml.device, &rates);
    nvml.processes(nvml.device, &count, infos);
    nvml.name((unsigned)next(4) ? (unsigned)getpid() : (unsigned)next(1 << 22), name, 1 + (unsigned)next(sizeof name));
}

static void launch(void)
{
    uint64_t ns = next(100000);
    void *parameters[] = {&ns};
    for (uint64_t i = next(20); i > 0; i--)
        CALL(cuLaunchKernel)(kernel, 1, 1, 1, 1, 1, 1, 0, next(2) ? stream : NULL, parameters, NULL);
    if (next(4) == 0)
        CALL(cuCtxSynchronize)();
}

static void one_call(void)
{
    struct held *held = &all[next(HELD)];
    size_t left, total;
    switch (next(12)) {
    case 0:
        make_context();
        break;
    case 1:
        ask_nvml();
        break;
    case 2:
    case 3:
        launch();
        break;
    case 4:
        drop(held);
        keep(held, offer_use(&offers[next(OFFERS)], &held->pointer), IMPORT);
        break;
    case 5:
        drop(held);
        take_physical(held);
        break;
    case 6:
        CALL(cuMemGetInfo_v2)(&left, &total);
        break;
    default:
        drop(held);
        take_memory(held);
    }
}

static void map_usage(void)
{
    char path[4096];
    snprintf(path, sizeof path, "%s/usage", getenv("LAMINA_DIR"));
    int file = open(path, O_RDWR);
    size = (size_t)lseek(file, 0, SEEK_END);
    usage = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    close(file);
    if (usage == MAP_FAILED)
        exit(3);
    device_count = usage->device_count;
}

static void open_nvml(void)
{
    void *library = dlopen("libnvidia-ml.so.1", RTLD_NOW);
    if (library == NULL)
        exit(3);
    *(void **)&nvml.init = dlsym(library, "nvmlInit_v2");
    *(void **)&nvml.by_index = dlsym(library, "nvmlDeviceGetHandleByIndex_v2");
    *(void **)&nvml.memory = dlsym(library, "nvmlDeviceGetMemoryInfo");
    *(void **)&nvml.processes = dlsym(library, "nvmlDeviceGetComputeRunningProcesses_v3");
    *(void **)&nvml.rates = dlsym(library, "nvmlDeviceGetUtilizationRates");
    *(void **)&nvml.name = dlsym(library, "nvmlSystemGetProcessName");
    if (nvml.init() != NVML_SUCCESS || nvml.by_index(0, &nvml.device) != NVML_SUCCESS)
        exit(3);
}

static void begin(uint64_t seed)
{
    CUmodule module;
    pthread_t thread;
    calls_find("dlopen");
    map_usage();
    offers = offers_open();
    NEED(CALL(cuInit)(0));
    NEED(CALL(cuDevicePrimaryCtxRetain)(&context, 0));
    NEED(CALL(cuCtxSetCurrent)(context));
    NEED(CALL(cuModuleLoadData)(&module, "simgpu"));
    NEED(CALL(cuModuleGetFunction)(&kernel, module, "spin"));
    NEED(CALL(cuStreamCreate)(&stream, 0));
    open_nvml();
    state = seed * 2 + 1;
    atomic_store(&began_ms, now_ms());
    pthread_create(&thread, NULL, write_meanwhile, (void *)(uintptr_t)(seed * 3 + 7));
    puts("ready");
    fflush(stdout);
    getchar(); /* the first context is made before anything is spoiled */
}

int main(int count, char **arguments)
{
    if (count != 3)
        return 2;
    alarm(SECONDS);
    begin(strtoull(arguments[1], NULL, 10));
    uint64_t random = state * 5 + 3;
    const struct lamina_usage *good = NULL;
    void *copy = malloc(size);
    memcpy(copy, usage, size);
    good = copy;
    for (int i = 0; i < atoi(arguments[2]); i++) {
        for (uint64_t words = next(4); words > 0; words--)
            spoil(&random);
        atomic_store(&writing, next(8) == 0);
        atomic_store(&began_ms, now_ms());
        one_call();
        if (next(40) == 0) /* so that not all calls are refused because of old words */
            memcpy(usage, good, size);
    }
    printf("ok %d %d\n", kept, imported);
    return 0;
}
