#include "cuda/context_table.h"

#include "cuda/devices.h"
#include "cuda/hooks.h"
#include "shared/assertion.h"
#include "shared/callbacks.h"
#include "shared/spin.h"

#include <stdlib.h>

enum { FIRST_ROOM = 16 };

static spin_t table_lock;
/* Both by the lock. */
static struct context *table;
static size_t count, room;

static atomic_uint epoch = 1; /* grows when a context goes: its handle may come again for another device */

static int (*adopt_unknown)(CUcontext context, int device);
static struct callbacks end_callbacks; /* each takes the context */

/* The context that this thread asked about last. */
static __thread struct {
    CUcontext handle;
    int device;
    unsigned epoch;
} last __attribute__((tls_model("initial-exec")));

void context_table_after_fork(void)
{
    table_lock = 0;
    table = NULL; /* perhaps half-changed by a thread that the child does not have */
    count = room = 0;
    epoch++;
}

void on_unknown_context(int (*adopt)(CUcontext context, int device))
{
    adopt_unknown = adopt;
}

void on_context_end(void (*end)(CUcontext context))
{
    callbacks_add(&end_callbacks, (void (*)(void))end);
}

void context_table_ending(CUcontext context)
{
    for (unsigned i = 0; i < end_callbacks.count; i++)
        ((void (*)(CUcontext))end_callbacks.functions[i])(context);
}

bool context_table_add(const struct context *context)
{
    bool added = false;
    ASSERT(context->handle != NULL);
    ASSERT(context->device >= 0 && context->device < LAMINA_MAX_DEVICES);
    spin_lock(&table_lock);
    ASSERT(count <= room);
    if (count == room) {
        size_t more = room ? room * 2 : FIRST_ROOM;
        struct context *bigger = realloc(table, more * sizeof *table);
        if (bigger != NULL) {
            table = bigger;
            room = more;
        }
    }
    if (count < room) {
        table[count++] = *context;
        added = true;
    }
    spin_unlock(&table_lock);
    return added;
}

static bool find_context(CUcontext handle, int device, bool removing, struct context *found)
{
    ASSERT(handle != NULL || device >= 0);
    bool there = false;
    spin_lock(&table_lock);
    for (size_t i = 0; i < count && !there; i++) {
        there = handle != NULL ? table[i].handle == handle : table[i].primary && table[i].device == device;
        if (there) {
            *found = table[i];
            if (removing)
                table[i] = table[--count];
        }
    }
    spin_unlock(&table_lock);
    return there;
}

bool context_table_find(CUcontext handle, int device, struct context *found)
{
    return find_context(handle, device, false, found);
}

bool context_table_remove(CUcontext handle, int device, struct context *removed)
{
    bool there = find_context(handle, device, true, removed);
    if (there)
        epoch++;
    return there;
}

bool context_table_find_guessed(struct context *found)
{
    bool there = false;
    spin_lock(&table_lock);
    for (size_t i = 0; i < count && !there; i++)
        if ((there = table[i].guessed))
            *found = table[i];
    spin_unlock(&table_lock);
    return there;
}

void context_table_correct(CUcontext handle, uint64_t bytes)
{
    spin_lock(&table_lock);
    for (size_t i = 0; i < count; i++)
        if (table[i].handle == handle) {
            table[i].bytes = bytes;
            table[i].guessed = false;
        }
    spin_unlock(&table_lock);
}

int context_device(CUcontext *context)
{
    CUcontext current = NULL;
    *context = NULL;
    if (REAL(cuCtxGetCurrent)(&current) != CUDA_SUCCESS || current == NULL)
        return -1;
    *context = current;
    /* Acquire: pairs with the increment when a context is removed, so that a thread that sees the new epoch also sees
     * the table without it. */
    unsigned now = atomic_load_explicit(&epoch, memory_order_acquire);
    if (last.handle == current && last.epoch == now)
        return last.device;
    struct context known;
    int device, ordinal;
    if (context_table_find(current, 0, &known))
        device = known.device;
    else if (REAL(cuCtxGetDevice)(&ordinal) == CUDA_SUCCESS)
        device = adopt_unknown == NULL ? -1 : adopt_unknown(current, device_entry(ordinal));
    else
        return -1;
    ASSERT(device >= -1 && device < LAMINA_MAX_DEVICES);
    last.handle = current;
    last.device = device;
    last.epoch = now;
    return device;
}
