#include "compute/time_share.h"

#include "compute/bucket.h"
#include "cuda/process.h"
#include "shared/assertion.h"
#include "shared/facade.h"
#include "shared/live_limits.h"

#include <stdatomic.h>

#define UNLIKELY_REFUND_NS UINT64_C(1000000000)
#define LONGEST_TURN_NS UINT64_C(20000000)
#define BIN_NS UINT64_C(1000000)
#define MAX_DEFERRED_NS UINT64_C(10000000000) /* more is no time that was measured */

/* Relaxed in these five: each word stands alone. It is a timestamp, a sum or a flag, and no other data is read because
 * of its value, so no order between words is needed. */
#define LOAD(word) atomic_load_explicit(&(word), memory_order_relaxed)
#define STORE(word, value) atomic_store_explicit(&(word), value, memory_order_relaxed)
#define ADD(word, value) atomic_fetch_add_explicit(&(word), value, memory_order_relaxed)
#define EXCHANGE(word, value) atomic_exchange_explicit(&(word), value, memory_order_relaxed)
#define REPLACE(word, seen, value)                                                                                     \
    atomic_compare_exchange_weak_explicit(word, seen, value, memory_order_relaxed, memory_order_relaxed)

static const struct lamina_decision *decision_for(int device)
{
    return &facade_open()->arbiter->devices[device];
}

static bool is_decided(uint64_t now)
{
    return arbiter_is_current(facade_open()->arbiter, now);
}

static struct lamina_usage_compute *shared_compute(int device)
{
    ASSERT(device >= 0 && device < LAMINA_MAX_DEVICES);
    return &facade_open()->account.usage->devices[device].compute;
}

static struct lamina_slot_compute *own_compute(int device)
{
    struct lamina_slot *slot = process_slot_if_any();
    return slot == NULL ? NULL : &account_slot_device(slot, (uint32_t)device)->compute;
}

static const struct lamina_limit *limit_of(int device)
{
    return &facade_open()->limits.devices[device];
}

static bool holds_time(int device)
{
    uint32_t policy = limit_of(device)->compute_policy;
    return policy == LAMINA_COMPUTE_CAP || policy == LAMINA_COMPUTE_WEIGHT;
}

bool time_share_is_measured(int device, uint64_t now)
{
    return holds_time(device) || (LOAD(decision_for(device)->watched) && is_decided(now));
}

bool time_share_is_closed(int device, uint64_t now)
{
    return LOAD(decision_for(device)->closed) != 0 && is_decided(now);
}

bool time_share_has_turn(int device, uint64_t now)
{
    struct lamina_usage_compute *compute = shared_compute(device);
    uint64_t turns = LOAD(facade_open()->arbiter->lendings[device].turns), taken = LOAD(compute->turns_taken);
    if (turns != taken && is_decided(now) && atomic_compare_exchange_strong(&compute->turns_taken, &taken, turns))
        STORE(compute->turn_until, now + (turns & UINT32_MAX) * 1000);
    uint64_t until = LOAD(compute->turn_until);
    return now < until && until - now <= LONGEST_TURN_NS;
}

const _Atomic uint64_t time_share_zero_flag;

static const _Atomic uint64_t *flag_unless_old(const _Atomic uint64_t *word, uint64_t now)
{
    return LOAD(*word) == 0 || is_decided(now) ? word : &time_share_zero_flag;
}

const _Atomic uint64_t *time_share_closed_flag(int device, uint64_t now)
{
    return flag_unless_old(&decision_for(device)->closed, now);
}

const _Atomic uint64_t *time_share_attention_flag(int device, uint64_t now)
{
    return flag_unless_old(&decision_for(device)->attention, now);
}

/* How much idle time may be lent, whatever the arbiter says. */
static uint64_t most_ppm(int device)
{
    uint32_t most = limit_of(device)->most_percent;
    return most == 0 ? BUCKET_WHOLE_PPM : most * (BUCKET_WHOLE_PPM / 100);
}

/* 0: no limit. A cap is never above the limits, whatever the arbiter says. */
static uint64_t read_rate(int device, uint64_t now)
{
    uint64_t share = live_cores(&facade_open()->account, (uint32_t)device, now) * (BUCKET_WHOLE_PPM / 100), lent;
    if (!holds_time(device))
        return 0;
    if (limit_of(device)->compute_policy == LAMINA_COMPUTE_CAP || !is_decided(now))
        return share;
    lent = LOAD(decision_for(device)->rate_ppm);
    lent = lent > most_ppm(device) ? most_ppm(device) : lent;
    return lent < share ? share : lent;
}

static uint64_t read_blocked(int device, uint64_t now)
{
    return is_decided(now) ? LOAD(decision_for(device)->blocked_ns) : 0;
}

static void charge_time(int device, uint64_t now, int64_t ns, uint64_t rate_ppm)
{
    _Atomic uint64_t *due = &shared_compute(device)->due;
    uint64_t seen = LOAD(*due);
    while (rate_ppm != 0 && ns != 0 &&
           !REPLACE(due, &seen, bucket_charge(seen, now, ns, rate_ppm, read_blocked(device, now))))
        ;
}

