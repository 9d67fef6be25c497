#include "time_share.h"

#include "bucket.h"
#include "facade.h"
#include "self.h"

#include <stdatomic.h>
#include <time.h>

#define STALE_NS UINT64_C(300000000)
#define UNLIKELY_REFUND_NS INT64_C(1000000000)
#define BIN_NS UINT64_C(1000000)
#define LOAD(word) __atomic_load_n(&(word), __ATOMIC_RELAXED)
#define ADD(word, value) __atomic_fetch_add(&(word), value, __ATOMIC_RELAXED)

uint64_t share_now(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

static const struct lamina_decision *decision(int device)
{
    return &facade_open()->arbiter->devices[device];
}

/* Old decisions are none: the agent is away, and nobody knows what the others do. Nor are those of a time to come,
 * which are from before the machine was started anew. */
static bool decided(uint64_t now)
{
    uint64_t last = LOAD(facade_open()->arbiter->heartbeat);
    return now - last + STALE_NS < 2 * STALE_NS;
}

static struct lamina_usage_compute *shared(int device)
{
    return &facade_open()->account.usage->devices[device].compute;
}

static struct lamina_slot_compute *own(int device)
{
    struct lamina_slot *slot = self_slot_if_any();
    return slot == NULL ? NULL : &account_line(&facade_open()->account, slot, (uint32_t)device)->compute;
}

static const struct lamina_limit *limit(int device)
{
    return &facade_open()->limits.devices[device];
}

bool share_measured(int device, uint64_t now)
{
    return limit(device)->compute_policy != LAMINA_COMPUTE_NONE || (LOAD(decision(device)->watched) && decided(now));
}

bool share_closed(int device, uint64_t now)
{
    return LOAD(decision(device)->closed) != 0 && decided(now);
}

const uint64_t share_old_word;

static const uint64_t *unless_old(const uint64_t *word, uint64_t now)
{
    return LOAD(*word) == 0 || decided(now) ? word : &share_old_word;
}

const uint64_t *share_closed_word(int device, uint64_t now)
{
    return unless_old(&decision(device)->closed, now);
}

const uint64_t *share_attention_word(int device, uint64_t now)
{
    return unless_old(&decision(device)->attention, now);
}

/* 0: no limit. A cap is never more than the limits say, whatever the arbiter does. */
static uint64_t rate(int device, uint64_t now)
{
    uint64_t share = limit(device)->cores_percent * (BUCKET_WHOLE_PPM / 100), lent;
    if (limit(device)->compute_policy == LAMINA_COMPUTE_NONE)
        return 0;
    if (limit(device)->compute_policy == LAMINA_COMPUTE_CAP || !decided(now))
        return share;
    lent = LOAD(decision(device)->rate_ppm);
    return lent < share ? share : lent > BUCKET_WHOLE_PPM ? BUCKET_WHOLE_PPM : lent;
}

static void charge(int device, uint64_t now, int64_t ns, uint64_t rate_ppm)
{
    uint64_t *due = &shared(device)->due, seen = LOAD(*due);
    while (rate_ppm != 0 && ns != 0 &&
           !__atomic_compare_exchange_n(due, &seen, bucket_charge(seen, now, ns, rate_ppm), true, __ATOMIC_RELAXED,
                                        __ATOMIC_RELAXED))
        ;
}

/* The refund only grows, or shrinks a little when the arbiter learns more. Anything else is another count. */
static void apply_refund(int device, uint64_t now, uint64_t rate_ppm)
{
    int64_t wanted = LOAD(decision(device)->refund_ns), seen = LOAD(shared(device)->refund_ns);
    if (wanted == seen || !__atomic_compare_exchange_n(&shared(device)->refund_ns, &seen, wanted, false,
                                                       __ATOMIC_RELAXED, __ATOMIC_RELAXED))
        return;
    if (wanted - seen < UNLIKELY_REFUND_NS && seen - wanted < UNLIKELY_REFUND_NS)
        charge(device, now, seen - wanted, rate_ppm);
}

uint64_t share_take(int device, uint64_t now, uint64_t ns)
{
    uint64_t rate_ppm = rate(device, now), *due = &shared(device)->due;
    apply_refund(device, now, rate_ppm);
    uint64_t seen = LOAD(*due);
    do {
        if (rate_ppm == 0)
            return 0;
        if (seen > now && rate_ppm < BUCKET_WHOLE_PPM)
            return seen - now;
    } while (!__atomic_compare_exchange_n(due, &seen, bucket_charge(seen, now, (int64_t)ns, rate_ppm), true,
                                          __ATOMIC_RELAXED, __ATOMIC_RELAXED));
    return 0;
}

void share_correct(int device, uint64_t now, int64_t ns)
{
    charge(device, now, ns, rate(device, now));
}

static uint64_t add_to_bin(int device, uint64_t number, uint64_t ns, bool brief)
{
    uint64_t *word = &shared(device)->bins[number % LAMINA_BINS], seen = LOAD(*word);
    uint32_t us = (uint32_t)((ns + 500) / 1000), charged;
    while (!__atomic_compare_exchange_n(word, &seen, bucket_bin_add(seen, number, us, brief, &charged), true,
                                        __ATOMIC_RELAXED, __ATOMIC_RELAXED))
        ;
    return charged == us ? ns : (uint64_t)charged * 1000;
}

uint64_t share_worked(int device, uint64_t now, uint64_t from, uint64_t to, double density, bool brief)
{
    uint64_t known = now > (LAMINA_BINS - 1) * BIN_NS ? now - (LAMINA_BINS - 1) * BIN_NS : 0, charged = 0;
    struct lamina_slot_compute *mine = own(device);
    if (mine != NULL)
        ADD(mine->busy_ns, (uint64_t)(density * (double)(to - from)));
    if (from < known) { /* too long ago for anybody to tell what the others did */
        uint64_t end = to < known ? to : known;
        charged = (uint64_t)(density * (double)(end - from));
        from = end;
    }
    while (from < to) {
        uint64_t number = from / BIN_NS, end = (number + 1) * BIN_NS;
        end = end < to ? end : to;
        charged += add_to_bin(device, number, (uint64_t)(density * (double)(end - from)), brief);
        from = end;
    }
    ADD(shared(device)->busy_ns, charged);
    return charged;
}

void share_asks(int device, uint64_t now)
{
    struct lamina_slot_compute *mine = own(device);
    if (mine != NULL)
        __atomic_store_n(&mine->asked_at, now, __ATOMIC_RELAXED);
}

void share_waits(int device, uint64_t now, uint64_t ns)
{
    struct lamina_slot_compute *mine = own(device);
    ADD(shared(device)->waited_ns, ns);
    if (mine != NULL)
        __atomic_store_n(&mine->waited_at, now, __ATOMIC_RELAXED);
}

void share_busy(int device, uint64_t since)
{
    struct lamina_slot_compute *mine = own(device);
    if (mine != NULL)
        __atomic_store_n(&mine->busy_since, since, __ATOMIC_RELAXED);
}
