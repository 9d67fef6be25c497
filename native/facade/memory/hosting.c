#include "memory/hosting.h"

#include "cuda/capture_mode.h"
#include "cuda/devices.h"
#include "cuda/hooks.h"
#include "cuda/process.h"
#include "memory/blocks.h"
#include "shared/assertion.h"
#include "shared/live_limits.h"

#include <stdatomic.h>

#define PAGE (UINT64_C(2) << 20)
#define MIB (UINT64_C(1) << 20)

enum { SET_PREFERRED = 3, UNSET_PREFERRED = 4, SET_ACCESSED = 5, UNSET_ACCESSED = 6, HOST = -1, SOME = 64 };

static atomic_flag busy = ATOMIC_FLAG_INIT;
static _Atomic uint64_t in_vain[LAMINA_MAX_DEVICES]; /* what was asked for when no more could be moved */

void hosting_after_fork(void)
{
    atomic_flag_clear(&busy);
    for (int device = 0; device < LAMINA_MAX_DEVICES; device++)
        atomic_store(&in_vain[device], 0);
}

/* What a walk over the blocks still has to move, and how. */
struct walk {
    int device;
    bool to_host;
    uint64_t left;
    CUstream stream;
    _Atomic uint64_t *hosted;
};

/* Errors are of no consequence: the driver moves these pages by itself, as it does others. */
static void move_range(const struct walk *walk, CUdeviceptr at, uint64_t bytes)
{
    int gpu = device_ordinal(walk->device);
    if (walk->to_host) {
        REAL(cuMemAdvise)(at, bytes, SET_PREFERRED, HOST);
        REAL(cuMemAdvise)(at, bytes, SET_ACCESSED, gpu);
        REAL(cuMemPrefetchAsync)(at, bytes, HOST, walk->stream);
    } else {
        REAL(cuMemAdvise)(at, bytes, UNSET_ACCESSED, gpu);
        REAL(cuMemAdvise)(at, bytes, UNSET_PREFERRED, gpu);
        REAL(cuMemPrefetchAsync)(at, bytes, gpu, walk->stream);
    }
}

/* The first `extra` MiB of a block are on the host. The block is changed first: if it was freed meanwhile, nothing is
 * moved, and if it is freed from now on, what is on the host counts until then. */
static void move_part(struct walk *walk, const struct block *block)
{
    CUdeviceptr base;
    size_t size;
    uint64_t hosted = block->extra * MIB, moved;
    if (REAL(cuMemGetAddressRange_v2)(&base, &size, block->key) != CUDA_SUCCESS || base != block->key)
        return;
    uint64_t movable = size / PAGE * PAGE, most = (walk->left + PAGE - 1) / PAGE * PAGE;
    uint64_t rest = hosted;
    if (walk->to_host)
        rest = movable > hosted ? movable - hosted : 0;
    moved = rest < most ? rest : most;
    uint64_t after = walk->to_host ? hosted + moved : hosted - moved;
    if (moved == 0 || !blocks_set_extra(block, (uint32_t)(after / MIB)))
        return;
    if (walk->to_host)
        atomic_fetch_add(walk->hosted, moved);
    else
        atomic_fetch_sub(walk->hosted, moved);
    move_range(walk, block->key + (walk->to_host ? hosted : after), moved);
    walk->left -= moved < walk->left ? moved : walk->left;
}

static void move_blocks(struct walk *walk)
{
    struct block some[SOME];
    for (unsigned shard = 0; shard < BLOCK_SHARDS && walk->left > 0; shard++) {
        uint32_t count = blocks_copy(shard, BLOCK_SPILLED, walk->device, some, SOME);
        for (uint32_t i = 0; i < count && walk->left > 0; i++)
            move_part(walk, &some[i]);
    }
}

/* On a stream of its own, which a capture in this thread does not concern. */
static void run_walk(struct walk *walk)
{
    enum { NON_BLOCKING = 1 };
    CUstreamCaptureMode mode = neutral_begin();
    if (REAL(cuStreamCreate)(&walk->stream, NON_BLOCKING) == CUDA_SUCCESS) {
        move_blocks(walk);
        REAL(cuStreamDestroy_v2)(walk->stream);
    }
    neutral_end(mode);
}

static void follow_arbiter(struct lamina_slot *slot, int device, uint64_t wanted)
{
    const struct account *account = &facade_open()->account;
    _Atomic uint64_t *own = &account_slot_device(slot, (uint32_t)device)->hosted;
    uint64_t hosted = account_hosted(account, (uint32_t)device), mine = atomic_load(own);
    struct walk walk = {.device = device, .to_host = wanted > hosted, .hosted = own};
    if (walk.to_host)
        walk.left = wanted - hosted;
    else
        walk.left = hosted - wanted < mine ? hosted - wanted : mine;
    /* Pages are moved whole, so that what is on the host may be some more than what was asked for. */
    if (walk.left == 0 || (!walk.to_host && wanted != 0 && walk.left < PAGE))
        return;
    uint64_t before = walk.left;
    run_walk(&walk);
    if (walk.left == before)
        atomic_store(&in_vain[device], wanted);
}

void hosting_follow(int device)
{
    ASSERT(device >= 0 && device < LAMINA_MAX_DEVICES);
    const struct facade *facade = facade_open();
    struct lamina_slot *slot = process_slot_if_any();
    uint64_t wanted = atomic_load(&facade->arbiter->lendings[device].host_bytes);
    if (slot == NULL || !may_borrow(&facade->account, (uint32_t)device))
        return;
    uint64_t mine = atomic_load(&account_slot_device(slot, (uint32_t)device)->hosted);
    if ((wanted == 0 && mine == 0) || (wanted != 0 && wanted == atomic_load(&in_vain[device])) ||
        !arbiter_is_current(facade->arbiter, monotonic_ns()) || atomic_flag_test_and_set(&busy))
        return;
    atomic_store(&in_vain[device], 0);
    follow_arbiter(slot, device, wanted);
    atomic_flag_clear(&busy);
}
