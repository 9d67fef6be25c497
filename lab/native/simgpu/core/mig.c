#include "core/mig.h"

#include "core/hash.h"
#include "core/ledger.h"
#include "core/slots.h"

#include <fcntl.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

#define FOR_UNITS(unit, gpu)                                                                                           \
    for (uint32_t unit = (gpu)->first_unit; unit < (gpu)->first_unit + SIMGPU_MIG_UNITS; unit++)

struct mig_instance mig_read_instance(const struct machine *m, uint32_t unit)
{
    uint64_t word = atomic_load(&machine_gpu(m, unit)->instance);
    return (struct mig_instance){.exists = (word & MIG_EXISTS) != 0,
                                 .compute = (word & MIG_COMPUTE) != 0,
                                 .id = word & 0xFF,
                                 .profile = word >> 8 & 0xFF,
                                 .start = word >> 16 & 0xFF};
}

static void write_instance(const struct machine *m, uint32_t unit, struct mig_instance i)
{
    uint64_t word = (i.exists ? MIG_EXISTS : 0) | (i.compute ? MIG_COMPUTE : 0) | i.id | i.profile << 8 | i.start << 16;
    atomic_store(&machine_gpu(m, unit)->instance, word);
}

const struct simgpu_mig_profile *mig_profile_of(const struct machine *m, uint32_t unit, struct mig_instance instance)
{
    return &machine_gpu(m, machine_gpu(m, unit)->parent)->profiles[instance.profile];
}

bool mig_is_enabled(const struct machine *m, uint32_t gpu)
{
    return (atomic_load(&machine_gpu(m, gpu)->mig_mode) & MIG_ENABLED) != 0;
}

bool mig_is_visible(const struct machine *m, uint32_t unit)
{
    if (!mig_read_instance(m, unit).compute)
        return false;
    if (m->whole & 1u << machine_gpu(m, unit)->parent)
        return true;
    for (uint32_t i = 0; i < m->named_count; i++)
        if (m->named[i] == unit)
            return true;
    return false;
}

bool mig_is_in_use(const struct machine *m, uint32_t unit)
{
    slots_sweep(m, 0);
    for (uint32_t slot = 0; slot < machine_slots_used(m); slot++)
        if (slots_pid(m, slot) != 0 &&
            (ledger_held(m, unit, slot) > 0 || atomic_load(&machine_cell(m, unit, slot)->contexts) > 0))
            return true;
    return false;
}

/* Changes of instances and modes exclude one another, also between processes. */
static int lock_machine(void)
{
    int file = open(machine_path(), O_RDONLY | O_CLOEXEC);
    if (file >= 0)
        flock(file, LOCK_EX);
    return file;
}

static enum mig_result unlock_machine(int file, enum mig_result result)
{
    if (file >= 0)
        close(file);
    return result;
}

enum mig_result mig_set_mode(const struct machine *m, uint32_t gpu, bool on)
{
    struct simgpu_gpu *record = machine_gpu(m, gpu);
    int file = lock_machine();
    uint32_t now = record->mig_mode & MIG_ENABLED, wanted = on ? MIG_ENABLED : 0;
    bool held = now != wanted && mig_is_in_use(m, gpu);
    FOR_UNITS(unit, record) held = held || (!on && mig_read_instance(m, unit).exists);
    uint32_t word = (held ? now : wanted) | wanted * MIG_PENDING;
    atomic_store(&record->mig_mode, word);
    return unlock_machine(file, held ? MIG_BUSY : MIG_OK);
}

/* What the instances of a GPU take: memory slices in the low half, media engines in the high one. */
static uint64_t occupied(const struct machine *m, uint32_t gpu)
{
    const struct simgpu_gpu *record = machine_gpu(m, gpu);
    uint64_t slices = 0, media = 0;
    FOR_UNITS(unit, record)
    {
        struct mig_instance i = mig_read_instance(m, unit);
        if (!i.exists)
            continue;
        slices |= ((1ull << record->profiles[i.profile].size) - 1) << i.start;
        media += record->profiles[i.profile].media;
    }
    return slices | media << 32;
}

uint32_t mig_free_places(const struct machine *m, uint32_t gpu, uint32_t number)
{
    const struct simgpu_gpu *record = machine_gpu(m, gpu);
    const struct simgpu_mig_profile *profile = &record->profiles[number];
    uint64_t taken = occupied(m, gpu);
    uint32_t free = 0;
    if (profile->media + (taken >> 32) > record->mig_media)
        return 0;
    for (uint32_t start = 0; start < record->mig_slices; start++)
        if (profile->starts >> start & 1 && !((((1u << profile->size) - 1) << start) & (uint32_t)taken))
            free |= 1u << start;
    return free;
}

