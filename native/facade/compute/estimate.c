#include "compute/estimate.h"

#include "compute/bucket.h"
#include "shared/assertion.h"

#define NEAR_NS UINT64_C(20000) /* within this time a GPU starts what it is given */

bool estimate_is_sparse(const struct estimate *estimate, struct measured measured)
{
    return measured.launches > 1 && estimate->known && measured.behind <= NEAR_NS + estimate->each;
}

static uint64_t multiply_at_most(uint64_t each, uint32_t launches, uint64_t most)
{
    ASSERT(launches > 0);
    return each > most / launches ? most : each * launches;
}

uint64_t estimate_work(const struct estimate *estimate, struct measured measured, bool *certain)
{
    uint64_t span = measured.span, most;
    *certain = true;
    if (measured.launches <= 1 && span <= NO_WORK_NS)
        return 0;
    if (estimate_is_sparse(estimate, measured))
        return multiply_at_most(estimate->each, measured.launches, span);
    if (span <= BRIEF_NS)
        return span;
    /* Longer than a turn. If the launches do not take that long, others had the rest. */
    most = measured.launches > 1 && estimate->known ? multiply_at_most(estimate->most, measured.launches, span) : span;
    *certain = most < span - span / 8;
    ASSERT(most <= span);
    return *certain ? most : span;
}

void estimate_learn(struct estimate *estimate, struct measured measured)
{
    uint64_t each = measured.span / (measured.launches > 0 ? measured.launches : 1), most;
    if (measured.launches > 1 && (measured.span > BRIEF_NS || measured.behind <= NEAR_NS + each))
        return;
    if (each <= NO_WORK_NS && measured.launches <= 1)
        each = 0;
    most = estimate->most - estimate->most / 16;
    estimate->most = each > most ? each : most;
    estimate->each = estimate->known ? estimate->each - estimate->each / 8 + each / 8 : each;
    estimate->known = true;
}
