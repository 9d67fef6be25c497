"""The twin of native/facade/compute/bucket.c: how a container's time is charged. Times in ns, rates in millionths."""

from lamina.enforcement import layout

SAVED_NS = 25_000_000
MAX_BLOCKED_NS = 500_000_000
WHOLE_PPM = 1_000_000
MAX_WORD = (1 << 64) - 1


def charge(due: int, now: int, ns: int, rate_ppm: int, blocked: int = 0) -> int:
    """From when on the container may launch, after `ns` of work are charged, or given back when negative. For `blocked`
    ns it could not use its share lately."""
    lowest = max(0, now - SAVED_NS * WHOLE_PPM // rate_ppm - min(blocked, MAX_BLOCKED_NS))
    moved = max(due, lowest) + (1 if ns >= 0 else -1) * (abs(ns) * WHOLE_PPM // rate_ppm)
    return min(MAX_WORD, max(lowest, moved))


def bin_add(word: int, number: int, us: int, brief: bool) -> tuple[int, int]:
    """The word of a millisecond after work is added to it, and what of the work is charged."""
    there = word >> layout.BIN_SHIFT
    if 0 < there - number < 1 << 35:
        return word, us
    us = min(us, 1000)
    same = there == number
    briefs = word >> layout.BRIEF_SHIFT & layout.MAX_BRIEF if same else 0
    others = word & layout.MAX_OTHERS if same else 0
    before = min(1000, briefs + others)
    if brief:
        briefs = min(briefs + us, layout.MAX_BRIEF)
    else:
        others = min(others + us, layout.MAX_OTHERS)
    after = number << layout.BIN_SHIFT | briefs << layout.BRIEF_SHIFT | others
    return after, min(1000, briefs + others) - before
