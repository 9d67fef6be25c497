#include "memory/blocks.h"

#include "lamina_layout.h"
#include "shared/assertion.h"
#include "shared/spin.h"

#include <stdlib.h>
#include <string.h>

enum { SHARDS = BLOCK_SHARDS, FIRST_CAPACITY = 16, SOME = 64 };

struct shard {
    _Alignas(64) spin_t lock;
    uint32_t capacity; /* 0 or a power of two */
    uint32_t used;
    struct block *table;
};

static struct shard shards[SHARDS];

static uint64_t hash_key(enum block_class class, uint64_t key)
{
    uint64_t hash = (key ^ ((uint64_t)class << 56)) * UINT64_C(0x9e3779b97f4a7c15);
    return hash ^ (hash >> 32);
}

static struct shard *shard_of(uint64_t hash)
{
    return &shards[hash % SHARDS];
}

static uint32_t home_of(const struct shard *shard, uint64_t hash)
{
    ASSERT(shard->capacity != 0 && (shard->capacity & (shard->capacity - 1)) == 0);
    return (uint32_t)(hash >> 8) & (shard->capacity - 1);
}

/* The entry of the block, or the free entry where it belongs. There is always a free entry. */
static struct block *probe_shard(struct shard *shard, enum block_class class, uint64_t key, uint64_t hash)
{
    ASSERT(class != 0);
    ASSERT(shard->used < shard->capacity);
    uint32_t i = home_of(shard, hash);
    while (shard->table[i].class != 0 && (shard->table[i].key != key || shard->table[i].class != class))
        i = (i + 1) & (shard->capacity - 1);
    return &shard->table[i];
}

static bool grow_shard(struct shard *shard)
{
    struct shard bigger = {.capacity = shard->capacity ? shard->capacity * 2 : FIRST_CAPACITY};
    bigger.table = calloc(bigger.capacity, sizeof *bigger.table);
    if (bigger.table == NULL)
        return false;
    for (uint32_t i = 0; i < shard->capacity; i++) {
        struct block *old = &shard->table[i];
        if (old->class != 0)
            *probe_shard(&bigger, old->class, old->key, hash_key(old->class, old->key)) = *old;
    }
    free(shard->table);
    shard->table = bigger.table;
    shard->capacity = bigger.capacity;
    return true;
}

bool blocks_put(const struct block *block, struct block *replaced)
{
    ASSERT(block->class != 0 && block->class <= BLOCK_SMALL);
    ASSERT(block->device < LAMINA_MAX_DEVICES);
    uint64_t hash = hash_key(block->class, block->key);
    struct shard *shard = shard_of(hash);
    replaced->class = 0;
    spin_lock(&shard->lock);
    bool fits = (shard->used + 1) * 4 <= shard->capacity * 3 || grow_shard(shard);
    if (fits) {
        struct block *entry = probe_shard(shard, block->class, block->key, hash);
        shard->used += entry->class == 0;
        *replaced = *entry;
        *entry = *block;
    }
    spin_unlock(&shard->lock);
    return fits;
}

/* Moves later entries into the gap, so that probing needs no markers for removed blocks. */
static void remove_at(struct shard *shard, uint32_t hole)
{
    ASSERT(hole < shard->capacity);
    ASSERT(shard->used > 0);
    uint32_t mask = shard->capacity - 1;
    for (uint32_t i = (hole + 1) & mask; shard->table[i].class != 0; i = (i + 1) & mask) {
        uint32_t wanted = home_of(shard, hash_key(shard->table[i].class, shard->table[i].key));
        if (((i - wanted) & mask) >= ((i - hole) & mask)) {
            shard->table[hole] = shard->table[i];
            hole = i;
        }
    }
    memset(&shard->table[hole], 0, sizeof shard->table[hole]);
    shard->used--;
}

static bool find_block(enum block_class class, uint64_t key, struct block *block, bool removing)
{
    uint64_t hash = hash_key(class, key);
    struct shard *shard = shard_of(hash);
    bool found = false;
    spin_lock(&shard->lock);
    if (shard->capacity != 0) {
        struct block *entry = probe_shard(shard, class, key, hash);
        found = entry->class != 0;
        *block = *entry;
        if (found && removing)
            remove_at(shard, (uint32_t)(entry - shard->table));
    }
    spin_unlock(&shard->lock);
    return found;
}

bool blocks_take(enum block_class class, uint64_t key, struct block *block)
{
    return find_block(class, key, block, true);
}

bool blocks_get(enum block_class class, uint64_t key, struct block *block)
{
    return find_block(class, key, block, false);
}

uint32_t blocks_copy(unsigned number, enum block_flags flag, int device, struct block *copies, uint32_t most)
{
    ASSERT(number < SHARDS);
    struct shard *shard = &shards[number];
    uint32_t count = 0;
    spin_lock(&shard->lock);
    for (uint32_t i = 0; i < shard->capacity && count < most; i++) {
        const struct block *block = &shard->table[i];
        if (block->class == BLOCK_POINTER && (block->flags & flag) != 0 && block->device == device)
            copies[count++] = *block;
    }
    spin_unlock(&shard->lock);
    return count;
}

bool blocks_set_extra(const struct block *copy, uint32_t extra)
{
    ASSERT(copy->class != 0);
    uint64_t hash = hash_key(copy->class, copy->key);
    struct shard *shard = shard_of(hash);
    bool same = false;
    spin_lock(&shard->lock);
    if (shard->capacity != 0) {
        struct block *entry = probe_shard(shard, copy->class, copy->key, hash);
        same = entry->class != 0 && entry->flags == copy->flags && entry->extra == copy->extra &&
               entry->bytes == copy->bytes;
        if (same)
            entry->extra = extra;
    }
    spin_unlock(&shard->lock);
    return same;
}

/* Removes up to SOME blocks that end with the context. Returns how many. */
static uint32_t take_some(struct shard *shard, uint64_t context, struct block some[SOME])
{
    uint32_t count = 0;
    spin_lock(&shard->lock);
    for (uint32_t i = 0; i < shard->capacity; i++)
        while (count < SOME && shard->table[i].class != 0 && shard->table[i].context == context) {
            some[count++] = shard->table[i];
            remove_at(shard, i);
        }
    spin_unlock(&shard->lock);
    return count;
}

void blocks_drop_context(uint64_t context, void (*ended)(const struct block *block))
{
    ASSERT(context != 0);
    ASSERT(ended != NULL);
    struct block some[SOME];
    for (int s = 0; s < SHARDS; s++)
        for (uint32_t count = SOME; count == SOME;) {
            count = take_some(&shards[s], context, some);
            for (uint32_t i = 0; i < count; i++)
                ended(&some[i]);
        }
}

void blocks_after_fork(void)
{
    /* A thread that the child does not have may have half-changed the tables, so they are not read. */
    memset(shards, 0, sizeof shards);
}
