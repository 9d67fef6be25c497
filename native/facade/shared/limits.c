#include "shared/limits.h"

#include <string.h>
#include <strings.h>

uint64_t limits_checksum(const struct lamina_limits *limits)
{
    const unsigned char *bytes = (const unsigned char *)limits;
    const size_t from = offsetof(struct lamina_limits, checksum), to = from + sizeof limits->checksum;
    uint64_t hash = UINT64_C(0xcbf29ce484222325);
    for (size_t i = 0; i < sizeof *limits; i++) {
        hash ^= i >= from && i < to ? 0 : bytes[i];
        hash *= UINT64_C(0x100000001b3);
    }
    return hash;
}

static int is_uuid(const char *text)
{
    if (memchr(text, 0, LAMINA_UUID_BYTES) == NULL || strlen(text) != 40)
        return 0;
    if (strncmp(text, "GPU-", 4) != 0 && strncmp(text, "MIG-", 4) != 0)
        return 0;
    for (int i = 4; i < 40; i++) {
        int dash = i == 12 || i == 17 || i == 22 || i == 27;
        if (dash ? text[i] != '-' : strchr("0123456789abcdefABCDEF", text[i]) == NULL)
            return 0;
    }
    return 1;
}

static uint64_t request_of(const struct lamina_limit *limit)
{
    return limit->request_bytes == 0 ? limit->memory_bytes : limit->request_bytes;
}

static const char *limit_check(const struct lamina_limit *limit)
{
    if (!is_uuid(limit->uuid))
        return "a device has no valid UUID";
    if (limit->memory_bytes == 0)
        return "a device has no memory limit";
    if (limit->physical_bytes == 0 || limit->physical_bytes > limit->memory_bytes)
        return "a device has a physical share outside its memory";
    if (limit->request_bytes > limit->memory_bytes || limit->physical_bytes > request_of(limit))
        return "a device has a request outside its physical share..memory";
    if (limit->compute_policy > LAMINA_COMPUTE_THREADS)
        return "a device has an unknown compute policy";
    if (limit->cores_percent > 100 || (limit->compute_policy != LAMINA_COMPUTE_NONE && limit->cores_percent == 0))
        return "a device has a compute share outside 1..100 percent";
    if (limit->most_percent != 0 && (limit->most_percent > 100 || limit->most_percent < limit->cores_percent))
        return "a device has most compute outside its share..100 percent";
    return NULL;
}

const char *limits_check(const void *data, size_t size)
{
    const struct lamina_limits *limits = data;
    if (size < sizeof *limits)
        return "the file is truncated";
    if (limits->magic != LAMINA_LIMITS_MAGIC)
        return "the file is not a limits file";
    if (limits->version != LAMINA_LAYOUT_VERSION)
        return "the file has another version";
    if (limits->size != sizeof *limits || size != sizeof *limits)
        return "the file has a wrong size";
    if (limits->checksum != limits_checksum(limits))
        return "the file is damaged";
    if (limits->flags != 0)
        return "the file has unknown flags";
    if (limits->device_count == 0 || limits->device_count > LAMINA_MAX_DEVICES)
        return "the file names no device or too many";
    for (uint32_t i = 0; i < limits->device_count; i++) {
        const char *why = limit_check(&limits->devices[i]);
        if (why != NULL)
            return why;
        if (limits_find(limits, limits->devices[i].uuid) != (int)i)
            return "the file names a device twice";
    }
    return NULL;
}

const char *usage_check(const struct lamina_usage *usage, size_t size, const struct lamina_limits *limits)
{
    if (size < sizeof *usage)
        return "the file is truncated";
    if (usage->magic != LAMINA_USAGE_MAGIC)
        return "the file is not a usage file";
    if (usage->version != LAMINA_LAYOUT_VERSION)
        return "the file has another version";
    if (usage->device_count != limits->device_count || usage->slot_count != LAMINA_SLOTS ||
        usage->slot_stride != LAMINA_SLOT_STRIDE(limits->device_count))
        return "the file is laid out for other limits";
    if (usage->size != LAMINA_USAGE_BYTES(limits->device_count) || size != usage->size)
        return "the file has a wrong size";
    for (uint32_t i = 0; i < limits->device_count; i++)
        if (memcmp(usage->devices[i].uuid, limits->devices[i].uuid, LAMINA_UUID_BYTES) != 0)
            return "the file is about other devices";
    return NULL;
}

int limits_find(const struct lamina_limits *limits, const char *uuid)
{
    if (strncmp(uuid, "GPU-", 4) == 0 || strncmp(uuid, "MIG-", 4) == 0)
        uuid += 4;
    for (uint32_t i = 0; i < limits->device_count && i < LAMINA_MAX_DEVICES; i++)
        if (strcasecmp(limits->devices[i].uuid + 4, uuid) == 0)
            return (int)i;
    return -1;
}
