#include "cuda/user_object.h"

#include "cuda/driver.h"

#include <limits.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>

#define USER_OBJECT_MAGIC 0x55534552

enum { NO_DESTRUCTOR_SYNC = 1, MOVE = 1 };

struct CUuserObject_st {
    uint32_t magic;
    atomic_uint count;
    void *data;
    CUhostFn destroy;
};

static bool is_valid(CUuserObject object, unsigned int count)
{
    return object != NULL && object->magic == USER_OBJECT_MAGIC && count > 0 && count <= INT_MAX;
}

/* The program's function runs in the calling thread; in NVIDIA's driver it does in a thread of the driver. */
static CUresult drop(CUuserObject object, unsigned int count)
{
    unsigned int had = atomic_load(&object->count);
    do
        if (had < count)
            return CUDA_ERROR_INVALID_VALUE;
    while (!atomic_compare_exchange_weak(&object->count, &had, had - count));
    if (had == count) {
        object->destroy(object->data);
        object->magic = 0;
        free(object);
    }
    return CUDA_SUCCESS;
}

CUresult cuUserObjectCreate(CUuserObject *out, void *data, CUhostFn destroy, unsigned int count, unsigned int flags)
{
    TRY(driver_check_ready());
    if (out == NULL || destroy == NULL || count == 0 || count > INT_MAX || flags != NO_DESTRUCTOR_SYNC)
        return CUDA_ERROR_INVALID_VALUE;
    CUuserObject object = calloc(1, sizeof *object);
    if (object == NULL)
        return CUDA_ERROR_OUT_OF_MEMORY;
    *object = (struct CUuserObject_st){.magic = USER_OBJECT_MAGIC, .count = count, .data = data, .destroy = destroy};
    *out = object;
    return CUDA_SUCCESS;
}

CUresult cuUserObjectRetain(CUuserObject object, unsigned int count)
{
    TRY(driver_check_ready());
    if (!is_valid(object, count))
        return CUDA_ERROR_INVALID_VALUE;
    atomic_fetch_add(&object->count, count);
    return CUDA_SUCCESS;
}

CUresult cuUserObjectRelease(CUuserObject object, unsigned int count)
{
    TRY(driver_check_ready());
    return is_valid(object, count) ? drop(object, count) : CUDA_ERROR_INVALID_VALUE;
}

static struct graph_object *find(struct graph_object *held, CUuserObject object)
{
    while (held != NULL && held->object != object)
        held = held->next;
    return held;
}

static bool add(struct graph_object **list, CUuserObject object, unsigned int count)
{
    struct graph_object *held = calloc(1, sizeof *held);
    if (held == NULL)
        return false;
    *held = (struct graph_object){object, count, *list};
    *list = held;
    return true;
}

CUresult user_objects_retain(struct graph_object **list, CUuserObject object, unsigned int count, unsigned int flags)
{
    if (!is_valid(object, count) || (flags & ~(unsigned int)MOVE) != 0)
        return CUDA_ERROR_INVALID_VALUE;
    struct graph_object *held = find(*list, object);
    if (held != NULL)
        held->count += count;
    else if (!add(list, object, count))
        return CUDA_ERROR_OUT_OF_MEMORY;
    if (flags != MOVE)
        atomic_fetch_add(&object->count, count);
    return CUDA_SUCCESS;
}

CUresult user_objects_drop(struct graph_object *list, CUuserObject object, unsigned int count)
{
    if (!is_valid(object, count))
        return CUDA_ERROR_INVALID_VALUE;
    struct graph_object *held = find(list, object);
    if (held == NULL || held->count < count)
        return CUDA_ERROR_INVALID_VALUE;
    held->count -= count;
    return drop(object, count);
}

bool user_objects_copy(struct graph_object **to, const struct graph_object *from)
{
    for (; from != NULL; from = from->next) {
        if (from->count == 0)
            continue;
        if (!add(to, from->object, from->count))
            return false;
        atomic_fetch_add(&from->object->count, from->count);
    }
    return true;
}

void user_objects_release(struct graph_object **objects)
{
    while (*objects != NULL) {
        struct graph_object *held = *objects;
        *objects = held->next;
        if (held->count > 0)
            drop(held->object, held->count);
        free(held);
    }
}
