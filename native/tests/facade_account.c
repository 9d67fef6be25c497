/* Random work on the account and the table of blocks against a plain model, and random damage to limits files; to be
 * built with sanitizers. Arguments: seed, rounds. */
#include "memory/blocks.h"
#include "random_numbers.h"
#include "shared/account.h"
#include "shared/limits.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { DEVICES = 2, MEMBERS = 5, NAMES = 4096 };

static struct lamina_limits limits = {
    .magic = LAMINA_LIMITS_MAGIC, .version = LAMINA_LAYOUT_VERSION, .size = sizeof limits, .device_count = DEVICES};

static void make_limits(void)
{
    for (int i = 0; i < DEVICES; i++) {
        snprintf(limits.devices[i].uuid, LAMINA_UUID_BYTES, "GPU-%08d-0000-0000-0000-000000000000", i);
        limits.devices[i].memory_bytes = 1000000 + 17 * (unsigned)i;
        limits.devices[i].physical_bytes = limits.devices[i].memory_bytes;
    }
    limits.checksum = limits_checksum(&limits);
    assert(limits_check(&limits, sizeof limits) == NULL);
}

/* Any damage is found, and no byte beyond the given ones is read. */
static void damage(unsigned rounds)
{
    for (unsigned round = 0; round < rounds; round++) {
        size_t size = next(4) ? sizeof limits : next(sizeof limits + 1);
        char *copy = malloc(size + 1);
        memcpy(copy, &limits, size);
        size_t at = size == 0 ? 0 : next(size);
        if (size != 0)
            copy[at] ^= (char)(1 + next(255));
        assert(limits_check(copy, size) != NULL);
        free(copy);
    }
}

/* The same with a valid checksum: the checks themselves must find it. */
static void nonsense(unsigned rounds)
{
    for (unsigned round = 0; round < rounds; round++) {
        struct lamina_limits copy = limits;
        char *bytes = (char *)&copy;
        for (uint64_t changes = 1 + next(4); changes > 0; changes--)
            bytes[next(sizeof copy)] = (char)next(256);
        copy.checksum = limits_checksum(&copy);
        if (limits_check(&copy, sizeof copy) != NULL)
            continue;
        assert(copy.device_count >= 1 && copy.device_count <= LAMINA_MAX_DEVICES);
        for (uint32_t i = 0; i < copy.device_count; i++)
            assert(copy.devices[i].memory_bytes > 0 && copy.devices[i].cores_percent <= 100);
    }
}

static struct lamina_usage *make_usage(void)
{
    struct lamina_usage *usage = aligned_alloc(64, (LAMINA_USAGE_BYTES(DEVICES) + 63) / 64 * 64);
    memset(usage, 0, LAMINA_USAGE_BYTES(DEVICES));
    usage->magic = LAMINA_USAGE_MAGIC;
    usage->version = LAMINA_LAYOUT_VERSION;
    usage->device_count = DEVICES;
    usage->size = LAMINA_USAGE_BYTES(DEVICES);
    usage->slot_count = LAMINA_SLOTS;
    usage->slot_stride = LAMINA_SLOT_STRIDE(DEVICES);
    for (int i = 0; i < DEVICES; i++)
        memcpy(usage->devices[i].uuid, limits.devices[i].uuid, LAMINA_UUID_BYTES);
    assert(usage_check(usage, usage->size, &limits) == NULL);
    return usage;
}

static void charges(unsigned rounds)
{
    struct account account = {make_usage(), &limits, NULL, NULL};
    struct lamina_slot *slots[MEMBERS];
    uint64_t model[MEMBERS][DEVICES][LAMINA_KINDS] = {0}, sum[DEVICES] = {0};
    struct identity self = identity_of_this_process();
    for (int member = 0; member < MEMBERS; member++)
        assert((slots[member] = account_join(&account, &self, -1)) != NULL);
    for (unsigned round = 0; round < rounds; round++) {
        uint32_t member = (uint32_t)next(MEMBERS), device = (uint32_t)next(DEVICES),
                 kind = (uint32_t)next(LAMINA_KINDS);
        uint64_t *held = &model[member][device][kind], limit = limits.devices[device].memory_bytes;
        uint64_t bytes;
        if (next(10))
            bytes = 1 + next(limit / 8);
        else
            bytes = next(2) ? UINT64_MAX - next(5) : limit + next(3);
        if (next(2)) {
            uint64_t asked = account_charge(&account, slots[member], device, kind, bytes);
            int fits = bytes <= limit && sum[device] + bytes <= limit;
            assert(fits == (asked == 0));
            assert(fits || asked > limit);
            *held += fits ? bytes : 0;
            sum[device] += fits ? bytes : 0;
        } else {
            uint64_t part = *held == 0 ? 0 : 1 + next(*held);
            account_discharge(&account, slots[member], device, kind, part);
            *held -= part;
            sum[device] -= part;
        }
        assert(account_held(&account, device) == sum[device]);
        assert(account.usage->devices[device].total == sum[device]);
        assert(account.usage->devices[device].peak <= limit);
    }
    for (int device = 0; device < DEVICES; device++)
        account_discharge(&account, slots[0], (uint32_t)device, LAMINA_DATA, UINT64_MAX); /* never below zero */
    assert(account_slot_held(slots[0], 0) <= sum[0]);
    free(account.usage);
}

static uint64_t dropped;

static void drop(const struct block *block)
{
    dropped += block->bytes;
}

static void blocks(unsigned rounds)
{
    static uint64_t model[NAMES];
    struct block block, replaced;
    memset(model, 0, sizeof model);
    for (unsigned round = 0; round < rounds; round++) {
        uint64_t name = next(NAMES), key = name << 9;
        if (next(3) != 0) {
            block =
                (struct block){.key = key, .bytes = 1 + next(1000), .context = 1 + name % 7, .class = BLOCK_POINTER};
            assert(blocks_put(&block, &replaced));
            assert((replaced.class != 0) == (model[name] != 0) &&
                   replaced.bytes * (replaced.class != 0) == model[name]);
            model[name] = block.bytes;
        } else {
            assert(blocks_take(BLOCK_POINTER, key, &block) == (model[name] != 0));
            assert(model[name] == 0 || block.bytes == model[name]);
            model[name] = 0;
        }
        assert(!blocks_get(BLOCK_HANDLE, key, &block));
    }
    uint64_t expected = 0;
    for (uint64_t name = 0; name < NAMES; name++)
        if (1 + name % 7 == 3) {
            expected += model[name];
            model[name] = 0;
        }
    dropped = 0;
    blocks_drop_context(3, drop);
    assert(dropped == expected);
    for (uint64_t name = 0; name < NAMES; name++)
        assert(blocks_take(BLOCK_POINTER, name << 9, &block) == (model[name] != 0));
}

int main(int count, char **arguments)
{
    state = count > 1 ? strtoull(arguments[1], NULL, 10) * 2 + 1 : 1;
    unsigned rounds = count > 2 ? (unsigned)atoi(arguments[2]) : 10000;
    make_limits();
    damage(rounds);
    nonsense(rounds);
    charges(rounds);
    blocks(rounds);
    puts("held");
    return 0;
}
