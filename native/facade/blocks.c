#include "blocks.h"

#include "spin.h"

#include <stdlib.h>
#include <string.h>

enum { SHARDS = 64, FIRST_PLACES = 16 };

struct shard {
    _Alignas(64) spin_t lock;
    uint32_t places; /* 0 or a power of two */
    uint32_t used;
    struct block *table;
};

static struct shard shards[SHARDS];

static uint64_t mix(enum block_class class, uint64_t key)
{
    uint64_t hash = (key ^ ((uint64_t)class << 56)) * UINT64_C(0x9e3779b97f4a7c15);
    return hash ^ (hash >> 32);
}

static struct shard *shard_of(uint64_t hash)
{
    return &shards[hash % SHARDS];
}

static uint32_t home(const struct shard *shard, uint64_t hash)
{
    return (uint32_t)(hash >> 8) & (shard->places - 1);
}

/* The place of the block, or the free place where it belongs. There is always a free place. */
static struct block *probe(struct shard *shard, enum block_class class, uint64_t key, uint64_t hash)
{
    uint32_t i = home(shard, hash);
    while (shard->table[i].class != 0 && (shard->table[i].key != key || shard->table[i].class != class))
        i = (i + 1) & (shard->places - 1);
    return &shard->table[i];
}

static bool grow(struct shard *shard)
{
    struct shard bigger = {.places = shard->places ? shard->places * 2 : FIRST_PLACES};
    bigger.table = calloc(bigger.places, sizeof *bigger.table);
    if (bigger.table == NULL)
        return false;
    for (uint32_t i = 0; i < shard->places; i++) {
        struct block *old = &shard->table[i];
        if (old->class != 0)
            *probe(&bigger, old->class, old->key, mix(old->class, old->key)) = *old;
    }
    free(shard->table);
    shard->table = bigger.table;
    shard->places = bigger.places;
    return true;
}

bool blocks_put(const struct block *block, struct block *replaced)
{
    uint64_t hash = mix(block->class, block->key);
    struct shard *shard = shard_of(hash);
    replaced->class = 0;
    spin_lock(&shard->lock);
    bool room = (shard->used + 1) * 4 <= shard->places * 3 || grow(shard);
    if (room) {
        struct block *place = probe(shard, block->class, block->key, hash);
        shard->used += place->class == 0;
        *replaced = *place;
        *place = *block;
    }
    spin_unlock(&shard->lock);
    return room;
}

/* Closes the gap, so that probing never needs marks of removed blocks. */
static void remove_at(struct shard *shard, uint32_t hole)
{
    uint32_t mask = shard->places - 1;
    for (uint32_t i = (hole + 1) & mask; shard->table[i].class != 0; i = (i + 1) & mask) {
        uint32_t wanted = home(shard, mix(shard->table[i].class, shard->table[i].key));
        if (((i - wanted) & mask) >= ((i - hole) & mask)) {
            shard->table[hole] = shard->table[i];
            hole = i;
        }
    }
    memset(&shard->table[hole], 0, sizeof shard->table[hole]);
    shard->used--;
}

static bool find(enum block_class class, uint64_t key, struct block *block, bool removing)
{
    uint64_t hash = mix(class, key);
    struct shard *shard = shard_of(hash);
    bool found = false;
    spin_lock(&shard->lock);
    if (shard->places != 0) {
        struct block *place = probe(shard, class, key, hash);
        found = place->class != 0;
        *block = *place;
        if (found && removing)
            remove_at(shard, (uint32_t)(place - shard->table));
    }
    spin_unlock(&shard->lock);
    return found;
}

bool blocks_take(enum block_class class, uint64_t key, struct block *block)
{
    return find(class, key, block, true);
}

bool blocks_get(enum block_class class, uint64_t key, struct block *block)
{
    return find(class, key, block, false);
}

void blocks_drop_context(uint64_t context, void (*gone)(const struct block *block))
{
    for (int s = 0; s < SHARDS; s++) {
        struct shard *shard = &shards[s];
        spin_lock(&shard->lock);
        for (uint32_t i = 0; i < shard->places; i++)
            while (shard->table[i].class != 0 && shard->table[i].context == context) {
                struct block block = shard->table[i];
                remove_at(shard, i);
                gone(&block);
            }
        spin_unlock(&shard->lock);
    }
}

void blocks_forget(void)
{
    /* The tables may be half-changed by a thread that the fork left behind: leave them unread. */
    memset(shards, 0, sizeof shards);
}
