#include "self.h"

#include "blocks.h"
#include "contexts.h"
#include "gate.h"
#include "graphs.h"
#include "hold.h"
#include "imports.h"
#include "init.h"
#include "log.h"
#include "pools.h"
#include "slot_lock.h"
#include "vmm.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

enum { NEWCOMER_LOOKS_AT = 4, SWEEP_EVERY_MS = 100 };

/* Zeros in a forked child, without anybody doing anything. */
struct fork_sensitive {
    struct lamina_slot *slot;
};

static struct fork_sensitive nobody;
static struct fork_sensitive *_Atomic mine = &nobody;
static struct identity identity;
static pthread_mutex_t joining = PTHREAD_MUTEX_INITIALIZER, reclaiming = PTHREAD_MUTEX_INITIALIZER;
static _Atomic uint64_t swept_at_ms;
static bool watched; /* forks */
static int lock_file = -1; /* open only while a slot is taken */

/* A child that was forked just then would keep the parent's lock held after the parent's death. */
static void close_lock_of_parent(void)
{
    slot_lock_close(lock_file);
    lock_file = -1;
}

/* What the parent knew and held is none of the child's. */
static void forget_parent(void)
{
    close_lock_of_parent();
    blocks_forget();
    contexts_forget();
    gate_forget();
    graphs_forget();
    imports_forget();
    pools_forget();
    vmm_forget();
    init_forget();
}

/* Locks may have been held by threads that the child does not have. */
static void in_child(void)
{
    mine->slot = NULL;
    joining = (pthread_mutex_t)PTHREAD_MUTEX_INITIALIZER;
    reclaiming = (pthread_mutex_t)PTHREAD_MUTEX_INITIALIZER;
    forget_parent();
}

static bool prepare(void)
{
    if (mine != &nobody) { /* wiped by a fork, perhaps by one that ran no handlers */
        forget_parent();
        return true;
    }
    void *page = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (page == MAP_FAILED)
        return false;
#ifdef MADV_WIPEONFORK
    madvise(page, 4096, MADV_WIPEONFORK);
#endif
    mine = page;
    return true;
}

static void watch_forks(void)
{
    watched = pthread_atfork(NULL, NULL, in_child) == 0;
}

void self_watch_forks(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, watch_forks);
}

static struct lamina_slot *take_slot(const struct account *account)
{
    identity = identity_of_self();
    account_reclaim(account, &identity, NEWCOMER_LOOKS_AT);
    struct lamina_slot *slot = account_join(account, &identity, lock_file);
    if (slot == NULL && account_reclaim(account, &identity, LAMINA_SLOTS) > 0)
        slot = account_join(account, &identity, lock_file);
    if (slot == NULL)
        log_line(LOG_ERROR, "this container has %d processes with a GPU already; there is no place for one more",
                 LAMINA_SLOTS);
    return slot;
}

static struct lamina_slot *join(const struct facade *facade)
{
    if (!watched || !prepare())
        return NULL;
    lock_file = slot_lock_open(facade->account.path);
    void *kept = lock_file < 0 ? NULL : slot_lock_keep(lock_file);
    if (kept == NULL)
        log_line(LOG_ERROR, "the usage file cannot be opened once more: %s", strerror(errno));
    else if ((mine->slot = take_slot(&facade->account)) == NULL)
        slot_lock_let_go(kept);
    slot_lock_close(lock_file);
    lock_file = -1;
    return mine->slot;
}

struct lamina_slot *self_slot_if_any(void)
{
    struct lamina_slot *slot = atomic_load_explicit(&mine, memory_order_acquire)->slot;
    if (slot != NULL && __atomic_load_n(&slot->owner, __ATOMIC_RELAXED) != identity.owner)
        return NULL;
    return slot;
}

struct lamina_slot *self_slot(void)
{
    struct lamina_slot *slot = self_slot_if_any();
    if (slot != NULL)
        return slot;
    const struct facade *facade = facade_open();
    if (facade == NULL)
        return NULL;
    self_watch_forks();
    pthread_mutex_lock(&joining);
    slot = self_slot_if_any();
    if (slot == NULL && mine->slot != NULL)
        log_line(LOG_ERROR, "this process's place in the account was given away; it gets no more memory");
    else if (slot == NULL)
        slot = join(facade);
    pthread_mutex_unlock(&joining);
    return slot;
}

void self_reclaim(void)
{
    const struct facade *facade = facade_open();
    if (facade == NULL || self_slot_if_any() == NULL)
        return;
    pthread_mutex_lock(&reclaiming);
    account_reclaim(&facade->account, &identity, LAMINA_SLOTS);
    pthread_mutex_unlock(&reclaiming);
}

void self_reclaim_sparingly(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC_COARSE, &now);
    uint64_t now_ms = (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000, last = swept_at_ms;
    if (now_ms - last >= SWEEP_EVERY_MS && atomic_compare_exchange_strong(&swept_at_ms, &last, now_ms))
        self_reclaim();
}
