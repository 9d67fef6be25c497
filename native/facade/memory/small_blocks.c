#include "memory/small_blocks.h"

#include "cuda/process.h"
#include "memory/blocks.h"
#include "memory/reserve.h"
#include "shared/assertion.h"
#include "shared/spin.h"

#include <stdlib.h>

enum { MIN_BITS = 9, SIZES = 12 }; /* 512 bytes to 1 MiB */

struct small_block {
    struct small_block *next; /* of those that are not in use */
    uint64_t number;          /* its address in blocks */
    struct small_space *space;
    uint32_t live;
    int32_t size; /* of a piece, as in size_of; MIXED: allocations of more than one size are in it */
    int32_t free; /* how many pieces are free, by our count */
};

enum { MIXED = -1 };

/* Only such requests expect a piece of a known block. Managed memory is placed by other rules. */
static const enum lamina_kind EXPECTED_KIND = LAMINA_DATA;

/* The blocks of one context, in which the driver places its small allocations. */
struct small_space {
    struct small_space *next;
    CUcontext context;
    int device;
    enum lamina_kind kind;
    uint32_t blocks, expecting;
    int32_t free[SIZES]; /* pieces by size, without those that are expected */
};

/* For all below, and for spaces and blocks. */
static spin_t lock;
/* Requests under way for which no block is reserved; and blocks reserved for those whose piece another request may have
 * got, or whose block may be gone. By device. */
static uint32_t expecting[LAMINA_MAX_DEVICES], spare[LAMINA_MAX_DEVICES];
static struct small_space *spaces;
static struct small_block *unused;
/* The last block that became empty. It does not count, but stays in the table, because the driver often uses its
 * address for the next one. */
static struct small_block *empty;
static struct small_block *latest; /* the one that the last allocation was in */

void small_blocks_after_fork(void)
{
    lock = 0;
    for (int device = 0; device < LAMINA_MAX_DEVICES; device++)
        expecting[device] = spare[device] = 0;
    spaces = NULL;
    unused = empty = latest = NULL;
}

static int32_t size_of(uint64_t bytes)
{
    ASSERT(shares_a_block(bytes));
    return bytes <= UINT64_C(1) << MIN_BITS ? 0 : 64 - __builtin_clzll(bytes - 1) - MIN_BITS;
}

static int32_t pieces_of(int32_t size)
{
    return (int32_t)(DRIVER_BLOCK >> MIN_BITS >> size);
}

/* A piece of the block is taken or, with -1, free again. */
static void count_taken(struct small_block *block, int32_t pieces)
{
    if (block->size == MIXED)
        return;
    block->free -= pieces;
    block->space->free[block->size] -= pieces;
}

/* What else fits into the block is not known from now on. */
static void mix_sizes(struct small_block *block)
{
    count_taken(block, block->free);
    block->size = MIXED;
}

static struct small_space *find_space(const struct small_request *request)
{
    struct small_space *space = spaces;
    while (space != NULL && (space->context != request->context || space->device != request->device ||
                             space->kind != request->kind || space->blocks + space->expecting == 0))
        space = space->next;
    return space;
}

/* A space that is in use no longer serves another context. */
static struct small_space *find_or_add_space(const struct small_request *request)
{
    struct small_space *space = find_space(request), *next;
    if (space != NULL)
        return space;
    for (space = spaces; space != NULL && space->blocks + space->expecting != 0;)
        space = space->next;
    if (space == NULL) {
        space = calloc(1, sizeof *space);
        if (space == NULL)
            return NULL;
        space->next = spaces;
        spaces = space;
    }
    next = space->next;
    *space = (struct small_space){
        .next = next, .context = request->context, .device = request->device, .kind = request->kind};
    return space;
}

static struct small_block *find_block(uint64_t number)
{
    struct block entry;
    struct small_block *block = latest;
    if (block == NULL || block->number != number)
        block = blocks_get(BLOCK_SMALL, number, &entry) ? entry.object : NULL;
    return block == empty ? NULL : block;
}

/* A record in the table. NULL when there is no memory for it. */
static struct small_block *new_record(uint64_t number)
{
    struct small_block *block = empty;
    if (block != NULL && block->number == number) {
        empty = NULL;
        return block;
    }
    block = unused != NULL ? unused : calloc(1, sizeof *block);
    struct block replaced, entry = {.key = number, .object = block, .class = BLOCK_SMALL};
    if (block == NULL)
        return NULL;
    unused = unused == block ? block->next : unused;
    if (blocks_put(&entry, &replaced))
        return block;
    block->next = unused;
    unused = block;
    return NULL;
}

/* NULL when there is no memory for its record. */
static struct small_block *add_block(const struct small_request *request, uint64_t number)
{
    struct small_space *space = find_or_add_space(request);
    struct small_block *block = space == NULL ? NULL : new_record(number);
    if (block == NULL)
        return NULL;
    int32_t size = size_of(request->bytes);
    ASSERT(block != empty);
    *block = (struct small_block){.number = number, .space = space, .size = size, .free = pieces_of(size)};
    space->blocks++;
    space->free[size] += block->free;
    return block;
}