/* The refund only grows, or shrinks a little when the arbiter learns more. Otherwise the arbiter started again. */
static void apply_refund(int device, uint64_t now, uint64_t rate_ppm)
{
    int64_t wanted = LOAD(decision_for(device)->refund_ns), seen = LOAD(shared_compute(device)->refund_ns);
    if (wanted == seen || !atomic_compare_exchange_strong(&shared_compute(device)->refund_ns, &seen, wanted))
        return;
    /* Both may be anything, so the difference is taken without a sign. */
    uint64_t less = (uint64_t)seen - (uint64_t)wanted;
    if (less + UNLIKELY_REFUND_NS < 2 * UNLIKELY_REFUND_NS)
        charge_time(device, now, (int64_t)less, rate_ppm);
}

/* Charges what was deferred, once the arbiter has decided with knowledge of it or no longer decides. */
static void charge_deferred(int device, uint64_t now, uint64_t rate_ppm)
{
    struct lamina_usage_compute *compute = shared_compute(device);
    if (LOAD(compute->deferred_ns) == 0 ||
        (is_decided(now) && LOAD(facade_open()->arbiter->heartbeat) <= LOAD(compute->deferred_at)))
        return;
    uint64_t ns = EXCHANGE(compute->deferred_ns, 0);
    charge_time(device, now, ns < MAX_DEFERRED_NS ? (int64_t)ns : (int64_t)MAX_DEFERRED_NS, rate_ppm);
}

uint64_t time_share_take(int device, uint64_t now, uint64_t ns)
{
    uint64_t rate_ppm = read_rate(device, now);
    _Atomic uint64_t *due = &shared_compute(device)->due;
    charge_deferred(device, now, rate_ppm);
    apply_refund(device, now, rate_ppm);
    uint64_t seen = LOAD(*due);
    do {
        if (rate_ppm == 0)
            return 0;
        if (seen > now && rate_ppm < BUCKET_WHOLE_PPM)
            return seen - now;
    } while (!REPLACE(due, &seen, bucket_charge(seen, now, (int64_t)ns, rate_ppm, read_blocked(device, now))));
    return 0;
}

void time_share_correct(int device, uint64_t now, int64_t ns)
{
    struct lamina_usage_compute *compute = shared_compute(device);
    if (ns <= 0 || !is_decided(now) || !LOAD(decision_for(device)->watched)) {
        charge_time(device, now, ns, read_rate(device, now));
        return;
    }
    if (ADD(compute->deferred_ns, (uint64_t)ns) == 0)
        STORE(compute->deferred_at, now);
}

static uint64_t add_to_bin(int device, uint64_t number, uint64_t ns, bool brief)
{
    _Atomic uint64_t *word = &shared_compute(device)->bins[number % LAMINA_BINS];
    uint64_t seen = LOAD(*word);
    uint32_t us = (uint32_t)((ns + 500) / 1000), charged;
    while (!REPLACE(word, &seen, bucket_bin_add(seen, number, us, brief, &charged)))
        ;
    return charged == us ? ns : (uint64_t)charged * 1000;
}

uint64_t time_share_add_work(int device, uint64_t now, uint64_t from, uint64_t to, double density, bool brief)
{
    ASSERT(from <= to);
    ASSERT(density >= 0 && density <= 1);
    uint64_t known = now > (LAMINA_BINS - 1) * BIN_NS ? now - (LAMINA_BINS - 1) * BIN_NS : 0, charged = 0;
    struct lamina_slot_compute *mine = own_compute(device);
    if (mine != NULL)
        ADD(mine->busy_ns, (uint64_t)(density * (double)(to - from)));
    if (from < known) { /* too long ago: the bins no longer show what others did then */
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
    ADD(shared_compute(device)->busy_ns, charged);
    return charged;
}

uint64_t time_share_window(int device, uint64_t now)
{
    return is_decided(now) ? LOAD(facade_open()->arbiter->lendings[device].window) : 0;
}

void time_share_note_occupied(int device, uint64_t ns)
{
    ADD(shared_compute(device)->occupied_ns, ns);
}

void time_share_note_launch(int device, uint64_t ns)
{
    if (LOAD(shared_compute(device)->launch_ns) != ns)
        STORE(shared_compute(device)->launch_ns, ns);
}

void time_share_note_request(int device, uint64_t now)
{
    struct lamina_slot_compute *mine = own_compute(device);
    if (mine != NULL)
        STORE(mine->asked_at, now);
}

void time_share_note_use(int device, uint64_t now)
{
    STORE(shared_compute(device)->used_at, now);
}

void time_share_note_wait(int device, uint64_t now, uint64_t ns)
{
    struct lamina_slot_compute *mine = own_compute(device);
    ADD(shared_compute(device)->waited_ns, ns);
    if (mine != NULL)
        STORE(mine->waited_at, now);
}

void time_share_note_busy(int device, uint64_t since)
{
    struct lamina_slot_compute *mine = own_compute(device);
    if (mine != NULL)
        STORE(mine->busy_since, since);
}
