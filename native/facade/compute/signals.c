#include "compute/signals.h"

#include "cuda/process.h"
#include "shared/assertion.h"
#include "shared/facade.h"
#include "shared/kept_errno.h"
#include "shared/live_limits.h"

#include <fcntl.h>
#include <linux/futex.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#define LONGEST_PAUSE_NS UINT64_C(2000000) /* a longer one is between requests */
#define LONG_IDLE_NS UINT64_C(10000000000)
#define NAME(word) ((word) & 0xffffff)
#define DEVICE(word) ((word) >> 24 & 0xff)
#define PAUSE_NS(word) (((word) >> 32) * 1000)
#define BITS 32

struct neighbor {
    uint64_t name;                      /* 0: none */
    const struct lamina_signal *signal; /* NULL: it cannot be had */
    uint64_t worked_at;
    uint64_t seen_at; /* when it had work, or was new */
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
/* By the lock. */
static struct neighbor neighbors[LAMINA_MAX_DEVICES][LAMINA_HEEDED];

static struct {
    uint64_t idle_since, pause_ns;
    int within;            /* over 0: more pauses are within work than between requests */
} own[LAMINA_MAX_DEVICES]; /* by the lock of the meters, whose work it is */

void signals_after_fork(void)
{
    lock = (pthread_mutex_t)PTHREAD_MUTEX_INITIALIZER; /* what is mapped stays so */
}

/* How long pauses within work are. Where most are longer than LONGEST_PAUSE_NS, there are none within work. */
static void learn_pause(int device, uint64_t ns)
{
    enum { SURE = 16 };
    bool within = ns <= LONGEST_PAUSE_NS;
    if (within && own[device].pause_ns == 0)
        own[device].pause_ns = ns;
    else if (within)
        own[device].pause_ns = own[device].pause_ns - own[device].pause_ns / 8 + ns / 8;
    own[device].within += within ? 1 : -1;
    if (own[device].within > SURE)
        own[device].within = SURE;
    if (own[device].within < -SURE)
        own[device].within = -SURE;
    uint64_t pause = own[device].within > 0 ? 2 * own[device].pause_ns : 0;
    struct lamina_usage_compute *compute = &facade_open()->account.usage->devices[device].compute;
    /* Relaxed: a number by itself. */
    atomic_store_explicit(&compute->pause_ns, pause < LONGEST_PAUSE_NS ? pause : LONGEST_PAUSE_NS,
                          memory_order_relaxed);
}

void signal_work(int device, bool works, uint64_t now)
{
    const struct facade *facade = facade_open();
    struct lamina_slot *slot = process_slot_if_any();
    ASSERT(device >= 0 && device < LAMINA_MAX_DEVICES);
    if (slot == NULL)
        return;
    uint32_t bit = UINT32_C(1) << (account_holder(&facade->account, slot) & 0xffff) % BITS;
    if (works)
        atomic_fetch_or(&facade->signal->working[device], bit);
    else
        atomic_fetch_and(&facade->signal->working[device], ~bit);
    if (works && own[device].idle_since != 0)
        learn_pause(device, now - own[device].idle_since);
    own[device].idle_since = works ? 0 : now;
}

static uint64_t heeded_word(int device, int place)
{
    /* Relaxed: each word stands alone. */
    return atomic_load_explicit(&facade_open()->arbiter->heeded[device].signals[place], memory_order_relaxed);
}

static bool signals_are_heeded(int device, uint64_t now)
{
    return heeded_word(device, 0) != 0 && arbiter_is_current(facade_open()->arbiter, now);
}

static const struct lamina_signal *map_neighbor(uint64_t name)
{
    KEEP_ERRNO;
    char path[sizeof facade_open()->files + 32];
    snprintf(path, sizeof path, "%s/neighbors/%u", facade_open()->files, (unsigned)name);
    /* A process of the neighbor may have a lease on its file: it is not waited for. */
    int file = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC | O_NOFOLLOW);
    void *found = file < 0 ? MAP_FAILED : mmap(NULL, sizeof(struct lamina_signal), PROT_READ, MAP_SHARED, file, 0);
    if (file >= 0)
        close(file);
    return found == MAP_FAILED ? NULL : found;
}

static void follow(struct neighbor *neighbor, uint64_t name, uint64_t now)
{
    if (neighbor->name == name)
        return;
    if (neighbor->signal != NULL)
        munmap((void *)(uintptr_t)neighbor->signal, sizeof *neighbor->signal);
    *neighbor = (struct neighbor){.name = name, .signal = map_neighbor(name), .seen_at = now};
}

/* Moves no waiting thread from the word to another one, if the word is 0. */
static bool is_zero(const _Atomic uint32_t *word)
{
    static uint32_t none;
    return syscall(SYS_futex, word, FUTEX_CMP_REQUEUE, 0, NULL, &none, 0) >= 0;
}

/* A word that cannot be had says nothing. */
static bool is_set(const _Atomic uint32_t *word)
{
    KEEP_ERRNO;
    return !is_zero(word) && errno == EAGAIN;
}

static bool shows_work(struct neighbor *neighbor, uint64_t word, uint64_t now)
{
    if (neighbor->signal == NULL || DEVICE(word) >= LAMINA_MAX_DEVICES)
        return false;
    if (is_set(&neighbor->signal->working[DEVICE(word)])) {
        neighbor->worked_at = neighbor->seen_at = now;
        return true;
    }
    uint64_t pause = PAUSE_NS(word) < LONGEST_PAUSE_NS ? PAUSE_NS(word) : LONGEST_PAUSE_NS;
    return now - neighbor->worked_at < pause;
}

static bool was_seen_lately(struct neighbor *neighbor, uint64_t word, uint64_t now)
{
    (void)word;
    return now < neighbor->seen_at + LONG_IDLE_NS;
}

/* Whether the answer is yes for one of the neighbors whose signals are heeded. */
static bool any_neighbor(int device, uint64_t now, bool (*ask)(struct neighbor *neighbor, uint64_t word, uint64_t now))
{
    ASSERT(device >= 0 && device < LAMINA_MAX_DEVICES);
    if (!signals_are_heeded(device, now))
        return false;
    bool found = false;
    pthread_mutex_lock(&lock);
    for (int place = 0; place < LAMINA_HEEDED && !found; place++) {
        uint64_t word = heeded_word(device, place);
        if (word == 0)
            break;
        follow(&neighbors[device][place], NAME(word), now);
        found = ask(&neighbors[device][place], word, now);
    }
    pthread_mutex_unlock(&lock);
    return found;
}

bool signals_show_work(int device, uint64_t now)
{
    return any_neighbor(device, now, shows_work);
}

bool signals_need_room(int device, uint64_t now)
{
    return any_neighbor(device, now, was_seen_lately);
}
