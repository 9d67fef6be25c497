#include "cuda/slab.h"

#include "cuda/arena.h"
#include "cuda/charge.h"
#include "cuda/context.h"
#include "cuda/reclaim.h"

#include <stdlib.h>

#define MIN_BLOCK 512
#define SLAB_MAGIC 0x534c4142

struct slab {
    uint32_t magic; /* an allocation starts with an address in the arena, which is never this */
    uint32_t used, pieces;
    size_t piece;
    bool touched; /* data was written to a piece of it */
    CUcontext ctx;
    CUdeviceptr start;
    struct slab *next, *previous; /* blocks of this size with a free piece, of one device */
    uint32_t first_free;
    uint32_t *next_free;
    struct allocation items[];
};

static int class_of(size_t size)
{
    int class = 0;
    while ((size_t)MIN_BLOCK << class < size)
        class++;
    return class;
}

static void list_add(struct slab **head, struct slab *s)
{
    s->previous = NULL;
    s->next = *head;
    if (*head != NULL)
        (*head)->previous = s;
    *head = s;
}

static void list_remove(struct slab **head, struct slab *s)
{
    if (s->previous != NULL)
        s->previous->next = s->next;
    else
        *head = s->next;
    if (s->next != NULL)
        s->next->previous = s->previous;
}

static struct slab *create_record(size_t piece)
{
    uint32_t pieces = (uint32_t)(PAGE_BYTES / piece);
    struct slab *s = calloc(1, sizeof *s + pieces * (sizeof(struct allocation) + sizeof(uint32_t)));
    if (s == NULL)
        return NULL;
    s->magic = SLAB_MAGIC;
    s->pieces = pieces;
    s->piece = piece;
    s->next_free = (uint32_t *)(s->items + pieces);
    for (uint32_t i = 0; i < pieces; i++)
        s->next_free[i] = i + 1;
    return s;
}

/* The record of an empty block is kept for the next one of its size; its free list is valid as it is. */
static struct slab *create_slab(CUcontext ctx, int class)
{
    struct slab **spare = &ctx->dev->spare_slabs[class];
    struct slab *s = *spare != NULL ? *spare : create_record((size_t)MIN_BLOCK << class);
    *spare = NULL;
    CUdeviceptr start = s != NULL ? arena_reserve(PAGE_BYTES) : 0;
    if (start == 0 || !reclaim_take(ctx->dev, (uint32_t)(PAGE_BYTES / MIB))) {
        if (start != 0)
            arena_release(start, PAGE_BYTES);
        free(s);
        return NULL;
    }
    s->ctx = ctx;
    s->start = start;
    arena_set(start, PAGE_BYTES, s);
    return s;
}

static void free_piece(struct allocation *a)
{
    struct slab *s = arena_get(a->start);
    int class = class_of(s->piece);
    struct slab **head = &a->dev->slabs[class], **spare = &a->dev->spare_slabs[class];
    uint32_t index = (uint32_t)(a - s->items);
    s->touched |= a->touched;
    a->start = 0;
    s->next_free[index] = s->first_free;
    s->first_free = index;
    if (s->used-- == s->pieces)
        list_add(head, s);
    if (s->used > 0)
        return;
    list_remove(head, s);
    charge_give(s->ctx->dev, (uint32_t)(PAGE_BYTES / MIB));
    if (s->touched)
        arena_discard(s->start, PAGE_BYTES);
    s->touched = false;
    arena_set(s->start, PAGE_BYTES, NULL);
    arena_release(s->start, PAGE_BYTES);
    if (*spare == NULL)
        *spare = s;
    else
        free(s);
}

CUresult slab_allocate(CUcontext ctx, size_t size, struct allocation **out)
{
    int class = class_of(size);
    struct slab **head = &ctx->dev->slabs[class];
    struct slab *s = *head;
    while (s != NULL && s->ctx != ctx)
        s = s->next;
    if (s == NULL) {
        s = create_slab(ctx, class);
        if (s == NULL)
            return CUDA_ERROR_OUT_OF_MEMORY;
        list_add(head, s);
    }
    uint32_t index = s->first_free;
    s->first_free = s->next_free[index];
    if (++s->used == s->pieces)
        list_remove(head, s);
    struct allocation *a = &s->items[index];
    *a = (struct allocation){.start = s->start + index * s->piece,
                             .size = size,
                             .kind = KIND_PLAIN,
                             .shared_block = true,
                             .dev = ctx->dev,
                             .release = free_piece};
    *out = a;
    return CUDA_SUCCESS;
}

bool slab_is_slab(const void *what)
{
    return what != NULL && *(const uint32_t *)what == SLAB_MAGIC;
}

struct allocation *slab_find(void *found, CUdeviceptr at)
{
    struct slab *s = found;
    struct allocation *a = &s->items[(at - s->start) / s->piece];
    return a->start != 0 && at < a->start + a->size ? a : NULL;
}
