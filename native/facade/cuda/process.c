#include "cuda/process.h"

#include "cuda/fork.h"
#include "shared/assertion.h"
#include "shared/kept_errno.h"
#include "shared/log.h"
#include "shared/slot_lock.h"

#include <pthread.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

enum { SLOTS_CHECKED_AT_START = 4, RECLAIM_INTERVAL_MS = 100 };

/* On a page that the kernel fills with zeros in a forked child. */
struct fork_sensitive { _Atomic(struct lamina_slot *) slot; };

static struct fork_sensitive no_slot;
static struct fork_sensitive *_Atomic mine = &no_slot;
static pthread_mutex_t joining = PTHREAD_MUTEX_INITIALIZER, reclaiming = PTHREAD_MUTEX_INITIALIZER;
/* Both by `joining`. The identity is read without it once there is a slot. */
static struct identity identity;
static int lock_file = -1; /* open only while a slot is taken */
static _Atomic uint64_t reclaimed_at_ms;
static bool watching_forks;

/* Otherwise a child that was forked while it was open would keep the parent's lock after the parent's death. */
static void close_lock_of_parent(void)
{
    slot_lock_close(lock_file);
    lock_file = -1;
}

/* The child starts without any of its parent's state. */
static void forget_parent(void)
{
    close_lock_of_parent();
    fork_reset_all();
}

/* Locks may have been held by threads that the child does not have. */
static void in_child(void)
{
    mine->slot = NULL;
    joining = (pthread_mutex_t)PTHREAD_MUTEX_INITIALIZER;
    reclaiming = (pthread_mutex_t)PTHREAD_MUTEX_INITIALIZER;
    forget_parent();
}

static bool prepare_page(void)
{
    if (mine != &no_slot) { /* wiped by a fork, perhaps one that ran no handlers */
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
    watching_forks = pthread_atfork(NULL, NULL, in_child) == 0;
}

void process_watch_forks(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, watch_forks);
}

static struct lamina_slot *take_slot(const struct account *account)
{
    identity = identity_of_this_process();
    account_reclaim(account, &identity, SLOTS_CHECKED_AT_START);
    struct lamina_slot *slot = account_join(account, &identity, lock_file);
    if (slot == NULL && account_reclaim(account, &identity, LAMINA_SLOTS) > 0)
        slot = account_join(account, &identity, lock_file);
    if (slot == NULL)
        log_line(LOG_ERROR,
                 "this container already has %d processes that use a GPU, which is the maximum; end one of them",
                 LAMINA_SLOTS);
    return slot;
}

static struct lamina_slot *join_account(const struct facade *facade)
{
    KEEP_ERRNO;
    if (!watching_forks || !prepare_page())
        return NULL;
    ASSERT(lock_file == -1);
    ASSERT(mine != &no_slot && mine->slot == NULL);
    lock_file = slot_lock_open(facade->account.path);
    void *kept = lock_file < 0 ? NULL : slot_lock_keep(lock_file);
    if (kept == NULL)
        log_line(LOG_ERROR, "cannot open the usage file again: %s", strerror(errno));
    else if ((mine->slot = take_slot(&facade->account)) == NULL)
        slot_lock_release(kept);
    slot_lock_close(lock_file);
    lock_file = -1;
    return mine->slot;
}

struct lamina_slot *process_slot_if_any(void)
{
    /* Acquire: a thread that sees the page also sees what was written before. This is on the path of allocations. */
    struct fork_sensitive *page = atomic_load_explicit(&mine, memory_order_acquire);
    /* Acquire: so does one that sees the slot, such as the identity. */
    struct lamina_slot *slot = atomic_load_explicit(&page->slot, memory_order_acquire);
    /* Relaxed: only compared; if the slot was taken over, a moment earlier or later makes no difference. */
    if (slot != NULL && atomic_load_explicit(&slot->owner, memory_order_relaxed) != identity.owner)
        return NULL;
    return slot;
}

struct lamina_slot *process_slot(void)
{
    struct lamina_slot *slot = process_slot_if_any();
    if (slot != NULL)
        return slot;
    const struct facade *facade = facade_open();
    if (facade == NULL)
        return NULL;
    process_watch_forks();
    pthread_mutex_lock(&joining);
    slot = process_slot_if_any();
    if (slot == NULL && mine->slot != NULL)
        log_line(LOG_ERROR,
                 "another process took over this process's slot in the account, so it gets no more memory; restart it");
    else if (slot == NULL)
        slot = join_account(facade);
    pthread_mutex_unlock(&joining);
    return slot;
}

bool process_has_host_pids(void)
{
    return identity.has_host_pids;
}

void process_reclaim_dead(void)
{
    const struct facade *facade = facade_open();
    if (facade == NULL || process_slot_if_any() == NULL)
        return;
    pthread_mutex_lock(&reclaiming);
    account_reclaim(&facade->account, &identity, LAMINA_SLOTS);
    pthread_mutex_unlock(&reclaiming);
}

void process_reclaim_dead_if_due(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC_COARSE, &now);
    uint64_t now_ms = (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000, last = reclaimed_at_ms;
    if (now_ms - last >= RECLAIM_INTERVAL_MS && atomic_compare_exchange_strong(&reclaimed_at_ms, &last, now_ms))
        process_reclaim_dead();
}
