/* What is left of a process that is killed at any one instruction of the account's protocol.
 *
 * A child works through the whole protocol one instruction at a time. A killed process leaves nothing but the shared
 * memory as it is at that instruction, so after each one that changed it the parent takes a copy and, for a survivor,
 * frees what the dead left and takes the whole limit. Prints how many states were seen. */
#include "shared/account.h"
#include "shared/limits.h"

#include <assert.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <unistd.h>

enum { DEVICES = 2, SURVIVOR_BYTES = 1000, LIMIT = 10000 };

static struct lamina_limits limits = {
    .magic = LAMINA_LIMITS_MAGIC, .version = LAMINA_LAYOUT_VERSION, .size = sizeof limits, .device_count = DEVICES};
static struct identity survivor, victim, forerunner;

static pid_t gone(void)
{
    pid_t child = fork();
    if (child == 0)
        _exit(0);
    waitpid(child, NULL, 0);
    return child;
}

/* A process of this namespace that has ended. */
static struct identity dead(uint64_t image)
{
    struct identity one = survivor;
    one.owner = LAMINA_OWNER(gone(), 7, survivor.owner >> 48);
    one.image = image;
    return one;
}

static struct lamina_usage *make_usage(int flags)
{
    struct lamina_usage *usage = mmap(NULL, LAMINA_USAGE_BYTES(DEVICES), PROT_READ | PROT_WRITE, flags, -1, 0);
    assert(usage != MAP_FAILED);
    *usage = (struct lamina_usage){.magic = LAMINA_USAGE_MAGIC,
                                   .version = LAMINA_LAYOUT_VERSION,
                                   .device_count = DEVICES,
                                   .size = LAMINA_USAGE_BYTES(DEVICES),
                                   .slot_count = LAMINA_SLOTS,
                                   .slot_stride = LAMINA_SLOT_STRIDE(DEVICES)};
    return usage;
}

/* Everything that a process does with the account, including refusals and clearing the slot of a dead process. */
static void protocol(const struct account *account)
{
    account_reclaim(account, &victim, LAMINA_SLOTS);
    struct lamina_slot *slot = account_join(account, &victim, -1);
    for (uint32_t device = 0; device < DEVICES; device++) {
        account_charge(account, slot, device, LAMINA_DATA, 4000);
        account_charge(account, slot, device, LAMINA_POOL, 5000);
        account_charge(account, slot, device, LAMINA_ARRAY, 5000); /* refused */
        account_charge(account, slot, device, LAMINA_DATA, LIMIT + 1);
        account_discharge(account, slot, device, LAMINA_DATA, 4000);
        account_charge(account, slot, device, LAMINA_MODULE, 3000);
        account_discharge(account, slot, device, LAMINA_POOL, 5000);
    }
}

/* The victim died in this state: others continue, and have the whole limit. */
static void check(const struct lamina_usage *state)
{
    static struct lamina_usage *copy;
    if (copy == NULL)
        copy = make_usage(MAP_PRIVATE | MAP_ANONYMOUS);
    memcpy(copy, state, LAMINA_USAGE_BYTES(DEVICES));
    struct account account = {copy, &limits, NULL, NULL};
    for (uint32_t device = 0; device < DEVICES; device++)
        assert(copy->devices[device].peak <= LIMIT);
    account_reclaim(&account, &survivor, LAMINA_SLOTS);
    struct lamina_slot *slot = account_slot(&account, 0);
    for (uint32_t device = 0; device < DEVICES; device++) {
        assert(account_held(&account, device) == SURVIVOR_BYTES);
        assert(copy->devices[device].total >= SURVIVOR_BYTES);
        assert(account_charge(&account, slot, device, LAMINA_DATA, LIMIT - SURVIVOR_BYTES) == 0);
        assert(account_charge(&account, slot, device, LAMINA_DATA, 1) == LIMIT + 1);
    }
    assert(account_join(&account, &victim, -1) == account_slot(&account, 1)); /* no slot is lost */
}

static int stepped(pid_t child)
{
    int status;
    if (ptrace(PTRACE_SINGLESTEP, child, NULL, NULL) != 0 || waitpid(child, &status, 0) != child)
        exit(3);
    return WIFSTOPPED(status);
}

static void watch(pid_t child, const struct lamina_usage *usage)
{
    /* What changes is in the header and the first slots. */
    const size_t changing = sizeof *usage + 4 * LAMINA_SLOT_STRIDE(DEVICES);
    char *before = calloc(1, changing);
    unsigned states = 0, steps = 0;
    int status;
    if (waitpid(child, &status, 0) != child || !WIFSTOPPED(status)) {
        puts("no ptrace");
        exit(77);
    }
    for (; stepped(child); steps++)
        if (memcmp(before, usage, changing) != 0) {
            memcpy(before, usage, changing);
            check(usage);
            states++;
        }
    printf("%u states in %u instructions\n", states, steps);
}

/* A pid alone does not identify a process: start time, program image and namespace do. */
static void reuse(void)
{
    const uint64_t pid = (uint64_t)getpid(),
                   start = survivor.owner >> LAMINA_PID_BITS & ((1u << LAMINA_START_BITS) - 1),
                   namespace = survivor.owner >> 48;
    assert(!owner_is_dead(survivor.owner, survivor.stack, &victim));
    assert(owner_is_dead(LAMINA_OWNER(pid, start + 1, namespace), survivor.stack, &victim));
    assert(owner_is_dead(LAMINA_OWNER(pid, start - 1, namespace), survivor.stack, &victim));
    assert(owner_is_dead(survivor.owner, survivor.stack + 16, &victim));
    assert(owner_is_dead(victim.owner, 0, &survivor));
    assert(owner_is_dead(victim.owner | LAMINA_OWNER_CLEARING, 0, &survivor));
    assert(!owner_is_dead(LAMINA_OWNER(pid, start + 1, namespace ^ 1), survivor.stack, &victim));
    assert(!owner_is_dead(LAMINA_OWNER(owner_pid(victim.owner), 7, namespace ^ 1), 0, &survivor));
}

int main(void)
{
    survivor = identity_of_this_process();
    victim = dead(11);
    reuse();
    forerunner = dead(13);
    for (int i = 0; i < DEVICES; i++)
        limits.devices[i].memory_bytes = LIMIT;
    struct lamina_usage *usage = make_usage(MAP_SHARED | MAP_ANONYMOUS);
    struct account account = {usage, &limits, NULL, NULL};
    struct lamina_slot *own = account_join(&account, &survivor, -1), *left = account_join(&account, &forerunner, -1);
    for (uint32_t device = 0; device < DEVICES; device++) {
        assert(account_charge(&account, own, device, LAMINA_DATA, SURVIVOR_BYTES) == 0);
        assert(account_charge(&account, left, device, LAMINA_CONTEXT, 2000) == 0);
    }
    pid_t child = fork();
    if (child == 0) {
        if (ptrace(PTRACE_TRACEME, 0, NULL, NULL) != 0)
            _exit(0);
        raise(SIGSTOP);
        protocol(&account);
        _exit(0);
    }
    watch(child, usage);
    return 0;
}