/* As NVIDIA's driver numbers them: by the place in the halves of the GPU, but a 3g at 0 comes after one at 4. */
static uint32_t choose_id(const struct machine *m, const struct simgpu_gpu *gpu,
                          const struct simgpu_mig_profile *profile, uint32_t start)
{
    uint32_t base = gpu->mig_slices / profile->size - 1, id = base + start / profile->size;
    if (profile->slices == 3)
        id = start == 0 ? 2 : 1;
    FOR_UNITS(unit, gpu)
    {
        struct mig_instance i = mig_read_instance(m, unit);
        if (i.exists && i.id == id)
            id = base + (id == base);
    }
    return id;
}

static uint64_t mix(uint64_t seed, const char *text)
{
    uint64_t hash = hash_text(seed, text, strlen(text));
    return hash ^ hash >> 29;
}

/* Derived from the GPU and the ids, so that an instance that is created again has the same one, as in the driver. */
static void name_uuid(char *out, size_t length, const char *gpu, uint32_t id)
{
    char text[96];
    snprintf(text, sizeof text, "%s/%u/0", gpu, id);
    uint64_t a = mix(HASH_SEED, text), b = mix(0x9e3779b97f4a7c15ull, text);
    snprintf(out, length, "MIG-%08x-%04x-5%03x-%04x-%012llx", (uint32_t)(a >> 32), (uint32_t)(a >> 16) & 0xFFFF,
             (uint32_t)a & 0xFFF, ((uint32_t)(b >> 48) & 0x3FFF) | 0x8000, (unsigned long long)b & 0xFFFFFFFFFFFFull);
}

static void write_record(const struct machine *m, uint32_t unit, uint32_t gpu, struct mig_instance i)
{
    const struct simgpu_gpu *parent = machine_gpu(m, gpu);
    const struct simgpu_mig_profile *profile = &parent->profiles[i.profile];
    struct simgpu_gpu *record = machine_gpu(m, unit);
    memcpy(record, parent, offsetof(struct simgpu_gpu, ledger));
    record->xid = record->contexts_made = 0;
    record->parent = gpu;
    record->memory_mib = profile->memory_mib;
    record->sm_count = profile->sms;
    record->cuda_cores = parent->cuda_cores / parent->sm_count * profile->sms;
    record->l2_bytes = parent->l2_bytes / parent->mig_slices * profile->size;
    snprintf(record->name, sizeof record->name, "%.60s MIG %s", parent->name, profile->name);
    name_uuid(record->uuid, sizeof record->uuid, parent->uuid, i.id);
}

enum mig_result mig_create(const struct machine *m, uint32_t gpu, uint32_t number, uint32_t start, uint32_t *out)
{
    const struct simgpu_gpu *record = machine_gpu(m, gpu);
    int file = lock_machine();
    if (!mig_is_enabled(m, gpu))
        return unlock_machine(file, MIG_NOT_ENABLED);
    uint32_t free = mig_free_places(m, gpu, number);
    if (start == MIG_ANYWHERE && free != 0)
        start = 31 - (uint32_t)__builtin_clz(free);
    if (start > 31 || !(free >> start & 1))
        return unlock_machine(file, MIG_NO_SPACE);
    FOR_UNITS(unit, record)
    {
        if (mig_read_instance(m, unit).exists)
            continue;
        uint32_t id = choose_id(m, record, &record->profiles[number], start);
        struct mig_instance made = {.exists = true, .id = id, .profile = number, .start = start};
        write_record(m, unit, gpu, made);
        write_instance(m, unit, made);
        *out = unit;
        return unlock_machine(file, MIG_OK);
    }
    return unlock_machine(file, MIG_NO_SPACE);
}

/* Changes an existing instance. */
static enum mig_result change_instance(const struct machine *m, uint32_t unit, bool had_compute, bool stays,
                                       bool compute)
{
    int file = lock_machine();
    struct mig_instance i = mig_read_instance(m, unit);
    if (!i.exists)
        return unlock_machine(file, MIG_NOT_FOUND);
    if (had_compute && !i.compute)
        return unlock_machine(file, MIG_NOT_FOUND);
    if (!had_compute && i.compute)
        return unlock_machine(file, stays ? MIG_NO_SPACE : MIG_BUSY);
    if (had_compute && mig_is_in_use(m, unit))
        return unlock_machine(file, MIG_BUSY);
    i.exists = stays;
    i.compute = compute;
    write_instance(m, unit, i);
    return unlock_machine(file, MIG_OK);
}

enum mig_result mig_destroy(const struct machine *m, uint32_t unit)
{
    return change_instance(m, unit, false, false, false);
}

enum mig_result mig_create_compute(const struct machine *m, uint32_t unit)
{
    return change_instance(m, unit, false, true, true);
}

enum mig_result mig_destroy_compute(const struct machine *m, uint32_t unit)
{
    return change_instance(m, unit, true, true, false);
}
