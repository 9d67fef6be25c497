#include "cuda/ordered_free.h"

#include "core/timeline.h"
#include "cuda/callback.h"
#include "cuda/driver.h"

#include <stdatomic.h>

static struct allocation *waiting; /* by the driver's lock */

void ordered_free_after_fork(void)
{
    waiting = NULL;
}

static bool has_come(const struct allocation *a)
{
    return timeline_done(&driver.m, a->dev->gpu, driver.slot, machine_now()) >= a->ordered.position &&
           callback_has_run(a->ordered.callback);
}

void ordered_free(struct allocation *a, CUstream stream, void (*end)(struct allocation *a))
{
    a->ordered = (struct ordered){.stream = stream,
                                  .position = stream_end(stream),
                                  .callback = callback_newest(stream),
                                  .end = end,
                                  .next = waiting};
    a->freed = true;
    waiting = a;
    ordered_free_collect();
}

void ordered_free_forget(struct allocation *a)
{
    if (!a->freed)
        return;
    struct allocation **at = &waiting;
    while (*at != a)
        at = &(*at)->ordered.next;
    *at = a->ordered.next;
}

void ordered_free_collect(void)
{
    for (struct allocation *a = waiting, *next; a != NULL; a = next) {
        next = a->ordered.next;
        if (has_come(a))
            a->ordered.end(a);
    }
}

void ordered_free_reuse(CUmemoryPool pool, CUstream stream, bool with_new_dependencies)
{
    for (struct allocation *a = waiting, *next; a != NULL; a = next) {
        next = a->ordered.next;
        bool ordered = with_new_dependencies || a->ordered.stream == stream;
        if (a->pool != pool || !ordered)
            continue;
        if (atomic_load(&stream->last) < a->ordered.position)
            atomic_store(&stream->last, a->ordered.position);
        a->ordered.end(a);
    }
}
