/* Small allocations, which share blocks of the driver. After every step the simulated GPU must hold no more than the
 * limit, and what the facade says is free must be exactly what is. Arguments: limit in MiB, then one of
 *
 *   fill KIND BYTES          allocates so many bytes at a time until refused; prints "ok", how many allocations there
 *                            are, how many bytes they asked for and how many MiB the GPU holds for them
 *   mix SEED ROUNDS THREADS  random sizes, kinds and frees; prints "ok" and how many were taken and refused
 *
 * KIND is plain, pitch, managed, array, normalized (an array of 16 bits) or async. What a pool gives back is noticed
 * late, so one thread that mixes uses none: then the figures agree all the time. */
#include "facade_calls.h"
#include "simgpu_ledger.h"

#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#define MIB ((size_t)1 << 20)
enum { HELD = 4000, MAX_THREADS = 16, MAX_TAKEN = 2500000 };
enum kind { NOTHING, PLAIN, PITCH, MANAGED, ARRAY, NORMALIZED, ASYNC, KINDS };

static const char *const names[] = {"", "plain", "pitch", "managed", "array", "normalized", "async"};
static const struct simgpu_gpu *gpu;
static size_t limit;
static CUcontext context;
static int rounds, threads;

struct allocation {
    enum kind kind;
    CUdeviceptr pointer;
    CUarray array;
};

static CUresult take(struct allocation *a, enum kind kind, size_t bytes)
{
    const CUDA_ARRAY_DESCRIPTOR shape = {.Width = bytes, .Height = 1, .Format = 0x01, .NumChannels = 1};
    const CUDA_ARRAY_DESCRIPTOR wide = {.Width = (bytes + 1) / 2, .Height = 1, .Format = 0xc3, .NumChannels = 1};
    size_t pitch;
    CUresult result;
    if (kind == PLAIN)
        result = CALL(cuMemAlloc_v2)(&a->pointer, bytes);
    else if (kind == PITCH)
        result = CALL(cuMemAllocPitch_v2)(&a->pointer, &pitch, bytes, 1, 4);
    else if (kind == MANAGED)
        result = CALL(cuMemAllocManaged)(&a->pointer, bytes, CU_MEM_ATTACH_GLOBAL);
    else if (kind == ASYNC)
        result = CALL(cuMemAllocAsync)(&a->pointer, bytes, NULL);
    else
        result = CALL(cuArrayCreate_v2)(&a->array, kind == NORMALIZED ? &wide : &shape);
    if (result != CUDA_ERROR_OUT_OF_MEMORY)
        NEED(result);
    a->kind = result == CUDA_SUCCESS ? kind : NOTHING;
    return result;
}

static void drop(struct allocation *a)
{
    if (a->kind == ASYNC)
        NEED(CALL(cuMemFreeAsync)(a->pointer, NULL));
    else if (a->kind == ARRAY || a->kind == NORMALIZED)
        NEED(CALL(cuArrayDestroy)(a->array));
    else if (a->kind != NOTHING)
        NEED(CALL(cuMemFree_v2)(a->pointer));
    a->kind = NOTHING;
}

static void check(void)
{
    size_t held = ledger_bytes(gpu);
    if (held <= limit)
        return;
    printf("%zu bytes are held, %zu over the limit\n", held, held - limit);
    exit(1);
}

/* Only while nothing else happens. */
static void check_exactly(void)
{
    size_t left, total;
    NEED(CALL(cuMemGetInfo_v2)(&left, &total));
    check();
    if (total - left == ledger_bytes(gpu))
        return;
    printf("%zu bytes are held, %zu are counted\n", ledger_bytes(gpu), total - left);
    exit(1);
}

static void fill(enum kind kind, size_t bytes)
{
    size_t count = 0, before = ledger_bytes(gpu);
    struct allocation one;
    while (count < MAX_TAKEN && take(&one, kind, bytes) == CUDA_SUCCESS)
        count++;
    if (ledger_bytes(gpu) > limit) {
        printf("over %.1f times the limit\n", (double)ledger_bytes(gpu) / (double)limit);
        return;
    }
    check_exactly();
    printf("ok %zu %zu %zu\n", count, count * bytes, (ledger_bytes(gpu) - before) / MIB);
}

/* Mostly small, in all the sizes that do not divide a block. */
static size_t any_size(unsigned *seed)
{
    static const size_t sizes[] = {1, 512, 513, 4097, 65537, 349526, 524289, 700000, 1 << 20, (1 << 20) + 1};
    switch (rand_r(seed) % 4) {
    case 0:
        return sizes[rand_r(seed) % (sizeof sizes / sizeof sizes[0])];
    case 1:
        return 1 + (size_t)rand_r(seed) % 2048;
    case 2:
        return 1 + (size_t)rand_r(seed) % (300 << 10);
    default:
        return 1 + (size_t)rand_r(seed) % (3 << 20);
    }
}

/* What one thread took and what it was refused. */
struct work {
    unsigned seed;
    int taken, refused;
};

static void *mix(void *argument)
{
    struct work *work = argument;
    struct allocation *held = calloc(HELD, sizeof *held);
    const int kinds = threads == 1 ? ASYNC - PLAIN : KINDS - PLAIN;
    NEED(CALL(cuCtxSetCurrent)(context));
    for (int round = 0; round < rounds; round++) {
        /* Now it grows, now it shrinks, so that blocks are used in part. */
        bool growing = round / 500 % 3 != 2;
        struct allocation *a = &held[rand_r(&work->seed) % HELD];
        drop(a);
        enum kind kind = rand_r(&work->seed) % 8 != 0 ? PLAIN : PLAIN + rand_r(&work->seed) % kinds;
        if (growing && take(a, kind, any_size(&work->seed)) == CUDA_SUCCESS)
            work->taken++;
        else
            work->refused += growing;
        check();
        if (threads == 1 && round % 16 == 0) {
            NEED(CALL(cuCtxSynchronize)());
            check_exactly();
        }
    }
    for (int i = 0; i < HELD; i++)
        drop(&held[i]);
    free(held);
    return NULL;
}

static void mix_all(unsigned seed)
{
    pthread_t ids[MAX_THREADS];
    struct work all = {0}, each[MAX_THREADS];
    for (int i = 0; i < threads; i++) {
        each[i] = (struct work){.seed = seed * MAX_THREADS + (unsigned)i};
        pthread_create(&ids[i], NULL, mix, &each[i]);
    }
    for (int i = 0; i < threads; i++) {
        pthread_join(ids[i], NULL);
        all.taken += each[i].taken;
        all.refused += each[i].refused;
    }
    NEED(CALL(cuCtxSynchronize)());
    check_exactly();
    printf("ok %d %d\n", all.taken, all.refused);
}

int main(int count, char **arguments)
{
    if (count < 5)
        return 2;
    calls_find("linked");
    gpu = ledger_open();
    limit = strtoull(arguments[1], NULL, 10) * MIB;
    NEED(CALL(cuInit)(0));
    NEED(CALL(cuDevicePrimaryCtxRetain)(&context, 0));
    NEED(CALL(cuCtxSetCurrent)(context));
    if (strcmp(arguments[2], "fill") == 0) {
        for (enum kind kind = PLAIN; kind < KINDS; kind++)
            if (strcmp(arguments[3], names[kind]) == 0)
                fill(kind, strtoull(arguments[4], NULL, 10));
        return 0;
    }
    rounds = atoi(arguments[4]);
    threads = count > 5 ? atoi(arguments[5]) : 1;
    if (threads > MAX_THREADS)
        return 2;
    mix_all((unsigned)atoi(arguments[3]));
    return 0;
}
