/* Garbage in the usage file: before it is opened, and while it is mapped, at any byte. Whatever it contains, every
 * call returns, accesses nothing outside the file, and grants nothing over the limit. Arguments: seed, rounds. */
#include "random_numbers.h"
#include "shared/account.h"
#include "shared/limits.h"
#include "shared/shared_allocations.h"

#include <assert.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { DEVICES = 2, LIMIT = 1000000, SECONDS = 120 };

static struct lamina_limits limits = {
    .magic = LAMINA_LIMITS_MAGIC, .version = LAMINA_LAYOUT_VERSION, .size = sizeof limits, .device_count = DEVICES};

static struct lamina_usage *make_usage(void)
{
    struct lamina_usage *usage =
        calloc(1, LAMINA_USAGE_BYTES(DEVICES)); /* exactly this size, so that reading beyond it is detected */
    *usage = (struct lamina_usage){.magic = LAMINA_USAGE_MAGIC,
                                   .version = LAMINA_LAYOUT_VERSION,
                                   .device_count = DEVICES,
                                   .size = LAMINA_USAGE_BYTES(DEVICES),
                                   .slot_count = LAMINA_SLOTS,
                                   .slot_stride = LAMINA_SLOT_STRIDE(DEVICES)};
    for (int i = 0; i < DEVICES; i++)
        memcpy(usage->devices[i].uuid, limits.devices[i].uuid, LAMINA_UUID_BYTES);
    return usage;
}

static uint64_t nasty(void)
{
    static const uint64_t values[] = {0,     1,         UINT64_MAX,   UINT64_MAX - 1, INT64_MAX, UINT64_C(1) << 63,
                                      LIMIT, LIMIT + 1, LAMINA_SLOTS, UINT32_MAX};
    return next(2) ? values[next(sizeof values / sizeof values[0])] : state;
}

/* Mostly where there is data: in the header, the first slots, the table after the slots. */
static void spoil(struct lamina_usage *usage)
{
    const size_t all = LAMINA_USAGE_BYTES(DEVICES), first = sizeof *usage + 8 * LAMINA_SLOT_STRIDE(DEVICES);
    uint64_t value = nasty();
    size_t width = next(2) ? 8 : 1, end = next(4) ? first : all;
    size_t at = next(end - width) / width * width;
    if (next(8) == 0)
        at = offsetof(struct lamina_usage, slots_used) / 8 * 8; /* with `sweep` and other bounds of loops */
    memcpy((char *)usage + at, &value, width);
}

static void opening(unsigned rounds)
{
    for (unsigned round = 0; round < rounds; round++) {
        struct lamina_usage *usage = make_usage();
        size_t size = LAMINA_USAGE_BYTES(DEVICES);
        for (uint64_t changes = next(4); changes > 0; changes--)
            ((char *)usage)[next(sizeof *usage)] = (char)next(256);
        if (next(4) == 0)
            size = next(size);
        char *cut = malloc(size + 1);
        memcpy(cut, usage, size);
        if (usage_check((struct lamina_usage *)cut, size, &limits) == NULL)
            assert(size == LAMINA_USAGE_BYTES(DEVICES));
        free(cut);
        free(usage);
    }
}

/* The table of shared allocations, whose entries name devices. */
static void share_garbage(const struct account *account, struct lamina_slot *own, uint32_t device, uint64_t bytes)
{
    struct lamina_share *share, *entry = shared_at(account, (uint32_t)next(8));
    uint64_t key = 1 + next(4), size;
    uint32_t on;
    if (next(2))
        share = shared_export(account, own, key, device, bytes);
    else
        shared_use(account, own, key, device, bytes, &share);
    if (share != NULL && next(2))
        shared_drop(account, own, share);
    if (next(3) == 0)
        entry->device = (uint32_t)nasty();
    if (shared_find_export(account, key, &on, &size))
        assert(on < DEVICES);
    shared_orphaned_bytes(account, device);
    if (entry->holder != 0)
        shared_drop(account, own, entry);
}

static void mapped(unsigned rounds)
{
    struct identity self = identity_of_this_process();
    struct lamina_usage *usage = make_usage();
    struct account account = {usage, &limits, NULL, NULL};
    struct lamina_slot *own = account_join(&account, &self, -1);
    for (unsigned round = 0; round < rounds; round++) {
        uint32_t device = (uint32_t)next(DEVICES), kind = (uint32_t)next(LAMINA_KINDS);
        uint64_t bytes = next(3) ? 1 + next(LIMIT) : nasty();
        if (next(3) == 0)
            spoil(usage);
        switch (next(7)) {
        case 0:
        case 1:
            if (account_charge(&account, own, device, kind, bytes) == 0)
                assert(bytes <= LIMIT);
            break;
        case 2:
            account_discharge(&account, own, device, kind, bytes);
            break;
        case 3:
            account_add(&account, own, device, kind, bytes);
            break;
        case 4:
            account_held(&account, device);
            assert(account_slot_count(&account) <= LAMINA_SLOTS);
            break;
        case 5:
            share_garbage(&account, own, device, bytes);
            break;
        default:
            if (next(16) == 0)
                account_reclaim(&account, &self, (uint32_t)next(LAMINA_SLOTS + 1));
            else if (next(16) == 0 && (own = account_join(&account, &self, -1)) == NULL)
                own = account_slot(&account, 0);
        }
        if (next(2000) == 0) { /* start again */
            free(usage);
            usage = account.usage = make_usage();
            own = account_join(&account, &self, -1);
        }
    }
    free(usage);
}

/* A correct file with one word made too large: too much may be refused, never granted. */
static void never_over(unsigned rounds)
{
    struct identity self = identity_of_this_process();
    for (unsigned round = 0; round < rounds; round++) {
        struct lamina_usage *usage = make_usage();
        struct account account = {usage, &limits, NULL, NULL};
        struct lamina_slot *own = account_join(&account, &self, -1);
        uint64_t held = 0;
        usage->devices[0].total =
            nasty() % (2 * LIMIT); /* only a hint: a wrong one must not grant what the slots do not allow */
        usage->sweep = (uint32_t)nasty();
        for (int i = 0; i < 40; i++) {
            uint64_t bytes = 1 + next(LIMIT / 8);
            if (account_charge(&account, own, 0, LAMINA_DATA, bytes) == 0)
                held += bytes;
        }
        assert(held <= LIMIT);
        free(usage);
    }
}

int main(int count, char **arguments)
{
    state = count > 1 ? strtoull(arguments[1], NULL, 10) * 2 + 1 : 1;
    unsigned rounds = count > 2 ? (unsigned)atoi(arguments[2]) : 10000;
    for (int i = 0; i < DEVICES; i++)
        limits.devices[i] =
            (struct lamina_limit){.uuid = "GPU-00000000-0000-0000-0000-000000000000", .memory_bytes = LIMIT};
    limits.devices[1].uuid[4] = '1';
    if (rounds <= 100000)
        alarm(SECONDS);
    opening(rounds / 20);
    mapped(rounds);
    never_over(rounds / 20);
    puts("held");
    return 0;
}
