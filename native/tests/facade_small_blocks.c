/* small_blocks.h against drivers that divide their blocks in different ways, with many requests under way at once: each
 * round makes one step of one of them, in random order. Arguments: how the driver divides, seed, rounds.
 *
 *   powers     each block into pieces of one size, a power of two of 512 bytes
 *   first-fit  each block as requests come, at the first gap of whole 512 bytes
 *   alone      not at all
 *
 * Whenever nothing is under way, exactly the driver's blocks are reserved, and the limit holds. With `powers`, which is
 * what the facade assumes, there is never a moment in which the driver has a block that is not reserved. Prints "ok"
 * and how often a request was refused. */
#include "cuda/process.h"
#include "memory/blocks.h"
#include "memory/reserve.h"
#include "memory/small_blocks.h"
#include "random_numbers.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { BLOCKS = 64, UNITS = 4096, LIMIT_BLOCKS = 40, REQUESTS = 6, HELD = 3000, CONTEXTS = 2 };

/* The account, as far as it matters here. As in the real one, what is given back must be of the kind it was taken as.
 */
static uint64_t reserved_as[LAMINA_KINDS];

static uint64_t reserved(void)
{
    uint64_t sum = 0;
    for (int kind = 0; kind < LAMINA_KINDS; kind++)
        sum += reserved_as[kind];
    return sum;
}

struct lamina_slot *process_slot(void)
{
    static struct lamina_slot slot;
    return &slot;
}

CUresult reserve(int device, enum lamina_kind kind, uint64_t bytes)
{
    assert(device == 0);
    if (reserved() + bytes > LIMIT_BLOCKS * DRIVER_BLOCK)
        return CUDA_ERROR_OUT_OF_MEMORY;
    reserved_as[kind] += bytes;
    return CUDA_SUCCESS;
}

void unreserve(int device, enum lamina_kind kind, uint64_t bytes)
{
    assert(device == 0 && bytes <= reserved_as[kind]);
    reserved_as[kind] -= bytes;
}

/* The driver. */
static enum { POWERS, FIRST_FIT, ALONE } way;
static struct {
    uint32_t used; /* units; 0: the block does not exist */
    uint32_t piece;
    int context;
    bool unit[UNITS];
} blocks[BLOCKS];
static uint64_t driver_blocks;

static uint32_t units_of(uint64_t bytes)
{
    uint32_t units = (uint32_t)((bytes + 511) / 512), power = 1;
    while (way == POWERS && power < units)
        power *= 2;
    return way == POWERS ? power : units;
}

static bool is_free(int block, uint32_t at, uint32_t units)
{
    for (uint32_t i = at; i < at + units; i++)
        if (i >= UNITS || blocks[block].unit[i])
            return false;
    return true;
}

/* The first gap in a block that exists, or in a new one. Address 0 stands for none. */
static CUdeviceptr driver_place(int context, uint64_t bytes, bool new)
{
    uint32_t units = units_of(bytes);
    for (int block = 0; block < BLOCKS; block++) {
        bool serves = new ? blocks[block].used == 0
                          : blocks[block].used != 0 && way != ALONE && blocks[block].context == context &&
                                (way == FIRST_FIT || blocks[block].piece == units);
        for (uint32_t at = 0; serves && at < UNITS; at += way == POWERS ? units : 1)
            if (is_free(block, at, units)) {
                memset(&blocks[block].unit[at], 1, units);
                driver_blocks += new;
                blocks[block].piece = units;
                blocks[block].context = context;
                blocks[block].used += units;
                return (CUdeviceptr)(block + 1) * DRIVER_BLOCK + at * 512;
            }
    }
    return 0;
}

static CUdeviceptr driver_allocate(int context, uint64_t bytes)
{
    CUdeviceptr pointer = driver_place(context, bytes, false);
    return pointer != 0 ? pointer : driver_place(context, bytes, true);
}

static void driver_free(CUdeviceptr pointer, uint64_t bytes)
{
    uint32_t units = units_of(bytes), at = (uint32_t)(pointer % DRIVER_BLOCK / 512);
    int block = (int)(pointer / DRIVER_BLOCK) - 1;
    memset(&blocks[block].unit[at], 0, units);
    blocks[block].used -= units;
    driver_blocks -= blocks[block].used == 0;
}