static void drop_record(struct small_block *block)
{
    struct block entry;
    if (latest == block)
        latest = NULL;
    blocks_take(BLOCK_SMALL, block->number, &entry);
    block->next = unused;
    unused = block;
}

static void remove_block(struct small_block *block)
{
    ASSERT(block->space->blocks > 0);
    mix_sizes(block);
    block->space->blocks--;
    if (empty != NULL)
        drop_record(empty);
    empty = block;
}

/* A reserved block that was not needed: kept while another request may have lost the piece that it expects. Only
 * requests of the same kind may use it, because each kind is counted by itself. Returns how many blocks are to be given
 * back. */
static uint32_t keep_or_give(int device, enum lamina_kind kind)
{
    if (kind != EXPECTED_KIND || spare[device] >= expecting[device])
        return 1;
    spare[device]++;
    return 0;
}

/* The driver has answered. Returns how many blocks are to be given back. */
static uint32_t end_request(struct small_request *request)
{
    struct small_space *space = request->expects;
    int device = request->device;
    uint32_t unneeded = request->reserved ? keep_or_give(device, request->kind) : 0;
    request->reserved = false;
    request->expects = NULL;
    if (space == NULL)
        return unneeded;
    ASSERT(space->expecting > 0 && expecting[device] > 0);
    space->expecting--;
    space->free[size_of(request->bytes)]++;
    if (spare[device] == expecting[device]--) {
        spare[device]--;
        unneeded++;
    }
    return unneeded;
}

static void give_back(int device, enum lamina_kind kind, uint32_t blocks)
{
    if (blocks > 0)
        unreserve(device, kind, blocks * DRIVER_BLOCK);
}

CUresult small_blocks_begin(struct small_request *request)
{
    if (process_slot() == NULL)
        return CUDA_ERROR_OPERATING_SYSTEM;
    int32_t size = size_of(request->bytes);
    spin_lock(&lock);
    struct small_space *space = request->kind == EXPECTED_KIND ? find_space(request) : NULL;
    bool expects = space != NULL && space->free[size] > 0;
    if (expects) {
        space->free[size]--;
        space->expecting++;
        expecting[request->device]++;
    }
    spin_unlock(&lock);
    request->expects = expects ? space : NULL;
    request->reserved = false;
    CUresult result = expects ? CUDA_SUCCESS : reserve(request->device, request->kind, DRIVER_BLOCK);
    request->reserved = !expects && result == CUDA_SUCCESS;
    return result;
}

void small_blocks_cancel(struct small_request *request)
{
    spin_lock(&lock);
    uint32_t unneeded = end_request(request);
    spin_unlock(&lock);
    give_back(request->device, request->kind, unneeded);
}

/* The block that the address is in; it is added if it was not known and one is reserved. With the lock held. */
static struct small_block *find_or_add_block(struct small_request *request, uint64_t number)
{
    struct small_block *block = find_block(number);
    if (block != NULL) {
        bool same = block->size == size_of(request->bytes) && block->space->context == request->context;
        if (!same)
            mix_sizes(block);
        return block;
    }
    if (!request->reserved && spare[request->device] > 0) {
        spare[request->device]--;
        request->reserved = true;
    }
    if (!request->reserved)
        return NULL;
    block = add_block(request, number);
    request->reserved = block == NULL;
    return block;
}

CUresult small_blocks_commit(struct small_request *request, CUdeviceptr pointer, struct small_block **found)
{
    uint64_t number = pointer / DRIVER_BLOCK;
    spin_lock(&lock);
    struct small_block *block = find_or_add_block(request, number);
    if (block == NULL && !request->reserved) {
        /* The driver used a new block although a piece was free by our count. */
        spin_unlock(&lock);
        request->reserved = reserve(request->device, request->kind, DRIVER_BLOCK) == CUDA_SUCCESS;
        spin_lock(&lock);
        block = find_or_add_block(request, number);
    }
    if (block != NULL) {
        block->live++;
        count_taken(block, 1);
        latest = block;
    }
    uint32_t unneeded = end_request(request);
    spin_unlock(&lock);
    give_back(request->device, request->kind, unneeded);
    *found = block;
    return block != NULL ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

void small_blocks_leave(struct small_block *block)
{
    spin_lock(&lock);
    struct small_space *space = block->space;
    int device = space->device;
    enum lamina_kind kind = space->kind;
    uint32_t unneeded = 0;
    ASSERT(block->live > 0);
    count_taken(block, -1);
    if (--block->live == 0) {
        remove_block(block);
        unneeded = keep_or_give(device, kind);
    }
    spin_unlock(&lock);
    give_back(device, kind, unneeded);
}
