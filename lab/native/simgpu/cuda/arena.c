/* One reservation per process, allocated in powers of two of 2 MiB pages, so that what is freed fits the next
 * allocation of its size. */
#include "cuda/arena.h"

#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>

#define CLASSES 24

struct free_list { uint32_t *starts, count, room; };

static struct {
    char *base;
    size_t pages, next;
    void **what;
    struct free_list free[CLASSES];
} arena;

static void *map_lazily(size_t bytes)
{
    return mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
}

static bool open_arena(void)
{
    if (arena.base != NULL)
        return true;
    for (size_t bytes = 1ull << 42; bytes >= 1ull << 32; bytes /= 4) {
        /* One page more, because a mapping need not start on a 2 MiB boundary. */
        char *at = map_lazily(bytes + PAGE_BYTES);
        if (at == MAP_FAILED)
            continue;
        size_t pages = bytes / PAGE_BYTES;
        void **what = map_lazily(pages * sizeof *what);
        if (what == MAP_FAILED) {
            munmap(at, bytes + PAGE_BYTES);
            continue;
        }
        (void)madvise(at, bytes + PAGE_BYTES, MADV_DONTDUMP);
        arena.base = (char *)(((uintptr_t)at + PAGE_BYTES - 1) & ~(uintptr_t)(PAGE_BYTES - 1));
        arena.pages = pages;
        arena.next = 0;
        arena.what = what;
        return true;
    }
    return false;
}

/* The parent's addresses stay reserved in the child, which takes others. */
void arena_after_fork(void)
{
    arena.base = NULL;
    for (int i = 0; i < CLASSES; i++)
        arena.free[i].count = 0;
}

static int class_of(size_t bytes)
{
    int class = 0;
    while (class < CLASSES && PAGE_BYTES << class < bytes)
        class++;
    return class;
}

CUdeviceptr arena_reserve(size_t bytes)
{
    int class = class_of(bytes);
    if (class >= CLASSES || !open_arena())
        return 0;
    struct free_list *list = &arena.free[class];
    if (list->count > 0)
        return (CUdeviceptr)(uintptr_t)(arena.base + list->starts[--list->count] * PAGE_BYTES);
    size_t pages = (size_t)1 << class;
    if (arena.next + pages > arena.pages)
        return 0;
    arena.next += pages;
    return (CUdeviceptr)(uintptr_t)(arena.base + (arena.next - pages) * PAGE_BYTES);
}

void arena_release(CUdeviceptr start, size_t bytes)
{
    struct free_list *list = &arena.free[class_of(bytes)];
    if (list->count == list->room) {
        uint32_t room = list->room > 0 ? list->room * 2 : 16;
        uint32_t *starts = realloc(list->starts, room * sizeof *starts);
        if (starts == NULL)
            return; /* the only effect is that these addresses are not used again */
        list->starts = starts;
        list->room = room;
    }
    list->starts[list->count++] = (uint32_t)(((char *)(uintptr_t)start - arena.base) / (ptrdiff_t)PAGE_BYTES);
}

bool arena_contains(CUdeviceptr at)
{
    uintptr_t base = (uintptr_t)arena.base;
    return arena.base != NULL && at >= base && at < base + arena.pages * PAGE_BYTES;
}

void arena_set(CUdeviceptr start, size_t bytes, void *what)
{
    size_t page = (start - (uintptr_t)arena.base) / PAGE_BYTES;
    for (size_t end = page + (bytes + PAGE_BYTES - 1) / PAGE_BYTES; page < end; page++)
        arena.what[page] = what;
}

void *arena_get(CUdeviceptr at)
{
    return arena_contains(at) ? arena.what[(at - (uintptr_t)arena.base) / PAGE_BYTES] : NULL;
}

void arena_discard(CUdeviceptr start, size_t bytes)
{
    (void)madvise((void *)(uintptr_t)start, (bytes + PAGE_BYTES - 1) & ~(PAGE_BYTES - 1), MADV_DONTNEED);
}
