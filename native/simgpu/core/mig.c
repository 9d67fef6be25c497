#include "mig.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

#include "ledger.h"
#include "slots.h"

#define FOR_UNITS(unit, gpu) \
    for (uint32_t unit = (gpu)->first_unit; unit < (gpu)->first_unit + SIMGPU_MIG_UNITS; unit++)

mig_instance mig_read(const machine *m, uint32_t unit) {
    uint64_t word = __atomic_load_n(&machine_gpu(m, unit)->instance, __ATOMIC_SEQ_CST);
    return (mig_instance){.there = (word & MIG_THERE) != 0, .compute = (word & MIG_COMPUTE) != 0, .id = word & 0xFF,
                          .profile = word >> 8 & 0xFF, .start = word >> 16 & 0xFF};
}

static void publish(const machine *m, uint32_t unit, mig_instance i) {
    uint64_t word = (i.there ? MIG_THERE : 0) | (i.compute ? MIG_COMPUTE : 0) | i.id | i.profile << 8 | i.start << 16;
    __atomic_store_n(&machine_gpu(m, unit)->instance, word, __ATOMIC_SEQ_CST);
}

const simgpu_mig_profile *mig_profile(const machine *m, uint32_t unit, mig_instance instance) {
    return &machine_gpu(m, machine_gpu(m, unit)->parent)->profiles[instance.profile];
}

bool mig_on(const machine *m, uint32_t gpu) {
    return (__atomic_load_n(&machine_gpu(m, gpu)->mig_mode, __ATOMIC_SEQ_CST) & MIG_ON) != 0;
}

bool mig_visible(const machine *m, uint32_t unit) {
    if (!mig_read(m, unit).compute) return false;
    if (m->whole & 1u << machine_gpu(m, unit)->parent) return true;
    for (uint32_t i = 0; i < m->named_count; i++)
        if (m->named[i] == unit) return true;
    return false;
}

bool mig_in_use(const machine *m, uint32_t unit) {
    slots_sweep(m, 0);
    for (uint32_t slot = 0; slot < machine_slots_used(m); slot++)
        if (slots_pid(m, slot) != 0 &&
            (ledger_held(m, unit, slot) > 0 || __atomic_load_n(&machine_cell(m, unit, slot)->contexts, __ATOMIC_SEQ_CST) > 0))
            return true;
    return false;
}

static int lock(void) {
    int file = open(machine_path(), O_RDONLY | O_CLOEXEC);
    if (file >= 0) flock(file, LOCK_EX);
    return file;
}

static mig_result unlock(int file, mig_result result) {
    if (file >= 0) close(file);
    return result;
}

mig_result mig_set_mode(const machine *m, uint32_t gpu, bool on) {
    simgpu_gpu *record = machine_gpu(m, gpu);
    int file = lock();
    uint32_t now = record->mig_mode & MIG_ON, wanted = on ? MIG_ON : 0;
    bool held = now != wanted && mig_in_use(m, gpu);
    FOR_UNITS(unit, record) held = held || (!on && mig_read(m, unit).there);
    uint32_t word = (held ? now : wanted) | wanted * MIG_PENDING;
    __atomic_store_n(&record->mig_mode, word, __ATOMIC_SEQ_CST);
    return unlock(file, held ? MIG_BUSY : MIG_OK);
}

/* What instances take: memory slices in the low half, media engines in the high one. */
static uint64_t taken(const machine *m, uint32_t gpu) {
    const simgpu_gpu *record = machine_gpu(m, gpu);
    uint64_t slices = 0, media = 0;
    FOR_UNITS(unit, record) {
        mig_instance i = mig_read(m, unit);
        if (!i.there) continue;
        slices |= ((1ull << record->profiles[i.profile].size) - 1) << i.start;
        media += record->profiles[i.profile].media;
    }
    return slices | media << 32;
}

uint32_t mig_places(const machine *m, uint32_t gpu, uint32_t number) {
    const simgpu_gpu *record = machine_gpu(m, gpu);
    const simgpu_mig_profile *profile = &record->profiles[number];
    uint64_t is = taken(m, gpu);
    uint32_t free = 0;
    if (profile->media + (is >> 32) > record->mig_media) return 0;
    for (uint32_t start = 0; start < record->mig_slices; start++)
        if (profile->starts >> start & 1 && !((((1u << profile->size) - 1) << start) & (uint32_t)is)) free |= 1u << start;
    return free;
}

