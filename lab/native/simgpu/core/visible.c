#include "core/visible.h"

#include "core/mig.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#define NONE UINT32_MAX

/* One item of a list, without the space around it. */
struct list_item {
    const char *text;
    size_t length;
};

static bool is_index(struct list_item item)
{
    bool digits = item.length > 0 && item.length < 4;
    for (size_t i = 0; digits && i < item.length; i++)
        digits = isdigit((unsigned char)item.text[i]);
    return digits;
}

/* Whether the item begins like a UUID, with at least one more character. */
static bool is_uuid(struct list_item item, const char *start)
{
    return item.length > strlen(start) && strncasecmp(item.text, start, strlen(start)) == 0;
}

/* A prefix that two units have names neither. */
static uint32_t find_by_uuid(const struct machine *m, struct list_item item, const uint32_t *from, uint32_t from_count)
{
    uint32_t found = NONE;
    for (uint32_t i = 0; i < from_count; i++) {
        if (strncasecmp(machine_gpu(m, from[i])->uuid, item.text, item.length) != 0)
            continue;
        if (found != NONE)
            return NONE;
        found = from[i];
    }
    return found;
}

static uint32_t find_instance(const struct machine *m, struct list_item item)
{
    uint32_t instances[SIMGPU_MAX_UNITS], count = 0;
    for (uint32_t unit = m->head->gpu_count; unit < m->head->unit_count; unit++)
        if (mig_is_visible(m, unit))
            instances[count++] = unit;
    return find_by_uuid(m, item, instances, count);
}

static uint32_t find(const struct machine *m, struct list_item item, const uint32_t *from, uint32_t from_count)
{
    if (is_index(item)) {
        unsigned long index = strtoul(item.text, NULL, 10);
        return index < from_count ? from[index] : NONE;
    }
    if (is_uuid(item, "MIG-"))
        return find_instance(m, item);
    return is_uuid(item, "GPU-") ? find_by_uuid(m, item, from, from_count) : NONE;
}

static bool contains(const uint32_t *numbers, uint32_t count, uint32_t number)
{
    for (uint32_t i = 0; i < count; i++)
        if (numbers[i] == number)
            return true;
    return false;
}

/* The next item of a list, which then points to its end: a comma or the end of the text. */
static struct list_item next_item(const char **list)
{
    while (isspace((unsigned char)**list))
        (*list)++;
    struct list_item next = {.text = *list, .length = strcspn(*list, ",")};
    *list += next.length;
    while (next.length > 0 && isspace((unsigned char)next.text[next.length - 1]))
        next.length--;
    return next;
}

uint32_t visible_select(const struct machine *m, const char *list, const uint32_t *from, uint32_t from_count,
                        uint32_t *out)
{
    uint32_t count = 0;
    while (count < SIMGPU_MAX_UNITS) {
        uint32_t number = find(m, next_item(&list), from, from_count);
        if (number == NONE)
            break;
        if (contains(out, count, number))
            return 0; /* a GPU named twice makes the whole list void, as in CUDA */
        out[count++] = number;
        if (*list++ == '\0')
            break;
    }
    return count;
}

static int compare_numbers(const void *a, const void *b)
{
    uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
    return (x > y) - (x < y);
}

void visible_read(struct machine *m)
{
    uint32_t all[SIMGPU_MAX_GPUS], chosen[SIMGPU_MAX_UNITS];
    for (uint32_t i = 0; i < m->head->gpu_count; i++)
        all[i] = i;
    const char *list = getenv("NVIDIA_VISIBLE_DEVICES");
    if (list == NULL || strcmp(list, "all") == 0) {
        memcpy(m->visible, all, sizeof all);
        m->visible_count = m->head->gpu_count;
        m->whole = UINT32_MAX;
        return;
    }
    m->whole = UINT32_MAX; /* while the list is read, every instance may be named */
    uint32_t count = visible_select(m, list, all, m->head->gpu_count, chosen);
    m->whole = 0;
    for (uint32_t i = 0; i < count; i++) {
        bool instance = chosen[i] >= m->head->gpu_count;
        uint32_t gpu = instance ? machine_gpu(m, chosen[i])->parent : chosen[i];
        if (instance)
            m->named[m->named_count++] = chosen[i];
        else
            m->whole |= 1u << gpu;
        if (!contains(m->visible, m->visible_count, gpu))
            m->visible[m->visible_count++] = gpu;
    }
    qsort(m->visible, m->visible_count, sizeof m->visible[0], compare_numbers);
}
