#include "compute/bucket.h"

#include "shared/assertion.h"

#include <string.h>

#define BIN_SHIFT 28
#define BRIEF_SHIFT 16
#define BRIEF_MAX 0xfffu
#define OTHERS_MAX 0xffffu
#define BIN_US 1000u
#define SELDOM_NS 20000

/* How many ns of waiting correspond to ns of work. */
static uint64_t waiting_for(uint64_t ns, uint64_t rate_ppm)
{
    ASSERT(rate_ppm > 0 && rate_ppm <= BUCKET_WHOLE_PPM);
    uint64_t whole = ns / rate_ppm, rest = ns % rate_ppm;
    if (whole > UINT64_MAX / BUCKET_WHOLE_PPM - BUCKET_WHOLE_PPM)
        return UINT64_MAX;
    return whole * BUCKET_WHOLE_PPM + rest * BUCKET_WHOLE_PPM / rate_ppm;
}

uint64_t bucket_charge(uint64_t due, uint64_t now, int64_t ns, uint64_t rate_ppm, uint64_t blocked)
{
    uint64_t saved = waiting_for(BUCKET_SAVED_NS, rate_ppm) + (blocked < MAX_BLOCKED_NS ? blocked : MAX_BLOCKED_NS);
    uint64_t lowest = now > saved ? now - saved : 0;
    uint64_t base = due > lowest ? due : lowest;
    if (ns >= 0) {
        uint64_t more = waiting_for((uint64_t)ns, rate_ppm);
        return base > UINT64_MAX - more ? UINT64_MAX : base + more;
    }
    uint64_t less = waiting_for(0 - (uint64_t)ns, rate_ppm);
    ASSERT(base >= lowest);
    return base - lowest > less ? base - less : lowest;
}

static uint32_t at_most(uint32_t value, uint32_t most)
{
    return value < most ? value : most;
}

uint64_t bucket_bin_add(uint64_t word, uint64_t number, uint32_t us, bool brief, uint32_t *charged)
{
    uint64_t stored = word >> BIN_SHIFT;
    bool same = stored == number;
    uint32_t briefs = same ? word >> BRIEF_SHIFT & BRIEF_MAX : 0, others = same ? word & OTHERS_MAX : 0;
    uint32_t before = at_most(briefs + others, BIN_US);
    *charged = us;
    if (stored > number && stored - number < UINT64_C(1) << 35)
        return word;
    us = at_most(us, BIN_US);
    if (brief)
        briefs = at_most(briefs + us, BRIEF_MAX);
    else
        others = at_most(others + us, OTHERS_MAX);
    *charged = at_most(briefs + others, BIN_US) - before;
    ASSERT(*charged <= BIN_US);
    ASSERT(briefs <= BRIEF_MAX && others <= OTHERS_MAX);
    return number << BIN_SHIFT | (uint64_t)briefs << BRIEF_SHIFT | others;
}

uint32_t bucket_batch(uint64_t each, uint64_t apart, uint64_t ns)
{
    if (apart > SELDOM_NS && apart > 2 * each)
        return 1;
    uint64_t count = ns / (each > 0 ? each : 1);
    if (count < 1)
        return 1;
    return count > BATCH_MAX ? BATCH_MAX : (uint32_t)count;
}

static void drop_first(struct spans *spans)
{
    ASSERT(spans->count > 0);
    memmove(spans->all, spans->all + 1, --spans->count * sizeof spans->all[0]);
}

unsigned spans_add(struct spans *spans, uint64_t from, uint64_t to, struct span fresh[SPANS + 1])
{
    unsigned parts = 0, first = 0, last;
    uint64_t at = from;
    if (to <= from)
        return 0;
    while (first < spans->count && spans->all[first].to < from)
        first++;
    for (last = first; last < spans->count && spans->all[last].from <= to; last++) {
        struct span *span = &spans->all[last];
        if (span->from > at)
            fresh[parts++] = (struct span){at, span->from};
        at = span->to;
    }
    if (at < to)
        fresh[parts++] = (struct span){at, to};
    ASSERT(first <= last && last <= spans->count);
    ASSERT(parts <= SPANS + 1);
    if (last > first) { /* spans that touch are merged */
        struct span *merged = &spans->all[first];
        merged->from = from < merged->from ? from : merged->from;
        merged->to = to > spans->all[last - 1].to ? to : spans->all[last - 1].to;
        memmove(merged + 1, spans->all + last, (spans->count - last) * sizeof *merged);
        spans->count -= last - first - 1;
        return parts;
    }
    if (spans->count == SPANS) {
        drop_first(spans);
        if (first == 0) /* older than all the others */
            return parts;
        first--;
    }
    memmove(spans->all + first + 1, spans->all + first, (spans->count - first) * sizeof spans->all[0]);
    spans->all[first] = (struct span){from, to};
    ASSERT(spans->count < SPANS);
    ASSERT(first == 0 || spans->all[first - 1].to < from);
    spans->count++;
    return parts;
}

bool spans_touch(const struct spans *spans, uint64_t moment)
{
    for (unsigned i = 0; i < spans->count; i++)
        if (spans->all[i].from <= moment && moment <= spans->all[i].to)
            return true;
    return false;
}