/* As NVIDIA's driver numbers them: by the place in the halves of the card, but a 3g at 0 comes after one at 4. */
static uint32_t choose_id(const machine *m, const simgpu_gpu *gpu, const simgpu_mig_profile *profile, uint32_t start) {
    uint32_t base = gpu->mig_slices / profile->size - 1, id = base + start / profile->size;
    if (profile->slices == 3) id = start == 0 ? 2 : 1;
    FOR_UNITS(unit, gpu) {
        mig_instance i = mig_read(m, unit);
        if (i.there && i.id == id) id = base + (id == base);
    }
    return id;
}

static uint64_t hash(uint64_t seed, const char *text) {
    for (; *text != '\0'; text++) seed = (seed ^ (unsigned char)*text) * 0x100000001b3ull;
    return seed ^ seed >> 29;
}

/* Follows from the GPU and the ids, so that it is the same when the instance is made anew, as with the real driver. */
static void name_uuid(char *out, size_t length, const char *gpu, uint32_t id) {
    char text[96];
    snprintf(text, sizeof text, "%s/%u/0", gpu, id);
    uint64_t a = hash(0xcbf29ce484222325ull, text), b = hash(0x9e3779b97f4a7c15ull, text);
    snprintf(out, length, "MIG-%08x-%04x-5%03x-%04x-%012llx", (uint32_t)(a >> 32), (uint32_t)(a >> 16) & 0xFFFF,
             (uint32_t)a & 0xFFF, ((uint32_t)(b >> 48) & 0x3FFF) | 0x8000, (unsigned long long)b & 0xFFFFFFFFFFFFull);
}

static void describe(const machine *m, uint32_t unit, uint32_t gpu, mig_instance i) {
    const simgpu_gpu *parent = machine_gpu(m, gpu);
    const simgpu_mig_profile *profile = &parent->profiles[i.profile];
    simgpu_gpu *record = machine_gpu(m, unit);
    memcpy(record, parent, offsetof(simgpu_gpu, ledger));
    record->xid = record->contexts_made = 0;
    record->parent = gpu;
    record->memory_mib = profile->memory_mib;
    record->sm_count = profile->sms;
    record->cuda_cores = parent->cuda_cores / parent->sm_count * profile->sms;
    record->l2_bytes = parent->l2_bytes / parent->mig_slices * profile->size;
    snprintf(record->name, sizeof record->name, "%.60s MIG %s", parent->name, profile->name);
    name_uuid(record->uuid, sizeof record->uuid, parent->uuid, i.id);
}

mig_result mig_create(const machine *m, uint32_t gpu, uint32_t number, uint32_t start, uint32_t *out) {
    const simgpu_gpu *record = machine_gpu(m, gpu);
    int file = lock();
    if (!mig_on(m, gpu)) return unlock(file, MIG_WRONG);
    uint32_t free = mig_places(m, gpu, number);
    if (start == MIG_ANYWHERE && free != 0) start = 31 - (uint32_t)__builtin_clz(free);
    if (start > 31 || !(free >> start & 1)) return unlock(file, MIG_NO_ROOM);
    FOR_UNITS(unit, record) {
        if (mig_read(m, unit).there) continue;
        uint32_t id = choose_id(m, record, &record->profiles[number], start);
        mig_instance made = {.there = true, .id = id, .profile = number, .start = start};
        describe(m, unit, gpu, made);
        publish(m, unit, made);
        *out = unit;
        return unlock(file, MIG_OK);
    }
    return unlock(file, MIG_NO_ROOM);
}

/* Changes an instance that is there. */
static mig_result change(const machine *m, uint32_t unit, bool had_compute, bool stays, bool compute) {
    int file = lock();
    mig_instance i = mig_read(m, unit);
    if (!i.there) return unlock(file, MIG_GONE);
    if (i.compute != had_compute) return unlock(file, had_compute ? MIG_GONE : stays ? MIG_NO_ROOM : MIG_BUSY);
    if (had_compute && mig_in_use(m, unit)) return unlock(file, MIG_BUSY);
    i.there = stays;
    i.compute = compute;
    publish(m, unit, i);
    return unlock(file, MIG_OK);
}

mig_result mig_destroy(const machine *m, uint32_t unit) { return change(m, unit, false, false, false); }

mig_result mig_create_compute(const machine *m, uint32_t unit) { return change(m, unit, false, true, true); }

mig_result mig_destroy_compute(const machine *m, uint32_t unit) { return change(m, unit, true, true, false); }
