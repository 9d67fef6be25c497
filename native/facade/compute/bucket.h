/* The arithmetic by which GPU time is shared: pure functions of state, current time and measurements. Its twin is
 * tests/enforcement/bucket.py; tests compare the two and check what must be true of both.
 *
 * The bucket is one word, `due`: the time from which on the container may launch. Work of c ns moves it by c / share,
 * so debt is carried forward as time to wait. It is never further in the past than BUCKET_SAVED_NS of work, so at most
 * that much is saved up: in any window of w ns, what is let in while due is at most share * w + BUCKET_SAVED_NS.
 *
 * Example: the share is 50 % and `due` is now. A batch of 1 ms moves `due` to 2 ms from now, so the next batch waits
 * for 2 ms, of which the GPU worked 1 ms for this container. After a pause of an hour `due` is not an hour ago, but 50
 * ms: 25 ms of work may start at once. Had the GPU worked for others meanwhile, although the container had work, up to
 * half a second of that would not count as a pause. */
#ifndef LAMINA_BUCKET_H
#define LAMINA_BUCKET_H

#include <stdbool.h>
#include <stdint.h>

#define BUCKET_SAVED_NS UINT64_C(25000000)
#define MAX_BLOCKED_NS UINT64_C(500000000)
#define BUCKET_WHOLE_PPM UINT64_C(1000000)

/* `due` after `ns` of work are charged, or given back when negative. Saturates; `rate_ppm` is at least 1. `blocked`:
 * for how long others lately had the GPU while the container had work; `due` may lie as much farther in the past. */
uint64_t bucket_charge(uint64_t due, uint64_t now, int64_t ns, uint64_t rate_ppm, uint64_t blocked);

/* One millisecond's bin, `word`, after work of `us` in the millisecond `number` is added to it. `brief` means that the
 * process surely had the GPU to itself. `*charged` is how much of it counts as the container's, in us: processes that
 * have work at the same time count once. A bin that is already used for a later millisecond keeps its word, and all of
 * `us` counts. The word: number << 28 | brief us << 16 | other us. */
uint64_t bucket_bin_add(uint64_t word, uint64_t number, uint32_t us, bool brief, uint32_t *charged);

/* How long a process has the GPU at most before others get it. */
#define TURN_NS UINT64_C(2000000)

/* More than a batch, and less than a batch with a turn of another process in between, which takes up to 2 ms. */
#define BRIEF_NS UINT64_C(1250000)

/* How many launches to measure as one batch of about `ns` of work. One at a time when launches that take `each` ns of
 * work come so seldom, every `apart` ns, that the gaps between them would be measured too. */
enum { BATCH_MAX = 256 };
#define BATCH_NS UINT64_C(1000000)
uint32_t bucket_batch(uint64_t each, uint64_t apart, uint64_t ns);

/* The latest times in which a process had work on a GPU: disjoint and in order. */
enum { SPANS = 16 };
struct spans {
    unsigned count;
    struct span { uint64_t from, to; } all[SPANS];
};

/* Adds a span. Writes those parts that were not covered before to `fresh` (at most SPANS + 1) and returns their number.
 * Spans that were dropped because there were too many count again. */
unsigned spans_add(struct spans *spans, uint64_t from, uint64_t to, struct span fresh[SPANS + 1]);

/* Whether a span contains the moment or ends with it. */
bool spans_touch(const struct spans *spans, uint64_t moment);

#endif
