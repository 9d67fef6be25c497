/* A clock for measurements without noise: time passes only where programs wait, and one program runs at a time.
 *
 * Preloaded into each program, this library replaces the clock and all sleeping. A program that sleeps passes control
 * to the one that wakes first, and time moves to that moment. So a run of ten seconds takes as long as its computing
 * takes, and its result does not depend on what else the machine does. The code under test is what is shipped.
 *
 * The programs and the process that drives them share a file, named by VIRTUAL_TIME; VIRTUAL_TIME_SLOT is the number of
 * the program. Until the driver sets `started`, time stands still and no call sleeps. Each process has one thread that
 * uses the clock.
 *
 * Example: A sleeps until 5, B until 3 and the driver until 10, where A called last.
 *
 *   A passes control to B and waits. The time is 3. B computes, reads the clock and sleeps until 9.
 *   B passes control to A. The time is 5. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/futex.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define EXPORT __attribute__((visibility("default")))

enum { MEMBERS = 32, AWAY = 0, PRESENT = 1, MAX_WAIT_S = 60 };

#define CALL_NS 30    /* what reading the clock takes */
#define YIELD_NS 2000 /* from a yield until the program goes on */
#define LATE_NS 55000 /* how late the kernel ends a sleep */
#define SECOND_NS UINT64_C(1000000000)

struct member {
    _Atomic uint64_t wakes; /* when it goes on */
    _Atomic uint32_t runs;  /* a futex: 1 when it has control */
    _Atomic uint32_t state;
};

static struct virtual_clock {
    _Atomic uint64_t now;
    _Atomic uint32_t started, reserved;
    struct member members[MEMBERS];
} *shared;

static unsigned own;
static bool joined;

static uint64_t to_ns(const struct timespec *time)
{
    return (uint64_t)time->tv_sec * SECOND_NS + (uint64_t)time->tv_nsec;
}

static void wait_for_control(void)
{
    struct member *me = &shared->members[own];
    const struct timespec longest = {.tv_sec = MAX_WAIT_S};
    while (atomic_load(&me->runs) == 0)
        if (syscall(SYS_futex, &me->runs, FUTEX_WAIT, 0, &longest, NULL, 0) != 0 && errno == ETIMEDOUT)
            _exit(3); /* a program has ended with control */
    atomic_store(&me->runs, 0);
}

/* Moves time to where the next program wakes, and lets that one run. Returns whether it is another one. */
static bool pass_control(void)
{
    unsigned next = MEMBERS;
    for (unsigned i = 1; i <= MEMBERS; i++) {
        unsigned one = (own + i) % MEMBERS;
        if (atomic_load(&shared->members[one].state) == PRESENT &&
            (next == MEMBERS || shared->members[one].wakes < shared->members[next].wakes))
            next = one;
    }
    if (next == MEMBERS)
        return true;
    if (shared->members[next].wakes > shared->now)
        atomic_store(&shared->now, shared->members[next].wakes);
    if (next == own)
        return false;
    atomic_store(&shared->members[next].runs, 1);
    syscall(SYS_futex, &shared->members[next].runs, FUTEX_WAKE, 1, NULL, NULL, 0);
    return true;
}

/* Whether time passes here. Takes part from the first call after the start on. */
static bool takes_part(void)
{
    if (shared == NULL || atomic_load(&shared->started) == 0)
        return false;
    if (!joined) {
        joined = true;
        atomic_store(&shared->members[own].wakes, shared->now);
        atomic_store(&shared->members[own].state, PRESENT);
        wait_for_control();
    }
    return true;
}

static void sleep_until(uint64_t moment)
{
    atomic_store(&shared->members[own].wakes, moment);
    if (pass_control())
        wait_for_control();
}

static void open_clock(const char *path, unsigned number)
{
    int file = open(path, O_RDWR | O_CLOEXEC);
    void *found = file < 0 ? MAP_FAILED : mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    if (found == MAP_FAILED || number >= MEMBERS)
        abort();
    close(file);
    own = number;
    shared = found;
}

__attribute__((constructor)) static void begin(void)
{
    const char *path = getenv("VIRTUAL_TIME"), *number = getenv("VIRTUAL_TIME_SLOT");
    if (path != NULL && number != NULL)
        open_clock(path, (unsigned)atoi(number));
}

EXPORT int clock_gettime(clockid_t clock, struct timespec *time)
{
    if (shared == NULL || clock == CLOCK_REALTIME || clock == CLOCK_PROCESS_CPUTIME_ID ||
        clock == CLOCK_THREAD_CPUTIME_ID)
        return (int)syscall(SYS_clock_gettime, clock, time);
    uint64_t now = takes_part() ? atomic_fetch_add(&shared->now, CALL_NS) : shared->now;
    *time = (struct timespec){.tv_sec = (time_t)(now / SECOND_NS), .tv_nsec = (long)(now % SECOND_NS)};
    return 0;
}

EXPORT int clock_nanosleep(clockid_t clock, int flags, const struct timespec *wanted, struct timespec *left)
{
    if (shared == NULL)
        return (int)syscall(SYS_clock_nanosleep, clock, flags, wanted, left);
    if (takes_part())
        sleep_until(to_ns(wanted) + LATE_NS + ((flags & TIMER_ABSTIME) != 0 ? 0 : shared->now));
    return 0;
}

EXPORT int nanosleep(const struct timespec *wanted, struct timespec *left)
{
    return clock_nanosleep(CLOCK_MONOTONIC, 0, wanted, left);
}

EXPORT int sched_yield(void)
{
    if (shared == NULL)
        return (int)syscall(SYS_sched_yield);
    if (takes_part())
        sleep_until(shared->now + YIELD_NS);
    return 0;
}

/* For the process that drives the others; it takes the last place. */
EXPORT void virtual_time_drive(const char *path)
{
    open_clock(path, MEMBERS - 1);
    joined = true;
}

/* Starts time once so many programs take part, which the caller has let go on. False if they do not. */
EXPORT bool virtual_time_start(unsigned programs)
{
    const struct timespec moment = {.tv_nsec = 1000000};
    atomic_store(&shared->started, 1);
    for (int tries = 0; tries < 10000; tries++) {
        unsigned present = 0;
        for (unsigned i = 0; i < MEMBERS - 1; i++)
            present += atomic_load(&shared->members[i].state) == PRESENT;
        if (present == programs) {
            atomic_store(&shared->members[own].state, PRESENT);
            return true;
        }
        syscall(SYS_nanosleep, &moment, NULL);
    }
    return false;
}

EXPORT uint64_t virtual_time_now(void)
{
    return shared->now;
}

/* The caller sleeps until that moment. */
EXPORT void virtual_time_sleep_until(uint64_t moment)
{
    sleep_until(moment);
}
