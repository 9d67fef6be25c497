/* What this process holds, by the address or handle that the driver gave for it.
 *
 * The table is private to the process and split into shards, so that a call costs one short lock and one probe however
 * many blocks are alive. */
#ifndef LAMINA_BLOCKS_H
#define LAMINA_BLOCKS_H

#include <stdbool.h>
#include <stdint.h>

/* What a key is. Equal keys of different classes are different blocks. */
enum block_class {
    BLOCK_POINTER = 1,
    BLOCK_HANDLE,
    BLOCK_ARRAY,
    BLOCK_MIPMAP,
    BLOCK_MAPPING,
    BLOCK_EXEC,
    BLOCK_GRAPH,
    BLOCK_IMPORT,
    BLOCK_EXTERNAL,
    BLOCK_MODULE,
    BLOCK_LIMIT,
    BLOCK_SMALL
};

/* BLOCK_SPILLED: managed memory in place of device memory. BLOCK_SHARED: other processes may use it, and `extra` is the
 * number of its entry in the table of shared allocations. BLOCK_DIVIDED: a small allocation; `object` is the block of
 * the driver that it is in, as in small_blocks.h, and only that block counts. */
enum block_flags { BLOCK_SPILLED = 1, BLOCK_SHARED = 2, BLOCK_DIVIDED = 4 };

struct block {
    uint64_t key;
    uint64_t bytes;
    uint64_t context; /* the context that it ends with; 0: none */
    void *object;     /* the caller's */
    uint32_t extra;   /* the caller's; of spilled blocks: how many MiB are kept on the host, from the beginning on */
    uint8_t class;    /* 0: a free entry */
    uint8_t kind;     /* enum lamina_kind */
    uint8_t device;
    uint8_t flags; /* enum block_flags */
};

/* Adds a block; false only when there is no memory for the entry. The driver reuses a key only when its former block is
 * gone, so an entry with the same key is replaced: it is copied to `replaced`, whose class is 0 if there was none. */
bool blocks_put(const struct block *block, struct block *replaced);

/* Finds the block and removes it. */
bool blocks_take(enum block_class class, uint64_t key, struct block *block);

/* Finds the block without removing it. */
bool blocks_get(enum block_class class, uint64_t key, struct block *block);

/* Removes all blocks that end with the context, and calls `ended` for each of them. */
void blocks_drop_context(uint64_t context, void (*ended)(const struct block *block));

/* Copies up to `most` blocks of one shard that have a flag and are on the device. Returns how many. */
enum { BLOCK_SHARDS = 64 };
uint32_t blocks_copy(unsigned shard, enum block_flags flag, int device, struct block *copies, uint32_t most);

/* Changes `extra` of a block that is still as this copy says; otherwise returns false. */
bool blocks_set_extra(const struct block *copy, uint32_t extra);

/* Drops everything, locks included: in a forked child the blocks are the parent's. */
void blocks_after_fork(void);

#endif
