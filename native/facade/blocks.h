/* What this process holds, by the address or handle that the driver gave for it.
 *
 * Private to the process and spread over shards, so that a call costs one short lock and one probe whatever the
 * number of live blocks. */
#ifndef LAMINA_BLOCKS_H
#define LAMINA_BLOCKS_H

#include <stdbool.h>
#include <stdint.h>

/* Kinds of names; equal numbers of different kinds are different blocks. */
enum block_class { BLOCK_POINTER = 1, BLOCK_HANDLE, BLOCK_ARRAY, BLOCK_MIPMAP, BLOCK_MAPPING, BLOCK_EXEC, BLOCK_GRAPH,
                   BLOCK_IMPORT, BLOCK_EXTERNAL, BLOCK_MODULE, BLOCK_LIMIT };

/* BLOCK_SPILLED: managed memory in place of plain. BLOCK_SHARED: others may use it; `extra` is the share's number. */
enum block_flags { BLOCK_SPILLED = 1, BLOCK_SHARED = 2 };

struct block {
    uint64_t key;
    uint64_t bytes;
    uint64_t context; /* with which it dies; 0: with none */
    void *object;     /* of the caller */
    uint32_t extra;   /* of the caller */
    uint8_t class;    /* 0: free place */
    uint8_t kind;     /* enum lamina_kind */
    uint8_t device;
    uint8_t flags;    /* enum block_flags */
};

/* False only when there is no memory for it. An entry of the same name gives way; it is copied to `replaced`, whose
 * class is else 0: the driver gives a name again only when what had it is gone. */
bool blocks_put(const struct block *block, struct block *replaced);

/* Finds the block and removes it. */
bool blocks_take(enum block_class class, uint64_t key, struct block *block);

/* Finds the block without removing it. */
bool blocks_get(enum block_class class, uint64_t key, struct block *block);

/* Removes all blocks that die with the context and shows each to `gone`. */
void blocks_drop_context(uint64_t context, void (*gone)(const struct block *block));

/* Forgets everything, locks included: in a forked child the blocks are the parent's. */
void blocks_forget(void);

#endif