/* What the program has, and what it is doing. */
static struct allocation {
    CUdeviceptr pointer;
    uint64_t bytes;
    struct small_block *block;
} held[HELD];
static unsigned held_count;

static struct under_way {
    enum { IDLE, BEGUN, PLACED, FREED } stage;
    struct small_request request;
    struct allocation allocation;
} all[REQUESTS];
static unsigned refused;

static uint64_t any_size(void)
{
    static const uint64_t sizes[] = {1, 512, 513, 70000, 349526, 524289, 700000, DRIVER_BLOCK / 2};
    if (next(2))
        return sizes[next(sizeof sizes / sizeof *sizes)];
    return 1 + next(next(2) ? 4096 : DRIVER_BLOCK / 2);
}

static void start(struct under_way *one, bool growing)
{
    if (growing && held_count < HELD - REQUESTS) {
        enum lamina_kind kind = next(8) ? LAMINA_DATA : LAMINA_MANAGED;
        CUcontext context = (CUcontext)(uintptr_t)(1 + next(CONTEXTS));
        one->request = (struct small_request){context, 0, kind, any_size(), NULL, false};
        if (small_blocks_begin(&one->request) == CUDA_SUCCESS)
            one->stage = BEGUN;
        else
            refused++;
    } else if (held_count > 0) {
        unsigned which = (unsigned)next(held_count);
        one->allocation = held[which];
        held[which] = held[--held_count];
        driver_free(one->allocation.pointer, one->allocation.bytes);
        one->stage = FREED;
    }
}

/* The driver keeps each context's memory apart, and managed memory from all other. */
static int place_of(const struct small_request *request)
{
    int context = (int)(uintptr_t)request->context;
    return request->kind == LAMINA_MANAGED ? -context : context;
}

static void place(struct under_way *one)
{
    one->allocation =
        (struct allocation){.pointer = next(20) ? driver_allocate(place_of(&one->request), one->request.bytes) : 0,
                            .bytes = one->request.bytes};
    one->stage = one->allocation.pointer != 0 ? PLACED : IDLE;
    if (one->stage == IDLE)
        small_blocks_cancel(&one->request);
}

static void commit(struct under_way *one)
{
    CUdeviceptr pointer = one->allocation.pointer;
    if (small_blocks_commit(&one->request, pointer, &one->allocation.block) == CUDA_SUCCESS)
        held[held_count++] = one->allocation;
    else { /* at the limit, while a block that the driver no longer has is still counted */
        driver_free(pointer, one->allocation.bytes);
        refused++;
    }
    one->stage = IDLE;
}

static void step(struct under_way *one, bool growing)
{
    switch (one->stage) {
    case IDLE:
        start(one, growing);
        break;
    case BEGUN:
        place(one);
        break;
    case PLACED:
        commit(one);
        break;
    case FREED:
        small_blocks_leave(one->allocation.block);
        one->stage = IDLE;
    }
}

static void check(void)
{
    bool quiet = true;
    for (int i = 0; i < REQUESTS; i++)
        quiet &= all[i].stage == IDLE;
    assert(reserved() <= LIMIT_BLOCKS * DRIVER_BLOCK);
    if (quiet)
        assert(reserved() == driver_blocks * DRIVER_BLOCK);
    if (way == POWERS)
        assert(reserved() >= driver_blocks * DRIVER_BLOCK);
}

int main(int count, char **arguments)
{
    if (count != 4)
        return 2;
    way = FIRST_FIT;
    if (strcmp(arguments[1], "powers") == 0)
        way = POWERS;
    else if (strcmp(arguments[1], "alone") == 0)
        way = ALONE;
    state = strtoull(arguments[2], NULL, 10) * 2 + 1;
    for (int round = 0; round < atoi(arguments[3]); round++) {
        /* Now it grows, now it shrinks; and at times all of one thread come to an end. */
        bool growing = next(100) < (round / 2000 % 2 ? 30 : 80);
        unsigned threads = 1 + (unsigned)(round / 500 % REQUESTS);
        struct under_way *one = &all[next(threads)];
        for (unsigned i = threads; i < REQUESTS; i++)
            if (all[i].stage != IDLE)
                one = &all[i];
        step(one, growing);
        check();
    }
    printf("ok %u\n", refused);
    return 0;
}
