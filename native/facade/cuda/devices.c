#include "cuda/devices.h"

#include "cuda/hooks.h"
#include "shared/assertion.h"
#include "shared/facade.h"
#include "shared/limits.h"

#include <ctype.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

static _Atomic(signed char) entry_of[LAMINA_MAX_DEVICES];
static atomic_int shown;

/* The entry that one item of the list selects: by its number, or by the beginning of a UUID that only one entry has. */
static int entry_of_item(const struct lamina_limits *limits, const char *item, size_t length)
{
    int found = -1;
    if (length > 0 && length < 4 && strspn(item, "0123456789") >= length) {
        int number = atoi(item);
        return number < (int)limits->device_count ? number : -1;
    }
    if (length < 5 || (strncasecmp(item, "GPU-", 4) != 0 && strncasecmp(item, "MIG-", 4) != 0))
        return -1;
    for (uint32_t i = 0; i < limits->device_count; i++)
        if (strncasecmp(limits->devices[i].uuid, item, length) == 0) {
            if (found >= 0)
                return -1;
            found = (int)i;
        }
    return found;
}

bool devices_visible(const struct lamina_limits *limits, const char *wanted, char *text, size_t size)
{
    size_t used = 0;
    int everything = wanted == NULL;
    if (size == 0)
        return false;
    text[0] = 0;
    for (uint32_t i = 0; everything ? i < limits->device_count : true; i++) {
        int entry = (int)i;
        if (!everything) {
            wanted += strspn(wanted, " \t");
            size_t length = strcspn(wanted, ",");
            const char *next = wanted + length;
            while (length > 0 && isspace((unsigned char)wanted[length - 1]))
                length--;
            entry = entry_of_item(limits, wanted, length);
            wanted = *next == ',' ? next + 1 : next;
        }
        if (entry < 0)
            return true;
        int written = snprintf(text + used, size - used, "%s%s", used ? "," : "", limits->devices[entry].uuid);
        if (written < 0 || (size_t)written >= size - used)
            return false;
        ASSERT(used + (size_t)written < size);
        used += (size_t)written;
        if (!everything && *wanted == 0)
            return true;
    }
    return true;
}

static bool device_uuid(CUdevice device, char text[LAMINA_UUID_BYTES])
{
    CUuuid uuid;
    if (REAL(cuDeviceGetUuid_v2)(&uuid, device) != CUDA_SUCCESS && REAL(cuDeviceGetUuid)(&uuid, device) != CUDA_SUCCESS)
        return false;
    const unsigned char *b = (const unsigned char *)uuid.bytes;
    snprintf(text, LAMINA_UUID_BYTES, "GPU-%02x%02x%02x%02x-%02x%02x-%02x%02x-%02x%02x-%02x%02x%02x%02x%02x%02x", b[0],
             b[1], b[2], b[3], b[4], b[5], b[6], b[7], b[8], b[9], b[10], b[11], b[12], b[13], b[14], b[15]);
    return true;
}

bool devices_map(void)
{
    const struct facade *facade = facade_open();
    int count = 0;
    if (facade == NULL || REAL(cuDeviceGetCount)(&count) != CUDA_SUCCESS || count > LAMINA_MAX_DEVICES)
        return false;
    for (int ordinal = 0; ordinal < count; ordinal++) {
        char uuid[LAMINA_UUID_BYTES];
        CUdevice device;
        if (REAL(cuDeviceGet)(&device, ordinal) != CUDA_SUCCESS || device != ordinal || !device_uuid(device, uuid))
            return false;
        int entry = limits_find(&facade->limits, uuid);
        if (entry < 0)
            return false;
        ASSERT(entry < LAMINA_MAX_DEVICES);
        entry_of[ordinal] = (signed char)entry;
    }
    atomic_store(&shown, count);
    return true;
}

int device_entry(int ordinal)
{
    if (ordinal < 0 || ordinal >= atomic_load(&shown))
        return -1;
    return entry_of[ordinal];
}

int device_of_location(const CUmemLocation *location)
{
    /* One part of a GPU's memory, since CUDA 13.4: the ordinal is only the first byte of the id. */
    enum { DEVICE_LOCALITY_DOMAIN = 6 };
    if (location->type == CU_MEM_LOCATION_TYPE_DEVICE)
        return device_entry(location->id);
    return location->type == DEVICE_LOCALITY_DOMAIN ? device_entry(location->id & 0xff) : -1;
}

int device_ordinal(int entry)
{
    ASSERT(entry >= 0 && entry < LAMINA_MAX_DEVICES);
    for (int ordinal = 0; ordinal < atomic_load(&shown); ordinal++)
        if (entry_of[ordinal] == entry)
            return ordinal;
    return entry;
}
